"""Queries of a solve: calls (state, action) to the model, under every convention of the field.

Improvement, three ways to count the same lookahead:

    tree    every node of the trees that are searched: A + (A·b)·A + … nodes for a tree of b successors a move
    root    distinct (state, action) within one root's tree: a search that remembers what it has seen below this root
    shared  distinct (state, action, level) over all roots of an iteration: dynamic programming

A shared row (such as a random relocation) is one query and is not expanded. A wavefront (WLPI) consists of one-step
backups on stored values, so its cost is the same under all three; so is that of backups in place.

Evaluation, two ways: `exact` counts S for a direct solve and S for every sweep; `simulated` counts a rollout of the
effective horizon ⌈1/(1−γ)⌉ from every state.

All of this is counted when it is asked for: counting trees can take longer than solving.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import BoolArray, IntArray
from adalook._jit import compiled
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, is_deterministic, is_stochastic, row_of

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

CONVENTIONS = ("tree", "root", "shared")
EVALUATION_CONVENTIONS = ("exact", "simulated")


@dataclass(frozen=True)
class LookaheadRoots:
    """States that look ahead to one depth (None: every state)."""

    depth: int
    states: IntArray | None = None


class Counts(Mapping[str, int]):
    """Queries by convention; prints those that are counted in no time."""

    conventions: tuple[str, ...]

    @abstractmethod
    def count(self, convention: str) -> int:
        """Return the queries under one of `conventions`."""

    def is_cheap(self, convention: str) -> bool:
        """Return whether a count is known, or takes no longer than a few backups of every state."""
        return True

    def __getitem__(self, convention: str) -> int:
        if convention not in self.conventions:
            raise KeyError(f"{convention!r}: expected one of {', '.join(self.conventions)}")
        return self.count(convention)

    def __iter__(self) -> Iterator[str]:
        return iter(self.conventions)

    def __len__(self) -> int:
        return len(self.conventions)

    def __repr__(self) -> str:
        counts = {name: f"{self[name]:,}" if self.is_cheap(name) else "not counted yet" for name in self}
        return ", ".join(f"{name} {count}" for name, count in counts.items())


@dataclass(eq=False, repr=False)
class LookaheadQueries(Counts):
    """Queries of one iteration's lookahead by convention."""

    counter: QueryCounter
    roots: tuple[LookaheadRoots, ...]
    backed_up: int = 0
    """(state, action) pairs of one-step backups, which cost the same under every convention."""
    conventions = CONVENTIONS
    _known: dict[str, int] = field(default_factory=dict)

    def count(self, convention: str) -> int:
        """Count once, and remember."""
        if convention not in self._known:
            self._known[convention] = self.counter.count(self.roots, convention) + self.backed_up
        return self._known[convention]

    def is_cheap(self, convention: str) -> bool:
        """Return whether a count is known, or needs no trees of more than one step."""
        shallow = all(group.depth <= 1 for group in self.roots)
        return shallow or convention == "shared" or convention in self._known


@dataclass(eq=False, repr=False)
class EvaluationQueries(Counts):
    """Queries of one policy evaluation by convention."""

    swept: int
    """States updated by sweeps, S for a direct solve."""
    num_states: int
    discount: float
    is_exact: bool
    """Whether rollouts of the whole horizon stand for it; part of an evaluation is simulated by as many steps."""
    conventions = EVALUATION_CONVENTIONS

    def count(self, convention: str) -> int:
        """Return states swept, or the steps of rollouts."""
        simulated = convention == "simulated" and self.is_exact
        return horizon(self.discount) * self.num_states if simulated else self.swept


@dataclass(frozen=True, eq=False, repr=False)
class TotalQueries(Counts):
    """The sum of several counts, convention by convention."""

    parts: tuple[Counts, ...]
    conventions: tuple[str, ...]

    def count(self, convention: str) -> int:
        """Add the parts up."""
        return sum(part[convention] for part in self.parts)

    def is_cheap(self, convention: str) -> bool:
        """Return whether every part is cheap to count."""
        return all(part.is_cheap(convention) for part in self.parts)


@dataclass(frozen=True, eq=False, repr=False)
class CountedQueries(Counts):
    """Counts that are known, one for each convention."""

    conventions: tuple[str, ...]
    numbers: tuple[int, ...]

    def count(self, convention: str) -> int:
        """Return the number of a convention."""
        return self.numbers[self.conventions.index(convention)]


