"""Modified policy iteration: a fixed number of sweeps T_π stands in for the evaluation of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook.errors import ArgumentError
from adalook.planning.method import EvaluationPlan, FixedSweeps, Method


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
        if not whole or self.sweeps < 1:
            raise ArgumentError("MPI: sweeps is wrong", expected="a whole number >= 1", got=repr(self.sweeps))

    @property
    def name(self) -> str:
        return f"MPI({self.sweeps})"

    @property
    def plan(self) -> EvaluationPlan:
        return FixedSweeps(self.sweeps)
