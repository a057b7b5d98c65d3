"""`solve`: the one loop behind every method.

    evaluate π  ->  back up every state once  ->  let the method look ahead and improve

It stops when the certificate reaches the tolerance. When the evaluator says that nothing more can be gained in float64
before that, values relative to a constant may suffice (`precision.relative`); otherwise the loop goes on in
double-doubles (`precision.refinement`), until nothing can be told from rounding there.
Methods of uniform depth cannot come back to a policy (see `lookahead.levels`). Depths that differ between neighbours
can: a deep state may count on a step that its shallow neighbour does not take. When a policy comes back, or nothing
changes although some action can be improved, the loop falls back on one-step improvement, which always ends.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, Unpack, overload

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._interrupts import SignalGuard
from adalook._validation import at_least_zero, boolean, integer, non_negative, optional
from adalook.errors import ArgumentError, ModelError, shown
from adalook.mdp.model import MDP, kept_with_model
from adalook.planning.certificate import Certificate, from_residual, loss_bound, rounding_bound
from adalook.planning.checks import checked_policy, checked_state_values
from adalook.planning.evaluation.base import PassOutcome, PolicyEvaluation
from adalook.planning.lookahead import kernels
from adalook.planning.lookahead.levels import Backup, LookaheadLevels, Residual, Searched, backup
from adalook.planning.progress import ProgressLine
from adalook.planning.queries import EvaluationQueries, LookaheadQueries, Queries, QueryCounter
from adalook.planning.rules.auto import Auto
from adalook.planning.rules.base import Method, Step
from adalook.planning.solution import Answer, Iteration, Solution, Status

if TYPE_CHECKING:
    from adalook.planning.checkpoint import Saved
    from adalook.planning.objectives.finite_horizon import FiniteHorizonSolution
    from adalook.planning.precision.refinement import RefinedPass, Refinement
    from adalook.planning.precision.relative import RelativePass

IntOrFloatArray = TypeVar("IntOrFloatArray", bound=np.ndarray[Any, Any])
IterationOrSolution = TypeVar("IterationOrSolution", Iteration, Solution)

DEFAULT_TOLERANCE = 1e-8
DEFAULT_METHOD = Auto()
KEPT_BYTES = 2**28
"""States are kept in the trace as long as they take at most this much."""
GOOD_VALUES = 1e-12
"""Values that float64 found are kept if they are certified to the tolerance or, where it is zero, to this share of the
largest."""
MAX_PASSES = 10_000
"""Passes that the trace keeps: the first half of these and the latest; value iteration may make millions."""
optional_boolean = optional(boolean)
QUICK_PAIRS = 10_000
"""The first pass of smaller models takes about a millisecond: no time to press Ctrl-C in."""


class SolveOptions(TypedDict, total=False):
    """The keywords of `solve` for a discounted model, as type checkers see them."""

    initial_policy: Any
    initial_values: Any
    tolerance: float
    max_iterations: int | None
    max_seconds: float | None
    progress: bool
    on_iteration: Callable[[Iteration], None] | None
    keep_states: bool | None
    checkpoint: str | Path | None


@overload
def solve(mdp: MDP, method: Method | None = None, **options: Unpack[SolveOptions]) -> Solution: ...


@overload
def solve(mdp: MDP, *, horizon: int, terminal_values: Any = None) -> FiniteHorizonSolution: ...


def solve(
    mdp: MDP,
    method: Method | None = None,
    *,
    initial_policy: Any = None,
    initial_values: Any = None,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int | None = None,
    max_seconds: float | None = None,
    progress: bool = False,
    on_iteration: Callable[[Iteration], None] | None = None,
    keep_states: bool | None = None,
    checkpoint: str | Path | None = None,
    horizon: int | None = None,
    terminal_values: Any = None,
) -> Solution | FiniteHorizonSolution:
    """Solve an MDP; the default method, Auto, has nothing to tune.

    Args:
        mdp: the model.
        method: such as `al.HPI(3)`; `adalook.planning.rules.registry.METHODS` lists all. By default `al.Auto()`.
        initial_policy: (S,) actions, by numbers or names; by default the best immediate reward, or what is greedy for
            initial_values.
        initial_values: (S,) where to start from, such as the values of a model that was slightly different.
        tolerance: absolute, on the certified `policy_loss`; 0 asks for a policy that is proven to be optimal. Where
            that is more than arithmetic can tell, the solve ends with Status.ROUNDING_LIMIT.
        max_iterations: passes through the loop; reaching it gives Status.ITERATION_LIMIT.
        max_seconds: checked between passes; reaching it gives Status.TIME_LIMIT.
        progress: show a live line on the terminal.
        on_iteration: called with each Iteration, arrays included, as it ends.
        keep_states: keep values, policy and depth of every pass in the trace; by default while they fit in 256 MiB.
        checkpoint: a file to which values and policy are written every minute or so, between passes, and at the end.
            If it exists, the solve goes on from there, whatever the initial policy and values; it is refused if it
            belongs to another model, method or tolerance.

        horizon: number of steps, after which nothing more is paid. The answer is a `FiniteHorizonSolution`, whose
            policy depends on time. It is found in one pass over time, exact but for rounding: tolerance has no meaning
            then, and of the other arguments none but terminal_values is taken.
        terminal_values: (S,) what is left when the horizon is reached; by default nothing.

    A model with discount 1 is solved for its total reward if every policy ends from everywhere, and refused otherwise.

    Ctrl-C returns the best policy so far, certified, with Status.INTERRUPTED; pressed twice, it interrupts as usual.

    >>> import adalook as al
    >>> sol = al.solve(al.zoo.maze(size=30, seed=0))
    >>> sol.converged, sol.policy_loss < 1e-8
    (True, True)
    """
    began = perf_counter()
    if horizon is not None or terminal_values is not None:
        others = {"initial_values": initial_values, "initial_policy": initial_policy, "checkpoint": checkpoint}
        others |= {"max_iterations": max_iterations, "max_seconds": max_seconds, "on_iteration": on_iteration}
        return _with_horizon(mdp, method, horizon, terminal_values, others)
    method = DEFAULT_METHOD if method is None else method
    _check_arguments(mdp, method, tolerance, max_iterations, max_seconds, on_iteration)
    keep_states = optional_boolean.validate("keep_states", keep_states) if keep_states is not None else None
    progress = boolean.validate("progress", progress)
    if mdp.discount == 1.0:
        from adalook.planning.objectives.total_reward import solve_total_reward

        return solve_total_reward(
            mdp,
            method,
            tolerance=float(tolerance),
            initial_values=initial_values,
            initial_policy=initial_policy,
            max_iterations=max_iterations,
            max_seconds=max_seconds,
            progress=progress,
            on_iteration=on_iteration,
            keep_states=keep_states,
            checkpoint=checkpoint,
        )
    file, saved = None, None
    if checkpoint is not None:
        from adalook.planning.checkpoint import SolveCheckpoint

        file = SolveCheckpoint(checkpoint, mdp, method, float(tolerance))
        saved = file.read()
    start = _starting_point(mdp, initial_policy, initial_values) if saved is None else Start(saved.policy, saved.values)
    line = ProgressLine(f"{method.name} on {mdp.num_states:,} states") if progress else None
    interrupt = SignalGuard((signal.SIGINT,), listen=False)
    with line or nullcontext(), interrupt:
        loop = _Loop(mdp, method, start, float(tolerance), keep_states, began)
        if saved is not None:
            loop.iterations, loop.earlier_passes = saved.iterations, saved.passes
        del start, saved
        solution: Solution | None = None
        while solution is None:
            if loop.trace or mdp.num_pairs > QUICK_PAIRS:
                interrupt.listen()
            iteration = loop.run_pass()
            if line is not None:
                line.show(loop.passes, iteration)
            if on_iteration is not None:
                on_iteration(iteration)
            solution = _solution_if_over(loop, bool(interrupt), max_iterations, max_seconds)
            if file is not None and (solution is not None or file.due):
                file.write(loop.saved())
            del iteration  # and with it arrays that the next pass has no use for
    if interrupt and solution.status is not Status.INTERRUPTED:
        interrupt.raise_received()  # it came too late to stop this solve, but must not get lost
    return solution


def _solution_if_over(
    loop: _Loop, interrupted: bool, max_iterations: int | None, max_seconds: float | None
) -> Solution | None:
    """Return the solution if a solve is over, by itself, by Ctrl-C or at a limit; None while it goes on."""
    if loop.done is not None:
        return loop.solution(loop.done)
    if interrupted:
        return loop.solution(Status.INTERRUPTED, "stopped by Ctrl-C")
    if max_iterations is not None and loop.passes >= max_iterations:
        passes = "1 pass" if max_iterations == 1 else f"{max_iterations} passes"
        return loop.solution(Status.ITERATION_LIMIT, f"stopped after {passes}")
    if max_seconds is not None and loop.seconds >= max_seconds:
        return loop.solution(Status.TIME_LIMIT, f"stopped after {loop.seconds:.3g} s")
    return None


def _with_horizon(
    mdp: MDP, method: Method | None, horizon: int | None, terminal_values: Any, others: dict[str, Any]
) -> FiniteHorizonSolution:
    """Solve for a finite horizon, which no method has a say in."""
    from adalook.planning.objectives.finite_horizon import solve_finite_horizon

    if not isinstance(mdp, MDP):
        raise _no_model(mdp)
    if method is not None or horizon is None:
        raise ArgumentError(
            "terminal_values need a horizon" if horizon is None else "a finite horizon takes no method",
            remedy="call al.solve(mdp, horizon=T, terminal_values=…): it is solved by backward induction",
        )
    for name, given in others.items():
        if given is not None:
            last = "; what is left at the end are terminal_values" if name == "initial_values" else ""
            raise ArgumentError(
                f"a finite horizon takes no {name}", remedy=f"it is solved in one pass: leave it out{last}"
            )
    return solve_finite_horizon(mdp, horizon, terminal_values)


class Start(NamedTuple):
    """The policy and the values that a solve starts from."""

    policy: IntArray
    values: FloatArray


def _starting_point(mdp: MDP, policy: Any, values: Any) -> Start:
    """Return the policy and the values to start from, checked."""
    if values is None:
        return Start(starting_policy(mdp, policy), np.zeros(mdp.num_states))
    given = checked_state_values(mdp, values, "initial_values")
    # No policy is worth more than this; from far beyond it, values would take ages, or never come back to their digits.
    most = mdp.largest_reward / (1.0 - mdp.discount * mdp.row_sums[1])
    given = np.clip(given, -most, most)
    actions = starting_policy(mdp, policy)
    return Start(actions if policy is not None else backup(mdp, given, actions).actions, given)


def starting_policy(mdp: MDP, given: Any = None) -> IntArray:
    """Return a policy (S,) to start from: the one given, checked, or the best immediate reward in every state."""
    if given is not None:
        return checked_policy(mdp, given, "initial_policy")
    return _myopic_policy(mdp).copy() if mdp.num_pairs <= QUICK_PAIRS else _written_myopic_policy(mdp)


def _written_myopic_policy(mdp: MDP) -> IntArray:
    policy = np.empty(mdp.num_states, np.int32)
    kernels.myopic_policy(mdp.rewards, mdp.codes, policy)
    return policy


_myopic_policy = kept_with_model(_written_myopic_policy)


class Candidate(NamedTuple):
    """A policy that could be returned, with the values and the residual that bound its loss."""

    values: FloatArray
    residual: Residual
    policy: IntArray
    greedy: bool
    """Whether the policy is the one that attains T v, otherwise it is the evaluated one or better."""


@dataclass
class _Loop:
    """The state of a solve between passes."""

    mdp: MDP
    method: Method
    start: InitVar[Start]
    tolerance: float
    keep_states: bool | None
    began: float
    trace: list[Iteration] = field(default_factory=list)
    iterations: int = 0
    passes: int = 0
    earlier_passes: int = 0
    """Those that a checkpoint tells of."""
    omitted: Queries | None = None
    """The queries of passes that the trace no longer holds."""
    done: Status | None = None
    """The status with which the solve ends by itself, once it does."""

    def __post_init__(self, start: Start) -> None:
        self.policy, self.values = start
        self.evaluator = self.method.evaluation(self.mdp, self.tolerance)
        self.counter = QueryCounter(self.mdp)
        self.last: PassOutcome | None = None
        self.best: Candidate | None = None
        self.best_loss = math.inf
        self.certificate: Certificate | None = None
        """Of the last pass, if that was good enough."""
        self.answer = Answer()
        self.seen: set[int] = set()
        self.fallback = False
        self.certificate_seconds = 0.0
        self.evaluation_seconds = 0.0
        self.relative: RelativePass | None = None
        """What has certified the policy where absolute values could not; the last pass."""
        self.refinement: Refinement | None = None
        self.refined: RefinedPass | None = None
        """The refined pass with the least certified loss."""
        self.unrecorded: RefinedPass | None = None

    @property
    def seconds(self) -> float:
        """Time since the solve began."""
        return perf_counter() - self.began

    def run_pass(self) -> Iteration:
        """Evaluate, back up, improve, and decide whether that was enough."""
        if self.relative is not None:
            return self._run_relative_pass(self.relative)
        if self.refinement is not None:
            return self._run_refined_pass(self.refinement)
        mdp, policy = self.mdp, self.policy
        if self.method.uniform:
            self.best = None  # replaced below: of a large model there is no room for both
        started = perf_counter()
        evaluation = self.evaluator.evaluate(policy, self.values, self.last)
        self.evaluation_seconds = perf_counter() - started
        self.values = evaluation.values  # what it started from may go
        first = evaluation.last_backup or backup(mdp, evaluation.values, evaluation.policy)
        began = perf_counter()
        loss = loss_bound(mdp, first.residual, greedy=not evaluation.exact)
        self.certificate_seconds += perf_counter() - began
        step, improvement, searched = self._improve(evaluation, first)
        self._keep_best(evaluation, first, step, loss)
        changed = kernels.count_different(step.actions, policy)
        self.iterations += changed > 0
        left = changed
        if evaluation.exact and evaluation.policy is not policy:  # of a policy that was improved first: it must settle
            left = kernels.count_different(step.actions, evaluation.policy)
        self.last = PassOutcome(first.residual, left, loss)
        self.values, self.policy = step.values, step.actions
        iteration = self._record(evaluation, step.actions, improvement, searched, changed, loss)
        self.certificate = self._certificate() if loss <= self.tolerance else None
        if self.certificate is not None and self.certificate.policy_loss <= self.tolerance:
            self.done = Status.CONVERGED
        elif self.evaluator.finished(evaluation, self.last):
            self._refine()
        return iteration

    @property
    def candidate(self) -> Candidate:
        """The best policy that float64 found; there is one after every pass."""
        assert self.best is not None
        return self.best

    def _refine(self) -> None:
        """Go on with values relative to a constant where these certify the policy, otherwise in double-doubles.

        A first pass that confirms the policy is part of the certificate.
        """
        from adalook.planning.precision.refinement import Refinement
        from adalook.planning.precision.relative import relative_values

        began, best = perf_counter(), self.candidate
        self.relative = None if best.greedy else relative_values(self.mdp, best.policy, best.values, self.tolerance)
        if self.relative is None:
            self.refinement = Refinement(self.mdp, best.policy, best.values)
            self.unrecorded = self._refined_pass(self.refinement)
        self.certificate_seconds += perf_counter() - began

    def _run_relative_pass(self, relative: RelativePass) -> Iteration:
        """Record the pass that has certified the policy by relative values."""
        from adalook.planning.precision.relative import LAST_SWEEPS
        from adalook.planning.precision.relative import NAME as RELATIVE

        policy, certificate = self.candidate.policy, relative.certificate
        self.best, self.certificate = Candidate(relative.values, relative.residual, policy, greedy=False), certificate
        self.done, n = Status.CONVERGED, self.mdp.num_states
        values = relative.values + 0.5 * (certificate.low + certificate.high)
        evaluation = PolicyEvaluation(values, policy, RELATIVE, LAST_SWEEPS * n, exact=True)
        return self._record(evaluation, policy, "one step", Searched.of(1, n), 0, certificate.policy_loss)

    def _refined_pass(self, refinement: Refinement) -> RefinedPass:
        """Evaluate and improve once in double-doubles, and decide whether that was enough."""
        began = perf_counter()
        refined = refinement.run_pass(self.tolerance)
        self.evaluation_seconds = perf_counter() - began
        loss = refined.certificate.policy_loss
        if self.refined is None or loss < self.refined.certificate.policy_loss:
            self.refined = refined
        if refinement.finished:
            self.done = Status.CONVERGED if loss <= self.tolerance else Status.ROUNDING_LIMIT
        return refined

    def _run_refined_pass(self, refinement: Refinement) -> Iteration:
        """Record a pass in double-doubles: the one that was made already, or a new one."""
        refined, self.unrecorded = self.unrecorded or self._refined_pass(refinement), None
        n = self.mdp.num_states
        evaluation = PolicyEvaluation(refined.values, refined.policy, refined.solver, n, exact=True)
        self.iterations += refined.changed > 0
        loss = refined.certificate.policy_loss
        return self._record(evaluation, refined.actions, "one step", Searched.of(1, n), refined.changed, loss)

    def _improve(self, evaluation: PolicyEvaluation, first: Backup) -> tuple[Step, str, Searched]:
        """Let the method look ahead, with tolerances that tell a gain from an error; fall back where it cycles."""
        mdp, method, policy = self.mdp, self.method, evaluation.policy
        rounding = rounding_bound(mdp, first.residual.size)
        keep = 1.0 - mdp.discount * mdp.row_sums[1]
        error = (max(first.residual.own_high, -first.residual.own_low) + rounding) / keep if evaluation.exact else 0.0
        switch_tol = 2.0 * error + rounding

        def look(start: Backup) -> LookaheadLevels:
            return LookaheadLevels(
                mdp,
                evaluation.values,
                policy,
                start,
                exact=evaluation.exact,
                switch_tol=switch_tol,
                raise_tol=switch_tol / keep,
                price=mdp.num_pairs + evaluation.swept,
            )

        ahead = look(first)
        can_cycle = evaluation.exact and not method.uniform
        if can_cycle and not self.fallback:
            mark = hash(policy.tobytes())
            self.fallback = mark in self.seen
            self.seen.add(mark)
        if self.fallback:
            return _complete(Step(ahead.values, ahead.actions), ahead)
        improvable = ahead.switched > 0
        step = method.improve(ahead)
        if can_cycle and improvable and np.array_equal(step.actions, policy):
            ahead = look(backup(mdp, evaluation.values, policy))
            step = Step(ahead.values, ahead.actions)
        return _complete(step, ahead)

    def _keep_best(self, evaluation: PolicyEvaluation, first: Backup, step: Step, loss: float) -> None:
        """Remember what to certify in the end: of partly evaluated values, their greedy policy."""
        uniform, exact = self.method.uniform, evaluation.exact
        if uniform or loss < self.best_loss or not self.trace:
            # Mixed depths may make a policy worse: what is certified then is the policy that was evaluated.
            improved = step.actions if uniform else evaluation.policy
            policy = improved if exact else first.actions
            self.best = Candidate(evaluation.values, first.residual, policy, greedy=not exact)
        self.best_loss = min(self.best_loss, loss)

    def _record(
        self,
        evaluation: PolicyEvaluation,
        actions: IntArray,
        improvement: str,
        searched: Searched,
        changed: int,
        loss: float,
    ) -> Iteration:
        """Add a pass to the trace, with its states as long as there is room for them."""
        mdp, n = self.mdp, self.mdp.num_states
        backed_up = searched.backed_up + evaluation.backups * mdp.num_pairs
        iteration = _filled(
            Iteration,
            evaluation=evaluation.solver,
            exact=evaluation.exact,
            sweeps=evaluation.swept / n,
            backups=evaluation.backups,
            improvement=evaluation.improvement if evaluation.backups else improvement,
            changed=int(changed),
            policy_loss=float(loss),
            max_depth=searched.max_depth,
            mean_depth=searched.mean_depth,
            queries=Queries(
                LookaheadQueries(self.counter, searched.roots, backed_up),
                EvaluationQueries(evaluation.swept, n, mdp.discount, evaluation.exact),
            ),
            seconds=self.seconds,
            evaluation_seconds=self.evaluation_seconds,
            forecast=evaluation.forecast,
            values=published(evaluation.values),
            policy=published(actions),
            depth=published(searched.depth),
            fallback=self.fallback,
            answer=self.answer,
        )
        keep = self.keep_states
        if keep is None:
            keep = (self.passes + 1) * n * 14 <= KEPT_BYTES
        if not keep and self.trace and self.trace[-1].values is not None:
            self.trace = [_without_states(item) for item in self.trace]
        self.trace.append(iteration if keep else _without_states(iteration))
        self.passes += 1
        if len(self.trace) > 2 * MAX_PASSES:
            middle = slice(MAX_PASSES // 2, len(self.trace) - MAX_PASSES // 2)
            known = () if self.omitted is None else (self.omitted,)
            self.omitted = Queries.counted((*known, *(item.queries for item in self.trace[middle])))
            del self.trace[middle]
        return iteration

    def saved(self) -> Saved:
        """Return what a checkpoint keeps."""
        from adalook.planning.checkpoint import Saved

        return Saved(self.values, self.policy, self.earlier_passes + self.passes, self.iterations)

    def _certificate(self) -> Certificate:
        """Certify the best policy that float64 found."""
        best = self.candidate
        return from_residual(self.mdp, published(best.values), best.residual, best.greedy)

    def solution(self, status: Status, message: str = "") -> Solution:
        """Certify the best policy so far."""
        best = self.candidate
        began = perf_counter()
        known = self.certificate if status is Status.CONVERGED and self.refined is None else None
        certificate, values, policy = known or self._certificate(), best.values, best.policy
        refined = self.refined
        if refined is not None and refined.certificate.policy_loss < certificate.policy_loss:
            good = certificate.high - certificate.low <= (self.tolerance or GOOD_VALUES * best.residual.size)
            if good and refined.policy is best.policy:
                certificate = replace(certificate, policy_loss=refined.certificate.policy_loss)
            else:
                certificate, values, policy = refined.certificate, refined.values, refined.policy
        if not certificate.low <= 0.0 <= certificate.high:
            values = values + 0.5 * (certificate.low + certificate.high)
        self.certificate_seconds += perf_counter() - began
        self.answer.values = values
        return _filled(
            Solution,
            mdp=self.mdp,
            method=self.method.name,
            values=published(values),
            policy=published(policy),
            certificate=certificate,
            status=status,
            message=message or _ending(status, certificate.policy_loss, self.tolerance),
            tolerance=self.tolerance,
            iterations=self.iterations,
            trace=tuple(self.trace),
            passes=self.earlier_passes + self.passes,
            omitted=self.omitted,
            seconds=self.seconds,
            certificate_seconds=self.certificate_seconds,
        )


def _filled(kind: type[IterationOrSolution], /, **fields: Any) -> IterationOrSolution:
    """Return a frozen dataclass of which every field is given, set all at once: one by one takes four times as long."""
    record = kind.__new__(kind)
    record.__dict__.update(fields)
    return record


def _ending(status: Status, loss: float, tolerance: float) -> str:
    """Return in a sentence how a solve ended by itself."""
    if status is Status.ROUNDING_LIMIT:
        return f"no further improvement can be told from rounding; a loss below {tolerance:g} is not certified"
    return "policy proven to be optimal" if loss == 0.0 else f"policy loss certified below {tolerance:g}"


def published(array: IntOrFloatArray) -> IntOrFloatArray:
    """Return a read-only view: what users see cannot be changed under the loop's feet, nor the trace after it."""
    view = array.view()
    view.setflags(False)  # type: ignore[call-arg]  # not by name, which takes three times as long
    return view


