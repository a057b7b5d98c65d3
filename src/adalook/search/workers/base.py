"""The expander interface, and the expander that steps nodes in this process.

An expander holds the simulator states of the search trees and hands out a handle for each. `expand` takes *every*
action in each node that it is given; the child of node i by action a has position i·A + a. Positions alone decide what
a search answers, so it does not matter who expanded what, or in which order batches arrive. With K seeds per node every
action is taken under each of them, K futures of a stochastic simulator: the child by action a under seed k has position
(i·A + a)·K + k.

One search makes these calls:

    handles = expander.load_roots(states)
    for batch in expander.expand(handles): ...        # once per level
    expander.keep(handles of the nodes that will be expanded next)
    expander.clear()                                  # at the end, also after an error
"""

from __future__ import annotations

import dataclasses
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.engines.base import Engine, InProcess, LocalProcesses, checked_engine
from adalook.errors import ArgumentError, SimulatorError, shown
from adalook.simulators.arguments import LARGEST_REWARD, check_attributes
from adalook.simulators.base import Children, Observations, Simulator, State

Handle = Any
"""Identifies a state that an expander holds."""

NodeSeeds = Sequence[Sequence[int]]
"""(n, K) seeds of the K futures that are drawn in each of n nodes."""

NO_SEED = 0
"""The seed of states whose randomness does not matter, since they are reseeded before they are expanded."""

BATCH_BYTES = 2**20
"""Observations come in batches of about this size: small enough for the processor's cache and to meet a deadline."""
MAX_BATCH_SIZE = 512


@dataclass(frozen=True, eq=False)
class ExpansionBatch:
    """n children of one level, struct of arrays."""

    positions: IntArray
    """(n,)"""
    handles: Sequence[Handle]
    """(n,); empty for leaves"""
    observations: Observations
    """(n, *observation_shape), overwritten when the next batch is requested"""
    rewards: FloatArray
    """(n,)"""
    terminated: BoolArray
    """(n,)"""
    keys: Sequence[bytes]
    """(n,); empty for leaves, which are then never merged"""


class ExpansionTimeout(Exception):
    """Raised by `expand` when children have not come until the deadline."""


