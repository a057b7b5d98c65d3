"""The choice of a solver for evaluating a policy, exactly or only as well as it pays.

`ExactEvaluation` solves v = r_π + γ P_π v by the cheapest solver that suits the model: pointers on functional graphs;
otherwise sweeps, until their measured rate says that a factorisation or a Krylov solve is cheaper.
`AdaptiveEvaluation` evaluates only as well as the improvements to come are worth, and gives way to exact evaluation.

A solver is one file of this folder with a NAME; it is added here. The choice rests on operation counts, never on a
clock, so that one input gives one result.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning import threads
from adalook.planning.certificate import loss_bound, rounding_bound
from adalook.planning.evaluation import (
    acyclic,
    aggregation,
    banded,
    elimination,
    functional,
    in_place,
    krylov,
    lu,
    sweeps,
)
from adalook.planning.evaluation.base import Forecast, PassOutcome, PolicyEvaluation
from adalook.planning.evaluation.sweeps import PolicyRows, Swept, sweep, sweep_relaxed
from adalook.planning.lookahead.levels import backup

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

FIRST_SWEEPS = 24
"""Sweeps after which the rate of convergence is judged for the first time."""
MAX_EXACT_SWEEPS = 200_000
COARSE_SWEEPS, COARSE_RATE = 24, 0.8
"""Where more sweeps seem to be left than this, at a slower rate than this, groups of states are moved as one …"""
SMOOTHING_SWEEPS = 8
"""… and then swept so many times."""
COARSE_CHANCES = 3
"""Policies on which that may fail to pay before it is given up."""
COARSE_STATES = 500
"""Smaller models are swept, or factorised, before that pays."""
EXACT_ERROR = 1e-8
"""Exact values are good enough to certify such a loss, whatever the tolerance, or as good as rounding allows."""
SWEEP_ENTRY_COST = 2.0
"""Nanoseconds per stored probability of a sweep."""
PAIR_COST, ENTRY_COST = 1.5, 1.2
"""Nanoseconds of a backup per (state, action) and per stored probability."""

WAYS = (
    functional.NAME,
    acyclic.NAME,
    in_place.NAME,
    banded.NAME,
    lu.NAME,
    krylov.NAME,
    sweeps.NAME,
    aggregation.NAME,
)
"""What Auto chooses from; each can be asked for. Where one does not apply to a model, Auto goes on by sweeps."""
DIRECT_WAYS = (banded.NAME, lu.NAME, krylov.NAME)
"""Exact evaluation of a policy that was improved in place before."""
IN_PLACE, DIRECT = "in place", "direct"
CHEAP_DIRECT, MOST_CHEAP_DIRECT = 6.0, 40.0
"""A factorisation that costs no more than so many backups is not put off; up to the second where γ is near 1 …"""
CHEAP_SHARE = 0.04
"""… namely this share of 1/(1 − γ), as iteration in place takes the longer."""
DIRECT_PASSES = 5
"""Exact evaluations that are expected at first, of policies improved in place before each."""
MAX_IMPROVEMENTS = 6
"""Most rounds of improvement in place before an exact evaluation."""
CORE_PASSES = 200
"""Passes that the core of an acyclic model may take before the whole model is tackled otherwise."""
ORDER_COST, ORDER_LEAST = 60.0, 3e6
"""Backups that finding a narrow order of the states costs, about, and the least nanoseconds that it does."""
FIRST_BACKUPS = 25
"""Work in place, in backups, before its rate is judged."""
TRIAL_PASSES, TRIAL_SHARE = 4, 0.5
"""Sweeps are tried on a local model for so many passes, and for this share of what was spent in place."""
LOCAL_ROUNDS = 3
"""Rounds on a local model in which only the race between iteration in place and factorisations decides about these."""
FAIR_SHARE = 0.5
"""Iteration in place is not given up before it has cost so much of what factorisations are predicted to cost."""
SWITCH_FACTOR = 1.5
"""A way gives way to one that is predicted to be so much faster."""
LU_MAX_ENTRIES = 1e8
SLOW_SWEEPS = 2_000
"""Beyond this many predicted sweeps Krylov is tried."""

SWEPT_SHARE = 0.1
"""A partial evaluation stops at this share of what the improvements to come will change anyway …"""
SWEEPS_PER_CHANGE = 3.0
"""… or after this many sweeps per share of the states whose action changed."""
PARTIAL = "partial"
"""Stands in front of a solver's name where it was stopped early."""
PATIENCE = 100
"""Partial evaluation gives way to exact when so many rounds in a row have not taken a tenth off the loss."""


