"""The container of a UMB file: a tar archive of a JSON index and flat arrays, read without trusting its sizes.

Of the package umbi only the index is used. Its reader of whole files makes a Python object of every number, allocates
what the index claims and (in 0.2.5) keeps only the last of several rewards.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import lzma
import sys
import tarfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._extras import import_extra
from adalook.errors import FileError
from adalook.mdp import files
from adalook.storage import files as disk

READABLE_VERSIONS = (0, 1)
"""Version 0 is what umbi writes when it is installed as a package and does not find its own version."""

MAX_MEMBERS = 10_000
MAX_INDEX_BYTES = 16 * 2**20

DEFAULT_BITS = {
    "bool": 1,
    "int-interval": 128,
    "uint-interval": 128,
    "double-interval": 128,
    "rational": 128,
    "rational-interval": 256,
}
"""Sizes of types that do not name one; those not listed have 64 bits."""


def load_umbi() -> Any:
    """Return the package umbi, or raise an error that says how to install it."""
    for module in ("umbi.binary", "umbi.umb.index"):
        import_extra(module, extra="umb", purpose="reading and writing UMB files")
    umbi = sys.modules["umbi"]
    # umbi logs what we turn into errors; without any handler that would go to the screen.
    logger = logging.getLogger("umbi")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return umbi


def write(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a compressed archive, with neither names nor dates outside the members: the same model, the same file."""
    with (
        disk.atomic_write(path) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


class Archive:
    """An opened UMB file: its index, and its arrays, each as long as the index says."""

    def __init__(self, path: Path) -> None:
        self._umbi = load_umbi()
        self._members = _members(_unpacked(path))
        self.index = self._read_index()

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def _read_index(self) -> Any:
        """Return the index as umbi's object, or raise if it is damaged or of an unknown version."""
        text = self._members.get("index.json")
        if text is None or len(text) > MAX_INDEX_BYTES:
            raise FileError("index.json is missing or too large", remedy="this is not a UMB file")
        try:
            raw = json.loads(bytes(text))
            # We do not need valuations, and umbi refuses some that the standard allows.
            needed = {key: _with_sizes(part) for key, part in raw.items() if key != "valuations"}
            index = self._umbi.umb.index.UmbIndex.from_json(needed)
        except Exception as error:  # umbi answers bad input with errors of many kinds
            raise FileError("index.json is damaged", got=f"{type(error).__name__}: {error}"[:200]) from error
        if index.format_version not in READABLE_VERSIONS:
            raise FileError("the version of UMB is not known", expected=READABLE_VERSIONS, got=index.format_version)
        return index

    def _raw(self, name: str, count: int, item_bytes: int) -> memoryview:
        """Return the bytes of a member, or raise unless it has `count` items."""
        raw = self._members.get(name)
        if raw is None:
            raise FileError(f"{name[:80]} is missing")
        if len(raw) != count * item_bytes:
            raise FileError(f"{name[:80]} has the wrong size", expected=f"{count * item_bytes} bytes", got=len(raw))
        return raw

    def integers(self, name: str, count: int, kind: str, bound: int) -> IntArray:
        """Return an array of unsigned numbers below `bound`."""
        values = np.frombuffer(self._raw(name, count, np.dtype(kind).itemsize), kind)
        if len(values) and int(values.max()) >= bound:
            raise FileError(f"a number in {name} is out of range", expected=f"below {bound}", got=int(values.max()))
        return values.astype(np.int64)

    def offsets(self, name: str, count: int, total: int) -> IntArray:
        """Return where each entry's part of `total` items begins (count + 1,); a missing member means one item each."""
        if name not in self:
            if count != total:
                raise FileError(f"{name} is missing")
            return np.arange(count + 1)
        values = self.integers(name, count + 1, "<u8", total + 1)
        if values[0] != 0 or values[-1] != total or (np.diff(values) < 0).any():
            raise FileError(f"{name} is damaged", expected=f"numbers that rise from 0 to {total}")
        return values

    def floats(self, name: str, count: int, sized: Any) -> FloatArray:
        """Return an array of finite numbers of a UMB type, rationals rounded to the nearest float."""
        kind = str(getattr(sized.type, "value", sized.type))
        if kind not in ("double", "rational", "int", "uint") or sized.size_bits % 8:
            raise FileError(
                f"{name[:80]} holds numbers of the type {kind}",
                expected="double or rational",
                remedy="a model with intervals is a set of models: export it with plain numbers",
            )
        raw = self._raw(name, count, sized.size_bytes)
        if kind == "double":
            values = np.frombuffer(raw, "<f8").astype(np.float64)
        else:
            try:
                values = np.array([float(x) for x in self._umbi.binary.bytes_to_vector(bytes(raw), sized)], np.float64)
            except (ArithmeticError, ValueError, AssertionError) as error:
                raise FileError(f"{name[:80]} holds something that is not a number", got=repr(error)) from error
        finite = np.isfinite(values)
        if not finite.all():
            where = int(np.argmin(finite))
            raise FileError(f"entry {where} of {name[:80]} is not finite", got=values[where])
        return values


def _unpacked(path: Path) -> bytes:
    """Return the tar archive without its compression, if memory can hold the model that may be in it."""
    limit = files.memory_limit() // 4
    parts = []
    size = 0
    with closing(_stream(path)) as stream:
        while part := stream.read(2**20):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise FileError("the archive is too large", expected=f"at most {limit} bytes when unpacked")
    return b"".join(parts)


def _stream(path: Path) -> Any:
    """Open a file, decompressing it if its first bytes say gzip or xz."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(path)
    return lzma.open(path) if magic == b"\xfd7zXZ\x00" else open(path, "rb")


def _members(archive: bytes) -> dict[str, memoryview]:
    """Return the contents of each member by name; nothing is extracted to the file system."""
    members: dict[str, memoryview] = {}
    everything = memoryview(archive)
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        for count, info in enumerate(tar):
            if count >= MAX_MEMBERS:
                raise FileError("the archive has too many members", expected=f"at most {MAX_MEMBERS}")
            name = info.name.removeprefix("./")
            if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
                continue
            if name in members:
                raise FileError("a member occurs twice", got=repr(name[:80]))
            members[name] = everything[info.offset_data : info.offset_data + info.size]
        # tarfile takes a damaged header in the middle for the end, and optional members would go missing in silence.
        if archive[tar.offset : tar.offset + tarfile.BLOCKSIZE] != bytes(tarfile.BLOCKSIZE):
            raise FileError("the archive is damaged or cut short")
    return members


def _with_sizes(value: Any) -> Any:
    """Add its size to every type in the JSON: the standard lets it be left out, umbi 0.2.5 fails without it."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if isinstance(kind, str) and "size" not in value:
        return {**value, "size": DEFAULT_BITS.get(kind, 64)}
    return {key: _with_sizes(part) for key, part in value.items()}
