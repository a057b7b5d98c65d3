"""Codecs that pack a frame: as it is, as bits, or compressed.

A codec first turns a frame into a *key*, bytes that are equal for equal frames and for no others; the store finds
frames it has by their keys, and packs only those it has not. `Raw` and `Bits` pack to rows of one length, which are
read back many at a time; `LZ4` packs to as few bytes as it can (docs/replay.md has measurements).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from adalook._extras import import_extra
from adalook.errors import ArgumentError
from adalook.learning.replay.frames import (
    SEGMENT_FRAMES,
    SLACK_FRAMES,
    BlobStorage,
    Codec,
    Frames,
    RowCodec,
    RowStorage,
    Storage,
)
from adalook.simulators.base import Simulator
from adalook.storage.serializer import ByteArray


class _Rows(RowCodec):
    """The base of `Raw` and `Bits`: every frame takes equally many bytes, so that all is known beforehand."""

    def bytes_needed(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> int:
        """Return exactly what so many frames take."""
        return _row_frames(max_frames) * self.row_bytes(shape, dtype)

    def storage(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int, max_bytes: int) -> Storage:
        """Return rows of one array; `max_bytes` has nothing to limit."""
        del max_bytes
        return RowStorage(self, shape, dtype, _row_frames(max_frames))


class Raw(_Rows):
    """Frames of any kind as they are."""

    name = "raw"

    def row_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """Return the bytes of the array itself."""
        return prod(shape) * dtype.itemsize

    def key(self, frame: Frames) -> bytes:
        """Return the array's bytes."""
        return frame.tobytes()

    def decode(self, rows: ByteArray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """Return the arrays whose bytes these rows are."""
        return rows.view(dtype).reshape(-1, *shape)


class Bits(_Rows):
    """Frames of booleans, or of bytes that are 0 or 1 (MinAtar's), eight cells to a byte."""

    name = "bits"

    def row_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """Return an eighth of the cells, rounded up."""
        if dtype not in (np.bool_, np.uint8):
            raise ArgumentError("only booleans and bytes can be kept as bits", got=dtype, remedy="use Raw() or LZ4()")
        return -(-prod(shape) // 8)

    def key(self, frame: Frames) -> bytes:
        """Return the packed bits."""
        if frame.dtype != np.bool_ and frame.size and frame.max() > 1:
            raise ArgumentError(
                "a frame cannot be kept as bits",
                expected="zeros and ones",
                got=frame.max(),
                remedy="use Raw() or LZ4()",
            )
        return np.packbits(frame).tobytes()

    def decode(self, rows: ByteArray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """Return the cells whose bits these rows are."""
        return np.unpackbits(rows, axis=1, count=prod(shape)).view(dtype).reshape(-1, *shape)


class LZ4:
    """LZ4 blocks: on Atari frames about 5 to 17 times smaller, and three microseconds to read one."""

    name = "lz4"

    def __init__(self) -> None:
        block = import_extra("lz4.block", extra="learn", purpose="compressing replay frames")
        self._compress = block.compress
        self._decompress = block.decompress

    def bytes_needed(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int) -> int:
        """Return a quarter of the raw frames: above the mean of every Atari game measured (docs/replay.md)."""
        return max_frames * prod(shape) * dtype.itemsize // 4 + SLACK_FRAMES * self.worst_bytes(shape, dtype)

    def worst_bytes(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """Return the bound LZ4 states for data it cannot compress, with the frame's offset."""
        length = prod(shape) * dtype.itemsize
        return length + length // 255 + 16 + 8

    def storage(self, shape: tuple[int, ...], dtype: np.dtype[Any], max_frames: int, max_bytes: int) -> Storage:
        """Return room for as many frames as `max_bytes` hold."""
        del max_frames
        return BlobStorage(self, shape, dtype, max_bytes)

    def key(self, frame: Frames) -> bytes:
        """Return the array's bytes."""
        return frame.tobytes()

    def pack(self, key: bytes) -> bytes:
        """Return one compressed block without a header: the store knows how long a frame is."""
        return bytes(self._compress(key, store_size=False))

    def decode(self, blobs: Iterable[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Frames:
        """Return the frames of compressed blocks."""
        length = prod(shape) * dtype.itemsize
        decompress = self._decompress
        joined = bytearray().join([decompress(blob, length) for blob in blobs])
        return np.frombuffer(joined, dtype).reshape(-1, *shape)


def _row_frames(max_frames: int) -> int:
    return -(-(max_frames + SLACK_FRAMES) // SEGMENT_FRAMES) * SEGMENT_FRAMES


def fitting_codec(dtype: np.dtype[Any], *, stacked: bool, binary: bool = False) -> Codec:
    """Return bits for zeros and ones, LZ4 for stacks of byte images, and raw frames for all else."""
    if binary or dtype == np.bool_:
        return Bits()
    if stacked and dtype == np.uint8:
        return LZ4()
    return Raw()


def shows_stacked_frames(sim: Simulator) -> bool:
    """Return whether the first axis of a simulator's observations is a stack of pictures, which are stored one by one.

    Told by shape and type: bytes that are not just zeros and ones, and fewer pictures than a picture has rows.
    """
    shape = sim.observation_shape
    is_picture = sim.observation_dtype == np.uint8 and len(shape) == 3 and not sim.binary_observations
    return is_picture and shape[0] < min(shape[1:])
