"""An expander made of worker processes: emulators hold Python's lock while they run, so threads would not help.

Each worker keeps the states it has made; only their ids, keys, rewards and observations come back. Load balance: a
level is cut into equal shares so that most of what a worker gets it holds already, and a state is sent, packed, only
where a cut demands it. Shares are handed out in parts, so that a slow worker is helped by the others.

Answers do not depend on how many workers there are, nor on whether some die: every state is known here by its root and
the actions that lead to it, so the states of a worker that dies are made again by the one that replaces it.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import time
import weakref
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from adalook._arrays import IntArray
from adalook._validation import integer
from adalook.engines.base import MOST_ACTORS, HostFailed, HostLost
from adalook.engines.processes import ProcessHosts, spawn_can_import_main
from adalook.errors import AdalookError, SimulatorError
from adalook.search.workers.base import (
    Expander,
    ExpansionBatch,
    ExpansionTimeout,
    NodeSeeds,
    batch_size,
    check_batch,
)
from adalook.search.workers.worker import Expand, Expanded, Keep, LoadState, NodeHost, Pack, shared_rows
from adalook.simulators.base import Simulator, State

MAX_DEATHS = 3
"""So many workers in a row may die without having answered anything."""
MAX_RUNNING = 2
"""Tasks that a worker has at a time: one to work on, and one so that it need not wait for the next."""
PARTS, MIN_PART_SIZE = 8, 4
"""A share is handed out in so many parts of at least this size: what a slow worker has not begun, another can take."""
IMBALANCE = 0.05
"""A share may be larger than the others by this fraction if that saves sending a state."""
DRAIN_SECONDS = 2.0
"""How long answers are waited for that nobody needs any more; after that workers are replaced."""


class WorkerError(AdalookError, RuntimeError):
    """Raised when worker processes cannot do their work."""


@dataclass(eq=False)
class _Worker:
    """One worker process as its parent sees it."""

    holds: set[int] = field(default_factory=set)
    """Ids of the states it has, or will have when it has read what is deferred."""
    deferred: list[LoadState | Keep] = field(default_factory=list)
    """Requests without an answer: they travel with the next that has one, so that the worker is woken once."""

    def load(self, request: LoadState) -> None:
        """Give the worker a state."""
        self.deferred.append(request)
        self.holds.add(request.node)

    def keep(self, wanted: set[int]) -> None:
        """Let the worker drop all other states."""
        if not self.holds <= wanted:
            self.holds &= wanted
            self.deferred.append(Keep(sorted(self.holds)))


@dataclass(frozen=True, eq=False)
class _Task:
    """Some positions of a level, given to one worker."""

    positions: IntArray
    half: int
    """Of the worker's shared memory, for the observations."""


@dataclass(frozen=True, eq=False)
class _Expansion:
    """One level while it is expanded by W workers."""

    nodes: Sequence[int]
    """(n,) ids of the nodes"""
    children: IntArray
    """(n·A·K,) ids of the children, by position"""
    leaves: bool
    queues: list[deque[IntArray]]
    """(W,) the parts of each worker's share that are not handed out yet"""
    running: list[deque[_Task]]
    """(W,) what each worker has been given and has not answered"""
    seeds: NodeSeeds | None
    """(n, K) of the futures to draw in each node, if any are"""
    count: int
    """A·K, the children of each node"""


