"""One level of the search trees: the children of the level above, equal ones merged.

For a node x at depth d let R_a(x) be the best discounted return of any path from the root to x that begins with action
a (-inf if none does):

    R_a(child) = max over the (parent, action, reward) that lead to it of  R_a(parent) + γ^(d−1) · reward

A maximum over paths does not depend on the order in which it is taken, and rounding is monotone. So although subtrees
share nodes, max over leaves of R_a(x) + γ^d V(x) is, bit for bit, what plain recursion over all paths finds below a.

R roots are searched together. The nodes of a level are arrays over all trees, those of one root after those of another;
the child of parent i by action a has position i·A + a.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.search.workers.base import ExpansionBatch, Handle
from adalook.simulators.base import Observations

MIN_ROWS = 32
"""Observations that `DistinctObservations` has room for at first."""


@dataclass(frozen=True, eq=False)
class Frontier:
    """The n nodes that are expanded next; A is the number of actions."""

    roots: IntArray
    """(n,) the root of each, ascending"""
    handles: list[Handle]
    """(n,) of the states, which the expander holds"""
    returns: FloatArray | None
    """(n, A) R_a; None for roots, where no action has been taken"""
    paths: list[int]
    """(n,) how many paths of the plain tree lead to each: Python integers, exact at any depth"""


@dataclass(frozen=True, eq=False)
class Nodes(Frontier):
    """The n distinct nodes of a level, which show m distinct observations."""

    returns: FloatArray
    terminated: BoolArray
    """(n,)"""
    observations: Observations
    """(m, *observation_shape)"""
    rows: IntArray
    """(n,) the row of `observations` that each node shows"""
    via: IntArray
    """(n, A) position of the child that R_a comes through: action `via % A` in node `via // A` of the frontier"""

    def take(self, chosen: IntArray) -> Frontier:
        """Return the nodes with these indices, ascending, as the next frontier."""
        indices = chosen.tolist()
        return Frontier(
            self.roots[chosen],
            [self.handles[node] for node in indices],
            self.returns[chosen],
            [self.paths[node] for node in indices],
        )


NodeSelection = Callable[[Nodes, FloatArray, IntArray], IntArray]
"""(nodes of a level, R_a + γ^d V (nodes, A), candidates) -> those of the candidates that are expanded next.

