"""Validators of settings: a validator returns a value as plain Python, or raises an error with what was expected.

Numbers may be NumPy's. NumPy itself is imported for arrays only: the command line checks its flags without it.
"""

from __future__ import annotations

import functools
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_origin, get_type_hints

from adalook.errors import AdalookError, ArgumentError, shown

MAX_BITS = 4096
"""Longer whole numbers are a mistake; Python cannot even print them."""


@dataclass(frozen=True)
class Validator:
    """The type and range of one setting."""

    expected: str
    read: Callable[[Any], Any]
    """Returns the value as plain Python; raises TypeError or OverflowError if it is of another type."""
    holds: Callable[[Any], bool]
    """Returns whether that value is within the range."""

    def validate(self, name: str, value: Any) -> Any:
        """Return the value as plain Python, or raise `ArgumentError`.

        >>> fraction.validate("discount", 1)
        1.0
        >>> fraction.validate("discount", "high")
        Traceback (most recent call last):
        adalook.errors.ArgumentError: discount is wrong: expected a number in [0, 1], got 'high'.
        """
        try:
            plain = self.read(_without_numpy(value))
            fits = self.holds(plain)
        except Exception:  # objects of others may raise whatever they like
            fits = False
        if not fits:
            raise ArgumentError(f"{name} is wrong", expected=self.expected, got=shown(value))
        return plain


def _without_numpy(value: Any) -> Any:
    """Return NumPy's numbers as Python's, its arrays as lists, and everything else as it is."""
    if type(value).__module__ != "numpy" or not hasattr(value, "tolist"):
        return value
    plain = value.tolist()
    if plain is None:  # "not a time" is not "none"
        raise TypeError
    return plain


def _integer(value: Any) -> int:
    """Return an integer, or raise TypeError; True and 3.0 are none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError
    if int(value).bit_length() > MAX_BITS:
        raise OverflowError
    return int(value)


def _number(value: Any) -> float:
    """Return a float, or raise TypeError; True is no number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    return float(value)


def _numbers(value: Any) -> tuple[float, ...]:
    """Return a tuple of floats, or raise TypeError."""
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(_number(_without_numpy(each)) for each in value)


def _instance_of(kind: type) -> Callable[[Any], Any]:
    """Return a function that returns instances of `kind` and raises TypeError for everything else."""

    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return read


def integer(min: int, max: int | None = None) -> Validator:
    """Accept a whole number from `min` to `max`."""
    if max is None:
        return Validator(f"a whole number >= {min}", _integer, lambda value: value >= min)
    return Validator(f"a whole number {min}..{max}", _integer, lambda value: min <= value <= max)


def fraction_list(max_length: int) -> Validator:
    """Accept up to `max_length` numbers in [0, 1]."""
    return Validator(
        f"up to {max_length} numbers in [0, 1], such as (0.3, 0.1)",
        _numbers,
        lambda values: len(values) <= max_length and all(0.0 <= value <= 1.0 for value in values),
    )


def one_of(*words: str) -> Validator:
    """Accept one of these words."""
    return Validator(f"{', '.join(words[:-1])} or {words[-1]}", _instance_of(str), lambda value: value in words)


def optional(validator: Validator) -> Validator:
    """Accept None as well.

    >>> optional(integer(min=1)).validate("width", 0)
    Traceback (most recent call last):
    adalook.errors.ArgumentError: width is wrong: expected a whole number >= 1, or None, got 0.
    """
    return Validator(
        f"{validator.expected}, or None",
        lambda value: None if value is None else validator.read(value),
        lambda value: value is None or validator.holds(value),
    )


def text(expected: str) -> Validator:
    """Accept any text but the empty one."""
    return Validator(expected, _instance_of(str), bool)


def matching(expected: str, pattern: str) -> Validator:
    """Accept text that a regular expression matches as a whole.

    >>> matching("cpu or cuda:N", "cpu|cuda:[0-9]+").validate("device", "banana")
    Traceback (most recent call last):
    adalook.errors.ArgumentError: device is wrong: expected cpu or cuda:N, got 'banana'.
    """
    return Validator(expected, _instance_of(str), lambda value: re.fullmatch(pattern, value) is not None)


