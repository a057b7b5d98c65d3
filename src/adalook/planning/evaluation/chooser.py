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
from adalook.planning.certificate import rounding_bound
from adalook.planning.evaluation import functional, in_place, krylov, lu, sweeps
from adalook.planning.evaluation.base import PassOutcome, PolicyEvaluation
from adalook.planning.evaluation.sweeps import PolicyRows, sweep

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

FIRST_SWEEPS = 24
"""Sweeps after which the rate of convergence is judged for the first time."""
MAX_EXACT_SWEEPS = 200_000
EXACT_ERROR = 1e-8
"""Exact values are good enough to certify such a loss, whatever the tolerance, or as good as rounding allows."""
LU_FLOP_COST = 0.3
"""Nanoseconds per multiplication of a banded factorisation, against …"""
SWEEP_ENTRY_COST = 2.0
"""… nanoseconds per stored probability of a sweep, both as orders of magnitude."""
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
        self._lu_pays = False

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
            return PolicyEvaluation(lu.solve_by_lu(rows), policy, lu.NAME, n, exact=True)
        if self._entries >= threads.MIN_ENTRIES:
            rows = rows.side_by_side()
        values, count, reached, rate = sweep(rows, start, FIRST_SWEEPS, span_tol, self._entries)
        krylov_tried = False
        while reached > span_tol and count < MAX_EXACT_SWEEPS:
            left = math.log(span_tol / reached) / math.log(rate) if 0 < rate < 1 else MAX_EXACT_SWEEPS
            if self._lu_beats(left, rows):
                self._lu_pays = True
                solver = ", then ".join([*done, lu.NAME])
                return PolicyEvaluation(lu.solve_by_lu(rows), policy, solver, (count + 1) * n, exact=True)
            if left > SLOW_SWEEPS and not krylov_tried:
                krylov_tried = True
                better, products = krylov.solve_by_bicgstab(rows, values, span_tol)
                count += products
                if better is not None:
                    values = better
                    done.append(krylov.NAME)
            more = int(min(max(left * 0.5, FIRST_SWEEPS), 1_000))
            previous = reached
            values, made, reached, rate = sweep(rows, values, more, span_tol, self._entries)
            count += made
            if reached >= previous and rate >= 1.0:
                break  # rounding is all that is left
        return PolicyEvaluation(values, policy, ", then ".join(done), count * n, exact=True)

    def _lu_beats(self, sweeps_left: float, rows: PolicyRows) -> bool:
        """Return whether a banded factorisation would cost less than the sweeps that seem to be left."""
        n = self.mdp.num_states
        gain = sweeps_left * self._entries * SWEEP_ENTRY_COST
        if self._bandwidth is None:
            if gain < 100 * self._entries:  # finding the bandwidth costs about as much
                return False
            self._bandwidth = lu.bandwidth(rows)
        width = min(self._bandwidth, n)
        return n * width <= LU_MAX_ENTRIES and n * width * width * LU_FLOP_COST < gain


class AdaptiveEvaluation(ExactEvaluation):
    """Evaluates policies only as well as it pays: exactly by pointers, or once partial values lead nowhere."""

    def __init__(self, mdp: MDP, tolerance: float) -> None:
        super().__init__(mdp, tolerance)
        self._partial = tolerance > 0.0
        """Whether partial evaluation still makes progress."""
        self._local = mdp.rows.num_rows > functional.MAX_LEAVES and in_place.is_local(mdp)
        self._rounds = 0
        self._milestone = (math.inf, 0)
        """The loss when it last fell by a tenth, and the rounds it had taken."""

    def evaluate(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Choose between pointers, in-place modified policy iteration, some sweeps, and exact evaluation."""
        self._partial = self._partial and not (last and self._stalled(last))
        if not self._partial:
            return super().evaluate(policy, values, last)
        solved = self._functional.solve(policy)
        if solved is not None:
            self._rounds += 1
            return PolicyEvaluation(solved, policy, functional.NAME, len(policy), exact=True)
        if self._local:
            return self._in_place(policy, values, last)
        self._rounds += 1
        return self._some_sweeps(policy, values, last)

    def _stalled(self, last: PassOutcome) -> bool:
        """Return whether only rounding is left, or the loss has not fallen by a tenth for many rounds."""
        loss, since = self._milestone
        if last.policy_loss < 0.9 * loss:
            self._milestone = (last.policy_loss, self._rounds)
        elif self._rounds - since > PATIENCE:
            return True
        return self._local and last.residual.span <= 4.0 * rounding_bound(self.mdp, last.residual.size)

    def _in_place(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        partial_span = min(last.residual.span, self.mdp.largest_reward) if last else self.mdp.largest_reward
        result = in_place.iterate_in_place(self.mdp, values, policy, self.tolerance, partial_span)
        self._rounds += result.rounds
        return PolicyEvaluation(
            result.values,
            result.policy,
            in_place.NAME,
            result.swept,
            exact=False,
            backups=result.backups,
            last_backup=result.last_backup,
        )

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
        if max_sweeps >= FIRST_SWEEPS or self._lu_pays:
            result = self._iterate(policy, values, span_tol)
            exact = self._lu_pays or span_tol <= floor
            return result._replace(exact=exact, solver=result.solver if exact else f"{PARTIAL} {result.solver}")
        rows = PolicyRows.of(mdp, policy)
        if self._entries >= threads.MIN_ENTRIES and max_sweeps > 2:
            rows = rows.side_by_side()
        swept = sweep(rows, values, int(max_sweeps), span_tol, self._entries)
        solver = f"{PARTIAL} {sweeps.NAME}"
        return PolicyEvaluation(swept.values, policy, solver, swept.sweeps * mdp.num_states, exact=False)
