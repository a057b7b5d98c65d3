"""How deep QL-DQN looks (points 2, 3 and 4): ranks in the replay memory decide, level by level.

    d_h(s₀) = |Ṽ*(s₀) − max_leaf (R + γ^h max_a Q_h(leaf, a))|
    from depth h to h+1  iff  d_h(s₀) is in the top θ_{h+1} share of the distances recorded at depth h

A search records the distance of every level that it went through, so the distances of depth h are those of all states
that came so far and not only of those that stopped there. They leave the record with their transition.

How many states look deeper need not be told: `SharesThatFollowTheCost` spends a given number of simulated steps per
decision, in whatever game, on the states that are farthest from Ṽ*.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.arrays import BoolArray, FloatArray
from adalook.learning.network import Evaluator
from adalook.learning.ranks import RankedDistances
from adalook.search.quantile_depth import QuantileDepth
from adalook.search.rule import LevelView

PRIOR_DEPTH = 0
"""Ṽ* is what plain DQN makes of a state."""


class BufferRanks:
    """The distances in a replay memory, as the depth rule asks for them.

    Args:
        recorded: by depth, as the replay memory keeps them; an agent that has none yet looks one step ahead.
        least: with fewer than this on record, a depth has no ranks.
    """

    def __init__(self, recorded: Mapping[int, RankedDistances], least: int) -> None:
        self.recorded = recorded
        self._least = least

    def rank_share(self, depth: int, distances: FloatArray) -> FloatArray:
        """(n,) the share of distances at least as large, the new one counted; NaN while there are too few."""
        ranks = self.recorded.get(depth)
        if ranks is None or len(ranks) < self._least:
            return np.full(len(distances), np.nan)
        before = [ranks.count_at_least(distance) for distance in distances.tolist()]
        return np.array(before) / (len(ranks) + 1)


class QuantileLookahead(QuantileDepth):
    """The paper's rule, in which a share of 1 needs no ranks: then every state goes deeper from the first step on."""

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        share = self.shares[view.depth + 1]
        if share >= 1.0:
            return np.ones(len(distances), bool)
        if share <= 0.0:
            return np.zeros(len(distances), bool)
        return super().deeper(view, distances)


class SharesThatFollowTheCost(Mapping[int, float]):
    """One θ for all depths, moved so that decisions take `nodes` simulated steps on average.

    Where steps coincide, depth is cheap and almost every state looks deep; where they do not, only the hard ones do.
    Steps are counted and not timed: one seed, one run.

    >>> shares = SharesThatFollowTheCost(3, nodes=30.0)
    >>> shares.heed(60.0)
    >>> dict(shares)
    {2: 0.49, 3: 0.49}
    """

    GAIN = 0.01
    """By how much θ falls when a round costs twice what it may."""
    MOST = 1.0 - 1e-9
    """No rank is above it, and yet it is not 1, which would not wait for ranks."""

    def __init__(self, max_depth: int, nodes: float) -> None:
        self._depths = range(2, max_depth + 1)
        self._nodes = nodes
        self.share = 0.5

    def heed(self, nodes: float) -> None:
        """Take note of what the decisions of a round took, on average."""
        self.share = min(max(self.share + self.GAIN * (1.0 - nodes / self._nodes), 0.0), self.MOST)

    def __getitem__(self, depth: int) -> float:
        return self.share

    def __iter__(self) -> Iterator[int]:
        return iter(self._depths)

    def __len__(self) -> int:
        return len(self._depths)


@dataclass(frozen=True)
class NetworkPrior:
    """Ṽ*(s) = max_a Q_0(s, a) of a frozen plain DQN."""

    evaluator: Evaluator

    def __call__(self, observations: np.ndarray[Any, Any]) -> FloatArray:
        """(n, *shape) -> (n,)"""
        return self.evaluator.values(observations, PRIOR_DEPTH)


def shares_by_depth(shares: tuple[float, ...]) -> dict[int, float]:
    """θ as the rule wants it; beyond [0, 1] means the same as at its ends.

    >>> shares_by_depth((0.3, 2.0))
    {2: 0.3, 3: 1.0}
    """
    return {depth: min(max(float(share), 0.0), 1.0) for depth, share in enumerate(shares, start=2)}


def least_depth(shares: tuple[float, ...]) -> int:
    """The depth that every tree reaches: one, and one more for each share at the beginning that is all.

    >>> least_depth((0.3, 1.0)), least_depth((1.0, 0.5))
    (1, 2)
    """
    sure = itertools.takewhile(lambda share: share >= 1.0, shares)
    return 1 + len(list(sure))