boolean = Validator("True or False", _instance_of(bool), lambda _: True)
finite = Validator("a finite number", _number, lambda value: -float("inf") < value < float("inf"))
fraction = Validator("a number in [0, 1]", _number, lambda value: 0.0 <= value <= 1.0)
fraction_above_zero = Validator("a number in (0, 1]", _number, lambda value: 0.0 < value <= 1.0)
open_fraction = Validator("a number in (0, 1)", _number, lambda value: 0.0 < value < 1.0)
fraction_below_one = Validator("a number in [0, 1)", _number, lambda value: 0.0 <= value < 1.0)
at_least_zero = Validator("a number >= 0, or infinity", _number, lambda value: value >= 0.0)
non_negative = Validator("a number >= 0", _number, lambda value: 0.0 <= value < float("inf"))
positive = Validator("a number > 0", _number, lambda value: 0.0 < value < float("inf"))
positive_or_infinite = Validator("a number > 0, or infinity", _number, lambda value: value > 0.0)


def parse_number(text: str, kind: type, what: str) -> Any:
    """Return a number read from text, or raise `ArgumentError` that names what it was for.

    >>> parse_number("3", int, "the depth")
    3
    """
    try:
        return kind(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ArgumentError(f"{what} is wrong", expected=expected, got=shown(text)) from None


def as_array(name: str, value: Any, error: type[AdalookError] = ArgumentError) -> Any:
    """Return a value as a NumPy array of any type, or raise `error`; lists, arrays and what says it is one are taken.

    Masked entries are refused: their numbers would be taken as they are. So are other sequences, which NumPy reads item
    by item without an end in sight, and sparse matrices, which it takes for a single object.
    """
    import numpy as np

    parts = value if isinstance(value, list | tuple) else [value]
    for part in parts:
        if isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).any():
            raise error(
                f"{name} is a masked array",
                expected="plain numbers",
                got=f"{int(np.ma.getmaskarray(part).sum())} masked entries",
                remedy="fill in what is masked; to forbid actions of a model pass mask=, False where there is none",
            )
    plain = isinstance(value, np.ndarray | list | tuple | range | str | bytes | numbers.Number)
    if not plain and not _says_array(value):
        remedy = f"pass its {name}" if name.isidentifier() and hasattr(value, name) else ""
        raise error(f"{name} is wrong", expected="an array or a list", got=shown(value), remedy=remedy)
    try:
        return np.asarray(value)
    except Exception as reason:  # ragged lists, and whatever conversions of others raise
        ragged = isinstance(value, list | tuple) and isinstance(reason, ValueError)
        what = f"{name} is ragged" if ragged else f"{name} cannot be made an array"
        got = "rows of unequal length or kind" if ragged else f"{type(reason).__name__}: {reason}"
        raise error(what, expected="a rectangular array", got=got) from None


def _says_array(value: Any) -> bool:
    """Return whether something says that it is an array; a memoryview, for instance."""
    try:
        if any(hasattr(value, name) for name in ("__array__", "__array_interface__", "__array_struct__")):
            return True
        memoryview(value)
    except Exception:
        return False
    return True


def check_fields(settings: Any, owner: str) -> None:
    """Check every field of a dataclass by the validator in its annotation, and store what the validator returns.

    A field is declared as `Annotated[type, validator, help]`; `owner` names the settings in error messages.
    """
    kind: Any = type(settings)
    for name, (validator, _) in _annotations(kind).items():
        object.__setattr__(settings, name, validator.validate(f"{owner}: {name}", getattr(settings, name)))


def field_help(kind: type) -> dict[str, str]:
    """Return the help of each field of a dataclass whose fields are declared as for `check_fields`, by its name."""
    return {name: text for name, (_, text) in _annotations(kind).items()}


@functools.cache
def _annotations(kind: Any) -> dict[str, tuple[Validator, str]]:
    """Return the validator and the help in the annotation of each field of a class, by the name of the field."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__ for name, hint in hints.items() if get_origin(hint) is Annotated}
