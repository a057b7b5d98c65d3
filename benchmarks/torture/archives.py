"""Archives that grow: a small file whose members hold, or claim, far more than it may."""

from __future__ import annotations

import io
import resource
import tarfile
import zipfile
from collections.abc import Iterator

import numpy as np

from benchmarks.torture.kinds import Kind
from benchmarks.torture.outcome import DIFFERENT, EQUAL, FOREIGN, HANG, MEMORY, Row, attempt

BOMB_BYTES = 2**30
"""What the member of an archive unpacks to: zeros, which pack a thousandfold."""
CHUNK = bytes(2**20)
KIND = "archives of which a member holds a gigabyte of zeros"


class _Zeros(io.RawIOBase):
    """So many zeros, to read."""

    def __init__(self, count: int) -> None:
        self._left = count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = min(len(buffer), self._left)
        buffer[:count] = bytes(count)
        self._left -= count
        return count


def _grown_zip(whole: bytes, member: str) -> bytes:
    """Return an .npz of which one member, there already or new, is an array of zeros."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (BOMB_BYTES // 8,)})
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != member:
                new.writestr(name, old.read(name))
        with new.open(member, "w", force_zip64=True) as file:
            file.write(header.getvalue())
            for _ in range(BOMB_BYTES // len(CHUNK)):
                file.write(CHUNK)
    return target.getvalue()


def _grown_tar(whole: bytes, member: str) -> bytes:
    """Return an .umb of which one member, there already or new, is zeros."""
    target = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(whole)) as old, tarfile.open(fileobj=target, mode="w:gz") as new:
        for info in old.getmembers():
            if info.name != member:
                new.addfile(info, old.extractfile(info))
        info = tarfile.TarInfo(member)
        info.size = BOMB_BYTES
        new.addfile(info, io.BufferedReader(_Zeros(BOMB_BYTES)))
    return target.getvalue()


def _cases(kinds: list[Kind]) -> Iterator[tuple[Kind, bytes, str]]:
    for kind in kinds:
        if not kind.path.name.endswith((".npz", ".umb", ".ckpt")):
            continue
        whole = kind.path.read_bytes()
        if zipfile.is_zipfile(kind.path):
            with zipfile.ZipFile(kind.path) as archive:
                names = archive.namelist()
            yield from ((kind, _grown_zip(whole, name), name) for name in (names[0], names[-1], "nobody.npy"))
        elif tarfile.is_tarfile(kind.path):
            with tarfile.open(kind.path) as archive:
                names = archive.getnames()
            yield from ((kind, _grown_tar(whole, name), name) for name in (names[0], names[-1], "nobody.bin"))


def row(kinds: list[Kind], most: int) -> Row:
    """Read archives that grow, each kind in turn, at most so many."""
    bad = frozenset({EQUAL, DIFFERENT, FOREIGN, HANG, MEMORY})
    result = Row("damaged files", KIND, bad)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for kind, content, member in _cases(kinds):
        if result.tried == most:
            break
        whole = kind.path.read_bytes()
        kind.path.write_bytes(content)
        outcome, what = attempt(kind.read)
        result.add(outcome, f"{kind.name}, {member}: {what}")
        kind.path.write_bytes(whole)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    result.note = f"refused; the memory of the process grew by {grown:,.0f} MB, making them included"
    return result
