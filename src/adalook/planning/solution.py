"""The answer of `solve`: values, policy, certificate, status and cost, with a trace of its passes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import boolean
from adalook.mdp.model import MDP
from adalook.planning.certificate import Certificate, CertifiedBounds
from adalook.planning.evaluation.base import NO_EVALUATION, Forecast
from adalook.planning.lookahead.levels import action_values
from adalook.planning.queries import Queries
from adalook.planning.tables import policy_html, policy_text, solution_frame

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


class Status(enum.Enum):
    """The reason why a solve stopped."""

    CONVERGED = "converged"
    """The tolerance is certified: `policy_loss <= tolerance`."""
    ROUNDING_LIMIT = "rounding limit"
    """No further improvement can be told from rounding, and the tolerance is not certified."""
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"


@dataclass
class Answer:
    """Holds the solution's values, from which passes measure their distance, once they are known."""

    values: FloatArray | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Iteration:
    """One pass through the loop: evaluate, look ahead, improve.

    Arrays are None when the model is too large to keep them (`solve(…, keep_states=True)` forces it).
    """

    evaluation: str
    """How the policy was evaluated.

    Exactly: "functional graph", "sweeps", "sparse LU", "sweeps, then sparse LU" or "sweeps, then BiCGSTAB". In part:
    "partial sweeps", "20 sweeps" (MPI) or "in-place MPI"; Auto's improve it as well. Value iteration: "none".
    """
    exact: bool
    """Whether it was evaluated exactly, whatever the tolerance of the solve, and not in part."""
    sweeps: float
    """Sweeps over all states; a direct solve and a matrix product of BiCGSTAB count as one each.

    A fraction where only some of the states were swept.
    """
    backups: int
    """Backups of all states by which the evaluation itself improved the policy, in place or of all states at once."""
    improvement: str
    """How it was improved: "one step", "3 steps", "wavefront", "threshold", "quantiles", "in place" or "at once"."""
    changed: int
    """States whose action changed."""
    policy_loss: float
    """Bound on max(V* − V^π) for the policy this pass started from or, for value iteration, its greedy one."""
    max_depth: int
    """Of the lookahead after the evaluation; backups in place are not part of it."""
    mean_depth: float
    queries: Queries
    seconds: float
    """Since the solve began."""
    evaluation_seconds: float = 0.0
    """What evaluating took, backups in place included."""
    forecast: Forecast | None = None
    """What Auto predicted that this would take, and why it chose it; None where there was no choice."""
    values: FloatArray | None = None
    """(S,) what the evaluation of this pass gave: V^π where `exact`, otherwise an approximation of V*."""
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

    def __repr__(self) -> str:
        solvers = [self.evaluation] if self.evaluation != NO_EVALUATION else []
        solvers += [_backups((self,)) or self.improvement]
        return (
            f"Iteration({', '.join(solvers)}; {self.changed:,} changed, depth up to {self.max_depth}, "
            f"exact={self.exact}{', fallback' if self.fallback else ''}, policy_loss <= {self.policy_loss:.2g})"
        )


