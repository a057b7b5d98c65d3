"""Sweeps v <- T_π v over all states, watched by the span of the change, as MacQueen does.

V^π − T_π v lies within γ/(1 − γ) times the least and the largest change of a sweep, so a constant shift removes the
slow direction. Random graphs mix fast and need few sweeps. Elsewhere what is slow goes in few directions, and is
extrapolated from the changes of the last sweeps (`extrapolation`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import ModelArrays, code_of_row, row_of
from adalook.planning import threads
from adalook.planning.certificate import rounding_bound
from adalook.planning.evaluation.base import NO_EVALUATION, PassOutcome, PolicyEvaluation
from adalook.planning.evaluation.elimination import EliminatingBackups, KnownBounds, RoundingSizes, renew
from adalook.planning.evaluation.elimination import backup_range as eliminating_range
from adalook.planning.evaluation.extrapolation import START, History, keep_change, pace_after
from adalook.planning.evaluation.padded import NO_ROWS, MoveTable, PaddedRows, back_up_table, copy_rows, row_value
from adalook.planning.lookahead.kernels import (
    backup_range,
    count_different,
    index,
    next_value,
    shared_expectations,
)
from adalook.planning.lookahead.levels import Backup, Residual

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "sweeps"
SWEEPS_GROWTH = 4
"""A policy is swept at most so many times as often as all before it, or once per action: one that a first backup does
not change has not settled, news has not come far."""
COPIED_ROW_LENGTH = 64
"""Successors of a row, on average, up to which rows are worth copying next to each other."""
PADDED_SWEEPS = 3
"""Sweeps of one policy from which on its rows are worth copying to places of one length, where they are short."""


class PolicyRows(NamedTuple):
    """The rows that a policy uses, in the form in which kernels take them."""

    reward: FloatArray  # (S,) r_π
    code: IntArray  # (S,) transition codes
    indptr: IntArray  # these four as in `Rows`
    indices: IntArray
    data: FloatArray
    num_shared: int
    discount: float

    @classmethod
    def of(cls, mdp: MDP, policy: IntArray) -> PolicyRows:
        """Gather the rewards and transition codes of a policy; the rows themselves stay where they are."""
        reward, code = np.empty(mdp.num_states), np.empty(mdp.num_states, mdp.codes.dtype)
        _gather_policy(mdp.arrays, policy, reward, code)
        return cls(reward, code, *mdp.rows, mdp.discount)

    def side_by_side(self) -> PolicyRows:
        """Return the same with rows next to each other in memory: pays where sweeps read more than a cache holds.

        Rows that are long stay where they are: a processor reads ahead within each, and copies take as long as sweeps.
        """
        shared, n = self.num_shared, len(self.code)
        if len(self.indices) > COPIED_ROW_LENGTH * (len(self.indptr) - 1):
            return self
        indptr = np.zeros(shared + n + 1, self.indptr.dtype)
        indptr[: shared + 1] = self.indptr[: shared + 1]
        _row_lengths(self, indptr[shared + 1 :])
        np.cumsum(indptr[shared:], out=indptr[shared:])
        indices, data = np.empty(int(indptr[-1]), self.indices.dtype), np.empty(int(indptr[-1]))
        indices[: indptr[shared]], data[: indptr[shared]] = self.indices[: indptr[shared]], self.data[: indptr[shared]]
        copy = self._replace(code=np.empty_like(self.code), indptr=indptr, indices=indices, data=data)
        _copy_rows(self, copy)
        return copy


class Swept(NamedTuple):
    """The result of repeated sweeps: values, and how fast they were still changing."""

    values: FloatArray  # (S,)
    sweeps: int
    span: float
    """Of the last sweep's change."""
    rate: float
    """The factor by which a sweep makes it smaller."""


class Buffers(NamedTuple):
    """The arrays that sweeps go back and forth between."""

    values: FloatArray  # (S,)
    spare: FloatArray  # (S,)
    shared: FloatArray  # (rows,) expectation of each shared row
    history: History


@kept_with_model
def sweep_entries(mdp: MDP) -> int:
    """Return about how many stored numbers a sweep reads."""
    return mdp.num_states + len(mdp.rows.indices) // mdp.num_actions


