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
from typing import Any, NamedTuple, TypeVar

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import ArgumentError, ModelError
from adalook.mdp.model import MDP
from adalook.planning.certificate import from_residual, loss_bound, rounding_bound
from adalook.planning.evaluation.chooser import MAX_LEAVES, Evaluation, Evaluator
from adalook.planning.evaluation.in_place import IN_PLACE, LOCAL_GROWTH, MOST_PASSES, RoughRun
from adalook.planning.interrupts import Watch
from adalook.planning.lookahead import kernels
from adalook.planning.lookahead.backups import Backup, Residual, backup
from adalook.planning.lookahead.levels import Lookahead
from adalook.planning.policies import checked_policy, myopic_policy
from adalook.planning.queries import Counter, Improvement, Queries, horizon
from adalook.planning.rules.base import (
    ExactEvaluation,
    FixedSweeps,
    Method,
    NoEvaluation,
    Precision,
    RoughEvaluation,
    Step,
)
from adalook.planning.rules.wlpi import WLPI
from adalook.planning.solution import Answer, Iteration, Solution, Status

IntArrayOrFloat = TypeVar("IntArrayOrFloat", bound=np.ndarray[Any, Any])

NUMBER, WHOLE = (int, float, np.floating, np.integer), (int, np.integer)
DEFAULT_TOLERANCE = 1e-8
KEPT_BYTES = 2**28
"""States are kept in the trace as long as they take at most this much."""
MANY = 1 << 30
QUICK_PAIRS = 10_000
"""The first passes of smaller models take about a millisecond: no time to press Ctrl-C in."""
PATIENCE = 100
"""Rough evaluation gives way to exact when so many passes in a row have not taken a tenth off the loss."""


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
        max_seconds: checked between passes (quick ones in batches); reaching it gives Status.TIME_LIMIT.
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
    _check_arguments(mdp, method, tolerance, max_iterations, max_seconds, on_iteration)
    most = math.inf if max_iterations is None else max_iterations
    with Watch(f"{method.name} on {mdp.num_states:,} states" if progress else None) as watch:
        if initial_policy is None:
            policy = myopic_policy(mdp)
        else:
            policy = checked_policy(mdp, initial_policy, "initial_policy")
        loop = _Loop(mdp, method, policy, float(tolerance), keep_states)
        while True:
            if loop.trace or mdp.num_pairs > QUICK_PAIRS:
                watch.listen()
            for iteration in loop.run(watch, int(min(most - len(loop.trace), 1 << 30)), on_iteration is not None):
                watch.show(len(loop.trace), iteration)
                if on_iteration is not None:
                    on_iteration(iteration)
            if loop.done:
                return loop.solution(Status.CONVERGED, loop.done, watch)
            if watch.interrupted:
                watch.reported = True
                return loop.solution(Status.INTERRUPTED, "stopped by Ctrl-C", watch)
            if len(loop.trace) >= most:
                passes = "1 pass" if most == 1 else f"{most} passes"
                return loop.solution(Status.ITERATION_LIMIT, f"stopped after {passes}", watch)
            if max_seconds is not None and watch.seconds >= max_seconds:
                return loop.solution(Status.TIME_LIMIT, f"stopped after {watch.seconds:.3g} s", watch)


