"""Search: look ahead from a state along every sequence of actions, level by level.

    v_h(s₀, a) = max over paths of h steps that begin with a of  Σ_{t<h} γ^t r_t + γ^h V_h(s_h)

A path that terminates early counts with the rewards it has collected and no V. The search goes breadth first, so that a
depth rule can decide after each level whether another is worth its cost; equal nodes are merged, which changes no value
(see `level`). Reading order: `search_many`, `_Trees.grow`, and the methods below it in the order of the calls;
`GrowingResults` keeps the books.

In a stochastic simulator a path is not the agent's to choose: there the tree takes expectations, see `chance`.

With a beam (`width`), at most that many nodes of a level are expanded, the most valuable ones: the cost is linear in
the depth, and the values of actions are lower bounds of those of the full tree.
"""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._validation import boolean, fraction_above_zero, integer, optional, positive_or_infinite
from adalook.errors import ArgumentError, shown
from adalook.search.leaves import ActionLeaves, TerminatedLeaves, best_leaves, checked_values, leaf_values
from adalook.search.level import (
    AllObservations,
    DistinctObservations,
    Frontier,
    LevelBuilder,
    Nodes,
    NodeSelection,
    all_nodes,
    most_valuable,
)
from adalook.search.result import Level, SearchResult, SearchStatus, Seconds
from adalook.search.rules.base import DepthRule, LevelView, ValueFunction
from adalook.search.workers.base import Expander, ExpansionBatch, InProcessExpander, LevelDeadline
from adalook.simulators.arguments import check_attributes
from adalook.simulators.base import Simulator, State

if TYPE_CHECKING:
    from adalook.search.chance import Sampling


@dataclass(frozen=True, eq=False)
class Root:
    """The state that a search begins in, and its observation.

    The two come together because some simulators cannot show a state right after it was restored (Atari's screen is
    stale until the next step).

    The episode must not be over there. A state alone does not tell, so no search can complain: it would look ahead into
    whatever the simulator does when it is stepped after the end.
    """

    state: State
    observation: np.ndarray[Any, Any]
    """(*observation_shape)"""

    @classmethod
    def of(cls, sim: Simulator) -> Root:
        """Return the current state of the live env."""
        return cls(sim.save(), sim.observe())


@dataclass(frozen=True)
class Budget:
    """Limits of one search; when they are reached, the last complete level answers.

    The first level is always completed, since without it there is no answer.

    >>> Budget(nodes=500, seconds=0.05)
    Budget(nodes=500, seconds=0.05)
    """

    nodes: int | None = None
    """Steps that may be simulated for one root. A level that would exceed it is not begun."""
    seconds: float | None = None
    """Time for the whole call. A level that is not complete by then is given up; value functions are waited for."""

    def __post_init__(self) -> None:
        optional(positive_or_infinite).validate("the budget of nodes", self.nodes)
        optional(positive_or_infinite).validate("the budget of seconds", self.seconds)

    def deadline(self) -> float:
        """Return when a search that begins now must end, by `time.perf_counter`."""
        return math.inf if self.seconds is None else time.perf_counter() + self.seconds


UNLIMITED = Budget()