def sweep(
    rows: PolicyRows,
    start: FloatArray,
    max_sweeps: int,
    span_tol: float,
    entries: int,
    *,
    extrapolating: bool = True,
    padded: PaddedRows = NO_ROWS,
) -> Swept:
    """Sweep T_π until the span of a change T_π v − v is at most `span_tol`, or `max_sweeps` times.

    With `padded` from these copies of the rows, if there are any.

    What is slow is extrapolated, if asked for, and in the end the values are shifted by what all later sweeps have in
    common; neither if `span_tol` is negative.
    """
    history = History.of(len(start), max_sweeps if extrapolating and span_tol >= 0.0 else 0)
    buffers = Buffers(start.copy(), np.empty_like(start), np.empty(rows.num_shared), history)
    many = _sweep_until if entries < threads.MIN_ENTRIES else _sweep_in_threads
    count, low, high, rate = many(rows, padded, buffers, max_sweeps, span_tol)
    values = buffers.spare if count % 2 else buffers.values
    # All changes of one sign: the sum of all later sweeps is at least γ/(1 − γ) times the smallest of them.
    common = low if low > 0 else high if high < 0 else 0.0
    if span_tol >= 0.0 and common != 0.0:
        values += rows.discount / (1.0 - rows.discount) * common
    return Swept(values, count, high - low, rate)


class SweepRounds(NamedTuple):
    """The result of some rounds of sweeps and backups, and what they cost."""

    values: FloatArray  # (S,)
    policy: IntArray
    """(S,) the policy that the values are of, as far as they were swept."""
    sweeps: int
    backups: int
    """Backups of every state but for the last one below."""
    looked_at: float
    """All backups, by the share of the pairs that were looked at."""
    unsettled: int
    """States whose action changed in the last round."""
    partial_span: float
    """Span of the last backup's change."""
    last_backup: Backup | None
    """The backup of these values; None if the policy takes more sweeps than a round makes."""


class RoundLimits(NamedTuple):
    """Limits of rounds of sweeps, and of the sweeps in a round."""

    span_tol: float
    """Enough is a span of T v − v of at most this, rounding included."""
    sweep_tol: float
    """A policy is swept until the span of T_π v − v is at most this …"""
    sweep_share: float
    """… or this share of what the improvements to come will change …"""
    sweeps_per_change: float
    """… or for so many sweeps per share of the states whose action changed …"""
    most_sweeps: int
    """… or so often; then rounds end, too."""
    most_work: float
    """States swept and pairs backed up after which rounds end."""
    before: int
    """Sweeps that were made before these rounds."""


class RoundState(NamedTuple):
    """The arrays that rounds work on, in place."""

    values: FloatArray  # (S,)
    spare: FloatArray  # (S,)
    policy: IntArray  # (S,)
    best: FloatArray  # (S,) T v of the last backup
    action: IntArray  # (S,) and its greedy policy
    shared: FloatArray  # (rows,) expectation of each shared row
    history: History


def sweep_and_back_up(
    mdp: MDP,
    values: FloatArray,
    policy: IntArray,
    table: MoveTable,
    padded: PaddedRows,
    limits: RoundLimits,
    eliminating: EliminatingBackups | None,
    partial_span: float,
    changed: int,
) -> SweepRounds:
    """Sweep a policy as often as the improvements to come are worth, back up, and go on with the better one.

    All in one compiled loop: on small models a round takes microseconds. Where padding pays, `table` has
    all moves, and `padded` room for a policy's rows, of which it keeps what it has. `partial_span` is that of the last
    backup's change, and `changed` the number of actions that it changed, or −1 at the beginning, when it is not known.
    """
    values, policy = values.copy(), policy.copy()
    if eliminating is None:
        known, sizes = KnownBounds(np.empty((0, 0)), np.empty(0), np.empty(0)), RoundingSizes.of(mdp)
    else:
        known, sizes = eliminating.known, eliminating.sizes
    best, action, shared = np.empty_like(values), np.empty_like(policy), np.empty(mdp.rows.num_shared)
    history = History.of(len(values), limits.most_sweeps)
    state = RoundState(values, np.empty_like(values), policy, best, action, shared, history)
    count, backups, pairs, unsettled, slow, residual = _run_rounds(
        mdp.arrays, table, state, padded, known, sizes, limits, partial_span, changed
    )
    change = Residual(*residual)
    last_backup = None if slow else Backup(best, action, shared, change)
    return SweepRounds(values, policy, count, backups, pairs / mdp.num_pairs, unsettled, change.span, last_backup)


