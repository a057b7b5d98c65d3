"""A planning method in one file: h-PI, written anew. `register(SPEC)` is all that the rest of adalook needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adalook.mdp.model import MDP
from adalook.planning.lookahead.levels import LookaheadLevels
from adalook.planning.rules.base import Method, Step
from adalook.planning.rules.spec import MethodGroup, MethodSpec


@dataclass(frozen=True)
class Toy(Method):
    """Look `depth` steps ahead in every state."""

    depth: int

    def improve(self, look: LookaheadLevels) -> Step:
        look.deepen(self.depth - 1)
        return Step(look.values, look.actions)


def _parse(setting: str, mdp: MDP, prior: Any) -> Toy:
    return Toy(int(setting or "2"))


SPEC = MethodSpec(
    name="toy",
    method_class=Toy,
    group=MethodGroup("toy", "Toy", "toy method", "#f0e442", "h"),
    examples=("toy", "toy:3"),
    parse=_parse,
    compared=("toy:2",),
)