def _complete(step: Step, look: LookaheadLevels) -> tuple[Step, str, Searched]:
    """Return a step, its name and what was searched for it: as the rule says, otherwise as the lookahead did."""
    if step.depth is None and step.roots is None:
        searched = look.searched
    else:
        depth = look.depth if step.depth is None else step.depth
        searched = Searched.of(depth, look.mdp.num_states, step.roots)
    return step, step.improvement or look.improvement, searched


def _without_states(iteration: Iteration) -> Iteration:
    """Return an iteration without what there is per state."""
    return replace(iteration, values=None, policy=None, depth=None)


def _no_model(given: Any) -> ModelError:
    """Return the error about something that is given for a model."""
    remedy = ""
    if isinstance(given, str):
        remedy = "read a file with al.MDP.load, a table of Gymnasium's with al.MDP.from_gymnasium(gymnasium.make(…))"
    elif hasattr(given, "reset") and hasattr(given, "step"):
        remedy = "al.solve(al.MDP.from_gymnasium(env, discount=0.99)) solves environments that have a transition table"
    return ModelError("solve got no model", expected="an al.MDP", got=type(given).__name__, remedy=remedy)


def _check_arguments(
    mdp: Any, method: Any, tolerance: Any, max_iterations: Any, max_seconds: Any, on_iteration: Any
) -> None:
    """Raise an error that names the first argument that is wrong."""
    if not isinstance(mdp, MDP):
        raise _no_model(mdp)
    if not isinstance(method, Method):
        raise ArgumentError("solve got no method", expected="a method object, such as al.HPI(3)", got=shown(method))
    method.check(mdp)
    non_negative.validate("tolerance", tolerance)
    if max_iterations is not None:
        integer(1).validate("max_iterations", max_iterations)
    if max_seconds is not None:
        at_least_zero.validate("max_seconds", max_seconds)
    if on_iteration is not None and not callable(on_iteration):
        raise ArgumentError(
            "on_iteration is no function", expected="a function of an Iteration", got=shown(on_iteration)
        )
