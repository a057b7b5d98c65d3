"""The result of a search: an action, why it was chosen, and what that cost."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.errors import ArgumentError

CLOSE = 2.0
"""A choice is close if the best action leads another by fewer standard errors than this."""


class SearchStatus(enum.Enum):
    """The reason why a search went no deeper."""

    DONE = "the rule asked for no more"
    TERMINATED = "every path has terminated"
    NODE_LIMIT = "out of nodes"
    TIME_LIMIT = "out of time"

    @property
    def limited(self) -> bool:
        """Whether the rule wanted to go deeper but the budget was spent."""
        return self in (SearchStatus.NODE_LIMIT, SearchStatus.TIME_LIMIT)


@dataclass(frozen=True)
class Seconds:
    """Seconds spent, by what they were spent on. Roots that are searched in one call share them."""

    expansion: float = 0.0
    """Waiting for the simulator: emulation, saving, restoring, observations and keys."""
    values: float = 0.0
    """Waiting for the value function."""
    bookkeeping: float = 0.0
    """The rest: merging, returns, the rule."""

    @property
    def total(self) -> float:
        """The sum of the three."""
        return self.expansion + self.values + self.bookkeeping

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(
            self.expansion + other.expansion, self.values + other.values, self.bookkeeping + other.bookkeeping
        )


@dataclass(frozen=True, eq=False)
class Leaf:
    """The end of a path, as a learner stores it.

    Its value is return_to_leaf + γ^depth · V(observation), where V counts as 0 if it has terminated;
    depth is the number of steps to it.
    """

    return_to_leaf: float
    observation: np.ndarray[Any, Any]
    """(*observation_shape), part of a larger array: copy it to keep it for long"""
    depth: int
    terminated: bool
    action: int
    """The first action of the path."""


@dataclass(frozen=True, eq=False)
class Level:
    """The values of the tree of one root when it is cut at one depth; A is the number of actions.

    A first action of which a beam kept no node has the value -inf, and no leaf.
    """

    depth: int
    action_values: FloatArray
    """(A,) best return + γ^depth · V over the leaves below each first action; terminated ones without V"""
    returns: FloatArray
    """(A,) discounted return of the path to that best leaf"""
    leaf_observations: np.ndarray[Any, Any]
    """(A, *observation_shape) the observation of that leaf"""
    leaf_terminated: BoolArray
    """(A,)"""
    leaf_steps: IntArray
    """(A,) steps from the root to that leaf: `depth`, unless the path terminated earlier or the level is a stage of
    rollouts"""
    nodes: int
    """Steps simulated since the last evaluated level above."""
    distinct: int
    """Nodes that are left of this level after merging; those at `max_depth` of the rule are not merged."""
    distance: float
    """What the rule decided by (`DepthRule.distances`); NaN if it measures nothing."""
    seconds: Seconds
    samples: FloatArray | None = None
    """(A, K) the value of each first action in each of K drawn futures, whose mean it is; None where none were drawn"""

    @property
    def value(self) -> float:
        """The value of the best first action."""
        return float(self.action_values.max())

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors (A,) of the lead of the best action over each; 0 where no futures were drawn.

        All actions are tried in the same futures, so what chance does to both of two actions cancels.
        """
        if self.samples is None:
            return np.zeros(len(self.action_values))
        if self.samples.shape[1] == 1:
            return np.full(len(self.action_values), np.inf)
        leads = self.samples[self.action_values.argmax()] - self.samples
        return np.asarray(leads.std(axis=1, ddof=1) / np.sqrt(leads.shape[1]))


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of one search."""

    levels: tuple[Level, ...]
    """The levels that were evaluated, the deepest last: the answer is that of the last."""
    path: tuple[int, ...]
    """Actions from the root to the best leaf; shorter than `depth` if that leaf has terminated earlier."""
    nodes: int
    """Steps that were simulated, including those of a level that was given up when time ran out. (The batches that
    workers are at just then are not counted.)"""
    tree_nodes: int
    """Steps that a plain tree, which merges no nodes, needs to come as far."""
    status: SearchStatus
    given_up: Seconds = Seconds()
    """Spent on a level that was given up."""

    @property
    def depth(self) -> int:
        """The depth of the deepest evaluated level."""
        return self.levels[-1].depth

    @property
    def action_values(self) -> FloatArray:
        """The values (A,) of the first actions."""
        return self.levels[-1].action_values

    @property
    def action(self) -> int:
        """The best first action; the first of equal ones."""
        return int(self.action_values.argmax())

    @property
    def value(self) -> float:
        """The value of the best first action."""
        return self.levels[-1].value

    @property
    def close(self) -> bool:
        """Whether chance leaves the choice open: another action is within two standard errors of the best."""
        level = self.levels[-1]
        leads = level.value - level.action_values
        return bool(((leads < CLOSE * level.standard_errors) & np.isfinite(leads)).any())

    @property
    def saved(self) -> int:
        """Steps that merging has saved."""
        return self.tree_nodes - self.nodes

    @property
    def distances(self) -> FloatArray:
        """The distances that the rule decided by, one per level (levels,); NaN if it measures none."""
        return np.array([level.distance for level in self.levels])

    @property
    def seconds(self) -> Seconds:
        """All time spent: on the levels, and on one that was given up."""
        return sum((level.seconds for level in self.levels), self.given_up)

    def leaf(self, action: int | None = None, depth: int | None = None) -> Leaf:
        """Return the best leaf below a first action when the tree is cut at a depth.

        Args:
            action: the first action; the best one if None.
            depth: 1 … self.depth; the deepest if None. Where that level was not evaluated, or a beam has kept
                no node of the action there, the deepest level above it that has one is taken.
        """
        action = self.action if action is None else action
        depth = self.depth if depth is None else depth
        known = [level for level in self.levels if level.depth <= depth and level.action_values[action] > -np.inf]
        if not known or not 1 <= depth <= self.depth:
            evaluated = ", ".join(str(level.depth) for level in self.levels)
            raise ArgumentError(
                "there is no such level",
                expected=f"a depth from 1 to {self.depth}, of which were evaluated: {evaluated}",
                got=depth,
                remedy="search with every_level=True to evaluate all of them",
            )
        level = known[-1]
        return Leaf(
            float(level.returns[action]),
            level.leaf_observations[action],
            int(level.leaf_steps[action]),
            bool(level.leaf_terminated[action]),
            action,
        )
