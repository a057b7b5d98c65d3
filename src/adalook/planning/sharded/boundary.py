"""The boundary of a sharded model: the values that travel, and the linear system that they solve.

x holds the value of every state that some other shard leads to, and then the expectation of every shared row. A round
maps x to G(x), the values that the shards find when their neighbours are worth x. G is a monotone contraction, and V*
on the boundary is its fixed point. Plain rounds, x <- G(x), carry news from shard to shard exactly, and are fast where
paths cross few boundaries.

Where they are slow, Newton's method takes over: while every shard keeps the policy that is best for x, G is affine,
G(x + d) = G(x) + M d, and x + d with d − M d = G(x) − x is the value of that policy on the boundary. This is policy
iteration on the whole model; M is never formed, shards say how they respond to a change of their halo.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.planning.sharded.shard import BoundaryPart, LocalAnswer, ShardFacts

MOST_DIRECTIONS = 300
"""Exchanges between the shards after which Newton's step is taken as it is."""
NO_DIRECTION = 1e-14
"""A new direction so short is rounding: the solution is found."""


@dataclass(frozen=True)
class Boundary:
    """The values that travel, and between which shards."""

    states: IntArray  # (B,) ascending numbers of the states that some other shard leads to
    num_shared: int
    imports: tuple[IntArray, ...]
    """Of each shard: where the values of its halo stand in x."""
    exports: tuple[IntArray, ...]
    """Of each shard: the numbers of its states whose values it sends."""

    @classmethod
    def of(cls, facts: Sequence[ShardFacts], num_states: int, num_shared: int) -> Boundary:
        """Find the boundary of shards that know their halos."""
        everyone = np.unique(np.concatenate([fact.halo for fact in facts]))
        states = everyone[everyone < num_states]
        imports = []
        for fact in facts:
            places = np.searchsorted(states, fact.halo)
            shared = fact.halo >= num_states
            places[shared] = len(states) + (fact.halo[shared] - num_states)
            imports.append(places)
        cuts = np.searchsorted(states, [fact.states.stop for fact in facts[:-1]])
        return cls(states, num_shared, tuple(imports), tuple(np.split(states, cuts)))

    @property
    def size(self) -> int:
        """Length of x."""
        return len(self.states) + self.num_shared

    def stages(self, facts: Sequence[ShardFacts]) -> list[list[int]]:
        """Return the shards in the order in which they can be solved: each stage leads to itself and earlier ones only.

        Shards that lead to each other, by any number of steps, are one strongly connected block and in one stage.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        count = len(self.imports)
        ends = np.cumsum([len(states) for states in self.exports])
        contributes = np.stack([fact.shared_widths > 0 for fact in facts])  # (K, R)
        leads = np.zeros((count, count), bool)
        for k, places in enumerate(self.imports):
            own = places[places < len(self.states)]
            leads[k, np.searchsorted(ends, np.unique(own), side="right")] = True
            leads[k] |= contributes[:, places[places >= len(self.states)] - len(self.states)].any(axis=1)
        blocks, block = connected_components(csr_array(leads), connection="strong")
        stage = np.zeros(blocks, np.int64)
        for _ in range(blocks):  # the longest way down from each block, in as many steps as there can be
            above, below = np.nonzero(leads)
            higher = stage[block[below]] + (block[above] != block[below])
            before = stage.copy()
            np.maximum.at(stage, block[above], higher)
            if np.array_equal(stage, before):
                break
        return [np.flatnonzero(stage[block] == level).tolist() for level in range(int(stage.max()) + 1)]

    def inner(self, shards: Sequence[int]) -> BoolArray:
        """Return which entries of x some shards both lead to and have a part in."""
        ends = np.cumsum([0, *(len(states) for states in self.exports)])
        theirs, wanted = np.zeros(self.size, bool), np.zeros(self.size, bool)
        theirs[len(self.states) :] = True
        for k in shards:
            theirs[ends[k] : ends[k + 1]] = True
            wanted[self.imports[k]] = True
        return theirs & wanted

    def gather(self, parts: Sequence[BoundaryPart | LocalAnswer]) -> FloatArray:
        """Return x from what every shard said; shared rows are added up without rounding in between."""
        shared = [math.fsum(row) for row in zip(*(part.shared for part in parts), strict=True)]
        return np.concatenate([*(part.boundary for part in parts), np.array(shared, np.float64)])

    def bytes_per_round(self, shards: Sequence[int]) -> tuple[int, int]:
        """Return the bytes that go to some shards, and that come back, in a round of all of them."""
        out = sum(len(self.imports[k]) for k in shards)
        back = sum(len(self.exports[k]) for k in shards) + len(shards) * self.num_shared
        return 8 * out, 8 * back


def solve_affine(
    respond: Callable[[FloatArray], FloatArray], residual: FloatArray, reduction: float, stop: Callable[[], bool]
) -> tuple[FloatArray, int]:
    """Return d with d − M d = residual, nearly, and how often M was applied (GMRES).

    Args:
        respond: d -> M d.
        residual: the right-hand side.
        reduction: of the residual's length to reach.
        stop: whether to be content with what there is.
    """
    length = _length(residual)
    basis = [residual / length]
    columns: list[list[float]] = []
    rotations: list[tuple[float, float]] = []
    right = [length]
    most = min(len(residual), MOST_DIRECTIONS)
    while len(columns) < most and abs(right[-1]) > reduction * length and not (columns and stop()):
        image = basis[-1] - respond(basis[-1])
        column: list[float] = []
        for _ in range(2):  # the second time for what rounding left
            parts = [_dot(direction, image) for direction in basis]
            for part, direction in zip(parts, basis, strict=True):
                image = image - part * direction
            column = parts if not column else [one + other for one, other in zip(column, parts, strict=True)]
        rest = _length(image)
        for i, (cosine, sine) in enumerate(rotations):
            column[i], column[i + 1] = (
                cosine * column[i] + sine * column[i + 1],
                cosine * column[i + 1] - sine * column[i],
            )
        radius = math.hypot(column[-1], rest)
        cosine, sine = column[-1] / radius, rest / radius
        column[-1] = radius
        rotations.append((cosine, sine))
        columns.append(column)
        right[-1:] = [cosine * right[-1], -sine * right[-1]]
        if rest <= NO_DIRECTION * radius:
            break
        basis.append(image / rest)
    weights = [0.0] * len(columns)
    for i in reversed(range(len(columns))):
        known = math.fsum(columns[j][i] * weights[j] for j in range(i + 1, len(columns)))
        weights[i] = (right[i] - known) / columns[i][i]
    result = np.zeros(len(residual))
    for weight, direction in zip(weights, basis, strict=False):
        result += weight * direction
    return result, len(columns)


def _length(vector: FloatArray) -> float:
    size = float(np.abs(vector).max(initial=0.0))
    return size * math.sqrt(_dot(vector / size, vector / size)) if size > 0.0 else 0.0


def _dot(one: FloatArray, other: FloatArray) -> float:
    """Return the scalar product in an order that does not depend on the number of cores, as BLAS's does."""
    return float((one * other).sum())
