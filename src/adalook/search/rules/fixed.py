"""Every tree grows to the same depth: the paper's DQN with lookahead 1, 2, 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook._validation import integer
from adalook.search.rules.base import DepthRule, LevelView


@dataclass(frozen=True)
class FixedDepth(DepthRule):
    """Look `max_depth` steps ahead in every state.

    >>> FixedDepth(3)
    FixedDepth(max_depth=3)
    """

    max_depth: int
    needs_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        integer(min=1).validate("the depth of FixedDepth", self.max_depth)

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        return np.ones(len(view.values), bool)
