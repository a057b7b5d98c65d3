"""Validators accept what they say, return plain Python, and refuse the rest with what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

from adalook import _validation as validation
from adalook._validation import Validator
from adalook.errors import ArgumentError, shown

INF, NAN = float("inf"), float("nan")

ACCEPTED: list[tuple[Validator, Any, Any]] = [
    (validation.integer(1), 1, 1),
    (validation.integer(1), np.int16(7), 7),
    (validation.integer(0, 3), 3, 3),
    (validation.fraction, 1, 1.0),
    (validation.fraction, np.float32(0.5), 0.5),
    (validation.fraction_above_zero, 1.0, 1.0),
    (validation.fraction_below_one, 0, 0.0),
    (validation.non_negative, 0, 0.0),
    (validation.positive, 1e-300, 1e-300),
    (validation.positive_or_infinite, INF, INF),
    (validation.fraction_list(2), [1, 0.5], (1.0, 0.5)),
    (validation.fraction_list(2), np.array([0.25]), (0.25,)),
    (validation.fraction_list(2), (), ()),
    (validation.one_of("adam", "rmsprop"), "adam", "adam"),
    (validation.text("a name"), "x", "x"),
    (validation.boolean, True, True),
    (validation.boolean, np.True_, True),
    (validation.optional(validation.integer(1)), None, None),
    (validation.optional(validation.integer(1)), 4, 4),
]


@pytest.mark.parametrize(("validator", "value", "plain"), ACCEPTED)
def test_values_in_range_come_back_as_plain_python(validator: Validator, value: Any, plain: Any) -> None:
    result = validator.validate("x", value)
    assert result == plain
    assert type(result) is type(plain)


REFUSED: list[tuple[Validator, list[Any]]] = [
    (validation.integer(1), [0, -1, 1.0, True, "1", None, NAN, [1]]),
    (validation.integer(0, 3), [-1, 4]),
    (validation.fraction, [-1e-9, 1.1, NAN, INF, True, "0.5", None]),
    (validation.fraction_above_zero, [0.0, 1.1]),
    (validation.fraction_below_one, [1.0, -0.1]),
    (validation.non_negative, [-1.0, INF, NAN]),
    (validation.positive, [0.0, INF, NAN, 10**400]),
    (validation.positive_or_infinite, [0.0, NAN]),
    (validation.fraction_list(2), [[1, 2, 3], 0.5, "12", [NAN], ["a"], [True], None]),
    (validation.one_of("adam", "rmsprop"), ["sgd", "", None, 3]),
    (validation.text("a name"), ["", None, b"x"]),
    (validation.boolean, [0, 1, "yes", None]),
    (validation.optional(validation.integer(1)), [0, "none"]),
]


@pytest.mark.parametrize(
    ("validator", "value"), [(validator, value) for validator, values in REFUSED for value in values]
)
def test_other_values_are_refused_with_what_was_expected(validator: Validator, value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        validator.validate("the setting", value)
    assert str(caught.value) == f"the setting is wrong: expected {validator.expected}, got {shown(value)}."


def test_numbers_in_text_are_read_or_refused_by_name() -> None:
    assert validation.parse_number("3", int, "the depth") == 3
    assert validation.parse_number("1e-3", float, "kappa") == 1e-3
    with pytest.raises(ArgumentError, match=r"the depth is wrong: expected a whole number, got '3\.5'"):
        validation.parse_number("3.5", int, "the depth")


@dataclass(frozen=True)
class Settings:
    steps: Annotated[int, validation.integer(1), "How many."] = 1
    name: str = ""

    def __post_init__(self) -> None:
        validation.check_fields(self, "settings")


def test_fields_are_checked_by_their_annotations() -> None:
    assert type(Settings(np.int64(3)).steps) is int  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="settings: steps is wrong: expected a whole number >= 1, got 0"):
        Settings(0)
