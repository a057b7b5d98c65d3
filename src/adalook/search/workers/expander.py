"""Who steps the nodes of a tree: this process, or others (`adalook.search.workers.pool`).

An expander holds the states of a forest and hands out handles for them. It takes *every* action in each node it is
given; the child of node i by action a has position i·A + a, and positions alone decide what a search answers, so that
it does not matter who expanded what, or in which order.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.simulators.base import Observations, Simulator, State

Handle = Any
"""Stands for a state that an expander holds."""

BATCH_BYTES = 2**20
"""Observations come in batches of about this size: small enough for the processor's cache and to meet a deadline."""
MOST_IN_BATCH = 512


@dataclass(frozen=True, eq=False)
class Batch:
    """Some children of a level, n of them, struct of arrays."""

    positions: IntArray
    """(n,)"""
    handles: Sequence[Handle]
    """(n,) or none, for leaves"""
    observations: Observations
    """(n, *observation_shape), overwritten when the next batch is asked for"""
    rewards: FloatArray
    """(n,)"""
    terminated: BoolArray
    """(n,)"""
    keys: Sequence[bytes]
    """(n,) or none, for leaves: then no two of them are taken for one"""


class Expander(Protocol):
    """Steps nodes, and holds their states meanwhile."""

    def load_roots(self, states: Sequence[State]) -> Sequence[Handle]:
        """Forget everything and hold these roots."""

    def expand(self, nodes: Sequence[Handle], leaves: bool = False) -> Generator[Batch, None, None]:
        """Take every action in every node. A caller that has seen enough closes the generator.

        With `leaves` the children will never be expanded, and may come without handles and keys.
        """

    def keep(self, nodes: Sequence[Handle]) -> None:
        """Only these, children of the last expansion, will be expanded further."""

    def clear(self) -> None:
        """Forget everything."""


def batch_size(sim: Simulator) -> int:
    """How many observations make a batch."""
    each = math.prod(sim.observation_shape) * sim.observation_dtype.itemsize
    return max(1, min(MOST_IN_BATCH, BATCH_BYTES // max(each, 1)))


class InProcess:
    """Steps nodes right here; a handle is the state itself."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        size = batch_size(sim)
        self._observations = np.empty((size, *sim.observation_shape), sim.observation_dtype)

    def load_roots(self, states: Sequence[State]) -> Sequence[Handle]:
        return list(states)

    def expand(self, nodes: Sequence[Handle], leaves: bool = False) -> Generator[Batch, None, None]:
        step = self._sim.expand_leaves if leaves else self._sim.expand
        count, size = self._sim.num_actions, len(self._observations)
        for start in range(0, len(nodes) * count, size):
            positions = np.arange(start, min(start + size, len(nodes) * count))
            states = [nodes[position // count] for position in range(start, start + len(positions))]
            out = self._observations[: len(positions)]
            children = step(states, (positions % count).tolist(), out)
            handles, keys = ((), ()) if leaves else (children.states, children.keys)
            yield Batch(positions, handles, out, children.rewards, children.terminated, keys)

    def keep(self, nodes: Sequence[Handle]) -> None:
        """States live as long as the tree refers to them."""

    def clear(self) -> None:
        """As for `keep`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close."""
