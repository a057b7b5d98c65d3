"""Gauss's elimination within a band, for a whole model or for a part of it.

I − γ P_π is an M-matrix with dominant diagonal, so that elimination needs no pivoting and stays within the band: with l
entries below the diagonal and u above, S·l·u multiplications, in order of memory.
"""

from __future__ import annotations

from adalook._arrays import FloatArray
from adalook._jit import compiled
from adalook.planning.lookahead.kernels import index

STATE_COST, BAND_COST, PRODUCT_COST = 50.0, 6.0, 0.28
"""Nanoseconds of an elimination per state, per number that its band stores, and per multiplication."""


@compiled
def cost_per_state(lower: int, upper: int, inside: float) -> float:
    """Return the nanoseconds of an elimination per state, as measured, where a share `inside` of the products is in."""
    return STATE_COST + BAND_COST * (lower + upper + 1) + PRODUCT_COST * lower * upper * inside


@compiled
def eliminate(band: FloatArray, lower: int, upper: int) -> None:
    """Factorise in place: multipliers below the diagonal, the upper factor above."""
    n = len(band)
    for s in range(n):
        for p in range(max(0, s - lower), s):
            place = index(p - s + lower)
            if band[s, place] == 0.0:
                continue
            factor = band[s, place] / band[p, index(lower)]
            band[s, place] = factor
            for k in range(index(min(upper, n - 1 - p))):
                band[s, place + index(1) + k] -= factor * band[p, index(lower + 1) + k]


@compiled
def substitute(band: FloatArray, lower: int, upper: int, x: FloatArray) -> None:
    """Solve with the factors, in place: x holds the right side, then the answer."""
    n = len(x)
    for s in range(n):
        total = x[s]
        for k in range(max(0, lower - s), lower):
            total -= band[s, k] * x[s - lower + k]
        x[s] = total
    for s in range(n - 1, -1, -1):
        total = x[s]
        for k in range(1, min(upper, n - 1 - s) + 1):
            total -= band[s, lower + k] * x[s + k]
        x[s] = total / band[s, lower]
