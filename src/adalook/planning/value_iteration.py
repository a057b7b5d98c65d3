"""Value iteration: v <- T v, stopped by the certificate's two-sided bounds, not by a guess about γ^n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adalook.planning.method import Method, NoEvaluation


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
