"""The folder of a learning experiment: one JSON file per finished run, and an index that says what belongs to it.

    experiment.json         settings, games, agents and how to draw them; which runs are there and which are missing
    runs/GAME--AGENT--SEED.json

A run counts once its file is there, so a killed experiment goes on with what is missing. See docs/results-format.md.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adalook import __version__
from adalook.experiments.engines.base import Engine
from adalook.experiments.learning.suite import AGENTS, RANDOM, LearningExperiment, Record, TrainingJob
from adalook.experiments.runner import Interrupted, sigterm_interrupts
from adalook.experiments.store import versions
from adalook.storage.files import atomic_write, make_directory
from adalook.storage.lock import DirectoryLock

FORMAT = "adalook learning experiment"
FORMAT_VERSION = 1
OVERHEAD = 1.3
"""How much longer a run takes than its budget, evaluations included, as long as none has been seen."""


class LearningRuns:
    """The records of a learning experiment in a folder."""

    def __init__(self, directory: Path, experiment: LearningExperiment) -> None:
        self.directory, self._runs, self._experiment = directory, directory / "runs", experiment
        self._jobs = experiment.jobs()

    def read(self, job: TrainingJob) -> Record | None:
        """Return the record of a finished job; None if there is none, or one of other settings."""
        path = self._runs / f"{job.name}.json"
        if not path.exists():
            return None
        record: Record = json.loads(path.read_text())
        return record if job.is_result(record) else None

    def missing(self) -> list[TrainingJob]:
        """Return the jobs that have no record yet."""
        return [job for job in self._jobs if self.read(job) is None]

    def keep(self, job: str, record: Record) -> None:
        """Make the record of a finished job safe, and bring the index up to date."""
        make_directory(self._runs)
        with atomic_write(self._runs / f"{job}.json") as file:
            file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        self.write_index()

    def forget(self) -> None:
        """Remove the records of all jobs."""
        for job in self._jobs:
            (self._runs / f"{job.name}.json").unlink(missing_ok=True)

    def write_index(self) -> None:
        """Write experiment.json, which is all that the report needs to know about the experiment."""
        missing = {job.name for job in self.missing()}
        suite, chosen = self._experiment.suite, self._experiment
        index = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "experiment": chosen.name,
            "adalook_version": __version__,
            "versions": versions(),
            "machine": machine(),
            "settings": {
                "games": list(chosen.games),
                "agents": list(chosen.agents),
                "seeds": chosen.seeds,
                "seconds": chosen.seconds,
            },
            "games": {name: {"final_episodes": suite.games[name].final_episodes} for name in chosen.games},
            "agents": {name: _about_agent(name) for name in AGENTS if name in chosen.agents},
            "runs": [job.name for job in self._jobs if job.name not in missing],
            "missing": [job.name for job in self._jobs if job.name in missing],
        }
        with atomic_write(self.directory / "experiment.json") as file:
            file.write((json.dumps(index, indent=1, ensure_ascii=False) + "\n").encode())


def _about_agent(name: str) -> dict[str, Any]:
    agent = AGENTS[name]
    return {"title": agent.title, "depth": agent.depth, **asdict(agent.style)}


def machine() -> dict[str, Any]:
    """Return what the times were measured on."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
    return {"cpu": cpu, "cores": os.cpu_count(), "date": datetime.datetime.now(datetime.UTC).date().isoformat()}


def reproduce_learning(
    experiment: LearningExperiment,
    directory: Path,
    engine: Engine,
    *,
    fresh: bool = False,
    progress: bool = False,
    on_record: Callable[[Record], None] = lambda record: None,
) -> list[TrainingJob]:
    """Run what is missing of a learning experiment; returns what is still missing, which is nothing.

    Args:
        experiment: what to run.
        directory: its folder; runs that are there and defined as today are kept.
        engine: where to run it.
        fresh: forget the runs of this experiment and start over.
        progress: show a bar with the time left on standard error.
        on_record: called with the record of each run, when it is safe on disk.

    Raises:
        FileError: another process is at work in the folder.
        Interrupted: Ctrl-C or SIGTERM; run the same again to go on.
    """
    make_directory(directory)
    jobs = experiment.jobs()
    with DirectoryLock(directory), sigterm_interrupts():
        runs = LearningRuns(directory, experiment)
        if fresh:
            runs.forget()
        missing = runs.missing()
        runs.write_index()
        workers = getattr(engine, "workers", None) or 1
        try:
            with _bar(experiment, missing, workers, progress) as advance, closing(engine.run(missing)) as results:
                for finished in results:
                    runs.keep(finished.job, finished.result.record)
                    advance(finished.result.record)
                    on_record(finished.result.record)
        except KeyboardInterrupt:
            runs.write_index()
            raise Interrupted(len(jobs) - len(runs.missing()), len(jobs), directory) from None
        return runs.missing()


@contextmanager
def _bar(
    experiment: LearningExperiment, missing: Sequence[TrainingJob], workers: int, show: bool
) -> Iterator[Callable[[Record], None]]:
    """Show a bar with the time left, by what runs took so far; yields what to call with each record."""
    if not show:
        yield lambda record: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    took: list[float] = []
    left = sum(job.agent != RANDOM for job in missing)
    total = len(experiment.jobs())

    def time_left() -> str:
        each = sum(took) / len(took) if took else OVERHEAD * experiment.seconds
        return f"about {left * each / workers / 60.0:,.0f} min left"

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=1) as bar:
        task = bar.add_task(experiment.name, total=total, completed=total - len(missing), left=time_left())

        def advance(record: Record) -> None:
            nonlocal left
            if record["agent"] != RANDOM:
                took.append(record["process_seconds"])
                left -= 1
            bar.update(task, advance=1, left=time_left())

        yield advance