class WorkerPool(Expander):
    """An expander made of `count` worker processes. Use it in a `with` block, for as many searches as you like.

    Args:
        sim: each worker gets a clone of it.
        count: at least 1; one per processor core is a good number.

    As with everything that starts processes, scripts need the line `if __name__ == "__main__":` before their own work.
    """

    def __init__(self, sim: Simulator, count: int) -> None:
        count = integer(min=1, max=MOST_ACTORS).validate("the number of workers", count)
        if type(sim).__module__ == "__main__" and not spawn_can_import_main():
            raise WorkerError(
                f"workers cannot import {type(sim).__name__}, which is defined in a script that is not a file",
                remedy="save the script, or put the class into a module",
            )
        self._sim = sim
        self._rows = batch_size(sim)
        row_bytes = math.prod(sim.observation_shape) * sim.observation_dtype.itemsize
        # Raw arrays live in files that are unlinked as soon as they are made: no name, nothing to leave behind.
        context = multiprocessing.get_context("spawn")
        memory = [context.RawArray(ctypes.c_char, 2 * self._rows * row_bytes) for _ in range(count)]
        self._observations = [shared_rows(part, sim, self._rows) for part in memory]
        self._hosts = ProcessHosts([partial(NodeHost, sim, part, self._rows) for part in memory])
        self._workers: list[_Worker] = []
        self._deaths = 0
        self._lineage = _Lineage()
        self._finalizer = weakref.finalize(self, self._hosts.close)
        self._begin()

    @property
    def count(self) -> int:
        """The number of worker processes."""
        return len(self._hosts)

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the current workers; one that dies is replaced when its answer is missed."""
        return self._hosts.process_ids

    def load_roots(self, states: Sequence[State]) -> Sequence[int]:
        if not self._finalizer.alive:
            raise WorkerError("these workers were closed", remedy="search inside the 'with' block that made them")
        self.clear()
        self._begin()
        return self._lineage.load_roots([self._sim.pack(state) for state in states])

    def keep(self, nodes: Sequence[int]) -> None:
        self._lineage.keep(nodes)
        wanted = set(nodes)
        for worker in self._workers:
            worker.keep(wanted)

    def clear(self) -> None:
        self._lineage = _Lineage()
        self.keep([])
        for index, worker in enumerate(self._workers):
            if worker.deferred:  # now, because the next search may be long in coming
                self._send(index)
        self._hosts.forget()

    def close(self) -> None:
        """End all worker processes."""
        self._finalizer()

    def expand(
        self, nodes: Sequence[int], leaves: bool = False, seeds: NodeSeeds | None = None
    ) -> Generator[ExpansionBatch, None, None]:
        children = self._lineage.number_children(nodes, self._sim.num_actions, seeds)
        running: list[deque[_Task]] = [deque() for _ in range(self.count)]
        try:
            count = len(children) // max(len(nodes), 1)
            level = _Expansion(nodes, children, leaves, self._assign(nodes, count), running, seeds, count)
            for index in range(self.count):  # every worker begins with its own share
                self._feed(index, level, level.queues[index : index + 1])
            while any(running):
                for index, answer in self._receive([i for i, tasks in enumerate(running) if tasks]):
                    if answer is None:  # the worker died: its replacement does the same again
                        level.queues[index].extendleft(task.positions for task in reversed(running[index]))
                        running[index].clear()
                    else:
                        yield self._batch(index, level, running[index].popleft(), answer)
                    own_first = [level.queues[index], *level.queues[:index], *level.queues[index + 1 :]]
                    self._feed(index, level, own_first)
        except GeneratorExit:  # the caller needs no more
            self._drain([len(tasks) for tasks in running])
        except ExpansionTimeout:  # a simulator that hangs does not end when it is asked to
            self._end(kill=True)
            raise
        except BaseException:  # a worker may be in the midst of something: the next search begins with new processes
            self._end()
            raise

    def _drain(self, left: list[int]) -> None:
        """Wait a little for the answers that are under way, so many of each worker: one that hangs is replaced."""
        end = time.perf_counter() + DRAIN_SECONDS
        while busy := [index for index, count in enumerate(left) if count]:
            answers = self._hosts.receive(busy, max(0.0, end - time.perf_counter()))
            if not answers or any(isinstance(answer, HostLost | HostFailed) for _, answer in answers):
                self._end(kill=True)
                return
            for index, _ in answers:
                left[index] -= 1

    def _assign(self, nodes: Sequence[int], count: int) -> list[deque[IntArray]]:
        """Cut a level, `count` children per node, into a queue of parts for each worker; send the states they need."""
        holders = np.array([self._holder(node) for node in nodes])
        queues: list[deque[IntArray]] = []
        for index, share in enumerate(balanced_shares(holders, self.count, count)):
            self._move(index, {nodes[i] for i in (share // count).tolist()})
            size = min(self._rows, max(MIN_PART_SIZE, -(-len(share) // PARTS)))
            cuts = range(size, len(share), size)
            queues.append(deque(part for part in np.split(share, cuts) if len(part)))
        return queues

    def _holder(self, node: int) -> int:
        """Return the index of a worker that has a state, or the number of workers if none has."""
        return next((i for i, worker in enumerate(self._workers) if node in worker.holds), self.count)

    def _move(self, to: int, nodes: set[int]) -> None:
        """Copy states to a worker from those that have them; the others are made again when they are needed."""
        missing = nodes - self._workers[to].holds
        for index in range(self.count):
            found = sorted(missing & self._workers[index].holds)
            if not found:
                continue
            self._send(index, Pack(found))
            ((_, packed),) = self._receive([index])
            for node, content in zip(found, packed or (), strict=False):
                self._workers[to].load(LoadState(node, content))

    def _feed(self, index: int, level: _Expansion, queues: list[deque[IntArray]]) -> None:
        """Hand a worker its next tasks, from the first of `queues`, or else the last part of the longest.

        A worker that has done its own share makes the states for that again, which costs a step or a few for each and
        disturbs no other worker.
        """
        count, worker, running = level.count, self._workers[index], level.running[index]
        futures = count // self._sim.num_actions
        while len(running) < MAX_RUNNING and any(queues):
            positions = queues[0].popleft() if queues[0] else max(queues, key=len).pop()
            task = _Task(positions, 1 - running[-1].half if running else 0)
            parents = [level.nodes[i] for i in (positions // count).tolist()]
            for node in sorted(set(parents) - worker.holds):
                worker.load(self._lineage.recipe(node))
            actions, ids = (positions % count // futures).tolist(), level.children[positions].tolist()
            seeds = None
            if level.seeds is not None:
                seeds = [level.seeds[p // count][p % futures] for p in positions.tolist()]
            self._send(index, Expand(parents, actions, ids, task.half, level.leaves, seeds))
            running.append(task)

    def _batch(self, index: int, level: _Expansion, task: _Task, answer: Expanded) -> ExpansionBatch:
        """Return what a worker has answered to a task."""
        rows = self._observations[index][task.half, : len(task.positions)]
        handles = level.children[task.positions].tolist()
        if not level.leaves:
            self._workers[index].holds.update(handles)
        batch = ExpansionBatch(task.positions, handles, rows, answer.rewards, answer.terminated, answer.keys)
        return check_batch(batch, self._sim.num_actions, level.count // self._sim.num_actions)

    def _begin(self) -> None:
        """Start the workers that do not run: all at first, and all again after a search has failed."""
        self._hosts.begin()
        self._workers += [_Worker() for _ in range(self.count - len(self._workers))]

    def _end(self, *, kill: bool = False) -> None:
        """End all workers; the next search starts new ones."""
        self._hosts.close(kill=kill)
        self._workers.clear()

    def _send(self, index: int, *requests: Expand | Pack) -> None:
        """Send what was deferred, then a request that has an answer."""
        worker = self._workers[index]
        message, worker.deferred = [*worker.deferred, *requests], []
        self._hosts.send(index, message)

    def _receive(self, indices: list[int]) -> list[tuple[int, Any]]:
        """Wait for an answer of these workers; None in place of one that died, and was replaced by another."""
        seconds = None if math.isinf(self.deadline) else max(0.0, self.deadline - time.perf_counter())
        answers = self._hosts.receive(indices, seconds)
        if not answers:
            raise ExpansionTimeout
        for place, (index, answer) in enumerate(answers):
            if isinstance(answer, HostLost):
                self._replace(index, answer.reason)
                answers[place] = (index, None)
            elif isinstance(answer, HostFailed):
                if answer.kind == SimulatorError.__name__:
                    raise answer.error(index)  # in the words that it has in this process
                raise WorkerError(f"the simulator failed in a worker process:\n{answer.trace.rstrip()}\n")
            else:
                self._deaths = 0
        return answers

    def _replace(self, index: int, reason: str) -> None:
        """Start another worker for one that died, unless too many died in a row."""
        self._deaths += 1
        if self._deaths > MAX_DEATHS:
            self._deaths = 0
            raise WorkerError(
                f"{MAX_DEATHS + 1} worker processes in a row have died",
                got=reason,
                remedy="a script that uses workers needs 'if __name__ == \"__main__\":' before its own work; else look "
                "at what the simulator does, or free some memory",
            )
        self._hosts.restart(index)
        self._workers[index] = _Worker()


class _Lineage:
    """The root and the actions that every state comes from: enough to make it again."""

    def __init__(self) -> None:
        self._roots: dict[int, bytes] = {}
        self._parents: dict[int, tuple[int, int, int | None]] = {}
        """By state: the state that it was made from, the action, and the seed of the future if one was drawn."""
        self._latest: tuple[Sequence[int], int, int, NodeSeeds | None] = ((), 1, 0, None)
        """The last expansion: its nodes, the number of actions, the id of the first child, the seeds."""
        self._next = 0

    def load_roots(self, packed: Sequence[bytes]) -> list[int]:
        """Begin with these packed roots; returns their ids."""
        self._roots = dict(enumerate(packed))
        self._next = len(packed)
        return list(self._roots)

    def number_children(self, nodes: Sequence[int], num_actions: int, seeds: NodeSeeds | None) -> IntArray:
        """Return ids for the children (nodes · num_actions · futures,) of an expansion, by position."""
        first = self._next
        self._next += len(nodes) * num_actions * (1 if seeds is None else len(seeds[0]))
        self._latest = (nodes, num_actions, first, seeds)
        return np.arange(first, self._next)

    def keep(self, children: Sequence[int]) -> None:
        """Remember where these children of the last expansion come from."""
        nodes, num_actions, first, seeds = self._latest
        futures = 1 if seeds is None else len(seeds[0])
        for child in children:
            pair, future = divmod(child - first, futures)
            parent, action = divmod(pair, num_actions)
            self._parents[child] = (nodes[parent], action, None if seeds is None else seeds[parent][future])

    def recipe(self, node: int) -> LoadState:
        """Return the request that makes a state again."""
        actions: list[int] = []
        seeds: list[int | None] = []
        ancestor = node
        while ancestor in self._parents:
            ancestor, action, seed = self._parents[ancestor]
            actions.append(action)
            seeds.append(seed)
        return LoadState(node, self._roots[ancestor], tuple(reversed(actions)), tuple(reversed(seeds)))


def balanced_shares(holders: IntArray, count: int, num_actions: int) -> list[IntArray]:
    """Cut the n·A positions of a level into `count` shares of nearly equal size.

    Args:
        holders: (n,) which worker has each node; `count` if none has.
        count: number of workers.
        num_actions: A; the children of node i have the positions i·A … i·A + A − 1.

    Nodes are sorted by holder and the row is cut into equal parts, so that most of what a worker gets it has already.
    A cut falls between two holders if such a border is near.

    >>> [share.tolist() for share in balanced_shares(np.array([1, 0, 1]), 2, 2)]
    [[2, 3, 0], [1, 4, 5]]
    """
    order = np.argsort(holders, kind="stable")
    positions = (order[:, None] * num_actions + np.arange(num_actions)).ravel()
    total = len(positions)
    borders = np.searchsorted(holders[order], np.arange(1, count)) * num_actions
    even = np.arange(1, count) * total / count
    near = np.abs(borders - even) <= IMBALANCE * total / count
    cuts = np.where(near, borders, np.rint(even).astype(np.intp))
    return np.split(positions, np.maximum.accumulate(cuts))
