"""Threads beside the main one: an executor that needs none, and a shorter turn for each while there are several."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class InlineExecutor(Executor):
    """An executor without threads: `submit` does the work before it returns, and raises what goes wrong there.

    >>> InlineExecutor().submit(pow, 2, 5).result()
    32
    """

    def submit(
        self, fn: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        """Call the function and return a future that is done."""
        done: Future[Result] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


GIL_SWITCH_SECONDS = 2e-4
"""After which a thread hands the interpreter over to one that waits for it."""
_LOCK = threading.Lock()
_users = 0
_before = 0.0


@contextmanager
def short_gil_switch_interval() -> Iterator[None]:
    """Shorten the interpreter's switch interval while acting and learning overlap.

    Learning needs the interpreter for a moment between two operations that take a millisecond each, and acting hardly
    ever lets go of it: with Python's usual 5 ms a core would idle. The first to enter changes the setting of the
    process, unless it is shorter already; the last to leave restores it.
    """
    global _users, _before
    with _LOCK:
        if _users == 0:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_before, GIL_SWITCH_SECONDS))
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if _users == 0:
                sys.setswitchinterval(_before)
