"""The directory of a training run: its config, and checkpoints of which the newest can always be read.

    RUN/config.json                      what it takes to make the agent of the run again
    RUN/lock                             number of the process that writes, while it does
    RUN/checkpoints/000012-step-40000/   state.bin and, written last, manifest.json: without it, no checkpoint
    RUN/segments/<sha256>                full segments of the replay buffer, each written once

The manifest names the state and every segment with its length and SHA-256, and has a checksum itself. Every file is
written new, synchronised, then renamed; older checkpoints, and segments that no manifest names any more, are removed
only when the new one is safe. So at whatever moment a run is killed, what was last reported can be read.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, FileError, shown
from adalook.learning.config import Config
from adalook.simulators.make import names_code
from adalook.storage.documents import check_document, parse_json, with_digest
from adalook.storage.files import (
    atomic_write,
    file_error,
    fsync_directory,
    make_directory,
    read_file,
    remove_temporary_files,
)
from adalook.storage.lock import DirectoryLock
from adalook.storage.serializer import Segment, deserialize, serialize

CONFIG_FILE = "config.json"
CONFIG_FORMAT = 5
CHECKPOINT_FORMAT = 2
MAX_CONFIG_BYTES = 2**22
_CHECKPOINT_NAME = re.compile(r"(\d{6,})-step-(\d+)")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STATE_FILE, _MANIFEST_FILE = "state.bin", "manifest.json"


class RunConfig(dict[str, Any]):
    """The content of config.json; asking for a key that is missing raises an error that names the file."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        super().__init__(content)
        self._path = path

    def __missing__(self, key: str) -> Any:
        raise FileError(f"{self._path} has no '{key}'", remedy="restore the file, or use another run")


def write_run_config(directory: Path, run_config: dict[str, Any]) -> None:
    """Write what `Agent.run_config` returned to config.json."""
    with atomic_write(directory / CONFIG_FILE, follow_links=False) as file:
        file.write(json.dumps(with_digest(run_config), indent=2).encode())


def read_run_config(directory: Path) -> RunConfig:
    """Read the config.json of a run."""
    path = directory / CONFIG_FILE
    try:
        content = parse_json(read_file(path, MAX_CONFIG_BYTES))
    except OSError as error:
        raise FileError(
            f"{directory} is no run", expected=f"a directory with {CONFIG_FILE}", got=error.strerror
        ) from error
    except ValueError as error:
        raise FileError(f"{path} is damaged", got=error) from error
    if not isinstance(content, dict) or content.get("format") != CONFIG_FORMAT:
        raise FileError(f"{path} is not of this version", expected=f"format {CONFIG_FORMAT}")
    return RunConfig(path, check_document(content, path))


