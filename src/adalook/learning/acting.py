"""From live environments to actions, and to what is stored for learning (QL-DQN steps 5 and 6).

Plain DQN takes argmax_a Q_0(s, a) and learns from the step that the environment then makes. An agent with a tree takes
the first action of its best leaf and learns from the path to it: (state, action, return to leaf, leaf, head, steps,
terminated). A random action takes the best leaf *below that action* (decision 9).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.engines.base import Engine
from adalook.errors import DivergedError
from adalook.learning.correction import LeafCorrection
from adalook.learning.networks import QFunction
from adalook.learning.replay.buffer import Experience
from adalook.search.result import Leaf, SearchResult
from adalook.search.rollouts import Adjustment, Rollouts, RolloutTrees
from adalook.search.rules.base import DepthRule
from adalook.search.search import Root, search_many
from adalook.search.workers.base import Expander, make_expander
from adalook.simulators.base import Simulator

NO_ACTION = -1
"""In an array of random actions: this environment takes its greedy action."""


@dataclass(frozen=True, eq=False)
class Decision:
    """The action for one environment, with what it is based on."""

    action: int
    depth: int
    """Depth of the tree that was searched; 0: none was."""
    experiences: tuple[Experience, ...] = ()
    """What to learn from."""
    learn_real_step: bool = True
    """Whether the environment's next step is learnt from, too."""
    distances: Mapping[int, float] = field(default_factory=dict)
    """Distances to Ṽ* by depth, as far as the rule measured them."""
    nodes: int = 0
    """Steps that the search simulated."""
    tree_nodes: int = 0
    """Steps that it would have simulated if it did not merge equal nodes."""
    tied_actions: int = 1
    """First actions that the search could not tell from the best."""


