"""What a search brings: an action, why it was chosen, and what that cost."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.errors import ArgumentError


class Status(enum.Enum):
    """Why a search went no deeper."""

    DONE = "the rule asked for no more"
    ENDED = "every path has ended"
    NODE_LIMIT = "out of nodes"
    TIME_LIMIT = "out of time"

    @property
    def limited(self) -> bool:
        """The rule wanted to go deeper but the budget was spent."""
        return self in (Status.NODE_LIMIT, Status.TIME_LIMIT)


@dataclass(frozen=True)
class Seconds:
    """Where the time went. Roots that are searched in one call share it."""

    expansion: float = 0.0
    """Waiting for the simulator: emulation, saving, restoring, observations and keys."""
    values: float = 0.0
    """Waiting for the value function."""
    bookkeeping: float = 0.0
    """All the rest: merging, returns, the rule."""

    @property
    def total(self) -> float:
        return self.expansion + self.values + self.bookkeeping

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(
            self.expansion + other.expansion, self.values + other.values, self.bookkeeping + other.bookkeeping
        )


@dataclass(frozen=True, eq=False)
class Leaf:
    """The end of a path, as a learner stores it: target = return_to_leaf + γ^depth · V(observation), V = 0 if ended."""

    return_to_leaf: float
    observation: np.ndarray[Any, Any]
    """(*observation_shape), part of a larger array: copy it to keep it for long"""
    depth: int
    terminated: bool
    action: int
    """The first on the way."""


@dataclass(frozen=True, eq=False)
class Level:
    """What the tree of one root says when cut at one depth. A is the number of actions.

    A first action of which a beam kept no node has the value -inf here, and no leaf.
    """

    depth: int
    action_values: FloatArray
    """(A,) best return + γ^depth · V over the leaves below each first action; ended leaves count without V"""
    returns: FloatArray
    """(A,) discounted return on the way to that best leaf"""
    leaf_observations: np.ndarray[Any, Any]
    """(A, *observation_shape) what that leaf shows"""
    leaf_ended: BoolArray
    """(A,)"""
    nodes: int
    """Steps simulated since the level looked at before."""
    distinct: int
    """Nodes that were left of them after merging; leaves of the last possible level are not merged."""
    distance: float
    """What the rule went by, if it measures one; else NaN."""
    seconds: Seconds

    @property
    def value(self) -> float:
        return float(self.action_values.max())


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The answer of one search."""

    levels: tuple[Level, ...]
    """Those that were looked at, the deepest last: the answer is that of the last."""
    path: tuple[int, ...]
    """Actions from the root to the best leaf; shorter than `depth` if that leaf has ended earlier."""
    nodes: int
    """Steps that were simulated, those of a level that was given up for want of time included. (Workers finish the
    batch they are at when time runs out: what nobody waits for is not counted.)"""
    tree_nodes: int
    """Steps that a plain tree, which takes equal nodes for different ones, needs to come as far."""
    status: Status
    given_up: Seconds = Seconds()
    """Spent on a level that was given up."""

    @property
    def depth(self) -> int:
        return self.levels[-1].depth

    @property
    def action_values(self) -> FloatArray:
        """(A,)"""
        return self.levels[-1].action_values

    @property
    def action(self) -> int:
        """The best first action; the first of equals."""
        return int(self.action_values.argmax())

    @property
    def value(self) -> float:
        return self.levels[-1].value

    @property
    def saved(self) -> int:
        """Steps that merging has saved."""
        return self.tree_nodes - self.nodes

    @property
    def distances(self) -> FloatArray:
        """(levels,) what the rule went by at each level; NaN if it measures none."""
        return np.array([level.distance for level in self.levels])

    @property
    def seconds(self) -> Seconds:
        """All of it: that of the levels, and what was given up."""
        return sum((level.seconds for level in self.levels), self.given_up)

    def leaf(self, action: int | None = None, depth: int | None = None) -> Leaf:
        """The best leaf below a first action when the tree is cut at a depth.

        Args:
            action: the first action; the best one if None.
            depth: 1 … self.depth; the deepest if None. Where that level was not looked at, or a beam has left the
                action no node there, the deepest level above it that has one is taken.
        """
        action = self.action if action is None else action
        depth = self.depth if depth is None else depth
        known = [level for level in self.levels if level.depth <= depth and level.action_values[action] > -np.inf]
        if not known or not 1 <= depth <= self.depth:
            looked = ", ".join(str(level.depth) for level in self.levels)
            raise ArgumentError(
                "there is no such level",
                expected=f"a depth from 1 to {self.depth}, of which were looked at: {looked}",
                got=depth,
                remedy="search with every_level=True to look at all of them",
            )
        level = known[-1]
        return Leaf(
            float(level.returns[action]),
            level.leaf_observations[action],
            level.depth,
            bool(level.leaf_ended[action]),
            action,
        )
