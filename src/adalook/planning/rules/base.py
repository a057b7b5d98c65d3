"""What a method is: how it evaluates a policy, and how it improves one. The loop in `solve` does the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import integer
from adalook.mdp.model import MDP
from adalook.planning.checks import checked_values
from adalook.planning.evaluation.base import EvaluatorFactory
from adalook.planning.evaluation.chooser import ExactEvaluation
from adalook.planning.lookahead.levels import MAX_LEVELS, Lookahead
from adalook.planning.queries import LookaheadRoots

lookahead_depth = integer(1, MAX_LEVELS)
"""Validator of depths."""


class Step(NamedTuple):
    """An improvement: values reached by lookahead, the new policy, and how it was found."""

    values: FloatArray  # (S,)
    actions: IntArray  # (S,)
    depth: IntArray | int = 1
    """(S,) lookahead depth of each state, or one for all."""
    roots: tuple[LookaheadRoots, ...] = (LookaheadRoots(1),)
    """What was searched, for counting queries."""
    backed_up: int = 0
    """(state, action) pairs of one-step backups beyond these searches."""
    improvement: str = "one step"
    """The kind of improvement, by the name that the trace shows."""


@dataclass(frozen=True)
class Method:
    """Base of all methods: exact evaluation and one-step improvement.

    Rules override `improve` to deepen some states, and `evaluation` to evaluate policies in another way.
    """

    uniform: ClassVar[bool] = True
    """False for rules whose depths differ between neighbours: these can come back to a policy (see `solve`)."""

    @property
    def name(self) -> str:
        """What results call this method."""
        return type(self).__name__

    @property
    def evaluation(self) -> EvaluatorFactory:
        """How policies are evaluated: called with the model and the tolerance, it makes the evaluator of a solve."""
        return ExactEvaluation

    def improve(self, look: Lookahead) -> Step:
        """Turn the first level of lookahead, which `look` holds, into a new policy."""
        return Step(look.values, look.actions)


@dataclass(frozen=True, eq=False)
class PriorMethod(Method):
    """Base of the rules that need Ṽ*, an approximation of V* that tells which states need depth."""

    prior: Any = field(repr=False)
    uniform: ClassVar[bool] = False

    @property
    def prior_values(self) -> FloatArray:
        """Ṽ* (S,), from an array or from one of `al.priors`."""
        return np.asarray(self.prior, np.float64)

    def check_prior(self, mdp: MDP) -> None:
        """Raise `ArgumentError` unless the prior holds a finite value for each state of the model."""
        checked_values(mdp, self.prior, f"{self.name}: prior", "try prior=al.priors.few_iterations(mdp, 3) for a start")
