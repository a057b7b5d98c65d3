"""Search under chance: expectations in the tree, exact or over drawn futures.

    v_0(s) = V(s)        q_h(s, a) = E[r + γ v_{h−1}(s')]        v_h(s) = max_a q_h(s, a)

so that with V at the leaves a tree of depth h is T^h V. Where the simulator lists its outcomes (tabular models) the
expectation is over all of them. Otherwise it is over K futures that are drawn for each (node, action): sparse sampling
(Kearns, Mansour & Ng 2002). All nodes of one depth draw with the same K seeds (common random numbers), so what chance
does to all actions alike cancels in their differences. Where the best action leads by less than two standard errors of
the difference, further trees with other seeds are grown and their values averaged (`Sampling.at_most`).

Nodes of one depth are merged as elsewhere. The leaf of a first action is *drawn*: chance moves by its probabilities,
decisions take the best action. Its return + γ^depth V is therefore an unbiased sample of the action's value, which is
what a learner needs. Reading order: `search_under_chance`, `_ExpectationTrees.grow`, and the methods below it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._validation import integer
from adalook.errors import ArgumentError
from adalook.search.leaves import ActionLeaves, checked_values
from adalook.search.level import DistinctObservations
from adalook.search.result import SearchResult, SearchStatus
from adalook.search.search import Budget, GrowingResults, RecordedLevel, Root, SearchOptions
from adalook.search.workers.base import Expander, Handle, InProcessExpander, LevelDeadline, NodeSeeds
from adalook.simulators.base import Observations, Simulator, State
from adalook.simulators.randomness import draw_seeds

_PAIRS = 4096
"""(node, action) pairs whose outcomes are listed at a time: a deadline is checked in between."""
_FURTHER_TREES, _LEAVES = 2**32, 2**33
"""Set the seeds of further trees, and of the leaves that are drawn, apart from those of depths."""


@dataclass(frozen=True)
class Sampling:
    """The number of futures that are drawn for each (node, action) of a stochastic simulator.

    >>> Sampling(2)
    Sampling(count=2, at_most=8)
    """

    count: int = 4
    """In each tree."""
    at_most: int = 0
    """In all trees of a root together, if the choice stays close; 0: four times `count`."""

    def __post_init__(self) -> None:
        integer(min=1).validate("the number of samples", self.count)
        integer(min=0).validate("at_most of Sampling", self.at_most)
        if self.at_most == 0:
            object.__setattr__(self, "at_most", 4 * self.count)
        if self.at_most < self.count:
            raise ArgumentError("Sampling: at_most is less than count", expected=f"{self.count}", got=self.at_most)


def sampling_of(sim: Simulator, samples: int | Sampling | None) -> Sampling | None:
    """Return the samples that an argument of `search` stands for; None where outcomes are listed."""
    if isinstance(samples, Sampling):
        return samples
    if samples is not None:
        return Sampling(integer(min=1).validate("samples", samples))
    return None if sim.lists_outcomes else Sampling()


def search_under_chance(
    options: SearchOptions, roots: Sequence[Root], seeds: Sequence[int], samples: Sampling | None, expander: Expander
) -> list[SearchResult]:
    """Look ahead from many roots, taking expectations; `samples` None lists outcomes instead of drawing them."""
    deadline = options.budget.deadline()
    trees = _grown(options, roots, seeds, samples, expander, deadline)
    results = [trees.result(root) for root in range(len(roots))]
    paths = [trees.paths(root) for root in range(len(roots))]
    if samples is None:
        return results
    for number in range(1, samples.at_most // samples.count):
        close = [i for i, result in enumerate(results) if result.close and _affordable(result, number, options.budget)]
        if not close or time.perf_counter() > deadline:
            break
        fresh = [draw_seeds(seeds[i], _FURTHER_TREES + number, 1)[0] for i in close]
        more = _grown(options, [roots[i] for i in close], fresh, samples, expander, deadline)
        for j, i in enumerate(close):
            results[i] = _pooled(results[i], more.result(j), paths[i])
    return results


def _grown(
    options: SearchOptions,
    roots: Sequence[Root],
    seeds: Sequence[int],
    samples: Sampling | None,
    expander: Expander,
    deadline: float,
) -> _ExpectationTrees:
    expansion: _StepSource
    if samples is None:
        expansion = _AllOutcomes(options.sim)
    else:
        expansion = _DrawnFutures(options.sim, expander, samples.count)
    trees = _ExpectationTrees(options, roots, seeds, deadline)
    trees.grow(expansion)
    return trees


def _affordable(result: SearchResult, number: int, budget: Budget) -> bool:
    """Return whether the budget of nodes has room for another tree like the `number` that were grown."""
    return budget.nodes is None or result.nodes * (number + 1) <= budget.nodes * number


def _pooled(one: SearchResult, other: SearchResult, paths: Sequence[tuple[int, ...]]) -> SearchResult:
    """Return the mean of the results of several trees of one root; leaves and levels are those of the first."""
    last, more = one.levels[-1], other.levels[-1]
    assert last.samples is not None
    assert more.samples is not None
    values = np.concatenate([last.samples, more.samples], axis=1)
    pooled = dataclasses.replace(
        last, action_values=_masked_like(last.action_values, values.mean(axis=1)), samples=values
    )
    return SearchResult(
        (*one.levels[:-1], pooled),
        paths[int(pooled.action_values.argmax())],
        one.nodes + other.nodes,
        one.tree_nodes + other.tree_nodes,
        one.status,
        one.given_up + other.seconds,
    )


def _masked_like(pattern: FloatArray, values: FloatArray) -> FloatArray:
    """Return values (A,), with -inf where `pattern` has it."""
    return np.where(np.isneginf(pattern), -np.inf, values)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Some steps from the nodes of a frontier: n outcomes, each with its probability."""

    order: IntArray
    """(n,) by which outcomes are sorted: those of one (node, action) pair follow one another, whoever made them"""
    parents: IntArray
    """(n,) indices in the frontier"""
    actions: IntArray
    probabilities: FloatArray
    rewards: FloatArray
    terminated: BoolArray
    observations: Observations
    """(n, *observation_shape); those of drawn futures are overwritten when the next are requested"""
    handles: Sequence[Handle]
    """(n,); empty for leaves"""
    keys: Sequence[bytes]
    """(n,); empty for leaves, which are then never merged"""


