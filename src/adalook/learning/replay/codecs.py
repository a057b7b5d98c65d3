"""How a frame is kept: as it is, as bits, or compressed.

A codec first turns a frame into a *key*, bytes that are equal for equal frames and for no others; the store finds
frames it has by their keys, and asks to pack only those it has not. `Raw` and `Bits` pack to rows of one length, which
are read back many at a time; `LZ4` packs to as few bytes as it can (see docs/replay.md for measurements).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Protocol

import numpy as np

from adalook._extras import import_extra
from adalook.errors import ArgumentError
from adalook.learning.replay.frame_storage import SEGMENT_FRAMES, BlobStorage, Frames, RowStorage, Storage
from adalook.storage.serializer import ByteArray

WINDOW = 2048
"""Frames within which a store finds equal ones: dozens of environments with four frames and depth 3 each."""

SLACK_FRAMES = WINDOW + 2 * SEGMENT_FRAMES
"""Frames kept beyond those in use: the window, what is left of the first segment, and the open one."""


class Codec(Protocol):
    """How frames are kept."""

    @property
    def name(self) -> str:
        """What checkpoints call it."""

    def key(self, frame: Frames) -> bytes:
        """Bytes that equal frames share, and no others of that shape and type."""

    def bytes_needed(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> int:
        """Memory that so many frames take, or are assumed to take, `SLACK_FRAMES` more included."""

    def storage(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int, max_bytes: int) -> Storage:
        """Room for so many frames and `SLACK_FRAMES` more, but never more memory than `max_bytes`."""


class Raw:
    """Frames of any kind as they are."""

    name = "raw"

    def row_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """As many as the array has."""
        return prod(shape) * dtype.itemsize

    def key(self, frame: Frames) -> bytes:
        """The array's bytes."""
        return frame.tobytes()

    def bytes_needed(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> int:
        """Exact."""
        return _row_frames(max_frames) * self.row_bytes(shape, dtype)

    def storage(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int, max_bytes: int) -> Storage:
        """Rows of one array; what it takes is known beforehand, so `max_bytes` has nothing to limit."""
        del max_bytes
        return RowStorage(self, shape, dtype, _row_frames(max_frames))

    def decode(self, rows: ByteArray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """The bytes, read as the array they were."""
        return rows.view(dtype).reshape(-1, *shape)


class Bits:
    """Frames of booleans, or of bytes that are 0 or 1 (MinAtar's), eight cells to a byte."""

    name = "bits"

    def row_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """An eighth of the cells, rounded up."""
        if dtype not in (np.bool_, np.uint8):
            raise ArgumentError("only booleans and bytes can be kept as bits", got=dtype, remedy="use Raw() or LZ4()")
        return -(-prod(shape) // 8)

    def key(self, frame: Frames) -> bytes:
        """The packed bits."""
        if frame.dtype != np.bool_ and frame.size and frame.max() > 1:
            raise ArgumentError(
                "a frame cannot be kept as bits",
                expected="zeros and ones",
                got=frame.max(),
                remedy="use Raw() or LZ4()",
            )
        return np.packbits(frame).tobytes()

    def bytes_needed(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> int:
        """Exact."""
        return _row_frames(max_frames) * self.row_bytes(shape, dtype)

    def storage(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int, max_bytes: int) -> Storage:
        """Rows of one array; what it takes is known beforehand, so `max_bytes` has nothing to limit."""
        del max_bytes
        return RowStorage(self, shape, dtype, _row_frames(max_frames))

    def decode(self, rows: ByteArray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """Bits back to cells."""
        return np.unpackbits(rows, axis=1, count=prod(shape)).view(dtype).reshape(-1, *shape)


class LZ4:
    """LZ4 blocks: on Atari frames about 5 to 17 times smaller, and three microseconds to read one."""

    name = "lz4"

    def __init__(self) -> None:
        block = import_extra("lz4.block", extra="learn", purpose="compressing replay frames")
        self._compress = block.compress
        self._decompress = block.decompress

    def bytes_needed(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> int:
        """A quarter of the raw frames: above the mean of every Atari game measured (docs/replay.md)."""
        return max_frames * prod(shape) * dtype.itemsize // 4 + SLACK_FRAMES * self.worst_bytes(shape, dtype)

    def worst_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """The bound LZ4 states for data it cannot compress, and the frame's offset."""
        length = prod(shape) * dtype.itemsize
        return length + length // 255 + 16 + 8

    def storage(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int, max_bytes: int) -> Storage:
        """As many frames as `max_bytes` hold."""
        del max_frames
        return BlobStorage(self, shape, dtype, max_bytes)

    def key(self, frame: Frames) -> bytes:
        """The array's bytes."""
        return frame.tobytes()

    def pack(self, key: bytes) -> bytes:
        """One block without a header: the store knows how long a frame is."""
        return bytes(self._compress(key, store_size=False))

    def decode(self, blobs: Iterable[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """One after the other, joined in one go."""
        length = prod(shape) * dtype.itemsize
        decompress = self._decompress
        joined = bytearray().join([decompress(blob, length) for blob in blobs])
        return np.frombuffer(joined, dtype).reshape(-1, *shape)


def _row_frames(max_frames: int) -> int:
    return -(-(max_frames + SLACK_FRAMES) // SEGMENT_FRAMES) * SEGMENT_FRAMES


def fitting_codec(dtype: np.dtype[Any], *, stacked: bool) -> Codec:
    """Bits for booleans, LZ4 for stacks of byte images, all else as it is."""
    if dtype == np.bool_:
        return Bits()
    if stacked and dtype == np.uint8:
        return LZ4()
    return Raw()