def env_and_config(run_config: dict[str, Any], env: Any = None) -> tuple[Any, Config]:
    """Return the environment of a run, `env` if given, and its `Config`."""
    named = env is None
    env = run_config["env"] if named else env
    if env is None:
        raise ArgumentError(
            "the environment of this run has no name",
            remedy="pass it: load(directory, env=…), or in a shell --env module:Class",
        )
    if named and not isinstance(env, str):
        raise FileError(f"{CONFIG_FILE} names no environment", expected="text", got=shown(env))
    if named and names_code(env):
        raise ArgumentError(
            f"the run names code, {env}, which would be imported",
            expected="that you say so, if you trust it",
            remedy=f"name it again: --env {shlex.quote(env)}, adalook train {shlex.quote(env)} --resume …, "
            f"or load(directory, env={env!r})",
        )
    try:
        return env, Config.from_plain(run_config["config"])
    except (TypeError, ArgumentError) as error:
        raise FileError(f"{CONFIG_FILE} holds settings that are none", got=error) from error


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A state as it was saved."""

    step: int
    state: Any
    path: Path


def warn_of_damage(message: str) -> None:
    """Warn that a damaged checkpoint was passed over; the default of `on_damage`."""
    warnings.warn(message, RuntimeWarning, stacklevel=3)


class RunDirectory:
    """The checkpoints of one run, for the one process that writes them.

    Construction makes the directory unless it exists, and locks it. Use it in a `with` statement, or close it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        make_directory(self.path / "checkpoints")
        make_directory(self.path / "segments")
        for name in ("checkpoints", "segments"):
            if (self.path / name).is_symlink():
                raise FileError(
                    f"{self.path / name} is a symbolic link",
                    expected="a directory",
                    remedy="a run writes inside its own directory only: make a new one, or move the files",
                )
        self._lock = DirectoryLock(self.path)
        for place in (self.path, self.path / "segments", *(self.path / "checkpoints").iterdir()):
            remove_temporary_files(place, older_than=0.0)  # we hold the lock: their writers are gone
        self._written: set[str] = set()
        """Digests of segments that are known to be safe on disk."""
        self._last: str | None = None
        """Name of the checkpoint that was written or read last."""

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock, so that another process may write."""
        self._lock.release()

    def save(self, step: int, state: Any) -> Path:
        """Write a checkpoint and return its path; when this returns it is safe, and if it fails the last one stays.

        Args:
            step: shows in the name, and is `Checkpoint.step` when it is read.
            state: plain data, NumPy arrays and segments, nested (see `adalook.storage.serializer`).
        """
        if not self._lock.held:
            raise ArgumentError("the run directory was closed", remedy="open a new RunDirectory")
        segments: dict[str, Segment] = {}
        data = serialize(state, segments)
        existing = _checkpoint_names(self.path)
        previous = self._last or (existing[0] if existing else None)
        for digest, segment in segments.items():
            if digest not in self._written:  # even if the file exists: it may be the damaged one
                _write(self.path / "segments" / digest, segment.payload.data)
                self._written.add(digest)
        name = f"{1 + max((_sequence_number(other) for other in existing), default=0):06d}-step-{step}"
        try:
            self._write_checkpoint(name, step, data, segments)
        except BaseException:
            shutil.rmtree(self.path / "checkpoints" / name, ignore_errors=True)
            raise
        self._last = name
        with suppress(OSError):  # the new one is safe: what cannot be removed now is removed next time
            self._remove_all_but({name, previous})
        return self.path / "checkpoints" / name

    def load_newest(self, on_damage: Callable[[str], None] = warn_of_damage) -> Checkpoint | None:
        """Read the newest checkpoint that can be read; see the function `load_newest`."""
        checkpoint = load_newest(self.path, on_damage)
        if checkpoint is not None:
            self._last = checkpoint.path.name
            self._written = set(_read_manifest(checkpoint.path)["segments"])
        return checkpoint

    def _write_checkpoint(self, name: str, step: int, data: bytes, segments: dict[str, Segment]) -> None:
        directory = self.path / "checkpoints" / name
        make_directory(directory)
        _write(directory / _STATE_FILE, data)
        body = {
            "format": CHECKPOINT_FORMAT,
            "step": step,
            "state": [len(data), _sha256(data)],
            "segments": {digest: segment.payload.nbytes for digest, segment in segments.items()},
        }
        try:
            fsync_directory(directory.parent)
        except OSError as error:
            raise file_error("write", directory, error) from error
        manifest = {"body": body, "sha256": _sha256(_canonical_json(body))}
        _write(directory / _MANIFEST_FILE, json.dumps(manifest).encode())

    def _remove_all_but(self, keep: set[str | None]) -> None:
        """Remove all checkpoints but those to keep, and segments that none of these names."""
        needed: set[str] = set()
        for directory in (self.path / "checkpoints").iterdir():
            if directory.name in keep:
                try:
                    needed |= set(_read_manifest(directory)["segments"])
                except FileError as error:
                    if isinstance(error.__cause__, OSError):  # it may be whole, and its segments needed
                        raise
                    continue  # damaged since it was written: no segment can help it
            elif directory.is_dir() and _CHECKPOINT_NAME.fullmatch(directory.name):
                (directory / _MANIFEST_FILE).unlink(missing_ok=True)  # first: what is left is then no checkpoint
                shutil.rmtree(directory, ignore_errors=True)
        for file in (self.path / "segments").iterdir():
            if file.name not in needed:
                file.unlink(missing_ok=True)
        self._written &= needed


def load_newest(path: Path | str, on_damage: Callable[[str], None] = warn_of_damage) -> Checkpoint | None:
    """Read the newest checkpoint of a run that can be read, or return None if there is none; takes no lock.

    Args:
        path: the run directory.
        on_damage: called with a message if newer checkpoints could not be read.

    Raises:
        FileError: there are checkpoints, and none can be read.
    """
    path = Path(path)
    problems: list[str] = []
    for name in _checkpoint_names(path):
        directory = path / "checkpoints" / name
        try:
            checkpoint = _load_checkpoint(directory, path / "segments")
        except FileError as error:
            if not (directory / _MANIFEST_FILE).exists():  # the writer removed it while we were reading
                return load_newest(path, on_damage)
            problems.append(f"{name}: {error}")
            continue
        if problems:
            on_damage(f"damaged checkpoints of {path} were passed over, going on from {name}. {' '.join(problems)}")
        return checkpoint
    if problems:
        raise FileError(
            f"no checkpoint of {path} can be read",
            got=" ".join(problems).rstrip("."),
            remedy="restore the files, or start a new run",
        )
    return None


def _load_checkpoint(directory: Path, segments_directory: Path) -> Checkpoint:
    """Read a checkpoint, checking every length and digest."""
    manifest = _read_manifest(directory)
    data = _read(directory / _STATE_FILE)
    length, digest = manifest["state"]
    _check(directory / _STATE_FILE, data, length, digest)
    segments = {}
    for digest, length in manifest["segments"].items():
        payload = _read(segments_directory / digest)
        _check(segments_directory / digest, payload, length, digest)
        segments[digest] = Segment(np.frombuffer(payload, np.uint8), digest)
    state = deserialize(data, segments)
    if not isinstance(state, dict):
        raise FileError(f"{directory} is damaged", expected="the state of an agent", got=type(state).__name__)
    return Checkpoint(manifest["step"], state, directory)


def _read_manifest(directory: Path) -> dict[str, Any]:
    """Read the body of a manifest and check it against its checksum."""
    path = directory / _MANIFEST_FILE
    try:
        manifest = parse_json(_read(path))
        body = manifest["body"]
        sound = manifest["sha256"] == _sha256(_canonical_json(body)) and body["format"] == CHECKPOINT_FORMAT
        sound = sound and all(_DIGEST.fullmatch(digest) for digest in body["segments"])
        length, digest = body["state"]
        numbers = [body["step"], length, *body["segments"].values()]
        sound = sound and all(type(number) is int for number in numbers) and bool(_DIGEST.fullmatch(digest))
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise FileError(f"{path} is damaged", got=repr(error)) from error
    if not sound:
        raise FileError(f"{path} is damaged", expected=f"format {CHECKPOINT_FORMAT} and a checksum that fits")
    return dict(body)


def _checkpoint_names(path: Path) -> list[str]:
    """Return the names of complete checkpoints, newest first."""
    names = [manifest.parent.name for manifest in (path / "checkpoints").glob(f"*/{_MANIFEST_FILE}")]
    return sorted(filter(_CHECKPOINT_NAME.fullmatch, names), key=_sequence_number, reverse=True)


def _sequence_number(name: str) -> int:
    return int(name.split("-", 1)[0])


def _write(path: Path, data: bytes | memoryview) -> None:
    with atomic_write(path, follow_links=False) as file:
        file.write(data)


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise file_error("read", path, error) from error


def _check(path: Path, data: bytes, length: int, digest: str) -> None:
    """Raise `FileError` unless the data have this length and SHA-256."""
    if len(data) != length:
        raise FileError(f"{path} is damaged", expected=f"{length} bytes", got=len(data))
    if _sha256(data) != digest:
        raise FileError(f"{path} is damaged", expected=f"SHA-256 {digest[:12]}…", got=f"{_sha256(data)[:12]}…")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _canonical_json(body: object) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
