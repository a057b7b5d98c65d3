"""What a solve cost in queries: calls (state, action) to the model, under every convention of the field.

Improvement, three ways to count the same lookahead:

    tree    every node of the trees that are searched: A + (A·b)·A + … nodes for a tree of b successors a move
    root    distinct (state, action) within one root's tree: a search that remembers what it has seen below this root
    shared  distinct (state, action, level) over all roots of an iteration: dynamic programming

A hub (a wide shared row, such as a random relocation) is one query and is not expanded. A wave (WLPI) consists of
one-step backups on stored values, so its cost is the same under all three.

Evaluation, two ways: `exact` counts S for a direct solve and S for every sweep; `simulated` counts a rollout of the
effective horizon ⌈1/(1−γ)⌉ from every state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import BoolArray, IntArray
from adalook.planning import query_kernels

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

CONVENTIONS = ("tree", "root", "shared")
EVERY_STATE = None


@dataclass(frozen=True)
class Search:
    """A lookahead of one depth from some states (None: from every state)."""

    depth: int
    states: IntArray | None = EVERY_STATE


class Improvement(Mapping[str, int]):
    """Queries of one iteration's lookahead by convention, counted when asked for: counting trees can take longer
    than solving.
    """

    def __init__(self, counter: Counter, searches: tuple[Search, ...], wave_pairs: int = 0) -> None:
        self._counter, self._searches, self._wave_pairs = counter, searches, wave_pairs
        self._known: dict[str, int] = {}

    def __getitem__(self, convention: str) -> int:
        if convention not in CONVENTIONS:
            raise KeyError(f"{convention!r}: expected one of {', '.join(CONVENTIONS)}")
        if convention not in self._known:
            self._known[convention] = self._counter.count(self._searches, convention) + self._wave_pairs
        return self._known[convention]

    def __iter__(self) -> Iterator[str]:
        return iter(CONVENTIONS)

    def __len__(self) -> int:
        return len(CONVENTIONS)

    def __repr__(self) -> str:
        return f"Improvement({dict(self._known) or 'not counted yet'})"


class Total(Mapping[str, int]):
    """The sum of several counts, convention by convention."""

    def __init__(self, parts: tuple[Mapping[str, int], ...], names: tuple[str, ...] = CONVENTIONS) -> None:
        self._parts, self._names = parts, names

    def __getitem__(self, convention: str) -> int:
        if convention not in self._names:
            raise KeyError(f"{convention!r}: expected one of {', '.join(self._names)}")
        return sum(part[convention] for part in self._parts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Total of {len(self._parts)} iterations, counted when asked for"


@dataclass(frozen=True)
class Queries:
    """Queries of improvement["tree" | "root" | "shared"] and of evaluation["exact" | "simulated"]."""

    improvement: Mapping[str, int]
    evaluation: Mapping[str, int] = field(default_factory=lambda: {"exact": 0, "simulated": 0})

    def total(self, improvement: str = "root", evaluation: str = "simulated") -> int:
        """Both together; the default is the headline of the paper's maze figure."""
        return self.improvement[improvement] + self.evaluation[evaluation]

    @classmethod
    def sum(cls, parts: tuple[Queries, ...]) -> Queries:
        evaluation = {name: sum(part.evaluation[name] for part in parts) for name in ("exact", "simulated")}
        return cls(Total(tuple(part.improvement for part in parts)), evaluation)


def horizon(discount: float) -> int:
    """⌈1/(1−γ)⌉, the effective horizon; guarded so that γ = 0.98 gives 50 and not 51."""
    return max(1, math.ceil(1.0 / (1.0 - discount) * (1.0 - 1e-9)))


