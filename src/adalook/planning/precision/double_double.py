"""Double-double arithmetic: a number is the exact sum hi + lo of two floats, about 32 decimal digits.

The residual T_a v − v of values in the thousand millions is smaller than the spacing of floats there, and so is what
one action gains on another when γ is close to one. Here v = c + w: one float c that all states have in common, and a
double-double w (S,). Then

    (T_a v − v)(s) = r(s, a) + γ Σ p w + c (γρ − 1) − w(s),        ρ = Σ p over the row

where γρ − 1 = (ρ − 1) − (1 − γ)ρ is computed without cancellation, so that the common part costs no digits.

Errors are bounded row by row: with u = 2⁻⁵³, an addition is off by at most 3u², a multiplication by 2u² of its result
(Joldes, Muller and Popescu 2017), so a row of n successors by (n + 16)·4u² times the sum of its terms' sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled, inlined
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, is_deterministic, row_of

UNIT = 2.0**-104 * 1.01
"""4u², a little more: the sizes that it is multiplied by are themselves computed in floats."""
UNDERFLOW = 1e-290
"""More than all underflows of one row can cost."""
SPLITTER = 2.0**27 + 1.0


@inlined
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return (s, e) with s = a + b rounded and s + e = a + b exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@inlined
def two_product(a: float, b: float) -> tuple[float, float]:
    """Return (p, e) with p = a · b rounded and p + e = a · b exactly (Dekker)."""
    p = a * b
    t = SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def add(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Return the sum of two double-doubles."""
    s, s_low = two_sum(a, b)
    t, t_low = two_sum(a_low, b_low)
    c = s_low + t
    v = s + c
    w = t_low + (c - (v - s))
    high = v + w
    return high, w - (high - v)


@inlined
def times(a: float, a_low: float, b: float) -> tuple[float, float]:
    """Return a double-double times a float."""
    p, e = two_product(a, b)
    e += a_low * b
    high = p + e
    return high, e - (high - p)


class RowDefects(NamedTuple):
    """γρ − 1 of every stochastic row as double-doubles, ρ being its exact sum, and a bound on their errors."""

    high: FloatArray  # (rows,)
    low: FloatArray
    error: FloatArray


@compiled
def row_defects(model: ModelArrays, high: FloatArray, low: FloatArray, error: FloatArray) -> None:
    """Write γρ − 1 of every row; sums are exact but for what the third order of errors adds up to."""
    rest, rest_low = two_sum(1.0, -model.discount)
    for row in range(len(high)):
        total, lost, beyond = -1.0, 0.0, 0.0
        for k in range(model.indptr[row], model.indptr[row + 1]):
            total, e = two_sum(total, model.data[k])
            lost, e = two_sum(lost, e)
            beyond += abs(e)
        total, lost = two_sum(total, lost)  # ρ − 1
        over, over_low = add(total, lost, 1.0, 0.0)
        kept, kept_low = times(over, over_low, rest)
        more, more_low = times(over, over_low, rest_low)
        kept, kept_low = add(kept, kept_low, more, more_low)
        high[row], low[row] = add(total, lost, -kept, -kept_low)
        error[row] = beyond * 1.01 + 4.0 * UNIT * (abs(total) + abs(kept))


class Expectations(NamedTuple):
    """The expectation of w under every shared row as double-doubles, with the sum of its terms' sizes."""

    high: FloatArray  # (shared rows,)
    low: FloatArray
    size: FloatArray


@inlined
def expectation(model: ModelArrays, row: int, w: FloatArray, w_low: FloatArray) -> tuple[float, float, float]:
    """Return Σ p w over a row, and Σ p |w|."""
    total, lost, size = 0.0, 0.0, 0.0
    for k in range(model.indptr[row], model.indptr[row + 1]):
        s, p = model.indices[k], model.data[k]
        x, x_low = times(w[s], w_low[s], p)
        total, lost = add(total, lost, x, x_low)
        size += abs(x)
    return total, lost, size


@compiled
def expectations(model: ModelArrays, w: FloatArray, w_low: FloatArray, shared: Expectations) -> None:
    """Write the expectations of the shared rows."""
    for row in range(len(shared.high)):
        shared.high[row], shared.low[row], shared.size[row] = expectation(model, row, w, w_low)


class RelativeValues(NamedTuple):
    """Values v = c + w: what all states have in common, and the rest as double-doubles."""

    common: float
    high: FloatArray  # (S,)
    low: FloatArray


