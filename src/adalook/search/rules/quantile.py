"""Look deeper where the value is far from the prior, by rank: the rule of QL-DQN, and the distances it ranks among.

    d_h(s₀) = |Ṽ*(s₀) − max_leaf (R + γ^h V_h(leaf))|
    deepen from h to h+1  iff  d_h(s₀) is in the top θ_{h+1} share of the distances recorded at depth h

Ranks, not thresholds: once many distances tie, "at least the quantile" would select all of them. Chance decides among
equal ones, so that θ is a share of all states however many tie: after most stages of rollouts nothing has changed, and
the distance is 0.
Without a prior the search is its own: d_h is then how much level h has changed the best value, |v_h − v_{h−1}|, where
v_0 is the value function at the root.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from sortedcontainers import SortedList

from adalook._arrays import BoolArray, FloatArray
from adalook._validation import fraction, integer
from adalook.errors import ArgumentError, shown
from adalook.search.result import SearchResult
from adalook.search.rules.base import DepthRule, LevelView, ValueFunction
from adalook.simulators.base import Observations
from adalook.simulators.randomness import RandomStream

_TIES = 2**34
"""Sets what breaks ties apart from all else that a tree draws."""

PriorFunction = Callable[[Observations], FloatArray]
"""Ṽ*: observations (n, *observation_shape) -> values (n,)"""


class Ranks(Protocol):
    """The distances recorded so far, by depth: `DistanceRanks`, `RecentDistances` or your own."""

    def rank_share(self, depth: int, distances: FloatArray, draws: FloatArray) -> FloatArray:
        """Return the share (n,), in [0, 1), of those recorded at `depth` that rank before each; NaN if too few are.

        A distance is in the top θ share iff this is below θ. Of those that tie with it, the share `draws` (n,) ranks
        before it, a random number from [0, 1).
        """


@dataclass(frozen=True, eq=False)
class QuantileDepth(DepthRule):
    """Look deeper in the states whose value is farthest from the prior, compared with other states.

    Args:
        shares: {depth: θ of that depth}, such as {2: 0.3, 3: 0.1}; the depths are 2, 3, … without a gap. The share 1
            needs no ranks: every tree goes to that depth, from the first one on; with the share 0 none ever does.
        ranks: what distances are compared with. While a depth has too few of them, trees stop there.
        prior: Ṽ*, a function of the roots' observations; None: the search is its own prior.
    """

    shares: Mapping[int, float]
    ranks: Ranks
    prior: PriorFunction | None = None
    max_depth: int = field(init=False)

    def __post_init__(self) -> None:
        mapping = isinstance(self.shares, Mapping)
        if not mapping or set(self.shares) != set(range(2, 2 + len(self.shares))):
            raise ArgumentError(
                "the shares of QuantileDepth are wrong",
                expected="one for each of the depths 2, 3, …, such as {2: 0.3, 3: 0.1}",
                got=shown(self.shares),
            )
        for depth, share in self.shares.items():
            fraction.validate(f"QuantileDepth: the share of depth {depth}", share)
        object.__setattr__(self, "max_depth", 1 + len(self.shares))

    def reference(self, observations: Observations, value_fn: ValueFunction) -> FloatArray:
        """Return (n,) Ṽ* of the roots, or the search's own value of them where it is its own prior."""
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
        rank_share = self.ranks.rank_share(view.depth, distances, tie_draws(view))
        return np.asarray(rank_share < share)  # NaN, too few recorded, is below nothing


def tie_draws(view: LevelView) -> FloatArray:
    """Return (n,) a random number from [0, 1) of each tree and level, to break ties by."""
    return np.array([RandomStream.for_tree(seed).at(_TIES + view.depth).draws().random() for seed in view.seeds])


class Threshold(NamedTuple):
    """A distance that others must exceed to be in a top share; those that equal it are in by chance."""

    distance: float
    before: int = 0
    """Distances on record that are larger …"""
    ties: int = 0
    """… and equal …"""
    recorded: int = 0
    """… and all of them."""

    def rank_share(self, draws: FloatArray) -> FloatArray:
        """Return the share (n,) that ranks before distances equal to this; see `Ranks`."""
        return (self.before + draws * self.ties) / (self.recorded + 1)


