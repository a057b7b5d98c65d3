"""The worker process: a simulator that steps the states it holds, and the messages it understands.

Messages arrive as lists of requests, which are answered one after the other. The process ends when its pipe does, which
is also what happens when its parent is killed. Observations go into shared memory that has no name in the file system,
so none of it can be left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.search.workers.base import expand_seeded
from adalook.simulators.base import Observations, Simulator, State

MAX_KEY_BYTES = 32
"""Longer keys are hashed (SHA-256) before they are sent."""
PARENT_CHECK_SECONDS = 2.0
"""How often a worker checks that its parent lives: a forked sibling that holds the pipe would keep it open."""


PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, eq=False)
class Expand:
    """Request to take action `actions[i]` in state `nodes[i]` for every i; answered by Expanded."""

    nodes: list[int]
    """(n,) ids of states that the worker holds"""
    actions: list[int]
    """(n,)"""
    children: list[int]
    """(n,) the ids of the children"""
    half: int
    """Which half of the shared memory the observations go to."""
    leaves: bool
    """The children will not be expanded: the worker does not keep them."""
    seeds: list[int] | None = None
    """(n,) of the futures to draw; None: those that the states hold"""


@dataclass(frozen=True, eq=False)
class Expanded:
    """Answer to Expand; the observations are in shared memory."""

    rewards: FloatArray
    terminated: BoolArray
    keys: list[bytes]


@dataclass(frozen=True, eq=False)
class LoadState:
    """Request to unpack a state, take `actions` from there, and hold the state reached as `node`."""

    node: int
    packed: bytes
    actions: tuple[int, ...] = ()
    seeds: tuple[int | None, ...] = ()
    """Of the future that each action is taken in; None: the one that the state holds."""


@dataclass(frozen=True, eq=False)
class Keep:
    """Request to drop all states but these."""

    nodes: Sequence[int]


@dataclass(frozen=True, eq=False)
class Pack:
    """Request to pack these states; answered by a list of bytes."""

    nodes: Sequence[int]


@dataclass(frozen=True)
class Failed:
    """Answer in place of any other when the simulator has raised."""

    report: str


def shared_rows(memory: Any, sim: Simulator, rows: int) -> Observations:
    """Return shared memory as an array (2, rows, *observation_shape): one half is read while the other is written."""
    return np.frombuffer(memory, sim.observation_dtype, count=-1).reshape(2, rows, *sim.observation_shape)


def run_worker(
    requests: Connection, sim: Simulator, memory: Any, rows: int, parent: int, with_parent: bool = False
) -> None:
    """Answer requests until the pipe ends; the entry point of a worker process.

    It ends with its parent, however that dies: also while a simulator hangs, by a thread that watches, and, with
    `with_parent`, by the kernel (Linux), which does not depend on Python's lock.
    """
    end_with_parent(parent, with_parent)
    with contextlib.suppress(EOFError, OSError), contextlib.closing(sim):
        states = _StateHolder(sim, shared_rows(memory, sim, rows))
        while True:
            while not requests.poll(PARENT_CHECK_SECONDS):
                if os.getppid() != parent:
                    return
            for request in requests.recv():
                answer = states.answer(request)
                if answer is not None:
                    requests.send(answer)


def end_with_parent(parent: int, by_kernel: bool) -> None:
    """Let this process end with its parent, by a thread that watches and, if asked to, by the kernel, too.

    Ctrl-C is the parent's to answer: it ends the pipe.
    """
    threading.Thread(target=_end_with, args=(parent,), daemon=True, name="adalook parent watch").start()
    if by_kernel:
        _ask_kernel_to_end(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with(parent: int) -> None:
    """End this process when its parent is another."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


def _ask_kernel_to_end(parent: int) -> None:
    """Let Linux kill this process when the thread that started it ends; elsewhere nothing happens."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before
            os._exit(1)


class _StateHolder:
    """The states that one worker process holds, by id, and the simulator that steps them."""

    def __init__(self, sim: Simulator, observations: Observations) -> None:
        self._sim, self._observations = sim, observations
        self._states: dict[int, State] = {}
        self._failure: Failed | None = None

    def answer(self, request: Expand | LoadState | Keep | Pack) -> Any:
        """Carry out a request; returns the answer, or None for requests that have none."""
        try:
            match request:
                case Expand():
                    return self._failure or self._expand(request)
                case Pack():
                    return self._failure or [self._sim.pack(self._states[node]) for node in request.nodes]
                case LoadState():
                    self._load(request)
                case Keep():
                    self._states = {node: self._states[node] for node in request.nodes}
        except Exception:
            # LoadState and Keep have no answer: the next request that has one reports the failure.
            self._failure = Failed(traceback.format_exc())
            return self._failure if isinstance(request, Expand | Pack) else None
        return None

    def _expand(self, request: Expand) -> Expanded:
        states = [self._states[node] for node in request.nodes]
        out = self._observations[request.half, : len(states)]
        children = expand_seeded(self._sim, states, request.actions, request.seeds, request.leaves, out)
        if request.leaves:
            return Expanded(children.rewards, children.terminated, [])
        self._states.update(zip(request.children, children.states, strict=True))
        return Expanded(children.rewards, children.terminated, [_shortened(key) for key in children.keys])

    def _load(self, request: LoadState) -> None:
        state = self._sim.unpack(request.packed)
        out = self._observations[0, :1].copy()
        for action, seed in zip(request.actions, request.seeds, strict=True):
            seeds = None if seed is None else [seed]
            (state,) = expand_seeded(self._sim, [state], [action], seeds, False, out).states
        self._states[request.node] = state


def _shortened(key: bytes) -> bytes:
    """Return a key as it is sent: hashed if it is long."""
    return key if len(key) <= MAX_KEY_BYTES else sha256(key).digest()
