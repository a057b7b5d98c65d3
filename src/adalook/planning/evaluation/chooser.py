"""Evaluation of a policy: the solution of v = r_π + γ P_π v, by the cheapest way that suits the model.

* functional graph: where a policy's moves are certain, v(s) = r(s) + γ v(next(s)) is solved in O(S) by following
  pointers to a cycle and propagating back. Up to `MAX_LEAVES` distinct stochastic rows are leaves of that graph:
  v = a + w · m(leaf), and the leaves' expectations m solve a small linear system.
* sweeps: v <- T_π v, watched by the span of the change, as MacQueen does: V^π − T_π v lies within γ/(1 − γ) times the
  least and the largest change, so a constant shift removes the slow direction. Random graphs mix fast and need few.
* sparse LU: when sweeps would take longer than a factorisation whose fill the bandwidth bounds.
* Krylov (BiCGSTAB): when sweeps are slow and a factorisation would fill up.

The choice rests on operation counts, never on a clock, so that one input gives one result.
"""

from __future__ import annotations

import math
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning import threads
from adalook.planning.evaluation import kernels as evaluation_kernels
from adalook.planning.lookahead import kernels
from adalook.planning.lookahead.backups import table

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from adalook.mdp.model import MDP

MAX_LEAVES = 256
FIRST_SWEEPS = 24
"""Sweeps after which the rate of convergence is judged for the first time."""
LU_FLOP_COST = 0.3
"""Nanoseconds per multiplication of a banded factorisation, against …"""
SWEEP_ENTRY_COST = 2.0
"""… nanoseconds per stored probability of a sweep, both as orders of magnitude."""
LU_MOST_ENTRIES = 1e8
SLOW_SWEEPS = 2_000
"""Beyond this many predicted sweeps Krylov is tried."""
MOST_SWEEPS = 200_000

FUNCTIONAL, SWEEPS, LU, KRYLOV = "functional graph", "sweeps", "sparse LU", "BiCGSTAB"


class Evaluation(NamedTuple):
    """Values of a policy (S,), the way they were found, and the sweeps it took (1 for a direct solve)."""

    values: FloatArray
    way: str
    sweeps: int
    exact: bool
    """Solved as far as float64 allows (or as was asked for), so that gains can be told from errors."""


class Policy(NamedTuple):
    """The rows a policy uses: r_π (S,), transition codes (S,), and the table of rows they refer to."""

    reward: FloatArray
    code: IntArray
    stochastic: int
    rows: tuple[IntArray, IntArray, FloatArray]


