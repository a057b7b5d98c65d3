"""The names of states and actions: they stand for numbers wherever a person reads or writes."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

import numpy as np

from adalook.errors import ArgumentError, ModelError, did_you_mean


class Names(NamedTuple):
    """One name per state and one per action, each distinct; empty where there are none."""

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


def checked_names(given: Any, count: int, kind: str) -> tuple[str, ...]:
    """Return `count` distinct names as text, or raise `ModelError`; `kind` is "state" or "action"."""
    if given is None:
        return ()
    expected = f"{count} names, one per {kind}"
    unordered = isinstance(given, str | bytes | Set) or not hasattr(given, "__iter__")
    if unordered or getattr(given, "ndim", 1) != 1 or np.ma.is_masked(given):
        raise ModelError(f"{kind}_names are wrong", expected=f"{expected}, in their order", got=repr(given)[:80])
    names = tuple(str(name) for name in given)
    if len(names) != count:
        raise ModelError(f"{kind}_names are wrong", expected=expected, got=len(names))
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
            f"there is no {kind} {given!r}",
            expected=", ".join(names[:12]) + (" …" if len(names) > 12 else "") if names else f"0 to {count - 1}",
            remedy=did_you_mean(given, names),
        )
    try:
        number = given.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(f"the {kind} is wrong", expected=f"0 to {count - 1}, or a name", got=repr(given)) from None
    if not 0 <= number < count:
        raise ArgumentError(f"the {kind} is out of range", expected=f"0 to {count - 1}", got=number)
    return int(number)