class Expander(ABC):
    """An object that steps the nodes of search trees and holds their states between levels."""

    deadline: float = math.inf
    """By `time.perf_counter`: the caller waits no longer. Expanders without processes of their own cannot keep it."""

    @abstractmethod
    def load_roots(self, states: Sequence[State]) -> Sequence[Handle]:
        """Drop all states and hold these roots; returns their handles."""

    @abstractmethod
    def expand(
        self, nodes: Sequence[Handle], leaves: bool = False, seeds: NodeSeeds | None = None
    ) -> Generator[ExpansionBatch, None, None]:
        """Take every action in every node; yields the children in batches, in any order.

        Args:
            nodes: n handles.
            leaves: the children will never be expanded, and may come without handles and keys.
            seeds: (n, K) of the futures to draw in each node; None: the one that its state holds.

        A caller that needs no more batches closes the generator.
        """

    @abstractmethod
    def keep(self, nodes: Sequence[Handle]) -> None:
        """Drop all states but these children of the last expansion."""

    @abstractmethod
    def clear(self) -> None:
        """Drop all states."""

    def close(self) -> None:
        """Release processes and memory, if the expander has any; leaving its `with` block does the same."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


MIN_GRACE_SECONDS, GRACE = 10.0, 10.0
"""Without a first level there is no answer, so it may take ten times the budget more, or ten seconds."""


class LevelDeadline:
    """A context in which an expander is waited for until a deadline; `passed` tells whether it came too late.

    Args:
        expander: told how long it is waited for.
        deadline: by `time.perf_counter`.
        seconds: the budget that the deadline comes from; None without one.
        first: whether this is a first level: that it does not come in time is an error.
    """

    def __init__(self, expander: Expander, deadline: float, seconds: float | None, *, first: bool) -> None:
        self._expander, self._seconds, self._first = expander, seconds or 0.0, first
        self._grace = max(MIN_GRACE_SECONDS, GRACE * self._seconds) if first else 0.0
        self._deadline = deadline + self._grace
        self._gives_up_at = math.inf if first else deadline
        self.passed = False

    def is_over(self) -> bool:
        """Return whether the deadline has passed, so that a level is given up; a first level never is."""
        self.passed = time.perf_counter() > self._gives_up_at
        return self.passed

    def __enter__(self) -> LevelDeadline:
        self._expander.deadline = self._deadline
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._expander.deadline = math.inf
        timed_out = isinstance(error, ExpansionTimeout)
        self.passed = self.passed or timed_out
        if timed_out and self._first:
            raise SimulatorError(
                "the simulator has not answered a first step",
                expected=f"an answer within {self._seconds:g} s and a grace of {self._grace:g} s",
                remedy="look at what hangs in its expand or step; al.check_simulator steps it in this process",
            ) from None
        return timed_out


def make_expander(sim: Simulator, engine: Engine | None = None) -> Expander:
    """Return an expander that steps nodes in this process, or in those of an engine such as al.LocalProcesses(2)."""
    if not isinstance(sim, Simulator):
        raise ArgumentError("sim is no simulator", expected="al.make_simulator(…)", got=type(sim).__name__)
    check_attributes(sim)
    engine = checked_engine(engine)
    if isinstance(engine, InProcess):
        return InProcessExpander(sim)
    if not isinstance(engine, LocalProcesses):
        raise ArgumentError(
            "nodes of one tree are stepped on this machine",
            expected="al.LocalProcesses(actors=2) or None",
            got=repr(engine),
        )
    from adalook.search.workers.pool import WorkerPool

    return WorkerPool(sim, engine.actors)


def batch_size(sim: Simulator) -> int:
    """Return how many observations make a batch of about `BATCH_BYTES`."""
    each = math.prod(sim.observation_shape) * sim.observation_dtype.itemsize
    return max(1, min(MAX_BATCH_SIZE, BATCH_BYTES // max(each, 1)))


def expand_seeded(
    sim: Simulator,
    states: Sequence[State],
    actions: Sequence[int],
    seeds: Sequence[int] | None,
    leaves: bool,
    out: Observations,
) -> Children:
    """Take `actions[i]` in `states[i]`, under the random numbers of `seeds[i]` if there are seeds.

    Children of drawn futures hold no randomness of their own, so that equal ones are equal whatever was drawn before.
    """
    step = sim.expand_leaves if leaves else sim.expand
    if seeds is None:
        return step(states, actions, out)
    children = step([sim.reseed(state, seed) for state, seed in zip(states, seeds, strict=True)], actions, out)
    if leaves:
        return children
    after = [sim.reseed(state, NO_SEED) for state in children.states]
    return dataclasses.replace(children, states=after, keys=[sim.key(state) for state in after])


def check_batch(batch: ExpansionBatch, num_actions: int, futures: int = 1) -> ExpansionBatch:
    """Return children as they are, or raise `SimulatorError` unless rewards and observations are numbers.

    NaN and infinity would win or lose every comparison in silence.
    """
    n = len(batch.positions)
    for name, array, kinds in (("rewards", batch.rewards, "fiu"), ("terminated", batch.terminated, "b")):
        if not isinstance(array, np.ndarray) or array.shape != (n,) or array.dtype.kind not in kinds:
            raise SimulatorError(
                f"the simulator's expand gives wrong {name}",
                expected=f"an array of {'bools' if kinds == 'b' else 'floats'} ({n},)",
                got=f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else shown(array),
            )
    if n and not np.abs(batch.rewards).max() <= LARGEST_REWARD:  # so for NaN
        i = int(np.argmin(np.abs(batch.rewards) <= LARGEST_REWARD))
        raise SimulatorError(
            f"the reward of {_place(batch, i, num_actions, futures)} is not finite",
            expected=f"a number up to {LARGEST_REWARD:g}",
            got=repr(float(batch.rewards[i])),
        )
    if batch.observations.dtype.kind == "f" and not np.isfinite(batch.observations).all():
        i = int(np.argmin(np.isfinite(batch.observations).reshape(n, -1).all(axis=1)))
        raise SimulatorError(f"the observation after {_place(batch, i, num_actions, futures)} is not finite")
    return batch


def _place(batch: ExpansionBatch, index: int, num_actions: int, futures: int) -> str:
    """Return what led to a child, in words."""
    node, action = divmod(int(batch.positions[index]) // futures, num_actions)
    return f"action {action} in node {node} of the level"


class InProcessExpander(Expander):
    """An expander that steps nodes in this process; a handle is the state itself."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._observations = np.empty((batch_size(sim), *sim.observation_shape), sim.observation_dtype)

    def load_roots(self, states: Sequence[State]) -> Sequence[Handle]:
        return list(states)

    def expand(
        self, nodes: Sequence[Handle], leaves: bool = False, seeds: NodeSeeds | None = None
    ) -> Generator[ExpansionBatch, None, None]:
        futures, size = 1 if seeds is None else len(seeds[0]), len(self._observations)
        count = self._sim.num_actions * futures
        for start in range(0, len(nodes) * count, size):
            positions = np.arange(start, min(start + size, len(nodes) * count))
            parents = (positions // count).tolist()
            drawn = (
                None
                if seeds is None
                else [seeds[i][k] for i, k in zip(parents, (positions % futures).tolist(), strict=True)]
            )
            out = self._observations[: len(positions)]
            actions = (positions % count // futures).tolist()
            children = expand_seeded(self._sim, [nodes[i] for i in parents], actions, drawn, leaves, out)
            handles, keys = ((), ()) if leaves else (children.states, children.keys)
            batch = ExpansionBatch(positions, handles, out, children.rewards, children.terminated, keys)
            yield check_batch(batch, self._sim.num_actions, futures)

    def keep(self, nodes: Sequence[Handle]) -> None:
        """Do nothing: states live as long as the trees refer to them."""

    def clear(self) -> None:
        """Do nothing, as `keep`."""
