"""The choice of a solver for evaluating a policy, exactly or only as well as it pays.

`ExactEvaluation` solves v = r_π + γ P_π v by the cheapest solver that suits the model: pointers on functional graphs;
otherwise sweeps, until their measured rate says that a factorisation or a Krylov solve is cheaper.
`AdaptiveEvaluation` evaluates only as well as the improvements to come are worth, and gives way to exact evaluation.

A solver is one file of this folder, or of `linear`, with a NAME; it is added here. What each is predicted to cost, by
operation counts and never by a clock, and who goes on is in `contest`.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning import threads
from adalook.planning.certificate import loss_bound, rounding_bound
from adalook.planning.evaluation import aggregation, elimination, extrapolation, functional, in_place, padded, sweeps
from adalook.planning.evaluation.base import Forecast, PassOutcome, PolicyEvaluation
from adalook.planning.evaluation.contest import (
    CLEARLY,
    COMPARED_SWEEPS,
    DIRECT,
    FAIR_SHARE,
    IN_PLACE,
    LEAST_BACKUPS,
    SWEEPS,
    SWITCH_FACTOR,
    Contest,
    banded_cost,
    first_direct_cost,
    known_costs,
    sparse_cost,
)
from adalook.planning.evaluation.linear import banded, krylov, lu
from adalook.planning.evaluation.ordered import acyclic, components, marching, renewal
from adalook.planning.evaluation.padded import NO_MOVES, NO_ROWS, MoveTable, PaddedRows, copy_rows
from adalook.planning.evaluation.sweeps import PolicyRows, Swept, sweep
from adalook.planning.lookahead import kernels
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
SOLVERS = (
    functional.NAME,
    acyclic.NAME,
    renewal.NAME,
    components.NAME,
    in_place.NAME,
    marching.NAME,
    banded.NAME,
    lu.NAME,
    krylov.NAME,
    sweeps.NAME,
    aggregation.NAME,
)
"""What Auto chooses from; each can be asked for. Where one does not apply to a model, Auto goes on by sweeps."""
DIRECT_SOLVERS = (banded.NAME, lu.NAME, krylov.NAME)
"""Exact evaluation of a policy that was improved in place before."""
AS_ASKED = "as asked for"
PARTS_REASON = "what is left for good is solved first"
IN_A_ROW = 2
"""Factorisations in a row that change no fewer actions than the one before until states are gone through in order."""
MAX_IMPROVEMENTS = 6
"""Most rounds of improvement in place before an exact evaluation."""
CORE_COST, SAVED_BACKUPS = 1.5e5, 10.0
"""Nanoseconds, at least, to make a model of the core of an acyclic one and to solve it, and backups of the other states
that this saves: of smaller models the core is not solved apart."""
CORE_PASSES = 200
"""Passes that the core of an acyclic model may take before the whole model is tackled otherwise."""
ORDER_COST, ORDER_LEAST = 100.0, 2e4
"""Nanoseconds per state that finding the size of separators takes, about, and the least that it does."""
COMPONENTS_SHARE, TRIED_SHARE = 4.0, 0.5
"""Components are looked for once the solver at work is predicted to take so many times what finding them does, and has
cost so much of it."""
TRIED_SWEEPS = 2 * (extrapolation.WINDOW + 1) + 1
"""Sweeps at once that are judged: two cycles with their extrapolation, of which one may be lucky."""
LU_MAX_ENTRIES = 1e8
SLOW_SWEEPS = 2_000
"""Beyond this many predicted sweeps Krylov is tried."""
SWEPT_SHARE = 0.1
"""A partial evaluation stops at this share of what the improvements to come will change anyway …"""
SWEEPS_PER_CHANGE = 3.0
"""… or after this many sweeps per share of the states whose action changed."""
NEAR_ROUNDING = 4.0
"""Changes below so many times what rounding makes them are neither extrapolated nor corrected."""
MOST_RISE = 2.5
"""A correction after which sweeps change values by more than so many times what they did is not kept."""
PARTIAL = "partial"
"""Stands in front of a solver's name where it was stopped early."""
UNKNOWN = -1
PATIENCE = 100
"""Partial evaluation gives way to exact when so many rounds in a row have not taken a tenth off the loss."""


