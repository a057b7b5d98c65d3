"""Modified policy iteration: a fixed number of sweeps T_π stands in for the evaluation of a policy.

Value iteration, v <- T v, is the case of none. Both are stopped by the certificate's two-sided bounds, not by a guess
about γ^n.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from adalook._validation import integer, parse_number
from adalook.mdp.model import MDP
from adalook.planning.evaluation.base import EvaluatorFactory
from adalook.planning.evaluation.sweeps import FixedSweeps
from adalook.planning.rules.base import Method
from adalook.planning.rules.spec import MethodGroup, MethodSpec

MAX_SETTING = 10_000
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
        object.__setattr__(self, "sweeps", integer(1, MAX_SETTING).validate("MPI: sweeps", self.sweeps))

    @property
    def name(self) -> str:
        return f"MPI({self.sweeps})"

    @property
    def evaluation(self) -> EvaluatorFactory:
        return partial(FixedSweeps, count=self.sweeps)


@dataclass(frozen=True)
class ValueIteration(Method):
    """Value iteration, VI.

    >>> import adalook as al
    >>> al.solve(al.zoo.forest(), al.ValueIteration(), tolerance=1e-6).converged
    True
    """

    @property
    def name(self) -> str:
        return "VI"

    @property
    def evaluation(self) -> EvaluatorFactory:
        return FixedSweeps


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
