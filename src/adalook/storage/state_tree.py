"""Bytes that never change again: checkpoints write them once and then only name them.

States as files: a nested state is split into plain JSON, arrays and segments, and joined again as it was.

Dictionaries, lists, tuples, None, bool, int, float (inf and nan too), str, bytes, numpy arrays and `Segment`s go in;
the same come out, with the same types, dtypes, shapes and bits. Anything else is refused with its place, so that a
state that would not come back is noticed when it is written. Nothing is ever pickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adalook.errors import ArgumentError, FileError

Bytes = NDArray[np.uint8]


class Segment:
    """A sealed piece of storage, named by the SHA-256 of its bytes.

    >>> Segment(np.zeros(3, np.uint8)).digest[:8]
    '709e80c8'
    """

    def __init__(self, payload: NDArray[Any], digest: str | None = None) -> None:
        """Seal `payload` (a contiguous array); a `digest` is believed, so give one only if it was checked."""
        self.payload: Bytes = payload.reshape(-1).view(np.uint8)
        self.payload.flags.writeable = False
        self._digest = digest

    @property
    def digest(self) -> str:
        """Computed when first asked for, then kept: hashing is most of what a segment costs in later checkpoints."""
        if self._digest is None:
            self._digest = hashlib.sha256(self.payload.data).hexdigest()
        return self._digest


Arrays = dict[str, NDArray[Any]]

_TAG = "$"
"""Marks, as its one key, an object that stands for something JSON does not have."""


def split(state: Any) -> tuple[bytes, Arrays, dict[str, Segment]]:
    """(JSON, arrays by name, segments by digest) of a state."""
    arrays: Arrays = {}
    segments: dict[str, Segment] = {}
    plain = _encode(state, "", arrays, segments)
    return json.dumps(plain, allow_nan=False, ensure_ascii=False).encode(), arrays, segments


def join(plain: bytes, arrays: Mapping[str, NDArray[Any]], segments: Mapping[str, Segment]) -> Any:
    """The state that `split` split."""
    try:
        return _decode(json.loads(plain), arrays, segments)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError("a checkpoint's state cannot be put together", got=repr(error)) from error


def arrays_to_bytes(arrays: Arrays) -> bytes:
    """An npz file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return file.getvalue()


def arrays_from_bytes(data: bytes) -> Arrays:
    """What `arrays_to_bytes` wrote."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise FileError("a checkpoint's arrays cannot be read", got=repr(error)) from error


def _encode(value: Any, place: str, arrays: Arrays, segments: dict[str, Segment]) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if np.isfinite(value) else {_TAG: ["float", repr(value)]}
    if kind is list:
        return [_encode(part, f"{place}/{i}", arrays, segments) for i, part in enumerate(value)]
    if kind is tuple:
        return {_TAG: ["tuple", *(_encode(part, f"{place}/{i}", arrays, segments) for i, part in enumerate(value))]}
    if kind is dict:
        return _encode_dict(value, place, arrays, segments)
    if kind is bytes:
        return {_TAG: ["bytes", _name(np.frombuffer(value, np.uint8), place, arrays)]}
    if kind is np.ndarray and not value.dtype.hasobject:
        return {_TAG: ["array", _name(value, place, arrays)]}
    if kind is Segment:
        segments[value.digest] = value
        return {_TAG: ["segment", value.digest]}
    raise ArgumentError(
        f"the state has something at {place or '/'} that checkpoints do not keep",
        expected="plain data, numpy arrays or segments",
        got=f"{kind.__module__}.{kind.__qualname__}",
        remedy="turn it into one of these in state()",
    )


def _encode_dict(value: dict[Any, Any], place: str, arrays: Arrays, segments: dict[str, Segment]) -> Any:
    if all(type(key) is str for key in value) and _TAG not in value:
        return {key: _encode(part, f"{place}/{key}", arrays, segments) for key, part in value.items()}
    items = [
        [_encode(key, place, arrays, segments), _encode(part, f"{place}/{key}", arrays, segments)]
        for key, part in value.items()
    ]
    return {_TAG: ["dict", *items]}


def _name(array: NDArray[Any], place: str, arrays: Arrays) -> str:
    # Keys may contain anything; names in an archive may not: it cuts them at a NUL, for one.
    name = base = re.sub(r"[^\w/.~-]", "_", place.strip("/"), flags=re.ASCII) or "state"
    again = 1
    while name in arrays:
        again += 1
        name = f"{base}~{again}"
    arrays[name] = array
    return name


def _decode(value: Any, arrays: Mapping[str, NDArray[Any]], segments: Mapping[str, Segment]) -> Any:
    if isinstance(value, list):
        return [_decode(part, arrays, segments) for part in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {key: _decode(part, arrays, segments) for key, part in value.items()}
    kind, *parts = value[_TAG]
    match kind:
        case "float":
            return float(parts[0])
        case "tuple":
            return tuple(_decode(part, arrays, segments) for part in parts)
        case "dict":
            return {_decode(key, arrays, segments): _decode(part, arrays, segments) for key, part in parts}
        case "bytes":
            return arrays[parts[0]].tobytes()
        case "array":
            return arrays[parts[0]]
        case "segment":
            return segments[parts[0]]
        case _:
            raise ValueError(f"unknown tag {kind!r}")
