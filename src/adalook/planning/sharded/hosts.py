"""The hosts of shards: this process, processes of this machine, or actors on Ray.

Hosts hold shards and answer requests. A request that is not answered was lost with its host, which has been replaced by
an empty one: whoever asked knows what the lost shards had been told, and tells it again. Which host holds which shard
has no influence on any answer.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, Protocol

from adalook.errors import AdalookError, ArgumentError, EngineError, shown
from adalook.planning import threads
from adalook.planning.sharded.blocks import BlockSource
from adalook.planning.sharded.shard import Shard

CLOSING_SECONDS = 5.0
WATCH_SECONDS = 1.0


class ShardError(EngineError):
    """The processes or machines that hold shards failed."""


class Request(NamedTuple):
    """A call of a shard's method."""

    method: str
    arguments: tuple[Any, ...] = ()


class ShardGroup:
    """The shards that one host holds, by their numbers."""

    def __init__(self, source: BlockSource, edges: Sequence[int]) -> None:
        self._source, self._edges = source, edges
        self._shards: dict[int, Shard] = {}

    def answer(self, requests: Mapping[int, Sequence[Request]]) -> dict[int, Any]:
        """Carry out the requests of each shard in turn, and return the answer to its last one.

        The request "build" makes the shard anew, and answers with its facts.
        """
        answers: dict[int, Any] = {}
        for k, calls in requests.items():
            for method, arguments in calls:
                if method == "build":
                    self._shards.pop(k, None)
                    self._shards[k] = Shard(self._source, range(self._edges[k], self._edges[k + 1]))
                    answers[k] = self._shards[k].facts
                else:
                    answers[k] = getattr(self._shards[k], method)(*arguments)
        return answers


class Hosts(ABC):
    """Processes, or machines, that hold shards."""

    def __init__(self) -> None:
        self.restarts = 0
        """Hosts that were lost and replaced."""
        self._lost: set[int] = set()

    @abstractmethod
    def ask(self, requests: Mapping[int, Sequence[Request]]) -> dict[int, Any]:
        """Return the answer of each shard to the last of its requests; shards without an answer are lost."""

    def take_lost(self) -> set[int]:
        """Return the shards, asked or not, that were lost with their hosts since this was last called."""
        lost, self._lost = self._lost, set()
        return lost

    @abstractmethod
    def close(self) -> None:
        """End what was started."""

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcessHosts(Hosts):
    """All shards in this process, one after the other."""

    def __init__(self, source: BlockSource, edges: Sequence[int]) -> None:
        super().__init__()
        self._group = ShardGroup(source, edges)

    def ask(self, requests: Mapping[int, Sequence[Request]]) -> dict[int, Any]:
        return self._group.answer(requests)

    def close(self) -> None:
        pass


class Failure(NamedTuple):
    """The answer of a host when a shard has raised."""

    error: AdalookError | None
    report: str


def raise_failure(failure: Failure) -> None:
    """Raise what a shard raised; anything that is no error of ours with its traceback."""
    if failure.error is not None:
        raise failure.error
    error = ShardError("a shard failed", got=failure.report.strip().rpartition("\n")[2])
    error.add_note(failure.report)
    raise error


def guarded_answer(group: ShardGroup, requests: Mapping[int, Sequence[Request]]) -> dict[int, Any] | Failure:
    """Return the answers, or what went wrong."""
    try:
        return group.answer(requests)
    except AdalookError as error:
        return Failure(error, traceback.format_exc())
    except Exception:
        return Failure(None, traceback.format_exc())


