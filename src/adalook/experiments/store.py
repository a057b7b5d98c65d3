"""The folder of an experiment: see docs/results-format.md.

`experiment.json` is written last, so its presence means that all is there. Until then the journal holds what is done.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from adalook import __version__
from adalook.errors import FileError
from adalook.experiments import archive
from adalook.experiments.engines.base import JobResult
from adalook.experiments.journal import Journal, dumps
from adalook.storage.files import atomic_write, file_error, make_directory

FORMAT = "adalook experiment"
FORMAT_VERSION = 2

RESULTS = ("records.json", "models.json", "traces.npz", "times.json")
SHOWN = 3
"""Differences named in a complaint."""


def versions() -> dict[str, str]:
    """What results depend on, next to the processor and how these libraries were built."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {
        "python": platform.python_version(),
        **packages,
        "platform": f"{platform.system()} {platform.machine()}",
    }


class Store:
    """One experiment's folder.

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
        """Take away results and journal; the summary goes first, so that half a folder never looks whole."""
        try:
            for name in (self._summary.name, *RESULTS, self._journal.name):
                (self.directory / name).unlink(missing_ok=True)
            if self._traces.exists():
                shutil.rmtree(self._traces)
        except OSError as error:
            raise file_error("clear", self.directory, error) from error

    # ---- a finished folder

    def finished(self) -> dict[str, Any] | None:
        """The summary if this very experiment is done here; raises if another one is, or if files are damaged."""
        if not self._summary.exists():
            return None
        try:
            summary = json.loads(archive.read_bytes(self._summary))
            if not isinstance(summary, dict) or summary["format"] != FORMAT:
                raise ValueError("not a summary of ours")
            checksums: dict[str, str] = dict(summary["sha256"])
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{self._summary} is damaged", got=error, remedy="start over with --fresh") from None
        self._refuse_difference(summary, ("format_version", "experiment", "settings"))
        for name, checksum in checksums.items():
            path = self.directory / name
            if not path.exists() or hashlib.sha256(archive.read_bytes(path)).hexdigest() != checksum:
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
        """What is done so far of these jobs, open for more; lines whose trace is missing or damaged are dropped."""
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
        return path.exists() and hashlib.sha256(archive.read_bytes(path)).hexdigest() == line["trace_sha256"]

    def _trace_path(self, job: str) -> Path:
        return self._traces / f"{hashlib.sha256(job.encode()).hexdigest()[:24]}.npz"

    def keep(self, journal: Journal, job: str, result: JobResult, seconds: float) -> None:
        """Make one job's result safe: its arrays first, then the line that vouches for them."""
        checksum = None
        if result.arrays:
            content = archive.packed(result.arrays)
            checksum = hashlib.sha256(content).hexdigest()
            make_directory(self._traces)
            with atomic_write(self._trace_path(job)) as file:
                file.write(content)
        line = {"job": job, "record": result.record, "models": result.models, "trace_sha256": checksum}
        journal.append(line | {"seconds": round(seconds, 6)})

    def finish(self, journal: Journal) -> dict[str, Any]:
        """Turn the journal into the results; returns the summary."""
        lines = sorted(journal.lines, key=lambda line: str(line["job"]))
        models: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for line in lines:
            models |= line["models"]
            if line["trace_sha256"] is not None:
                path = self._trace_path(line["job"])
                arrays |= archive.unpacked(archive.read_bytes(path), path)
        contents = {"records.json": _records([line["record"] for line in lines])}
        if arrays:
            contents |= {"models.json": _pretty(models), "traces.npz": archive.packed(arrays)}
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
    """One record per line: small, and readable with `head`."""
    return ('{"records": [\n' + ",\n".join(dumps(record) for record in records) + "\n]}\n").encode()


def _pretty(content: Any) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _differences(name: str, there: Any, here: Any) -> list[str]:
    """Where two pieces of plain data differ, in words."""
    if there == here:
        return []
    if isinstance(there, dict) and isinstance(here, dict):
        return [text for key in sorted({*there, *here}) for text in _differences(key, there.get(key), here.get(key))]
    return [f"{name} is {json.dumps(there)} there and {json.dumps(here)} here"]
