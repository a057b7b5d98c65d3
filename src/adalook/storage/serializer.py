"""The one serialiser: nested plain data to bytes and back, without pickle, so reading it cannot run anything.

Plain data is None, bool, int, float, str, bytes, tuple, list, dict with plain keys, NumPy arrays and scalars of numbers
or text, and `Segment`s. It comes back with the same types, dtypes, shapes and bits. Anything else is refused with its
place, so that a state that would not come back is noticed when it is written.

Format: one letter for the type, then the content; what has no fixed size is preceded by its length. Equal values of
equal types give equal bytes, so the bytes of a state can serve as its key. A segment is only named, by its digest: the
caller keeps its bytes, and checkpoints write them once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adalook.errors import ArgumentError, FileError

_LENGTH = struct.Struct("<I")
_MAX_LENGTH = 2**32 - 1
_FLOAT = struct.Struct("<d")
_MAX_NESTING = 50
"""Deeper nesting is taken for damage, or for a value that contains itself."""
_PLAIN_DTYPE = re.compile(r"[<>|=][biufcSU]\d{1,6}")
"""The only dtypes that are ever handed to NumPy, whose parser evaluates what describes structured ones."""
_DIGEST_BYTES = 16

ByteArray: TypeAlias = NDArray[np.uint8]


class Segment:
    """A read-only block of bytes, named by its SHA-256; checkpoints write each block once.

    >>> Segment(np.zeros(3, np.uint8)).digest[:8]
    '709e80c8'

    Args:
        payload: a contiguous array of any type; it must not change any more.
        digest: its SHA-256, if it was computed or checked before; it is believed.
    """

    def __init__(self, payload: NDArray[Any], digest: str | None = None) -> None:
        self.payload: ByteArray = payload.reshape(-1).view(np.uint8)
        self.payload.flags.writeable = False
        self._digest = digest

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, computed when first asked for: most of what a segment costs in later checkpoints."""
        if self._digest is None:
            self._digest = sha256(self.payload.data).hexdigest()
        return self._digest


def serialize(value: Any, segments: dict[str, Segment] | None = None) -> bytes:
    """Return plain data as bytes.

    >>> deserialize(serialize((1, [2.5, None], {"a": b"x"})))
    (1, [2.5, None], {'a': b'x'})

    Args:
        value: what to write.
        segments: receives the segments in `value` by digest; without it segments are refused.

    Raises:
        ArgumentError: something in `value` is not plain data; the message says where and what.
    """
    parts: list[bytes] = []
    try:
        _encode(value, parts, segments, 0)
    except _NotPlainError as error:
        place = "".join(f"/{key}" for key in reversed(error.path)) or "/"
        raise ArgumentError(
            f"cannot serialise the value at {place} without pickle", expected=error.expected, got=error.got
        ) from None
    return b"".join(parts)


class _NotPlainError(Exception):
    """A value that cannot be written; containers add their key to `path` on the way out, innermost first."""

    def __init__(self, expected: str, got: str) -> None:
        self.path: list[Any] = []
        self.expected, self.got = expected, got


def _encode(value: Any, parts: list[bytes], segments: dict[str, Segment] | None, depth: int) -> None:
    if depth > _MAX_NESTING:
        raise _NotPlainError(f"at most {_MAX_NESTING} levels", "a value that contains itself or is nested too deeply")
    kind = type(value)
    if value is None or kind is bool:
        parts.append({None: b"N", True: b"T", False: b"F"}[value])
    elif kind is int:
        _append_sized(b"i", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True), parts)
    elif kind is float:
        parts.append(b"f" + _FLOAT.pack(value))
    elif kind is str:
        _append_sized(b"s", value.encode("utf-8", "surrogatepass"), parts)
    elif kind is bytes:
        _append_sized(b"b", value, parts)
    elif kind in (tuple, list):
        parts.append((b"t" if kind is tuple else b"l") + _LENGTH.pack(len(value)))
        for index, item in enumerate(value):
            try:
                _encode(item, parts, segments, depth + 1)
            except _NotPlainError as error:
                error.path.append(index)
                raise
    elif kind is dict:
        parts.append(b"d" + _LENGTH.pack(len(value)))
        for key, item in value.items():
            try:
                _encode(key, parts, segments, depth + 1)
                _encode(item, parts, segments, depth + 1)
            except _NotPlainError as error:
                error.path.append(key)
                raise
    elif kind is np.ndarray or isinstance(value, np.generic):
        if not _PLAIN_DTYPE.fullmatch(value.dtype.str):
            raise _NotPlainError("an array of numbers or text", f"dtype {value.dtype}")
        parts.append(b"a" if kind is np.ndarray else b"g")
        _encode((value.dtype.str, value.shape, value.tobytes()), parts, None, depth + 1)
    elif kind is Segment and segments is not None:
        segments[value.digest] = value
        parts.append(b"x" + bytes.fromhex(value.digest))
    else:
        raise _NotPlainError("plain data or NumPy arrays", f"{kind.__module__}.{kind.__qualname__}")