class ExactEvaluation:
    """Evaluates policies exactly, as policy iteration does: no tolerance on the loss makes this any looser."""

    def __init__(self, mdp: MDP, tolerance: float) -> None:
        self.mdp, self.tolerance = mdp, tolerance
        self._costs = known_costs(mdp)
        self._pads = padded.suits(mdp)
        self._entries = sweeps.sweep_entries(mdp)
        """About how many stored numbers a sweep reads."""
        largest_value = mdp.largest_reward / (1.0 - mdp.discount)
        self._span_tol = self._span_for(min(tolerance, EXACT_ERROR, EXACT_ERROR * largest_value))
        """Span of a sweep's change at which values are exact."""
        self._separator: int | None = None
        self._fill = 0
        """Stored numbers of the last sparse factorisation."""
        self._lu_pays = False
        """Whether policies are factorised from now on."""
        self._coarse_sweeps, self._coarse_rate = COARSE_SWEEPS, COARSE_RATE
        self._coarse_chances = COARSE_CHANCES if mdp.num_states >= COARSE_STATES else 0

    @cached_property
    def _functional(self) -> functional.FunctionalGraph:
        return functional.FunctionalGraph(self.mdp)

    @cached_property
    def _padded(self) -> PaddedRows:
        """Copies of the rows of the last policy that was swept, padded where that pays."""
        return PaddedRows.empty(self.mdp) if self._pads else NO_ROWS

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
        largest = max(float(values.max()), -float(values.min()))
        size = self.mdp.largest_reward + 2.0 * largest
        return self.mdp.rounding_terms * 2.0**-53 * size

    def _iterate(
        self,
        policy: IntArray,
        start: FloatArray,
        span_tol: float,
        most: float = MAX_EXACT_SWEEPS,
        *,
        may_factorise: bool = True,
    ) -> PolicyEvaluation:
        """Sweep at most about `most` times, unless the measured rate says that a direct or Krylov solve is cheaper."""
        n, done = self.mdp.num_states, [sweeps.NAME]
        if self._lu_pays:
            return PolicyEvaluation(self._factorise(PolicyRows.of(self.mdp, policy)), policy, lu.NAME, n, exact=True)
        rows = self._rows_to_sweep(policy)
        values, count, reached, rate = self._sweep(policy, rows, start, FIRST_SWEEPS, span_tol)
        floor = self._span_floor(values)
        krylov_tried, corrected = False, math.inf
        while reached > span_tol and count < most:
            left = _sweeps_left(reached, span_tol, rate)
            slow = left > self._coarse_sweeps and rate > self._coarse_rate and corrected > 0.0
            if slow and self._coarse_chances and reached > NEAR_ROUNDING * floor:
                coarse = aggregation.correct(rows, values)
                swept = self._sweep(policy, rows, coarse, SMOOTHING_SWEEPS, span_tol)
                count += swept.sweeps + aggregation.SWEEPS
                then = _sweeps_left(swept.span, span_tol, swept.rate)
                if swept.span < MOST_RISE * reached and reached < 0.5 * corrected and then + SMOOTHING_SWEEPS < left:
                    corrected, left = reached, then
                    values, reached, rate = swept.values, swept.span, swept.rate
                    done += [] if aggregation.NAME in done else [aggregation.NAME]
                else:
                    corrected = 0.0
                    self._coarse_chances -= 1
            if may_factorise and self._lu_beats(left, rows):
                self._lu_pays = True
                solver = ", then ".join([*done, lu.NAME])
                return PolicyEvaluation(self._factorise(rows), policy, solver, (count + 1) * n, exact=True)
            if min(left, most) > SLOW_SWEEPS and not krylov_tried:
                krylov_tried = True
                steps = int(min(krylov.MAX_STEPS, most / 2))
                better, products = krylov.solve_by_bicgstab(rows, values, span_tol, steps)
                count += products
                if better is not None:
                    values = better
                    done.append(krylov.NAME)
            more = int(min(max(left * 0.5, FIRST_SWEEPS), 1_000, max(1.0, most - count)))
            previous = reached
            values, made, reached, rate = self._sweep(
                policy, rows, values, more, span_tol, extrapolating=reached > NEAR_ROUNDING * floor
            )
            count += made
            if reached >= previous and rate >= 1.0:
                break  # rounding is all that is left
        stopped = reached > span_tol and count >= most and most < MAX_EXACT_SWEEPS
        return PolicyEvaluation(values, policy, ", then ".join(done), count * n, exact=not stopped)

    def _rows_to_sweep(self, policy: IntArray) -> PolicyRows:
        """Return a policy's rows, side by side where sweeps read more than a cache holds, unless they are padded."""
        rows = PolicyRows.of(self.mdp, policy)
        return rows.side_by_side() if self._entries >= threads.MIN_ENTRIES and not self._pads else rows

    def _sweep(
        self,
        policy: IntArray,
        rows: PolicyRows,
        start: FloatArray,
        count: int,
        span_tol: float,
        *,
        extrapolating: bool = True,
    ) -> Swept:
        """Sweep a policy, which has these rows, at most `count` times; from copies of them where that pays."""
        copies = NO_ROWS
        if self._pads and count >= sweeps.PADDED_SWEEPS:
            copies = self._padded
            copy_rows(self.mdp.arrays, policy, copies)
        return sweep(rows, start, count, span_tol, self._entries, extrapolating=extrapolating, padded=copies)

    def _factorise(self, rows: PolicyRows) -> FloatArray:
        """Solve by a sparse factorisation, and remember how much it filled up: that is what another one costs."""
        values, self._fill = lu.solve_by_lu(rows)
        return values

    def _sparse_cost(self) -> float:
        """Return the nanoseconds of a sparse factorisation: by the last one, or by the size of separators."""
        n = self.mdp.num_states
        if self._fill:
            return 500.0 * n + 80.0 * self._fill
        width = n if self._separator is None else min(self._separator, n)
        return sparse_cost(n, width) if n * width <= LU_MAX_ENTRIES else math.inf

    def _lu_beats(self, sweeps_left: float, rows: PolicyRows) -> bool:
        """Return whether a sparse factorisation would cost less than the sweeps that seem to be left."""
        gain = sweeps_left * self._costs.sweep
        if self._separator is None:
            if gain < max(2.0 * ORDER_LEAST, 100.0 * self._entries):  # finding out costs about as much
                return False
            self._separator = lu.separator_size(rows)
        return self._sparse_cost() < gain


