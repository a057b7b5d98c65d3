"""Frames of a replay buffer, each stored once: found by content, numbered as they come, forgotten oldest first.

A stack of frames is a row of frame numbers, and a leaf's stack shares its root's frames. A frame is looked for among
the last `WINDOW` stored ones by content, so sharing needs no bookkeeping by whoever adds it: the leaf's first new frame
is also the next root's newest, searches that go on along the path they planned store nothing, and a still picture is
stored once. Comparison is by content, never by a digest alone.

Packed frames live in segments that are sealed when full, so that a checkpoint writes each segment once. `RowStorage`
keeps frames of equal length in one array, so that many are read by one gather; `BlobStorage` keeps frames of any
length. Neither ever takes more memory than it was made with.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from operator import index
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adalook._arrays import IntArray
from adalook.errors import ArgumentError
from adalook.storage.serializer import ByteArray, Segment

Frames = NDArray[Any]
"""(n, *frame_shape)"""

SEGMENT_FRAMES = 4096
"""Frames per segment: checkpoints write a segment once, and frames are freed a segment at a time."""

WINDOW = 2048
"""Frames within which a store finds equal ones: dozens of environments with four frames and depth 3 each."""

SLACK_FRAMES = WINDOW + 2 * SEGMENT_FRAMES
"""Frames kept beyond those in use: the window, what is left of the first segment, and the open one."""

_OFFSETS_BYTES = 8 * (SEGMENT_FRAMES + 1)


class Storage(Protocol):
    """Packed frames by number."""

    @property
    def first_id(self) -> int:
        """The oldest frame that is kept."""

    @property
    def next_id(self) -> int:
        """The number that the next frame gets."""

    @property
    def bytes_used(self) -> int:
        """Memory the kept frames take."""

    def has_room(self, frames: int) -> bool:
        """Return whether so many more frames can be appended, whatever they show."""

    def append(self, key: bytes) -> int:
        """Store a frame by its key and return its number."""

    def read(self, ids: IntArray) -> Frames:
        """Return frames (n, *shape) by their numbers (n,)."""

    def drop_before(self, number: int) -> None:
        """Forget the segments that hold older frames only."""

    def state(self) -> dict[str, Any]:
        """Return sealed segments, and a copy of the open one."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` saw."""


