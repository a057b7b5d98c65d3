"""BiCGSTAB on (I − γ P_π) v = r_π: for policies on which sweeps are slow and a factorisation would fill up."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray
from adalook.planning.evaluation.lu import policy_matrix

if TYPE_CHECKING:
    from adalook.planning.evaluation.sweeps import PolicyRows

NAME = "BiCGSTAB"
MAX_STEPS = 1_000


def solve_by_bicgstab(rows: PolicyRows, start: FloatArray, residual_tol: float) -> tuple[FloatArray | None, int]:
    """Iterate from `start`: (values, or None if it broke down; matrix products, each the work of a sweep)."""
    from scipy.sparse.linalg import bicgstab

    products = 0

    def count(_: FloatArray) -> None:
        nonlocal products
        products += 2

    matrix = policy_matrix(rows).tocsr()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values, _ = bicgstab(
            matrix, rows.reward, x0=start, rtol=0.0, atol=residual_tol, maxiter=MAX_STEPS, callback=count
        )
    return (values if np.isfinite(values).all() else None), products
