"""What a method is: how it evaluates a policy, and how it improves one. The loop in `solve` does the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import ArgumentError
from adalook.planning.evaluation.chooser import Evaluation, Evaluator
from adalook.planning.lookahead.levels import LEVELS_AT_ONCE, Lookahead
from adalook.planning.queries import Search


class Step(NamedTuple):
    """An improvement: values reached by lookahead (S,), the new policy (S,), depths used, and what it searched."""

    values: FloatArray
    actions: IntArray
    depth: IntArray | int = 1
    searches: tuple[Search, ...] = (Search(1),)
    wave_pairs: int = 0


class Precision(NamedTuple):
    """How exactly the loop wants a policy evaluated: spans of the change that one more sweep would make."""

    fine: float
    """Enough to certify the tolerance."""
    coarse: float
    """What the policies to come will change anyway: there is no point in knowing much more than that."""
    sweeps: int
    """How many sweeps a rough evaluation may take."""


class EvaluationPlan(Protocol):
    """How a method evaluates its policies."""

    def evaluate(
        self, evaluator: Evaluator, policy: IntArray, values: FloatArray, precision: Precision
    ) -> Evaluation: ...


class NoEvaluation:
    """Value iteration: go on with the values of the last backup."""

    def evaluate(self, evaluator: Evaluator, policy: IntArray, values: FloatArray, precision: Precision) -> Evaluation:
        return Evaluation(values, "none", 0, exact=False)


@dataclass(frozen=True)
class FixedSweeps:
    """A fixed number of sweeps T_π."""

    count: int

    def evaluate(self, evaluator: Evaluator, policy: IntArray, values: FloatArray, precision: Precision) -> Evaluation:
        return evaluator.sweeps(policy, values, self.count)


class ExactEvaluation:
    """As exactly as the tolerance needs: policy iteration proper."""

    def evaluate(self, evaluator: Evaluator, policy: IntArray, values: FloatArray, precision: Precision) -> Evaluation:
        return evaluator.exactly(policy, values, precision.fine)


@dataclass(frozen=True)
class RoughEvaluation:
    """Where a direct solve is cheap, exact; otherwise only a share finer than the last backup's change."""

    share: float = 0.1

    def evaluate(self, evaluator: Evaluator, policy: IntArray, values: FloatArray, precision: Precision) -> Evaluation:
        if precision.fine == 0.0:
            return evaluator.exactly(policy, values, 0.0)
        return evaluator.roughly(policy, values, max(precision.fine, self.share * precision.coarse), precision.sweeps)


@dataclass(frozen=True)
class Method:
    """Base of all methods: one-step improvement. Rules override `improve` to deepen some states."""

    evaluation: ClassVar[Any] = ExactEvaluation()
    uniform: ClassVar[bool] = True
    """False for rules whose depths differ between neighbours: these can come back to a policy (see `solve`)."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def plan(self) -> EvaluationPlan:
        plan: EvaluationPlan = self.evaluation
        return plan

    def check(self, num_states: int) -> None:
        """Refuse a method that does not fit a model of this many states."""

    def improve(self, look: Lookahead) -> Step:
        """Turn the first level of lookahead, which `look` holds, into a new policy."""
        return Step(look.values, look.actions)


@dataclass(frozen=True, eq=False)
class PriorMethod(Method):
    """Base of the rules that need Ṽ*, an approximation of V* that tells which states need depth."""

    prior: Any = field(repr=False)
    uniform: ClassVar[bool] = False

    def check(self, num_states: int) -> None:
        values = self.prior_values
        if values.shape != (num_states,):
            raise ArgumentError(f"{self.name}: prior has the wrong shape", expected=(num_states,), got=values.shape)
        finite = np.isfinite(values)
        if not finite.all():
            state = int(np.argmin(finite))
            raise ArgumentError(f"{self.name}: prior of state {state} is not finite", got=values[state])

    @property
    def prior_values(self) -> FloatArray:
        """Ṽ* (S,), from an array or from one of `al.priors`."""
        try:
            raw = np.asarray(self.prior)
        except ValueError:
            raw = np.empty(0, object)
        if raw.dtype.kind not in "iuf":
            raise ArgumentError(
                f"{self.name}: prior is no array of values",
                expected="(S,) floats or one of al.priors",
                got=type(self.prior).__name__,
                remedy="for a start try prior=al.priors.few_iterations(mdp, 3)",
            )
        return raw.astype(np.float64)


def whole_depth(value: Any, owner: str) -> int:
    """Check a lookahead depth."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 1 <= value <= LEVELS_AT_ONCE:
        raise ArgumentError(f"{owner}: depth is wrong", expected=f"a whole number 1..{LEVELS_AT_ONCE}", got=repr(value))
    return int(value)
