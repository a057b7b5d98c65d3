"""Exact ranks of the distances |Ṽ*(s) − V(s)| recorded in a replay buffer: QL-DQN's sorted buffer (paper, section 6.2).

Whether a state's distance is in the top θ share is a question of rank. An order-statistics tree over the buffer's slots
answers it exactly; recording, forgetting and asking take O(log n) each. 20 bytes per slot.

How deep QL-DQN looks (points 2, 3 and 4): ranks in the replay memory decide, level by level.

    d_h(s₀) = |Ṽ*(s₀) − max_leaf (R + γ^h max_a Q_h(leaf, a))|
    from depth h to h+1  iff  d_h(s₀) is in the top θ_{h+1} share of the distances recorded at depth h

A search records the distance of every level that it went through, so the distances of depth h are those of all states
that came so far and not only of those that stopped there. They leave the record with their transition.

How many states look deeper need not be told: `SharesThatFollowTheCost` spends a given number of simulated steps per
decision, in whatever game, on the states that are farthest from Ṽ*.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.errors import ArgumentError
from adalook.learning import rank_kernels
from adalook.learning.networks import Evaluator
from adalook.search.rules.base import LevelView
from adalook.search.rules.quantile import QuantileDepth

BYTES_PER_SLOT = 8 + 3 * 4
"""A distance (float64), two children and a size (int32 each)."""


class RankedDistances:
    """The distances recorded for some of `capacity` slots, at most one each.

    >>> ranks = RankedDistances(capacity=10)
    >>> for slot, distance in enumerate([0.5, 2.0, 1.0, 1.0]):
    ...     ranks.insert(slot, distance)
    >>> ranks.count_above(1.0), ranks.count_at_least(1.0), ranks.share_above(0.0)
    (1, 3, 1.0)
    >>> ranks.remove(1)
    2.0
    >>> ranks.quantile(share=1 / 3)
    1.0
    """

    def __init__(self, capacity: int) -> None:
        if not 1 <= capacity <= np.iinfo(np.int32).max - 2:
            raise ArgumentError("capacity of the ranks is out of range", expected="1 to 2**31 - 3", got=capacity)
        self.capacity = capacity
        self._distances = np.zeros(capacity)
        self._left = np.full(capacity + 2, capacity, np.int32)
        self._right = np.full(capacity + 2, capacity, np.int32)
        self._size = np.zeros(capacity + 2, np.int32)

    @classmethod
    def of(cls, capacity: int, slots: IntArray, distances: FloatArray) -> RankedDistances:
        """The same as inserting `distances` (n,) at distinct `slots` (n,) one by one, but at the price of sorting."""
        ranks = cls(capacity)
        slots = np.asarray(slots, np.int64)
        distances = np.asarray(distances, np.float64) + 0.0
        if len(slots) != len(distances) or len(np.unique(slots)) != len(slots):
            raise ArgumentError("slots to rank are not distinct, or not as many as distances", got=len(slots))
        if len(slots) and not (slots.min() >= 0 and slots.max() < capacity):
            raise ArgumentError("a slot to rank is out of range", expected=f"0 to {capacity - 1}")
        if not np.isfinite(distances).all():
            raise ArgumentError("a distance to rank is not finite", got=distances[~np.isfinite(distances)][0])
        ranks._distances[slots] = distances
        rank_kernels.build(ranks._left, ranks._right, ranks._size, slots[np.lexsort((slots, distances))])
        return ranks

    def __len__(self) -> int:
        return int(self._size[self._left[self.capacity + 1]])

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < self.capacity and bool(self._size[slot])

    def insert(self, slot: int, distance: float) -> None:
        """Record the distance of a slot that has none."""
        if not 0 <= slot < self.capacity or self._size[slot]:
            raise ArgumentError("cannot record a distance", expected="a free slot within the capacity", got=slot)
        self._distances[slot] = _finite(distance)
        rank_kernels.insert(self._left, self._right, self._size, self._distances, slot)

    def remove(self, slot: int) -> float:
        """Forget the distance of a slot; returns it."""
        distance = self.distance_of(slot)
        rank_kernels.remove(self._left, self._right, self._size, self._distances, slot)
        return distance

    def distance_of(self, slot: int) -> float:
        """The distance recorded for a slot."""
        if slot not in self:
            raise ArgumentError("no distance is recorded", expected="a slot that was inserted", got=slot)
        return float(self._distances[slot])

    def count_above(self, distance: float) -> int:
        """How many recorded distances are greater: 0 if this one would be the largest or share first place."""
        return int(
            rank_kernels.count_above(self._left, self._right, self._size, self._distances, _finite(distance)),
        )

    def count_at_least(self, distance: float) -> int:
        """How many recorded distances are greater or equal."""
        return int(
            rank_kernels.count_at_least(self._left, self._right, self._size, self._distances, _finite(distance)),
        )

    def share_above(self, distance: float) -> float:
        """`count_above` as a share of what is recorded, the correctly rounded quotient of two integers."""
        return self.count_above(distance) / self._recorded()

    def quantile(self, share: float) -> float:
        """The ⌈share · n⌉-th largest distance: that many recorded distances are at least as large.

        Products within 1e-9 above an integer count as that integer, as θ·S does in planning (decision 4's manner).
        """
        if not 0 < share <= 1:
            raise ArgumentError("a share of the distances is out of range", expected="0 < share <= 1", got=share)
        place = max(1, math.ceil(share * self._recorded() - 1e-9))
        return float(self._distances[rank_kernels.largest(self._left, self._right, self._size, place)])

    def _recorded(self) -> int:
        if not len(self):
            raise ArgumentError("no distances are recorded yet", remedy="ask when len(ranks) > 0")
        return len(self)


def _finite(distance: float) -> float:
    if not math.isfinite(distance):
        raise ArgumentError("a distance has no rank", expected="a finite number", got=distance)
    return distance + 0.0  # −0.0 becomes 0.0, so that what is recorded does not depend on a sign nobody sees


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
