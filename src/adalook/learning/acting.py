"""From live worlds to actions, and to what is stored for learning (QL-DQN, points 5 and 6).

Plain DQN takes argmax_a Q_0(s, a) and learns from the step that the world then makes. An agent with a tree takes the
first action of its best leaf and learns from the way to it: (state, action, return to leaf, leaf, depth, ended).
A random action takes the best leaf *below that action* (decision 9).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import DivergedError
from adalook.learning.networks import Evaluator
from adalook.search.result import Leaf, SearchResult
from adalook.search.rules.base import DepthRule
from adalook.search.search import Root, search_many
from adalook.search.workers.base import Expander, make_expander
from adalook.simulators.base import Simulator

NO_ACTION = -1
"""In a list of random actions: this world follows its values."""


@dataclass(frozen=True, eq=False)
class Decision:
    """What to do in one world."""

    action: int
    depth: int
    leaves: tuple[Leaf, ...] = ()
    """What to learn from, that of the action taken first, the chosen depth first; none: the world's next step."""
    distances: Mapping[int, float] = field(default_factory=dict)
    """By depth, as far as the rule measured them."""
    nodes: int = 0
    """Steps that the search simulated."""
    tree_nodes: int = 0
    """Steps that it would have simulated if it did not merge equal nodes."""


class Actor(Protocol):
    """How an agent chooses."""

    def decide(
        self, worlds: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """One decision for each of n worlds.

        Args:
            worlds: live, and left alone.
            observations: (n, *shape) what they show.
            random_actions: (n,) what to do instead of the best, or NO_ACTION.
            seeds: (n,) of the searches' own randomness.
        """


@dataclass(frozen=True)
class ValueActor:
    """Plain DQN: no tree."""

    evaluator: Evaluator

    def decide(
        self, worlds: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """See `Actor`. The network is asked only if some world follows it."""
        if (random_actions != NO_ACTION).all():
            return [Decision(action, 0) for action in random_actions.tolist()]
        best = self.evaluator.action_values(observations, 0).argmax(axis=1)
        return [
            Decision(greedy if other == NO_ACTION else other, 0)
            for greedy, other in zip(best.tolist(), random_actions.tolist(), strict=True)
        ]


class TreeActor:
    """A tree of fixed or adaptive depth.

    Args:
        evaluator: heads 1, 2, …, or one of them for trees of fixed depth.
        rule: how deep to look.
        discount: γ.
        least_depth: what every tree reaches. One whose paths have all ended earlier counts as so deep: more levels
            would say the same.
        store_shallow: store the best leaf of every level, not only of the last (decision 11).
        every_action: store the best leaf below every first action, not only below the one taken.
        workers: processes that step the nodes; 0: none but this one.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        rule: DepthRule,
        *,
        discount: float,
        least_depth: int,
        store_shallow: bool = False,
        every_action: bool = False,
        workers: int = 0,
    ) -> None:
        self._evaluator, self._rule = evaluator, rule
        self._discount, self._least_depth = discount, least_depth
        self._store_shallow, self._every_action, self._workers = store_shallow, every_action, workers
        self._expander: Expander | None = None
        self._depths = sorted(evaluator.network.names)

    def decide(
        self, worlds: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """See `Actor`. All trees grow together, so that their leaves share passes through the network."""
        if self._expander is None:
            self._expander = make_expander(worlds[0], self._workers)
        roots = [Root(world.save(), observation) for world, observation in zip(worlds, observations, strict=True)]
        results = search_many(
            worlds[0],
            roots,
            self._values,
            self._rule,
            discount=self._discount,
            seed=seeds.tolist(),
            expander=self._expander,
            every_level=self._store_shallow,
        )
        return [
            self._decision(result, result.action if other == NO_ACTION else other)
            for result, other in zip(results, random_actions.tolist(), strict=True)
        ]

    def _values(self, observations: np.ndarray[Any, Any], depth: int) -> FloatArray:
        """max_a Q_depth; a depth without a head, such as the root's, is judged by the next deeper one that has one."""
        head = next(known for known in self._depths if known >= depth)
        values = self._evaluator.values(observations, head)
        if not np.isfinite(values).all():
            raise DivergedError(values[~np.isfinite(values)][0])
        return values

    def _decision(self, result: SearchResult, action: int) -> Decision:
        depth = max(result.depth, self._least_depth)
        others = [other for other in range(len(result.action_values)) if other != action]
        leaves = list[Leaf]()
        for first in [action, *others] if self._every_action else [action]:
            leaves.append(dataclasses.replace(result.leaf(first), depth=depth))
            if self._store_shallow:
                leaves += [result.leaf(first, level) for level in range(result.depth - 1, 0, -1)]
        return Decision(
            action,
            depth,
            leaves=tuple(leaves),
            distances={level.depth: level.distance for level in result.levels if np.isfinite(level.distance)},
            nodes=result.nodes,
            tree_nodes=result.tree_nodes,
        )
