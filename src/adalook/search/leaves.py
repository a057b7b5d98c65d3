"""Leaves: their values, and the best of them below each first action of each root.

Each distinct observation of a level is evaluated once, all of them in one batch. Terminated nodes stay leaves at every
deeper level: they compete there with what their return is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._validation import as_array
from adalook.errors import ArgumentError, shown
from adalook.search.level import Nodes, run_starts
from adalook.search.rules.base import ValueFunction
from adalook.simulators.base import Observations, Simulator


def leaf_values(nodes: Nodes, value_fn: ValueFunction, depth: int) -> FloatArray:
    """Return the values (n,) of n nodes; terminated ones are 0 and not passed to the value function.

    The value function is called once, or not at all if every node has terminated. Observations come in the order of the
    nodes that show them first, so that its answer does not depend on who expanded what.
    """
    values = np.zeros(len(nodes.terminated))
    alive = np.flatnonzero(~nodes.terminated)
    if not len(alive):
        return values
    shown = nodes.rows[alive]
    if len(shown) == len(nodes.observations) and (shown[:-1] < shown[1:]).all():
        wanted, batch = shown, nodes.observations  # all rows in order: no copy needed
    else:
        rows, first = np.unique(shown, return_index=True)
        wanted = rows[np.argsort(first)]
        batch = nodes.observations[wanted]
    by_row = np.empty(len(nodes.observations))
    try:
        found = value_fn(batch, depth)
    except TypeError as error:
        if "positional argument" not in str(error):
            raise
        raise ArgumentError(
            "the value function takes other arguments",
            expected="value_fn(observations, depth): (n, *observation_shape) and an int",
            got=error,
            remedy="add the argument depth, even if it is not used",
        ) from error
    by_row[wanted] = checked_values(found, len(batch))
    values[alive] = by_row[shown]
    return values


def checked_values(values: Any, count: int) -> FloatArray:
    """Return what a value function returned as (count,) finite float64, or raise `ArgumentError`."""
    given = values if type(values) is np.ndarray else as_array("what the value function returned", values)
    if given.dtype.kind not in "iufb":
        raise ArgumentError("the value function returned no numbers", expected=f"floats ({count},)", got=shown(values))
    array: FloatArray = given.astype(np.float64, copy=False)
    if array.shape != (count,):
        raise ArgumentError("the value function returned a wrong shape", expected=f"({count},)", got=array.shape)
    if not np.isfinite(array).all():
        raise ArgumentError("the value function returned a value that is not finite", got=array[~np.isfinite(array)][0])
    return array


@dataclass(frozen=True, eq=False)
class ActionLeaves:
    """A leaf below each of the A first actions of n roots: the best one, or under chance one that is drawn."""

    roots: IntArray
    """(n,) ascending"""
    action_values: FloatArray
    """(n, A); -inf where a beam kept no leaf"""
    returns: FloatArray
    """(n, A)"""
    observations: Observations
    """(n, A, *observation_shape)"""
    terminated: BoolArray
    """(n, A)"""
    depths: IntArray
    """(n, A) the depth of the leaf"""
    nodes: IntArray
    """(n, A) its index in the level of that depth"""


def best_leaves(
    nodes: Nodes, bootstrapped: FloatArray, terminated: TerminatedLeaves, depth: int, only: IntArray | None = None
) -> ActionLeaves:
    """Return the best leaves of trees that are cut at a level.

    Args:
        nodes: of that level.
        bootstrapped: (nodes, A) R_a + γ^depth V.
        terminated: the terminated leaves down to this level.
        depth: of the level.
        only: the roots to answer for, ascending, all of which have nodes in the level; None: all that have.

    Of leaves with equal values, one of the level is preferred to a terminated one above it, and there the first.
    """
    roots, spans = _root_spans(nodes)
    if only is not None:
        wanted = np.flatnonzero(np.isin(roots, only)).tolist()
        roots, spans = roots[wanted], [spans[i] for i in wanted]
    first_actions = np.arange(bootstrapped.shape[1])
    best = np.array([start + bootstrapped[start:stop].argmax(axis=0) for start, stop in spans])
    leaves = ActionLeaves(
        roots,
        bootstrapped[best, first_actions],
        nodes.returns[best, first_actions],
        nodes.observations[nodes.rows[best]],
        nodes.terminated[best],
        np.full(best.shape, depth),
        best,
    )
    terminated.replace_worse(leaves)
    return leaves


class TerminatedLeaves:
    """The best terminated leaf so far below each of the A first actions of R roots.

    Terminated nodes have no future, so of all of them only the one with the best return can ever matter.
    """

    def __init__(self, num_roots: int, sim: Simulator) -> None:
        shape = (num_roots, sim.num_actions)
        self._returns: FloatArray = np.full(shape, -np.inf)
        self._depths: IntArray = np.zeros(shape, np.intp)
        self._nodes: IntArray = np.zeros(shape, np.intp)
        self._sim = sim
        self._observations: dict[int, Observations] = {}
        """(A, *observation_shape) by root, for those that have terminated leaves"""

    def add(self, nodes: Nodes, depth: int) -> None:
        """Add the terminated nodes of a level."""
        if nodes.terminated.any():
            roots, spans = _root_spans(nodes)
            for root, (start, stop) in zip(roots.tolist(), spans, strict=True):
                found = start + np.flatnonzero(nodes.terminated[start:stop])
                if len(found):
                    self._add_to_root(root, nodes, found, depth)

    def _add_to_root(self, root: int, nodes: Nodes, found: IntArray, depth: int) -> None:
        """Add terminated nodes, given by their indices in the level, to one root."""
        best = found[nodes.returns[found].argmax(axis=0)]
        returns = nodes.returns[best, np.arange(len(best))]
        better = returns > self._returns[root]
        self._returns[root, better] = returns[better]
        self._depths[root, better] = depth
        self._nodes[root, better] = best[better]
        if root not in self._observations:
            shape = (self._sim.num_actions, *self._sim.observation_shape)
            self._observations[root] = np.zeros(shape, self._sim.observation_dtype)
        self._observations[root][better] = nodes.observations[nodes.rows[best[better]]]

    def replace_worse(self, leaves: ActionLeaves) -> None:
        """Replace, in place, the leaves that are worth less than a terminated one."""
        if not self._observations:
            return
        for i, root in enumerate(leaves.roots.tolist()):
            if root not in self._observations:
                continue
            swap = self._returns[root] > leaves.action_values[i]
            leaves.action_values[i, swap] = leaves.returns[i, swap] = self._returns[root, swap]
            leaves.observations[i, swap] = self._observations[root][swap]
            leaves.terminated[i, swap] = True
            leaves.depths[i, swap], leaves.nodes[i, swap] = self._depths[root, swap], self._nodes[root, swap]


def _root_spans(nodes: Nodes) -> tuple[IntArray, list[tuple[int, int]]]:
    """Return the roots (n,) that have nodes in a level, and where the nodes of each start and stop."""
    starts = run_starts(nodes.roots)
    return nodes.roots[starts], list(zip(starts.tolist(), [*starts[1:].tolist(), len(nodes.roots)], strict=True))
