"""Rollout search: long, narrow looks ahead, in trees that are kept from one decision to the next.

An exhaustive tree of depth h costs A^h steps and sees h steps ahead; the effect of an action in an Atari game often
shows only after dozens. A rollout walks down the tree from the root, mostly repeating its last action, until it has
`length` steps or terminates; the steps that are new are simulated and stay in the tree. Rollouts come in stages of
`nodes` simulated steps; after each stage the leaves are evaluated and a depth rule decides, per root, whether another
stage is worth its cost: a stage is to a rollout search what a level is to an exhaustive one. The first rollout may
follow a policy, such as the greedy one of a learner, so that the tree knows at least what that would do, and the others
now and then, so that they go where it would go on from what chance has found.

    v(leaf) = V(leaf), 0 if terminated        v(node) = max over the children tried of  r + γ v(child)

All values are attained by paths that were simulated, so they are exact about the simulator and lower bounds of those of
the full tree with the same leaf values. What the live env does not do is forgotten; the subtree of what it does is kept
if the simulator arrived in just the state that the tree holds, bit for bit (so a stochastic one keeps nothing).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from adalook import _validation as validation
from adalook._arrays import FloatArray, IntArray
from adalook.search.leaves import checked_values
from adalook.search.result import Leaf, Level, SearchResult, SearchStatus, Seconds
from adalook.search.rules.base import DepthRule, LevelView, ValueFunction
from adalook.search.search import Root
from adalook.search.workers.base import ExpansionBatch, check_batch
from adalook.simulators.base import Observations, Simulator, State

Policy = Callable[[Observations], IntArray]
"""Observations (n, *observation_shape) -> actions (n,)."""
Adjustment = Callable[[Simulator, FloatArray, IntArray], FloatArray]
"""(live env, values of leaves (n,), steps from the root (n,)) -> what they count as."""


@dataclass(frozen=True)
class Rollouts:
    """The shape of a rollout search.

    >>> Rollouts(nodes=40, length=20)
    Rollouts(nodes=40, length=20, repeat=0.8, greedy=0.0)
    """

    nodes: int = 40
    """Steps that a stage simulates for each root."""
    length: int = 20
    """No path is longer, in steps from the root."""
    repeat: float = 0.8
    """Probability that a rollout repeats its last action; otherwise it takes any, all with the same probability."""
    greedy: float = 0.0
    """Probability that it does neither, but follows the policy of the search."""

    def __post_init__(self) -> None:
        validation.integer(min=1).validate("nodes of a stage", self.nodes)
        validation.integer(min=1).validate("length of rollouts", self.length)
        validation.fraction.validate("repeat", self.repeat)
        validation.fraction.validate("greedy", self.greedy)


class _Node:
    """A state of a rollout tree, with the reward of the step to it."""

    __slots__ = (
        "action",
        "best_action",
        "children",
        "exhausted",
        "is_valued",
        "observation",
        "parent",
        "reward",
        "state",
        "terminated",
        "value",
    )

    def __init__(
        self,
        parent: _Node | None,
        action: int,
        state: State,
        observation: np.ndarray[Any, Any],
        reward: float,
        terminated: bool,
    ) -> None:
        self.parent, self.action, self.state, self.observation = parent, action, state, observation
        self.reward, self.terminated = reward, terminated
        self.children: dict[int, _Node] = {}
        self.exhausted = terminated
        """Whether no rollout of this search can add a node below."""
        self.best_action: int | None = None
        """What the policy does here; None: it was not asked."""
        self.value = 0.0
        self.is_valued = terminated
        """Whether `value` is that of the leaf as this search sees it."""

    def as_leaf(self) -> Leaf:
        """Return the step to this node as a leaf of depth 1."""
        return Leaf(self.reward, self.observation, 1, self.terminated, self.action)

    @property
    def steps(self) -> int:
        """Number of steps from the root."""
        count, node = 0, self
        while node.parent is not None:
            count, node = count + 1, node.parent
        return count

    def below(self) -> list[_Node]:
        """Return this node and all below it, parents before children."""
        nodes = [self]
        for node in nodes:
            nodes.extend(node.children.values())
        return nodes

    def release(self) -> None:
        """Take apart the tree below, whose parents and children hold each other: its memory is free at once."""
        for node in self.below():
            node.parent = None


@dataclass(eq=False)
class _Search:
    """One root while it is searched."""

    env: Simulator
    root: _Node
    seed: int
    reference: float
    levels: list[Level] = field(default_factory=list)
    grown: list[_Node] = field(default_factory=list)
    """Nodes that this search has simulated."""
    status: SearchStatus = SearchStatus.DONE
    # The rollout at hand
    node: _Node | None = None
    depth: int = 0
    last_action: int | None = None
    policy: Policy | None = None
    """What rollouts follow now and then; None: chance alone."""
    is_led: bool = False
    """Whether the rollout follows the policy at every step: the first one does."""

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    @property
    def simulated(self) -> int:
        """The number of steps that this search has simulated."""
        return len(self.grown)


class SimulatedStep(NamedTuple):
    """A step that a search simulated, anywhere in its tree."""

    observation: np.ndarray[Any, Any]
    """What was seen before it."""
    leaf: Leaf
    """Its end, of depth 1."""


class RolloutTrees:
    """Rollout searches of several live envs, which keep their trees between decisions.

    Args:
        sim: steps the nodes; one of the live envs, or a clone of them.
        shape: of the rollouts.
        discount: γ, for each step.

    >>> import adalook as al
    >>> from adalook.search import FixedDepth
    >>> from adalook.simulators.tabular import TabularSimulator
    >>> sim = TabularSimulator(al.zoo.chain(n=9, discount=0.9), start=0)
    >>> _ = sim.reset(seed=0)
    >>> trees = RolloutTrees(sim, Rollouts(nodes=30, length=12), discount=0.9)
    >>> result = trees.search([sim], lambda leaves, stage: np.zeros(len(leaves)), FixedDepth(1), seeds=[1])[0]
    >>> result.nodes, len(result.path)
    (24, 12)
    """

    def __init__(self, sim: Simulator, shape: Rollouts, discount: float) -> None:
        self._sim, self._shape, self._discount = sim, shape, discount
        self.num_actions = sim.num_actions
        self._trees: WeakKeyDictionary[Simulator, _Node] = WeakKeyDictionary()
        self._grown: WeakKeyDictionary[Simulator, list[_Node]] = WeakKeyDictionary()
        """What the last search of each live env simulated."""

    def search(
        self,
        envs: Sequence[Simulator],
        value_fn: ValueFunction,
        rule: DepthRule,
        *,
        seeds: Sequence[int],
        policy: Policy | None = None,
        adjust: Adjustment | None = None,
    ) -> list[SearchResult]:
        """Look ahead from the current state of each live env, in stages as `rule` decides.

        Args:
            envs: live, and left alone. What is kept for one of them goes when it goes.
            value_fn: (observations (n, *observation_shape), stage) -> (n,) values of leaves.
            rule: how many stages; its depth is the number of the stage.
            seeds: one for each env, of its rollouts' choices and of the tree's own randomness.
            policy: what the first rollout from each root follows, and the others with probability `Rollouts.greedy`.
            adjust: what values of leaves count as, by the live env that they are about; None: what they are.
        """
        roots = [Root.of(env) for env in envs]
        references = np.asarray(
            rule.reference(np.stack([root.observation for root in roots]), value_fn), np.float64
        ).tolist()
        searches = [
            _Search(
                env,
                self._rooted(env, root, seed),
                seed,
                reference,
                policy=policy,
                is_led=policy is not None,
            )
            for env, root, seed, reference in zip(envs, roots, seeds, references, strict=True)
        ]
        self._trees.update((env, search.root) for env, search in zip(envs, searches, strict=True))
        growing = searches
        for stage in range(1, rule.max_depth + 1):
            begin = time.perf_counter()
            self._roll_out(growing)
            expanded = time.perf_counter()
            self._evaluate(growing, value_fn, stage, adjust)
            values_known = time.perf_counter()
            growing = self._record(growing, rule, stage, Seconds(expanded - begin, values_known - expanded))
            if not growing:
                break
        self._grown.update((env, search.grown) for env, search in zip(envs, searches, strict=True))
        return [self._result(search) for search in searches]

    def first_steps(self, env: Simulator) -> list[Leaf]:
        """Return the first steps that the last search of a live env tried, each as a leaf of depth 1."""
        return [child.as_leaf() for child in self._trees[env].children.values()]

    def leaf_counts(self, env: Simulator) -> FloatArray:
        """Return (A,) how many leaves the tree of a live env has below each first action."""
        counts = np.zeros(self._sim.num_actions)
        for action, child in self._trees[env].children.items():
            counts[action] = sum(not node.children for node in child.below())
        return counts

    def simulated_steps(self, env: Simulator, count: int, seed: int) -> list[SimulatedStep]:
        """Return `count` of the steps that the last search of a live env simulated, drawn without replacement."""
        grown = self._grown[env]
        chosen = np.random.default_rng(seed).choice(len(grown), min(count, len(grown)), replace=False)
        steps = []
        for node in (grown[i] for i in chosen.tolist()):
            assert node.parent is not None
            steps.append(SimulatedStep(node.parent.observation, node.as_leaf()))
        return steps

    def keep(self, env: Simulator, action: int) -> None:
        """Keep the subtree of what a live env is going to do; `search` checks that it arrived there."""
        root = self._trees.pop(env)
        self._grown.pop(env, None)
        child = root.children.pop(action, None)
        root.release()
        if child is not None and not child.terminated:
            child.parent = None
            self._trees[env] = child

    def kept_paths(self, env: Simulator) -> list[list[int]]:
        """Return the tree that is kept for a live env: [number of the parent, action] of every node but the root."""
        root = self._trees.get(env)
        nodes = [] if root is None else root.below()
        numbers = {id(node): number for number, node in enumerate(nodes)}
        return [[numbers[id(node.parent)], node.action] for node in nodes[1:]]

    def load_kept_paths(self, env: Simulator, paths: Sequence[Sequence[int]], seed: int) -> None:
        """Grow the tree again that `kept_paths` gave; simulators keep subtrees only if they are deterministic."""
        if (before := self._trees.pop(env, None)) is not None:
            before.release()
        if not paths:
            return
        root = Root.of(env)
        nodes = [_Node(None, -1, self._sim.reseed(root.state, seed), root.observation, 0.0, False)]
        for parent, action in paths:
            nodes.append(self._child(nodes[parent], action))
        self._trees[env] = nodes[0]

    def _rooted(self, env: Simulator, root: Root, seed: int) -> _Node:
        """Return the tree of a root: what is kept, if that is its state, else a new one."""
        kept = self._trees.get(env)
        if kept is not None and self._sim.pack(kept.state) == self._sim.pack(root.state):
            kept.action, kept.reward = -1, 0.0
            kept.observation = root.observation
            for node in reversed(kept.below()):
                node.is_valued, node.best_action = node.terminated, None
                node.exhausted = node.terminated or self._has_nothing_to_try(node)
            return kept
        if kept is not None:
            kept.release()
        return _Node(None, -1, self._sim.reseed(root.state, seed), root.observation, 0.0, False)

    def _roll_out(self, searches: Sequence[_Search]) -> None:
        """Simulate one stage: rollouts of all searches go on together, one step of each at a time."""
        limits = {id(search): search.simulated + self._shape.nodes for search in searches}
        active = list(searches)
        while active:
            steps: list[tuple[_Search, _Node, int]] = []
            for search in active:
                step = self._next_step(search)
                if step is not None:
                    steps.append((search, *step))
            if steps:
                self._simulate(steps)
            active = [search for search, _, _ in steps if search.simulated < limits[id(search)]]

    def _next_step(self, search: _Search) -> tuple[_Node, int] | None:
        """Return the next (node, action) of a search that is not in its tree yet; None if there is none."""
        while not search.root.exhausted:
            if search.node is None:
                search.node, search.depth, search.last_action = search.root, 0, None
            node = search.node
            if node.exhausted or search.depth >= self._shape.length:
                self._exhaust(node)
                search.node, search.is_led = None, False
                continue
            action = self._action(search, node)
            search.last_action = action
            child = node.children.get(action)
            if child is None:
                return node, action
            search.node, search.depth = child, search.depth + 1
        search.node = None
        search.status = SearchStatus.TERMINATED
        return None

    def _action(self, search: _Search, node: _Node) -> int:
        """Return the action of a rollout at a node: first actions that were not tried come first."""
        count = self._sim.num_actions
        children = node.children
        if search.is_led:
            return self._best_action(search, node)
        if node is search.root and len(children) < count:
            candidates = [action for action in range(count) if action not in children]
            return candidates[int(search.rng.integers(len(candidates)))]
        if search.policy is not None and self._shape.greedy and search.rng.random() < self._shape.greedy:
            best = self._best_action(search, node)
            if best not in children or not children[best].exhausted:
                return best
        last = search.last_action
        if last is not None and search.rng.random() < self._shape.repeat:
            child = children.get(last)
            if child is None or not child.exhausted:
                return last
        candidates = [action for action in range(count) if action not in children or not children[action].exhausted]
        return candidates[int(search.rng.integers(len(candidates)))]

    def _best_action(self, search: _Search, node: _Node) -> int:
        """Return what the policy does at a node; it is asked once in a search."""
        if node.best_action is None:
            assert search.policy is not None
            node.best_action = int(search.policy(node.observation[None])[0])
        return node.best_action

    def _exhaust(self, node: _Node) -> None:
        """Mark a node, and those above it that are left without anything to try."""
        node.exhausted = True
        parent = node.parent
        while parent is not None and self._has_nothing_to_try(parent):
            parent.exhausted = True
            parent = parent.parent

    def _has_nothing_to_try(self, node: _Node) -> bool:
        """Return whether all children of a node are there and exhausted."""
        children = node.children
        return len(children) == self._sim.num_actions and all(child.exhausted for child in children.values())

    def _simulate(self, steps: Sequence[tuple[_Search, _Node, int]]) -> None:
        """Take one new step of each search, and put it into its tree."""
        children = self._sim.expand([node.state for _, node, _ in steps], [action for _, _, action in steps])
        everyone: IntArray = np.array([i * self._sim.num_actions + action for i, (_, _, action) in enumerate(steps)])
        check_batch(
            ExpansionBatch(everyone, (), children.observations, children.rewards, children.terminated, ()),
            self._sim.num_actions,
        )
        for i, (search, node, action) in enumerate(steps):
            terminated = bool(children.terminated[i])
            child = _Node(
                node, action, children.states[i], children.observations[i], float(children.rewards[i]), terminated
            )
            node.children[action] = child
            search.grown.append(child)
            search.node, search.depth = child, search.depth + 1
            if terminated or search.depth >= self._shape.length:
                self._exhaust(child)
                search.node, search.is_led = None, False

    def _child(self, node: _Node, action: int) -> _Node:
        """Return the new child of a node, which has it from now on."""
        child = self._sim.expand([node.state], [action])
        made = _Node(
            node, action, child.states[0], child.observations[0], float(child.rewards[0]), bool(child.terminated[0])
        )
        node.children[action] = made
        return made

    def _evaluate(
        self, searches: Sequence[_Search], value_fn: ValueFunction, stage: int, adjust: Adjustment | None
    ) -> None:
        """Evaluate the leaves of all trees in one batch, and back their values up to the roots."""
        nodes = [search.root.below() for search in searches]
        by_tree = [[node for node in tree if not node.children and not node.is_valued] for tree in nodes]
        leaves = [leaf for tree in by_tree for leaf in tree]
        if leaves:
            observations = np.stack([leaf.observation for leaf in leaves])
            values = checked_values(value_fn(observations, stage), len(leaves))
            if adjust is not None:
                ends = np.cumsum([len(tree) for tree in by_tree])[:-1]
                steps: IntArray = np.array([leaf.steps for leaf in leaves])
                parts = zip(searches, np.split(values, ends), np.split(steps, ends), strict=True)
                values = np.concatenate([adjust(search.env, part, away) for search, part, away in parts])
            for leaf, value in zip(leaves, values.tolist(), strict=True):
                leaf.value, leaf.is_valued = value, True
        for tree in nodes:
            for node in reversed(tree):
                if node.children:
                    node.value = max(child.reward + self._discount * child.value for child in node.children.values())

    def _record(self, searches: list[_Search], rule: DepthRule, stage: int, seconds: Seconds) -> list[_Search]:
        """Add a stage to the result of every search that has grown; returns those that the rule lets grow on."""
        levels = [self._level(search, stage, seconds) for search in searches]
        values = np.array([level.value for level in levels])
        references = np.array([search.reference for search in searches])
        previous = np.array([search.levels[-1].value if search.levels else search.reference for search in searches])
        action_values = np.stack([level.action_values for level in levels])
        view = LevelView(stage, action_values, values, previous, references, [search.seed for search in searches])
        distances = np.asarray(rule.distances(view), np.float64)
        for search, level, distance in zip(searches, levels, distances.tolist(), strict=True):
            search.levels.append(dataclasses.replace(level, distance=distance))
        if stage == rule.max_depth:
            return []
        deeper = np.asarray(rule.deeper(view, distances), bool).tolist()
        return [
            search
            for search, grows in zip(searches, deeper, strict=True)
            if grows and search.status is not SearchStatus.TERMINATED
        ]

    def _level(self, search: _Search, stage: int, seconds: Seconds) -> Level:
        """Return the values of the first actions and their best leaves, as the tree stands."""
        sim, count = self._sim, self._sim.num_actions
        values: FloatArray = np.full(count, -np.inf)
        returns, terminated = np.zeros(count), np.zeros(count, bool)
        steps: IntArray = np.zeros(count, np.intp)
        observations = np.zeros((count, *sim.observation_shape), sim.observation_dtype)
        for action, child in search.root.children.items():
            values[action] = child.reward + self._discount * child.value
            leaf, total, discount, steps[action] = child, child.reward, self._discount, 1
            while leaf.children:
                leaf = self._best_child(leaf)
                total += discount * leaf.reward
                discount *= self._discount
                steps[action] += 1
            returns[action], terminated[action], observations[action] = total, leaf.terminated, leaf.observation
        before = sum(level.nodes for level in search.levels)
        nodes = search.simulated - before
        return Level(stage, values, returns, observations, terminated, steps, nodes, nodes, float("nan"), seconds)

    def _best_child(self, node: _Node) -> _Node:
        """Return the child by which a node has its value."""
        return max(node.children.values(), key=lambda child: child.reward + self._discount * child.value)

    def _result(self, search: _Search) -> SearchResult:
        """Return the result of one root."""
        levels = tuple(search.levels)
        path: list[int] = []
        node = search.root.children[int(levels[-1].action_values.argmax())]
        path.append(node.action)
        while node.children:
            node = self._best_child(node)
            path.append(node.action)
        return SearchResult(levels, tuple(path), search.simulated, search.simulated, search.status)
