"""Every frame once: a stack of frames is a row of frame numbers, and a leaf's stack shares its root's frames.

A frame is looked for among the last `window` stored ones by content, so sharing needs no book-keeping by whoever adds
it: the leaf's first new frame is also the next root's newest, searches that go on along the path they planned store
nothing, and a standing picture is stored once. Comparison is by content, never by a digest alone.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from adalook._arrays import IntArray
from adalook.learning.replay.codecs import WINDOW, Codec
from adalook.learning.replay.frame_storage import Frames


class FrameStore:
    """Frames of one shape, numbered as they come.

    >>> from adalook.learning.replay.codecs import Bits
    >>> store = FrameStore((2, 2), np.dtype(bool), Bits(), max_frames=100)
    >>> picture = np.eye(2, dtype=bool)
    >>> store.put(picture), store.put(~picture), store.put(picture)
    (0, 1, 0)
    >>> store.read(np.array([1]))[0].astype(int).tolist()
    [[0, 1], [1, 0]]
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        codec: Codec,
        *,
        max_frames: int,
        max_bytes: int | None = None,
    ) -> None:
        """Room for `max_frames` frames.

        Args:
            max_bytes: where frames are compressed, the memory they may take; None: what max_frames are assumed to need.
        """
        if max_bytes is None:
            max_bytes = codec.bytes_needed(shape, dtype, max_frames)
        self._codec = codec
        self._storage = codec.storage(shape, dtype, max_frames, max_bytes)
        self._recent: dict[bytes, int] = {}
        self._recent_keys: deque[bytes] = deque()

    def put(self, frame: Frames) -> int:
        """The number of a frame (*shape), which is stored unless one of the last WINDOW is equal.

        Needs `has_room`.
        """
        key = self._codec.key(frame)
        number = self._recent.get(key)
        if number is None:
            number = self._storage.append(key)
            self._remember(key, number)
        return number

    def read(self, ids: IntArray) -> Frames:
        """Frames (n, *shape) by their numbers (n,)."""
        return self._storage.read(ids)

    @property
    def horizon(self) -> int:
        """No frame that is put from now on gets a smaller number."""
        return max(0, self._storage.next_id - WINDOW)

    @property
    def stored(self) -> int:
        """How many frames have ever been stored."""
        return self._storage.next_id

    @property
    def kept(self) -> int:
        """How many frames are stored now."""
        return self._storage.next_id - self._storage.first_id

    @property
    def bytes_used(self) -> int:
        """Memory the stored frames take."""
        return self._storage.bytes_used

    def has_room(self, frames: int) -> bool:
        """Whether so many more can be put, whatever they show."""
        return self._storage.has_room(frames)

    def release(self, before: int) -> None:
        """Nobody holds frames with numbers below `before` any more."""
        self._storage.drop_before(min(before, self.horizon))

    def state(self) -> dict[str, Any]:
        """Plain data, arrays and segments; which frames are recent follows from them."""
        return self._storage.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` saw."""
        self._storage.load_state(state)
        self._recent.clear()
        self._recent_keys.clear()
        numbers = np.arange(self.horizon, self._storage.next_id)
        for number, frame in zip(numbers.tolist(), self._storage.read(numbers), strict=True):
            self._remember(self._codec.key(frame), number)

    def _remember(self, key: bytes, number: int) -> None:
        self._recent[key] = number
        self._recent_keys.append(key)
        if len(self._recent_keys) > WINDOW:
            del self._recent[self._recent_keys.popleft()]
