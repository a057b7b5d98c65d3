"""The result of `solve`: values, policy, certificate, status, cost, and what happened on the way."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning.certificate import Certificate
from adalook.planning.queries import Queries


class Status(enum.Enum):
    """The reason why a solve stopped."""

    CONVERGED = "converged"
    """The tolerance is certified, or no action can be improved beyond the error of the values."""
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"


@dataclass
class Answer:
    """The solution's values, once they are known: what distances are measured to."""

    values: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Iteration:
    """One pass through the loop: evaluate, look ahead, improve.

    Arrays are None when the model is too large to keep them (`solve(…, keep_states=True)` forces it).
    """

    evaluation: str
    """How the policy was evaluated: "functional graph", "sweeps", "sparse LU", "BiCGSTAB", "in-place MPI" or "none"."""
    sweeps: float
    """Sweeps over all states, 1 for a direct solve; broken where only some of the states were swept."""
    improvement: str
    """How it was improved: "one step", "3 steps", "wavefront", "threshold" or "quantiles"."""
    changed: int
    """States whose action changed."""
    policy_loss: float
    """Bound on max(V* − V^π) for the policy this pass started from or, for value iteration, its greedy one."""
    max_depth: int
    mean_depth: float
    queries: Queries
    seconds: float
    """Since the solve began."""
    values: FloatArray | None = None
    """(S,) V^π as evaluated."""
    policy: IntArray | None = None
    """(S,) the improved policy."""
    depth: IntArray | None = None
    """(S,) lookahead depth used in each state."""
    fallback: bool = False
    """True once a policy came back and the rule gave way to one-step improvement, which cannot cycle."""
    answer: Answer = field(default_factory=lambda: Answer(), repr=False, compare=False)

    @property
    def distance(self) -> float | None:
        """max|values of the solution − values here|; None if the values were not kept, or are not known yet."""
        if self.values is None or self.answer.values is None:
            return None
        return float(np.abs(self.answer.values - self.values).max())


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer to `solve`.

    >>> import adalook as al
    >>> sol = al.solve(al.zoo.chain(n=9))
    >>> sol.status, sol.policy[:3]
    (<Status.CONVERGED: 'converged'>, array([0, 0, 0], dtype=int32))
    """

    method: str
    values: FloatArray
    """(S,) estimate of V*, between lower and upper."""
    policy: IntArray
    """(S,) actions."""
    certificate: Certificate
    status: Status
    message: str
    """The status in a sentence."""
    tolerance: float
    """What was asked of policy_loss."""
    iterations: int
    """Updates that changed the policy."""
    trace: tuple[Iteration, ...]
    seconds: float
    certificate_seconds: float
    """How much of `seconds` went into the certificate."""

    @cached_property
    def queries(self) -> Queries:
        """The queries of all passes together."""
        return Queries.sum(tuple(iteration.queries for iteration in self.trace))

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways in which policies were evaluated, then those in which they were improved, in order of appearance."""
        evaluations = [iteration.evaluation for iteration in self.trace]
        improvements = [iteration.improvement for iteration in self.trace if iteration.changed]
        return tuple(dict.fromkeys(evaluations + improvements))

    @property
    def lower(self) -> FloatArray:
        """(S,) certified: lower <= V*."""
        return self.certificate.lower

    @property
    def upper(self) -> FloatArray:
        """(S,) certified: V* <= upper."""
        return self.certificate.upper

    @property
    def policy_loss(self) -> float:
        """Certified bound on max(V* − V^policy)."""
        return self.certificate.policy_loss

    @property
    def converged(self) -> bool:
        """Whether the solve ended by itself: see Status.CONVERGED."""
        return self.status is Status.CONVERGED

    @property
    def certified(self) -> bool:
        """Whether policy_loss is within the tolerance.

        False on a converged solution means that float64 cannot certify as much: no action can be improved beyond the
        error of the values.
        """
        return self.policy_loss <= self.tolerance

    def __repr__(self) -> str:
        return (
            f"Solution({self.method}: {', '.join(self.ways)}; "
            f"{self.status.value} after {self.iterations} iterations, "
            f"policy_loss <= {self.policy_loss:.2g})"
        )
