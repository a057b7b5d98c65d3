"""An executor without threads, for those who could use a helper and have none.

Python's interpreter changes hands more often while acting and learning overlap.

Learning needs it for a moment between two operations that take a millisecond each, and acting hardly ever lets go of
it: with Python's usual 5 ms a core would idle.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class AtOnce(Executor):
    """Does what it is given before `submit` returns, and raises what goes wrong there and then.

    >>> AtOnce().submit(pow, 2, 5).result()
    32
    """

    def submit(
        self, fn: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        done: Future[Result] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


TURN_SECONDS = 2e-4
"""After which a thread hands the interpreter over to one that waits for it."""
_LOCK = threading.Lock()
_inside = 0
_before = 0.0


@contextmanager
def quick_turns() -> Iterator[None]:
    """Whoever comes first changes the setting of the process, unless it is quicker; whoever leaves last restores it."""
    global _inside, _before
    with _LOCK:
        if _inside == 0:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_before, TURN_SECONDS))
        _inside += 1
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if _inside == 0:
                sys.setswitchinterval(_before)