class Certified(NamedTuple):
    """What a solution is made of: values, their residual, and the policy that the residual speaks of."""

    values: FloatArray
    residual: Residual
    policy: IntArray
    greedy: bool


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
        self.plan = self.method.plan
        self.rough = RoughRun(mdp, self.tolerance)
        self.fine = self.tolerance * (1.0 - mdp.discount) / 3.0
        self.coarse = mdp.largest_reward
        self.sweeps = 1
        self.best_loss = self.milestone = math.inf
        self.milestone_pass = 0
        self.answer = Answer()
        self.uniform_depths: dict[int, IntArray] = {}
        self.seen: set[int] = set()
        self.fallback = False
        self.certificate_seconds = 0.0

    def run(self, watch: Watch, most: int, keep: bool) -> list[Iteration]:
        """One pass, or several rough ones on a local model; decide whether that was enough."""
        rough = isinstance(self.plan, RoughEvaluation) and self.tolerance > 0.0
        rough = rough and self.mdp.rows.num_rows > MAX_LEAVES and self.mdp.growth <= LOCAL_GROWTH
        if rough and not self.evaluator.is_functional(self.policy):
            return self._run_rough(watch, most, keep or self._keeps(MOST_PASSES))
        return [self._run_pass(watch)]

    def _run_rough(self, watch: Watch, most: int, keep: bool) -> list[Iteration]:
        """Rough passes: see `rough`."""
        mdp = self.mdp
        passes, evaluated, self.values, self.policy = self.rough.advance(self.values, self.policy, most, keep)
        self.residual = passes[-1].residual
        self.best = Certified(evaluated, self.residual, self.policy, greedy=True)
        result = []
        for item in passes:
            loss = loss_bound(mdp, item.residual, greedy=True)
            evaluation = Evaluation(evaluated if item.values is None else item.values, "sweeps in place", 0, False)
            action = self.policy if item.policy is None else item.policy
            deeper = IN_PLACE * item.rounds
            step = Step(self.values, action, 1 + deeper, wave_pairs=deeper * mdp.num_pairs)
            self.iterations += item.changed > 0
            result.append(self._record(evaluation, item.swept, step, item.changed, loss, watch, keep))
        self._judge(evaluation, loss, passes[-1].changed)
        if not self.done and self.residual.high - self.residual.low <= 4.0 * rounding_bound(mdp, self.residual.size):
            self.plan = ExactEvaluation()  # only rounding is left: what can still be gained takes exact evaluation
        return result

    def _run_pass(self, watch: Watch) -> Iteration:
        """Evaluate, back up, improve."""
        mdp, policy = self.mdp, self.policy
        evaluation = self.plan.evaluate(
            self.evaluator, policy, self.values, Precision(self.fine, self.coarse, self.sweeps)
        )
        first = backup(mdp, evaluation.values, policy)
        self.residual, greedy = first.residual, not evaluation.exact
        began = watch.seconds
        loss = loss_bound(mdp, first.residual, greedy)
        self.certificate_seconds += watch.seconds - began
        step = self._improve(evaluation, first)
        if self.method.uniform:
            self.best = Certified(evaluation.values, first.residual, step.actions, greedy)
        elif loss < self.best_loss:
            # Mixed depths may make a policy worse: what is certified is the policy that was evaluated.
            self.best = Certified(evaluation.values, first.residual, policy, greedy)
        changed = kernels.count_different(step.actions, policy)
        self.iterations += changed > 0
        self._judge(evaluation, loss, int(changed))
        self.values, self.policy = step.values, step.actions
        # As long as many actions change, knowing this policy's values well is wasted; once none does, it is all.
        self.coarse = (first.residual.high - first.residual.low) * min(1.0, 10.0 * changed / mdp.num_states)
        self.sweeps = math.ceil(3.0 * mdp.num_states / changed) if changed else MANY
        return self._record(evaluation, evaluation.sweeps * mdp.num_states, step, int(changed), loss, watch, True)

    def _improve(self, evaluation: Evaluation, first: Backup) -> Step:
        """Let the method look ahead, with thresholds that tell a gain from an error.

        Values that were evaluated roughly are taken as value iteration takes them: T v whole.
        """
        mdp, method, policy = self.mdp, self.method, self.policy
        rounding = rounding_bound(mdp, first.residual.size)
        if evaluation.exact:
            keep = 1.0 - mdp.discount * mdp.row_sums[1]
            error = (max(first.residual.own_high, -first.residual.own_low) + rounding) / keep
            switch, spread = 2.0 * error + rounding, (2.0 * error + rounding) / keep
        else:
            return Step(first.values, first.actions)

        def look(start: Backup) -> Lookahead:
            price = mdp.num_pairs + evaluation.sweeps * mdp.num_states
            return Lookahead(mdp, evaluation.values, policy, start, switch, spread, price)

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
        if loss < 0.9 * self.milestone:
            self.milestone, self.milestone_pass = loss, len(self.trace)
        elif isinstance(self.plan, RoughEvaluation) and len(self.trace) - self.milestone_pass > PATIENCE:
            self.plan = ExactEvaluation()
        self.best_loss = min(self.best_loss, loss)
        if loss <= self.tolerance:
            self.done = f"policy loss certified below {self.tolerance:g}"
        elif evaluation.exact and changed == 0:
            if self.fine > 0.0 and evaluation.way == "sweeps":
                self.fine = self.fine / 16.0 if self.fine > 1e-300 else 0.0
                floor = self.evaluator.floor(evaluation.values)
                if self.fine > floor / 16.0:
                    return
            self.done = "no action can be improved beyond the error of the values"
        elif isinstance(self.plan, NoEvaluation | FixedSweeps):
            change = max(self.residual.high, -self.residual.low)
            if change <= rounding_bound(self.mdp, self.residual.size):
                self.done = "values change by no more than rounding"

    def _uniform(self, depth: int) -> IntArray:
        """(S,) the same depth everywhere, without the memory for it."""
        if depth not in self.uniform_depths:
            self.uniform_depths[depth] = np.ndarray(
                self.mdp.num_states, np.uint16, np.array([depth], np.uint16), strides=(0,)
            )
        return self.uniform_depths[depth]

    def _keeps(self, passes: int) -> bool:
        """Whether the states of so many more passes are to be kept in the trace."""
        if self.keep_states is not None:
            return self.keep_states
        return (len(self.trace) + passes) * self.mdp.num_states * 14 <= KEPT_BYTES

    def _record(
        self, evaluation: Evaluation, swept: int, step: Step, changed: int, loss: float, watch: Watch, has_states: bool
    ) -> Iteration:
        mdp = self.mdp
        n = mdp.num_states
        cost = {"exact": swept, "simulated": horizon(mdp.discount) * n if evaluation.exact else swept}
        improvement = Improvement(self.counter, step.searches, step.wave_pairs)
        if isinstance(step.depth, np.ndarray):
            depth, deepest, mean = step.depth, int(step.depth.max()), float(step.depth.mean())
        else:
            depth, deepest, mean = self._uniform(step.depth), step.depth, float(step.depth)
        keep = has_states and self._keeps(1)
        if not keep and self.trace and self.trace[-1].values is not None:
            self.trace = [_without_states(item) for item in self.trace]
        iteration = Iteration(
            evaluation=evaluation.way,
            changed=changed,
            policy_loss=loss,
            max_depth=deepest,
            mean_depth=mean,
            queries=Queries(improvement, cost),
            seconds=watch.seconds,
            values=published(evaluation.values),
            policy=published(step.actions),
            depth=published(depth),
            fallback=self.fallback,
            answer=self.answer,
        )
        self.trace.append(iteration if keep else _without_states(iteration))
        return iteration

    def solution(self, status: Status, message: str, watch: Watch) -> Solution:
        """Certify what the last pass knew."""
        mdp = self.mdp
        began = watch.seconds
        best = self.best
        certificate = from_residual(mdp, published(best.values), best.residual, best.greedy)
        values = best.values
        if not certificate.low <= 0.0 <= certificate.high:
            values = values + 0.5 * (certificate.low + certificate.high)
        self.certificate_seconds += watch.seconds - began
        if status is Status.CONVERGED and certificate.policy_loss > self.tolerance > 0.0:
            message += f"; a loss below {self.tolerance:g} is more than float64 can certify here"
        self.answer.values = values
        return Solution(
            method=self.method.name,
            values=published(values),
            policy=published(best.policy),
            certificate=certificate,
            status=status,
            message=message,
            tolerance=self.tolerance,
            iterations=self.iterations,
            trace=tuple(self.trace),
            seconds=watch.seconds,
            certificate_seconds=self.certificate_seconds,
        )


