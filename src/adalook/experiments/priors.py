"""Sources of the prior Ṽ* of TLPI and QLPI, and whether the paper's count of queries includes their price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.experiments.models import MazeModel
from adalook.mdp.layout import Layout
from adalook.mdp.model import MDP
from adalook.planning import priors
from adalook.planning.priors import Prior
from adalook.planning.rules.spec import MethodGroup

AGGREGATED = MethodGroup(
    "aggregated", "QLPI, aggregated prior", "QLPI, prior from aggregated cells", "#e69f00", "^", in_paper=True
)
FEW = MethodGroup("few", "prior of a few iterations", "prior from a few iterations", "#56b4e9", "v")
SIMILAR = MethodGroup("similar", "prior of a similar task", "prior from a similar task", "#cc79a7", "p")


class PriorSource(Protocol):
    """A source that makes the prior of one run."""

    @property
    def group(self) -> MethodGroup | None:
        """The group of the records that use it; None for the group of the method itself."""

    @property
    def suffix(self) -> str:
        """The text that a legend adds to the method's name; empty for nothing."""

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def kind(self) -> str: ...

    @property
    def counted(self) -> bool:
        """Whether its queries count in the total."""

    def make(self, mdp: MDP, start: IntArray) -> Prior: ...


@dataclass(frozen=True)
class ExactPrior:
    """The prior V* itself, given for free: what a perfect prior is worth."""

    group = None
    suffix = ""
    kind = "exact"
    counted = False

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def make(self, mdp: MDP, start: IntArray) -> Prior:
        return priors.exact(mdp)


@dataclass(frozen=True)
class SquaresPrior:
    """The prior of the maze merged in k×k squares: its optimal values, whose price counts."""

    k: int
    group = AGGREGATED
    kind = "aggregation"
    counted = True

    @property
    def suffix(self) -> str:
        return f"{self.k}×{self.k} squares"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"k": self.k}

    def make(self, mdp: MDP, start: IntArray) -> Prior:
        return priors.aggregation(mdp, _layout(mdp).squares(self.k))


@dataclass(frozen=True)
class FewIterationsPrior:
    """The prior after a few passes of PI from the same initial policy, whose price counts.

    The run itself starts again from the initial policy, so that every method starts from the same one.
    """

    few: int
    group = FEW
    kind = "few_iterations"
    counted = True

    @property
    def suffix(self) -> str:
        return f"prior of {self.few} PI passes"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"few": self.few}

    def make(self, mdp: MDP, start: IntArray) -> Prior:
        return priors.few_iterations(mdp, self.few, initial_policy=start)


@dataclass(frozen=True)
class SimilarTaskPrior:
    """The prior of a similar task: V* of a maze with the same walls and other goals and trap, for free."""

    other: MazeModel
    group = SIMILAR
    suffix = "similar task"
    kind = "similar task"
    counted = False

    @property
    def parameters(self) -> dict[str, Any]:
        return {"other_seed": self.other.seed}

    def make(self, mdp: MDP, start: IntArray) -> Prior:
        other = self.other.build()
        known = priors.exact(other)
        values = values_by_cell(_layout(other), known.values, _layout(mdp))
        return Prior(values, known.queries)


def values_by_cell(source: Layout, values: FloatArray, target: Layout) -> FloatArray:
    """Carry values (S,) of one maze over to the cells of another with the same walls.

    Cells that are goals over there are no states and have no value. They get the mean of their free neighbours'
    values, which is what an ordinary cell at that place would be worth, roughly; or the mean of all values where no
    neighbour has one.
    """
    grid = np.pad(source.grid(values), 1, constant_values=np.nan)
    row, column = target.cells.T + 1
    around = np.stack([grid[row + down, column + right] for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1))])
    num_known = np.isfinite(around).sum(axis=0)
    mean = np.where(num_known > 0, np.nansum(around, axis=0) / np.maximum(num_known, 1), float(np.mean(values)))
    here = grid[row, column]
    return np.where(np.isfinite(here), here, mean)


def _layout(mdp: MDP) -> Layout:
    assert mdp.layout is not None, "mazes have layouts"
    return mdp.layout
