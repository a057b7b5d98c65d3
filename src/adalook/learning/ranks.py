"""Exact ranks of the distances |Ṽ*(s) − V(s)| recorded in a replay buffer: QL-DQN's sorted buffer (paper, section 6.2).

Whether a state's distance is in the top θ share is a question of rank. An order-statistics tree over the buffer's slots
answers it exactly; recording, forgetting and asking take O(log n) each. 20 bytes per slot.
"""

from __future__ import annotations

import math

import numpy as np

from adalook.arrays import FloatArray, IntArray
from adalook.errors import ArgumentError
from adalook.learning import rank_kernels

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
