"""The depth that QL-DQN looks to: steps 2, 3 and 4 of the paper (section "QL-DQN and Atari Experiments").

    step 2   d_h(s₀) = |Ṽ*(s₀) − max_leaf (R + γ^h max_a Q_h(leaf, a))|     distances, sorted: `DistanceRanks`
    step 3   θ_2, θ_3, …                                                  shares of the buffer: `CostControlledShares`
    step 4   from depth h to h+1  iff  d_h(s₀) is in the top θ_{h+1}
             share of the distances recorded at depth h                   the rule: `QuantileLookahead`

A search records the distance of every level that it went through, so the distances of depth h are those of all states
that came so far, not only of those that stopped there. They leave the record with their transition. Ranks decide and
not thresholds: once many distances tie, "at least the quantile" would select all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from sortedcontainers import SortedList

from adalook._arrays import BoolArray, FloatArray
from adalook.search.rules.base import DepthRule, LevelView, ValueFunction
from adalook.search.rules.quantile import PriorFunction
from adalook.simulators.base import Observations

BYTES_PER_DISTANCE = 8 + 24
"""Memory of one recorded distance: a float of Python and the reference to it."""


class DistanceRanks:
    """The distances of the transitions in a replay buffer, sorted, by depth (QL-DQN step 2).

    The buffer adds and removes, the rule asks; adding, removing and asking take O(log n) each.

    Args:
        max_depth: distances are recorded for depths 1 to this.
        least: with fewer than this on record, a depth has no ranks.

    >>> ranks = DistanceRanks(max_depth=1, least=3)
    >>> for distance in (0.1, 0.2, 0.3):
    ...     ranks.add(1, distance)
    >>> ranks.rank_share(1, np.array([0.25, 0.05]))  # of four, counting itself, one and three come before
    array([0.25, 0.75])
    """

    def __init__(self, max_depth: int, least: int) -> None:
        self._sorted = {depth: SortedList() for depth in range(1, max_depth + 1)}
        self._least = least

    def count(self, depth: int) -> int:
        """Return how many distances are on record at a depth."""
        return len(self._sorted[depth])

    def add(self, depth: int, distance: float) -> None:
        """Record a distance."""
        self._sorted[depth].add(distance)

    def remove(self, depth: int, distance: float) -> None:
        """Forget a distance that is on record."""
        self._sorted[depth].remove(distance)

    def rank_share(self, depth: int, distances: FloatArray) -> FloatArray:
        """Return (n,) the share of distances on record that are at least as large, each new one counted with them.

        A distance is in the top θ share iff this is below θ. NaN while fewer than `least` are on record.
        """
        recorded = self._sorted[depth]
        count = len(recorded)
        if count < self._least:
            return np.full(len(distances), np.nan)
        return np.array([count - recorded.bisect_left(distance) for distance in distances.tolist()]) / (count + 1)

    def recorded(self) -> dict[int, FloatArray]:
        """Return all distances on record, ascending, by depth."""
        return {depth: np.array(distances, np.float64) for depth, distances in self._sorted.items()}

    def replace(self, recorded: Mapping[int, FloatArray]) -> None:
        """Forget everything and record these distances instead, by depth."""
        for depth, distances in self._sorted.items():
            distances.clear()
            distances.update(recorded[depth].tolist() if depth in recorded else ())


def shares_by_depth(shares: tuple[float, ...]) -> dict[int, float]:
    """Return given shares θ_2, θ_3, … by depth, those beyond [0, 1] cut to its ends (QL-DQN step 3).

    >>> shares_by_depth((0.3, 2.0))
    {2: 0.3, 3: 1.0}
    """
    return {depth: min(max(float(share), 0.0), 1.0) for depth, share in enumerate(shares, start=2)}


def least_depth(shares: tuple[float, ...]) -> int:
    """Return the depth that every tree reaches: 1, and one more for each of the first shares that is 1.

    >>> least_depth((0.3, 1.0)), least_depth((1.0, 0.5))
    (1, 2)
    """
    return 1 + len(list(itertools.takewhile(lambda share: share >= 1.0, shares)))


class CostControlledShares(Mapping[int, float]):
    """One share θ for all depths, controlled so that a decision costs `nodes` simulated steps on average (step 3).

    Where paths of the tree merge, depth is cheap and almost every state looks deep; where they do not, only the hard
    ones do. Steps are counted and not timed, so that one seed gives one run.

    >>> shares = CostControlledShares(max_depth=3, nodes=30.0)
    >>> shares.update(60.0)
    >>> dict(shares)
    {2: 0.49, 3: 0.49}
    """

    GAIN = 0.01
    """By how much θ falls when a round costs twice what it may."""
    MAX_SHARE = 1.0 - 1e-9
    """Above every rank share, yet below 1, which would not wait for ranks."""

    def __init__(self, max_depth: int, nodes: float) -> None:
        self._depths = range(2, max_depth + 1)
        self._nodes = nodes
        self.share = 0.5

    def update(self, nodes: float) -> None:
        """Move θ after a round whose decisions cost `nodes` simulated steps on average."""
        self.share = min(max(self.share + self.GAIN * (1.0 - nodes / self._nodes), 0.0), self.MAX_SHARE)

    def __getitem__(self, depth: int) -> float:
        return self.share

    def __iter__(self) -> Iterator[int]:
        return iter(self._depths)

    def __len__(self) -> int:
        return len(self._depths)


@dataclass(frozen=True, eq=False)
class QuantileLookahead(DepthRule):
    """Look one level deeper in the states farthest from Ṽ*, compared with those in the buffer (QL-DQN step 4).

    Args:
        shares: θ by depth. A share of 1 needs no ranks: then every state goes deeper from the first step on.
        ranks: what distances are compared with. While a depth has too few of them, trees stop there.
        prior: Ṽ*, a function of observations. None: the search is its own prior, and d_h is how much level h has
            changed the best value, |v_h − v_{h−1}|, where v_0 is the network's value of the root.
    """

    shares: Mapping[int, float]
    ranks: DistanceRanks
    prior: PriorFunction | None = None
    max_depth: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_depth", 1 + len(self.shares))

    def reference(self, observations: Observations, value_fn: ValueFunction) -> FloatArray:
        """Return (n,) Ṽ* of the roots, or the network's value of them where the search is its own prior."""
        values = value_fn(observations, 0) if self.prior is None else self.prior(observations)
        return np.asarray(values, np.float64)

    def distances(self, view: LevelView) -> FloatArray:
        """Return (n,) d_h of the trees, at the depth h of this level."""
        reference = view.previous_values if self.prior is None else view.references
        return np.abs(reference - view.values)

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        """Return (n,) which trees grow by another level."""
        share = self.shares[view.depth + 1]
        if share >= 1.0 or share <= 0.0:
            return np.full(len(distances), share >= 1.0)
        rank_share = self.ranks.rank_share(view.depth, distances)
        return np.asarray(rank_share < share)  # NaN, too few on record, is below nothing
