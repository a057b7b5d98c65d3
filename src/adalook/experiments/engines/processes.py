"""The default engine: a pool of spawned processes, one per core unless told otherwise.

Workers watch a pipe whose other end only the parent holds. When the parent closes it, or is killed, they end at once:
whatever happens, no process is left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from adalook.experiments.engines.base import (
    ONE_THREAD,
    EngineError,
    FinishedJob,
    Job,
    check_workers,
    run_timed,
)
from adalook.planning.threads import available_cores


class Processes:
    """An engine that runs jobs in processes on this machine.

    Args:
        workers: how many; None for one per core that this process may use.
    """

    def __init__(self, workers: int | None = None) -> None:
        check_workers(workers)
        self.workers = available_cores() if workers is None else workers

    def run(self, jobs: Sequence[Job]) -> Generator[FinishedJob]:
        """Yield every job as it is done; closing the generator ends the workers."""
        if not jobs:
            return
        context = multiprocessing.get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(min(self.workers, len(jobs)), context, _start_worker, (theirs,))
        waiting, running = deque(jobs), dict[Future[FinishedJob], str]()
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    job = waiting.popleft()
                    with _worker_surroundings():
                        running[pool.submit(run_timed, job)] = job.name
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                lost = sorted(running.values())
                for future in done:
                    yield _result(future, running.pop(future), lost)
        finally:
            ours.close()
            pool.shutdown(wait=True, cancel_futures=True)
            theirs.close()


def _result(future: Future[FinishedJob], job: str, running: list[str]) -> FinishedJob:
    """Return the result of a job, or raise `EngineError` if it failed or a worker died."""
    try:
        return future.result()
    except BrokenProcessPool:
        raise EngineError(
            f"a worker process died while it ran {' or '.join(running)}",
            remedy="what is finished is kept: run the same command to go on, with fewer --workers if memory is short",
        ) from None
    except Exception as error:
        failed = EngineError(f"job {job} failed", got=f"{type(error).__name__}: {error}")
        failed.add_note(str(error.__cause__ or ""))  # the traceback in the worker
        raise failed from error


@contextmanager
def _worker_surroundings() -> Iterator[None]:
    """Within this context new workers inherit a limit of one thread and a blocked Ctrl-C, which the parent answers."""
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


def _start_worker(parent: Connection) -> None:
    """Start the thread of a new worker that watches the parent."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """End this process when the other end of the pipe is closed, or its holder killed."""
    with suppress(EOFError, OSError):
        parent.recv_bytes()
    os._exit(1)