class Evaluator:
    """Evaluates policies of one model; remembers what it learned about the model's structure."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp
        self._used = np.empty(MAX_LEAVES + 1, np.int64)
        self._last: tuple[IntArray, Policy] | None = None
        self._bandwidth: int | None = None
        self._direct_pays = False
        self._entries = mdp.num_states + len(mdp.rows.indices) // mdp.num_actions
        """About what a sweep reads."""

    @cached_property
    def _label(self) -> IntArray:
        """(rows,) the number of each stochastic row in use, -1 outside of such use."""
        return np.full(self.mdp.rows.num_rows, -1, np.int32)

    def rows_of(self, policy: IntArray) -> Policy:
        """The rows of a policy, an array that does not change once it was asked for."""
        if self._last is not None and self._last[0] is policy:
            return self._last[1]
        mdp = self.mdp
        reward, code = np.empty(mdp.num_states), np.empty(mdp.num_states, mdp.codes.dtype)
        stochastic = evaluation_kernels.policy_rows(mdp.rewards, mdp.codes, policy, reward, code)
        rows = Policy(reward, code, int(stochastic), table(mdp))
        self._last = (policy, rows)
        return rows

    def _gathered(self, rows: Policy) -> Policy:
        """The same policy with its rows side by side in memory: worth it where sweeps read more than a cache holds."""
        mdp = self.mdp
        hubs, n = mdp.rows.num_shared, mdp.num_states
        indptr, indices, data = rows.rows
        ends = np.zeros(hubs + n + 1, indptr.dtype)
        ends[: hubs + 1] = indptr[: hubs + 1]
        evaluation_kernels.own_lengths(rows.code, indptr, hubs, ends[hubs:])
        ends[hubs] = indptr[hubs]
        np.cumsum(ends[hubs:], out=ends[hubs:])
        new_indices, new_data = np.empty(int(ends[-1]), indices.dtype), np.empty(int(ends[-1]))
        new_indices[: ends[hubs]], new_data[: ends[hubs]] = indices[: ends[hubs]], data[: ends[hubs]]
        code = np.empty_like(rows.code)
        evaluation_kernels.gather_own(rows.code, indptr, indices, data, hubs, ends, new_indices, new_data, code)
        return Policy(rows.reward, code, rows.stochastic, (ends, new_indices, new_data))

    def exactly(self, policy: IntArray, start: FloatArray, span: float) -> Evaluation:
        """Solve directly where that is cheap, otherwise until a sweep's change has at most this span."""
        rows = self.rows_of(policy)
        values = self._functional(rows)
        if values is not None:
            return Evaluation(values, FUNCTIONAL, 1, exact=True)
        return self._iterate(rows, start, max(span, self.floor(start)))

    def is_functional(self, policy: IntArray) -> bool:
        """Whether the policy has few enough stochastic rows to be solved by following pointers."""
        return bool(evaluation_kernels.few_rows(self.mdp.codes, policy, self._label, self._used, MAX_LEAVES))

    def roughly(self, policy: IntArray, start: FloatArray, span: float, most: int) -> Evaluation:
        """As `exactly` for functional graphs; otherwise stop at this span or after `most` sweeps, far from exact."""
        rows = self.rows_of(policy)
        values = self._functional(rows)
        if values is not None:
            return Evaluation(values, FUNCTIONAL, 1, exact=True)
        floor = self.floor(start)
        if most < FIRST_SWEEPS and not self._direct_pays:
            if threads.worthwhile(self._entries) and most > 2:
                rows = self._gathered(rows)
            values, count, _, _ = self._sweep(rows, start.copy(), most, max(span, floor))
            return Evaluation(values, SWEEPS, count, exact=False)
        result = self._iterate(rows, start, max(span, floor))
        return Evaluation(result.values, result.way, result.sweeps, exact=result.way == LU or span <= floor)

    def sweeps(self, policy: IntArray, start: FloatArray, count: int) -> Evaluation:
        """Exactly `count` sweeps from `start`."""
        values, _, _, _ = self._sweep(self.rows_of(policy), start.copy(), count, -1.0)
        return Evaluation(values, SWEEPS, count, exact=False)

    def floor(self, start: FloatArray) -> float:
        """The span of a sweep's change below which there is only rounding."""
        size = self.mdp.largest_reward + 2.0 * float(np.abs(start).max())
        return self.mdp.rounding_terms * 2.0**-53 * size

    def _functional(self, rows: Policy) -> FloatArray | None:
        """Follow the pointers, if few enough rows are stochastic; O(S)."""
        mdp = self.mdp
        leaves = 0
        if rows.stochastic:
            leaves = evaluation_kernels.number_rows(rows.code, self._label, self._used, MAX_LEAVES)
        used = self._used[: min(leaves, MAX_LEAVES)]
        try:
            if leaves > MAX_LEAVES:
                return None
            n = mdp.num_states
            value, weight = np.empty(n), np.empty(n)
            exit_ = np.full(n, evaluation_kernels.UNSEEN, np.int32)
            path = np.empty(n, mdp.codes.dtype)
            evaluation_kernels.follow(rows.reward, rows.code, self._label, mdp.discount, value, weight, exit_, path)
            if leaves:
                matrix, constant = np.zeros((leaves, leaves)), np.zeros(leaves)
                evaluation_kernels.close_leaves(*table(mdp), used, value, weight, exit_, matrix, constant)
                evaluation_kernels.add_leaves(value, weight, exit_, np.linalg.solve(np.eye(leaves) - matrix, constant))
            return value
        finally:
            self._label[used] = -1

    def _sweep(self, rows: Policy, values: FloatArray, most: int, span: float) -> tuple[FloatArray, int, float, float]:
        """Sweep in place of `values`; returns (values, count, span reached, rate of the last sweep)."""
        mdp = self.mdp
        spare, hub = np.empty_like(values), np.empty(mdp.rows.num_shared)
        arguments = (rows.reward, rows.code, *rows.rows, hub, mdp.discount)
        if threads.worthwhile(self._entries):
            count, low, high, before = _sweep_in_threads(arguments, values, spare, most, span)
        else:
            count, low, high, before = evaluation_kernels.sweeps(*arguments, values, spare, most, span)
        result = spare if count % 2 else values
        # All changes of one sign: the sum of all later sweeps is at least γ/(1 − γ) times the smallest of them.
        common = low if low > 0 else high if high < 0 else 0.0
        if span >= 0.0 and common != 0.0:
            result += mdp.discount / (1.0 - mdp.discount) * common
        return result, int(count), high - low, (high - low) / before if 0 < before < math.inf else 0.0

    def _iterate(self, rows: Policy, start: FloatArray, span: float) -> Evaluation:
        """Sweeps, unless their measured rate says that a direct or a Krylov solve is cheaper."""
        if self._direct_pays:
            return Evaluation(self._lu(rows), LU, 1, exact=True)
        if threads.worthwhile(self._entries):
            rows = self._gathered(rows)
        values, count, reached, rate = self._sweep(rows, start.copy(), FIRST_SWEEPS, span)
        tried_krylov = False
        while reached > span and count < MOST_SWEEPS:
            left = math.log(span / reached) / math.log(rate) if 0 < rate < 1 else MOST_SWEEPS
            if self._lu_beats(left, rows):
                self._direct_pays = True
                return Evaluation(self._lu(rows), LU, count + 1, exact=True)
            if left > SLOW_SWEEPS and not tried_krylov:
                tried_krylov = True
                better, products = self._krylov(rows, values, span)
                count += products
                if better is not None:
                    values = better
            most = int(min(max(left * 0.5, FIRST_SWEEPS), 1_000))
            previous = reached
            values, more, reached, rate = self._sweep(rows, values, most, span)
            count += more
            if reached >= previous and rate >= 1.0:
                break  # rounding is all that is left
        return Evaluation(values, KRYLOV if tried_krylov else SWEEPS, count, exact=True)

    def _lu_beats(self, sweeps_left: float, rows: Policy) -> bool:
        """Whether a banded factorisation would cost less than the sweeps that seem to be left."""
        mdp = self.mdp
        n = mdp.num_states
        gain = sweeps_left * self._entries * SWEEP_ENTRY_COST
        if self._bandwidth is None:
            if gain < 100 * self._entries:  # finding the bandwidth costs about as much
                return False
            self._bandwidth = _bandwidth(self._matrix(rows))
        width = min(self._bandwidth, n)
        return n * width <= LU_MOST_ENTRIES and n * width * width * LU_FLOP_COST < gain

    def _matrix(self, rows: Policy) -> csc_array:
        """I − γ P_π."""
        from scipy.sparse import csc_array, csr_array, eye_array

        n = self.mdp.num_states
        indptr, indices, data = rows.rows
        row = np.maximum(-2 - rows.code, 0)
        certain = rows.code >= 0
        lengths = np.where(certain, 1, (indptr[np.minimum(row + 1, len(indptr) - 1)] - indptr[row]))
        ends = np.zeros(n + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        entry = np.repeat(indptr[row] - ends[:-1], lengths) + np.arange(ends[-1])
        sure = np.repeat(certain, lengths)
        columns, chances = np.repeat(rows.code, lengths), np.ones(len(sure))
        columns[~sure], chances[~sure] = indices[entry[~sure]], data[entry[~sure]]
        identity: csc_array = csc_array(eye_array(n))
        matrix: csc_array = identity - csc_array(csr_array((self.mdp.discount * chances, columns, ends), shape=(n, n)))
        return matrix

    def _lu(self, rows: Policy) -> FloatArray:
        """Factorise, solve, and refine twice with the residual."""
        from scipy.sparse.linalg import splu

        matrix = self._matrix(rows)
        factors = splu(matrix)
        values: FloatArray = factors.solve(rows.reward)
        for _ in range(2):
            values = values + factors.solve(rows.reward - matrix @ values)
        return values

    def _krylov(self, rows: Policy, start: FloatArray, span: float) -> tuple[FloatArray | None, int]:
        """BiCGSTAB from `start`: (values or None, matrix products)."""
        from scipy.sparse.linalg import bicgstab

        products = 0

        def count(_: FloatArray) -> None:
            nonlocal products
            products += 2

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            values, _ = bicgstab(
                self._matrix(rows).tocsr(), rows.reward, x0=start, rtol=0.0, atol=span, maxiter=1_000, callback=count
            )
        return (values if np.isfinite(values).all() else None), products


def _sweep_in_threads(
    arguments: tuple[Any, ...], values: FloatArray, spare: FloatArray, most: int, span: float
) -> tuple[int, float, float, float]:
    """`evaluation_kernels.sweeps`, each sweep split over the cores."""
    low, high, before, count = -math.inf, math.inf, math.inf, 0
    while count < most:
        before = high - low
        old, new = (values, spare) if count % 2 == 0 else (spare, values)
        indptr, indices, data, hub = arguments[2:6]
        kernels.hub_expectations(indptr, indices, data, old, hub)
        parts = threads.split(evaluation_kernels.sweep, len(values), (*arguments, old, new))
        low, high = min(part[0] for part in parts), max(part[1] for part in parts)
        count += 1
        if high - low <= span:
            break
    return count, low, high, before


def _bandwidth(matrix: csc_array) -> int:
    """Bandwidth after the reverse Cuthill–McKee ordering: bounds the fill of a factorisation."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee((matrix + matrix.T).tocsr(), symmetric_mode=True)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    entries = matrix.tocoo()
    return int(np.abs(place[entries.row] - place[entries.col]).max(initial=0))