Candidates are indices, ascending, of the nodes that may be expanded: not terminated, in a tree that grows."""


def all_nodes(nodes: Nodes, bootstrapped: FloatArray, candidates: IntArray) -> IntArray:
    """Return all candidates: an exhaustive search."""
    del nodes, bootstrapped
    return candidates


def most_valuable(nodes: Nodes, bootstrapped: FloatArray, candidates: IntArray, *, width: int) -> IntArray:
    """Return the `width` most valuable candidates of each root, the first of equal ones: a beam search."""
    if not len(candidates):
        return candidates
    roots, values = nodes.roots, bootstrapped.max(axis=1)
    by_value = candidates[np.argsort(-values[candidates], kind="stable")]
    by_root = by_value[np.argsort(roots[by_value], kind="stable")]
    starts = run_starts(roots[by_root])
    counts = np.diff(np.append(starts, len(by_root)))
    rank = np.arange(len(by_root)) - np.repeat(starts, counts)
    return np.sort(by_root[rank < width])


def run_starts(ascending: IntArray) -> IntArray:
    """Return where each run of equal numbers starts, for n >= 1 of them in order."""
    if ascending[0] == ascending[-1]:
        return np.zeros(1, np.intp)
    begins = np.empty(len(ascending), bool)
    begins[0] = True
    np.not_equal(ascending[1:], ascending[:-1], out=begins[1:])
    return np.flatnonzero(begins)


class LevelBuilder:
    """A level under construction: merges the children of a frontier as they come in.

    Children are equal if root, key and `terminated` are equal. Children without keys are all distinct: they are leaves
    that will not be expanded, so that merging them would save nothing.

    Args:
        frontier: n parents.
        num_actions: A.
        observations: an empty store for what the nodes show.
    """

    def __init__(self, frontier: Frontier, num_actions: int, observations: ObservationStore) -> None:
        self._frontier, self._num_actions, self._observations = frontier, num_actions, observations
        total = len(frontier.roots) * num_actions
        self._rewards: FloatArray = np.empty(total)  # by position
        self._node_of: IntArray = np.empty(total, np.intp)  # by position
        self._index: dict[tuple[int, bytes, bool], int] = {}
        self._positions: list[IntArray] = []  # by batch
        self._first: list[int] = []  # by node, as are the following: the first position that became it
        self._handles: list[Handle] = []
        self._terminated: list[bool] = []
        self._rows: list[int] = []

    @property
    def positions(self) -> IntArray:
        """Positions (n,) of the children that have come in."""
        return np.concatenate(self._positions) if self._positions else np.empty(0, np.intp)

    def add(self, batch: ExpansionBatch) -> None:
        """Merge some children."""
        self._positions.append(batch.positions)
        self._rewards[batch.positions] = batch.rewards
        if batch.keys:
            self._add_merged(batch)
        else:
            self._add_leaves(batch)

    def _add_merged(self, batch: ExpansionBatch) -> None:
        owners = self._frontier.roots[batch.positions // self._num_actions].tolist()
        flags = batch.terminated.tolist()
        positions = batch.positions.tolist()
        keys, handles = batch.keys, batch.handles
        new: list[int] = []
        for i, position in enumerate(positions):
            node = self._index.setdefault((owners[i], keys[i], flags[i]), len(self._index))
            self._node_of[position] = node
            if node == len(self._first):
                new.append(i)
                self._first.append(position)
                self._handles.append(handles[i])
                self._terminated.append(flags[i])
            elif position < self._first[node]:  # any of equal children may stand for the others, but order is fixed
                self._first[node] = position
        shown = batch.observations if len(new) == len(flags) else batch.observations[new]
        self._rows.extend(self._observations.add(shown).tolist())

    def _add_leaves(self, batch: ExpansionBatch) -> None:
        count = len(self._first)
        self._node_of[batch.positions] = np.arange(count, count + len(batch.positions))
        self._first.extend(batch.positions.tolist())
        self._handles.extend([None] * len(batch.positions))
        self._terminated.extend(batch.terminated.tolist())
        self._rows.extend(self._observations.add(batch.observations).tolist())

    def build(self, discount_to_parent: float) -> Nodes:
        """Return the nodes of the level, after all n·A children have come in.

        `discount_to_parent` is γ to the power of the parents' depth.
        """
        frontier, num_actions = self._frontier, self._num_actions
        order, node_of = self._in_order()
        parents = _returns_before_step(frontier, num_actions)
        returns, via = _best_returns(parents + discount_to_parent * self._rewards[:, None], node_of)
        paths = [0] * len(order)
        for position, node in enumerate(node_of.tolist()):
            paths[node] += frontier.paths[position // num_actions]
        first = np.array(self._first, np.intp)[order]
        return Nodes(
            frontier.roots[first // num_actions],
            [self._handles[node] for node in order.tolist()],
            returns,
            paths,
            np.array(self._terminated, bool)[order],
            self._observations.rows,
            np.array(self._rows, np.intp)[order],
            via,
        )

    def _in_order(self) -> tuple[IntArray, IntArray]:
        """Sort nodes by their first positions, since batches of several workers come in any order.

        Returns:
            order: (n,) which node of the lists comes first, second, …
            node_of: (positions,) the node, in that order, that each child became.
        """
        order = np.arange(len(self._first))
        if len(self._positions) == 1:
            return order, self._node_of
        order = np.argsort(self._first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return order, rank[self._node_of]


def _returns_before_step(frontier: Frontier, num_actions: int) -> FloatArray:
    """Return for each position the R_a of its parent (n·A, A); in a root only action a begins with a."""
    if frontier.returns is None:
        first_steps = np.where(np.eye(num_actions, dtype=bool), 0.0, -np.inf)
        return np.tile(first_steps, (len(frontier.roots), 1))
    return np.repeat(frontier.returns, num_actions, axis=0)


def _best_returns(children: FloatArray, node_of: IntArray) -> tuple[FloatArray, IntArray]:
    """Merge the returns of children (positions, A), each of which became the node `node_of` (positions,).

    Returns:
        returns: (n, A) the best of each node.
        via: (n, A) the first position that attains it.
    """
    positions = np.arange(len(node_of))[:, None]
    if node_of[-1] == len(node_of) - 1:  # no two children are equal: nodes are numbered as they come
        return children, np.repeat(positions, children.shape[1], axis=1)
    order = np.argsort(node_of, kind="stable")
    starts = run_starts(node_of[order])
    returns = np.maximum.reduceat(children[order], starts, axis=0)
    through = np.where(children == returns[node_of], positions, len(node_of))
    return returns, np.minimum.reduceat(through[order], starts, axis=0)


class ObservationStore(Protocol):
    """A growing array of observations."""

    @property
    def rows(self) -> Observations:
        """The observations (m, *observation_shape) that are stored."""

    def add(self, observations: Observations) -> IntArray:
        """Store n observations (n, *observation_shape); returns the row (n,) that has each."""


class AllObservations:
    """A store of every observation, equal or not, for levels that are not evaluated: comparing would be wasted."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._parts = [np.empty((0, *shape), dtype)]
        self._count = 0

    @property
    def rows(self) -> Observations:
        return self._parts[-1] if len(self._parts) == 2 else np.concatenate(self._parts)

    def add(self, observations: Observations) -> IntArray:
        self._parts.append(observations.copy())
        self._count += len(observations)
        return np.arange(self._count - len(observations), self._count)