class Operands(NamedTuple):
    """All that T_a v − v is computed from."""

    model: ModelArrays
    rewards: FloatArray  # (S, A), scaled as v is
    defects: RowDefects
    shared: Expectations
    values: RelativeValues


@inlined
def change(operands: Operands, s: int, a: int) -> tuple[float, float, float]:
    """Return (T_a v − v)(s) as a double-double, and a bound on its error."""
    model, rewards, defects, shared, v = operands
    code = model.codes[s, a]
    if is_deterministic(code):
        terms = 1
        q, q_low, size = v.high[code], v.low[code], np.abs(v.high[code])
        defect_error = 0.0
        defect, defect_low = two_sum(model.discount, -1.0)
    else:
        row = row_of(code)
        terms = model.indptr[row + 1] - model.indptr[row]
        if row < len(shared.high):
            q, q_low, size = shared.high[row], shared.low[row], shared.size[row]
        else:
            q, q_low, size = expectation(model, row, v.high, v.low)
        defect, defect_low = float(defects.high[row]), float(defects.low[row])
        defect_error = float(defects.error[row])
    q, q_low = times(q, q_low, model.discount)
    paid, paid_low = times(defect, defect_low, v.common)
    size += abs(rewards[s, a]) + abs(paid) + abs(v.high[s])
    paid, paid_low = add(paid, paid_low, rewards[s, a], 0.0)
    q, q_low = add(q, q_low, -v.high[s], -v.low[s])
    q, q_low = add(q, q_low, paid, paid_low)
    return q, q_low, (terms + 16) * UNIT * size + defect_error * abs(v.common) * 1.01 + UNDERFLOW


@compiled
def own_changes(operands: Operands, policy: IntArray, out: FloatArray) -> tuple[float, float, float, float]:
    """Write T_π v − v (S,), rounded to floats.

    Returns bounds (low, high) on the exact T_π v − v, max|T_π v − v|, and the largest error bound.
    """
    low, high, largest, error = np.inf, -np.inf, 0.0, 0.0
    for s in range(len(policy)):
        q, q_low, e = change(operands, s, policy[s])
        q += q_low
        out[s] = q
        e += abs(q) * 1e-15
        low, high = min(low, q - e), max(high, q + e)
        largest, error = max(largest, abs(q)), max(error, e)
    return low, high, largest, error


@compiled
def improve(
    operands: Operands,
    policy: IntArray,
    switch_tol: float,
    doubt: float,
    actions: IntArray,
    undecided: IntArray,
) -> tuple[int, int, float]:
    """Write the best actions (S,): another than the policy's only for a gain of more than `switch_tol` and rounding.

    An action is *decided* when it is certainly no better than the policy's: when it loses more than rounding and
    `doubt` together, or leads to the same row for no more reward. Others are written to `undecided` (K, 2) as (state,
    action), as many as there is room for.
    Returns (states switched, actions undecided, upper bound on max T v − v).
    """
    codes, rewards = operands.model.codes, operands.rewards
    switched, doubtful, highest = 0, 0, -np.inf
    for s in range(len(policy)):
        own_action = policy[s]
        own, own_low, own_error = change(operands, s, own_action)
        best, best_low, actions[s] = own, own_low, own_action
        highest = max(highest, (own + own_low) + (own_error + abs(own) * 1e-15))
        for a in range(codes.shape[1]):
            if a == own_action or codes[s, a] == NOT_OFFERED:
                continue
            q, q_low, error = change(operands, s, a)
            plain = q + q_low
            error += abs(plain) * 1e-15
            highest = max(highest, plain + error)
            same = codes[s, a] == codes[s, own_action] and rewards[s, a] <= rewards[s, own_action]
            if plain + error + doubt >= 0.0 and not same:
                if doubtful < len(undecided):
                    undecided[doubtful, 0], undecided[doubtful, 1] = s, a
                doubtful += 1
            gain, _ = add(q, q_low, -own, -own_low)
            if gain > error + own_error + switch_tol and (q > best or (q == best and q_low > best_low)):
                best, best_low, actions[s] = q, q_low, a
        switched += actions[s] != own_action
    return switched, doubtful, highest


@compiled
def add_floats(v_high: FloatArray, v_low: FloatArray, more: FloatArray, more_low: float) -> None:
    """Add floats (S,), and one small float everywhere, to double-doubles in place."""
    for s in range(len(v_high)):
        v_high[s], v_low[s] = add(v_high[s], v_low[s], more[s], more_low)
