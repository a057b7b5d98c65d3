"""Auto, the default method: policies evaluated only as well as it pays, then a wavefront or one step.

Where a policy can be evaluated exactly by following pointers (mazes, and other models whose moves are all but
deterministic) it does what WLPI does. Elsewhere the first policies are evaluated in part, by in-place modified policy
iteration on local models and by sweeps on others, and exactly once that leads nowhere: see `evaluation.chooser`.
Models that lie in a file are gone through block by block: see `evaluation.blocks`.
A wavefront follows what the exact values of a policy gain; values known in part are improved by one step.
The trace says for every pass how the policy was evaluated and improved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from adalook.errors import ArgumentError, shown
from adalook.mdp.model import MDP
from adalook.planning.evaluation import blocks, functional
from adalook.planning.evaluation.base import EvaluatorFactory, PolicyEvaluator
from adalook.planning.evaluation.chooser import SOLVERS, AdaptiveEvaluation
from adalook.planning.lookahead.levels import LookaheadLevels
from adalook.planning.rules.base import Method, Step
from adalook.planning.rules.spec import MethodGroup, MethodSpec
from adalook.planning.rules.wlpi import WLPI

KNOWN_SOLVERS = (*SOLVERS, blocks.NAME)
"""What the chooser chooses from, and what models in files are solved by."""


@dataclass(frozen=True)
class Auto(Method):
    """The default method, with nothing to tune: a wavefront on policies evaluated exactly, where it pays, or one step.

    >>> import adalook as al
    >>> al.solve(al.zoo.maze(), al.Auto())
    Solution(Auto: functional graph, wavefront; converged after 2 iterations, policy_loss <= 3.6e-12)
    """

    solver: str | None = None
    """One of `KNOWN_SOLVERS` to take always, for comparisons; by default the cheapest is."""
    rule: ClassVar[Method] = WLPI()

    def __post_init__(self) -> None:
        if self.solver is not None and not (isinstance(self.solver, str) and self.solver in KNOWN_SOLVERS):
            raise ArgumentError(f"Auto knows no solver {shown(self.solver, 40)}", expected=", ".join(KNOWN_SOLVERS))

    @property
    def name(self) -> str:
        return "Auto" if self.solver is None else f"Auto({self.solver})"

    @property
    def evaluation(self) -> EvaluatorFactory:
        return partial(_evaluator, solver=self.solver)

    def check(self, mdp: MDP) -> None:
        """Accept every model: there is no setting that could misfit."""

    def improve(self, look: LookaheadLevels) -> Step:
        wave = look.exact and look.switched and functional.waves_pay(look.mdp)
        return self.rule.improve(look) if wave else Step(look.values, look.actions)


def _evaluator(mdp: MDP, tolerance: float, /, *, solver: str | None) -> PolicyEvaluator:
    """Return what evaluates policies: block by block where the model is not in memory, or as the chooser says."""
    if solver == blocks.NAME or (solver is None and mdp.mapped is not None):
        return blocks.BlockEvaluation(mdp, tolerance)
    return AdaptiveEvaluation(mdp, tolerance, solver=solver)


def _parse(setting: str, mdp: MDP, prior: Any) -> Auto:
    return Auto(setting or None)


SPEC = MethodSpec(
    name="auto",
    method_class=Auto,
    group=MethodGroup("auto", "Auto", "chosen for the model", "#56b4e9", "^"),
    examples=("auto", "auto:sweeps"),
    parse=_parse,
)
