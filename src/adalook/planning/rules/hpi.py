"""h-PI: every state looks h steps ahead (the paper, section "PI and h-PI").

π_{n+1}(s) = argmax_a Q_h^{π_n}(s, a),   T^h is a γ^h-contraction
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adalook._validation import parse_number
from adalook.mdp.model import MDP
from adalook.planning.lookahead.levels import LookaheadLevels
from adalook.planning.rules.base import Method, Step, lookahead_depth
from adalook.planning.rules.spec import MethodGroup, MethodSpec, ObservedRun, TheoryBound, tree_nodes


@dataclass(frozen=True)
class HPI(Method):
    """h-step policy iteration, h-PI.

    >>> import adalook as al
    >>> al.solve(al.zoo.chain(n=59), al.HPI(3)).converged
    True
    """

    depth: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", lookahead_depth.validate("HPI: depth", self.depth))

    @property
    def name(self) -> str:
        return f"{self.depth}-PI"

    def improve(self, look: LookaheadLevels) -> Step:
        look.deepen(self.depth - 1)
        return Step(look.values, look.actions)


def _parse(setting: str, mdp: MDP, prior: Any) -> HPI:
    return HPI(parse_number(setting, int, f"hpi:{setting}: the depth"))


def _label(setting: str) -> str:
    return "PI" if setting == "1" else f"{setting}-PI"


def _bound(method: HPI, mdp: MDP, run: ObservedRun) -> TheoryBound:
    """Return the bound of h-PI: T^h contracts by γ^h, at the cost of a full tree in every state."""
    contraction = mdp.discount**method.depth
    return TheoryBound(contraction, contraction, mdp.num_states * tree_nodes(mdp.num_actions, method.depth))


SPEC = MethodSpec(
    name="hpi",
    method_class=HPI,
    group=MethodGroup("hpi", "h-PI", "fixed depth", "#000000", "o", in_paper=True),
    examples=("hpi:3",),
    parse=_parse,
    label=_label,
    bound=_bound,
    compared=("hpi:2", "hpi:4"),
)
