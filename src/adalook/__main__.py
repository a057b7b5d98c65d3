"""`python -m adalook` is the command line."""

import sys

from adalook.cli.main import main

sys.exit(main())
