"""The journal of a run: what is done is on disk, line by line, and survives a kill -9.

    {"sha256": of the rest, "run": {…}}                               the first line: what is being run
    {"sha256": of the rest, "job": …, "record": …, "seconds": …, …}   one line per finished job

Only the parent process writes. A line counts once it is whole and its checksum is right; a job whose line was torn by
a kill, or damaged since, is simply run again, which gives the same line.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from adalook.errors import FileError
from adalook.storage.files import atomic_write, file_error


def dumps(content: Any) -> str:
    """JSON on one line, the same for the same content; numbers come back bit for bit."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Journal:
    """Lines of one run, open for more. Context manager: closes the file.

    `damaged` says how many lines had to be dropped when it was opened.
    """

    def __init__(self, path: Path, run: dict[str, Any]) -> None:
        self._path = path
        self.lines, self.damaged = _read(path) if path.exists() else ([], 0)
        self.run: dict[str, Any] = self.lines.pop(0)["run"] if self.lines else run
        """What is being run, according to the first line."""
        self._file: io.FileIO | None = None

    def open(self) -> None:
        """Get ready to append: afterwards the file holds all good lines and nothing else."""
        with atomic_write(self._path) as file:
            for body in ({"run": self.run}, *self.lines):
                file.write(_line(body))
        try:
            # Without a buffer: what a full disk refused must not be tried again, and refused again, by close().
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise file_error("write", self._path, error) from error

    def append(self, body: dict[str, Any]) -> None:
        """Returns when the line is safe on disk."""
        assert self._file is not None, "open() comes first"
        try:
            _write_all(self._file, _line(body))
            os.fsync(self._file.fileno())
        except OSError as error:
            raise file_error("write", self._path, error) from error
        self.lines.append(json.loads(dumps(body)))  # as a resumed run would read it

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


def _line(body: dict[str, Any]) -> bytes:
    text = dumps(body)
    return f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}",{text[1:]}\n'.encode()


def _write_all(file: io.FileIO, content: bytes) -> None:
    """Also where the system takes it in pieces, as it does when a disk fills up: the next piece then says why."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The good lines, and how many others there are."""
    try:
        raw = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise file_error("read", path, error) from error
    bodies = [_body(line) for line in raw]
    if not bodies or bodies[0] is None or "run" not in bodies[0]:
        raise FileError(
            f"{path} is damaged: its first line does not say what was run", remedy="start over with --fresh"
        )
    good = [body for body in bodies if body is not None]
    return good, len(bodies) - len(good)


def _body(line: bytes) -> dict[str, Any] | None:
    """What a line says; None if it was torn or damaged."""
    try:
        body = json.loads(line)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    body.pop("sha256", None)
    return body if _line(body) == line else None  # also not if the newline is missing