class Actor(ABC):
    """Chooses actions."""

    @abstractmethod
    def decide(
        self, envs: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """Return one decision for each of n environments.

        Args:
            envs: live simulators, which are left alone.
            observations: (n, *shape) what they show.
            random_actions: (n,) actions to take instead of the best, or NO_ACTION.
            seeds: (n,) of the searches' own randomness.
        """

    def state(self, envs: Sequence[Simulator]) -> list[Any]:
        """Return what is kept of live environments between decisions, as plain data; nothing by default."""
        del envs
        return []

    def load_state(self, envs: Sequence[Simulator], state: list[Any]) -> None:
        """Go on from what `state` gave for the same environments."""
        del envs, state


@dataclass(frozen=True)
class ValueActor(Actor):
    """Acts greedily by Q_0, without a tree: plain DQN."""

    q_function: QFunction

    def decide(
        self, envs: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """Return decisions, see `Actor`. The network is evaluated only if some environment is greedy."""
        if (random_actions != NO_ACTION).all():
            return [Decision(action, 0) for action in random_actions.tolist()]
        best = self.q_function.action_values(observations, 0).argmax(axis=1)
        return [
            Decision(greedy if other == NO_ACTION else other, 0)
            for greedy, other in zip(best.tolist(), random_actions.tolist(), strict=True)
        ]


class TreeActor(Actor):
    """Acts by the best leaf of a search tree of fixed or adaptive depth.

    Args:
        q_function: with a head for each depth 1, 2, …, or for one of them for trees of fixed depth.
        rule: how deep to look.
        discount: γ.
        least_depth: what every tree reaches. One whose paths have all terminated earlier counts as so deep: more levels
            would say the same.
        store_shallow: store the best leaf of every level, not only of the last (decision 11).
        every_action: store the best leaf below every first action, not only below the one taken.
        samples: futures drawn where the environment is stochastic and does not list its outcomes.
        width: expand at most so many nodes of a level, the most valuable ones; None: all.
        correction: takes their leaves' optimism off first actions; None: leaves are believed.
        engine: whose processes step the nodes; None: none but this one.
    """

    def __init__(
        self,
        q_function: QFunction,
        rule: DepthRule,
        *,
        discount: float,
        least_depth: int,
        store_shallow: bool = False,
        every_action: bool = False,
        samples: int = 1,
        width: int | None = None,
        correction: LeafCorrection | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._q_function, self._rule = q_function, rule
        self._width, self._correction = width, correction
        self._discount, self._least_depth = discount, least_depth
        self._store_shallow, self._every_action, self._engine = store_shallow, every_action, engine
        self._samples = samples
        self._expander: Expander | None = None
        self._heads = sorted(q_function.network.names)

    def decide(
        self, envs: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """Return decisions, see `Actor`. All trees grow together, so that their leaves share passes of the network."""
        if self._expander is None:
            self._expander = make_expander(envs[0], self._engine)
        roots = [Root(env.save(), observation) for env, observation in zip(envs, observations, strict=True)]
        results = search_many(
            envs[0],
            roots,
            self._values,
            self._rule,
            discount=self._discount,
            seed=seeds.tolist(),
            samples=None if envs[0].lists_outcomes else self._samples,
            expander=self._expander,
            every_level=self._store_shallow or self._correction is not None,
            width=self._width,
        )
        best = [result.action for result in results]
        if self._correction is not None:
            values = self._q_function.action_values(observations, self._heads[0])
            best = [
                self._corrected_action(self._correction, env, own, result)
                for env, own, result in zip(envs, values, results, strict=True)
            ]
        return [
            self._decision(root.observation, result, greedy if other == NO_ACTION else _offered(result, other))
            for root, result, greedy, other in zip(roots, results, best, random_actions.tolist(), strict=True)
        ]

    def _corrected_action(
        self, correction: LeafCorrection, env: Simulator, values: FloatArray, result: SearchResult
    ) -> int:
        """Return the best first action once its leaves' optimism is taken off."""
        first, last = result.levels[0], result.levels[-1]
        leaves = float(env.num_actions) ** (last.depth - 1)
        corrected = correction.corrected(
            env,
            values,
            first.action_values,
            last.action_values,
            discount=self._discount**last.depth,
            leaves=np.full(env.num_actions, leaves),
        )
        return int(corrected.argmax())

    def _values(self, observations: np.ndarray[Any, Any], depth: int) -> FloatArray:
        """Return max_a Q_depth; a depth without a head, such as the root's, takes the next deeper one that has one."""
        head = next(known for known in self._heads if known >= depth)
        values = self._q_function.values(observations, head)
        if not np.isfinite(values).all():
            raise DivergedError(values[~np.isfinite(values)][0])
        return values

    def _decision(self, observation: np.ndarray[Any, Any], result: SearchResult, action: int) -> Decision:
        depth = max(result.depth, self._least_depth)
        others = [other for other in np.flatnonzero(np.isfinite(result.action_values)).tolist() if other != action]
        experiences = list[Experience]()
        for first_action in [action, *others] if self._every_action else [action]:
            for level in range(result.depth, 0 if self._store_shallow else result.depth - 1, -1):
                leaf = result.leaf(first_action, level)
                head = depth if level == result.depth else level
                experiences.append(
                    Experience(
                        observation,
                        first_action,
                        leaf.return_to_leaf,
                        leaf.observation,
                        head,
                        leaf.depth,
                        leaf.terminated,
                    )
                )
        return Decision(
            action,
            depth,
            experiences=tuple(experiences),
            distances={level.depth: level.distance for level in result.levels if np.isfinite(level.distance)},
            nodes=result.nodes,
            tree_nodes=result.tree_nodes,
            learn_real_step=False,
            tied_actions=int(tied(result.action_values).sum()),
        )

    def state(self, envs: Sequence[Simulator]) -> list[Any]:
        """Return the spreads that the leaf correction has measured."""
        return [] if self._correction is None else [self._correction.state(env) for env in envs]

    def load_state(self, envs: Sequence[Simulator], state: list[Any]) -> None:
        """Go on from what `state` gave for the same environments."""
        if self._correction is not None:
            for env, spread in zip(envs, state, strict=True):
                self._correction.load_state(env, spread)


TIE = 1e-5
"""Values that differ by less, relative to the best, are equal: networks round differently in other batches."""


def tied(action_values: FloatArray) -> BoolArray:
    """Return (A,) which actions are as good as the best.

    >>> tied(np.array([1.0, 0.5, 1.0]))
    array([ True, False,  True])
    """
    best = float(action_values.max())
    return np.asarray(action_values >= best - TIE * (1.0 + abs(best)))


class RolloutActor(Actor):
    """Acts by rollouts in a tree that is kept from one decision to the next.

    The first rollout follows argmax_a Q, so that the tree is no worse than the network wherever it looks; among first
    actions that the tree cannot tell apart Q(s₀, ·) decides.

    Args:
        q_function: values leaves, and breaks ties.
        rule: how many stages; its depth is the number of a stage.
        sim: steps the nodes.
        shape: of the rollouts.
        discount: γ.
        every_action: store the first steps with all other actions that were tried, beside the path to the best leaf.
        real_steps: learn from what the environment then does, too.
        tree_steps: store so many of the steps that the search simulated anywhere in its tree, drawn at random.
        correction: takes their leaves' optimism off first actions; None: leaves are believed.
        leaf_trust: w, by which differences of leaves' values from that of the root are believed.
        bootstrap: False: a search alone, without the network: leaves are worth nothing, and chance breaks ties.
        policy: the Q-function that the first rollout follows, asked for one row at a time; None: `q_function`.
    """

    def __init__(
        self,
        q_function: QFunction,
        rule: DepthRule,
        sim: Simulator,
        shape: Rollouts,
        *,
        discount: float,
        every_action: bool,
        real_steps: bool,
        tree_steps: int = 0,
        correction: LeafCorrection | None = None,
        leaf_trust: float = 1.0,
        bootstrap: bool = True,
        policy: QFunction | None = None,
    ) -> None:
        self._q_function, self._rule = q_function, rule
        self._policy = q_function if policy is None else policy
        self._trees = RolloutTrees(sim, shape, discount)
        self._discount, self._correction, self._bootstrap = discount, correction, bootstrap
        self._every_action, self._real_steps, self._tree_steps = every_action, real_steps, tree_steps
        self._leaf_trust = leaf_trust
        self._head = min(q_function.network.names)

    def decide(
        self, envs: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """Return decisions, see `Actor`."""
        root_values = self._root_values(observations, seeds)
        results = self._trees.search(
            envs,
            self._values,
            self._rule,
            seeds=seeds.tolist(),
            policy=self._greedy if self._bootstrap else None,
            adjust=self._adjustment(envs, root_values),
        )
        decisions = []
        for env, observation, values, result, other, seed in zip(
            envs, observations, root_values, results, random_actions.tolist(), seeds.tolist(), strict=True
        ):
            searched = result.action_values
            if self._correction is not None:
                searched = self._corrected(self._correction, env, values, result)
            equal = tied(searched)
            best = int(np.where(equal, values, -np.inf).argmax())
            action = best if other == NO_ACTION else other
            decisions.append(
                Decision(
                    action,
                    result.depth,
                    experiences=tuple(self._experiences(env, observation, result, best, seed)),
                    learn_real_step=self._real_steps,
                    distances={level.depth: level.distance for level in result.levels if np.isfinite(level.distance)},
                    nodes=result.nodes,
                    tree_nodes=result.tree_nodes,
                    tied_actions=int(equal.sum()),
                )
            )
            self._trees.keep(env, action)
        return decisions

    def _adjustment(self, envs: Sequence[Simulator], root_values: FloatArray) -> Adjustment | None:
        """Return what leaves count as: V(s₀)/γ^d + w (V(leaf) − V(s₀)) after d steps; None: as they are valued.

        The best of many leaves is one that the network overrates, and one step away most states look better than at
        the end of a long path by chance that found nothing. So the level V(s₀), which paths that terminate do not get,
        is the same for all leaves, seen from the root, and differences from it are believed in part.
        """
        discount, trust = self._discount, self._leaf_trust
        if trust == 1.0 or not self._bootstrap:
            return None
        levels = {id(env): float(values.max()) for env, values in zip(envs, root_values, strict=True)}

        def adjust(env: Simulator, values: FloatArray, steps: IntArray) -> FloatArray:
            level = levels[id(env)]
            return level / discount**steps + trust * (values - level)

        return adjust

    def _root_values(self, observations: np.ndarray[Any, Any], seeds: IntArray) -> FloatArray:
        """Return what decides among first actions that the tree cannot tell apart: Q(s₀, ·), or chance; (n, A)."""
        if self._bootstrap:
            return self._q_function.action_values(observations, self._head)
        return self._chances(seeds)

    def _chances(self, seeds: IntArray) -> FloatArray:
        """Return (n, A) what breaks ties by chance."""
        count = self._trees.num_actions
        return np.array([np.random.default_rng([seed, 1]).random(count) for seed in seeds.tolist()])

    def _corrected(
        self, correction: LeafCorrection, env: Simulator, values: FloatArray, result: SearchResult
    ) -> FloatArray:
        """Return the values of first actions without the optimism of their leaves."""
        after_one_step = np.full(len(values), -np.inf)
        steps = self._trees.first_steps(env)
        following = self._q_function.values(np.stack([step.observation for step in steps]), self._head)
        for step, value in zip(steps, following.tolist(), strict=True):
            after_one_step[step.action] = step.return_to_leaf + (0.0 if step.terminated else self._discount * value)
        last = result.levels[-1]
        return correction.corrected(
            env,
            values,
            after_one_step,
            last.action_values,
            discount=self._discount ** int(last.leaf_steps[result.action]),
            leaves=self._trees.leaf_counts(env),
        )

    def _experiences(
        self, env: Simulator, observation: np.ndarray[Any, Any], result: SearchResult, best: int, seed: int
    ) -> Iterator[Experience]:
        """Yield what to learn from: the path to the best leaf, first steps with other actions, steps of the tree.

        A path is a good target for the best action, which many rollouts went for; few went for the others, and by
        chance, so that the returns of their paths would teach too little: V of the next state teaches more.
        """
        yield self._experience(observation, result.leaf(best))
        if self._every_action:
            for leaf in self._trees.first_steps(env):
                if leaf.action != best:
                    yield self._experience(observation, leaf)
        if self._tree_steps:
            for step in self._trees.simulated_steps(env, self._tree_steps, seed):
                yield self._experience(step.observation, step.leaf)

    def _experience(self, observation: np.ndarray[Any, Any], leaf: Leaf) -> Experience:
        return Experience(
            observation,
            leaf.action,
            leaf.return_to_leaf,
            leaf.observation,
            self._head,
            leaf.depth,
            leaf.terminated,
        )

    def _values(self, observations: np.ndarray[Any, Any], stage: int) -> FloatArray:
        """Return max_a Q of leaves, whatever the stage; nothing if the search is alone."""
        del stage
        if not self._bootstrap:
            return np.zeros(len(observations))
        values = self._q_function.values(observations, self._head)
        if not np.isfinite(values).all():
            raise DivergedError(values[~np.isfinite(values)][0])
        return values

    def _greedy(self, observations: np.ndarray[Any, Any]) -> IntArray:
        """Return argmax_a Q."""
        best: IntArray = self._policy.action_values(observations, self._head).argmax(axis=1)
        return best

    def state(self, envs: Sequence[Simulator]) -> list[Any]:
        """Return what was measured, and the trees that are kept, as paths: they are simulated anew."""
        correction = self._correction
        return [
            {
                "paths": self._trees.kept_paths(env),
                "spread": None if correction is None else correction.state(env),
            }
            for env in envs
        ]

    def load_state(self, envs: Sequence[Simulator], state: list[Any]) -> None:
        """Go on from what `state` gave for the same environments."""
        for env, kept in zip(envs, state, strict=True):
            self._trees.load_kept_paths(env, kept["paths"], seed=0)
            if self._correction is not None:
                self._correction.load_state(env, kept["spread"])


def _offered(result: SearchResult, action: int) -> int:
    """Return an action if the state offers it, otherwise one of those that it offers."""
    if np.isfinite(result.action_values[action]):
        return action
    offered = np.flatnonzero(np.isfinite(result.action_values))
    return int(offered[action % len(offered)])
