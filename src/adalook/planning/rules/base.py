"""The base of all planning methods: how one evaluates a policy, and how it improves one; `solve` does the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import integer
from adalook.mdp.model import MDP
from adalook.planning.checks import checked_state_values
from adalook.planning.evaluation.base import EvaluatorFactory
from adalook.planning.evaluation.chooser import ExactEvaluation
from adalook.planning.lookahead.levels import MAX_LEVELS, LookaheadLevels
from adalook.planning.queries import LookaheadRoots

lookahead_depth = integer(1, MAX_LEVELS)
"""Validator of depths."""


class Step(NamedTuple):
    """An improvement: values reached by lookahead, the new policy, and how it was found.

    What is left out is what the `LookaheadLevels` did, as a rule that makes no choice of its own returns it.
    """

    values: FloatArray  # (S,)
    actions: IntArray  # (S,)
    depth: IntArray | int | None = None
    """(S,) lookahead depth of each state, or one for all."""
    roots: tuple[LookaheadRoots, ...] | None = None
    """What was searched, for counting queries; by default every state as deep as `depth` says."""
    improvement: str = ""
    """The kind of improvement, by the name that the trace shows."""


@dataclass(frozen=True)
class Method:
    """Base of all methods: exact evaluation and one-step improvement.

    Rules override `improve` to deepen some states, and `evaluation` to evaluate policies by other solvers.
    """

    needs_prior: ClassVar[bool] = False
    """Whether the method goes by an approximation of the optimal values."""
    uniform: ClassVar[bool] = True
    """False for rules whose depths differ between neighbours: these can come back to a policy (see `solve`)."""

    @property
    def name(self) -> str:
        """The name of the method in results."""
        return type(self).__name__

    @property
    def evaluation(self) -> EvaluatorFactory:
        """The factory that, called with the model and the tolerance, makes the evaluator of a solve."""
        return ExactEvaluation

    def check(self, mdp: MDP) -> None:
        """Raise `ArgumentError` if the method does not fit the model; called once, before a solve."""

    def improve(self, look: LookaheadLevels) -> Step:
        """Return a new policy, given the first level of lookahead; arrays of `look` are copied, not changed.

        Called in every pass. `look.exact` says whether the policy's values are known or only approximated.
        """
        return Step(look.values, look.actions)


@dataclass(frozen=True, eq=False)
class PriorMethod(Method):
    """Base of the rules that need Ṽ*, an approximation of V* that tells which states need depth."""

    prior: Any = field(repr=False)
    needs_prior: ClassVar[bool] = True
    uniform: ClassVar[bool] = False

    @property
    def prior_values(self) -> FloatArray:
        """Ṽ* (S,), from an array or from one of `al.priors`."""
        return np.asarray(self.prior, np.float64)

    def check(self, mdp: MDP) -> None:
        """Raise `ArgumentError` unless the prior holds a finite value for each state of the model."""
        checked_state_values(
            mdp, self.prior, f"{self.name}: prior", "try prior=al.priors.few_iterations(mdp, 3) for a start"
        )
