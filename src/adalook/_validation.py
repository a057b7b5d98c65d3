"""What a setting may be. A rule gives a value back as plain Python, as JSON can hold it, or refuses it.

Numbers may be NumPy's. NumPy itself is not imported: the command line reads its flags without it.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adalook.errors import ArgumentError


@dataclass(frozen=True)
class Rule:
    """One setting's kind and range."""

    expected: str
    read: Callable[[Any], Any]
    """The value as plain Python; TypeError or OverflowError if it is of another kind."""
    holds: Callable[[Any], bool]
    """Whether what was read is within the range."""

    def checked(self, name: str, value: Any) -> Any:
        """The setting as plain Python.

        >>> fraction.checked("discount", 1)
        1.0
        >>> fraction.checked("discount", "high")
        Traceback (most recent call last):
        adalook.errors.ArgumentError: discount is wrong: expected a number in [0, 1], got 'high'.
        """
        try:
            plain = self.read(_without_numpy(value))
            fits = self.holds(plain)
        except (TypeError, OverflowError):
            fits = False
        if not fits:
            raise ArgumentError(f"{name} is wrong", expected=self.expected, got=repr(value))
        return plain


def _without_numpy(value: Any) -> Any:
    """NumPy's numbers as Python's, its arrays as lists."""
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    return float(value)


def _numbers(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(_number(_without_numpy(each)) for each in value)


def _of(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return read


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number from `least` to `most`."""
    if most is None:
        return Rule(f"a whole number >= {least}", _whole, lambda value: value >= least)
    return Rule(f"a whole number {least}..{most}", _whole, lambda value: least <= value <= most)


def at_most(count: int) -> Rule:
    """Up to so many numbers."""
    return Rule(
        f"up to {count} numbers, such as (0.3, 0.1)",
        _numbers,
        lambda values: len(values) <= count and all(value == value for value in values),
    )


def one_of(*words: str) -> Rule:
    """One of these words."""
    return Rule(f"{', '.join(words[:-1])} or {words[-1]}", _of(str), lambda value: value in words)


def text(expected: str) -> Rule:
    """Any text but none at all."""
    return Rule(expected, _of(str), bool)


flag = Rule("True or False", _of(bool), lambda _: True)
fraction = Rule("a number in [0, 1]", _number, lambda value: 0.0 <= value <= 1.0)
fraction_above_zero = Rule("a number in (0, 1]", _number, lambda value: 0.0 < value <= 1.0)
fraction_below_one = Rule("a number in [0, 1)", _number, lambda value: 0.0 <= value < 1.0)
not_negative = Rule("a number >= 0", _number, lambda value: 0.0 <= value < float("inf"))
positive = Rule("a number > 0", _number, lambda value: 0.0 < value < float("inf"))