class _Worker(NamedTuple):
    """A process that holds shards."""

    process: BaseProcess
    pipe: Connection

    def stop(self) -> None:
        """End the process: the end of its pipe asks it to, and it is killed if that does not help."""
        with contextlib.suppress(OSError):
            self.pipe.close()
        self.process.join(CLOSING_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


class ProcessHosts(Hosts):
    """Shards in `count` processes on this machine; shard k lives in process k·count // shards."""

    def __init__(self, source: BlockSource, edges: Sequence[int], count: int) -> None:
        super().__init__()
        self._model = source, tuple(edges)
        shards = len(edges) - 1
        self._count = min(count, shards)
        self._owner = [k * self._count // shards for k in range(shards)]
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        try:
            for _ in range(self._count):
                self._workers.append(self._start())
        except BaseException:
            self.close()
            raise

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the current workers."""
        return [worker.process.pid or 0 for worker in self._workers]

    def ask(self, requests: Mapping[int, Sequence[Request]]) -> dict[int, Any]:
        waiting: dict[Connection, int] = {}
        for index, worker in enumerate(self._workers):
            own = {k: calls for k, calls in requests.items() if self._owner[k] == index}
            if own:
                with contextlib.suppress(OSError):  # a broken pipe fails again when the answer is received
                    worker.pipe.send(own)
                waiting[worker.pipe] = index
        answers: dict[int, Any] = {}
        failure: Failure | None = None
        while waiting:
            for ready in wait(list(waiting)):
                assert isinstance(ready, Connection)
                index = waiting.pop(ready)
                try:
                    answer = ready.recv()
                except (EOFError, OSError):
                    self._workers[index].stop()
                    self._workers[index] = self._start()
                    self.restarts += 1
                    self._lost |= {k for k, owner in enumerate(self._owner) if owner == index}
                    continue
                if isinstance(answer, Failure):
                    failure = answer
                else:
                    answers.update(answer)
        if failure is not None:
            raise_failure(failure)
        return answers

    def close(self) -> None:
        while self._workers:
            self._workers.pop().stop()

    def _start(self) -> _Worker:
        """Start one process, with its share of the cores."""
        ours, theirs = self._context.Pipe()
        cores = max(1, threads.available_cores() // self._count)
        arguments = (theirs, *self._model, os.getpid(), cores)
        process = self._context.Process(target=run_host, args=arguments, daemon=True, name="adalook shards")
        try:
            process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                "this model cannot be sent to other processes",
                expected="functions that are defined at the top of a module",
                got=error,
                remedy="put fn into a module of its own, or solve without an engine",
            ) from None
        theirs.close()  # only the worker has it now, so that its death ends the pipe
        return _Worker(process, ours)


def run_host(requests: Connection, source: BlockSource, edges: Sequence[int], parent: int, cores: int) -> None:
    """Answer requests until the pipe ends or the parent does; the entry point of a process."""
    os.environ.setdefault("ADALOOK_THREADS", str(cores))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the parent ends the pipe
    threading.Thread(target=_end_with, args=(parent,), daemon=True, name="adalook parent watch").start()
    group = ShardGroup(source, edges)
    with contextlib.suppress(EOFError, OSError):
        while True:
            requests.send(guarded_answer(group, requests.recv()))


def _end_with(parent: int) -> None:
    """End this process when its parent is another."""
    ended = threading.Event()
    while os.getppid() == parent:
        ended.wait(WATCH_SECONDS)
    os._exit(1)


class RayEngineSettings(Protocol):
    """The settings of `al.Ray` that matter for shards."""

    @property
    def actors(self) -> int:
        """Most actors that there may be."""

    @property
    def address(self) -> str | None:
        """Of a cluster; None starts a Ray here."""

    @property
    def cpus_per_actor(self) -> float:
        """Cores that a cluster sets aside for each actor."""

    @property
    def patience_seconds(self) -> float:
        """Seconds that another actor may take to start."""


def open_hosts(engine: Any, source: BlockSource, edges: Sequence[int]) -> Hosts:
    """Return the hosts that an engine stands for: None or `al.InProcess()`, `al.LocalProcesses(2)`, `al.Ray(2)`.

    Engines belong to learning, which stands on planning; here they are known by their settings.
    """
    if engine is not None and (isinstance(engine, type) or not is_dataclass(engine)):
        raise ArgumentError(
            "this is no engine", expected="al.LocalProcesses(actors=2), al.Ray(actors=2) or None", got=shown(engine)
        )
    if getattr(engine, "asynchronous", False):
        raise ArgumentError("shards are solved in rounds", expected="asynchronous=False", got=shown(engine))
    actors = getattr(engine, "actors", None)
    if actors is None:
        return InProcessHosts(source, edges)
    if hasattr(engine, "address"):
        from adalook.planning.sharded.ray_hosts import RayHosts

        settings: Any = engine
        return RayHosts(source, edges, settings)
    return ProcessHosts(source, edges, actors)