@dataclass(frozen=True, repr=False)
class Queries:
    """Queries of improvement["tree" | "root" | "shared"] and of evaluation["exact" | "simulated"]."""

    improvement: Counts
    evaluation: Counts

    def total(self, improvement: str = "root", evaluation: str = "simulated") -> int:
        """Return both together; the default is the headline of the paper's maze figure."""
        return self.improvement[improvement] + self.evaluation[evaluation]

    def __repr__(self) -> str:
        return f"Queries(improvement: {self.improvement!r}; evaluation: {self.evaluation!r})"

    @classmethod
    def sum(cls, parts: tuple[Queries, ...]) -> Queries:
        """Return the queries of several iterations together."""
        return cls(
            TotalQueries(tuple(part.improvement for part in parts), CONVENTIONS),
            TotalQueries(tuple(part.evaluation for part in parts), EVALUATION_CONVENTIONS),
        )

    @classmethod
    def counted(cls, parts: tuple[Queries, ...]) -> Queries:
        """Return the queries of several iterations as plain numbers, which take no memory of the iterations."""
        return cls(
            CountedQueries(CONVENTIONS, tuple(sum(part.improvement[name] for part in parts) for name in CONVENTIONS)),
            CountedQueries(
                EVALUATION_CONVENTIONS,
                tuple(sum(part.evaluation[name] for part in parts) for name in EVALUATION_CONVENTIONS),
            ),
        )


def horizon(discount: float) -> int:
    """Return ⌈1/(1−γ)⌉, the effective horizon; guarded so that γ = 0.98 gives 50 and not 51."""
    return max(1, math.ceil(1.0 / (1.0 - discount) * (1.0 - 1e-9)))


@dataclass
class QueryCounter:
    """Counts lookahead on one model; remembers per depth what every state's tree costs."""

    mdp: MDP
    _trees: list[IntArray] = field(default_factory=list)
    _balls: dict[int, IntArray] = field(default_factory=dict)

    def count(self, roots: tuple[LookaheadRoots, ...], convention: str) -> int:
        """Return the queries of one iteration's lookahead under a convention."""
        if convention == "shared":
            return self._shared(roots)
        if convention == "tree":
            return sum(_exact_sum(self._pick(self._tree(group.depth), group)) for group in roots)
        deepest = np.zeros(self.mdp.num_states, np.int64)
        for group in roots:
            where = slice(None) if group.states is None else group.states
            deepest[where] = np.maximum(deepest[where], group.depth)
        return sum(self._below(np.flatnonzero(deepest == d), int(d)) for d in np.unique(deepest[deepest > 0]))

    @staticmethod
    def _pick(per_state: IntArray, group: LookaheadRoots) -> IntArray:
        """Return the entries of a group's states."""
        return per_state if group.states is None else per_state[group.states]

    @property
    def _offered(self) -> IntArray:
        """(S,) actions on offer."""
        return self._tree(1)

    def _tree(self, depth: int) -> IntArray:
        """Return (S,) nodes of every state's tree of this depth; Python's big integers where int64 would overflow."""
        mdp = self.mdp
        if not self._trees:
            self._trees.append(mdp.offered.sum(axis=1))
        while len(self._trees) < depth:
            last = self._trees[-1]
            if last.dtype == object or int(last.max()) * mdp.num_actions * max(1, mdp.longest_row) > 2**62:
                self._trees.append(self._big_tree(last.astype(object)))
                continue
            deeper = np.empty(mdp.num_states, np.int64)
            _count_trees(mdp.arrays, last, deeper)
            self._trees.append(deeper)
        return self._trees[depth - 1]

    def _big_tree(self, shallower: IntArray) -> IntArray:
        """Return nodes of trees one level deeper, as Python's big integers."""
        mdp, rows = self.mdp, self.mdp.rows
        row_sums = np.zeros(rows.num_rows, object)
        for row in range(rows.num_shared, rows.num_rows):
            row_sums[row] = shallower[rows.indices[rows.indptr[row] : rows.indptr[row + 1]]].sum()
        total = self._offered.astype(object)
        for a in range(mdp.num_actions):
            code = mdp.codes[:, a]
            deterministic, stochastic = is_deterministic(code), is_stochastic(code)
            total[deterministic] += shallower[code[deterministic]]
            total[stochastic] += row_sums[row_of(code[stochastic])]
        return total

    def _below(self, states: IntArray, depth: int) -> int:
        """Return the distinct pairs below each of `states`, summed; computed once per state and depth."""
        mdp = self.mdp
        known = self._balls.setdefault(depth, np.full(mdp.num_states, -1, np.int64))
        missing = states[known[states] < 0]
        if len(missing):
            counts = np.empty(len(missing), np.int64)
            _count_pairs_below(mdp.arrays, self._offered, missing, depth, counts)
            known[missing] = counts
        return int(known[states].sum())

    def _shared(self, roots: tuple[LookaheadRoots, ...]) -> int:
        """Return the distinct (state, action, level): T^k of a tree of depth h is needed h − k steps from its root."""
        mdp = self.mdp
        total = 0
        need: BoolArray = np.zeros(mdp.num_states, bool)
        by_depth = {group.depth: group for group in roots}
        for level in range(max(by_depth, default=0), 0, -1):
            deeper, need = need, np.zeros(mdp.num_states, bool)
            if deeper.any():
                _mark_successors(mdp.arrays, deeper, need)
            if level in by_depth:
                states = by_depth[level].states
                need[slice(None) if states is None else states] = True
            total += int(self._offered[need].sum())
        return total


