"""One level of a forest: children of the level above, equal ones merged.

For a node x at depth d let R_a(x) be the best discounted return of any path from the root to x that begins with action
a (-inf if none does):

    R_a(child) = max over the (parent, action, reward) that lead to it of  R_a(parent) + γ^(d−1) · reward

A maximum over paths does not mind in which order it is taken, and rounding is monotone. So although subtrees share
their nodes, max over leaves of R_a(x) + γ^d V(x) is, bit for bit, what plain recursion over all paths finds below a.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.search.distinct import ObservationPool
from adalook.search.workers.expander import Batch, Handle
from adalook.simulators.base import Observations


@dataclass(frozen=True, eq=False)
class Frontier:
    """The n nodes that are expanded next, those of one root after those of another; A is the number of actions."""

    roots: IntArray
    """(n,) whose tree each is in, ascending"""
    handles: list[Handle]
    returns: FloatArray | None
    """(n, A) R_a; None for roots, where no action has been taken"""
    paths: list[int]
    """How many paths of the plain tree lead to each: exact, whatever the depth."""


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


class OutOfTimeError(Exception):
    """The deadline came before the level was complete."""


def next_level(
    frontier: Frontier,
    batches: Iterable[Batch],
    num_actions: int,
    discount_to_parent: float,
    observations: ObservationPool,
    deadline: float,
) -> Nodes:
    """Merge the children of a frontier into the nodes of the next level.

    Args:
        frontier: n parents.
        batches: all their n·A children, in any order.
        num_actions: A.
        discount_to_parent: γ to the power of the parents' depth.
        observations: an empty place to keep them in.
        deadline: on time.perf_counter's clock; when it has passed, OutOfTimeError is raised.
    """
    merger = _Merger(frontier.roots, num_actions, observations)
    for batch in batches:
        merger.add(batch)
        if time.perf_counter() > deadline:
            raise OutOfTimeError
    order, which = merger.in_order()
    parents = _returns_before_step(frontier, num_actions)
    returns, via = _best_returns(parents + discount_to_parent * merger.rewards[:, None], which)
    paths = [0] * len(order)
    for position, node in enumerate(which.tolist()):
        paths[node] += frontier.paths[position // num_actions]
    first = np.array(merger.first, np.intp)[order]
    return Nodes(
        frontier.roots[first // num_actions],
        [merger.handles[node] for node in order.tolist()],
        returns,
        paths,
        np.array(merger.terminated, bool)[order],
        observations.rows,
        np.array(merger.rows, np.intp)[order],
        via,
    )


class _Merger:
    """Keeps one of each kind of child. Kinds differ by root, key, or whether they have ended; leaves without keys are
    all of a kind of their own, since merging them would save nothing.
    """

    def __init__(self, roots: IntArray, num_actions: int, observations: ObservationPool) -> None:
        self._roots, self._num_actions, self._observations = roots, num_actions, observations
        self._kinds: dict[tuple[int, bytes, bool], int] = {}
        total = len(roots) * num_actions
        self._which = np.empty(total, np.intp)
        self._batches = 0
        self.rewards: FloatArray = np.empty(total)
        """By position; the lists are by node."""
        self.first: list[int] = []
        self.handles: list[Handle] = []
        self.terminated: list[bool] = []
        self.rows: list[int] = []

    def add(self, batch: Batch) -> None:
        """Take in some children."""
        self._batches += 1
        self.rewards[batch.positions] = batch.rewards
        if not batch.keys:
            self._add_leaves(batch)
            return
        owners = self._roots[batch.positions // self._num_actions].tolist()
        flags = batch.terminated.tolist()
        positions = batch.positions.tolist()
        keys, handles = batch.keys, batch.handles
        new: list[int] = []
        for i, position in enumerate(positions):
            node = self._kinds.setdefault((owners[i], keys[i], flags[i]), len(self._kinds))
            self._which[position] = node
            if node == len(self.first):
                new.append(i)
                self.first.append(position)
                self.handles.append(handles[i])
                self.terminated.append(flags[i])
            elif position < self.first[node]:  # of equal nodes any may stand for the others, but their order is fixed
                self.first[node] = position
        shown = batch.observations if len(new) == len(flags) else batch.observations[new]
        self.rows.extend(self._observations.add(shown).tolist())

    def _add_leaves(self, batch: Batch) -> None:
        """Take in some children without keys."""
        count = len(self.first)
        self._which[batch.positions] = np.arange(count, count + len(batch.positions))
        self.first.extend(batch.positions.tolist())
        self.handles.extend([None] * len(batch.positions))
        self.terminated.extend(batch.terminated.tolist())
        self.rows.extend(self._observations.add(batch.observations).tolist())

    def in_order(self) -> tuple[IntArray, IntArray]:
        """Batches of several workers come as they may: nodes are put in the order of their first positions.

        Returns:
            order: (n,) which of the lists' entries comes first, second, …
            which: (positions,) the node, in that order, that each child became.
        """
        order = np.arange(len(self.first))
        if self._batches == 1:
            return order, self._which
        order = np.argsort(self.first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return order, place[self._which]


def run_starts(ascending: IntArray) -> IntArray:
    """Where each run of equal numbers begins, for n >= 1 of them in order."""
    if ascending[0] == ascending[-1]:
        return np.zeros(1, np.intp)
    begins = np.empty(len(ascending), bool)
    begins[0] = True
    np.not_equal(ascending[1:], ascending[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def _returns_before_step(frontier: Frontier, num_actions: int) -> FloatArray:
    """(n·A, A) for each position, the R_a of its parent. In a root only action a begins with a."""
    if frontier.returns is None:
        first_steps = np.where(np.eye(num_actions, dtype=bool), 0.0, -np.inf)
        return np.tile(first_steps, (len(frontier.roots), 1))
    return np.repeat(frontier.returns, num_actions, axis=0)


def _best_returns(children: FloatArray, which: IntArray) -> tuple[FloatArray, IntArray]:
    """Merge the returns of children (positions, A), of which each became node `which` (positions,).

    Returns:
        returns: (n, A) the best of each node.
        via: (n, A) the first position that attains it.
    """
    positions = np.arange(len(which))[:, None]
    if which[-1] == len(which) - 1:  # no two of them are equal: nodes are numbered as they come
        return children, np.broadcast_to(positions, children.shape)
    order = np.argsort(which, kind="stable")
    starts = run_starts(which[order])
    returns = np.maximum.reduceat(children[order], starts, axis=0)
    through = np.where(children == returns[which], positions, len(which))
    return returns, np.minimum.reduceat(through[order], starts, axis=0)
