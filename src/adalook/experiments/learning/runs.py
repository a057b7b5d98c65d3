"""The folder of a learning experiment: one JSON file per finished run, and an index that says what belongs to it.

    experiment.json         settings, games, agents and how to draw them; which runs are there and which are missing
    runs/GAME--AGENT--SEED.json
    unfinished/GAME--AGENT--SEED/        checkpoints of a run that is under way
    agents/GAME--AGENT--SEED/            the trained agent, if agents are kept

A run counts once its file is there, so a killed experiment goes on with what is missing, and runs that were under way
from their last checkpoints. The plan of a folder only grows: it holds every run that was ever asked for, and every one
that is there. See docs/results-format.md.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import platform
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from adalook import __version__
from adalook._interrupts import SignalGuard
from adalook.errors import FileError
from adalook.experiments.engines.base import JobEngine
from adalook.experiments.learning.suite import AGENTS, RANDOM, JsonDict, LearningExperiment, TrainingJob
from adalook.experiments.runner import Interrupted
from adalook.experiments.store import versions
from adalook.storage.documents import parse_json
from adalook.storage.files import atomic_write, make_directory, read_file
from adalook.storage.lock import DirectoryLock

FORMAT = "adalook learning experiment"
FORMAT_VERSION = 1
INDEX, UNFINISHED = "experiment.json", "unfinished"
OVERHEAD = 1.3
"""How much longer a run takes than its budget, evaluations included, as long as none has been seen."""


class LearningRuns:
    """The records of a learning experiment in a folder."""

    def __init__(self, directory: Path, experiment: LearningExperiment) -> None:
        self.directory, self._runs, self._experiment = directory, directory / "runs", experiment
        self._jobs = experiment.jobs()

    def read(self, job: TrainingJob) -> JsonDict | None:
        """Return the record of a finished job; None if there is none, a damaged one, or one of other settings."""
        try:
            record = parse_json(read_file(self._runs / f"{job.name}.json"))
        except (FileNotFoundError, ValueError):
            return None
        return record if isinstance(record, dict) and job.is_result(record) else None

    def missing(self) -> list[TrainingJob]:
        """Return the jobs that have no record yet."""
        return [job for job in self._jobs if self.read(job) is None]

    def with_folders(self, job: TrainingJob, keep_agent: bool) -> TrainingJob:
        """Return a job that knows where its checkpoints are, and where its agent goes if that is kept."""
        if job.agent == RANDOM:
            return job
        place = self.directory.resolve()  # a worker may have another current folder
        agent_folder = place / "agents" / job.name if keep_agent else None
        return replace(job, folder=place / UNFINISHED / job.name, agent_folder=agent_folder)

    def keep(self, job: str, record: JsonDict) -> None:
        """Make the record of a finished job safe, and bring the index up to date."""
        make_directory(self._runs)
        with atomic_write(self._runs / f"{job}.json") as file:
            file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        shutil.rmtree(self.directory / UNFINISHED / job, ignore_errors=True)
        with contextlib.suppress(OSError):  # others are under way
            (self.directory / UNFINISHED).rmdir()
        self.write_index()

    def forget(self) -> None:
        """Remove the records of all jobs, and the index with the plan."""
        for job in self._jobs:
            (self._runs / f"{job.name}.json").unlink(missing_ok=True)
            shutil.rmtree(self.directory / UNFINISHED / job.name, ignore_errors=True)
        (self.directory / INDEX).unlink(missing_ok=True)

    def refuse_other_budget(self) -> None:
        """Raise if the folder's runs trained for another time: they would be replaced one by one, and never compared.

        Raises:
            FileError: there are such runs.
        """
        mine = self._experiment
        settings = self._read_index().get("settings", {})
        seconds, steps = settings.get("seconds", mine.seconds), settings.get("steps")
        if settings and (seconds, steps) != (mine.seconds, mine.steps) and any(self._runs.glob("*.json")):
            raise FileError(
                f"{self.directory} holds runs of another length",
                expected=_budget(seconds, steps),
                got=_budget(mine.seconds, mine.steps),
                remedy="choose another directory with --out, or replace these runs with --fresh",
            )

    def plan(self) -> list[TrainingJob]:
        """Return the jobs that this experiment or an earlier one asked for, and those that have a file."""
        index = self._read_index()
        names = [*index.get("runs", ()), *index.get("missing", ()), *(path.stem for path in self._runs.glob("*.json"))]
        jobs = {job.name: job for job in self._jobs}
        for name in names:
            job = self._experiment.job(name)
            if job is not None:
                jobs.setdefault(name, job)
        return sorted(jobs.values(), key=_place_in_plan)

    def write_index(self) -> None:
        """Write experiment.json, which is all that the report needs to know about the experiment."""
        plan = self.plan()
        missing = {job.name for job in plan if self.read(job) is None}
        games = {job.game.name: {"final_episodes": job.game.final_episodes} for job in plan}
        agents = [name for name in AGENTS if any(job.agent == name for job in plan)]
        runs = [job.name for job in plan if job.name not in missing]
        index = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "experiment": self._experiment.name,
            **self._origin(runs),
            "settings": {
                "games": list(games),
                "agents": agents,
                "seeds": 1 + max(job.seed for job in plan),
                "seconds": self._experiment.seconds,
                **({} if self._experiment.steps is None else {"steps": self._experiment.steps}),
            },
            "games": games,
            "agents": {name: _about_agent(name) for name in agents},
            "runs": runs,
            "missing": [job.name for job in plan if job.name in missing],
            "outdated": self._digests(missing),
        }
        with atomic_write(self.directory / INDEX) as file:
            file.write((json.dumps(index, indent=1, ensure_ascii=False) + "\n").encode())

    def _origin(self, runs: list[str]) -> JsonDict:
        """Return what the runs were made with and when: as it was written, if none has come since."""
        origin = {"adalook_version": __version__, "versions": versions(), "machine": machine()}
        known = self._read_index()
        nothing_new = known.get("runs") == runs and known.keys() >= origin.keys()
        return {name: known[name] for name in origin} if nothing_new else origin

    def _read_index(self) -> JsonDict:
        """Return the index as it was written last; nothing if there is none that can be read."""
        try:
            index = parse_json(read_file(self.directory / INDEX))
        except (FileNotFoundError, ValueError):
            return {}
        return index if isinstance(index, dict) else {}

    def _digests(self, names: set[str]) -> dict[str, str]:
        """Return the SHA-256 of the files that there are under these names."""
        paths = [path for name in sorted(names) if (path := self._runs / f"{name}.json").exists()]
        return {path.stem: hashlib.sha256(read_file(path)).hexdigest() for path in paths}


def _budget(seconds: float, steps: int | None) -> str:
    return f"{seconds:g} s of processor time each" if steps is None else f"{steps:,} steps each"


def _place_in_plan(job: TrainingJob) -> tuple[Any, ...]:
    """Order jobs as an experiment does: random play first, then by seed, game and agent."""
    games = list(job.suite.games)
    place = games.index(job.game.name) if job.game.name in games else len(games)
    game, agents = (place, job.game.name), list(AGENTS)
    return (-1, game, 0) if job.agent == RANDOM else (job.seed, game, agents.index(job.agent))


def _about_agent(name: str) -> dict[str, Any]:
    agent = AGENTS[name]
    return {"title": agent.title, "depth": agent.depth, "usual": agent.by_default, **asdict(agent.style)}


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
    engine: JobEngine,
    *,
    fresh: bool = False,
    keep_agents: bool = False,
    progress: bool = False,
    on_record: Callable[[JsonDict, str], None] = lambda record, left: None,
) -> int:
    """Run what is missing of a learning experiment, and return how many of its runs were there already.

    Args:
        experiment: what to run.
        directory: its folder; runs that are there and defined as today are kept.
        engine: where to run it.
        fresh: forget the runs of this experiment and start over.
        keep_agents: export every trained agent, too.
        progress: show a bar with the time left on standard error.
        on_record: called with the record of each run, when it is safe on disk, and with the time left in words.

    Raises:
        FileError: another process is at work in the folder, or its runs have another budget.
        Interrupted: Ctrl-C or SIGTERM; run the same again to go on.
    """
    make_directory(directory)
    jobs = experiment.jobs()
    with DirectoryLock(directory), SignalGuard([signal.SIGTERM], raises=KeyboardInterrupt):
        runs = LearningRuns(directory, experiment)
        if fresh:
            runs.forget()
        runs.refuse_other_budget()
        missing = [runs.with_folders(job, keep_agents) for job in runs.missing()]
        runs.write_index()
        time_left = TimeLeft(experiment.seconds, missing, engine)
        try:
            with _bar(experiment, missing, time_left, progress) as advance, closing(engine.run(missing)) as results:
                for finished in results:
                    record = finished.result.record
                    runs.keep(finished.job, record)
                    time_left.add(record)
                    advance()
                    on_record(record, str(time_left))
        except KeyboardInterrupt:
            runs.write_index()
            raise Interrupted(len(jobs) - len(runs.missing()), len(jobs), directory) from None
        return len(jobs) - len(missing)


class TimeLeft:
    """The time that the missing runs will take, by what finished ones took; its text says it in minutes."""

    def __init__(self, seconds: float, missing: Sequence[TrainingJob], engine: JobEngine) -> None:
        self._seconds, self._workers = seconds, getattr(engine, "workers", None) or 1
        self._left = sum(job.agent != RANDOM for job in missing)
        self._took: list[float] = []

    def add(self, record: JsonDict) -> None:
        """Count a run as finished."""
        if record["agent"] != RANDOM:
            self._took.append(record["process_seconds"])
            self._left -= 1

    def __str__(self) -> str:
        if not self._took and not self._seconds:
            return f"{self._left} runs left"
        each = sum(self._took) / len(self._took) if self._took else OVERHEAD * self._seconds
        return f"about {self._left * each / self._workers / 60.0:,.0f} min left"


@contextmanager
def _bar(
    experiment: LearningExperiment, missing: Sequence[TrainingJob], time_left: TimeLeft, show: bool
) -> Iterator[Callable[[], None]]:
    """Show a bar with the time left; yields what to call for each finished run."""
    if not show:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    total = len(experiment.jobs())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=1) as bar:
        task = bar.add_task(experiment.name, total=total, completed=total - len(missing), left=str(time_left))
        yield lambda: bar.update(task, advance=1, left=str(time_left))
