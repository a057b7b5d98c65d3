"""Banded elimination of I − γ P_π: for policies whose moves lead to states of near numbers, such as queues.

See `band` for the elimination. Refinement with the residual removes what rounding left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.transitions import NOT_OFFERED, is_deterministic, row_of
from adalook.planning.evaluation.linear.band import eliminate, substitute
from adalook.planning.lookahead.kernels import index, next_value, shared_expectations

if TYPE_CHECKING:
    from adalook.mdp.model import MDP
    from adalook.planning.evaluation.sweeps import PolicyRows

NAME = "banded LU"
MAX_ENTRIES = 60_000_000
"""Stored numbers of a band, half a gigabyte."""
REFINEMENTS = 2


def bandwidths(rows: PolicyRows) -> tuple[int, int]:
    """Return how far a policy's moves lead to smaller and to larger numbers of states."""
    lower, upper = _bandwidths(rows.code.reshape(-1, 1), rows.indptr, rows.indices, len(rows.code) * 2.0)
    return lower, upper


def widest_bandwidths(mdp: MDP, enough: float) -> tuple[int, int]:
    """Return the same over all moves of a model, as no policy has a wider band; or two that sum to more than enough."""
    lower, upper = _bandwidths(mdp.codes, mdp.rows.indptr, mdp.rows.indices, enough)
    return lower, upper


def solve_banded(rows: PolicyRows, lower: int, upper: int) -> FloatArray:
    """Return the policy's values (S,)."""
    n = len(rows.code)
    band = np.zeros((n, lower + upper + 1))
    _fill_band(rows, lower, band)
    eliminate(band, lower, upper)
    values = rows.reward.copy()
    substitute(band, lower, upper, values)
    shared, rest = np.empty(rows.num_shared), np.empty(n)
    for _ in range(REFINEMENTS):
        shared_expectations(rows, values, shared)
        _residual(rows, shared, values, rest)
        substitute(band, lower, upper, rest)
        values += rest
    return values


@compiled
def _bandwidths(codes: IntArray, indptr: IntArray, indices: IntArray, enough: float) -> tuple[int, int]:
    """Return the largest s − s' and s' − s over all moves s -> s' of codes (S, A); successors ascend within a row.

    States are looked at one after the other until the two sum to more than `enough`.
    """
    lower = upper = 0
    for s in range(codes.shape[0]):
        if lower + upper > enough:
            break
        for a in range(index(codes.shape[1])):
            code = codes[s, a]
            if is_deterministic(code):
                first, last = code, code
            elif code != NOT_OFFERED:
                row = index(row_of(code))
                first, last = indices[index(indptr[row])], indices[index(indptr[row + index(1)]) - index(1)]
            else:
                continue
            lower = max(lower, s - first)
            upper = max(upper, last - s)
    return lower, upper


@compiled
def _fill_band(rows: PolicyRows, lower: int, band: FloatArray) -> None:
    """Write I − γ P_π: entry (s, s') at band[s, s' − s + lower]."""
    for s in range(len(rows.code)):
        band[s, lower] += 1.0
        code = rows.code[s]
        if is_deterministic(code):
            band[s, code - s + lower] -= rows.discount
        else:
            for k in range(rows.indptr[row_of(code)], rows.indptr[row_of(code) + 1]):
                band[s, rows.indices[k] - s + lower] -= rows.discount * rows.data[k]


@compiled
def _residual(rows: PolicyRows, shared: FloatArray, v: FloatArray, out: FloatArray) -> None:
    """Write T_π v − v."""
    for s in range(index(len(v))):
        out[s] = rows.reward[s] + rows.discount * next_value(rows, rows.code[s], shared, v) - v[s]
