"""BiCGSTAB on (I − γ P_π) v = r_π: for policies on which sweeps are slow and a factorisation would fill up.

van der Vorst's method, written out: SciPy's takes its inner products from BLAS, which splits them over the cores, and
the bits of an answer must not depend on how many there are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray
from adalook.planning.evaluation.linear.lu import policy_matrix

if TYPE_CHECKING:
    from adalook.planning.evaluation.sweeps import PolicyRows

NAME = "BiCGSTAB"
MAX_STEPS = 1_000


def solve_by_bicgstab(
    rows: PolicyRows, start: FloatArray, residual_tol: float, max_steps: int = MAX_STEPS
) -> tuple[FloatArray | None, int]:
    """Iterate from `start`: (values, or None if it broke down; matrix products, each the work of a sweep)."""
    matrix = policy_matrix(rows).tocsr()
    values, products = start.copy(), 0
    with np.errstate(all="ignore"):
        residual = rows.reward - matrix @ values
        shadow = residual.copy()
        direction = residual.copy()
        rho = _dot(shadow, residual)
        for _ in range(max_steps):
            if math.sqrt(_dot(residual, residual)) <= residual_tol:
                break
            image = matrix @ direction
            alpha = _ratio(rho, _dot(shadow, image))
            half = residual - alpha * image
            twice = matrix @ half
            omega = _ratio(_dot(twice, half), _dot(twice, twice))
            products += 2
            if not (math.isfinite(alpha) and math.isfinite(omega)):  # a breakdown, or half is zero: nothing is left
                step = alpha * direction
                values = values + step if np.isfinite(step).all() else values
                break
            values += alpha * direction + omega * half
            residual = half - omega * twice
            previous, rho = rho, _dot(shadow, residual)
            direction = residual + _ratio(rho, previous) * _ratio(alpha, omega) * (direction - omega * image)
    return (values if np.isfinite(values).all() else None), products


def _dot(one: FloatArray, other: FloatArray) -> float:
    """Return the inner product, summed in pairs: one order of operations on any number of cores."""
    return float(np.add.reduce(one * other))


def _ratio(top: float, bottom: float) -> float:
    """Return top / bottom; not a number where that breaks down."""
    return top / bottom if bottom else math.nan
