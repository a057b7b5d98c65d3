"""Where the time of a search goes, and how far a level has come."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator

import numpy as np

from adalook._arrays import IntArray
from adalook.search.result import Seconds
from adalook.search.workers.expander import Batch


class Spending:
    """The time since the level looked at before: what is neither expansion nor values is bookkeeping."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self.expansion = 0.0
        self.values = 0.0

    def so_far(self) -> Seconds:
        total = time.perf_counter() - self._begin
        return Seconds(self.expansion, self.values, total - self.expansion - self.values)


class Metered:
    """Hands the batches of a level through; takes note of which children came and of the time spent on waiting."""

    def __init__(self, batches: Generator[Batch, None, None], spending: Spending) -> None:
        self._batches, self._spending = batches, spending
        self._positions: list[IntArray] = []

    @property
    def positions(self) -> IntArray:
        """(n,) of the children that have come."""
        return np.concatenate(self._positions) if self._positions else np.empty(0, np.intp)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        begin = time.perf_counter()
        try:
            batch = next(self._batches)
        finally:
            self._spending.expansion += time.perf_counter() - begin
        self._positions.append(batch.positions)
        return batch

    def close(self) -> None:
        """Tell whoever makes the batches that no more are wanted, and wait for what is under way."""
        begin = time.perf_counter()
        self._batches.close()
        self._spending.expansion += time.perf_counter() - begin