class RowCodec(Protocol):
    """Packs every frame to equally many bytes: its key."""

    def row_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """Return the bytes of one packed frame."""

    def decode(self, rows: ByteArray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """Return frames (n, *shape) from packed rows (n, row_bytes)."""


class BlobCodec(Protocol):
    """Packs frames to as few bytes as each needs."""

    def worst_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """Return the bytes of a frame that does not compress."""

    def pack(self, key: bytes) -> bytes:
        """Return a key, compressed."""

    def decode(self, blobs: Iterable[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """Return frames (n, *shape) from n packed ones (anything that lends its bytes)."""


class RowStorage:
    """Frames that all pack to equally many bytes, in a ring of segments."""

    def __init__(self, codec: RowCodec, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> None:
        self._codec, self._shape, self._dtype = codec, shape, dtype
        self._segments_at_most = -(-max_frames // SEGMENT_FRAMES)
        # not touched before it is needed: the system lends the pages as frames come
        self._rows = np.empty((self._segments_at_most * SEGMENT_FRAMES, codec.row_bytes(shape, dtype)), np.uint8)
        self._sealed: dict[int, Segment] = {}
        self._first_segment = 0
        self.next_id = 0

    @property
    def first_id(self) -> int:
        """The oldest frame that is kept."""
        return self._first_segment * SEGMENT_FRAMES

    @property
    def bytes_used(self) -> int:
        """Memory the kept frames take."""
        return (self.next_id - self.first_id) * self._rows.shape[1]

    def has_room(self, frames: int) -> bool:
        """Return whether so many more frames can be appended."""
        return self.next_id + frames - self.first_id <= len(self._rows)

    def append(self, key: bytes) -> int:
        """Store a frame by its key and return its number."""
        self._rows[self.next_id % len(self._rows)] = np.frombuffer(key, np.uint8)
        self.next_id += 1
        return self.next_id - 1

    def read(self, ids: IntArray) -> Frames:
        """Return frames (n, *shape) by their numbers (n,)."""
        return self._codec.decode(self._rows[ids % len(self._rows)], self._shape, self._dtype)

    def drop_before(self, number: int) -> None:
        """Forget the segments that hold older frames only."""
        while (self._first_segment + 1) * SEGMENT_FRAMES <= min(number, self.next_id):
            self._sealed.pop(self._first_segment, None)
            self._first_segment += 1

    def state(self) -> dict[str, Any]:
        """Return sealed segments, and a copy of the rows of the open one."""
        full = self.next_id // SEGMENT_FRAMES
        for number in range(self._first_segment, full):
            if number not in self._sealed:
                self._sealed[number] = Segment(self._segment_rows(number))
        return {
            "first_segment": self._first_segment,
            "segments": [self._sealed[number] for number in range(self._first_segment, full)],
            "open": self._segment_rows(full)[: self.next_id % SEGMENT_FRAMES].copy(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` saw."""
        self._first_segment = index(state["first_segment"])
        if len(state["segments"]) + (len(state["open"]) > 0) > self._segments_at_most:
            raise ArgumentError(
                "too many frames to restore",
                expected=f"at most {len(self._rows)}",
                remedy="use the settings of the run",
            )
        self._sealed = {}
        for number, segment in enumerate(state["segments"], self._first_segment):
            rows = self._segment_rows(number)
            rows[:] = segment.payload.reshape(rows.shape)
            self._sealed[number] = Segment(self._segment_rows(number), segment.digest)
        full = self._first_segment + len(state["segments"])
        self._segment_rows(full)[: len(state["open"])] = state["open"]
        self.next_id = full * SEGMENT_FRAMES + len(state["open"])

    def _segment_rows(self, number: int) -> ByteArray:
        start = number % self._segments_at_most * SEGMENT_FRAMES
        return self._rows[start : start + SEGMENT_FRAMES]


class BlobStorage:
    """Compressed frames. A sealed segment is one array: offsets (int64, one more than frames), then the blobs."""

    def __init__(self, codec: BlobCodec, shape: tuple[int, ...], dtype: np.dtype[Any], max_bytes: int) -> None:
        self._codec, self._shape, self._dtype = codec, shape, dtype
        self._worst_bytes = codec.worst_bytes(shape, dtype)
        self._max_bytes = max_bytes
        self._sealed: list[Segment] = []
        self._offsets: list[IntArray] = []
        self._open: list[bytes] = []
        self._first_segment = 0
        self.bytes_used = 0

    @property
    def first_id(self) -> int:
        """The oldest frame that is kept."""
        return self._first_segment * SEGMENT_FRAMES

    @property
    def next_id(self) -> int:
        """The number of the next frame."""
        return (self._first_segment + len(self._sealed)) * SEGMENT_FRAMES + len(self._open)

    def has_room(self, frames: int) -> bool:
        """Return whether so many more frames can be appended, however badly they compress."""
        return self.bytes_used + frames * self._worst_bytes + _OFFSETS_BYTES <= self._max_bytes

    def append(self, key: bytes) -> int:
        """Store a frame by its key and return its number."""
        number = self.next_id
        blob = self._codec.pack(key)
        self._open.append(blob)
        self.bytes_used += len(blob)
        if len(self._open) == SEGMENT_FRAMES:
            offsets = np.zeros(SEGMENT_FRAMES + 1, np.int64)
            np.cumsum([len(blob) for blob in self._open], out=offsets[1:])
            self._take(Segment(np.frombuffer(offsets.tobytes() + b"".join(self._open), np.uint8).copy()))
            self.bytes_used += _OFFSETS_BYTES
            self._open = []
        return number

    def read(self, ids: IntArray) -> Frames:
        """Return frames (n, *shape) by their numbers (n,); equal numbers are best asked for once."""
        return self._codec.decode([self._blob(number) for number in ids.tolist()], self._shape, self._dtype)

    def drop_before(self, number: int) -> None:
        """Forget the segments that hold older frames only."""
        while self._sealed and (self._first_segment + 1) * SEGMENT_FRAMES <= number:
            self.bytes_used -= self._sealed.pop(0).payload.nbytes
            self._offsets.pop(0)
            self._first_segment += 1

    def state(self) -> dict[str, Any]:
        """Return sealed segments, and the blobs of the open one."""
        return {
            "first_segment": self._first_segment,
            "segments": list(self._sealed),
            "open": b"".join(self._open),
            "open_lengths": np.array([len(blob) for blob in self._open], np.int64),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` saw."""
        self._first_segment = index(state["first_segment"])
        self._sealed, self._offsets = [], []
        for segment in state["segments"]:
            self._take(segment)
        ends = np.cumsum(state["open_lengths"], dtype=np.int64).tolist()
        self._open = [state["open"][start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self.bytes_used = sum(segment.payload.nbytes for segment in self._sealed) + len(state["open"])

    def _take(self, segment: Segment) -> None:
        self._sealed.append(segment)
        self._offsets.append(segment.payload[:_OFFSETS_BYTES].view(np.int64))

    def _blob(self, number: int) -> Any:
        place, within = divmod(number - self.first_id, SEGMENT_FRAMES)
        if place == len(self._sealed):
            return self._open[within]
        offsets = self._offsets[place]
        return self._sealed[place].payload.data[
            _OFFSETS_BYTES + int(offsets[within]) : _OFFSETS_BYTES + int(offsets[within + 1])
        ]


class Codec(Protocol):
    """A way to pack frames; see `codecs`."""

    @property
    def name(self) -> str:
        """The name of the codec in checkpoints."""

    def key(self, frame: Frames) -> bytes:
        """Return bytes that equal frames share, and no others of that shape and type."""

    def bytes_needed(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> int:
        """Return the memory that so many frames take, or are assumed to take, `SLACK_FRAMES` more included."""

    def storage(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int, max_bytes: int) -> Storage:
        """Return room for so many frames and `SLACK_FRAMES` more, but never more memory than `max_bytes`."""


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
        """Make room for `max_frames` frames.

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
        """Return the number of a frame (*shape), which is stored unless one of the last WINDOW is equal.

        Needs `has_room`.
        """
        key = self._codec.key(frame)
        number = self._recent.get(key)
        if number is None:
            number = self._storage.append(key)
            self._remember(key, number)
        return number

    def read(self, ids: IntArray) -> Frames:
        """Return frames (n, *shape) by their numbers (n,)."""
        return self._storage.read(ids)

    @property
    def horizon(self) -> int:
        """The smallest number that a frame that is put from now on can get."""
        return max(0, self._storage.next_id - WINDOW)

    @property
    def stored(self) -> int:
        """The number of frames that have ever been stored."""
        return self._storage.next_id

    @property
    def kept(self) -> int:
        """The number of frames that are stored now."""
        return self._storage.next_id - self._storage.first_id

    @property
    def bytes_used(self) -> int:
        """Memory the stored frames take."""
        return self._storage.bytes_used

    def has_room(self, frames: int) -> bool:
        """Return whether so many more frames can be put, whatever they show."""
        return self._storage.has_room(frames)

    def holds(self, first: int, last: int) -> bool:
        """Return whether the frames from one number to another are all there."""
        return 0 <= self._storage.first_id <= first and last < self._storage.next_id

    def release(self, before: int) -> None:
        """Forget frames with numbers below `before`, which nobody holds any more."""
        self._storage.drop_before(min(before, self.horizon))

    def state(self) -> dict[str, Any]:
        """Return plain data, arrays and segments; which frames are recent follows from them."""
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