class _AllOutcomes:
    """Lists all outcomes of every (node, action), in this process."""

    def __init__(self, sim: Simulator) -> None:
        self._sim, self.expander = sim, InProcessExpander(sim)
        self.futures, self.steps_per_node = 0, sim.num_actions

    def load_roots(self, states: Sequence[State]) -> Sequence[Handle]:
        return list(states)

    def keep(self, handles: Sequence[Handle]) -> None:
        """Do nothing: states live as long as the trees refer to them."""

    def steps(self, nodes: Sequence[Handle], seeds: NodeSeeds, leaves: bool) -> Generator[_Steps, None, None]:
        """Yield the outcomes of every action in every node."""
        count, found = self._sim.num_actions, 0
        for start in range(0, len(nodes) * count, _PAIRS):
            pairs = np.arange(start, min(start + _PAIRS, len(nodes) * count))
            parents, actions = np.divmod(pairs, count)
            outcomes = self._sim.outcomes([nodes[i] for i in parents.tolist()], actions.tolist())
            children, owner = outcomes.children, outcomes.pairs
            yield _Steps(
                np.arange(found, found + len(owner)),
                parents[owner],
                actions[owner],
                outcomes.probabilities,
                children.rewards,
                children.terminated,
                children.observations,
                children.states,
                children.keys,
            )
            found += len(owner)


