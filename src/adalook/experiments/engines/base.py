"""The interface of engines, which run jobs somewhere and yield their results as they come, in any order."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from adalook import _validation as validation
from adalook.engines.session import ONE_THREAD as ONE_THREAD
from adalook.errors import EngineError as EngineError

MOST_WORKERS = 4096


@dataclass(frozen=True)
class JobResult:
    """The result of a job: plain data for JSON, and arrays if they were to be kept."""

    record: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
    """How to draw the models of the arrays, by key."""


class Job(Protocol):
    """Something to run, small enough to be sent to another process or machine."""

    @property
    def name(self) -> str:
        """A name that is unique within an experiment."""

    def run(self) -> JobResult:
        """Run it, and return the result."""


@dataclass(frozen=True)
class FinishedJob:
    """A job that is done, with its result."""

    job: str
    result: JobResult
    seconds: float


class JobEngine(Protocol):
    """Something that runs jobs; closing its generator early ends every worker."""

    def run(self, jobs: Sequence[Job]) -> Generator[FinishedJob]:
        """Yield every job as it is done."""


def check_workers(workers: int | None) -> None:
    """Raise `ArgumentError` for a number of workers that makes no sense; None leaves it to the engine."""
    if workers is not None:
        validation.integer(1, MOST_WORKERS).validate("workers", workers)


def run_timed(job: Job) -> FinishedJob:
    """Run one job in a worker, and return it with its result and its time."""
    began = time.perf_counter()
    result = job.run()
    return FinishedJob(job.name, result, time.perf_counter() - began)
