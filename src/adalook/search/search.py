"""Where a search begins.

How much a search may cost. A search that runs out of it answers with its last complete level.

Complaints about arguments that no search can work with, before anything is simulated.

`search`: look ahead from a state in every direction, level by level (decisions 7 to 12 of the design).

    v_h(s₀, a) = max over paths of h steps that begin with a of  Σ_{t<h} γ^t r_t + γ^h V_h(s_h)

A path that ends early counts with the rewards it has collected and no V. Breadth first, so that a rule can decide on
each level whether another is worth its price; equal nodes are merged, which changes no value (see `nodes`).

With a beam (`width`), at most that many nodes of a level are expanded, the most valuable ones: the cost is linear in
the depth, and the values of actions are lower bounds of those of the full tree.

The trees of many roots while they grow, level by level: expand, merge, evaluate, ask the rule.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.errors import ArgumentError
from adalook.search.best import BestLeaves, Frozen, best_leaves, freeze
from adalook.search.distinct import DistinctObservations, EveryObservation, ObservationPool
from adalook.search.leaves import checked_values, leaf_values
from adalook.search.level import Frontier, Nodes, OutOfTimeError, next_level, run_starts
from adalook.search.result import Level, SearchResult, Seconds, Status
from adalook.search.rules.base import DepthRule, LevelView, ValueFunction, is_number, is_whole
from adalook.search.timing import Metered, Spending
from adalook.search.workers.expander import Expander, InProcess
from adalook.simulators.base import Simulator, State


@dataclass(frozen=True, eq=False)
class Root:
    """A saved state and what the world shows there.

    The two come together because some worlds cannot show a state right after it was restored (Atari's screen is stale
    until the next step).

    The episode must not be over there. A state alone does not tell, so no search can complain: it would look ahead into
    whatever the world does when it is stepped after its end.
    """

    state: State
    observation: np.ndarray[Any, Any]
    """(*observation_shape)"""

    @classmethod
    def of(cls, sim: Simulator) -> Root:
        """The live world as it is now."""
        return cls(sim.save(), sim.observe())


@dataclass(frozen=True)
class Budget:
    """Limits of one search. The first level is always completed, since without it there is no answer.

    >>> Budget(nodes=500, seconds=0.05)
    Budget(nodes=500, seconds=0.05)
    """

    nodes: int | None = None
    """Steps that may be simulated for one root. A level that would go beyond is not begun."""
    seconds: float | None = None
    """Time for the whole call. A level that is not complete by then is given up; value functions are waited for."""

    def __post_init__(self) -> None:
        for name, limit in (("nodes", self.nodes), ("seconds", self.seconds)):
            if limit is not None and not (is_number(limit) and limit > 0):
                raise ArgumentError(f"the budget of {name} is wrong", expected="a number > 0, or None", got=repr(limit))


def check_kinds(value_fn: Any, rule: Any, budget: Any, expander: Any) -> None:
    """Complain about what is not of the kind that `search` asks for."""
    if not callable(value_fn):
        raise ArgumentError(
            "the value function is wrong",
            expected="a function of (observations, depth) that returns values",
            got=repr(value_fn),
        )
    if not isinstance(rule, DepthRule):
        raise ArgumentError("the rule is wrong", expected="a DepthRule, such as FixedDepth(3)", got=repr(rule))
    if budget is not None and not isinstance(budget, Budget):
        raise ArgumentError(
            "the budget is wrong", expected="a Budget, such as Budget(nodes=500), or None", got=repr(budget)
        )
    if expander is not None and not callable(getattr(expander, "expand", None)):
        raise ArgumentError(
            "the expander is wrong", expected="an Expander, such as Workers(sim, 2), or None", got=repr(expander)
        )


def check_numbers(discount: Any, width: Any) -> None:
    """Complain about a discount or a width out of its range."""
    if not is_number(discount) or not 0.0 < discount <= 1.0:
        raise ArgumentError("the discount is wrong", expected="a number in (0, 1]", got=repr(discount))
    # An infinite beam is no whole number, but everybody knows what is meant.
    if width is not None and width != math.inf and not (is_whole(width) and width >= 1):
        raise ArgumentError("the width is wrong", expected="a whole number >= 1, or None", got=repr(width))


def check_roots(roots: Any) -> None:
    """Complain about roots that are none: bare states, simulators, or one root where many are expected."""
    if isinstance(roots, Root) or not isinstance(roots, Sequence):
        raise ArgumentError("the roots are wrong", expected="a list of Root", got=f"one {type(roots).__name__}")
    for root in roots:
        if not isinstance(root, Root):
            raise ArgumentError(
                "the root is wrong", expected="a Root, such as Root.of(sim)", got=f"a {type(root).__name__}"
            )


def checked_seeds(seed: Any, count: int) -> list[int]:
    """One seed for each of `count` roots, of one for all or of one for each."""
    if is_whole(seed):
        return [int(seed)] * count
    if not isinstance(seed, Sequence | np.ndarray) or not all(isinstance(each, numbers.Integral) for each in seed):
        raise ArgumentError(
            "the seed is wrong", expected="a whole number, or one for each root of search_many", got=repr(seed)
        )
    if len(seed) != count:
        raise ArgumentError("there must be a seed for each root", expected=f"{count} seeds", got=len(seed))
    return [int(each) for each in seed]


def search(
    sim: Simulator,
    root: Root,
    value_fn: ValueFunction,
    rule: DepthRule,
    *,
    discount: float,
    seed: int = 0,
    width: int | None = None,
    budget: Budget | None = None,
    expander: Expander | None = None,
    every_level: bool = False,
) -> SearchResult:
    """Look ahead from one root; the live world of `sim` is left alone.

    Args:
        sim: the world.
        root: where to begin: a state whose episode is not over.
        value_fn: (observations (n, *observation_shape), depth) -> (n,) what leaves are worth. It is called once for
            each level that is looked at, with all its distinct observations, but for leaves that have ended.
        rule: how deep to look, such as FixedDepth(3).
        discount: γ in (0, 1], for each step.
        seed: of the tree's own randomness, if the world has any.
        width: expand at most so many nodes of a level; None: all.
        budget: of nodes and time; None: no limit.
        expander: who steps the nodes, such as Workers(sim, 2); None: this process.
        every_level: look at every level, also where neither the rule nor a beam or a budget needs to: for learners
            that store the best leaf of each depth.

    >>> import numpy as np
    >>> import adalook as al
    >>> from adalook.search import FixedDepth, Root, search
    >>> from adalook.simulators.tabular import TabularSimulator
    >>> sim = TabularSimulator(al.zoo.chain(n=5), start=0)
    >>> _ = sim.reset(seed=0)
    >>> result = search(sim, Root.of(sim), lambda leaves, depth: np.zeros(len(leaves)), FixedDepth(3), discount=0.9)
    >>> result.depth, result.nodes, result.tree_nodes
    (3, 10, 14)
    """
    return search_many(
        sim,
        [root],
        value_fn,
        rule,
        discount=discount,
        seed=seed,
        width=width,
        budget=budget,
        expander=expander,
        every_level=every_level,
    )[0]


def search_many(
    sim: Simulator,
    roots: Sequence[Root],
    value_fn: ValueFunction,
    rule: DepthRule,
    *,
    discount: float,
    seed: int | Sequence[int] = 0,
    width: int | None = None,
    budget: Budget | None = None,
    expander: Expander | None = None,
    every_level: bool = False,
) -> list[SearchResult]:
    """Look ahead from many roots at once: their leaves are evaluated together, their nodes expanded together.

    The answers are those of `search` for each root alone (up to what the value function makes of larger batches).
    `seed` is one for all or one for each; the other arguments are those of `search`. A budget of nodes is for each
    root, a budget of time for all of them.
    """
    check_kinds(value_fn, rule, budget, expander)
    check_numbers(discount, width)
    check_roots(roots)
    seeds = checked_seeds(seed, len(roots))
    if not roots:
        return []
    forest = Forest(sim, roots, value_fn, rule, discount, width, budget or Budget(), every_level)
    with contextlib.ExitStack() as stack:
        grower = InProcess(sim) if expander is None else expander
        stack.callback(grower.clear)
        forest.grow(grower, [sim.reseed(root.state, each) for root, each in zip(roots, seeds, strict=True)])
    return [forest.result(index) for index in range(len(roots))]


@dataclass(frozen=True, eq=False)
class _Step:
    """How one level came from the one above: enough to find a path again."""

    via: IntArray
    """(nodes, A) see Nodes"""
    frontier: IntArray
    """Which nodes of the level above were expanded."""


class Forest:
    """The trees of all roots while they grow; R is their number."""

    def __init__(
        self,
        sim: Simulator,
        roots: Sequence[Root],
        value_fn: ValueFunction,
        rule: DepthRule,
        discount: float,
        width: int | None,
        budget: Budget,
        every_level: bool,
    ) -> None:
        self._sim, self._value_fn, self._rule = sim, value_fn, rule
        self._discount, self._width, self._budget = discount, width, budget
        self._every_level = every_level or width is not None or budget != Budget()
        self._deadline = math.inf if budget.seconds is None else time.perf_counter() + budget.seconds
        self._observations = np.stack([root.observation for root in roots])
        count = len(roots)
        self._levels: list[list[Level]] = [[] for _ in roots]
        self._status = [Status.DONE] * count
        self._given_up = [Seconds()] * count
        self._tree_nodes = [0] * count
        self._nodes: IntArray = np.zeros(count, np.int64)
        """Steps simulated for each root, those up to its last level that was looked at in …"""
        self._nodes_before: IntArray = np.zeros(count, np.int64)
        self._frozen = Frozen(count, sim)
        self._best_nodes: list[tuple[int, int]] = [(0, 0)] * count
        """(depth, node) of the best leaf of each root"""
        self._steps: list[_Step] = []

    def grow(self, expander: Expander, states: Sequence[State]) -> None:
        """Level by level, until no tree grows any more."""
        self._references = _checked_references(self._rule.reference(self._observations, self._value_fn), len(states))
        frontier = Frontier(np.arange(len(states)), list(expander.load_roots(states)), None, [1] * len(states))
        kept: IntArray = np.arange(len(states))
        spending = Spending()
        for depth in range(1, self._rule.max_depth + 1):
            nodes = self._expand(expander, frontier, depth, spending)
            if nodes is None:
                return
            self._steps.append(_Step(nodes.via, kept))
            if self._looks_at(depth):
                kept = self._look(nodes, depth, spending)
                spending = Spending()
            else:
                kept = self._pass_by(nodes, depth, spending)
            if not len(kept):
                return
            frontier = _pick(nodes, kept)
            expander.keep(frontier.handles)

    def _expand(self, expander: Expander, frontier: Frontier, depth: int, spending: Spending) -> Nodes | None:
        """The next level, its steps counted; None if time ran out before it was complete."""
        # Without a first level there is no answer: it is made whatever the time.
        deadline = math.inf if depth == 1 else self._deadline
        sim = self._sim
        kept = DistinctObservations if self._looks_at(depth) else EveryObservation
        observations: ObservationPool = kept(sim.observation_shape, sim.observation_dtype)
        children = expander.expand(frontier.handles, leaves=depth == self._rule.max_depth)
        discount = self._discount ** (depth - 1)
        nodes = None
        with contextlib.closing(Metered(children, spending)) as batches, contextlib.suppress(OutOfTimeError):
            nodes = next_level(frontier, batches, sim.num_actions, discount, observations, deadline)
        if nodes is None:
            self._give_up(frontier, batches.positions, spending.so_far())
        else:
            self._count(frontier)
        return nodes

    def _look(self, nodes: Nodes, depth: int, spending: Spending) -> IntArray:
        """Evaluate a level and take note of what it says; returns which of its nodes are expanded next."""
        begin = time.perf_counter()
        values = leaf_values(nodes, self._value_fn, depth)
        spending.values += time.perf_counter() - begin
        bootstrapped = nodes.returns + self._discount**depth * values[:, None]
        best = best_leaves(nodes, bootstrapped, self._frozen, depth)
        view, distances = self._view(best, depth)
        self._record(nodes, best, distances, depth, spending.so_far())
        if depth == self._rule.max_depth:
            return np.empty(0, np.intp)
        grows = np.zeros(len(self._levels), bool)
        grows[best.roots] = np.asarray(self._rule.deeper(view, distances), bool)
        return self._choose(nodes, bootstrapped, grows)

    def _pass_by(self, nodes: Nodes, depth: int, spending: Spending) -> IntArray:
        """A level that nobody looks at; returns which of its nodes are expanded next.

        Only trees in which everything has ended are answered for: they need no values, and no other level will come.
        """
        if not nodes.terminated.any():
            return np.arange(len(nodes.terminated))
        alive: IntArray = np.flatnonzero(~nodes.terminated)
        complete = np.setdiff1d(nodes.roots, nodes.roots[alive])
        if not len(complete):
            freeze(nodes, self._frozen, depth)
            return alive
        best = best_leaves(nodes, nodes.returns, self._frozen, depth, only=complete)
        _, distances = self._view(best, depth)
        self._record(nodes, best, distances, depth, spending.so_far())
        self._stop(complete, Status.ENDED)
        return alive

    def _view(self, best: BestLeaves, depth: int) -> tuple[LevelView, FloatArray]:
        """What the rule gets to see, and the distances it makes of it."""
        values = best.action_values.max(axis=1)
        references = self._references[best.roots]
        levels = [self._levels[root] for root in best.roots.tolist()]
        previous = np.array([seen[-1].value if seen else references[i] for i, seen in enumerate(levels)])
        view = LevelView(depth, best.action_values, values, previous, references)
        return view, np.asarray(self._rule.distances(view), np.float64)

    def _looks_at(self, depth: int) -> bool:
        """Whether anybody wants to know what the leaves of a level are worth."""
        return self._every_level or depth == self._rule.max_depth or self._rule.looks_at(depth)

    def _count(self, frontier: Frontier) -> None:
        """Take note of the steps that a level took."""
        count = self._sim.num_actions
        for root, paths in zip(frontier.roots.tolist(), frontier.paths, strict=True):
            self._tree_nodes[root] += paths * count
        self._nodes += np.bincount(frontier.roots, minlength=len(self._levels)) * count

    def _give_up(self, frontier: Frontier, positions: IntArray, seconds: Seconds) -> None:
        """Take note of the steps of a level that is not complete, `positions` (n,), and of the time that it took."""
        parents = positions // self._sim.num_actions
        for parent in parents.tolist():
            self._tree_nodes[frontier.roots[parent]] += frontier.paths[parent]
        self._nodes += np.bincount(frontier.roots[parents], minlength=len(self._levels))
        growing = np.unique(frontier.roots)
        self._stop(growing, Status.TIME_LIMIT)
        for root in growing.tolist():
            self._given_up[root] = seconds

    def _record(self, nodes: Nodes, best: BestLeaves, distances: FloatArray, depth: int, seconds: Seconds) -> None:
        """Add a level to the result of every root that has grown."""
        expanded = self._nodes - self._nodes_before
        self._nodes_before[best.roots] = self._nodes[best.roots]
        distinct = np.bincount(nodes.roots, minlength=len(self._levels))
        for i, root in enumerate(best.roots.tolist()):
            level = Level(
                depth,
                best.action_values[i],
                best.returns[i],
                best.observations[i],
                best.terminated[i],
                int(expanded[root]),
                int(distinct[root]),
                float(distances[i]),
                seconds,
            )
            self._levels[root].append(level)
            winner = int(level.action_values.argmax())
            self._best_nodes[root] = (int(best.depths[i, winner]), int(best.nodes[i, winner]))

    def _choose(self, nodes: Nodes, bootstrapped: FloatArray, grows: BoolArray) -> IntArray:
        """Which nodes are expanded next; says of every root that stops why it does."""
        candidates: IntArray = np.flatnonzero(~nodes.terminated & grows[nodes.roots])
        alive = np.zeros(len(grows), bool)
        alive[nodes.roots[candidates]] = True
        self._stop(np.flatnonzero(grows & ~alive), Status.ENDED)
        if self._width is not None:
            candidates = _beam(nodes.roots, bootstrapped.max(axis=1), candidates, self._width)
        if self._budget.nodes is not None:
            planned = np.bincount(nodes.roots[candidates], minlength=len(grows)) * self._sim.num_actions
            episode_over = alive & (self._nodes + planned > self._budget.nodes)
            self._stop(np.flatnonzero(episode_over), Status.NODE_LIMIT)
            candidates = candidates[~episode_over[nodes.roots[candidates]]]
        if len(candidates) and time.perf_counter() > self._deadline:
            self._stop(np.unique(nodes.roots[candidates]), Status.TIME_LIMIT)
            return candidates[:0]
        return candidates

    def _stop(self, roots: IntArray, status: Status) -> None:
        for root in roots.tolist():
            self._status[root] = status

    def result(self, root: int) -> SearchResult:
        levels = self._levels[root]
        return SearchResult(
            tuple(levels),
            self._path(root),
            int(self._nodes[root]),
            self._tree_nodes[root],
            self._status[root],
            self._given_up[root],
        )

    def _path(self, root: int) -> tuple[int, ...]:
        """Walk back from the best leaf."""
        count = self._sim.num_actions
        first_action = int(self._levels[root][-1].action_values.argmax())
        depth, node = self._best_nodes[root]
        actions: list[int] = []
        for step in reversed(self._steps[:depth]):
            position = int(step.via[node, first_action])
            actions.append(position % count)
            node = int(step.frontier[position // count])
        return tuple(reversed(actions))


def _checked_references(references: FloatArray, count: int) -> FloatArray:
    """What a rule's `reference` returned: (count,) finite, or NaN for a rule that has none."""
    array = np.asarray(references, np.float64)
    return array if array.shape == (count,) and np.isnan(array).all() else checked_values(array, count)


def _pick(nodes: Nodes, kept: IntArray) -> Frontier:
    return Frontier(
        nodes.roots[kept],
        [nodes.handles[node] for node in kept.tolist()],
        nodes.returns[kept],
        [nodes.paths[node] for node in kept.tolist()],
    )


def _beam(roots: IntArray, values: FloatArray, candidates: IntArray, width: int) -> IntArray:
    """The `width` most valuable candidates of each root, in their old order; the first of equals go first.

    Args:
        roots: (nodes,)
        values: (nodes,)
        candidates: numbers of nodes, ascending.
        width: at least 1.
    """
    if not len(candidates):
        return candidates
    by_value = candidates[np.argsort(-values[candidates], kind="stable")]
    by_root = by_value[np.argsort(roots[by_value], kind="stable")]
    starts = run_starts(roots[by_root])
    counts = np.diff(np.append(starts, len(by_root)))
    rank = np.arange(len(by_root)) - np.repeat(starts, counts)
    return np.sort(by_root[rank < width])
