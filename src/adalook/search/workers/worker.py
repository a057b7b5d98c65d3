"""What runs in a worker process: a simulator that steps the states it holds.

Requests come as lists. It answers them one after the other and ends when its pipe does, which is also what happens when
the process that started it is killed. Observations go into memory that both share and that has no name, so nothing of
it can be left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.simulators.base import Observations, Simulator, State

LONGEST_KEY = 32
"""Longer keys are digested before they travel."""
PARENT_CHECK_SECONDS = 2.0
"""A pipe does not end while some other child of a dead parent holds on to it, so the parent is asked for as well."""


@dataclass(frozen=True, eq=False)
class Expand:
    """Take action `actions[i]` in state `nodes[i]`; answered by Expanded."""

    nodes: list[int]
    """(n,) numbers of states that the worker holds"""
    actions: list[int]
    """(n,)"""
    children: list[int]
    """(n,) the numbers that the children get"""
    half: int
    """Which half of the shared memory the observations go to."""
    leaves: bool
    """The children will not be expanded: the worker forgets them."""


@dataclass(frozen=True, eq=False)
class Expanded:
    """What an expansion brought; the observations are in shared memory."""

    rewards: FloatArray
    terminated: BoolArray
    keys: list[bytes]


@dataclass(frozen=True, eq=False)
class LoadState:
    """Unpack a state, take `actions` one after the other, and hold what comes out as `node`."""

    node: int
    packed: bytes
    actions: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Keep:
    """Forget all states but these."""

    nodes: Sequence[int]


@dataclass(frozen=True, eq=False)
class Pack:
    """Pack these states; answered by a list of bytes."""

    nodes: Sequence[int]


@dataclass(frozen=True)
class Failed:
    """The simulator has raised; instead of any other answer."""

    report: str


def shared_rows(memory: Any, sim: Simulator, rows: int) -> Observations:
    """(2, rows, *observation_shape) over shared memory: while one half is read, the other is written."""
    return np.frombuffer(memory, sim.observation_dtype, count=-1).reshape(2, rows, *sim.observation_shape)


def main(requests: Connection, sim: Simulator, memory: Any, rows: int, parent: int) -> None:
    """Serve until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business: it ends the pipe
    with contextlib.suppress(EOFError, OSError), contextlib.closing(sim):
        worker = _Worker(sim, shared_rows(memory, sim, rows))
        while True:
            while not requests.poll(PARENT_CHECK_SECONDS):
                if os.getppid() != parent:
                    return
            for request in requests.recv():
                answer = worker.answer(request)
                if answer is not None:
                    requests.send(answer)


class _Worker:
    """The states of one worker, by number."""

    def __init__(self, sim: Simulator, observations: Observations) -> None:
        self._sim, self._observations = sim, observations
        self._states: dict[int, State] = {}
        self._failure: Failed | None = None

    def answer(self, request: Expand | LoadState | Keep | Pack) -> Any:
        """Do what is asked; the answer, if there is one to be given."""
        try:
            match request:
                case Expand():
                    return self._failure or self._expand(request)
                case Pack():
                    return self._failure or [self._sim.pack(self._states[node]) for node in request.nodes]
                case LoadState():
                    self._hold(request)
                case Keep():
                    self._states = {node: self._states[node] for node in request.nodes}
        except Exception:
            # Not every request has an answer: one that has brings the news.
            self._failure = Failed(traceback.format_exc())
            return self._failure if isinstance(request, Expand | Pack) else None
        return None

    def _expand(self, request: Expand) -> Expanded:
        states = [self._states[node] for node in request.nodes]
        out = self._observations[request.half, : len(states)]
        step = self._sim.expand_leaves if request.leaves else self._sim.expand
        children = step(states, request.actions, out)
        if request.leaves:
            return Expanded(children.rewards, children.terminated, [])
        self._states.update(zip(request.children, children.states, strict=True))
        return Expanded(children.rewards, children.terminated, [_short(key) for key in children.keys])

    def _hold(self, request: LoadState) -> None:
        state = self._sim.unpack(request.packed)
        for action in request.actions:
            (state,) = self._sim.expand([state], [action]).states
        self._states[request.node] = state


def _short(key: bytes) -> bytes:
    return key if len(key) <= LONGEST_KEY else sha256(key).digest()
