"""Distances of the latest searches, sorted: what `QuantileDepth` compares new ones with when no replay buffer does."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

import numpy as np

from adalook.arrays import FloatArray
from adalook.search.result import SearchResult


class DistanceRecord:
    """The last `window` distances of each depth.

    >>> record = DistanceRecord(window=100, least=3)
    >>> for distance in (0.1, 0.2, 0.3):
    ...     record.add(1, distance)
    >>> record.rank_share(1, np.array([0.25, 0.05]))  # of four, counting itself, one and three come before
    array([0.25, 0.75])
    """

    def __init__(self, window: int = 10_000, least: int = 100) -> None:
        self._window, self._least = window, least
        self._by_age: dict[int, deque[float]] = {}
        self._by_size: dict[int, list[float]] = {}

    def add(self, depth: int, distance: float) -> None:
        """Record one; beyond `window` the oldest of that depth is forgotten."""
        by_age = self._by_age.setdefault(depth, deque())
        by_size = self._by_size.setdefault(depth, [])
        by_age.append(distance)
        insort(by_size, distance)
        if len(by_age) > self._window:
            del by_size[bisect_left(by_size, by_age.popleft())]

    def add_result(self, result: SearchResult) -> None:
        """Record what a search went by at each of its levels."""
        for level in result.levels:
            self.add(level.depth, level.distance)

    def rank_share(self, depth: int, distances: FloatArray) -> FloatArray:
        """See `Ranks`. NaN until `least` distances are recorded at that depth."""
        recorded = self._by_size.get(depth, [])
        count = len(recorded)
        if count < self._least:
            return np.full(len(distances), np.nan)
        return np.array([(count - bisect_left(recorded, distance)) / (count + 1) for distance in distances])
