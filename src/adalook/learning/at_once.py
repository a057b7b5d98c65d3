"""An executor without threads, for those who could use a helper and have none."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
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
