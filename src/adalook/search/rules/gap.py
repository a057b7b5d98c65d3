"""Look deeper while the best two actions are close; needs no prior.

Deepen from h to h+1  iff  max_a Q_h(s₀, a) − second max_a Q_h(s₀, a) < gap
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook._validation import integer, positive_or_infinite
from adalook.search.rules.base import DepthRule, LevelView


@dataclass(frozen=True)
class GapDepth(DepthRule):
    """Stop when the value of the best first action exceeds the second best by at least `gap`.

    The distance it records is that difference; with a single action it is infinite.

    >>> GapDepth(0.1, max_depth=3)
    GapDepth(gap=0.1, max_depth=3)
    """

    gap: float
    max_depth: int

    def __post_init__(self) -> None:
        integer(min=1).validate("max_depth of GapDepth", self.max_depth)
        positive_or_infinite.validate("the gap of GapDepth", self.gap)

    def distances(self, view: LevelView) -> FloatArray:
        return view.leads

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        return np.asarray(distances < self.gap)
