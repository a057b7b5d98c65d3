"""The interface of depth rules: small frozen objects that are passed to `search`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.simulators.base import Observations

ValueFunction = Callable[[Observations, int], FloatArray]
"""(observations (n, *observation_shape), depth) -> values (n,). Learners have a head for each depth."""


@dataclass(frozen=True, eq=False)
class LevelView:
    """A rule's view of one level of the n trees that are still growing; A is the number of actions."""

    depth: int
    action_values: FloatArray
    """(n, A) best value below each first action; -inf where a beam kept no node"""
    values: FloatArray
    """(n,) the best of them"""
    previous_values: FloatArray
    """(n,) the same at the last evaluated level above; at the first, `references`"""
    references: FloatArray
    """(n,) what `DepthRule.reference` returned"""
    seeds: Sequence[int]
    """(n,) of the trees' own randomness"""

    @property
    def leads(self) -> FloatArray:
        """(n,) how far the best first action is ahead of the second best; infinite where there is one action."""
        if self.action_values.shape[1] == 1:
            return np.full(len(self.values), np.inf)
        second, best = np.partition(self.action_values, -2, axis=1)[:, -2:].T
        return np.asarray(best - second)


class DepthRule(ABC):
    """A rule that decides after each level which trees grow by another one."""

    max_depth: int
    """No tree grows deeper than this."""
    needs_values: ClassVar[bool] = True
    """Whether `deeper` reads the values of a level. If not, only the leaves of the last level are evaluated."""

    def reference(self, observations: Observations, value_fn: ValueFunction) -> FloatArray:
        """Return the value (n,) of each root that distances are measured from; NaN if the rule has none."""
        del value_fn
        return np.full(len(observations), np.nan)

    def distances(self, view: LevelView) -> FloatArray:
        """Return the number (n,) of each tree that `deeper` decides by, stored in the result; NaN if there is none."""
        return np.full(len(view.values), np.nan)

    @abstractmethod
    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        """Return which trees (n,) grow by another level. Not called at `max_depth`."""
