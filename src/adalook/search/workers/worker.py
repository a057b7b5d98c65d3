"""The far side of a pool of workers: a simulator that steps the states it holds, and the messages it understands.

A message is a list of requests; the answer is that of its last one. Observations go into shared memory that has no name
in the file system, so none of it can be left behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.engines.base import Host
from adalook.search.workers.base import expand_seeded
from adalook.simulators.base import Observations, Simulator, State

MAX_KEY_BYTES = 32
"""Longer keys are hashed (SHA-256) before they are sent."""


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


def shared_rows(memory: Any, sim: Simulator, rows: int) -> Observations:
    """Return shared memory as an array (2, rows, *observation_shape): one half is read while the other is written."""
    return np.frombuffer(memory, sim.observation_dtype, count=-1).reshape(2, rows, *sim.observation_shape)


class NodeHost(Host):
    """The states that one worker process holds, by id, and the simulator that steps them.

    Args:
        sim: steps them.
        memory: shared with the parent, for observations.
        rows: how many observations a half of it has room for.
    """

    def __init__(self, sim: Simulator, memory: Any, rows: int) -> None:
        self._sim, self._observations = sim, shared_rows(memory, sim, rows)
        self._states: dict[int, State] = {}

    def close(self) -> None:
        """Close the simulator."""
        self._sim.close()

    def answer(self, message: Sequence[Expand | LoadState | Keep | Pack], published: None = None) -> Any:
        """Carry out requests; return the answer to the last, or None if it has none."""
        answer: Any = None
        for request in message:
            match request:
                case Expand():
                    answer = self._expand(request)
                case Pack():
                    answer = [self._sim.pack(self._states[node]) for node in request.nodes]
                case LoadState():
                    self._load(request)
                case Keep():
                    self._states = {node: self._states[node] for node in request.nodes}
        return answer

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
