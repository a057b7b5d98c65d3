"""Modified policy iteration: a fixed number of sweeps T_π stands in for the evaluation of a policy.

Value iteration: v <- T v, stopped by the certificate's two-sided bounds, not by a guess about γ^n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adalook._validation import parse_number
from adalook.errors import ArgumentError
from adalook.mdp.model import MDP
from adalook.planning.rules.base import EvaluationPlan, FixedSweeps, Method, NoEvaluation
from adalook.planning.rules.spec import MethodGroup, MethodSpec

MOST_SWEEPS = 10_000
"""Sweeps are not interrupted; whoever wants more wants PolicyIteration."""


@dataclass(frozen=True)
class ModifiedPolicyIteration(Method):
    """Modified policy iteration, MPI.

    >>> import adalook as al
    >>> al.solve(al.zoo.forest(), al.ModifiedPolicyIteration(sweeps=20), tolerance=1e-6).converged
    True
    """

    sweeps: int = 20

    def __post_init__(self) -> None:
        whole = isinstance(self.sweeps, int | np.integer) and not isinstance(self.sweeps, bool)
        if not whole or not 1 <= self.sweeps <= MOST_SWEEPS:
            raise ArgumentError(
                "MPI: sweeps is wrong", expected=f"a whole number 1..{MOST_SWEEPS}", got=repr(self.sweeps)[:80]
            )

    @property
    def name(self) -> str:
        return f"MPI({self.sweeps})"

    @property
    def plan(self) -> EvaluationPlan:
        return FixedSweeps(self.sweeps)


@dataclass(frozen=True)
class ValueIteration(Method):
    """Value iteration, VI.

    >>> import adalook as al
    >>> al.solve(al.zoo.forest(), al.ValueIteration(), tolerance=1e-6).converged
    True
    """

    evaluation: ClassVar[NoEvaluation] = NoEvaluation()

    @property
    def name(self) -> str:
        return "VI"


def _parse_mpi(setting: str, mdp: MDP, prior: Any) -> ModifiedPolicyIteration:
    return ModifiedPolicyIteration(parse_number(setting, int, f"mpi:{setting}: the number of sweeps"))


def _parse_vi(setting: str, mdp: MDP, prior: Any) -> ValueIteration:
    return ValueIteration()


MPI_SPEC = MethodSpec(
    name="mpi",
    method_class=ModifiedPolicyIteration,
    group=MethodGroup("mpi", "MPI", "modified policy iteration", "#8a8a8a", "P"),
    examples=("mpi:20",),
    parse=_parse_mpi,
)
VI_SPEC = MethodSpec(
    name="vi",
    method_class=ValueIteration,
    group=MethodGroup("vi", "VI", "value iteration", "#8a8a8a", "X"),
    examples=("vi",),
    parse=_parse_vi,
)