def _append_sized(letter: bytes, content: bytes, parts: list[bytes]) -> None:
    if len(content) > _MAX_LENGTH:
        raise _NotPlainError("at most 4 GiB in one piece; split it into segments", f"{len(content):,} bytes")
    parts += (letter, _LENGTH.pack(len(content)), content)


def deserialize(data: bytes, segments: Mapping[str, Segment] | None = None) -> Any:
    """Return what `serialize` was given.

    Args:
        data: what `serialize` returned.
        segments: by digest, at least those that were collected when it was written.

    Raises:
        FileError: the bytes are damaged, or were not written by `serialize`.
    """
    try:
        value, end = _decode(data, 0, segments or {}, 0)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, SystemError, struct.error) as error:
        raise damaged_error("state", "plain data", str(error) or type(error).__name__) from error
    if end != len(data):
        raise damaged_error("state", f"{end} bytes", f"{len(data)} bytes")
    return value


def _decode(data: bytes, at: int, segments: Mapping[str, Segment], depth: int) -> tuple[Any, int]:
    """Return the value that begins at byte `at`, and where it ends."""
    if depth > _MAX_NESTING:
        raise ValueError("nested too deeply")
    letter, at = data[at : at + 1], at + 1
    if letter in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[letter], at
    if letter == b"f":
        return _FLOAT.unpack_from(data, at)[0], at + _FLOAT.size
    if letter in (b"a", b"g"):
        (dtype, shape, content), at = _decode(data, at, {}, depth + 1)
        if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError("the shape of an array expected")
        array = np.frombuffer(content, _plain_dtype(dtype)).reshape(shape).copy()
        return (array[()] if letter == b"g" else array), at
    if letter == b"x":
        digest, at = data[at : at + 32].hex(), at + 32
        if digest not in segments:
            raise ValueError(f"there is no segment {digest[:12]}…")
        return segments[digest], at
    (count,), at = _LENGTH.unpack_from(data, at), at + _LENGTH.size
    if letter in (b"t", b"l", b"d"):
        items = []
        for _ in range(2 * count if letter == b"d" else count):
            item, at = _decode(data, at, segments, depth + 1)
            items.append(item)
        if letter == b"d":
            return dict(zip(items[::2], items[1::2], strict=True)), at
        return (tuple(items) if letter == b"t" else items), at
    content, at = data[at : at + count], at + count
    if len(content) != count:
        raise ValueError("ends too early")
    if letter == b"i":
        return int.from_bytes(content, "little", signed=True), at
    if letter == b"s":
        return content.decode("utf-8", "surrogatepass"), at
    if letter == b"b":
        return content, at
    raise ValueError(f"no type of value begins with {letter!r}")


def _plain_dtype(text: Any) -> np.dtype[Any]:
    if not isinstance(text, str) or not _PLAIN_DTYPE.fullmatch(text):
        raise ValueError(f"{text!r} is not the dtype of numbers or text")
    return np.dtype(text)


def add_digest(content: bytes, owner: str) -> bytes:
    """Return the content behind a digest of it and of its owner's name.

    `check_digest` then finds any damage, and states of another environment. Whoever forges bytes can compute the digest
    too: this protects against accidents, not against malice.
    """
    return _digest(content, owner) + content


def check_digest(data: bytes, owner: str) -> bytes:
    """Return the content that `add_digest` was given, or raise `FileError` if anything was changed."""
    if not isinstance(data, bytes) or data[:_DIGEST_BYTES] != _digest(data[_DIGEST_BYTES:], owner):
        got = f"{len(data)} other bytes" if isinstance(data, bytes) else f"a {type(data).__name__}"
        raise damaged_error(f"state of {owner}", "what pack made", got)
    return data[_DIGEST_BYTES:]


def _digest(content: bytes, owner: str) -> bytes:
    name = owner.encode("utf-8", "surrogatepass")
    return sha256(_LENGTH.pack(len(name)) + name + content).digest()[:_DIGEST_BYTES]


def damaged_error(what: str, expected: str, got: str) -> FileError:
    """Return the error for bytes that were not written by us, or were changed since."""
    return FileError(f"this is not a packed {what}, or it is damaged", expected=expected, got=got)