class AdaptiveEvaluation(ExactEvaluation):
    """Chooses before every pass the solver that is predicted to cost least until the end; see the module.

    Functional graphs are evaluated by pointers, acyclic models in one backward pass. Elsewhere there is a contest
    between partial evaluation, in place or by sweeps with eliminating backups, and exact evaluation by a factorisation
    of a policy that is improved in place before.
    """

    def __init__(self, mdp: MDP, tolerance: float, *, solver: str | None = None, may_be_local: bool = True) -> None:
        super().__init__(mdp, tolerance)
        self._solver, self._may_be_local = solver, may_be_local
        self._partial = tolerance > 0.0
        """Whether anything but exact evaluation still makes progress."""
        self._pointers = solver == functional.NAME or (solver is None and functional.suits(mdp))
        self._eliminating: elimination.EliminatingBackups | None = None
        small = mdp.num_pairs + len(mdp.rows.indices) < threads.MIN_ENTRIES
        self._may_loop = small and solver in (None, sweeps.NAME)
        """Whether sweeps and backups may go on in one compiled loop …"""
        self._in_one_loop = self._may_loop
        """… and do, as no policy takes many sweeps of late."""
        self._first_policy: IntArray = np.empty(0, np.int32)
        """(S,) the policy to begin with, and to begin anew with."""
        self._rounds = 0
        self._sweeps = 0
        """Sweeps at once that were made of all policies."""
        self._unsettled = UNKNOWN
        """States whose action changed in the last round of improvement."""
        self._direct_due = 0.0
        """Costs at which the price of a factorisation is found out again."""
        self._milestone = (math.inf, 0)
        """The loss when it last fell by a tenth, and the rounds it had taken."""
        self._components_due = mdp.num_states >= components.LEAST_STATES or solver == components.NAME
        """Whether it is not known yet if a model falls into components."""
        self._front = (UNKNOWN, 0)
        """Actions that the last factorisation changed, and how many in a row have changed no fewer than before."""
        self._march_due = True
        """Whether none was begun yet."""
        self._march: marching.March | None = None
        """The march that goes on in the next pass."""
        self._given_up = ""
        """What was begun since the last pass and came to nothing, for the trace."""
        if solver == aggregation.NAME:
            self._coarse_sweeps, self._coarse_rate, self._coarse_chances = 0, 0.0, MAX_EXACT_SWEEPS

    @property
    def _in_place(self) -> bool:
        """Whether to iterate in place: what is never asked on functional graphs need not be known.

        The core of a model in which that does not pay is not asked: it looks more local than it is.
        """
        suits = self._solver is None and self._may_be_local and in_place.suits(self.mdp)
        return self._solver == in_place.NAME or suits

    @cached_property
    def _moves(self) -> MoveTable:
        return padded.move_table(self.mdp)

    @cached_property
    def _contest(self) -> Contest:
        """The contest, made when it is first asked: functional graphs need none."""
        return Contest(self.mdp, self.tolerance, self._costs)

    def evaluate(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Take the solver that is predicted to cost least."""
        self._partial = self._partial and not (last and self._stalled(last))
        if not self._partial:
            return super().evaluate(policy, values, last)
        self._rounds += 1
        if self._pointers:
            solved = self._functional.solve(policy)
            if solved is not None:
                return PolicyEvaluation(solved, policy, functional.NAME, len(policy), exact=True)
        if last is None and self._solver in (None, acyclic.NAME):
            solution = self._backward_pass(policy)
            if solution is not None:
                return solution
        if last is None and self._solver in (None, renewal.NAME):
            solution = self._renewal_pass()
            if solution is not None:
                return solution
        if self._solver is None:
            return self._cheapest_pass(policy, values, last)
        if self._solver == in_place.NAME:
            return self._in_place_pass(policy, values, last, AS_ASKED)
        if self._solver == components.NAME and self._components_due:
            by_parts = self._components_pass(policy, values, AS_ASKED)
            if by_parts is not None:
                return by_parts
        if self._solver == marching.NAME:
            marched = None
            if self._march is not None:
                marched = self._go_on_marching(policy, values, AS_ASKED)
            elif self._march_due:
                marched = self._begin_march(policy, AS_ASKED)
            if marched is not None:
                return marched
        if self._solver in DIRECT_SOLVERS and (self._solver != banded.NAME or self._narrow(policy)):
            return self._direct_pass(policy, values, AS_ASKED)
        return self._sweeps_pass(policy, values, last, math.inf, "")

    def _changes(self, last: PassOutcome) -> int:
        """Return how many actions changed in the last round, of which a pass may have many, or in the last pass."""
        return last.changed if self._unsettled == UNKNOWN else self._unsettled

    def _narrow(self, policy: IntArray) -> bool:
        """Return whether the band of a policy can be stored."""
        return banded_cost(self.mdp.num_states, *banded.bandwidths(PolicyRows.of(self.mdp, policy))) < math.inf

    def _stalled(self, last: PassOutcome) -> bool:
        """Return whether only rounding is left, or the loss has not fallen by a tenth for many rounds."""
        loss, since = self._milestone
        if last.policy_loss < 0.9 * loss:
            self._milestone = (last.policy_loss, self._rounds)
        elif self._rounds - since > PATIENCE:
            return True
        return last.residual.span <= 4.0 * rounding_bound(self.mdp, last.residual.size)

    def _backward_pass(self, policy: IntArray) -> PolicyEvaluation | None:
        """Solve an acyclic model, its core first; None where there is no acyclic part worth it."""
        peeled = acyclic.peel(self.mdp, 1.0) if self._solver else acyclic.acyclic_part(self.mdp)
        if peeled is None:
            return None
        n, policy, values = self.mdp.num_states, policy.copy(), np.zeros(self.mdp.num_states)
        saved = SAVED_BACKUPS * self._costs.backup * len(peeled.order) / n
        if len(peeled.core) and saved < CORE_COST and self._solver is None:
            return None
        if len(peeled.core):
            core = acyclic.core_model(self.mdp, peeled.core)
            solver = AdaptiveEvaluation(core, 0.1 * self.tolerance, may_be_local=self._in_place)
            values[peeled.core], policy[peeled.core] = _solve_core(core, solver, policy[peeled.core])
        acyclic.back_up_in_order(self.mdp, peeled.order, values, policy)
        reason = f"no cycle leads to {len(peeled.order):,} of {n:,} states"
        forecast = Forecast(self._costs.backup * 1e-9, reason)
        return PolicyEvaluation(values, policy, acyclic.NAME, n, exact=False, backups=1, forecast=forecast)

    def _renewal_pass(self) -> PolicyEvaluation | None:
        """Solve a model that begins anew in a few states; None for others."""
        found = renewal.find_anyway(self.mdp) if self._solver else renewal.find(self.mdp)
        solved = None if found is None else renewal.solve(self.mdp, found, self.tolerance)
        if found is None or solved is None:
            return None
        values, policy, backups = solved
        count = len(found.states)
        reason = f"no cycle is left without the moves into {count} state{'s' * (count > 1)}"
        forecast = Forecast(renewal.USUAL_PASSES * self._costs.backup * 1e-9, reason)
        n = self.mdp.num_states
        return PolicyEvaluation(values, policy, renewal.NAME, n, exact=False, backups=backups, forecast=forecast)

    def _cheapest_pass(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Go on by the solver that wins the contest."""
        contest, after_sweeps = self._contest, False
        if last is not None:
            contest.judge(last)
        if last is None:
            self._first_policy = policy
            contest.direct = first_direct_cost(self.mdp) if self._in_place else math.inf
            name, reason = contest.first(in_place=self._in_place)
            self._direct_due = 0.0 if name == IN_PLACE else 2.0 * LEAST_BACKUPS * self._costs.backup
            if name == IN_PLACE and marching.suits(self.mdp) and not values.any():
                marched = self._begin_march(policy, "a direction to march in: rewards are best somewhere")
                if marched is not None:
                    return marched
            if name == IN_PLACE and self._components_due and not values.any():
                solved = self._components_pass(policy, values, PARTS_REASON)
                if solved is not None:
                    return solved
        elif self._march is not None:
            marched = self._go_on_marching(policy, values, "a march that gets on")
            if marched is not None:
                return marched
            self._price_direct(policy)
            name, reason = contest.choose(self._changes(last))
        else:
            if self._only_moves_on(last):
                solved = self._components_pass(policy, values, "each factorisation moves on by as many states", 1.0)
                if solved is not None:
                    return solved
            finding = components.cost_in_backups(self.mdp) * self._costs.backup
            tried = contest.total >= TRIED_SHARE * finding
            if self._components_due and tried and contest.remaining >= COMPONENTS_SHARE * finding:
                solved = self._components_pass(policy, values, PARTS_REASON)
                if solved is not None:
                    return solved
            unsettled = self._changes(last)
            stuck = contest.current == IN_PLACE and contest.remaining == math.inf and not contest.changing(unsettled)
            if stuck and self._march_due and self.mdp.growth <= marching.MOST_GROWTH:
                marched = self._begin_march(policy, "iteration in the model's own order gets nowhere")
                if marched is not None:
                    return marched
            self._price_direct(policy)
            if contest.comparison_due(unsettled):
                values = self._compare_sweeps(policy, values)
            after_sweeps = contest.current == SWEEPS
            name, reason = contest.choose(unsettled)
            if contest.begins_anew:
                policy, values, last = self._first_policy, np.zeros(self.mdp.num_states), None
        reason, self._given_up = self._given_up + reason, ""
        if name == DIRECT:
            return self._direct_pass(policy, values, reason, after_sweeps=after_sweeps)
        if name == IN_PLACE:
            return self._in_place_pass(policy, values, last, reason)
        return self._sweeps_pass(policy, values, last, contest.work_allowed(), reason)

    def _compare_sweeps(self, policy: IntArray, values: FloatArray) -> FloatArray:
        """Sweep the policy both at once and in place, tell the contest how each gets on, and return the better values.

        What counts is the span of T_π v − v. The solver at work sweeps first; where it gets on and is about to end,
        the other one is not tried: sweeps in place need the table of the moves, which costs two backups.
        """
        rows, contest, costs = self._rows_to_sweep(policy), self._contest, self._costs
        soon = CLEARLY * (COMPARED_SWEEPS + 2.0 * self.mdp.num_actions)
        if contest.current == SWEEPS:
            swept, jacobi = self._try_sweeps(rows, policy, values)
            if jacobi < soon:
                contest.compared(jacobi * costs.sweep, math.inf, swept.sweeps * costs.sweep)
                return swept.values
            in_place_too, gauss_seidel = self._try_in_place(rows, policy, values)
        else:
            in_place_too, gauss_seidel = self._try_in_place(rows, policy, values)
            if gauss_seidel < soon:
                contest.compared(math.inf, gauss_seidel * costs.sweep, in_place_too.sweeps * costs.sweep)
                return in_place_too.values
            swept, jacobi = self._try_sweeps(rows, policy, values)
        cost = (swept.sweeps + in_place_too.sweeps) * costs.sweep
        contest.compared(jacobi * costs.sweep, gauss_seidel * costs.sweep, cost)
        return swept.values if jacobi < gauss_seidel else in_place_too.values

    def _try_in_place(self, rows: PolicyRows, policy: IntArray, values: FloatArray) -> tuple[Swept, float]:
        """Sweep in place as often as is compared, and return how many sweeps seem to be left.

        They are judged by all of them, as what is to come is extrapolated at the end; where models are not local, by
        a second time, as the first sweeps remove what all sweeps do.
        """
        begun, made = values, COMPARED_SWEEPS + 2
        if not self._contest.local:
            begun = in_place.sweep_in_place(self.mdp, self._moves, policy, values, COMPARED_SWEEPS)
            made += COMPARED_SWEEPS
        ended = in_place.sweep_in_place(self.mdp, self._moves, policy, begun, COMPARED_SWEEPS)
        before, after = (sweep(rows, each, 1, -1.0, self._entries).span for each in (begun, ended))
        rate = _rate(before, after, COMPARED_SWEEPS)
        return Swept(ended, made, after, rate), _sweeps_left(after, self._span_for(self.tolerance), rate)

    def _try_sweeps(self, rows: PolicyRows, policy: IntArray, values: FloatArray) -> tuple[Swept, float]:
        """Sweep at once as often as is compared, and return how many sweeps seem to be left.

        They are judged by the later ones, as the first ones remove what sweeps in place do, too; if they are fast, by
        these. Where sweeps are slow groups of states are moved as one, but for local models, where the first time tells
        little of the next ones; what sweeps have shown so far, if they are at work, tells of that already.
        """
        contest, span_tol = self._contest, self._span_for(self.tolerance)
        floor = self._span_floor(values)
        first = self._sweep(policy, rows, values, COMPARED_SWEEPS // 2, floor)
        if first.rate < extrapolation.SLOW:
            return first, _sweeps_left(first.span, span_tol, first.rate)
        swept = self._sweep(policy, rows, first.values, TRIED_SWEEPS, floor)
        rate = swept.rate
        left, made = _sweeps_left(swept.span, span_tol, rate), first.sweeps + swept.sweeps
        slow = left > self._coarse_sweeps and rate > self._coarse_rate
        if slow and self._coarse_chances and contest.current == IN_PLACE and not contest.local:
            corrected = aggregation.correct(rows, swept.values)
            coarse = self._sweep(policy, rows, corrected, SMOOTHING_SWEEPS, floor)
            cycle = coarse.sweeps + aggregation.SWEEPS
            then = _sweeps_left(coarse.span, span_tol, _rate(swept.span, coarse.span, cycle))
            made += cycle
            if then < left:
                swept, left = coarse, then
        return swept._replace(sweeps=made), left

    def _sweeps_pass(
        self, policy: IntArray, values: FloatArray, last: PassOutcome | None, work: float, reason: str
    ) -> PolicyEvaluation:
        """Sweep as often as the improvements to come are worth, then back up what may be the best.

        On small models round after round, in one compiled loop, until a policy takes many sweeps.
        """
        mdp, costs = self.mdp, self._costs
        if self._eliminating is None and elimination.pays(mdp):
            self._eliminating = elimination.EliminatingBackups(mdp)
        partial_span, changed = (
            (mdp.largest_reward, UNKNOWN) if last is None else (last.residual.span, self._changes(last))
        )
        swept, backups, looked_at, last_backup = 0.0, 0, 0.0, None
        if self._in_one_loop:
            made = self._sweep_rounds(policy, values, partial_span, changed, work)
            swept, backups, looked_at, last_backup = made.sweeps, made.backups, made.looked_at, made.last_backup
            self._sweeps += made.sweeps
            policy, values, changed, partial_span = made.policy, made.values, made.unsettled, made.partial_span
        if last_backup is None:
            if self._solver is None:
                work = min(work, max(FIRST_SWEEPS * costs.sweep, self._contest.until_comparison(changed)))
            evaluation = self._some_sweeps(policy, values, partial_span, changed, work / costs.sweep)
            if self._eliminating is None:
                last_backup = backup(mdp, evaluation.values, policy)
                looked_at += 1.0
            else:
                last_backup = self._eliminating.backup(evaluation.values, policy)
                looked_at += self._eliminating.pairs / mdp.num_pairs
            changed = kernels.count_different(last_backup.actions, policy)
            self._in_one_loop = self._may_loop and evaluation.swept <= FIRST_SWEEPS * mdp.num_states
        else:
            evaluation = PolicyEvaluation(values, policy, f"{PARTIAL} {sweeps.NAME}", 0, exact=False)
        self._sweeps += evaluation.swept // mdp.num_states
        swept = evaluation.swept + int(swept) * mdp.num_states
        self._unsettled = changed
        self._rounds += backups
        self._contest.paid(SWEEPS, swept / mdp.num_states * costs.sweep + looked_at * costs.backup)
        if reason:
            evaluation = evaluation._replace(forecast=Forecast(self._contest.predicted(SWEEPS) * 1e-9, reason))
        return evaluation._replace(swept=swept, last_backup=last_backup, backups=backups, improvement="at once")

    def _sweep_rounds(
        self, policy: IntArray, values: FloatArray, partial_span: float, changed: int, work: float
    ) -> sweeps.SweepRounds:
        """Sweep and back up in one compiled loop."""
        mdp = self.mdp
        limits = sweeps.RoundLimits(
            span_tol=0.99 * self.tolerance * (1.0 - mdp.discount * mdp.row_sums[1]),
            sweep_tol=max(self._span_for(self.tolerance), self._span_floor(values)),
            sweep_share=SWEPT_SHARE,
            sweeps_per_change=SWEEPS_PER_CHANGE,
            most_sweeps=FIRST_SWEEPS,
            most_work=min(in_place.MAX_WORK, work / self._costs.state),
            before=self._sweeps,
        )
        table = self._moves if self._pads else NO_MOVES
        return sweeps.sweep_and_back_up(
            mdp, values, policy, table, self._padded, limits, self._eliminating, partial_span, changed
        )

    def _in_place_pass(
        self, policy: IntArray, values: FloatArray, last: PassOutcome | None, reason: str
    ) -> PolicyEvaluation:
        """Improve and evaluate in place for as long as the contest allows."""
        mdp, costs, contest = self.mdp, self._costs, self._contest
        partial_span = min(last.residual.span, mdp.largest_reward) if last else mdp.largest_reward
        work = int(min(in_place.MAX_WORK, contest.work_allowed() / costs.state))
        forecast = Forecast(contest.predicted(IN_PLACE) * 1e-9, reason)
        changed = in_place.UNKNOWN if last is None else self._changes(last)
        judged = last is None and self._solver is None and contest.local
        if last is None and contest.kept_reward and not values.any():
            values = np.full(mdp.num_states, contest.kept_reward / (1.0 - mdp.discount))
        result = in_place.iterate_in_place(
            mdp,
            self._moves,
            values,
            policy,
            self.tolerance,
            partial_span,
            work,
            changed=changed,
            most_left=contest.most_left * mdp.num_pairs if judged else math.inf,
        )
        self._rounds += result.rounds - 1
        self._unsettled = result.unsettled
        contest.paid(IN_PLACE, result.backups * costs.backup + result.swept * costs.state)
        contest.on_its_way = last is None and result.on_its_way
        contest.worth_keeping = last is not None or result.on_its_way
        return PolicyEvaluation(
            result.values,
            result.policy,
            in_place.NAME,
            result.swept,
            exact=False,
            backups=result.backups,
            last_backup=result.last_backup,
            forecast=forecast,
        )

    def _begin_march(self, policy: IntArray, reason: str) -> PolicyEvaluation | None:
        """Begin a march from below, whatever the values so far; None where there is no direction to go in.

        One whose windows do not settle has cost the work of some twenty backups, which are not booked.
        """
        self._march_due = False
        order = marching.order_of(self.mdp)
        if order is None:
            return None
        self._march = marching.March(self.mdp, order, self.tolerance)
        return self._marching_pass(policy, None, marching.PREPARATION, reason)

    def _go_on_marching(self, policy: IntArray, values: FloatArray, reason: str) -> PolicyEvaluation | None:
        """Go on with a march from values (S,); None if it gets nowhere."""
        return self._marching_pass(policy, values, 0, reason)

    def _marching_pass(
        self, policy: IntArray, values: FloatArray | None, prepared: int, reason: str
    ) -> PolicyEvaluation | None:
        """March for a while, after a preparation that cost so many backups."""
        assert self._march is not None
        result = self._march.run(policy, values)
        if result is None or not result.goes_on:
            self._march = None
        if result is None:
            self._given_up = f"{marching.NAME} was given up; "
            return None
        return self._marched(result, marching.NAME, prepared, reason)

    def _only_moves_on(self, last: PassOutcome) -> bool:
        """Return whether factorisation after factorisation changes as many actions, as a front of news goes by."""
        before, in_a_row = self._front
        direct = self._contest.current == DIRECT
        in_a_row = in_a_row + 1 if direct and 0 < before <= last.changed else 0
        self._front = (last.changed if direct else UNKNOWN, in_a_row)
        return in_a_row == IN_A_ROW

    def _components_pass(
        self, policy: IntArray, values: FloatArray, reason: str, largest: float = components.LARGEST_SHARE
    ) -> PolicyEvaluation | None:
        """Solve component by component; None where one of them holds more than a share `largest` of the states."""
        self._components_due = False
        found = components.find(self.mdp, 1.0 if self._solver else largest)
        if found is None:
            return None
        result = components.ComponentSolver(self.mdp, found, self.tolerance).run(policy, values)
        if result is None:
            self._given_up = f"{components.NAME} were given up; "
            return None
        return self._marched(result, components.NAME, components.cost_in_backups(self.mdp), reason)

    def _marched(self, result: marching.Marched, name: str, prepared: int, reason: str) -> PolicyEvaluation:
        """Book a march, or a solve component by component, and return what it found."""
        contest, costs, n = self._contest, self._costs, self.mdp.num_states
        backups = result.backed_up // n
        cost = (prepared + backups) * costs.backup + result.swept * costs.state
        current = contest.current if contest.current in (IN_PLACE, SWEEPS) else IN_PLACE
        forecast = Forecast(contest.predicted(current) * 1e-9, reason)
        contest.paid(current, cost)
        self._rounds += result.rounds - 1
        self._unsettled = UNKNOWN
        return PolicyEvaluation(
            result.values, result.policy, name, result.swept, exact=False, backups=backups, forecast=forecast
        )

    def _direct_pass(
        self, policy: IntArray, values: FloatArray, reason: str, *, after_sweeps: bool = False
    ) -> PolicyEvaluation:
        """Improve the policy in place for as long as a factorisation takes, then evaluate it exactly.

        What sweeps leave is off by about a constant: in place, states backed up would look better than the others.
        """
        contest, costs, mdp = self._contest, self._costs, self.mdp
        done = 0
        if not after_sweeps:
            rounds = max(1, min(MAX_IMPROVEMENTS, int(contest.direct / (2.0 * costs.backup))))
            policy, done = in_place.improve_in_place(mdp, self._moves, values, policy, rounds)
        solved, solver = self._solve_directly(PolicyRows.of(mdp, policy), values)
        cost = contest.direct + 2 * done * costs.backup
        contest.paid(DIRECT, cost)
        self._unsettled = UNKNOWN
        forecast = Forecast(cost * 1e-9, reason)
        return PolicyEvaluation(solved, policy, solver, mdp.num_states, exact=True, backups=2 * done, forecast=forecast)

    def _price_direct(self, policy: IntArray) -> None:
        """Find out again what a factorisation costs, once costs have doubled since the last time."""
        contest = self._contest
        if contest.total >= self._direct_due:
            contest.direct = self._direct_cost(policy)
            self._direct_due = 2.0 * max(contest.total, LEAST_BACKUPS * self._costs.backup)

    def _direct_cost(self, policy: IntArray) -> float:
        """Return the nanoseconds of the cheapest factorisation; infinite where none is affordable."""
        n, contest = self.mdp.num_states, self._contest
        rows = PolicyRows.of(self.mdp, policy)
        banded_too = banded_cost(n, *banded.bandwidths(rows))
        if self._separator is None:
            order, least = max(ORDER_LEAST, ORDER_COST * n), sparse_cost(n, 1)
            early = contest.total < max(order, FAIR_SHARE * least)
            if early or banded_too <= order or contest.remaining <= max(2.0 * order, SWITCH_FACTOR * least):
                return banded_too  # none would be made yet, finding an order costs as much, or none is worth it
            self._separator = lu.separator_size(rows)
        return min(banded_too, self._sparse_cost())

    def _solve_directly(self, rows: PolicyRows, values: FloatArray) -> tuple[FloatArray, str]:
        """Return a policy's values by the cheaper factorisation, or by what is asked for, and its name."""
        if self._solver == krylov.NAME:
            solved, _ = krylov.solve_by_bicgstab(rows, values, max(self._span_tol, self._span_floor(values)))
            if solved is not None:
                return solved, krylov.NAME
        cost = banded_cost(self.mdp.num_states, *banded.bandwidths(rows))
        known = self._separator is not None and self._sparse_cost() < cost
        if self._solver == lu.NAME or (self._solver != banded.NAME and known) or cost == math.inf:
            return self._factorise(rows), lu.NAME
        return banded.solve_banded(rows, *banded.bandwidths(rows)), banded.NAME

    def _some_sweeps(
        self, policy: IntArray, values: FloatArray, partial_span: float, changed: int, most: float
    ) -> PolicyEvaluation:
        """Sweep a few times while many actions change: knowing this policy's values well would be wasted.

        Once none changes, they are all that is left to know; after `most` sweeps the contest goes on.
        """
        mdp, max_sweeps = self.mdp, 1.0
        if changed != UNKNOWN:
            partial_span *= min(1.0, 10.0 * changed / mdp.num_states)
            max_sweeps = math.ceil(SWEEPS_PER_CHANGE * mdp.num_states / changed) if changed else math.inf
            allowed = max(sweeps.SWEEPS_GROWTH * self._sweeps, mdp.num_actions)
            max_sweeps, most = min(max_sweeps, allowed), min(most, allowed)
        floor = self._span_floor(values)
        span_tol = max(self._span_for(self.tolerance), SWEPT_SHARE * partial_span, floor)
        if max_sweeps >= FIRST_SWEEPS or (self._solver == aggregation.NAME and changed != UNKNOWN):
            limit = most if self._solver is None else MAX_EXACT_SWEEPS
            result = self._iterate(policy, values, span_tol, limit, may_factorise=self._solver is not None)
            exact = lu.NAME in result.solver or (result.exact and span_tol <= floor)
            return result._replace(exact=exact, solver=result.solver if exact else f"{PARTIAL} {result.solver}")
        rows = self._rows_to_sweep(policy) if max_sweeps >= sweeps.PADDED_SWEEPS else PolicyRows.of(mdp, policy)
        swept = self._sweep(policy, rows, values, int(max_sweeps), span_tol)
        solver = f"{PARTIAL} {sweeps.NAME}"
        return PolicyEvaluation(swept.values, policy, solver, swept.sweeps * mdp.num_states, exact=False)


def _rate(before: float, after: float, count: int) -> float:
    """Return the factor of each of `count` sweeps that brought a span from one figure to another."""
    return float((after / before) ** (1.0 / count)) if 0.0 < after < before < math.inf else 1.0


def _sweeps_left(span: float, span_tol: float, rate: float) -> float:
    """Return how many sweeps take a span to its tolerance at this rate."""
    if span <= span_tol:
        return 0.0
    share = span_tol / span  # zero where both are denormal
    return math.log(share) / math.log(rate) if 0.0 < rate < 1.0 and share > 0.0 else MAX_EXACT_SWEEPS


def _solve_core(core: MDP, evaluator: AdaptiveEvaluation, policy: IntArray) -> tuple[FloatArray, IntArray]:
    """Return values and a policy of a model within the tolerance, or as good as float64 or `CORE_PASSES` make them."""
    last: PassOutcome | None = None
    values: FloatArray = np.zeros(core.num_states)
    for _ in range(CORE_PASSES):
        evaluation = evaluator.evaluate(policy, values, last)
        first = evaluation.last_backup or backup(core, evaluation.values, evaluation.policy)
        loss = loss_bound(core, first.residual, greedy=not evaluation.exact)
        last = PassOutcome(first.residual, int(np.count_nonzero(first.actions != policy)), loss)
        values, policy = first.values, first.actions
        if loss <= evaluator.tolerance or evaluator.finished(evaluation, last):
            break
    return values, policy
