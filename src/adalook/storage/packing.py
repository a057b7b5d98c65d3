"""Plain data as bytes, and back: what states travel as. Unlike pickle it cannot run anything.

Plain is None, bool, int, float, str, bytes, tuple, list, dict with plain keys, and NumPy arrays and scalars of numbers.
Each value is one letter for its kind, then its content; whatever has no fixed size is preceded by its length. Equal
values of equal types give equal bytes.
"""

from __future__ import annotations

import re
import struct
from hashlib import sha256
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, FileError

_LENGTH = struct.Struct("<I")
_FLOAT = struct.Struct("<d")
_DEEPEST = 50
"""Nesting beyond this is taken for damage, or for a value that contains itself."""
_NUMBER_TYPE = re.compile(r"[<>|=][biufcSU]\d{1,6}")
"""The only types of arrays that are ever handed to NumPy, whose own parser runs on structured ones."""
_SEAL = 16


def damaged(what: str, expected: str, got: str) -> FileError:
    """The error for bytes that no `pack` made."""
    return FileError(f"this is not a packed {what}, or it is damaged", expected=expected, got=got)


def seal(content: bytes, world: str) -> bytes:
    """Content behind a digest that differs from world to world, so that chance damage is always found."""
    return _digest(content, world) + content


def sealed(data: bytes, world: str) -> bytes:
    """What `seal` sealed. Whoever forges bytes can seal them too: this is against damage, not against malice."""
    if not isinstance(data, bytes) or data[:_SEAL] != _digest(data[_SEAL:], world):
        got = f"{len(data)} other bytes" if isinstance(data, bytes) else f"a {type(data).__name__}"
        raise damaged(f"state of {world}", "what pack made", got)
    return data[_SEAL:]


def _digest(content: bytes, world: str) -> bytes:
    name = world.encode("utf-8", "surrogatepass")
    return sha256(_LENGTH.pack(len(name)) + name + content).digest()[:_SEAL]


def pack_plain(value: Any) -> bytes:
    """Plain data as bytes.

    >>> unpack_plain(pack_plain((1, [2.5, None], {"a": b"x"})))
    (1, [2.5, None], {'a': b'x'})
    """
    parts: list[bytes] = []
    _put(value, parts, 0)
    return b"".join(parts)


def _put(value: Any, parts: list[bytes], depth: int) -> None:
    if depth > _DEEPEST:
        raise ArgumentError(
            "cannot pack a value that contains itself or is nested too deeply", got=type(value).__name__
        )
    kind = type(value)
    if value is None or kind is bool:
        parts.append({None: b"N", True: b"T", False: b"F"}[value])
    elif kind is int:
        _put_sized(b"i", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True), parts)
    elif kind is float:
        parts.append(b"f" + _FLOAT.pack(value))
    elif kind is str:
        _put_sized(b"s", value.encode("utf-8", "surrogatepass"), parts)
    elif kind is bytes:
        _put_sized(b"b", value, parts)
    elif kind in (tuple, list):
        parts.append((b"t" if kind is tuple else b"l") + _LENGTH.pack(len(value)))
        for item in value:
            _put(item, parts, depth + 1)
    elif kind is dict:
        parts.append(b"d" + _LENGTH.pack(len(value)))
        for key, item in value.items():
            _put(key, parts, depth + 1)
            _put(item, parts, depth + 1)
    elif isinstance(value, np.generic) or kind is np.ndarray:
        _put_array(value, parts, depth)
    else:
        raise ArgumentError("cannot pack this without pickle", expected="plain data", got=f"a {kind.__name__}")


def _put_sized(letter: bytes, content: bytes, parts: list[bytes]) -> None:
    parts += (letter, _LENGTH.pack(len(content)), content)


def _put_array(value: Any, parts: list[bytes], depth: int) -> None:
    if value.dtype.kind not in "biufcSU":
        raise ArgumentError("cannot pack this without pickle", expected="an array of numbers", got=value.dtype)
    parts.append(b"g" if isinstance(value, np.generic) else b"a")
    _put((value.dtype.str, value.shape, value.tobytes()), parts, depth + 1)


def unpack_plain(data: bytes) -> Any:
    """What `pack_plain` packed."""
    try:
        value, end = _get(data, 0, 0)
    except (
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        SystemError,
        SyntaxError,
        struct.error,
    ) as error:
        raise damaged("state", "plain data", str(error) or type(error).__name__) from error
    if end != len(data):
        raise damaged("state", f"{end} bytes", f"{len(data)} bytes")
    return value


def _get(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    letter, at = data[at : at + 1], at + 1
    if letter in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[letter], at
    if letter == b"f":
        return _FLOAT.unpack_from(data, at)[0], at + _FLOAT.size
    if letter in (b"a", b"g"):
        (kind, shape, content), at = _get(data, at, depth + 1)
        if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError("the shape of an array expected")
        array = np.frombuffer(content, _number_type(kind)).reshape(shape).copy()
        return (array[()] if letter == b"g" else array), at
    (count,), at = _LENGTH.unpack_from(data, at), at + _LENGTH.size
    if letter in (b"t", b"l", b"d"):
        items = []
        for _ in range(2 * count if letter == b"d" else count):
            item, at = _get(data, at, depth + 1)
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
    raise ValueError(f"no kind of value begins with {letter!r}")


def _number_type(kind: Any) -> np.dtype[Any]:
    if not isinstance(kind, str) or not _NUMBER_TYPE.fullmatch(kind):
        raise ValueError(f"{kind!r} is no type of numbers")
    return np.dtype(kind)
