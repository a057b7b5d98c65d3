"""Howard's policy iteration: evaluate exactly, look one step ahead in every state.

π_{n+1}(s) = argmax_a r(s, a) + γ Σ_s' P(s' | s, a) V^{π_n}(s')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adalook.mdp.model import MDP
from adalook.planning.rules.base import Method
from adalook.planning.rules.spec import MethodGroup, MethodSpec


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


def _parse(setting: str, mdp: MDP, prior: Any) -> PolicyIteration:
    return PolicyIteration()


SPEC = MethodSpec(
    name="pi",
    method_class=PolicyIteration,
    group=MethodGroup("pi", "PI", "policy iteration", "#000000", "o", in_paper=True),
    examples=("pi",),
    parse=_parse,
    compared=("pi",),
)
