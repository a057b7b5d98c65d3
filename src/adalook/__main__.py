"""`python -m adalook` is the command line."""

import sys

from adalook.cli import main

sys.exit(main())
