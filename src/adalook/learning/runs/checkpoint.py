"""Checkpoints that lose nothing: a run directory holds the newest two, and one of them can always be read.

    RUN/lock                             held by the process that writes
    RUN/checkpoints/000012-step-40000/   state.bin and, last, manifest.json: without it, no checkpoint
    RUN/segments/<sha256>                sealed pieces of the replay buffer, each written once

The manifest names the state and every segment with its length and SHA-256, and has a checksum itself. Every file is
written new, synchronised, then renamed; older checkpoints, and segments that nobody names any more, are removed only
when the new one is safe. So at whatever moment a run is killed, what was last reported can be read.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, FileError
from adalook.storage.files import atomic_write, file_error, fsync_directory, make_directory
from adalook.storage.lock import DirectoryLock
from adalook.storage.serializer import Segment, deserialize, serialize

FORMAT = 2
_NAME = re.compile(r"(\d{6,})-step-(\d+)")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STATE = "state.bin"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A state as it was saved."""

    step: int
    state: Any
    path: Path


def warn(message: str) -> None:
    """The default way to tell that a checkpoint was passed over."""
    warnings.warn(message, RuntimeWarning, stacklevel=3)


class RunDirectory:
    """The checkpoints of one run, for the one process that writes them; use it in a `with` statement, or close it."""

    def __init__(self, path: Path | str) -> None:
        """Make the directory unless it is there, and lock it."""
        self.path = Path(path)
        make_directory(self.path / "checkpoints")
        make_directory(self.path / "segments")
        self._lock = DirectoryLock(self.path)
        self._safe: set[str] = set()
        self._last: str | None = None

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process have it."""
        self._lock.release()

    def save(self, step: int, state: Any) -> Path:
        """Write a checkpoint; when this returns it is safe, and whatever goes wrong the one before it stays.

        Args:
            step: for people and for `load_newest`'s answer.
            state: nested dictionaries, lists and tuples of plain data, numpy arrays and segments (see `serializer`).
        """
        if not self._lock.held:
            raise ArgumentError("the run directory was closed", remedy="open a new RunDirectory")
        segments: dict[str, Segment] = {}
        data = serialize(state, segments)
        existing = _names(self.path)
        previous = self._last or (existing[0] if existing else None)
        for digest, segment in segments.items():
            if digest not in self._safe:  # even if a file is there: it may be the damaged one we did without
                _write(self.path / "segments" / digest, segment.payload.data)
                self._safe.add(digest)
        name = f"{1 + max((_sequence(other) for other in existing), default=0):06d}-step-{step}"
        try:
            self._write_checkpoint(name, step, data, segments)
        except BaseException:
            shutil.rmtree(self.path / "checkpoints" / name, ignore_errors=True)
            raise
        self._last = name
        with suppress(OSError):  # the new one is safe: what cannot be removed now waits for next time
            self._collect({name, previous})
        return self.path / "checkpoints" / name

    def load_newest(self, report: Callable[[str], None] = warn) -> Checkpoint | None:
        """Read the newest checkpoint that can be read; `report` hears about those that cannot. None: there is none."""
        checkpoint = load_newest(self.path, report)
        if checkpoint is not None:
            self._last = checkpoint.path.name
            self._safe = set(_read_manifest(checkpoint.path)["segments"])
        return checkpoint

    def _write_checkpoint(self, name: str, step: int, data: bytes, segments: dict[str, Segment]) -> None:
        directory = self.path / "checkpoints" / name
        make_directory(directory)
        _write(directory / _STATE, data)
        body = {
            "format": FORMAT,
            "step": step,
            "state": [len(data), _sha256(data)],
            "segments": {digest: segment.payload.nbytes for digest, segment in segments.items()},
        }
        try:
            fsync_directory(directory.parent)
        except OSError as error:
            raise file_error("write", directory, error) from error
        _write(directory / "manifest.json", json.dumps({"body": body, "sha256": _sha256(_canonical(body))}).encode())

    def _collect(self, keep: set[str | None]) -> None:
        """Remove what no kept checkpoint needs."""
        needed: set[str] = set()
        for directory in (self.path / "checkpoints").iterdir():
            if directory.name in keep:
                try:
                    needed |= set(_read_manifest(directory)["segments"])
                except FileError:  # damaged since: it needs nothing that could still help it
                    continue
            elif directory.is_dir() and _NAME.fullmatch(directory.name):
                (directory / "manifest.json").unlink(missing_ok=True)  # first, so that half of it is not taken for it
                shutil.rmtree(directory, ignore_errors=True)
        for file in (self.path / "segments").iterdir():
            if file.name not in needed:
                file.unlink(missing_ok=True)
        self._safe &= needed


def load_newest(path: Path | str, report: Callable[[str], None] = warn) -> Checkpoint | None:
    """Read the newest checkpoint of a run that can be read, without locking it. None: there is none.

    Raises:
        FileError: there are checkpoints, and none can be read.
    """
    path = Path(path)
    problems: list[str] = []
    for name in _names(path):
        try:
            checkpoint = _load(path / "checkpoints" / name, path / "segments")
        except FileError as error:
            if not (
                path / "checkpoints" / name / "manifest.json"
            ).exists():  # the writer has moved on while we were reading
                return load_newest(path, report)
            problems.append(f"{name}: {error}")
            continue
        if problems:
            report(f"damaged checkpoints of {path} were passed over, going on from {name}. {' '.join(problems)}")
        return checkpoint
    if problems:
        raise FileError(
            f"no checkpoint of {path} can be read",
            got=" ".join(problems).rstrip("."),
            remedy="restore the files, or start a new run",
        )
    return None


def _load(directory: Path, segments_directory: Path) -> Checkpoint:
    manifest = _read_manifest(directory)
    data = _read(directory / _STATE)
    _check(directory / _STATE, len(data), manifest["state"][0], _sha256(data), manifest["state"][1])
    segments = {}
    for digest, length in manifest["segments"].items():
        payload = np.frombuffer(_read(segments_directory / digest), np.uint8)
        _check(segments_directory / digest, payload.nbytes, length, _sha256(payload.data), digest)
        segments[digest] = Segment(payload, digest)
    return Checkpoint(manifest["step"], deserialize(data, segments), directory)


def _read_manifest(directory: Path) -> dict[str, Any]:
    """The checked body of a manifest."""
    path = directory / "manifest.json"
    try:
        manifest = json.loads(_read(path))
        body = manifest["body"]
        sound = manifest["sha256"] == _sha256(_canonical(body)) and body["format"] == FORMAT
        sound = sound and all(_DIGEST.fullmatch(digest) for digest in body["segments"])
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise FileError(f"{path} is damaged", got=repr(error)) from error
    if not sound:
        raise FileError(f"{path} is damaged", expected=f"format {FORMAT} and a checksum that fits")
    return dict(body)


def _names(path: Path) -> list[str]:
    """Complete checkpoints, newest first."""
    directory = path / "checkpoints"
    if not directory.is_dir():
        return []
    found = [entry.parent.name for entry in _manifests(directory)]
    return sorted(found, key=_sequence, reverse=True)


def _manifests(directory: Path) -> Iterator[Path]:
    return (entry for entry in directory.glob("*/manifest.json") if _NAME.fullmatch(entry.parent.name))


def _sequence(name: str) -> int:
    return int(name.split("-", 1)[0])


def _write(path: Path, data: bytes | memoryview) -> None:
    with atomic_write(path) as file:
        file.write(data)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise file_error("read", path, error) from error


def _check(path: Path, length: int, expected_length: int, digest: str, expected_digest: str) -> None:
    if length != expected_length:
        raise FileError(f"{path} is damaged", expected=f"{expected_length} bytes", got=length)
    if digest != expected_digest:
        raise FileError(f"{path} is damaged", expected=f"SHA-256 {expected_digest[:12]}…", got=f"{digest[:12]}…")


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _canonical(body: object) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
