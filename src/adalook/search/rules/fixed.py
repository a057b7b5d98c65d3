"""Every tree grows to the same depth: the paper's DQN with lookahead 1, 2, 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.search.rules.base import DepthRule, LevelView, whole_depth


@dataclass(frozen=True)
class FixedDepth(DepthRule):
    """Look `max_depth` steps ahead.

    >>> FixedDepth(3)
    FixedDepth(max_depth=3)
    """

    max_depth: int

    def __post_init__(self) -> None:
        whole_depth(self.max_depth, "the depth of FixedDepth")

    def looks_at(self, depth: int) -> bool:
        return False

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        return np.ones(len(view.values), bool)