class FixedSweeps:
    """Evaluates every policy by the same number of sweeps: modified policy iteration, or value iteration with none."""

    def __init__(self, mdp: MDP, tolerance: float, *, count: int = 0) -> None:
        self._mdp, self._count = mdp, count

    def evaluate(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Sweep `count` times from the values of the last backup."""
        mdp = self._mdp
        if self._count == 0:
            return PolicyEvaluation(values, policy, NO_EVALUATION, 0, exact=False)
        swept = sweep(PolicyRows.of(mdp, policy), values, self._count, -1.0, sweep_entries(mdp))
        solver = f"{self._count} {NAME}" if self._count > 1 else "1 sweep"
        return PolicyEvaluation(swept.values, policy, solver, self._count * mdp.num_states, exact=False)

    def finished(self, evaluation: PolicyEvaluation, outcome: PassOutcome) -> str:
        """Stop when a backup changes values by no more than rounding does."""
        residual = outcome.residual
        change = max(residual.high, -residual.low)
        still = change <= rounding_bound(self._mdp, residual.size)
        return "values change by no more than rounding" if still else ""


@compiled
def _gather_policy(model: ModelArrays, policy: IntArray, reward: FloatArray, code: IntArray) -> None:
    """Write r_π and the policy's transition codes."""
    for s in range(index(len(policy))):
        reward[s] = model.rewards[s, index(policy[s])]
        code[s] = model.codes[s, index(policy[s])]


@compiled
def _row_lengths(rows: PolicyRows, lengths: IntArray) -> None:
    """Write the length of each state's own row (S,), zero where the move is deterministic or the row shared."""
    for s in range(len(lengths)):
        row = row_of(rows.code[s])
        lengths[s] = rows.indptr[row + 1] - rows.indptr[row] if row >= rows.num_shared else 0


@compiled
def _copy_rows(rows: PolicyRows, copy: PolicyRows) -> None:
    """Copy each state's own row behind the shared ones, state after state, and number it accordingly."""
    for s in range(len(rows.code)):
        row = row_of(rows.code[s])
        copy.code[s] = code_of_row(rows.num_shared + s) if row >= rows.num_shared else rows.code[s]
        if row >= rows.num_shared:
            start, target = rows.indptr[row], copy.indptr[rows.num_shared + s]
            for k in range(rows.indptr[row + 1] - start):
                copy.indices[target + k] = rows.indices[start + k]
                copy.data[target + k] = rows.data[start + k]


@compiled
def _sweep_range(
    rows: PolicyRows, shared: FloatArray, v: FloatArray, out: FloatArray, first: int, last: int
) -> tuple[float, float]:
    """Write T_π v of states first..last-1, given the shared rows' expectations; returns (min, max) of T_π v − v."""
    reward, code, discount = rows.reward, rows.code, rows.discount
    low, high = np.inf, -np.inf
    for s in range(index(first), index(last)):
        new = reward[s] + discount * next_value(rows, code[s], shared, v)
        out[s] = new
        change = new - v[s]
        low = change if change < low else low
        high = change if change > high else high
    return low, high


@compiled
def _sweep_padded(padded: PaddedRows, v: FloatArray, out: FloatArray, first: int, last: int) -> tuple[float, float]:
    """Do as `_sweep_range`, from padded rows."""
    low, high = np.inf, -np.inf
    for s in range(index(first), index(last)):
        new = row_value(padded.reward[s], padded, s, v)
        out[s] = new
        change = new - v[s]
        low = change if change < low else low
        high = change if change > high else high
    return low, high


@compiled
def _sweep_until(
    rows: PolicyRows, padded: PaddedRows, buffers: Buffers, max_sweeps: int, span_tol: float
) -> tuple[int, float, float, float]:
    """Repeat T_π from the values until the span of a change is at most `span_tol`, or `max_sweeps` times.

    By the padded rows, if there are any. The answer ends in the values (even count) or in spare (odd count). Returns
    (count, min, max, rate).
    """
    v, spare, shared, history = buffers
    low, high, before = -np.inf, np.inf, np.inf
    count, pace = 0, START
    while count < max_sweeps:
        before = high - low
        old, new = (v, spare) if count % 2 == 0 else (spare, v)
        if len(padded.reward) > 0:
            low, high = _sweep_padded(padded, old, new, 0, len(v))
        else:
            shared_expectations(rows, old, shared)
            low, high = _sweep_range(rows, shared, old, new, 0, len(v))
        count += 1
        more = count < max_sweeps and high - low > span_tol
        low, high = keep_change(history, old, new, low, high, before, more)
        pace = pace_after(pace, high - low, count)
        if high - low <= span_tol:
            break
    return count, low, high, pace.rate


@compiled
def _run_rounds(
    model: ModelArrays,
    table: MoveTable,
    state: RoundState,
    padded: PaddedRows,
    known: KnownBounds,
    sizes: RoundingSizes,
    limits: RoundLimits,
    partial_span: float,
    changed: int,
) -> tuple[int, int, float, int, bool, tuple[float, float, float, float, float]]:
    """Sweep and back up until the goal is reached, or enough work is done, or a policy takes too many sweeps.

    Returns (sweeps, backups but the last, pairs looked at, actions changed in the last round, whether the policy takes
    too many sweeps and was not backed up, the last backup's residual, or then its span alone).
    """
    v, spare, policy, best, action, shared, history = state
    num_states = len(v)
    reward, code = np.empty(num_states), np.empty(num_states, model.codes.dtype)
    rows = PolicyRows(reward, code, model.indptr, model.indices, model.data, model.num_shared, model.discount)
    scattered = PaddedRows(padded.reward[:0], padded.successor[:0], padded.weight[:0], padded.places, padded.action)
    total, backups, pairs = 0, 0, 0.0
    fresh = history.notes.copy()
    while True:
        most, share = 1, 1.0
        if changed >= 0:
            most, share = limits.most_sweeps, min(1.0, 10.0 * changed / num_states)
            if changed > 0:
                most = min(most, int(np.ceil(limits.sweeps_per_change * num_states / changed)))
            most = min(most, max(SWEEPS_GROWTH * (limits.before + total), model.codes.shape[1]))
        span_tol = max(limits.sweep_tol, limits.sweep_share * share * partial_span)
        history.notes[:] = fresh
        copies = padded if most >= PADDED_SWEEPS else scattered
        if len(copies.reward) > 0:
            copy_rows(model, policy, copies)
        else:
            _gather_policy(model, policy, reward, code)
        buffers = Buffers(v, spare, shared, history)
        count, low, high, _ = _sweep_until(rows, copies, buffers, most, span_tol)
        total += count
        if count % 2 == 1:
            v[:] = spare
        common = low if low > 0.0 else (high if high < 0.0 else 0.0)
        if common != 0.0:
            for s in range(num_states):
                v[s] += model.discount / (1.0 - model.discount) * common
        if count == limits.most_sweeps and high - low > span_tol:
            return total, backups, pairs, changed, True, (0.0, partial_span, 0.0, 0.0, 0.0)
        shared_expectations(model, v, shared)
        if len(known.last) > 0:
            size, margin = renew(model, sizes, known, v)
            low, high, own_low, own_high, looked_at = eliminating_range(
                model, shared, v, policy, known, margin, best, action, 0, num_states
            )
            pairs += looked_at
        elif len(table.reward) > 0:
            low, high, own_low, own_high, size = back_up_table(table, v, policy, best, action)
            pairs += model.codes.size
        else:
            low, high, own_low, own_high, size = backup_range(model, shared, v, policy, best, action, 0, num_states)
            pairs += model.codes.size
        changed = count_different(action, policy)
        error = sizes.least_error + sizes.error_per_size * size
        good = high - low + 2.0 * error <= limits.span_tol or high - low <= 4.0 * error
        if good or total * num_states + pairs >= limits.most_work:
            return total, backups, pairs, changed, False, (low, high, own_low, own_high, size)
        backups += 1
        partial_span = high - low
        for s in range(num_states):
            v[s] = best[s]
            policy[s] = action[s]


def _sweep_in_threads(
    rows: PolicyRows, padded: PaddedRows, buffers: Buffers, max_sweeps: int, span_tol: float
) -> tuple[int, float, float, float]:
    """Do as `_sweep_until`, each sweep split over the cores."""
    v, spare, shared, history = buffers
    low, high, before = -math.inf, math.inf, math.inf
    count, pace = 0, START
    while count < max_sweeps:
        before = high - low
        old, new = (v, spare) if count % 2 == 0 else (spare, v)
        if len(padded.reward):
            parts = threads.split(_sweep_padded, len(v), (padded, old, new))
        else:
            shared_expectations(rows, old, shared)
            parts = threads.split(_sweep_range, len(v), (rows, shared, old, new))
        low, high = min(part[0] for part in parts), max(part[1] for part in parts)
        count += 1
        more = count < max_sweeps and high - low > span_tol
        low, high = keep_change(history, old, new, low, high, before, more)
        pace = pace_after(pace, high - low, count)
        if high - low <= span_tol:
            break
    return count, low, high, pace.rate