class DistanceRanks:
    """Distances on record, sorted, by depth; adding, removing and asking take O(log n) each.

    Args:
        min_count: with fewer than this on record, a depth has no ranks.

    >>> ranks = DistanceRanks(min_count=3)
    >>> for distance in (0.1, 0.2, 0.3):
    ...     ranks.add(1, distance)
    >>> ranks.rank_share(1, np.array([0.25, 0.05]), np.zeros(2))  # of four, counting itself, one and three rank before
    array([0.25, 0.75])
    """

    BYTES_EACH = 8 + 24
    """Memory of one recorded distance: a float of Python and the reference to it."""

    def __init__(self, min_count: int) -> None:
        self._sorted: dict[int, SortedList] = defaultdict(SortedList)
        self._min_count = integer(min=0).validate("DistanceRanks: min_count", min_count)

    def count(self, depth: int) -> int:
        """Return how many distances are on record at a depth."""
        return len(self._sorted[depth])

    def add(self, depth: int, distance: float) -> None:
        """Record a distance."""
        self._sorted[depth].add(distance)

    def remove(self, depth: int, distance: float) -> None:
        """Forget a distance that is on record."""
        self._sorted[depth].remove(distance)

    def rank_share(self, depth: int, distances: FloatArray, draws: FloatArray) -> FloatArray:
        """Return (n,) the share on record that ranks before each new distance, counted with them; see `Ranks`."""
        if len(self._sorted[depth]) < self._min_count:
            return np.full(len(distances), np.nan)
        each = [self._at(depth, distance) for distance in distances.tolist()]
        return np.array([at.rank_share(draw) for at, draw in zip(each, draws, strict=True)])

    def _at(self, depth: int, distance: float) -> Threshold:
        """Return a distance with its rank among those on record."""
        recorded = self._sorted[depth]
        count, end = len(recorded), recorded.bisect_right(distance)
        return Threshold(distance, count - end, end - recorded.bisect_left(distance), count)

    def threshold(self, depth: int, share: float) -> Threshold:
        """Return the distance that others must exceed to be in the top `share` (0 < share < 1) of those on record.

        Exactly those have a `rank_share` below `share`, and of those that equal it as many as chance lets in. Infinite
        while too few are on record, −infinite if all are in.

        >>> ranks = DistanceRanks(min_count=3)
        >>> for distance in (0.1, 0.2, 0.3):
        ...     ranks.add(1, distance)
        >>> ranks.threshold(1, 0.5)
        Threshold(distance=0.2, before=1, ties=1, recorded=3)
        """
        recorded = self._sorted[depth]
        count = len(recorded)
        if count < self._min_count:
            return Threshold(np.inf)
        before = int(share * (count + 1)) + 1  # how many may rank before one that is in: at most this, rounding apart
        while before / (count + 1) >= share:
            before -= 1
        return self._at(depth, float(recorded[count - 1 - before])) if before < count else Threshold(-np.inf)

    def recorded(self) -> dict[int, FloatArray]:
        """Return all distances on record, ascending, by depth."""
        return {depth: np.array(self._sorted[depth], np.float64) for depth in sorted(self._sorted)}

    def replace(self, recorded: Mapping[int, FloatArray]) -> None:
        """Forget everything and record these distances instead, by depth."""
        self._sorted.clear()
        for depth, distances in recorded.items():
            self._sorted[depth].update(distances.tolist())


class RankThresholds:
    """Ranks as they are at one moment, reduced to what a rule asks for: whether a distance is in the top share.

    A threshold for each depth instead of all distances on record: small enough to send to other processes every round.

    >>> ranks = RankThresholds()
    >>> ranks.by_depth = {1: Threshold(0.2, before=1, ties=4, recorded=5)}
    >>> ranks.rank_share(1, np.array([0.25, 0.05, 0.2]), np.full(3, 0.5))  # in the top share, not, by chance
    array([0. , 1. , 0.5])
    """

    def __init__(self) -> None:
        self.by_depth: Mapping[int, Threshold] = {}
        """What `DistanceRanks.threshold` returned for the share of the next depth."""

    def rank_share(self, depth: int, distances: FloatArray, draws: FloatArray) -> FloatArray:
        """Return (n,) 0 for distances in the top share, below every share that asks; 1 for others, but for ties."""
        threshold = self.by_depth[depth]
        equal = distances == threshold.distance
        return np.where(equal, threshold.rank_share(draws), np.where(distances > threshold.distance, 0.0, 1.0))


class RecentDistances:
    """Ranks among the last `window` distances of each depth, for searches without a replay buffer.

    >>> recent = RecentDistances(window=2, min_count=2)
    >>> for distance in (0.9, 0.1, 0.2):
    ...     recent.add(1, distance)
    >>> recent.rank_share(1, np.array([0.15]), np.zeros(1))  # 0.9 is too old to rank before it
    array([0.33333333])
    """

    def __init__(self, window: int = 10_000, min_count: int = 100) -> None:
        self._window = integer(min=1).validate("RecentDistances: window", window)
        self._by_age: dict[int, deque[float]] = defaultdict(deque)
        self._ranks = DistanceRanks(min_count)

    def add(self, depth: int, distance: float) -> None:
        """Record a distance; beyond `window` the oldest of that depth is dropped."""
        by_age = self._by_age[depth]
        by_age.append(distance)
        self._ranks.add(depth, distance)
        if len(by_age) > self._window:
            self._ranks.remove(depth, by_age.popleft())

    def add_result(self, result: SearchResult) -> None:
        """Record the distances of a search, as far as its rule measured any."""
        for level in result.levels:
            if np.isfinite(level.distance):
                self.add(level.depth, level.distance)

    def rank_share(self, depth: int, distances: FloatArray, draws: FloatArray) -> FloatArray:
        """Return the share (n,) that ranks before each, see `Ranks`; NaN until `min_count` distances are recorded."""
        return self._ranks.rank_share(depth, distances, draws)
