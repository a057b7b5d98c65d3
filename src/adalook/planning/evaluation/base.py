"""The protocol between the loop in `solve` and what evaluates policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from adalook._arrays import FloatArray, IntArray
from adalook.planning.lookahead.levels import Backup, Residual

if TYPE_CHECKING:
    from adalook.mdp.model import MDP


NO_EVALUATION = "none"
"""The trace's name for values that were taken as they are, as in value iteration."""


class Forecast(NamedTuple):
    """The cost that was predicted of a solver when it was chosen, and why it was."""

    seconds: float
    """Of this pass, by operation counts and measured times per operation."""
    reason: str


class PolicyEvaluation(NamedTuple):
    """Values of a policy and how they were found."""

    values: FloatArray  # (S,)
    policy: IntArray
    """(S,) the policy that they are of: the one that was asked about, or one that was improved on the way."""
    solver: str
    """What evaluated it, by the name that the trace shows."""
    swept: int
    """States updated: S per sweep, S for a direct solve, 0 if nothing was evaluated."""
    exact: bool
    """Whether these are the policy's values, so that gains can be told from errors, or an approximation."""
    backups: int = 0
    """Backups of every state, over all actions, that improved the policy on the way."""
    improvement: str = "in place"
    """How these were made: in place, or of all states at once."""
    last_backup: Backup | None = None
    """The backup of these values, if the evaluator had to make one; otherwise the loop does."""
    forecast: Forecast | None = None
    """What a chooser between solvers expected of this one, if there was a choice."""


class PassOutcome(NamedTuple):
    """The outcome of a pass of the loop, which tells how well to evaluate in the next one."""

    residual: Residual
    """Of the backup of the evaluated values."""
    changed: int
    """States whose action changed."""
    policy_loss: float


class PolicyEvaluator(Protocol):
    """Evaluates the policies of one solve, one after the other."""

    def evaluate(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Evaluate a policy, starting from values (S,) of which neither array is changed; `last` is None at first."""

    def finished(self, evaluation: PolicyEvaluation, outcome: PassOutcome) -> str:
        """Return why no further pass can gain anything, or an empty string while one can."""


class EvaluatorFactory(Protocol):
    """Makes the evaluator of a solve from the model and the tolerance on the policy's loss."""

    def __call__(self, mdp: MDP, tolerance: float, /) -> PolicyEvaluator:
        """Return a new evaluator."""
