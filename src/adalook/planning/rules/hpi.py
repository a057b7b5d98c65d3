"""h-PI: every state looks h steps ahead (the paper, section "PI and h-PI").

π_{n+1}(s) = argmax_a Q_h^{π_n}(s, a),   T^h is a γ^h-contraction
"""

from __future__ import annotations

from dataclasses import dataclass

from adalook.planning.lookahead.levels import Lookahead
from adalook.planning.queries import Search
from adalook.planning.rules.base import Method, Step, whole_depth


@dataclass(frozen=True)
class HPI(Method):
    """h-step policy iteration, h-PI.

    >>> import adalook as al
    >>> al.solve(al.zoo.chain(n=59), al.HPI(3)).converged
    True
    """

    depth: int

    def __post_init__(self) -> None:
        whole_depth(self.depth, "HPI")

    @property
    def name(self) -> str:
        return f"{self.depth}-PI"

    def improve(self, look: Lookahead) -> Step:
        look.deepen(self.depth - 1)
        return Step(look.values, look.actions, self.depth, (Search(self.depth),))
