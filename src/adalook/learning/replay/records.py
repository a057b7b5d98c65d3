"""The rows of a replay buffer, without their pictures: a ring of records, and which of them have a given depth.

Transitions are numbered from 0 as they come; transition `number` lives in slot `number % slots`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adalook._arrays import IntArray
from adalook.storage.serializer import Segment

SEGMENT_RECORDS = 4096
"""Records per segment: checkpoints write a segment once."""

NO_DISTANCE = math.nan
"""In a record: no distance was measured at that depth."""


def record_type(stack: int, max_depth: int) -> np.dtype[Any]:
    """One transition: frame numbers of state and leaf, the oldest frame it may hold, and the rest."""
    return np.dtype(
        [
            ("root", np.int64, (stack,)),
            ("leaf", np.int64, (stack,)),
            ("horizon", np.int64),
            ("distances", np.float64, (max_depth,)),
            ("return", np.float32),
            ("action", np.int32),
            ("depth", np.int8),
            ("terminated", np.bool_),
        ]
    )


class Records:
    """The last records, oldest first; at least `capacity` fit."""

    def __init__(self, capacity: int, kind: np.dtype[Any]) -> None:
        self._kind = kind
        self.slots = _whole_segments(capacity)
        """Places in the ring: whole segments, so that none wraps around."""
        self._ring = np.zeros(self.slots, kind)
        self._sealed: dict[int, Segment] = {}
        self.oldest = 0
        self.next = 0

    @staticmethod
    def bytes_needed(capacity: int, stack: int, max_depth: int) -> int:
        """Memory of the ring, and of one `DepthIndex` for each depth."""
        return _whole_segments(capacity) * (record_type(stack, max_depth).itemsize + 8 * (max_depth + 1))

    @property
    def bytes_each(self) -> int:
        """Memory of one record."""
        return self._kind.itemsize

    def __len__(self) -> int:
        return self.next - self.oldest

    def numbers(self) -> IntArray:
        """(n,) of all that are held, ascending."""
        return np.arange(self.oldest, self.next)

    def slot(self, number: int) -> int:
        """Where a transition lives."""
        return number % self.slots

    def append(self, record: tuple[Any, ...]) -> int:
        """Add a record; returns its number."""
        self._ring[self.next % self.slots] = record
        self.next += 1
        return self.next - 1

    def rows(self, numbers: IntArray) -> NDArray[Any]:
        """(n,) records by their numbers, copied."""
        return self._ring[numbers % self.slots]

    def forget_oldest(self) -> Any:
        """Forget the oldest record; returns it, good until the next one is added."""
        row = self._ring[self.oldest % self.slots]
        self._sealed.pop(self.oldest // SEGMENT_RECORDS, None)
        self.oldest += 1
        return row

    def oldest_horizon(self, default: int) -> int:
        """No record holds frames with smaller numbers."""
        return int(self._ring["horizon"][self.oldest % self.slots]) if len(self) else default

    def state(self) -> dict[str, Any]:
        """Whole segments as such; the records before and after them as arrays."""
        first = -(-self.oldest // SEGMENT_RECORDS)
        last = max(first, self.next // SEGMENT_RECORDS)
        for number in range(first, last):
            if number not in self._sealed:
                self._sealed[number] = Segment(self._segment_rows(number))
        before = np.arange(self.oldest, min(first * SEGMENT_RECORDS, self.next))
        after = np.arange(min(last * SEGMENT_RECORDS, self.next), self.next)
        return {
            "oldest": self.oldest,
            "next": self.next,
            "before": self.rows(before).view(np.uint8),
            "segments": [self._sealed[number] for number in range(first, last)],
            "after": self.rows(after).view(np.uint8),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` saw."""
        self.oldest, self.next = state["oldest"], state["next"]
        self._sealed = {}
        parts = [state["before"], *(segment.payload for segment in state["segments"]), state["after"]]
        number = self.oldest
        for part in parts:
            rows = part.view(self._kind)
            self._ring[np.arange(number, number + len(rows)) % self.slots] = rows
            number += len(rows)
        first = -(-self.oldest // SEGMENT_RECORDS)
        for place, segment in enumerate(state["segments"], first):
            self._sealed[place] = Segment(self._segment_rows(place), segment.digest)

    def _segment_rows(self, number: int) -> NDArray[Any]:
        start = number * SEGMENT_RECORDS % self.slots
        return self._ring[start : start + SEGMENT_RECORDS]


class DepthIndex:
    """The numbers of the transitions of one depth, oldest first: to draw among them, and to forget in order."""

    def __init__(self, slots: int) -> None:
        self._ring = np.empty(slots, np.int64)  # pages are lent as they are needed
        self._first = 0
        self._next = 0

    def __len__(self) -> int:
        return self._next - self._first

    def append(self, number: int) -> None:
        """Add the newest."""
        self._ring[self._next % len(self._ring)] = number
        self._next += 1

    def forget_oldest(self) -> None:
        """Forget the oldest."""
        self._first += 1

    def numbers(self, places: IntArray) -> IntArray:
        """(n,) numbers of the places-th oldest ones (n,)."""
        chosen: IntArray = self._ring[(self._first + places) % len(self._ring)]
        return chosen

    def refill(self, numbers: IntArray) -> None:
        """Hold these instead, ascending."""
        self._first, self._next = 0, len(numbers)
        self._ring[: len(numbers)] = numbers


def _whole_segments(capacity: int) -> int:
    return -(-capacity // SEGMENT_RECORDS) * SEGMENT_RECORDS
