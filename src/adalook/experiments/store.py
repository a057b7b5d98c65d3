"""The folder of a planning experiment and the journal of a run under way; docs/results-format.md has the formats.

`experiment.json` is written last, so its presence means that all is there. Until then the journal holds what is done:

    {"sha256": of the rest, "run": {…}}                               the first line: what is being run
    {"sha256": of the rest, "job": …, "record": …, "seconds": …, …}   one line per finished job

Only the parent process writes. A line counts once it is whole and its checksum is right; a job whose line was torn by
a kill, or damaged since, is simply run again, which gives the same line.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from adalook import __version__
from adalook.errors import FileError
from adalook.experiments.engines.base import JobResult
from adalook.storage.arrays import pack_arrays, unpack_arrays
from adalook.storage.documents import parse_json
from adalook.storage.files import atomic_write, file_error, make_directory, open_to_append, read_file

FORMAT = "adalook experiment"
FORMAT_VERSION = 2

RESULTS = ("records.json", "models.json", "traces.npz", "times.json")
SHOWN = 3
"""Differences named in a complaint."""


def versions() -> dict[str, str]:
    """Return what results depend on, next to the processor and how these libraries were built."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {
        "python": platform.python_version(),
        **packages,
        "platform": f"{platform.system()} {platform.machine()}",
    }


class Store:
    """The folder of one experiment.

    Args:
        directory: made if need be.
        experiment: its name.
        settings: plain data; a folder belongs to one setting.
        groups: how figures draw the groups of its records, in their order there.
    """

    def __init__(
        self, directory: Path, experiment: str, settings: dict[str, Any], groups: Mapping[str, Any] | None = None
    ) -> None:
        self.directory = directory
        self._summary, self._journal = directory / "experiment.json", directory / "journal.jsonl"
        self._traces = directory / "journal-traces"
        self._run = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "experiment": experiment,
            "adalook_version": __version__,
            "versions": versions(),
            "settings": json.loads(dumps(settings)),
            "groups": dict(groups or {}),
        }

    def clear(self) -> None:
        """Remove results and journal; the summary goes first, so that half a folder never looks whole."""
        try:
            for name in (self._summary.name, *RESULTS, self._journal.name):
                (self.directory / name).unlink(missing_ok=True)
            if self._traces.exists():
                shutil.rmtree(self._traces)
        except OSError as error:
            raise file_error("clear", self.directory, error) from error

    # ---- a finished folder

    def finished(self) -> dict[str, Any] | None:
        """Return the summary if this very experiment is done here; raise if another one is, or if files are damaged."""
        if not self._summary.exists():
            return None
        try:
            summary = parse_json(_read_bytes(self._summary))
            if not isinstance(summary, dict) or summary["format"] != FORMAT:
                raise ValueError("not a summary of ours")
            checksums: dict[str, str] = dict(summary["sha256"])
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{self._summary} is damaged", got=error, remedy="start over with --fresh") from None
        self._refuse_difference(summary, ("format_version", "experiment", "settings"))
        for name, checksum in checksums.items():
            path = self.directory / name
            if not path.exists() or hashlib.sha256(_read_bytes(path)).hexdigest() != checksum:
                raise FileError(f"{path} is missing or was changed", remedy="start over with --fresh")
        self._forget_journal()
        return summary

    def _refuse_difference(self, there: dict[str, Any], fields: Iterable[str]) -> None:
        differences = [text for name in fields for text in _differences(name, there.get(name), self._run[name])]
        if differences:
            more = f" and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
            raise FileError(
                f"{self.directory} holds another run: {'; '.join(differences[:SHOWN])}{more}",
                remedy="choose another folder with --out, or replace what is there with --fresh",
            )

    # ---- a folder under way

    def journal(self, jobs: Iterable[str]) -> Journal:
        """Return the journal of these jobs, open for more; lines whose trace is missing or damaged are dropped."""
        journal = Journal(self._journal, self._run)
        self._refuse_difference(
            journal.run, ("format_version", "experiment", "settings", "adalook_version", "versions")
        )
        wanted = set(jobs)
        whole = [line for line in journal.lines if line["job"] in wanted and self._has_trace(line)]
        journal.damaged += len(journal.lines) - len(whole)
        journal.lines = whole
        journal.open()
        return journal

    def _has_trace(self, line: dict[str, Any]) -> bool:
        if line["trace_sha256"] is None:
            return True
        path = self._trace_path(line["job"])
        return path.exists() and hashlib.sha256(_read_bytes(path)).hexdigest() == line["trace_sha256"]

    def _trace_path(self, job: str) -> Path:
        return self._traces / f"{hashlib.sha256(job.encode()).hexdigest()[:24]}.npz"

    def keep(self, journal: Journal, job: str, result: JobResult, seconds: float) -> None:
        """Write one job's result to disk: its arrays first, then the line that vouches for them."""
        checksum = None
        if result.arrays:
            content = pack_arrays(result.arrays)
            checksum = hashlib.sha256(content).hexdigest()
            make_directory(self._traces)
            with atomic_write(self._trace_path(job)) as file:
                file.write(content)
        line = {"job": job, "record": result.record, "models": result.models, "trace_sha256": checksum}
        journal.append(line | {"seconds": round(seconds, 6)})

    def finish(self, journal: Journal) -> dict[str, Any]:
        """Turn the journal into the results, and return the summary."""
        lines = sorted(journal.lines, key=lambda line: str(line["job"]))
        models: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for line in lines:
            models |= line["models"]
            if line["trace_sha256"] is not None:
                path = self._trace_path(line["job"])
                arrays |= unpack_arrays(_read_bytes(path), path)
        contents = {"records.json": _records([line["record"] for line in lines])}
        if arrays:
            contents |= {"models.json": _pretty(models), "traces.npz": pack_arrays(arrays)}
        summary = self._run | {"jobs": len(lines)}
        summary["sha256"] = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        contents["times.json"] = _pretty({line["job"]: line["seconds"] for line in lines})
        contents[self._summary.name] = _pretty(summary)
        for name, content in contents.items():
            with atomic_write(self.directory / name) as file:
                file.write(content)
        self._forget_journal()
        return summary

    def _forget_journal(self) -> None:
        self._journal.unlink(missing_ok=True)
        shutil.rmtree(self._traces, ignore_errors=True)
        for rest in self.directory.glob(".adalook-*.tmp"):  # of files that a kill cut short
            rest.unlink(missing_ok=True)


