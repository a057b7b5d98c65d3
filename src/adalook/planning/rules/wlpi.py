"""WLPI, wavefront lookahead: adaptive depth without any prior.

T^k V differs from T^{k−1} V only at predecessors of states that changed at level k − 1. So after the full one-step
backup, level k backs up only pred(changed_{k−1}), and the result is T^k V at *every* state: h-PI's iterates at a
fraction of h-PI's work.

How deep? With `depth=None` the wavefront goes on while its work stays within the price of a new iteration, one full
backup plus one evaluation, as in the ski-rental problem.
Two things keep it sharp. A front of more than half of the states is no front, and evaluating is better. And shared rows
keep their expectation while the wavefront moves: otherwise one changed state would change a random relocation's value,
and that every state that leads there. What is computed then is T̂^k V for the model whose shared rows pay V^π's
expectation and end; it rises from V^π and stays below T^k V, which is all that policy improvement needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adalook._validation import parse_number
from adalook.mdp.model import MDP
from adalook.planning.lookahead.levels import LookaheadLevels
from adalook.planning.rules.base import Method, Step, lookahead_depth
from adalook.planning.rules.spec import MethodGroup, MethodSpec, ObservedRun, TheoryBound

MAX_FRONT = 0.5
"""Share of the states beyond which a front is no front."""


@dataclass(frozen=True)
class WLPI(Method):
    """Wavefront lookahead policy iteration; WLPI(depth=h) makes exactly the steps of h-PI.

    Policies are evaluated exactly, whatever the tolerance. `Auto` uses the same rule where it does that, too.

    >>> import adalook as al
    >>> al.solve(al.zoo.maze(), al.WLPI()).converged
    True
    """

    depth: int | None = None

    def __post_init__(self) -> None:
        if self.depth is not None:
            object.__setattr__(self, "depth", lookahead_depth.validate("WLPI: depth", self.depth))

    @property
    def name(self) -> str:
        return "WLPI" if self.depth is None else f"WLPI({self.depth})"

    def improve(self, look: LookaheadLevels) -> Step:
        if self.depth is not None:
            look.wave(self.depth - 1)
        elif look.raised_share <= MAX_FRONT:
            look.wave(freeze_shared=True, budget=look.price, max_front=MAX_FRONT)
        return Step(look.values, look.actions)


def _parse(setting: str, mdp: MDP, prior: Any) -> WLPI:
    return WLPI(parse_number(setting, int, f"wlpi:{setting}: the depth") if setting else None)


def _bound(method: WLPI, mdp: MDP, run: ObservedRun) -> TheoryBound:
    """Return PI's contraction, at the price of a wave that stays within that of a new iteration, S·A + S."""
    return TheoryBound(mdp.discount, mdp.discount, 2 * mdp.num_pairs + mdp.num_states)


SPEC = MethodSpec(
    name="wlpi",
    method_class=WLPI,
    group=MethodGroup("wlpi", "WLPI", "WLPI, no prior", "#009e73", "*"),
    examples=("wlpi", "wlpi:4"),
    parse=_parse,
    bound=_bound,
    compared=("wlpi",),
)