def _exact_sum(counts: IntArray) -> int:
    """Return their sum, which may be beyond 64 bits although none of them is."""
    if counts.dtype == object or len(counts) * int(counts.max(initial=0)) > np.iinfo(np.int64).max:
        return sum(counts.tolist())
    return int(counts.sum())


@compiled
def _mark_successors(model: ModelArrays, member: BoolArray, out: BoolArray) -> None:
    """Mark in `out` every successor of a member state that is not reached through a shared row."""
    num_states, num_actions = model.codes.shape
    for s in range(num_states):
        if member[s]:
            for a in range(num_actions):
                code = model.codes[s, a]
                row = row_of(code)
                if is_deterministic(code):
                    out[code] = True
                elif row >= model.num_shared:
                    for k in range(model.indptr[row], model.indptr[row + 1]):
                        out[model.indices[k]] = True


@compiled
def _count_pairs_below(model: ModelArrays, offered: IntArray, roots: IntArray, depth: int, out: IntArray) -> None:
    """Write the distinct (state, action) pairs in the tree of `depth` levels below each root, without shared rows."""
    num_states, num_actions = model.codes.shape
    stamp, queue = np.zeros(num_states, np.int64), np.empty(num_states, np.int64)
    for i in range(len(roots)):
        mark = i + 1
        stamp[roots[i]] = mark
        queue[0] = roots[i]
        head, tail = 0, 1
        total = 0
        for level in range(depth):
            end = tail
            while head < end:
                s = queue[head]
                head += 1
                total += offered[s]
                if level == depth - 1:
                    continue
                for a in range(num_actions):
                    code = model.codes[s, a]
                    row = row_of(code)
                    if is_deterministic(code):
                        if stamp[code] != mark:
                            stamp[code] = mark
                            queue[tail] = code
                            tail += 1
                    elif row >= model.num_shared:
                        for k in range(model.indptr[row], model.indptr[row + 1]):
                            p = model.indices[k]
                            if stamp[p] != mark:
                                stamp[p] = mark
                                queue[tail] = p
                                tail += 1
        out[i] = total


@compiled
def _count_trees(model: ModelArrays, shallower: IntArray, out: IntArray) -> None:
    """Write Σ_a (1 + Σ_s' shallower(s')): nodes of trees one level deeper, shared rows not expanded."""
    num_states, num_actions = model.codes.shape
    for s in range(num_states):
        total = 0
        for a in range(num_actions):
            code = model.codes[s, a]
            row = row_of(code)
            if code == NOT_OFFERED:
                continue
            total += 1
            if is_deterministic(code):
                total += shallower[code]
            elif row >= model.num_shared:
                for k in range(model.indptr[row], model.indptr[row + 1]):
                    total += shallower[model.indices[k]]
        out[s] = total