class Counter:
    """Counts searches on one model; remembers per depth what every state's tree costs."""

    def __init__(self, mdp: MDP) -> None:
        self._mdp = mdp
        self._trees: list[IntArray] = []
        self._balls: dict[int, IntArray] = {}

    def count(self, searches: tuple[Search, ...], convention: str) -> int:
        if convention == "shared":
            return self._shared(searches)
        if convention == "tree":
            return sum(_exact_sum(self._pick(self._tree(search.depth), search)) for search in searches)
        deepest = np.zeros(self._mdp.num_states, np.int64)
        for search in searches:
            where = slice(None) if search.states is None else search.states
            deepest[where] = np.maximum(deepest[where], search.depth)
        return sum(self._roots(np.flatnonzero(deepest == d), int(d)) for d in np.unique(deepest[deepest > 0]))

    @staticmethod
    def _pick(per_state: IntArray, search: Search) -> IntArray:
        return per_state if search.states is None else per_state[search.states]

    @property
    def _offered(self) -> IntArray:
        return self._tree(1)

    def _tree(self, depth: int) -> IntArray:
        """(S,) nodes of every state's tree of this depth; Python's big integers where int64 would overflow."""
        mdp = self._mdp
        if not self._trees:
            self._trees.append(mdp.offered.sum(axis=1))
        while len(self._trees) < depth:
            last = self._trees[-1]
            width = max(1, int(np.diff(mdp.rows.indptr)[mdp.rows.num_shared :].max(initial=1)))
            if last.dtype == object or int(last.max()) * mdp.num_actions * width > 2**62:
                self._trees.append(self._big_tree(last.astype(object)))
                continue
            deeper = np.empty(mdp.num_states, np.int64)
            query_kernels.tree_pairs(mdp.codes, mdp.rows.indptr, mdp.rows.indices, mdp.rows.num_shared, last, deeper)
            self._trees.append(deeper)
        return self._trees[depth - 1]

    def _big_tree(self, shallower: IntArray) -> IntArray:
        mdp = self._mdp
        row_sums = np.zeros(mdp.rows.num_rows, object)
        for row in range(mdp.rows.num_shared, mdp.rows.num_rows):
            row_sums[row] = shallower[mdp.rows.indices[mdp.rows.indptr[row] : mdp.rows.indptr[row + 1]]].sum()
        total = self._offered.astype(object)
        for a in range(mdp.num_actions):
            code = mdp.codes[:, a]
            certain, stochastic = code >= 0, code < -1
            total[certain] += shallower[code[certain]]
            total[stochastic] += row_sums[-2 - code[stochastic]]
        return total

    def _roots(self, states: IntArray, depth: int) -> int:
        """Distinct pairs below each of `states`, summed; computed once per state and depth."""
        mdp = self._mdp
        known = self._balls.setdefault(depth, np.full(mdp.num_states, -1, np.int64))
        missing = states[known[states] < 0]
        if len(missing):
            counts = np.empty(len(missing), np.int64)
            stamp, queue = np.zeros(mdp.num_states, np.int64), np.empty(mdp.num_states, np.int64)
            graph = (mdp.codes, mdp.rows.indptr, mdp.rows.indices, mdp.rows.num_shared)
            query_kernels.ball_pairs(*graph, self._offered, missing, depth, stamp, queue, counts)
            known[missing] = counts
        return int(known[states].sum())

    def _shared(self, searches: tuple[Search, ...]) -> int:
        """Level k of a tree of depth h needs T^k at the states h − k steps from its root."""
        mdp = self._mdp
        total = 0
        need: BoolArray = np.zeros(mdp.num_states, bool)
        by_depth = {search.depth: search for search in searches}
        for level in range(max(by_depth, default=0), 0, -1):
            deeper, need = need, np.zeros(mdp.num_states, bool)
            if deeper.any():
                query_kernels.expand(mdp.codes, mdp.rows.indptr, mdp.rows.indices, mdp.rows.num_shared, deeper, need)
            if level in by_depth:
                states = by_depth[level].states
                need[slice(None) if states is None else states] = True
            total += int(self._offered[need].sum())
        return total


def _exact_sum(counts: IntArray) -> int:
    """Their sum, which may be beyond 64 bits although none of them is."""
    if counts.dtype == object or len(counts) * int(counts.max(initial=0)) > np.iinfo(np.int64).max:
        return sum(counts.tolist())
    return int(counts.sum())