class DistinctObservations:
    """A store that keeps each distinct observation once.

    A fingerprint finds candidates and a comparison of all bytes decides, so two different observations are never taken
    for one. Fingerprints are weighted sums: ten times faster than hashing the 28 KB of a stack of Atari frames.

    >>> store = DistinctObservations((2,), np.dtype(np.int16))
    >>> store.add(np.array([[1, 2], [3, 4], [1, 2]], np.int16))
    array([0, 1, 0])
    >>> store.rows
    array([[1, 2],
           [3, 4]], dtype=int16)
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._buffer = np.empty((MIN_ROWS, *shape), dtype)
        self._count = 0
        self._by_fingerprint: dict[int, list[int]] = {}

    @property
    def rows(self) -> Observations:
        return self._buffer[: self._count]

    def add(self, observations: Observations) -> IntArray:
        if not len(observations):
            return np.empty(0, np.intp)
        self._make_room(len(observations))
        incoming, stored = _as_words(observations), _as_words(self._buffer)
        rows = np.empty(len(observations), np.intp)
        for i, fingerprint in enumerate(_fingerprints(incoming).tolist()):
            candidates = self._by_fingerprint.setdefault(fingerprint, [])
            for row in candidates:
                if (stored[row] == incoming[i]).all():
                    rows[i] = row
                    break
            else:
                stored[self._count] = incoming[i]
                candidates.append(self._count)
                rows[i] = self._count
                self._count += 1
        return rows

    def _make_room(self, more: int) -> None:
        """Grow the buffer if it has no room for so many more."""
        if self._count + more > len(self._buffer):
            # Doubling is faster than room for the worst case at once: fresh memory, which the system has to clear,
            # costs more than the copies.
            larger = np.empty((2 * len(self._buffer) + more, *self._buffer.shape[1:]), self._buffer.dtype)
            larger[: self._count] = self.rows
            self._buffer = larger


def _as_words(observations: Observations) -> np.ndarray[Any, Any]:
    """Return the same memory as (n, w) unsigned integers, the largest that fit."""
    flat = np.ascontiguousarray(observations).reshape(len(observations), -1).view(np.uint8)
    for word in (np.uint64, np.uint32, np.uint16):
        if flat.shape[1] and flat.shape[1] % np.dtype(word).itemsize == 0:
            return flat.view(word)
    return flat


def _fingerprints(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return sums (n,) of words (n, w) times random odd weights, modulo 2^64."""
    return np.asarray(words.astype(np.uint64, copy=False) @ _weights(words.shape[1]))


@functools.lru_cache(maxsize=8)
def _weights(count: int) -> np.ndarray[Any, Any]:
    """Return random odd weights (count,), the same in every process."""
    return np.random.default_rng(count).integers(0, 2**64, count, np.uint64) | np.uint64(1)