def search(
    sim: Simulator,
    root: Root,
    value_fn: ValueFunction,
    rule: DepthRule,
    *,
    discount: float,
    seed: int = 0,
    samples: int | Sampling | None = None,
    width: int | None = None,
    budget: Budget | None = None,
    expander: Expander | None = None,
    every_level: bool = False,
) -> SearchResult:
    """Look ahead from one root; the live env of `sim` is left unchanged.

    Args:
        sim: the simulator.
        root: where to begin: a state whose episode is not over.
        value_fn: (observations (n, *observation_shape), depth) -> (n,) values of leaves. It is called once for each
            level that is evaluated, with all its distinct observations except those of terminated leaves.
        rule: how deep to look, such as FixedDepth(3).
        discount: γ in (0, 1], for each step.
        seed: of the tree's own randomness, if the simulator is stochastic.
        samples: futures drawn for each (node, action) of a stochastic simulator, more of them where the choice is close
            (`Sampling`). None: the expectation over all outcomes where the simulator lists them, else `Sampling()`.
            1: no expectation at all, the best path in one drawn future.
        width: expand at most so many nodes of a level; None: all.
        budget: of nodes and time; None: no limit.
        expander: what steps the nodes, such as make_expander(sim, al.LocalProcesses(2)); None: this process.
        every_level: evaluate every level, even if neither the rule nor a beam or a budget needs it: for learners that
            store the best leaf of each depth.

    >>> import numpy as np
    >>> import adalook as al
    >>> from adalook.search import FixedDepth, Root, search
    >>> from adalook.simulators.tabular import TabularSimulator
    >>> sim = TabularSimulator(al.zoo.chain(n=5), start=0)
    >>> _ = sim.reset(seed=0)
    >>> result = search(sim, Root.of(sim), lambda leaves, depth: np.zeros(len(leaves)), FixedDepth(3), discount=0.9)
    >>> result.depth, result.nodes, result.tree_nodes
    (3, 6, 6)
    """
    return search_many(
        sim,
        [root],
        value_fn,
        rule,
        discount=discount,
        seed=seed,
        samples=samples,
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
    samples: int | Sampling | None = None,
    width: int | None = None,
    budget: Budget | None = None,
    expander: Expander | None = None,
    every_level: bool = False,
) -> list[SearchResult]:
    """Look ahead from many roots at once: their nodes are expanded together and their leaves evaluated together.

    The answers are those of `search` for each root alone (up to what the value function makes of larger batches).
    `seed` is one for all or one for each; the other arguments are those of `search`. A budget of nodes is for each
    root, a budget of time for all of them.
    """
    _check_kinds(sim, value_fn, rule, budget, expander)
    every_level = every_level if type(every_level) is bool else boolean.validate("every_level", every_level)
    _check_numbers(discount, width)
    _check_roots(roots)
    seeds = _checked_seeds(seed, len(roots))
    if not roots:
        return []
    budget = UNLIMITED if budget is None else budget
    evaluate_all = every_level or width is not None or budget != UNLIMITED or rule.needs_values
    options = SearchOptions(sim, value_fn, rule, discount, width, budget, evaluate_all)
    expander = InProcessExpander(sim) if expander is None else expander
    try:
        if sim.stochastic and samples != 1:
            from adalook.search.chance import sampling_of, search_under_chance

            return search_under_chance(options, roots, seeds, sampling_of(sim, samples), expander)
        trees = _Trees(options, roots, seeds)
        trees.grow(expander, [sim.reseed(root.state, each) for root, each in zip(roots, seeds, strict=True)])
    finally:
        expander.clear()
    return [trees.result(root) for root in range(len(roots))]


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """The arguments that all roots of one search share."""

    sim: Simulator
    value_fn: ValueFunction
    rule: DepthRule
    discount: float
    width: int | None
    """Nodes of a level that are expanded, at most."""
    budget: Budget
    evaluate_all: bool
    """Evaluate the leaves of every level, not only of the last."""

    def evaluates(self, depth: int) -> bool:
        """Return whether the leaves of a level are evaluated."""
        return self.evaluate_all or depth == self.rule.max_depth


@dataclass(frozen=True, eq=False)
class _Step:
    """The link from one level to the one above: enough to trace a path back."""

    via: IntArray
    """(nodes, A) see `Nodes.via`"""
    frontier: IntArray
    """Indices of the nodes of the level above that were expanded."""


