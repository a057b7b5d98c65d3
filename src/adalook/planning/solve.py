"""`solve`: the one loop behind every method.

    evaluate π  ->  back up every state once  ->  let the method deepen some states  ->  improve

It stops when the certificate reaches the tolerance, or when no action can be improved beyond the error of the values.
Methods of uniform depth cannot come back to a policy (see `lookahead`). Depths that differ between neighbours can: a
deep state may count on a step that its shallow neighbour does not take. When a policy comes back, or nothing changes
although some action can be improved, the loop falls back on one-step improvement, which always ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adalook.arrays import FloatArray, IntArray
from adalook.errors import ArgumentError, ModelError
from adalook.mdp.model import MDP
from adalook.planning import kernels
from adalook.planning.backups import Backup, backup
from adalook.planning.certificate import from_residual, loss_bound, rounding_bound
from adalook.planning.evaluation import Evaluation, Evaluator
from adalook.planning.lookahead import Lookahead
from adalook.planning.method import FixedSweeps, Method, NoEvaluation, Precision, RoughEvaluation, Step
from adalook.planning.policies import checked_policy, myopic_policy
from adalook.planning.queries import Counter, Improvement, Queries, horizon
from adalook.planning.solution import Iteration, Solution, Status
from adalook.planning.watch import Watch
from adalook.planning.wlpi import WLPI

DEFAULT_TOLERANCE = 1e-8
KEPT_BYTES = 2**28
"""States are kept in the trace as long as they take at most this much."""
ROUGH_SPREAD = 0.1
"""On roughly evaluated values, lookahead follows changes above this share of the largest."""


def solve(
    mdp: MDP,
    method: Method | None = None,
    *,
    initial_policy: Any = None,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int | None = None,
    max_seconds: float | None = None,
    progress: bool = False,
    on_iteration: Callable[[Iteration], None] | None = None,
    keep_states: bool | None = None,
) -> Solution:
    """Solve an MDP; the default method, WLPI, has nothing to tune.

    Args:
        mdp: the model.
        method: one of ValueIteration, PolicyIteration, ModifiedPolicyIteration, HPI, TLPI, QLPI, WLPI.
        initial_policy: (S,) actions; by default the best immediate reward.
        tolerance: absolute, on the certified `policy_loss`; 0 goes on until no action can be improved.
        max_iterations: passes through the loop; reaching it gives Status.ITERATION_LIMIT.
        max_seconds: checked after each pass; reaching it gives Status.TIME_LIMIT.
        progress: show a live line on the terminal.
        on_iteration: called with each Iteration, arrays included, as it ends.
        keep_states: keep values, policy and depth of every pass in the trace; by default while they fit in 256 MiB.

    Ctrl-C returns the best policy so far, certified, with Status.INTERRUPTED.

    >>> import adalook as al
    >>> sol = al.solve(al.zoo.maze(size=30, seed=0))
    >>> sol.converged, sol.policy_loss < 1e-8
    (True, True)
    """
    method = WLPI() if method is None else method
    _check_arguments(mdp, method, tolerance, max_iterations, max_seconds)
    most = math.inf if max_iterations is None else max_iterations
    with Watch(progress, f"{method.name} on {mdp.num_states:,} states") as watch:
        if initial_policy is None:
            policy = myopic_policy(mdp)
        else:
            policy = checked_policy(mdp, initial_policy, "initial_policy")
        loop = _Loop(mdp, method, policy, float(tolerance), keep_states)
        while True:
            iteration = loop.run_pass(watch)
            watch.show(len(loop.trace), iteration)
            if on_iteration is not None:
                on_iteration(iteration)
            if loop.done:
                return loop.solution(Status.CONVERGED, loop.done, watch)
            if watch.interrupted:
                return loop.solution(Status.INTERRUPTED, "stopped by Ctrl-C", watch)
            if len(loop.trace) >= most:
                return loop.solution(Status.ITERATION_LIMIT, f"stopped after {most} passes", watch)
            if max_seconds is not None and watch.seconds >= max_seconds:
                return loop.solution(Status.TIME_LIMIT, f"stopped after {watch.seconds:.3g} s", watch)


@dataclass
class _Loop:
    """The state of a solve between passes."""

    mdp: MDP
    method: Method
    policy: IntArray
    tolerance: float
    keep_states: bool | None
    trace: list[Iteration] = field(default_factory=list)
    iterations: int = 0
    done: str = ""
    """Why the solve has converged, once it has."""

    def __post_init__(self) -> None:
        mdp = self.mdp
        self.evaluator, self.counter = Evaluator(mdp), Counter(mdp)
        self.values: FloatArray = np.zeros(mdp.num_states)
        self.fine = self.tolerance * (1.0 - mdp.discount) / 8.0
        self.coarse = mdp.largest_reward
        self.seen: set[int] = set()
        self.fallback = False
        self.certificate_seconds = 0.0

    def run_pass(self, watch: Watch) -> Iteration:
        """Evaluate, back up, improve; decide whether that was enough."""
        mdp, policy = self.mdp, self.policy
        evaluation = self.method.plan.evaluate(self.evaluator, policy, self.values, Precision(self.fine, self.coarse))
        first = backup(mdp, evaluation.values, policy)
        self.evaluated, self.residual, self.greedy = evaluation.values, first.residual, not evaluation.exact
        began = watch.seconds
        loss = loss_bound(mdp, first.residual, self.greedy)
        self.certificate_seconds += watch.seconds - began
        step = self._improve(evaluation, first)
        changed = kernels.count_different(step.actions, policy)
        self.iterations += changed > 0
        self._judge(evaluation, loss, int(changed))
        self.values, self.policy = step.values, step.actions
        # As long as many actions change, knowing this policy's values well is wasted; once none does, it is all.
        self.coarse = (first.residual.high - first.residual.low) * min(1.0, 10.0 * changed / mdp.num_states)
        return self._record(evaluation, step, int(changed), loss, watch)

    def _improve(self, evaluation: Evaluation, first: Backup) -> Step:
        """Let the method look ahead, with thresholds that tell a gain from an error.

        Values that were evaluated roughly are taken as value iteration takes them: T v whole. If T v >= v the
        method may still look ahead, for then whatever it raises stays a lower bound.
        """
        mdp, method, policy = self.mdp, self.method, self.policy
        rounding = rounding_bound(mdp, first.residual.size)
        if evaluation.exact:
            keep = 1.0 - mdp.discount * mdp.row_sums[1]
            error = (max(first.residual.own_high, -first.residual.own_low) + rounding) / keep
            switch, spread = 2.0 * error + rounding, (2.0 * error + rounding) / keep
        elif isinstance(method.plan, RoughEvaluation) and first.residual.low >= -rounding:
            switch, spread = 0.0, ROUGH_SPREAD * (first.residual.high - first.residual.low)
        else:
            return Step(first.values, first.actions)

        def look(start: Backup) -> Lookahead:
            price = mdp.num_pairs + evaluation.sweeps * mdp.num_states
            return Lookahead(mdp, evaluation.values, policy, start, switch, spread, price, evaluation.exact)

        ahead = look(first)
        if not method.uniform and not self.fallback:
            mark = hash(policy.tobytes())
            self.fallback = mark in self.seen
            self.seen.add(mark)
        if self.fallback:
            return Step(ahead.values, ahead.actions)
        improvable = ahead.switched > 0
        step = method.improve(ahead)
        if improvable and not method.uniform and np.array_equal(step.actions, policy):
            again = look(backup(mdp, evaluation.values, policy))
            return Step(again.values, again.actions)
        return step

    def _judge(self, evaluation: Evaluation, loss: float, changed: int) -> None:
        """Set `done` if the tolerance is reached, or nothing can be improved any more."""
        if loss <= self.tolerance:
            self.done = f"policy loss certified below {self.tolerance:g}"
        elif evaluation.exact and changed == 0:
            if self.fine > 0.0 and evaluation.way == "sweeps":
                self.fine = self.fine / 16.0 if self.fine > 1e-300 else 0.0
                floor = self.evaluator.floor(evaluation.values)
                if self.fine > floor / 16.0:
                    return
            self.done = "no action can be improved beyond the error of the values"
        elif isinstance(self.method.plan, NoEvaluation | FixedSweeps):
            change = max(self.residual.high, -self.residual.low)
            if change <= rounding_bound(self.mdp, self.residual.size):
                self.done = "values change by no more than rounding"

    def _record(self, evaluation: Evaluation, step: Step, changed: int, loss: float, watch: Watch) -> Iteration:
        mdp = self.mdp
        n = mdp.num_states
        direct = evaluation.exact
        cost = {
            "exact": evaluation.sweeps * n,
            "simulated": (horizon(mdp.discount) if direct else evaluation.sweeps) * n,
        }
        improvement = Improvement(self.counter, step.searches, step.wave_pairs)
        depth = step.depth if isinstance(step.depth, np.ndarray) else np.broadcast_to(np.uint16(step.depth), n)
        keep = self.keep_states
        if keep is None:
            keep = (len(self.trace) + 1) * n * 14 <= KEPT_BYTES
            if not keep and self.trace and self.trace[-1].values is not None:
                self.trace = [_without_states(item) for item in self.trace]
        iteration = Iteration(
            evaluation=evaluation.way,
            changed=changed,
            policy_loss=loss,
            max_depth=int(depth.max()),
            mean_depth=float(depth.mean()),
            queries=Queries(improvement, cost),
            seconds=watch.seconds,
            values=evaluation.values,
            policy=step.actions,
            depth=depth,
            fallback=self.fallback,
        )
        self.trace.append(iteration if keep else _without_states(iteration))
        return iteration

    def solution(self, status: Status, message: str, watch: Watch) -> Solution:
        """Certify what the last pass knew."""
        mdp = self.mdp
        began = watch.seconds
        certificate = from_residual(mdp, self.evaluated, self.residual, self.greedy)
        values = self.evaluated
        if not (certificate.lower[0] <= values[0] <= certificate.upper[0]):
            values = values + (0.5 * (certificate.lower[0] + certificate.upper[0]) - values[0])
        self.certificate_seconds += watch.seconds - began
        if status is Status.CONVERGED and certificate.policy_loss > self.tolerance > 0.0:
            message += f"; a loss below {self.tolerance:g} is more than float64 can certify here"
        trace = tuple(_with_distance(item, values) for item in self.trace)
        return Solution(
            method=self.method.name,
            values=values,
            policy=self.policy,
            lower=certificate.lower,
            upper=certificate.upper,
            policy_loss=certificate.policy_loss,
            status=status,
            message=message,
            tolerance=self.tolerance,
            iterations=self.iterations,
            trace=trace,
            queries=Queries.sum(tuple(item.queries for item in trace)),
            seconds=watch.seconds,
            certificate_seconds=self.certificate_seconds,
        )


def _without_states(iteration: Iteration) -> Iteration:
    return replace(iteration, values=None, policy=None, depth=None)


def _with_distance(iteration: Iteration, values: FloatArray) -> Iteration:
    if iteration.values is None:
        return iteration
    return replace(iteration, distance=float(np.abs(values - iteration.values).max()))


def _check_arguments(mdp: Any, method: Any, tolerance: Any, max_iterations: Any, max_seconds: Any) -> None:
    if not isinstance(mdp, MDP):
        raise ModelError("solve got no model", expected="an al.MDP", got=type(mdp).__name__)
    if isinstance(method, type) or not isinstance(method, Method):
        raise ArgumentError("solve got no method", expected="a method object, such as al.HPI(3)", got=repr(method))
    method.check(mdp.num_states)
    number = isinstance(tolerance, int | float | np.floating | np.integer) and not isinstance(tolerance, bool)
    if not number or not 0.0 <= float(tolerance) < math.inf:
        raise ArgumentError("tolerance is wrong", expected="a finite number >= 0", got=repr(tolerance))
    whole = isinstance(max_iterations, int | np.integer) and not isinstance(max_iterations, bool)
    if max_iterations is not None and (not whole or max_iterations < 1):
        raise ArgumentError("max_iterations is wrong", expected="a whole number >= 1", got=repr(max_iterations))
    timed = isinstance(max_seconds, int | float | np.floating) and not isinstance(max_seconds, bool)
    if max_seconds is not None and (not timed or not float(max_seconds) >= 0.0):
        raise ArgumentError("max_seconds is wrong", expected="a number >= 0", got=repr(max_seconds))
