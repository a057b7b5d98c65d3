"""The boundary of a sharded model: the values that travel, and how the next ones are extrapolated.

x holds the value of every state that some other shard leads to, and then the expectation of every shared row. A round
maps x to G(x), the values that the shards find when their neighbours are worth x. G is a monotone contraction, and V*
on the boundary is its fixed point. Plain rounds, x <- G(x), carry news from shard to shard exactly, and are fast where
paths cross few boundaries. Where many rounds take off the same small share, Anderson's extrapolation goes from the last
few rounds to where they seem to lead; it is dropped when it does not pay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning.evaluation.functional import solve_by_elimination
from adalook.planning.sharded.shard import ShardFacts

MEMORY = 8
"""Rounds that the extrapolation goes back."""
FAST = 0.3
"""Plain rounds that leave less than this share of the last change need no help."""
WORSE = 2.0
"""Rounds go back to the best one when the change grows to so many times the least …"""
WINDOW = 16
"""… and to where extrapolation began when so many rounds have not paid."""
REGULARISATION = 1e-14


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

    def gather(self, boundary: Sequence[FloatArray], shared: Sequence[FloatArray]) -> FloatArray:
        """Return x from what every shard said; shared rows are added up without rounding in between."""
        whole = [math.fsum(parts) for parts in zip(*shared, strict=True)]
        return np.concatenate([*boundary, np.array(whole, np.float64)])

    def bytes_per_round(self) -> tuple[int, int]:
        """Return the bytes that go to all shards, and that come back, in a round of all shards."""
        out = sum(len(places) for places in self.imports)
        back = len(self.states) + len(self.imports) * self.num_shared
        return 8 * out, 8 * back


@dataclass
class Extrapolation:
    """Anderson's extrapolation of x <- G(x), with two ways back.

    What is watched is max|G(x) − x|. When it grows, the rounds go on from the best one, and forget what led away from
    it. When it has fallen less than plain rounds took off it, they go on from where extrapolation began, without it,
    for twice as long as it had: what it can cost is bounded by what plain rounds cost.
    """

    _points: list[FloatArray] = field(default_factory=list)
    _changes: list[FloatArray] = field(default_factory=list)
    _sizes: list[float] = field(default_factory=list)
    """max|G(x) − x| of the rounds since extrapolation began, or ended."""
    _best: FloatArray | None = None
    """G(x) of the least of these sizes."""
    _start: FloatArray | None = None
    """G(x) where extrapolation began, while it goes on."""
    _plain_rate: float = 1.0
    _wait: int = 2
    """Plain rounds before the next attempt."""

    @property
    def active(self) -> bool:
        """Whether the next point is extrapolated."""
        return self._start is not None

    def next_point(self, x: FloatArray, g: FloatArray) -> FloatArray:
        """Return where to evaluate G next, after G(x) = g."""
        change = g - x
        size = float(np.abs(change).max(initial=0.0))
        least = min(self._sizes, default=math.inf)
        self._sizes.append(size)
        if size < least:
            self._best = g
        if self._start is not None and self._stuck():
            begun, self._start = self._start, None
            self._wait = 2 * len(self._sizes)
            self._forget()
            self._sizes = []
            return begun
        if self._start is not None and size > WORSE * least:
            self._forget()
            assert self._best is not None
            return self._best
        self._points = [*self._points[-MEMORY:], g]
        self._changes = [*self._changes[-MEMORY:], change]
        if self._start is None:
            self._plain_rate = _rate(self._sizes[-3:])
            if len(self._sizes) < self._wait or self._plain_rate < FAST:
                return g
            self._start, self._sizes, self._best = g, [size], g
        return g if size == 0.0 or len(self._changes) < 2 else self._combined()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return its memory as arrays, for a checkpoint."""
        width = 0 if not self._points else len(self._points[0])
        arrays = {
            "points": np.reshape(self._points, (len(self._points), width)),
            "changes": np.reshape(self._changes, (len(self._changes), width)),
            "sizes": np.array(self._sizes),
            "plain": np.array([self._plain_rate, self._wait]),
        }
        known = {"best": self._best, "start": self._start}
        return arrays | {name: point for name, point in known.items() if point is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Extrapolation:
        """Return what `to_arrays` came from."""
        return cls(
            list(arrays["points"]),
            list(arrays["changes"]),
            arrays["sizes"].tolist(),
            arrays.get("best"),
            arrays.get("start"),
            float(arrays["plain"][0]),
            int(arrays["plain"][1]),
        )

    def _forget(self) -> None:
        self._points, self._changes = [], []

    def _stuck(self) -> bool:
        """Return whether the last extrapolated rounds took off less than plain ones did."""
        sizes = self._sizes
        if len(sizes) <= WINDOW:
            return False
        return min(sizes[-WINDOW:]) > min(sizes[:-WINDOW]) * min(self._plain_rate, 0.99) ** WINDOW

    def _combined(self) -> FloatArray:
        """Return the combination of the last G(x) whose changes nearly cancel."""
        last = self._changes[-1]
        steps = [last - change for change in self._changes[:-1]]
        moves = [self._points[-1] - point for point in self._points[:-1]]
        n = len(steps)
        gram = np.array([[_dot(steps[i], steps[j]) for j in range(n)] for i in range(n)])
        gram[np.diag_indices(n)] += REGULARISATION * gram.trace() + 1e-300
        weights = np.array([_dot(step, last) for step in steps])
        solve_by_elimination(gram, weights)
        result = self._points[-1].copy()
        if not np.isfinite(weights).all():
            return result
        for weight, move in zip(weights, moves, strict=True):
            result -= weight * move
        return result


def _dot(one: FloatArray, other: FloatArray) -> float:
    """Return the scalar product in an order that does not depend on the number of cores, as BLAS's does."""
    return float((one * other).sum())


def _rate(sizes: list[float]) -> float:
    """Return the share that a round leaves, over the last few; at most just below one."""
    if len(sizes) < 2 or sizes[0] == 0.0:
        return 1.0
    return float(min((sizes[-1] / sizes[0]) ** (1.0 / (len(sizes) - 1)), 1.0))
