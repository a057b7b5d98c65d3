"""Reduced rank extrapolation: what sweeps leave for later goes slowly and in few directions.

From the changes of the last few sweeps, or of pairs there and back, follows the affine combination of their iterates
whose change is the least. It minimises over the same space as GMRES does, and needs no products of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adalook._arrays import FloatArray
from adalook._jit import compiled, inlined
from adalook.planning.lookahead.kernels import eliminate, index

WINDOW, RIDGE = 6, 1e-14
"""Sweeps, or pairs of them, from which what is to come is extrapolated, and what keeps their equations regular."""
SLOW = 0.6
"""A sweep at once that leaves more than this share of the span of the change is kept to extrapolate from …"""
WORTH = 4.0
"""… unless extrapolations have brought less than so many sweeps do: after the second one not for a window, then two,
four, …"""
KEPT, PAUSE, NEXT_PAUSE = 0, 1, 2
"""Places of a history's notes: how many changes are kept, for how many sweeps none will be, for how many next time …"""
LOW, HIGH, RATE = 3, 4, 5
"""… and, of the sweep before an extrapolation that is not judged yet, its change's bounds, NaN for none, and rate."""


class History(NamedTuple):
    """The changes of the last sweeps at once; `keep_change` writes all of it."""

    steps: FloatArray  # (W, S) each but for a constant; W = 0: nothing is extrapolated
    before: FloatArray  # (S,) values before the last extrapolation
    notes: FloatArray  # (6,) numbers that sweeps carry on, at the places above

    @classmethod
    def of(cls, num_states: int, max_sweeps: int) -> History:
        """Return a history for so many sweeps at most."""
        window = WINDOW if max_sweeps > WINDOW else 0
        notes = np.array([0.0, 0.0, 0.0, np.nan, np.nan, np.nan])
        return cls(np.empty((window, num_states)), np.empty(num_states if window else 0), notes)


class Pace(NamedTuple):
    """The pace at which the span of the change falls, over a cycle of sweeps and what was extrapolated from them."""

    span: float
    """Of the change, when the last cycle began …"""
    last: float
    """… and when this one did."""
    rate: float
    """The factor of a sweep, 0 while it is not known."""


START = Pace(math.inf, math.inf, 0.0)


@compiled
def pace_after(pace: Pace, span: float, count: int) -> Pace:
    """Return the pace after `count` sweeps, the last of which changed values by this span."""
    cycle = WINDOW + 1
    if count == 1:
        return Pace(span, span, 0.0)
    made = (count - 2) % cycle + 1 + (cycle if count - 1 > cycle else 0)
    rate = (span / pace.span) ** (1.0 / made) if 0.0 < pace.span < np.inf else 0.0
    return Pace(pace.last, span, rate) if (count - 1) % cycle == 0 else Pace(pace.span, pace.last, rate)


@compiled
def keep_change(
    history: History, old: FloatArray, new: FloatArray, low: float, high: float, before: float, more: bool
) -> tuple[float, float]:
    """Keep what a sweep has changed, from old to new, and extrapolate new from every few of these.

    Where the sweep after an extrapolation changes more than the one before, new is what it was then. The changes are
    between `low` and `high`, and their span was `before`; `more` tells if another sweep is to come. Returns the
    changes' bounds, or those before an extrapolation that is taken back.
    """
    steps, saved, notes = history
    span = high - low
    if not np.isnan(notes[LOW]):
        low_then, high_then = notes[LOW], notes[HIGH]
        notes[LOW] = notes[HIGH] = np.nan
        if not span < (high_then - low_then) * notes[RATE] ** WORTH:
            notes[PAUSE], notes[NEXT_PAUSE] = notes[NEXT_PAUSE], max(WINDOW, 2.0 * notes[NEXT_PAUSE])
        if not span < high_then - low_then:
            new[:] = saved
            return low_then, high_then
    elif not span > SLOW * before:
        notes[KEPT] = 0.0
        return low, high
    if notes[PAUSE] > 0.0:
        notes[PAUSE] -= 1.0
        return low, high
    if len(steps) == 0 or not more:
        return low, high
    kept, middle = index(notes[KEPT]), 0.5 * (low + high)
    step = steps[kept]
    for s in range(index(len(new))):
        step[s] = new[s] - old[s] - middle
    notes[KEPT] += 1.0
    if notes[KEPT] == len(steps):
        notes[KEPT] = 0.0
        saved[:] = new
        if extrapolate(new, steps):
            notes[LOW], notes[HIGH], notes[RATE] = low, high, min(1.0, span / before)
    return low, high


@compiled
def extrapolate(v: FloatArray, steps: FloatArray) -> bool:
    """Move v to the affine combination of the last iterates whose change is the least (reduced rank extrapolation).

    The changes steps (W, S) led from one iterate to the next, the last to v. With weights c, Σ c = 1, that minimise
    |Σ c_j step_j|, v becomes Σ c_j v_j, where step_j led to v_j. Returns whether v was changed.
    """
    window = len(steps)
    gram = np.empty((window, window))
    for i in range(window):
        for j in range(i + 1):
            gram[i, j] = gram[j, i] = _dot(steps[i], steps[j])
    weights = np.ones(window)
    for i in range(window):
        gram[i, i] *= 1.0 + RIDGE
    eliminate(gram, weights)
    total = weights.sum()
    if not (np.isfinite(total) and total > 0.0):
        return False
    behind = 0.0
    for j in range(window - 1):
        behind += weights[j] / total
        step = steps[j + 1]
        for s in range(index(len(v))):
            v[s] -= behind * step[s]
    return True


@inlined
def _dot(one: FloatArray, other: FloatArray) -> float:
    """Return the inner product: four sums side by side, which a processor adds up at once."""
    a = b = c = d = 0.0
    size = index(len(one))
    k = index(0)
    while k + index(3) < size:
        a += one[k] * other[k]
        b += one[k + index(1)] * other[k + index(1)]
        c += one[k + index(2)] * other[k + index(2)]
        d += one[k + index(3)] * other[k + index(3)]
        k += index(4)
    while k < size:
        a += one[k] * other[k]
        k += index(1)
    return (a + b) + (c + d)
