"""The best leaf below each first action of each root, among the nodes of a level and all that ended above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.search.level import Nodes, run_starts
from adalook.simulators.base import Observations, Simulator


@dataclass(frozen=True, eq=False)
class BestLeaves:
    """One leaf for each of n roots and A first actions."""

    roots: IntArray
    """(n,) ascending"""
    action_values: FloatArray
    """(n, A); -inf where a beam left no leaf"""
    returns: FloatArray
    """(n, A)"""
    observations: Observations
    """(n, A, *observation_shape)"""
    terminated: BoolArray
    """(n, A)"""
    depths: IntArray
    """(n, A) the level that the leaf is in"""
    nodes: IntArray
    """(n, A) its number in that level"""


class Frozen:
    """The best ended leaf so far below each first action of each root.

    Ended nodes have no future, so of all of them only the one with the best return can ever matter.
    """

    def __init__(self, num_roots: int, sim: Simulator) -> None:
        shape = (num_roots, sim.num_actions)
        self.returns: FloatArray = np.full(shape, -np.inf)
        self.depths: IntArray = np.zeros(shape, np.intp)
        self.nodes: IntArray = np.zeros(shape, np.intp)
        self._row = (sim.num_actions, *sim.observation_shape)
        self._dtype = sim.observation_dtype
        self._observations: dict[int, Observations] = {}

    def has(self, root: int) -> bool:
        """Whether any leaf of a root has ended."""
        return root in self._observations

    def observations(self, root: int) -> Observations:
        """(A, *observation_shape), made when a root's first leaf ends."""
        if root not in self._observations:
            self._observations[root] = np.zeros(self._row, self._dtype)
        return self._observations[root]

    def add(self, nodes: Nodes, root: int, start: int, stop: int, depth: int) -> None:
        """Take note of the ended among nodes `start` to `stop`, which are those of `root` in the level at `depth`."""
        terminated = start + np.flatnonzero(nodes.terminated[start:stop])
        if not len(terminated):
            return
        best = terminated[nodes.returns[terminated].argmax(axis=0)]
        returns = nodes.returns[best, np.arange(len(best))]
        better = returns > self.returns[root]
        self.returns[root, better] = returns[better]
        self.depths[root, better] = depth
        self.nodes[root, better] = best[better]
        self.observations(root)[better] = nodes.observations[nodes.rows[best[better]]]


def best_leaves(
    nodes: Nodes, bootstrapped: FloatArray, frozen: Frozen, depth: int, only: IntArray | None = None
) -> BestLeaves:
    """The best leaves when trees are cut at a level.

    Args:
        nodes: of that level.
        bootstrapped: (nodes, A) R_a + γ^depth V.
        frozen: what ended above; the nodes that ended at this level are added to it.
        depth: of the level.
        only: the roots to answer for, ascending, all of which have nodes in the level; None: all that have.

    Of leaves with equal values that of the level counts, and there the first.
    """
    roots, spans = _spans(nodes)
    if only is not None:
        wanted = np.flatnonzero(np.isin(roots, only)).tolist()
        roots, spans = roots[wanted], [spans[i] for i in wanted]
    first_actions = np.arange(bootstrapped.shape[1])
    best = np.array([lo + bootstrapped[lo:hi].argmax(axis=0) for lo, hi in spans])
    values = bootstrapped[best, first_actions]
    leaves = BestLeaves(
        roots,
        values,
        nodes.returns[best, first_actions],
        nodes.observations[nodes.rows[best]],
        nodes.terminated[best],
        np.full(best.shape, depth),
        best,
    )
    for i, root in enumerate(roots.tolist()):
        if not frozen.has(root):
            continue
        swap = frozen.returns[root] > values[i]
        leaves.action_values[i, swap] = leaves.returns[i, swap] = frozen.returns[root, swap]
        leaves.observations[i, swap] = frozen.observations(root)[swap]
        leaves.terminated[i, swap] = True
        leaves.depths[i, swap], leaves.nodes[i, swap] = frozen.depths[root, swap], frozen.nodes[root, swap]
    freeze(nodes, frozen, depth)
    return leaves


def freeze(nodes: Nodes, frozen: Frozen, depth: int) -> None:
    """Add the nodes of a level that have ended to what is frozen."""
    if nodes.terminated.any():
        roots, spans = _spans(nodes)
        for root, (lo, hi) in zip(roots.tolist(), spans, strict=True):
            frozen.add(nodes, root, lo, hi, depth)


def _spans(nodes: Nodes) -> tuple[IntArray, list[tuple[int, int]]]:
    """The roots (n,) that have nodes in a level, and where those of each begin and end."""
    starts = run_starts(nodes.roots)
    return nodes.roots[starts], list(zip(starts.tolist(), [*starts[1:].tolist(), len(nodes.roots)], strict=True))
