"""Howard's policy iteration: evaluate exactly, look one step ahead in every state.

π_{n+1}(s) = argmax_a r(s, a) + γ Σ_s' P(s' | s, a) V^{π_n}(s')
"""

from __future__ import annotations

from dataclasses import dataclass

from adalook.planning.rules.base import Method


@dataclass(frozen=True)
class PolicyIteration(Method):
    """Policy iteration, PI.

    >>> import adalook as al
    >>> al.solve(al.zoo.chain(n=59), al.PolicyIteration()).converged
    True
    """

    @property
    def name(self) -> str:
        return "PI"