def _records(records: list[dict[str, Any]]) -> bytes:
    """Return the records as JSON with one record per line: small, and readable with `head`."""
    return ('{"records": [\n' + ",\n".join(dumps(record) for record in records) + "\n]}\n").encode()


def _pretty(content: Any) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _differences(name: str, there: Any, here: Any) -> list[str]:
    """Return where two pieces of plain data differ, in words."""
    if there == here:
        return []
    if isinstance(there, dict) and isinstance(here, dict):
        return [text for key in sorted({*there, *here}) for text in _differences(key, there.get(key), here.get(key))]
    return [f"{name} is {json.dumps(there)} there and {json.dumps(here)} here"]


# ---- the journal


def dumps(content: Any) -> str:
    """Return JSON on one line, the same for the same content; numbers come back bit for bit."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Journal:
    """The lines of one run, open for more; leaving its context closes the file.

    `damaged` says how many lines had to be dropped when it was opened.
    """

    def __init__(self, path: Path, run: dict[str, Any]) -> None:
        self._path = path
        self.lines, self.damaged = _read(path) if path.exists() else ([], 0)
        self.run: dict[str, Any] = self.lines.pop(0)["run"] if self.lines else run
        """What is being run, according to the first line."""
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        """Open the file to append; afterwards it holds all good lines and nothing else."""
        with atomic_write(self._path) as file:
            for body in ({"run": self.run}, *self.lines):
                file.write(_line(body))
        try:
            # Without a buffer: what a full disk refused must not be tried again, and refused again, by close().
            self._file = open_to_append(self._path, buffering=0)
        except OSError as error:
            raise file_error("write", self._path, error) from error

    def append(self, body: dict[str, Any]) -> None:
        """Append a line, and return when it is safe on disk."""
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


def _write_all(file: IO[bytes], content: bytes) -> None:
    """Write all of the content, in several pieces if need be.

    When a disk fills up the system takes only a part; writing the next piece then raises the error that says why.
    """
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the intact lines of a journal, and the number of damaged ones."""
    try:
        raw = read_file(path).splitlines(keepends=True)
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
    """Return the content of a line of a journal; None if the line was torn or damaged."""
    try:
        body = parse_json(line)
        if not isinstance(body, dict):
            return None
        body.pop("sha256", None)
        return body if _line(body) == line else None  # also not if the newline is missing
    except ValueError:  # no JSON, or a number such as 1e999, which is none
        return None


def _read_bytes(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise file_error("read", path, error) from error