class _DrawnFutures:
    """Draws K futures of every (node, action), by an expander.

    Args:
        sim: the simulator.
        expander: steps the nodes.
        count: K.
    """

    def __init__(self, sim: Simulator, expander: Expander, count: int) -> None:
        self.expander = expander
        self.futures, self.steps_per_node = count, sim.num_actions * count

    def load_roots(self, states: Sequence[State]) -> Sequence[Handle]:
        return self.expander.load_roots(states)

    def keep(self, handles: Sequence[Handle]) -> None:
        self.expander.keep(handles)

    def steps(self, nodes: Sequence[Handle], seeds: NodeSeeds, leaves: bool) -> Generator[_Steps, None, None]:
        """Yield K children of every action in every node, in any order."""
        per_action, per_node = self.futures, self.steps_per_node
        with contextlib.closing(self.expander.expand(nodes, leaves, seeds)) as batches:
            for batch in batches:
                positions = batch.positions
                yield _Steps(
                    positions,
                    positions // per_node,
                    positions % per_node // per_action,
                    np.full(len(positions), 1.0 / per_action),
                    batch.rewards,
                    batch.terminated,
                    batch.observations,
                    batch.handles,
                    batch.keys,
                )


_StepSource = _AllOutcomes | _DrawnFutures


@dataclass(eq=False)
class _Nodes:
    """The n distinct nodes of one depth, and the m steps that lead to them; A is the number of actions."""

    roots: IntArray
    """(n,) the root of each, ascending"""
    handles: list[Handle]
    terminated: BoolArray
    observations: Observations
    """(distinct, *observation_shape)"""
    rows: IntArray
    """(n,) the row of `observations` that each node shows"""
    paths: list[int]
    """(n,) how many paths of the plain tree lead to each"""
    # The steps, sorted by pair
    pairs: IntArray
    """(m,) node of the level above · A + action"""
    starts: IntArray
    """(n above · A + 1,) where the steps of each pair start"""
    probabilities: FloatArray
    cumulative: FloatArray
    rewards: FloatArray
    children: IntArray
    """(m,) the node that each step leads to"""
    # What becomes of the nodes later
    values: FloatArray
    """(n,) V of nodes that were evaluated; 0 of terminated ones"""
    expanded: BoolArray
    """(n,) whether the level below has their children"""
    action_values: FloatArray | None = None
    """(n, A) of the expanded nodes, as last backed up"""

    @classmethod
    def of_roots(cls, observations: Observations, handles: Sequence[Handle]) -> _Nodes:
        """Return the level of depth 0."""
        count = len(handles)
        none: IntArray = np.empty(0, np.intp)
        return cls(
            np.arange(count),
            list(handles),
            np.zeros(count, bool),
            observations,
            np.arange(count),
            [1] * count,
            none,
            np.zeros(1, np.intp),
            np.empty(0),
            np.empty(0),
            np.empty(0),
            none,
            np.zeros(count),
            np.zeros(count, bool),
        )


