"""The usual engine: jobs in spawned processes, one per core unless told otherwise.

Each worker has a pipe of its own, so the parent knows which job it lost when a worker dies, and a worker whose parent
was killed reads the end of the pipe and goes too: no orphans.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from adalook.experiments.engines.base import ONE_THREAD, EngineError, Finished, check_workers, run_timed
from adalook.experiments.trial import Trial

MOST_TRIES = 2
"""A job whose worker died is run once more: the kernel may have been short of memory just then."""
GOODBYE_SECONDS = 5.0


@dataclass(frozen=True)
class Failure:
    """A job that raised, sent back in place of its outcome."""

    kind: str
    message: str
    details: str


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    job: Trial | None = None


class Processes:
    """Runs jobs in processes on this machine.

    Args:
        workers: how many; None for one per core that this process may use.
    """

    def __init__(self, workers: int | None = None) -> None:
        check_workers(workers)
        self.workers = available_cores() if workers is None else workers

    def run(self, jobs: Sequence[Trial]) -> Generator[Finished]:
        waiting, tries = deque(jobs), dict.fromkeys((job.name for job in jobs), 0)
        team: list[_Worker] = []
        try:
            while len(team) < min(self.workers, len(jobs)):
                team.append(_hire())
                _assign(team[-1], waiting, tries)
            while busy := [worker for worker in team if worker.job is not None]:
                ready = wait([worker.pipe for worker in busy])
                for worker in (worker for worker in busy if worker.pipe in ready):
                    answer = _answer(worker)
                    if answer is None:
                        team.remove(worker)
                        waiting.append(_lost_job(worker, tries))
                        team.append(_hire())
                        _assign(team[-1], waiting, tries)
                        continue
                    if isinstance(answer, Failure):
                        raise _as_error(answer, worker)
                    _assign(worker, waiting, tries)
                    yield answer
        finally:
            _dismiss(team)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- in the parent


def _hire() -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    with _birth():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _birth() -> Iterator[None]:
    """What a worker inherits: one thread, and no ear for Ctrl-C, which is the parent's to answer."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    can_block = hasattr(signal, "pthread_sigmask")
    if can_block:
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # starting it with the first worker would unblock Ctrl-C again
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _assign(worker: _Worker, waiting: deque[Trial], tries: dict[str, int]) -> None:
    """Give a worker its next job, if there is one."""
    worker.job = waiting.popleft() if waiting else None
    if worker.job is None:
        return
    tries[worker.job.name] += 1
    with suppress(OSError):  # it died: reading from it will tell
        worker.pipe.send(worker.job)


def _answer(worker: _Worker) -> Finished | Failure | None:
    """None if the worker died."""
    try:
        answer = worker.pipe.recv()
    except (EOFError, OSError):
        return None
    assert isinstance(answer, Finished | Failure)
    return answer


def _lost_job(worker: _Worker, tries: dict[str, int]) -> Trial:
    worker.process.join(GOODBYE_SECONDS)
    job = worker.job
    assert job is not None, "only busy workers are listened to"
    if tries[job.name] >= MOST_TRIES:
        raise EngineError(
            f"the worker of job {job.name} died {tries[job.name]} times, last with exit code {worker.process.exitcode}",
            remedy="what is finished is kept; if memory is short, run the same command with fewer --workers to go on",
        )
    return job


def _as_error(failure: Failure, worker: _Worker) -> BaseException:
    if failure.kind == KeyboardInterrupt.__name__:
        return KeyboardInterrupt()
    assert worker.job is not None
    error = EngineError(f"job {worker.job.name} failed", got=f"{failure.kind}: {failure.message}")
    error.add_note(failure.details)
    return error


def _dismiss(team: list[_Worker]) -> None:
    """Send everybody home at once: workers hold nothing that could get lost."""
    for worker in team:
        worker.pipe.close()
        worker.process.terminate()
    for worker in team:
        worker.process.join(GOODBYE_SECONDS)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()


# ---- in the worker


def _work(pipe: Connection) -> None:
    """Do jobs until the parent closes the pipe or is no more."""
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        answer: Finished | Failure
        try:
            answer = run_timed(job)
        except BaseException as error:
            answer = Failure(type(error).__name__, str(error), traceback.format_exc())
        try:
            pipe.send(answer)
        except OSError:
            return