class ExactEvaluation:
    """Evaluates policies exactly, as policy iteration does: no tolerance on the loss makes this any looser."""

    def __init__(self, mdp: MDP, tolerance: float) -> None:
        self.mdp, self.tolerance = mdp, tolerance
        largest_value = mdp.largest_reward / (1.0 - mdp.discount)
        self._span_tol = self._span_for(min(tolerance, EXACT_ERROR, EXACT_ERROR * largest_value))
        """Span of a sweep's change at which values are exact."""
        self._functional = functional.FunctionalGraph(mdp)
        self._bandwidth: int | None = None
        self._fill = 0
        """Stored numbers of the last sparse factorisation."""
        self._lu_pays = False
        self._may_factorise = True
        self._coarse_sweeps, self._coarse_rate = COARSE_SWEEPS, COARSE_RATE
        self._coarse_chances = COARSE_CHANCES if mdp.num_states >= COARSE_STATES else 0
        self._stays = True
        """Whether some moves stay in place, so that sweeps are over-relaxed."""

    @cached_property
    def _entries(self) -> int:
        """About how many stored numbers a sweep reads."""
        return sweeps.sweep_entries(self.mdp)

    def _span_for(self, error: float) -> float:
        """Return the span of a sweep's change that is small enough to certify a loss of at most `error`."""
        return error * (1.0 - self.mdp.discount) / 3.0

    def evaluate(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Follow pointers where that solves it, otherwise iterate until values are exact, or as far as float64 goes."""
        solved = self._functional.solve(policy)
        if solved is not None:
            return PolicyEvaluation(solved, policy, functional.NAME, len(policy), exact=True)
        return self._iterate(policy, values, max(self._span_tol, self._span_floor(values)))

    def finished(self, evaluation: PolicyEvaluation, outcome: PassOutcome) -> str:
        """Stop when no action changes and the values cannot be known better; sweeps may first be asked for more."""
        if outcome.changed or not evaluation.exact:
            return ""
        if self._span_tol > 0.0 and evaluation.solver == sweeps.NAME:
            self._span_tol = self._span_tol / 16.0 if self._span_tol > 1e-300 else 0.0
            if self._span_tol > self._span_floor(evaluation.values) / 16.0:
                return ""
        return "no action can be improved beyond the error of the values"

    def _span_floor(self, values: FloatArray) -> float:
        """Return the span of a sweep's change below which there is only rounding."""
        size = self.mdp.largest_reward + 2.0 * float(np.abs(values).max())
        return self.mdp.rounding_terms * 2.0**-53 * size

    def _iterate(self, policy: IntArray, start: FloatArray, span_tol: float) -> PolicyEvaluation:
        """Sweep, unless the measured rate says that a direct or a Krylov solve is cheaper."""
        n, rows, done = self.mdp.num_states, PolicyRows.of(self.mdp, policy), [sweeps.NAME]
        if self._lu_pays:
            return PolicyEvaluation(self._factorise(rows), policy, lu.NAME, n, exact=True)
        if self._entries >= threads.MIN_ENTRIES:
            rows = rows.side_by_side()
        relax = self._relaxation(rows)
        values, count, reached, rate = self._sweep(rows, start, FIRST_SWEEPS, span_tol, relax)
        krylov_tried, corrected = False, math.inf
        while reached > span_tol and count < MAX_EXACT_SWEEPS:
            left = _sweeps_left(reached, span_tol, rate)
            slow = left > self._coarse_sweeps and rate > self._coarse_rate
            if slow and self._coarse_chances and corrected > 0.0:
                coarse = aggregation.correct(rows, values, relax)
                swept = self._sweep(rows, coarse, SMOOTHING_SWEEPS, span_tol, relax)
                count += swept.sweeps + aggregation.SWEEPS
                then = _sweeps_left(swept.span, span_tol, swept.rate)
                if reached < 0.5 * corrected and then + SMOOTHING_SWEEPS < left:
                    corrected, left = reached, then
                    values, reached, rate = swept.values, swept.span, swept.rate
                    done += [] if aggregation.NAME in done else [aggregation.NAME]
                else:
                    corrected = 0.0
                    self._coarse_chances -= 1
            if self._may_factorise and self._lu_beats(left, rows):
                self._lu_pays = True
                solver = ", then ".join([*done, lu.NAME])
                return PolicyEvaluation(self._factorise(rows), policy, solver, (count + 1) * n, exact=True)
            if left > SLOW_SWEEPS and not krylov_tried:
                krylov_tried = True
                better, products = krylov.solve_by_bicgstab(rows, values, span_tol)
                count += products
                if better is not None:
                    values = better
                    done.append(krylov.NAME)
            more = int(min(max(left * 0.5, FIRST_SWEEPS), 1_000))
            previous = reached
            values, made, reached, rate = self._sweep(rows, values, more, span_tol, relax)
            count += made
            if reached >= previous and rate >= 1.0:
                break  # rounding is all that is left
        return PolicyEvaluation(values, policy, ", then ".join(done), count * n, exact=True)

    def _sweep(self, rows: PolicyRows, start: FloatArray, count: int, span_tol: float, relax: FloatArray) -> Swept:
        """Sweep at most about `count` times, over-relaxed where that pays."""
        if len(relax):
            return sweep_relaxed(rows, start, count, span_tol, self._entries, relax)
        return sweep(rows, start, count, span_tol, self._entries)

    def _relaxation(self, rows: PolicyRows) -> FloatArray:
        """Return the factors of over-relaxed sweeps, none once a policy was seen under which no state stays."""
        if not self._stays:
            return sweeps.NO_RELAXATION
        relax = sweeps.relaxation(rows)
        self._stays = len(relax) > 0
        return relax

    def _factorise(self, rows: PolicyRows) -> FloatArray:
        """Solve by a sparse factorisation, and remember how much it filled up: that is what another one costs."""
        values, self._fill = lu.solve_by_lu(rows)
        return values

    def _sparse_cost(self) -> float:
        """Return the nanoseconds of a sparse factorisation: by the last one, or by the bandwidth."""
        n = self.mdp.num_states
        if self._fill:
            return self._fill * (60.0 + 2.5 * self._fill / n)
        width = n if self._bandwidth is None else min(self._bandwidth, n)
        return sparse_cost(n, width) if n * width <= LU_MAX_ENTRIES else math.inf

    def _lu_beats(self, sweeps_left: float, rows: PolicyRows) -> bool:
        """Return whether a banded factorisation would cost less than the sweeps that seem to be left."""
        gain = sweeps_left * self._entries * SWEEP_ENTRY_COST
        if self._bandwidth is None:
            if gain < max(2.0 * ORDER_LEAST, 100.0 * self._entries):  # finding the bandwidth costs about as much
                return False
            self._bandwidth = lu.bandwidth(rows)
        return self._sparse_cost() < gain


class AdaptiveEvaluation(ExactEvaluation):
    """Chooses before every pass the way to go on that is predicted to cost least; see the module.

    Functional graphs are evaluated by pointers, acyclic models in one backward pass. Elsewhere there is a choice
    between partial evaluation (in place on local models, by sweeps with eliminating backups on others) and exact
    evaluation by a factorisation, of a policy that is improved in place before.
    """

    def __init__(self, mdp: MDP, tolerance: float, *, way: str | None = None) -> None:
        super().__init__(mdp, tolerance)
        self._way = way
        self._partial = tolerance > 0.0
        """Whether anything but exact evaluation still makes progress."""
        self._pointers = way == functional.NAME or (way is None and functional.suits(mdp))
        self._eliminating: elimination.EliminatingBackups | None = None
        self._rounds = 0
        self._milestone = (math.inf, 0)
        """The loss when it last fell by a tenth, and the rounds it had taken."""
        self._direct = 0.0
        """Predicted nanoseconds of a factorisation."""
        self._trial = SweepTrial(tolerance)
        if way == aggregation.NAME:
            self._coarse_sweeps, self._coarse_rate, self._coarse_chances = 0, 0.0, MAX_EXACT_SWEEPS

    @cached_property
    def _local(self) -> bool:
        """Whether to iterate in place: what is never asked on functional graphs need not be known."""
        return self._way == in_place.NAME or (self._way is None and in_place.is_local(self.mdp))

    @cached_property
    def _race(self) -> Race:
        return Race(self.mdp, self.tolerance)

    def evaluate(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Take the way that is predicted to cost least."""
        self._partial = self._partial and not (last and self._stalled(last))
        if not self._partial:
            self._may_factorise = True  # the race is over
            return super().evaluate(policy, values, last)
        self._rounds += 1
        if self._pointers:
            solved = self._functional.solve(policy)
            if solved is not None:
                return PolicyEvaluation(solved, policy, functional.NAME, len(policy), exact=True)
        if last is None and self._way in (None, acyclic.NAME):
            solution = self._backward_pass(policy)
            if solution is not None:
                return solution
        too_wide = (
            self._way == banded.NAME
            and self._banded_cost(banded.bandwidths(PolicyRows.of(self.mdp, policy))) == math.inf
        )
        if self._way in DIRECT_WAYS and not too_wide:
            return self._direct_pass(policy, values, "as asked for")
        if self._local and not self._trial.won(last):
            return self._local_pass(policy, values, last)
        return self._sweeps_pass(policy, values, last)

    def _too_wide(self, policy: IntArray) -> bool:
        """Return whether banded elimination is asked for, of a band that is too wide to be stored."""
        rows = PolicyRows.of(self.mdp, policy)
        return self._way == banded.NAME and self._banded_cost(banded.bandwidths(rows)) == math.inf

    def _stalled(self, last: PassOutcome) -> bool:
        """Return whether only rounding is left, or the loss has not fallen by a tenth for many rounds."""
        loss, since = self._milestone
        if last.policy_loss < 0.9 * loss:
            self._milestone = (last.policy_loss, self._rounds)
        elif self._rounds - since > PATIENCE:
            return True
        if self._pointers or not self._local:
            return False
        return last.residual.span <= 4.0 * rounding_bound(self.mdp, last.residual.size)

    def _backward_pass(self, policy: IntArray) -> PolicyEvaluation | None:
        """Solve an acyclic model, its core first; None where there is no acyclic part worth it."""
        peeled = acyclic.peel(self.mdp, 1.0 if self._way else acyclic.MAX_CORE)
        if peeled is None:
            return None
        n, policy, values = self.mdp.num_states, policy.copy(), np.zeros(self.mdp.num_states)
        if len(peeled.core):
            core = acyclic.core_model(self.mdp, peeled.core)
            values[peeled.core], policy[peeled.core] = _solve_core(core, policy[peeled.core], 0.1 * self.tolerance)
        acyclic.back_up_in_order(self.mdp, peeled.order, values, policy)
        reason = f"no cycle leads to {len(peeled.order):,} of {n:,} states"
        forecast = Forecast(self._race.backup_cost * 1e-9, reason)
        return PolicyEvaluation(values, policy, acyclic.NAME, n, exact=False, backups=1, forecast=forecast)

    def _sweeps_pass(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Sweep as often as the improvements to come are worth, then back up what may be the best."""
        if self._eliminating is None and elimination.pays(self.mdp):
            self._eliminating = elimination.EliminatingBackups(self.mdp)
        self._may_factorise = not self._local or self._rounds > LOCAL_ROUNDS  # until then the race decides
        evaluation = self._some_sweeps(policy, values, last)
        if self._eliminating is None:
            last_backup, looked_at = backup(self.mdp, evaluation.values, policy), 1.0
        else:
            last_backup = self._eliminating.backup(evaluation.values, policy)
            looked_at = self._eliminating.pairs / self.mdp.num_pairs
        self._trial.paid(evaluation.swept * self._race.state_cost + looked_at * self._race.backup_cost)
        return evaluation._replace(last_backup=last_backup)

    def _local_pass(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Go on in place or by exact evaluation, whichever is predicted to end sooner."""
        race, mdp = self._race, self.mdp
        self._direct = math.inf if self._way else self._direct_cost(PolicyRows.of(mdp, policy))
        way, reason = race.choose(self._direct, last)
        if way == DIRECT:
            return self._direct_pass(policy, values, reason)
        if last is not None and self._way is None and self._trial.begins(last.policy_loss, race):
            return self._sweeps_pass(policy, values, last)
        partial_span = min(last.residual.span, mdp.largest_reward) if last else mdp.largest_reward
        work = race.work_allowed()
        result = in_place.iterate_in_place(
            mdp, values, policy, self.tolerance, partial_span, work, from_scratch=last is None
        )
        self._rounds += result.rounds - 1
        predicted = race.predicted(work)
        race.paid(IN_PLACE, result.backups * race.backup_cost + result.swept * race.state_cost)
        return PolicyEvaluation(
            result.values,
            result.policy,
            in_place.NAME,
            result.swept,
            exact=False,
            backups=result.backups,
            last_backup=result.last_backup,
            forecast=Forecast(predicted * 1e-9, reason),
        )

    def _direct_pass(self, policy: IntArray, values: FloatArray, reason: str) -> PolicyEvaluation:
        """Improve the policy in place for as long as a factorisation takes, then evaluate it exactly."""
        race, mdp = self._race, self.mdp
        rounds = max(1, min(MAX_IMPROVEMENTS, int(self._direct / (2.0 * race.backup_cost))))
        policy, done = in_place.improve_in_place(mdp, values, policy, rounds)
        solved, solver = self._solve_directly(PolicyRows.of(mdp, policy), values)
        cost = self._direct + 2 * done * race.backup_cost
        race.paid(DIRECT, cost)
        forecast = Forecast(cost * 1e-9, reason)
        return PolicyEvaluation(solved, policy, solver, mdp.num_states, exact=True, backups=2 * done, forecast=forecast)

    def _direct_cost(self, rows: PolicyRows) -> float:
        """Return the nanoseconds of the cheapest factorisation; infinite where none is affordable."""
        banded_too = self._banded_cost(banded.bandwidths(rows))
        if self._rounds == 1:  # the first policy may be narrower than those to come
            return max(banded_too, self._banded_cost(banded.widest_bandwidths(self.mdp)))
        if self._bandwidth is None:
            order = max(ORDER_LEAST, ORDER_COST * self._race.backup_cost)
            if banded_too <= order or self._race.spent(IN_PLACE) <= order:
                return banded_too  # finding an order for a sparse factorisation would cost as much
            self._bandwidth = lu.bandwidth(rows)
        return min(banded_too, self._sparse_cost())

    def _banded_cost(self, bandwidths: tuple[int, int]) -> float:
        """Return the nanoseconds of a banded elimination; infinite where the band is too wide to be stored."""
        n, (lower, upper) = self.mdp.num_states, bandwidths
        return banded_cost(n, lower, upper) if n * (lower + upper + 1) <= banded.MAX_ENTRIES else math.inf

    def _solve_directly(self, rows: PolicyRows, values: FloatArray) -> tuple[FloatArray, str]:
        """Return a policy's values by the cheaper factorisation, or by what is asked for, and its name."""
        if self._way == krylov.NAME:
            solved, _ = krylov.solve_by_bicgstab(rows, values, max(self._span_tol, self._span_floor(values)))
            if solved is not None:
                return solved, krylov.NAME
        cost = self._banded_cost(banded.bandwidths(rows))
        known = self._bandwidth is not None and self._sparse_cost() < cost
        if self._way == lu.NAME or (self._way != banded.NAME and known) or cost == math.inf:
            return self._factorise(rows), lu.NAME
        return banded.solve_banded(rows, *banded.bandwidths(rows)), banded.NAME

    def _some_sweeps(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Sweep a few times while many actions change: knowing this policy's values well would be wasted.

        Once none changes, they are all that is left to know.
        """
        mdp = self.mdp
        partial_span, max_sweeps = mdp.largest_reward, 1.0
        if last is not None:
            n, changed = mdp.num_states, last.changed
            partial_span = last.residual.span * min(1.0, 10.0 * changed / n)
            max_sweeps = math.ceil(SWEEPS_PER_CHANGE * n / changed) if changed else math.inf
        floor = self._span_floor(values)
        span_tol = max(self._span_for(self.tolerance), SWEPT_SHARE * partial_span, floor)
        if max_sweeps >= FIRST_SWEEPS or self._lu_pays or (self._way == aggregation.NAME and last is not None):
            result = self._iterate(policy, values, span_tol)
            exact = self._lu_pays or span_tol <= floor
            return result._replace(exact=exact, solver=result.solver if exact else f"{PARTIAL} {result.solver}")
        rows = PolicyRows.of(mdp, policy)
        if self._entries >= threads.MIN_ENTRIES and max_sweeps > 2:
            rows = rows.side_by_side()
        relax = self._relaxation(rows) if max_sweeps > 2 else sweeps.NO_RELAXATION
        swept = self._sweep(rows, values, int(max_sweeps), span_tol, relax)
        solver = f"{PARTIAL} {sweeps.NAME}"
        return PolicyEvaluation(swept.values, policy, solver, swept.sweeps * mdp.num_states, exact=False)


def _sweeps_left(span: float, span_tol: float, rate: float) -> float:
    """Return how many sweeps take a span to its tolerance at this rate."""
    if span <= span_tol:
        return 0.0
    share = span_tol / span  # zero where both are denormal
    return math.log(share) / math.log(rate) if 0.0 < rate < 1.0 and share > 0.0 else MAX_EXACT_SWEEPS


def _solve_core(core: MDP, policy: IntArray, tolerance: float) -> tuple[FloatArray, IntArray]:
    """Return values and a policy of a model within the tolerance, or as good as `CORE_PASSES` made them."""
    evaluator, last = AdaptiveEvaluation(core, tolerance), None
    values: FloatArray = np.zeros(core.num_states)
    for _ in range(CORE_PASSES):
        evaluation = evaluator.evaluate(policy, values, last)
        first = evaluation.last_backup or backup(core, evaluation.values, evaluation.policy)
        loss = loss_bound(core, first.residual, greedy=not evaluation.exact)
        last = PassOutcome(first.residual, int(np.count_nonzero(first.actions != policy)), loss)
        values, policy = first.values, first.actions
        if loss <= tolerance:
            break
    return values, policy


def banded_cost(num_states: int, lower: int, upper: int) -> float:
    """Return the nanoseconds of a banded elimination, as measured."""
    return num_states * (50.0 + 6.0 * (lower + upper + 1) + 0.28 * lower * upper)


def sparse_cost(num_states: int, width: int) -> float:
    """Return the nanoseconds of a sparse factorisation, about, from the bandwidth w after reordering.

    Nested separators of size w cost w³: little on a grid, where w³ = S^1.5, and S² on a cube.
    """
    return num_states * (1_000.0 + 8.0 * width) + 3.0 * width**3


class SweepTrial:
    """Some passes of sweeps on a local model that iteration in place did not solve at once: the faster goes on."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._passes = TRIAL_PASSES
        self._start = math.inf
        self._cost = 0.0
        self._budget = 0.0
        self._rival = 0.0
        """Predicted nanoseconds left in place."""
        self._won = False
        self.running = False
        """Whether the trial has begun and is not decided."""

    def begins(self, loss: float, race: Race) -> bool:
        """Return whether to try sweeps now: once the rate in place is known, unless that is predicted to end soon."""
        if self._passes < TRIAL_PASSES or race.in_place_passes < 2 or race.left <= race.spent(IN_PLACE):
            return False
        self._start, self._rival, self.running = loss, race.left, True
        self._budget = TRIAL_SHARE * race.spent(IN_PLACE)
        return True

    def paid(self, cost: float) -> None:
        """Book a pass of sweeps."""
        self._passes -= 1
        self._cost += cost

    def won(self, last: PassOutcome | None) -> bool:
        """Return whether sweeps go on: during the trial, and after it if they are predicted to end sooner."""
        if last is None or self._passes == TRIAL_PASSES:
            return False
        if self.running and self._passes <= 0 and self._cost >= self._budget:
            known = 0.0 < last.policy_loss < self._start
            fell = math.log(self._start / last.policy_loss) if known else 0.0
            to_go = math.log(max(1.0, last.policy_loss / self._tolerance))
            self._won = fell > 0.0 and self._cost * to_go / fell < self._rival
            self.running = False
        return self._won or self.running


class Race:
    """Two ways to go on, in place and direct, with what each has cost and is predicted to cost: the lower goes next.

    What is left in place follows from the measured rate, how far the loss fell per nanosecond. A direct way is given
    `DIRECT_PASSES` at first; when these are used up without success, it is expected to need as many again. So a wrong
    guess costs a constant factor at most.
    """

    def __init__(self, mdp: MDP, tolerance: float) -> None:
        self._tolerance = tolerance
        rows = mdp.rows
        entries = mdp.num_pairs * (len(rows.indices) / rows.num_rows if rows.num_rows else 1.0)
        self.backup_cost = PAIR_COST * mdp.num_pairs + ENTRY_COST * entries
        """Nanoseconds of one backup of every state."""
        self.state_cost = PAIR_COST + ENTRY_COST * max(1, mdp.longest_row)
        """Nanoseconds of one state's update in a sweep."""
        self._cheap_direct = min(MOST_CHEAP_DIRECT, max(CHEAP_DIRECT, CHEAP_SHARE / (1.0 - mdp.discount)))
        self._spent = {IN_PLACE: 0.0, DIRECT: 0.0}
        self._passes = 0
        self.in_place_passes = 0
        self._loss = math.inf
        self._paid = 0.0
        self.left = math.inf
        """Predicted nanoseconds left in place."""
        self._way = ""

    def spent(self, way: str) -> float:
        """Return the nanoseconds that a way has cost so far."""
        return self._spent[way]

    def paid(self, way: str, cost: float) -> None:
        """Book what a pass has cost, by its operation counts."""
        self._spent[way] += cost
        self._paid = cost
        self._passes += way == DIRECT
        self.in_place_passes += way == IN_PLACE

    def predicted(self, work: int) -> float:
        """Return the nanoseconds that a pass in place may take."""
        return min(self.left, work * self.state_cost)

    def work_allowed(self) -> int:
        """Return the states to visit in place before the choice is made again."""
        budget = max(FIRST_BACKUPS * self.backup_cost, self._spent[IN_PLACE])
        return int(min(in_place.MAX_WORK, budget / self.state_cost))

    def _direct_left(self, direct: float) -> float:
        """Return the nanoseconds that the direct way is predicted to take until the end."""
        passes = DIRECT_PASSES
        while passes <= self._passes:
            passes *= 2
        return (passes - self._passes) * (direct + 3.0 * self.backup_cost)

    def choose(self, direct: float, last: PassOutcome | None) -> tuple[str, str]:
        """Return the way to go on, and why."""
        if last is None:
            if direct <= self._cheap_direct * self.backup_cost:
                self._way = DIRECT
                return DIRECT, f"a factorisation costs as much as {direct / self.backup_cost:.1f} backups"
            self._way = IN_PLACE
            return IN_PLACE, "transitions are local, and a factorisation is dear"
        if self._way == IN_PLACE:
            known = 0.0 < last.policy_loss < self._loss < math.inf
            fell = math.log(self._loss / last.policy_loss) if known else 0.0
            to_go = math.log(max(1.0, last.policy_loss / self._tolerance))
            self.left = self._paid * to_go / fell if fell > 0.0 else math.inf
        self._loss = last.policy_loss
        left = self._direct_left(direct)
        slower = SWITCH_FACTOR * (left if self._way == IN_PLACE else self.left)
        if self._way == IN_PLACE and slower < self.left and self._spent[IN_PLACE] >= FAIR_SHARE * left:
            self._way = DIRECT
            return DIRECT, f"in place would take {_seconds(self.left)} more, factorisations {_seconds(left)}"
        if self._way == DIRECT and slower < left:
            self._way = IN_PLACE
            return IN_PLACE, f"factorisations would take {_seconds(left)} more, in place {_seconds(self.left)}"
        return self._way, f"still predicted to be the fastest: {_seconds(min(left, self.left))} more"


def _seconds(nanoseconds: float) -> str:
    return f"{nanoseconds * 1e-9:.2g} s"
