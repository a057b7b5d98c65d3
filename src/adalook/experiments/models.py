"""Recipes of the models that experiments run on, which workers get in place of the models themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adalook._arrays import IntArray
from adalook.mdp import zoo
from adalook.mdp.model import MDP

DOWN = 1
"""The chain's action d, into the sink."""


class ModelRecipe(Protocol):
    """A recipe: how to make a model, and the policy that its runs start from."""

    @property
    def seed(self) -> int: ...

    @property
    def key(self) -> str:
        """A text that tells this model from the others of an experiment."""

    def build(self) -> MDP: ...

    def initial_policy(self, mdp: MDP) -> IntArray:
        """Return the actions that every method starts from, (S,)."""

    def describe(self) -> dict[str, Any]: ...

    def updates(self, depth: int | None) -> dict[str, int | None]:
        """Return how often lookahead of this depth changes the policy, where that is known beforehand."""


@dataclass(frozen=True)
class ChainModel:
    """The chain of the paper's section "Motivating Example": n + 1 states and a sink, every state starting at d."""

    n: int
    discount: float

    @property
    def seed(self) -> int:
        """Always 0: nothing about it is random."""
        return 0

    @property
    def key(self) -> str:
        return f"n={self.n}"

    def build(self) -> MDP:
        return zoo.chain(n=self.n, discount=self.discount)

    def initial_policy(self, mdp: MDP) -> IntArray:
        return np.full(mdp.num_states, DOWN)

    def describe(self) -> dict[str, Any]:
        return {"kind": "chain", "n": self.n, "discount": self.discount}

    def updates(self, depth: int | None) -> dict[str, int | None]:
        """Return ⌈(n + 1) / depth⌉, since all n + 1 states learn to go up, and the paper's ⌈n / depth⌉ without s_n."""
        if depth is None:
            return {"iterations": None, "paper_iterations": None}
        return {"iterations": -(-(self.n + 1) // depth), "paper_iterations": -(-self.n // depth)}


@dataclass(frozen=True)
class MazeModel:
    """The maze of the paper's section "Maze Experiments"; the seed draws goals, trap and the initial policy."""

    size: int
    discount: float
    seed: int

    @property
    def key(self) -> str:
        return f"size={self.size},discount={self.discount:g},seed={self.seed}"

    def build(self) -> MDP:
        return zoo.maze(size=self.size, seed=self.seed, discount=self.discount)

    def initial_policy(self, mdp: MDP) -> IntArray:
        return np.random.default_rng(self.seed).integers(mdp.num_actions, size=mdp.num_states)

    def describe(self) -> dict[str, Any]:
        return {"kind": "maze", "size": self.size, "discount": self.discount}

    def updates(self, depth: int | None) -> dict[str, int | None]:
        """Return None for both counts: on a maze they are not known beforehand."""
        return {"iterations": None, "paper_iterations": None}
