"""Look deeper where the value is far from the prior, by rank: QL-DQN steps 3 and 4.

    d_h(s₀) = |Ṽ*(s₀) − max_leaf (R + γ^h V_h(leaf))|
    deepen from h to h+1  iff  d_h(s₀) is in the top θ_{h+1} share of the distances recorded at depth h

Ranks, not thresholds: once many distances tie, "at least the quantile" would select all of them.
Without a prior the search is its own: d_h is then how much level h has changed the best value, |v_h − v_{h−1}|, where
v_0 is the value function at the root.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook._validation import fraction
from adalook.errors import ArgumentError
from adalook.search.result import SearchResult
from adalook.search.rules.base import DepthRule, LevelView, ValueFunction
from adalook.simulators.base import Observations

PriorFunction = Callable[[Observations], FloatArray]
"""Ṽ*: observations (n, *observation_shape) -> values (n,)"""


class Ranks(Protocol):
    """The distances recorded so far, by depth, as a replay buffer or `RecentDistances` keeps them."""

    def rank_share(self, depth: int, distances: FloatArray) -> FloatArray:
        """Return the share (n,), in [0, 1), of those recorded at `depth` that rank before each; NaN if too few are.

        A distance is in the top θ share iff this is below θ. Those that tie with it rank before it.
        """


@dataclass(frozen=True, eq=False)
class QuantileDepth(DepthRule):
    """Look deeper in the states whose value is farthest from the prior, compared with other states.

    Args:
        shares: {depth: θ of that depth}, such as {2: 0.3, 3: 0.1}; the depths are 2, 3, … without a gap.
        ranks: what distances are compared with. While it has too few of them, trees stop at depth 1.
        prior: Ṽ*, a function of the roots' observations; None: the search is its own prior.
    """

    shares: Mapping[int, float]
    ranks: Ranks
    prior: PriorFunction | None = None
    max_depth: int = field(init=False)

    def __post_init__(self) -> None:
        if sorted(self.shares) != list(range(2, 2 + len(self.shares))):
            raise ArgumentError(
                "the shares of QuantileDepth are wrong",
                expected="one for each of the depths 2, 3, …, such as {2: 0.3, 3: 0.1}",
                got=repr(dict(self.shares)),
            )
        for depth, share in self.shares.items():
            fraction.validate(f"QuantileDepth: the share of depth {depth}", share)
        object.__setattr__(self, "max_depth", 1 + len(self.shares))

    def reference(self, observations: Observations, value_fn: ValueFunction) -> FloatArray:
        values = value_fn(observations, 0) if self.prior is None else self.prior(observations)
        return np.asarray(values, np.float64)

    def distances(self, view: LevelView) -> FloatArray:
        reference = view.previous_values if self.prior is None else view.references
        return np.abs(reference - view.values)

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        share = self.ranks.rank_share(view.depth, distances)
        return np.asarray(share < self.shares[view.depth + 1])  # NaN, too few recorded, is below nothing


class RecentDistances:
    """Ranks among the last `window` distances of each depth, for searches without a replay buffer.

    >>> recent = RecentDistances(window=100, min_count=3)
    >>> for distance in (0.1, 0.2, 0.3):
    ...     recent.add(1, distance)
    >>> recent.rank_share(1, np.array([0.25, 0.05]))  # of four, counting itself, one and three rank before
    array([0.25, 0.75])
    """

    def __init__(self, window: int = 10_000, min_count: int = 100) -> None:
        self._window, self._min_count = window, min_count
        self._by_age: dict[int, deque[float]] = {}
        self._sorted: dict[int, list[float]] = {}

    def add(self, depth: int, distance: float) -> None:
        """Record a distance; beyond `window` the oldest of that depth is dropped."""
        by_age = self._by_age.setdefault(depth, deque())
        ordered = self._sorted.setdefault(depth, [])
        by_age.append(distance)
        insort(ordered, distance)
        if len(by_age) > self._window:
            del ordered[bisect_left(ordered, by_age.popleft())]

    def add_result(self, result: SearchResult) -> None:
        """Record the distance of every level of a search."""
        for level in result.levels:
            self.add(level.depth, level.distance)

    def rank_share(self, depth: int, distances: FloatArray) -> FloatArray:
        """Return the share (n,) that ranks before each, see `Ranks`; NaN until `min_count` distances are recorded."""
        recorded = self._sorted.get(depth, [])
        count = len(recorded)
        if count < self._min_count:
            return np.full(len(distances), np.nan)
        return np.array([(count - bisect_left(recorded, distance)) / (count + 1) for distance in distances])