class _ExpectationTrees:
    """The trees of R roots while they grow."""

    def __init__(self, options: SearchOptions, roots: Sequence[Root], seeds: Sequence[int], deadline: float) -> None:
        self._options, self._roots, self._seeds = options, roots, seeds
        self._num_actions = options.sim.num_actions
        self._results = GrowingResults(options, roots, seeds, deadline)
        self._levels: list[_Nodes] = []  # by depth, roots first
        self._paths: list[list[tuple[int, ...]]] = [[] for _ in roots]

    def grow(self, expansion: _StepSource) -> None:
        """Add level after level, until no tree grows any more."""
        rule, options = self._options.rule, self._options
        self._futures = expansion.futures
        observations = np.stack([root.observation for root in self._roots])
        handles = expansion.load_roots([root.state for root in self._roots])
        self._levels.append(_Nodes.of_roots(observations, handles))
        chosen: IntArray = np.arange(len(handles))
        self._results.stopwatch.restart()
        for depth in range(1, rule.max_depth + 1):
            nodes = self._expand(expansion, chosen, depth)
            if nodes is None:
                return
            self._levels.append(nodes)
            if options.evaluates(depth):
                chosen = self._evaluate(nodes, depth, expansion.steps_per_node)
            else:
                chosen = self._skip_values(nodes, depth)
            if not len(chosen):
                return
            expansion.keep([nodes.handles[node] for node in chosen.tolist()])

    def _expand(self, expansion: _StepSource, chosen: IntArray, depth: int) -> _Nodes | None:
        """Return the next level and count its steps, or None if time ran out before it was complete."""
        above, results = self._levels[-1], self._results
        handles = [above.handles[node] for node in chosen.tolist()]
        owners = above.roots[chosen]
        by_root = {root: draw_seeds(self._seeds[root], depth, expansion.futures) for root in np.unique(owners).tolist()}
        seeds = [by_root[root] for root in owners.tolist()]
        sim = self._options.sim
        store = DistinctObservations(sim.observation_shape, sim.observation_dtype)
        parts: list[_Steps] = []
        rows: list[IntArray] = []
        begin = time.perf_counter()
        waiting = LevelDeadline(expansion.expander, results.deadline, self._options.budget.seconds, first=depth == 1)
        steps_of = expansion.steps(handles, seeds, depth == self._options.rule.max_depth)
        with waiting, contextlib.closing(steps_of) as batches:
            for steps in batches:
                parts.append(steps)
                if expansion.futures:
                    rows.append(store.add(steps.observations))
                if waiting.is_over():
                    break
        results.stopwatch.expansion += time.perf_counter() - begin
        if waiting.passed:
            pairs = np.concatenate([steps.parents * self._num_actions + steps.actions for steps in parts])
            taken = chosen[(pairs if expansion.futures else np.unique(pairs)) // self._num_actions]
            results.count(above.roots[taken], [above.paths[node] for node in taken.tolist()])
            results.give_up(np.unique(owners))
            return None
        above.expanded[chosen] = True
        results.count(owners, [above.paths[node] for node in chosen.tolist()], steps=expansion.steps_per_node)
        return self._linked(above, chosen, parts, np.concatenate(rows) if rows else None, store)

    def _linked(
        self,
        above: _Nodes,
        chosen: IntArray,
        parts: Sequence[_Steps],
        rows: IntArray | None,
        store: DistinctObservations,
    ) -> _Nodes:
        """Return the level that some steps lead to, equal nodes merged.

        `rows` says where `store` has the observations of the steps; None: they are still to be put there.
        """
        count = self._num_actions
        order = np.argsort(np.concatenate([steps.order for steps in parts]), kind="stable")

        def gathered(name: str) -> np.ndarray:
            return np.concatenate([getattr(steps, name) for steps in parts])[order]

        parents, terminated = chosen[gathered("parents")], gathered("terminated")
        owners = above.roots[parents]
        keys = [key for steps in parts for key in steps.keys]
        if keys:
            index: dict[tuple[int, bytes, bool], int] = {}
            identities = zip(owners.tolist(), [keys[i] for i in order.tolist()], terminated.tolist(), strict=True)
            children = np.array([index.setdefault(identity, len(index)) for identity in identities], np.intp)
            first = np.unique(children, return_index=True)[1]
        else:
            children = first = np.arange(len(order))
        if rows is None:
            shown = store.add(gathered("observations")[first])
        else:
            shown = rows[order[first]]
        paths = [0] * len(first)
        for parent, child in zip(parents.tolist(), children.tolist(), strict=True):
            paths[child] += above.paths[parent]
        pairs = parents * count + gathered("actions")
        probabilities = gathered("probabilities")
        return _Nodes(
            owners[first],
            _taken([steps.handles for steps in parts], order[first]),
            terminated[first],
            store.rows,
            shown,
            paths,
            pairs,
            np.searchsorted(pairs, np.arange(len(above.roots) * count + 1)),
            probabilities,
            np.cumsum(probabilities),
            gathered("rewards"),
            children,
            np.zeros(len(first)),
            np.zeros(len(first), bool),
        )

    def _evaluate(self, nodes: _Nodes, depth: int, steps_per_node: int) -> IntArray:
        """Evaluate a level, record it, and ask the rule; returns which of its nodes are expanded next."""
        options, results = self._options, self._results
        begin = time.perf_counter()
        self._value_nodes(nodes, depth)
        results.stopwatch.values += time.perf_counter() - begin
        level = self._record(np.unique(nodes.roots), depth)
        results.stopwatch.restart()
        if depth == options.rule.max_depth:
            return np.empty(0, np.intp)
        return results.choose(nodes, results.deeper(level), lambda some: self._likeliest(nodes, some), steps_per_node)

    def _value_nodes(self, nodes: _Nodes, depth: int) -> None:
        """Ask the value function for each distinct observation of nodes that have not terminated."""
        alive = np.flatnonzero(~nodes.terminated)
        if not len(alive):
            return
        rows, first = np.unique(nodes.rows[alive], return_index=True)
        wanted = rows[np.argsort(first)]  # in the order of the nodes, whoever expanded what
        by_row = np.empty(len(nodes.observations))
        by_row[wanted] = checked_values(self._options.value_fn(nodes.observations[wanted], depth), len(wanted))
        nodes.values[alive] = by_row[nodes.rows[alive]]

    def _skip_values(self, nodes: _Nodes, depth: int) -> IntArray:
        """Go on from a level that is not evaluated, and record the trees in which every path has terminated."""
        alive: IntArray = np.flatnonzero(~nodes.terminated)
        complete = np.setdiff1d(nodes.roots, nodes.roots[alive])
        if len(complete):
            self._record(complete, depth)
            self._results.stop(complete, SearchStatus.TERMINATED)
        return alive

    def _back_up(self, depth: int) -> FloatArray:
        """Return q (R, A) of the roots when the trees are cut at a depth; every level keeps its own."""
        values = self._levels[depth].values
        discount, count = self._options.discount, self._num_actions
        for below, level in zip(self._levels[depth:0:-1], self._levels[depth - 1 :: -1], strict=True):
            weights = below.probabilities * (below.rewards + discount * values[below.children])
            q: FloatArray = np.bincount(below.pairs, weights, len(level.roots) * count).reshape(-1, count).astype(float)
            level.action_values = q
            values = np.where(level.expanded, q.max(axis=1), level.values)
        assert self._levels[0].action_values is not None
        return self._levels[0].action_values

    def _record(self, grown: IntArray, depth: int) -> RecordedLevel:
        """Add a level to the results of some roots; returns what the rule sees of it."""
        q = self._back_up(depth)[grown]
        leaves, paths = self._draw_leaves(grown, depth, q)
        level = self._results.record(leaves, depth, self._levels[depth].roots, self._root_samples(grown))
        for i, root in enumerate(grown.tolist()):
            self._paths[root] = [
                tuple(path[:steps]) for path, steps in zip(paths[i].tolist(), leaves.depths[i].tolist(), strict=True)
            ]
        return level

    def _root_samples(self, grown: IntArray) -> FloatArray | None:
        """Return the value (n, A, K) of each first action in each drawn future; None where outcomes were listed."""
        if not self._futures:
            return None
        first = self._levels[1]
        values = first.values
        if first.action_values is not None:
            values = np.where(first.expanded, first.action_values.max(axis=1), first.values)
        outcomes = first.rewards + self._options.discount * values[first.children]
        return np.asarray(outcomes.reshape(-1, self._num_actions, self._futures)[grown])

    def _draw_leaves(self, grown: IntArray, depth: int, q: FloatArray) -> tuple[ActionLeaves, IntArray]:
        """Follow each first action of n roots to a leaf: chance by its probabilities, decisions by their maximum.

        Args:
            grown: (n,) the roots.
            depth: at which trees are cut.
            q: (n, A) values of the first actions.

        Returns:
            leaves: one for each first action.
            paths: (n, A, depth) the actions that lead there; those beyond the depth of a leaf mean nothing.
        """
        sim, shape, count = self._options.sim, q.shape, self._num_actions
        nodes, actions = np.repeat(grown, count), np.tile(np.arange(count), len(grown))
        roots = nodes.copy()
        returns, terminated = np.zeros(len(nodes)), np.zeros(len(nodes), bool)
        steps, paths = np.zeros(len(nodes), np.intp), np.zeros((len(nodes), depth), np.intp)
        observations = np.zeros((len(nodes), *sim.observation_shape), sim.observation_dtype)
        moving = np.arange(len(nodes))
        for level in range(1, depth + 1):
            above, below = self._levels[level - 1], self._levels[level]
            moving = moving[above.expanded[nodes[moving]]]
            if not len(moving):
                break
            paths[moving, level - 1] = actions[moving]
            pairs = nodes[moving] * count + actions[moving]
            words = {root: draw_seeds(self._seeds[root], _LEAVES + level, 1)[0] for root in grown.tolist()}
            shares = np.array([words[root] / 2.0**64 for root in roots[moving].tolist()])
            taken = _quantiles(below, pairs, shares)
            returns[moving] += self._options.discount ** (level - 1) * below.rewards[taken]
            nodes[moving] = below.children[taken]
            steps[moving] = level
            terminated[moving] = below.terminated[nodes[moving]]
            observations[moving] = below.observations[below.rows[nodes[moving]]]
            if level < depth and below.action_values is not None:
                actions[moving] = below.action_values[nodes[moving]].argmax(axis=1)
        leaves = ActionLeaves(
            grown,
            q,
            returns.reshape(shape),
            observations.reshape(*shape, *sim.observation_shape),
            terminated.reshape(shape),
            steps.reshape(shape),
            nodes.reshape(shape),
        )
        return leaves, paths.reshape(*shape, depth)

    def _likeliest(self, nodes: _Nodes, candidates: IntArray) -> IntArray:
        """Return the candidates of each root that the best plans after each first action reach most often.

        A beam keeps `width` of them, a search without one all.
        """
        if self._options.width is None:
            return candidates
        width = int(min(self._options.width, len(candidates)))
        reach: FloatArray = np.ones(len(self._roots))
        for level, below in zip(self._levels[:-1], self._levels[1:], strict=True):
            count = self._num_actions
            parents, actions = np.divmod(below.pairs, count)
            taken = np.ones(len(parents), bool)
            if level is not self._levels[0] and level.action_values is not None:
                taken = level.action_values.argmax(axis=1)[parents] == actions
            weights = reach[parents] * below.probabilities * taken
            reach = np.bincount(below.children, weights, len(below.roots)).astype(np.float64)
        by_reach = candidates[np.argsort(-reach[candidates], kind="stable")]
        kept = [by_reach[nodes.roots[by_reach] == root][:width] for root in np.unique(nodes.roots[candidates])]
        return np.sort(np.concatenate(kept)) if kept else candidates

    def paths(self, root: int) -> list[tuple[int, ...]]:
        """Return the actions to the drawn leaf of each first action."""
        return self._paths[root]

    def result(self, root: int) -> SearchResult:
        """Return the result of one root."""
        best = int(self._results.levels[root][-1].action_values.argmax())
        return self._results.result(root, self._paths[root][best])


def _taken(parts: Sequence[Sequence[Handle]], places: IntArray) -> list[Handle]:
    """Return the handles at some places of several sequences, one after the other; None where leaves have none."""
    if not len(parts[0]):
        return [None] * len(places)
    starts = np.cumsum([0, *map(len, parts)])
    owners = np.searchsorted(starts, places, side="right") - 1
    return [
        parts[owner][place] for owner, place in zip(owners.tolist(), (places - starts[owners]).tolist(), strict=True)
    ]


def _quantiles(nodes: _Nodes, pairs: IntArray, shares: FloatArray) -> IntArray:
    """Return the step of each pair (n,) at a quantile (n,) of its distribution."""
    first, stop = nodes.starts[pairs], nodes.starts[pairs + 1]
    before = np.where(first > 0, nodes.cumulative[first - 1], 0.0)
    wanted = before + shares * (nodes.cumulative[stop - 1] - before)
    found = np.searchsorted(nodes.cumulative, wanted, side="right")
    return np.asarray(np.clip(found, first, stop - 1))  # rounding may lead past the last one
