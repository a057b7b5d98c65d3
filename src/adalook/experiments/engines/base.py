"""Engines run the jobs of an experiment somewhere and hand back outcomes as they come, in any order."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from adalook.errors import AdalookError, ArgumentError
from adalook.experiments.trial import Trial, TrialResult, run_trial

THREAD_COUNTS = ("ADALOOK_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREAD_COUNTS, "1")
"""Environment of a worker: parallel are the jobs, and results must not depend on the number of threads."""
MOST_WORKERS = 4096


class EngineError(AdalookError, RuntimeError):
    """Workers failed; what was finished before is kept."""


@dataclass(frozen=True)
class Finished:
    """A job that is done."""

    job: str
    outcome: TrialResult
    seconds: float


class Engine(Protocol):
    """Runs jobs. Whoever stops early closes the generator, and every worker is gone."""

    def run(self, jobs: Sequence[Trial]) -> Generator[Finished]: ...


def check_workers(workers: int | None) -> None:
    """Refuse a number of workers that makes no sense; None leaves it to the engine."""
    whole = isinstance(workers, int) and not isinstance(workers, bool)
    if workers is not None and not (whole and 1 <= workers <= MOST_WORKERS):
        raise ArgumentError("workers is wrong", expected=f"a whole number 1..{MOST_WORKERS}", got=repr(workers))


def run_timed(trial: Trial) -> Finished:
    """One job, in a worker."""
    began = time.perf_counter()
    outcome = run_trial(trial)
    return Finished(trial.name, outcome, time.perf_counter() - began)
