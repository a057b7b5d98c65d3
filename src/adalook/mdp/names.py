"""The names of states and actions: they stand for numbers wherever a person reads or writes."""

from __future__ import annotations

from collections.abc import Set
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from adalook.errors import ArgumentError, ModelError, did_you_mean, shown


class Names(NamedTuple):
    """One name per state and one per action, each distinct; empty where there are none."""

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    def state(self, s: int) -> str:
        """Return how an error calls a state: by its name or, if it has none, by its number."""
        return f"state {self.states[s] if self.states else s}"

    def pair(self, s: int, a: int) -> str:
        """Return how an error calls a state and an action.

        >>> Names(("new", "worn")).pair(1, 0)
        'state worn, action 0'
        """
        return f"{self.state(s)}, action {self.actions[a] if self.actions else a}"


NO_NAMES = Names()


def checked_names(given: Any, count: int, kind: str) -> tuple[str, ...]:
    """Return `count` distinct names as text, or raise `ModelError`; `kind` is "state" or "action"."""
    if given is None:
        return ()
    expected = f"{count} names, one per {kind}"
    unordered = isinstance(given, str | bytes | memoryview | Set) or not hasattr(given, "__iter__")
    if unordered or getattr(given, "ndim", 1) != 1 or np.ma.is_masked(given):
        raise ModelError(f"{kind}_names are wrong", expected=f"{expected}, in their order", got=shown(given))
    try:
        names = tuple(str(name) for name in islice(given, count + 1))
    except Exception as error:  # whatever an iterator of others raises
        raise ModelError(f"{kind}_names are wrong", expected=expected, got=f"{type(error).__name__}: {error}") from None
    if len(names) != count:
        got = f"more than {count}" if len(names) > count else len(names)
        raise ModelError(f"{kind}_names are wrong", expected=expected, got=got)
    if len(set(names)) != count:
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"{kind}_names are wrong", expected="every name once", got=f"{twice!r} more than once")
    return names


def index_of(given: Any, names: tuple[str, ...], count: int, kind: str) -> int:
    """Return the number of a state or action that is given by its number or name, or raise `ArgumentError`.

    >>> index_of("rest", ("work", "rest"), 2, "action")
    1
    """
    if isinstance(given, str):
        if given in names:
            return names.index(given)
        raise ArgumentError(
            f"there is no {kind} {shown(given)}",
            expected=", ".join(names[:12]) + (" …" if len(names) > 12 else "") if names else f"0 to {count - 1}",
            remedy=did_you_mean(given, names),
        )
    try:
        number = given.__index__()
    except Exception:  # most objects are no index, and some raise what they like
        raise ArgumentError(f"the {kind} is wrong", expected=f"0 to {count - 1}, or a name", got=shown(given)) from None
    if not 0 <= number < count:
        raise ArgumentError(f"the {kind} is out of range", expected=f"0 to {count - 1}", got=number)
    return int(number)


def action_numbers(given: np.ndarray, names: tuple[str, ...], count: int) -> np.ndarray:
    """Return an array of actions with numbers in place of their names, or raise `ArgumentError`; others as they are.

    >>> action_numbers(np.array(["rest", "work"]), ("work", "rest"), 2).tolist()
    [1, 0]
    """
    if given.dtype.kind == "O" and all(isinstance(name, str) for name in given.flat):  # as pandas has them
        given = given.astype(str)
    if given.dtype.kind != "U" or not given.ndim:
        return given
    found, place = np.unique(given, return_inverse=True)
    numbers = np.array([index_of(str(name), names, count, "action") for name in found], np.int64)
    return numbers[place].reshape(given.shape)
