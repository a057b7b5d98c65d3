"""What a depth rule sees and says. A rule is a small frozen object that is handed to `search`."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.errors import ArgumentError
from adalook.simulators.base import Observations

ValueFunction = Callable[[Observations, int], FloatArray]
"""(observations (n, *observation_shape), depth) -> values (n,). Learners have a head for each depth."""


@dataclass(frozen=True, eq=False)
class LevelView:
    """A level of the trees of n roots, all that are still growing; A is the number of actions."""

    depth: int
    action_values: FloatArray
    """(n, A) best value below each first action; -inf where a beam left none"""
    values: FloatArray
    """(n,) the best of them"""
    previous_values: FloatArray
    """(n,) the same at the level looked at before; at the first what `reference` returned"""
    references: FloatArray
    """(n,) what `reference` returned"""


class DepthRule(ABC):
    """Decides after each level which trees grow by another one."""

    max_depth: int
    """No tree grows deeper than this."""

    def looks_at(self, depth: int) -> bool:
        """Whether `deeper` goes by what it sees at this depth. If not, that level's leaves need no values."""
        del depth
        return True

    def reference(self, observations: Observations, value_fn: ValueFunction) -> FloatArray:
        """(n,) a number for each root, from its observation, that distances are measured from. NaN if there is none."""
        del value_fn
        return np.full(len(observations), np.nan)

    def distances(self, view: LevelView) -> FloatArray:
        """(n,) what `deeper` goes by; kept in the result. NaN if there is none."""
        return np.full(len(view.values), np.nan)

    @abstractmethod
    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        """(n,) which of the trees grow by another level. Not asked at `max_depth`."""


def whole_depth(depth: int, name: str) -> None:
    """Complain about a depth that is none."""
    if not is_whole(depth) or depth < 1:
        raise ArgumentError(f"{name} is wrong", expected="a whole number >= 1", got=repr(depth))


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, Python's or NumPy's; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether it is a real number, Python's or NumPy's; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
