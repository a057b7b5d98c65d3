"""Expansion by several processes: emulators hold Python's lock while they run, so threads would not help.

Each worker keeps the states it has made; only their numbers, keys, rewards and observations come back. A level is cut
into equal shares along the lines of who holds what, and a state travels, packed, only where a share cuts across. Shares
are handed out in parts, so that a worker whose processor is busy with something else is helped out by the others.

Answers do not depend on how many workers there are, nor on their health: every state is known here by the root and the
actions that lead to it, so those of a worker that dies are made again by the one that takes its place.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import multiprocessing
import os
import weakref
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

import numpy as np

from adalook._arrays import IntArray
from adalook.errors import AdalookError, ArgumentError
from adalook.search.workers.expander import Batch, InProcess, batch_size
from adalook.search.workers.load_balance import fair_shares
from adalook.search.workers.spawn_main import can_be_run_again, no_file_that_is_none
from adalook.search.workers.worker import Expand, Expanded, Failed, Keep, LoadState, Pack, main, shared_rows
from adalook.simulators.base import Simulator, State

MOST_DEATHS = 3
"""So many workers in a row may die without having answered anything."""
AT_ONCE = 2
"""Requests that a worker has at a time: one to work on, and one so that it need not wait for the next."""
PARTS, FEWEST_IN_PART = 8, 4
"""A share is handed out in so many parts, unless they were smaller than this: what a slow worker has not begun, another
can take over."""
CLOSING_SECONDS = 5.0


class WorkerError(AdalookError, RuntimeError):
    """Worker processes cannot do their work."""


def expander_for(sim: Simulator, workers: int) -> InProcess | Workers:
    """So many worker processes; none: expansion in this one. Either is closed by leaving its `with` block."""
    return InProcess(sim) if workers == 0 else Workers(sim, workers)


@dataclass(eq=False)
class _Process:
    """One worker process, and what is known about it."""

    process: BaseProcess
    pipe: Connection
    holds: set[int] = field(default_factory=set)
    """Numbers of the states it has, or will have when it has read what is put off."""
    put_off: list[LoadState | Keep] = field(default_factory=list)
    """Requests that have no answer: they travel with the next that has one, so that it is woken once and not often."""

    def hold(self, request: LoadState) -> None:
        """Give it a state."""
        self.put_off.append(request)
        self.holds.add(request.node)

    def keep(self, wanted: set[int]) -> None:
        """Let it forget all other states."""
        if not self.holds <= wanted:
            self.holds &= wanted
            self.put_off.append(Keep(sorted(self.holds)))

    def send(self, *requests: Expand | Pack) -> None:
        """Send what was put off, and requests that have an answer."""
        message, self.put_off = [*self.put_off, *requests], []
        # A pipe that is broken says so again when an answer is waited for, and that is where it is dealt with.
        with contextlib.suppress(OSError):
            self.pipe.send(message)

    def stop(self) -> None:
        """End it: the end of its pipe asks, and force follows if that is of no use."""
        with contextlib.suppress(OSError):
            self.pipe.close()
        self.process.join(CLOSING_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


@dataclass(frozen=True, eq=False)
class _Task:
    """Some positions of a level for one worker."""

    positions: IntArray
    half: int


class Workers:
    """An expander made of `count` processes. Use it in a `with` block, for as many searches as you like.

    Args:
        sim: each worker gets a twin of it.
        count: at least 1; one per processor core is a good number.

    As with everything that starts processes, scripts need the line `if __name__ == "__main__":` before their own work.
    """

    def __init__(self, sim: Simulator, count: int) -> None:
        if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
            raise ArgumentError("the number of workers is wrong", expected="a whole number >= 1", got=repr(count))
        if type(sim).__module__ == "__main__" and not can_be_run_again():
            raise WorkerError(
                f"workers cannot get at {type(sim).__name__}, which is defined in a script that is not a file",
                remedy="save the script, or put the class into a module",
            )
        self._sim = sim
        self._context = multiprocessing.get_context("spawn")
        self._rows = batch_size(sim)
        row_bytes = math.prod(sim.observation_shape) * sim.observation_dtype.itemsize
        # Raw arrays live in files that were unlinked as soon as they were made: no name, nothing to leave behind.
        self._memory = [self._context.RawArray(ctypes.c_char, 2 * self._rows * row_bytes) for _ in range(count)]
        self._observations = [shared_rows(memory, sim, self._rows) for memory in self._memory]
        self._processes: list[_Process] = []
        self._deaths = 0
        self._lineage = _Lineage()
        self._finalizer = weakref.finalize(self, _stop_all, self._processes)
        self._start_all()

    @property
    def count(self) -> int:
        return len(self._memory)

    @property
    def process_ids(self) -> list[int]:
        """Of the workers that serve now; one that dies is replaced by another when it is missed."""
        return [worker.process.pid or 0 for worker in self._processes]

    def load_roots(self, states: Sequence[State]) -> Sequence[int]:
        if not self._finalizer.alive:
            raise WorkerError("these workers were closed", remedy="search inside the 'with' block that made them")
        self.clear()
        self._start_all()
        return self._lineage.load_roots([self._sim.pack(state) for state in states])

    def keep(self, nodes: Sequence[int]) -> None:
        self._lineage.keep(nodes)
        wanted = set(nodes)
        for worker in self._processes:
            worker.keep(wanted)

    def clear(self) -> None:
        self._lineage = _Lineage()
        self.keep([])
        for worker in self._processes:
            if worker.put_off:  # at once: nobody knows when the next search comes
                worker.send()

    def close(self) -> None:
        """End all worker processes."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def expand(self, nodes: Sequence[int], leaves: bool = False) -> Generator[Batch, None, None]:
        children = self._lineage.number_children(nodes, self._sim.num_actions)
        running: list[deque[_Task]] = [deque() for _ in range(self.count)]
        try:
            queues = self._assign(nodes)
            for index in range(self.count):  # each its own; only then may one help another
                self._feed(index, nodes, children, queues[index : index + 1], running[index], leaves)
            while any(running):
                for index in self._ready(running):
                    answer = self._receive(index)
                    if answer is None:  # a dead worker: its replacement does the same again
                        queues[index].extendleft(task.positions for task in reversed(running[index]))
                        running[index].clear()
                    else:
                        task = running[index].popleft()
                        if not leaves:
                            self._processes[index].holds.update(children[task.positions].tolist())
                        yield self._batch(index, task, children, answer)
                    mine_first = [queues[index], *queues[:index], *queues[index + 1 :]]
                    self._feed(index, nodes, children, mine_first, running[index], leaves)
        except GeneratorExit:  # the caller has seen enough
            self._drain(running)
        except BaseException:  # who knows what is still in the pipes: the next search begins with new processes
            _stop_all(self._processes)
            raise

    def _drain(self, running: list[deque[_Task]]) -> None:
        """Read what is under way, lest it is taken for the answer to something else."""
        try:
            for index, tasks in enumerate(running):
                for _ in tasks:
                    if self._receive(index) is None:
                        break
        except WorkerError:  # nobody waits for that answer any more
            _stop_all(self._processes)
        except BaseException:
            _stop_all(self._processes)
            raise

    def _assign(self, nodes: Sequence[int]) -> list[deque[IntArray]]:
        """Give every position of a level to a worker, and every worker the states it needs for that."""
        held = np.array([self._holder(node) for node in nodes])
        queues: list[deque[IntArray]] = []
        for index, share in enumerate(fair_shares(held, self.count, self._sim.num_actions)):
            self._move(index, {nodes[place] for place in (share // self._sim.num_actions).tolist()})
            size = min(self._rows, max(FEWEST_IN_PART, -(-len(share) // PARTS)))
            cuts = range(size, len(share), size)
            queues.append(deque(part for part in np.split(share, cuts) if len(part)))
        return queues

    def _holder(self, node: int) -> int:
        """Which worker has a state; the number of workers if none has."""
        return next((i for i, worker in enumerate(self._processes) if node in worker.holds), self.count)

    def _move(self, to: int, nodes: set[int]) -> None:
        """Copy states to a worker from those that have them; what nobody has is made again when it is needed."""
        missing = nodes - self._processes[to].holds
        for index in range(self.count):
            found = sorted(missing & self._processes[index].holds)
            if not found:
                continue
            self._processes[index].send(Pack(found))
            packed = self._receive(index)
            for node, content in zip(found, packed or (), strict=False):
                self._processes[to].hold(LoadState(node, content))

    def _feed(
        self,
        index: int,
        nodes: Sequence[int],
        children: IntArray,
        queues: list[deque[IntArray]],
        running: deque[_Task],
        leaves: bool,
    ) -> None:
        """Hand a worker its next tasks, into whichever half of its memory is free; `queues` has its own first.

        One that has done its own goes on with the last of whoever has most left. It makes the states for that again,
        which costs a step or a few for each and disturbs nobody.
        """
        count, worker = self._sim.num_actions, self._processes[index]
        while len(running) < AT_ONCE and any(queues):
            positions = queues[0].popleft() if queues[0] else max(queues, key=len).pop()
            task = _Task(positions, 1 - running[-1].half if running else 0)
            parents = [nodes[place] for place in (positions // count).tolist()]
            for node in sorted(set(parents) - worker.holds):
                worker.hold(self._lineage.recipe(node))
            actions, numbers = (positions % count).tolist(), children[positions].tolist()
            worker.send(Expand(parents, actions, numbers, task.half, leaves))
            running.append(task)

    def _batch(self, index: int, task: _Task, children: IntArray, answer: Expanded) -> Batch:
        rows = self._observations[index][task.half, : len(task.positions)]
        handles = children[task.positions].tolist()
        return Batch(task.positions, handles, rows, answer.rewards, answer.terminated, answer.keys)

    def _ready(self, running: list[deque[_Task]]) -> list[int]:
        pipes: dict[Any, int] = {self._processes[i].pipe: i for i, tasks in enumerate(running) if tasks}
        return sorted(pipes[pipe] for pipe in wait(list(pipes)))

    def _start_all(self) -> None:
        """Start what does not run: all at first, and all again after a search has failed."""
        try:
            for index in range(len(self._processes), self.count):
                self._processes.append(self._start(index))
        except BaseException:
            self.close()
            raise

    def _start(self, index: int) -> _Process:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._sim, self._memory[index], self._rows, os.getpid())
        process = self._context.Process(target=main, args=arguments, daemon=True, name=f"adalook worker {index}")
        with no_file_that_is_none():
            process.start()
        theirs.close()  # only the worker has it now, so that its death ends the pipe
        return _Process(process, ours)

    def _receive(self, index: int) -> Any:
        """The next answer of a worker; None if it died instead, and then another one has taken its place."""
        try:
            answer = self._processes[index].pipe.recv()
        except (EOFError, OSError):
            self._replace(index)
            return None
        if isinstance(answer, Failed):
            raise WorkerError(f"the simulator failed in a worker process:\n{answer.report.rstrip()}\n")
        self._deaths = 0
        return answer

    def _replace(self, index: int) -> None:
        dead = self._processes[index]
        dead.process.join(CLOSING_SECONDS)
        code = dead.process.exitcode
        self._deaths += 1
        if self._deaths > MOST_DEATHS:
            self._deaths = 0
            raise WorkerError(
                f"{MOST_DEATHS + 1} worker processes in a row have died",
                got=f"exit code {code}",
                remedy="a script that uses workers needs 'if __name__ == \"__main__\":' before its own work; else look "
                "at what the simulator does, or free some memory",
            )
        dead.stop()
        self._processes[index] = self._start(index)


class _Lineage:
    """Where every state comes from: enough to make it again."""

    def __init__(self) -> None:
        self._roots: dict[int, bytes] = {}
        self._parents: dict[int, tuple[int, int]] = {}
        """By state: the state that it was made from, and the action."""
        self._fresh: tuple[Sequence[int], int, int] = ((), 1, 0)
        """The last expansion: its nodes, the number of actions, the number of the first child."""
        self._next = 0

    def load_roots(self, packed: Sequence[bytes]) -> list[int]:
        self._roots = dict(enumerate(packed))
        self._next = len(packed)
        return list(self._roots)

    def number_children(self, nodes: Sequence[int], num_actions: int) -> IntArray:
        """(nodes · num_actions,) numbers for the children, by position."""
        first = self._next
        self._next += len(nodes) * num_actions
        self._fresh = (nodes, num_actions, first)
        return np.arange(first, self._next)

    def keep(self, children: Sequence[int]) -> None:
        """These, of the last expansion, may be asked for."""
        nodes, num_actions, first = self._fresh
        for child in children:
            place, action = divmod(child - first, num_actions)
            self._parents[child] = (nodes[place], action)

    def recipe(self, node: int) -> LoadState:
        """How to make a state again."""
        actions: list[int] = []
        place = node
        while place in self._parents:
            place, action = self._parents[place]
            actions.append(action)
        return LoadState(node, self._roots[place], tuple(reversed(actions)))


def _stop_all(processes: list[_Process]) -> None:
    for worker in processes:
        with contextlib.suppress(OSError):
            worker.pipe.close()  # all of them end at the same time
    for worker in processes:
        worker.stop()
    processes.clear()
