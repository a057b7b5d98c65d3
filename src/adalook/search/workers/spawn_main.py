"""The main module as processes that are spawned see it.

Python's `spawn` runs the file of the main module again in every child, to define there what is defined here. A script
that came through a pipe (`python - < script`) names a file, `<stdin>`, that is none: its children would die of that. As
nothing can be run again they have to do without, just as those of `python -c` and of notebooks do.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from multiprocessing import process
from typing import Any


@contextlib.contextmanager
def no_file_that_is_none() -> Iterator[None]:
    """While this lasts, the main module names no file, unless there is such a file."""
    main = sys.modules["__main__"]
    name = getattr(main, "__file__", None)
    if name is None or can_be_run_again():
        yield
        return
    main.__file__ = None
    try:
        yield
    finally:
        main.__file__ = name


def can_be_run_again() -> bool:
    """Whether children can have what the main module defines: it is a module, or a file that exists."""
    main: Any = sys.modules["__main__"]
    if getattr(main.__spec__, "name", None) is not None:
        return True
    name = getattr(main, "__file__", None)
    # A relative name counts from where the program began, wherever it has gone since.
    return name is not None and os.path.isfile(os.path.join(getattr(process, "ORIGINAL_DIR", None) or "", name))