class _Trees:
    """The trees of R roots while they grow."""

    def __init__(self, options: SearchOptions, roots: Sequence[Root], seeds: Sequence[int]) -> None:
        self._options = options
        width = options.width
        self._select: NodeSelection = all_nodes if width is None else functools.partial(most_valuable, width=width)
        self._results = GrowingResults(options, roots, seeds, options.budget.deadline())
        self._terminated = TerminatedLeaves(len(roots), options.sim)
        self._steps: list[_Step] = []  # by depth
        self._best_nodes: list[tuple[int, int]] = [(0, 0)] * len(roots)  # depth and index in the level of the best leaf

    def grow(self, expander: Expander, states: Sequence[State]) -> None:
        """Add level after level, until no tree grows any more."""
        rule, count = self._options.rule, len(states)
        frontier = Frontier(np.arange(count), list(expander.load_roots(states)), None, [1] * count)
        chosen: IntArray = np.arange(count)
        self._results.stopwatch.restart()
        for depth in range(1, rule.max_depth + 1):
            nodes = self._expand(expander, frontier, depth)
            if nodes is None:
                return
            self._steps.append(_Step(nodes.via, chosen))
            self._terminated.add(nodes, depth)
            chosen = self._evaluate(nodes, depth) if self._options.evaluates(depth) else self._skip_values(nodes, depth)
            if not len(chosen):
                return
            frontier = nodes.take(chosen)
            expander.keep(frontier.handles)

    def _expand(self, expander: Expander, frontier: Frontier, depth: int) -> Nodes | None:
        """Return the next level and count its steps, or None if time ran out before it was complete."""
        options, results = self._options, self._results
        sim = options.sim
        store = DistinctObservations if options.evaluates(depth) else AllObservations
        level = LevelBuilder(frontier, sim.num_actions, store(sim.observation_shape, sim.observation_dtype))
        children = expander.expand(frontier.handles, leaves=depth == options.rule.max_depth)
        waiting = LevelDeadline(expander, results.deadline, options.budget.seconds, first=depth == 1)
        with waiting, contextlib.closing(results.stopwatch.time_expansion(children)) as batches:
            for batch in batches:
                level.add(batch)
                if waiting.is_over():
                    break
        if waiting.passed:
            parents = level.positions // sim.num_actions
            results.count(frontier.roots[parents], [frontier.paths[parent] for parent in parents.tolist()])
            results.give_up(np.unique(frontier.roots))
            return None
        results.count(frontier.roots, frontier.paths, steps=sim.num_actions)
        return level.build(options.discount ** (depth - 1))

    def _evaluate(self, nodes: Nodes, depth: int) -> IntArray:
        """Evaluate a level, record it, and ask the rule; returns which of its nodes are expanded next."""
        options, results = self._options, self._results
        begin = time.perf_counter()
        values = leaf_values(nodes, options.value_fn, depth)
        results.stopwatch.values += time.perf_counter() - begin
        bootstrapped = nodes.returns + options.discount**depth * values[:, None]
        leaves = best_leaves(nodes, bootstrapped, self._terminated, depth)
        view = self._record(nodes, leaves, depth)
        results.stopwatch.restart()
        if depth == options.rule.max_depth:
            return np.empty(0, np.intp)
        select = functools.partial(self._select, nodes, bootstrapped)
        return results.choose(nodes, results.deeper(view), select, options.sim.num_actions)

    def _skip_values(self, nodes: Nodes, depth: int) -> IntArray:
        """Go on from a level that is not evaluated; returns which of its nodes are expanded next.

        Only trees in which every path has terminated are recorded: they need no values, and have no other level.
        """
        if not nodes.terminated.any():
            return np.arange(len(nodes.terminated))
        alive: IntArray = np.flatnonzero(~nodes.terminated)
        complete = np.setdiff1d(nodes.roots, nodes.roots[alive])
        if len(complete):
            self._record(nodes, best_leaves(nodes, nodes.returns, self._terminated, depth, only=complete), depth)
            self._results.stop(complete, SearchStatus.TERMINATED)
        return alive

    def _record(self, nodes: Nodes, leaves: ActionLeaves, depth: int) -> RecordedLevel:
        """Add a level to the results, and remember the best leaf of each root; returns what the rule sees of it."""
        view = self._results.record(leaves, depth, nodes.roots)
        for i, root in enumerate(leaves.roots.tolist()):
            winner = int(leaves.action_values[i].argmax())
            self._best_nodes[root] = (int(leaves.depths[i, winner]), int(leaves.nodes[i, winner]))
        return view

    def result(self, root: int) -> SearchResult:
        """Return the result of one root."""
        return self._results.result(root, self._path(root))

    def _path(self, root: int) -> tuple[int, ...]:
        """Return the actions from a root to its best leaf, traced back from there."""
        count = self._options.sim.num_actions
        first_action = int(self._results.levels[root][-1].action_values.argmax())
        depth, node = self._best_nodes[root]
        actions: list[int] = []
        for step in reversed(self._steps[:depth]):
            position = int(step.via[node, first_action])
            actions.append(position % count)
            node = int(step.frontier[position // count])
        return tuple(reversed(actions))


class RecordedLevel(NamedTuple):
    """A level that was added to the results of n roots, as a rule decides about it."""

    roots: IntArray  # (n,)
    view: LevelView
    distances: FloatArray  # (n,)


class LevelNodes(Protocol):
    """The n nodes of a level, as far as it matters for which of them are expanded."""

    @property
    def roots(self) -> IntArray:
        """(n,) the root of each, ascending."""

    @property
    def terminated(self) -> BoolArray:
        """(n,) which of them have terminated."""


class GrowingResults:
    """The results of R roots while their trees grow: levels so far, costs, and why each tree stopped.

    Args:
        options: of the search.
        roots: R of them.
        seeds: (R,) of their trees.
        deadline: by `time.perf_counter`.
    """

    def __init__(self, options: SearchOptions, roots: Sequence[Root], seeds: Sequence[int], deadline: float) -> None:
        self._options, self._seeds, self.deadline, count = options, seeds, deadline, len(roots)
        observations = np.stack([root.observation for root in roots])
        self._masks = options.sim.action_masks(observations) if options.sim.masked else None
        self._references = checked_references(options.rule.reference(observations, options.value_fn), count)
        self.stopwatch = Stopwatch()
        # All that follow are by root.
        self.levels: list[list[Level]] = [[] for _ in roots]
        self._status = [SearchStatus.DONE] * count
        self._given_up = [Seconds()] * count
        self._tree_nodes = [0] * count
        self._nodes = [0] * count
        self._nodes_before = [0] * count  # those down to the last evaluated level

    def count(self, roots: IntArray, paths: Sequence[int], steps: int = 1) -> None:
        """Count `steps` simulated steps from each of n nodes, to which so many paths (n,) of the plain tree lead."""
        for root, each in zip(roots.tolist(), paths, strict=True):
            self._tree_nodes[root] += each * steps
            self._nodes[root] += steps

    def record(
        self, leaves: ActionLeaves, depth: int, owners: IntArray, samples: FloatArray | None = None
    ) -> RecordedLevel:
        """Add a level to the results of n roots.

        Args:
            leaves: one below each of their first actions; actions that a state does not offer lose their value here.
            depth: of the level.
            owners: (nodes,) the root of each of its nodes.
            samples: (n, A, K) see `Level.samples`.
        """
        roots = leaves.roots
        if self._masks is not None:
            leaves.action_values[~self._masks[roots]] = -np.inf
        references = self._references[roots]
        levels = [self.levels[root] for root in roots.tolist()]
        previous = np.array([seen[-1].value if seen else references[i] for i, seen in enumerate(levels)])
        best, seeds = leaves.action_values.max(axis=1), [self._seeds[root] for root in roots.tolist()]
        view = LevelView(depth, leaves.action_values, best, previous, references, seeds)
        distances = np.asarray(self._options.rule.distances(view), np.float64)
        seconds = self.stopwatch.seconds()
        distinct = np.bincount(owners, minlength=len(self.levels))
        for i, root in enumerate(roots.tolist()):
            self.levels[root].append(
                Level(
                    depth,
                    leaves.action_values[i],
                    leaves.returns[i],
                    leaves.observations[i],
                    leaves.terminated[i],
                    leaves.depths[i],
                    self._nodes[root] - self._nodes_before[root],
                    int(distinct[root]),
                    float(distances[i]),
                    seconds,
                    None if samples is None else samples[i],
                )
            )
            self._nodes_before[root] = self._nodes[root]
        return RecordedLevel(roots, view, distances)

    def deeper(self, level: RecordedLevel) -> BoolArray:
        """Return (R,) which trees the rule wants to grow by another level."""
        grows = np.zeros(len(self.levels), bool)
        grows[level.roots] = np.asarray(self._options.rule.deeper(level.view, level.distances), bool)
        return grows

    def choose(
        self, nodes: LevelNodes, grows: BoolArray, select: Callable[[IntArray], IntArray], steps_per_node: int
    ) -> IntArray:
        """Return which nodes are expanded next; sets the status of every root that stops against the rule's wish.

        Args:
            nodes: of the level.
            grows: (R,) which trees the rule wants deeper.
            select: takes the candidates, indices of nodes that may be expanded, and returns those that shall be.
            steps_per_node: what expanding one of them costs.
        """
        candidates: IntArray = np.flatnonzero(~nodes.terminated & grows[nodes.roots])
        alive = np.zeros(len(grows), bool)
        alive[nodes.roots[candidates]] = True
        self.stop(np.flatnonzero(grows & ~alive), SearchStatus.TERMINATED)
        candidates = select(candidates)
        if self._options.budget.nodes is not None:
            planned = np.bincount(nodes.roots[candidates], minlength=len(grows)) * steps_per_node
            too_many = alive & (np.array(self._nodes) + planned > self._options.budget.nodes)
            self.stop(np.flatnonzero(too_many), SearchStatus.NODE_LIMIT)
            candidates = candidates[~too_many[nodes.roots[candidates]]]
        if len(candidates) and time.perf_counter() > self.deadline:
            self.stop(np.unique(nodes.roots[candidates]), SearchStatus.TIME_LIMIT)
            return candidates[:0]
        return candidates

    def stop(self, roots: IntArray, status: SearchStatus) -> None:
        """Set the status of some roots."""
        for root in roots.tolist():
            self._status[root] = status

    def give_up(self, roots: IntArray) -> None:
        """Stop some roots in the middle of a level, for want of time."""
        self.stop(roots, SearchStatus.TIME_LIMIT)
        seconds = self.stopwatch.seconds()
        for root in roots.tolist():
            self._given_up[root] = seconds

    def result(self, root: int, path: tuple[int, ...]) -> SearchResult:
        """Return the result of one root, with the path to the leaf that answers."""
        return SearchResult(
            tuple(self.levels[root]),
            path,
            self._nodes[root],
            self._tree_nodes[root],
            self._status[root],
            self._given_up[root],
        )


class Stopwatch:
    """Seconds since the last evaluated level: what is neither expansion nor values is bookkeeping."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Set everything to zero."""
        self._begin = time.perf_counter()
        self.expansion = self.values = 0.0

    def seconds(self) -> Seconds:
        """Return the seconds spent so far."""
        total = time.perf_counter() - self._begin
        return Seconds(self.expansion, self.values, total - self.expansion - self.values)

    def time_expansion(self, batches: Generator[ExpansionBatch, None, None]) -> Generator[ExpansionBatch, None, None]:
        """Yield the batches of a level and time how long they are waited for, also when they are closed early."""
        begin = time.perf_counter()
        try:
            for batch in batches:
                self.expansion += time.perf_counter() - begin
                yield batch
                begin = time.perf_counter()
        except GeneratorExit:
            begin = time.perf_counter()
            batches.close()
            raise
        finally:
            self.expansion += time.perf_counter() - begin


def _check_kinds(sim: Any, value_fn: Any, rule: Any, budget: Any, expander: Any) -> None:
    """Raise `ArgumentError` for an argument of `search` that is of a wrong type."""
    if not isinstance(sim, Simulator):
        raise ArgumentError("sim is no simulator", expected="al.make_simulator(…)", got=type(sim).__name__)
    check_attributes(sim)
    if not callable(value_fn):
        raise ArgumentError(
            "the value function is wrong",
            expected="a function of (observations, depth) that returns values",
            got=shown(value_fn),
        )
    if not isinstance(rule, DepthRule):
        raise ArgumentError("the rule is wrong", expected="a DepthRule, such as FixedDepth(3)", got=shown(rule))
    if budget is not None and not isinstance(budget, Budget):
        raise ArgumentError(
            "the budget is wrong", expected="a Budget, such as Budget(nodes=500), or None", got=shown(budget)
        )
    if expander is not None and not isinstance(expander, Expander):
        raise ArgumentError(
            "the expander is wrong", expected="an Expander, such as WorkerPool(sim, 2), or None", got=shown(expander)
        )


def _check_numbers(discount: Any, width: Any) -> None:
    """Raise `ArgumentError` for a discount or a width out of its range."""
    if not (type(discount) is float and 0.0 < discount <= 1.0):  # the usual case needs no validator
        fraction_above_zero.validate("the discount", discount)
    # An infinite beam is not an integer, but it is clear what it means.
    if width is not None and not (isinstance(width, float) and width == math.inf):
        optional(integer(min=1)).validate("the width", width)


def _check_roots(roots: Any) -> None:
    """Raise `ArgumentError` for bare states, simulators, or one root where many are expected."""
    if isinstance(roots, Root) or not isinstance(roots, Sequence):
        raise ArgumentError("the roots are wrong", expected="a list of Root", got=f"one {type(roots).__name__}")
    for root in roots:
        if not isinstance(root, Root):
            raise ArgumentError(
                "the root is wrong", expected="a Root, such as Root.of(sim)", got=f"a {type(root).__name__}"
            )


def _checked_seeds(seed: Any, count: int) -> list[int]:
    """Return one seed for each of `count` roots, from one for all or one for each."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return [int(seed)] * count
    several = isinstance(seed, list | tuple | range | np.ndarray) and getattr(seed, "ndim", 1) == 1
    if not several or not all(isinstance(each, numbers.Integral) for each in seed):
        raise ArgumentError(
            "the seed is wrong", expected="a whole number, or one for each root of search_many", got=shown(seed)
        )
    if len(seed) != count:
        raise ArgumentError("there must be a seed for each root", expected=f"{count} seeds", got=len(seed))
    return [int(each) for each in seed]


def checked_references(references: FloatArray, count: int) -> FloatArray:
    """Return a rule's references as (count,) floats: all finite, or all NaN for a rule that has none."""
    array = np.asarray(references, np.float64)
    return array if array.shape == (count,) and np.isnan(array).all() else checked_values(array, count)