@dataclass(frozen=True, eq=False)
class Solution(CertifiedBounds):
    """The answer to `solve`.

    >>> import adalook as al
    >>> sol = al.solve(al.zoo.chain(n=9))
    >>> sol.status, sol.policy[:3]
    (<Status.CONVERGED: 'converged'>, array([0, 0, 0], dtype=int32))
    """

    mdp: MDP = field(repr=False)
    """The model that was solved."""
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
    """All passes or, of more than 20,000, the first and the last ones."""
    seconds: float
    certificate_seconds: float
    """How much of `seconds` went into the certificate."""
    passes: int = 0
    """Passes through the loop, with those before the checkpoint that it went on from."""
    omitted: Queries | None = field(default=None, repr=False)
    """The queries of passes that the trace does not hold, if there are such."""

    @cached_property
    def action_values(self) -> FloatArray:
        """(S, A) r(s, a) + γ Σ P(s' | s, a) values(s'); −inf where an action is not offered."""
        return action_values(self.mdp, self.values)

    @cached_property
    def queries(self) -> Queries:
        """The queries of all passes together."""
        omitted = () if self.omitted is None else (self.omitted,)
        return Queries.sum((*(iteration.queries for iteration in self.trace), *omitted))

    @property
    def solvers(self) -> tuple[str, ...]:
        """The names of how policies were evaluated, and then of how they were improved, each once."""
        evaluations = [item.evaluation for item in self.trace if item.evaluation != NO_EVALUATION]
        improvements = [item.improvement for item in self.trace if item.changed and not item.backups]
        return tuple(dict.fromkeys(evaluations + improvements))

    @property
    def summary(self) -> str:
        """The solvers in a line, with the backups that they made on the way."""
        backups = _backups(self.trace)
        return ", ".join(self.solvers) + (f", {backups}" if backups else "")

    @property
    def policy_loss(self) -> float:
        """Certified bound on max(V* − V^policy)."""
        return self.certificate.policy_loss

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached and certified: see Status.CONVERGED."""
        return self.status is Status.CONVERGED

    @property
    def certified(self) -> bool:
        """Whether policy_loss is within the tolerance, as it is on every converged solution."""
        return self.policy_loss <= self.tolerance

    def explain(self) -> str:
        """Return the story of the solve in a few lines: what each run of passes did, why, and what it cost.

        >>> import adalook as al
        >>> print(al.solve(al.zoo.queue(1000), tolerance=1e-6).explain().splitlines()[0])
        Auto on 1,000 states: converged, policy loss certified below 1e-06
        """
        lines = [f"{self.method} on {len(self.values):,} states: {self.status.value}, {self.message}"]
        first = 0
        earlier = max(0, self.passes - len(self.trace)) if self.omitted is None else 0
        if earlier:
            lines.append(f"  went on from a checkpoint of pass {earlier:,}")
        if self.omitted is not None:
            lines.append(f"  of {self.passes:,} passes the first and the last were kept, {len(self.trace):,} of them:")
        for last, item in enumerate(self.trace):
            following = self.trace[last + 1] if last + 1 < len(self.trace) else None
            if following is None or _kind(following) != _kind(item):
                number = earlier + first + 1 if self.omitted is None else None
                lines.append(_tell(self.trace[first : last + 1], number))
                first = last + 1
        if self.converged and self.mdp.discount < 1.0 and self.trace[-1].policy_loss > self.tolerance:
            lines.append(f"  certificate: a residual in double-doubles, loss <= {self.policy_loss:.2g}")
        return "\n".join(lines)

    def to_frame(self, action_values: bool = False) -> pandas.DataFrame:
        """Return a pandas table, a row per state: action, value and bounds and, if asked for, every action's value."""
        return solution_frame(self, boolean.validate("action_values", action_values))

    def save(self, directory: str | Path) -> list[Path]:
        """Write the solution and its model into a directory, for `load` and for `adalook report`; return the files."""
        from adalook.planning.solution_files import save_solution

        return save_solution(self, self.mdp, directory, with_trace=True, with_model=True)

    @classmethod
    def load(cls, directory: str | Path) -> Solution:
        """Read a solution that was saved; its trace comes back without what there was per state.

        >>> import tempfile, adalook as al
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     files = al.solve(al.zoo.chain(n=9)).save(directory)
        ...     al.Solution.load(directory).policy[:3]
        array([0, 0, 0], dtype=int32)
        """
        from adalook.planning.solution_files import read_solution

        return read_solution(directory)

    def action(self, state: int | str) -> int | str:
        """Return what the policy does in a state; states and actions go by their names if they have some.

        >>> import adalook as al
        >>> mdp = al.MDP([[0.0, 1.0], [2.0, 0.0]], [[0, 1], [1, 0]], 0.5, state_names=["low", "high"])
        >>> al.solve(mdp).action("low")
        1
        """
        chosen = int(self.policy[self.mdp.state_index(state)])
        return self.mdp.action_names[chosen] if self.mdp.action_names else chosen

    def plot(self) -> Figure:
        """Return a matplotlib figure: values, policy and lookahead on the model's grid, or values by state."""
        from tempfile import TemporaryDirectory

        from adalook.planning.solution_files import save_solution
        from adalook.report.figures.solution import solution_figure

        with TemporaryDirectory() as directory:  # the report draws what was saved, whoever asks
            save_solution(self, self.mdp, directory)
            return solution_figure(directory)

    def __str__(self) -> str:
        return f"{self!r}\n{policy_text(self.mdp, self.policy, self.values)}"

    def _repr_html_(self) -> str:
        return policy_html(self)

    def __repr__(self) -> str:
        done_by = f": {self.summary}" if self.summary else ""  # value iteration that changed nothing has none
        return (
            f"Solution({self.method}{done_by}; "
            f"{self.status.value} after {_count(self.iterations, 'iteration')}, "
            f"policy_loss <= {self.policy_loss:.2g}{'' if self.certified else ', tolerance not certified'})"
        )


def _count(number: int, noun: str) -> str:
    """Return a number with its noun, as in "1 backup" or "2 backups"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _backups(run: tuple[Iteration, ...]) -> str:
    """Return how many backups evaluations made, and how: "3 backups in place"; empty if there were none."""
    made = {kind: sum(item.backups for item in run if item.improvement == kind) for kind in ("in place", "at once")}
    return ", ".join(f"{_count(number, 'backup')} {kind}" for kind, number in made.items() if number)


def _kind(iteration: Iteration) -> tuple[str, str]:
    """Return by what a pass is told apart from the one before."""
    return iteration.evaluation, "" if iteration.backups else iteration.improvement


def _tell(run: tuple[Iteration, ...], number: int | None) -> str:
    """Return a line about passes of one kind that follow each other, the first of which is pass `number`, if known."""
    if number is None:
        where = "1 pass" if len(run) == 1 else f"{len(run):,} passes"
    else:
        where = f"pass {number:,}" if len(run) == 1 else f"passes {number:,} to {number + len(run) - 1:,}"
    solver = "no evaluation" if run[0].evaluation == NO_EVALUATION else run[0].evaluation
    improved = _backups(run) or run[0].improvement
    line = f"  {where}: {solver}, {improved}; {_count(sum(item.changed for item in run), 'action')} changed"
    line += f", loss <= {run[-1].policy_loss:.2g}; evaluated in {sum(item.evaluation_seconds for item in run):.2g} s"
    forecasts = [item.forecast for item in run if item.forecast is not None]
    if forecasts:
        predicted = sum(forecast.seconds for forecast in forecasts)
        line += f"{f' ({predicted:.2g} s predicted)' if predicted else ''}: {forecasts[0].reason}"
    return line
