"""Run a planning experiment into its folder: what is done is kept, and only what is missing is run."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from adalook._interrupts import SignalGuard
from adalook.experiments.engines.base import JobEngine
from adalook.experiments.store import Journal, Store
from adalook.experiments.trial import Trial
from adalook.storage.files import make_directory
from adalook.storage.lock import DirectoryLock


class ExperimentSpec(Protocol):
    """An experiment, a frozen dataclass: its fields are the settings, its jobs are what to run."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str: ...

    def jobs(self) -> list[Trial]: ...


@dataclass(frozen=True)
class RunSummary:
    """The summary of one call of `reproduce`."""

    directory: Path
    jobs: int
    found: int
    """Jobs that were done before."""
    redone: int
    """Jobs that had to be run again because the journal was torn or damaged there."""
    seconds: float
    summary: dict[str, Any]
    """What `experiment.json` says."""

    @property
    def was_finished(self) -> bool:
        """Whether there was nothing to do."""
        return self.redone == 0 and self.found == self.jobs

    @property
    def sentence(self) -> str:
        """The summary in a sentence."""
        if self.was_finished:
            by = self.summary["adalook_version"]
            return f"{self.directory}: {self.jobs} jobs were done already, by adalook {by}; --fresh runs them again"
        parts = [f"{self.directory}: {self.jobs} jobs done"]
        if self.found:
            parts.append(f"{self.found} of them found done")
        if self.redone:
            parts.append(f"{self.redone} run again because the journal was torn or damaged there")
        megabytes = sum(path.stat().st_size for path in self.directory.iterdir()) / 1e6
        return f"{', '.join(parts)}, in {self.seconds:.1f} s; {megabytes:.1f} MB"


class Interrupted(KeyboardInterrupt):
    """Raised by Ctrl-C and SIGTERM; everything that was finished is kept."""

    def __init__(self, done: int, jobs: int, directory: Path) -> None:
        super().__init__(f"{done} of {jobs} jobs are done and kept in {directory}")


def reproduce(
    experiment: ExperimentSpec, directory: Path, engine: JobEngine, *, fresh: bool = False, progress: bool = False
) -> RunSummary:
    """Run what is missing of an experiment and write its results.

    Args:
        experiment: what to run.
        directory: its folder; one that holds part of this experiment is completed, a finished one is left as it is.
        engine: where to run it. The results do not depend on it.
        fresh: forget what is there and start over.
        progress: show a bar with the time left on standard error.

    Raises:
        FileError: the folder holds an experiment with other settings, or another run is at work in it.
        Interrupted: Ctrl-C; run the same again to go on.
    """
    began = time.perf_counter()
    jobs = experiment.jobs()
    store = Store(directory, experiment.name, asdict(experiment), group_styles(jobs))
    make_directory(directory)
    with DirectoryLock(directory), SignalGuard([signal.SIGTERM], raises=KeyboardInterrupt):
        if fresh:
            store.clear()
        summary = store.finished()
        if summary is not None:
            return RunSummary(directory, len(jobs), len(jobs), 0, time.perf_counter() - began, summary)
        with store.journal(job.name for job in jobs) as journal:
            found, redone = len(journal.lines), journal.damaged
            _run_missing(store, journal, jobs, engine, progress)
            summary = store.finish(journal)
    return RunSummary(directory, len(jobs), found, redone, time.perf_counter() - began, summary)


def group_styles(jobs: Iterable[Trial]) -> dict[str, dict[str, str]]:
    """Return how figures draw the groups of some jobs: the paper's first, otherwise as they come."""
    groups = sorted({job.group: None for job in jobs}, key=lambda group: not group.in_paper)
    names = ("title", "description", "colour", "marker")
    return {group.name: {name: getattr(group, name) for name in names} for group in groups}


def _run_missing(store: Store, journal: Journal, jobs: list[Trial], engine: JobEngine, progress: bool) -> None:
    done = {line["job"] for line in journal.lines}
    missing = [job for job in jobs if job.name not in done]
    if not missing:
        return
    try:
        with _bar(jobs, len(done), progress) as advance, closing(engine.run(missing)) as results:
            for finished in results:
                store.keep(journal, finished.job, finished.result, finished.seconds)
                advance()
    except KeyboardInterrupt:
        raise Interrupted(len(journal.lines), len(jobs), store.directory) from None


@contextmanager
def _bar(jobs: list[Trial], done: int, show: bool) -> Iterator[Callable[[], None]]:
    """Show a progress bar with the time left; yields what to call for each finished job."""
    if not show:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("left"), console=Console(stderr=True)) as bar:
        task = bar.add_task(jobs[0].name.split("/")[0] if jobs else "", total=len(jobs), completed=done)
        yield lambda: bar.advance(task)