def published(array: IntArrayOrFloat) -> IntArrayOrFloat:
    """A read-only view: what users see cannot be changed under the loop's feet, nor the trace after it."""
    view = array.view()
    view.flags.writeable = False
    return view


def _without_states(iteration: Iteration) -> Iteration:
    return replace(iteration, values=None, policy=None, depth=None)


def _check_arguments(
    mdp: Any, method: Any, tolerance: Any, max_iterations: Any, max_seconds: Any, on_iteration: Any
) -> None:
    if not isinstance(mdp, MDP):
        raise ModelError("solve got no model", expected="an al.MDP", got=type(mdp).__name__)
    if on_iteration is not None and not callable(on_iteration):
        raise ArgumentError(
            "on_iteration is no function", expected="a function of an Iteration", got=repr(on_iteration)
        )
    if isinstance(method, type) or not isinstance(method, Method):
        raise ArgumentError("solve got no method", expected="a method object, such as al.HPI(3)", got=repr(method))
    method.check(mdp.num_states)
    number = isinstance(tolerance, NUMBER) and not isinstance(tolerance, bool)
    if not number or not 0.0 <= float(tolerance) < math.inf:
        raise ArgumentError("tolerance is wrong", expected="a finite number >= 0", got=repr(tolerance))
    whole = isinstance(max_iterations, WHOLE) and not isinstance(max_iterations, bool)
    if max_iterations is not None and (not whole or max_iterations < 1):
        raise ArgumentError("max_iterations is wrong", expected="a whole number >= 1", got=repr(max_iterations))
    timed = isinstance(max_seconds, NUMBER) and not isinstance(max_seconds, bool)
    if max_seconds is not None and (not timed or not float(max_seconds) >= 0.0):
        raise ArgumentError("max_seconds is wrong", expected="a number >= 0", got=repr(max_seconds))
