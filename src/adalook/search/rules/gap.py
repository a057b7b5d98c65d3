"""Go on while the choice is close: needs no prior.

Deepen from h to h+1  iff  max_a Q_h(s₀, a) − second max_a Q_h(s₀, a) < gap
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.errors import ArgumentError
from adalook.search.rules.base import DepthRule, LevelView, is_number, whole_depth


@dataclass(frozen=True)
class GapDepth(DepthRule):
    """Stop when the best first action is ahead of the second best by at least `gap`.

    The distance it records is the lead of the best action; with a single action it is infinite.

    >>> GapDepth(0.1, max_depth=3)
    GapDepth(gap=0.1, max_depth=3)
    """

    gap: float
    max_depth: int

    def __post_init__(self) -> None:
        whole_depth(self.max_depth, "max_depth of GapDepth")
        if not is_number(self.gap) or not self.gap > 0.0:
            raise ArgumentError("the gap of GapDepth is wrong", expected="a number > 0", got=repr(self.gap))

    def distances(self, view: LevelView) -> FloatArray:
        if view.action_values.shape[1] == 1:
            return np.full(len(view.values), np.inf)
        second, best = np.partition(view.action_values, -2, axis=1)[:, -2:].T
        return np.asarray(best - second)

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        return np.asarray(distances < self.gap)
