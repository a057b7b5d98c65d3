"""Coarse corrections by adaptive aggregation (Bertsekas and Castañon, 1989): groups of states are moved as one.

After some sweeps the change ρ = T_π v − v hardly differs within sets of states that mix well among themselves, such as
closed classes or nearly decomposable blocks; what is left to sweep away differs from set to set, and goes by a factor
γ per sweep. States of about the same change make up a group here, and every group is moved by a constant y,

    (I − γ P̄) y = ρ̄,      P̄, ρ̄: averages of P_π and ρ over the states of a group.

One group is the constant shift of `sweeps`. Groups are found anew from the change each time, so they need not be the
model's own; what a piecewise constant correction leaves behind is smoothed by the sweeps that follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.transitions import is_deterministic, row_of
from adalook.planning.lookahead.kernels import eliminate, index, next_value, shared_expectations

if TYPE_CHECKING:
    from adalook.planning.evaluation.sweeps import PolicyRows

NAME = "aggregation"
GROUPS = 64
"""Intervals of equal length that the change is divided into: solving for their constants takes 0.1 ms."""
SWEEPS = 3
"""A correction costs about so many sweeps: the change, the averages, and adding it."""


def correct(rows: PolicyRows, values: FloatArray) -> FloatArray:
    """Return values (S,) with the average change of every group removed."""
    shared, change = np.empty(rows.num_shared), np.empty_like(values)
    shared_expectations(rows, values, shared)
    low, high = _changes(rows, shared, values, change)
    if not high > low:
        return values
    group = np.empty(len(values), np.uint8)
    system, shift = np.zeros((GROUPS, GROUPS)), np.zeros(GROUPS)
    _aggregate(rows, change, low, GROUPS / (high - low), group, system, shift)
    eliminate(system, shift)
    corrected: FloatArray = values + shift[group]
    return corrected


@compiled
def _changes(rows: PolicyRows, shared: FloatArray, v: FloatArray, change: FloatArray) -> tuple[float, float]:
    """Write T_π v − v and return its least and largest entry."""
    low, high = np.inf, -np.inf
    for s in range(index(len(v))):
        new = rows.reward[s] + rows.discount * next_value(rows, rows.code[s], shared, v) - v[s]
        change[s] = new
        low = new if new < low else low
        high = new if new > high else high
    return low, high


@compiled
def _aggregate(
    rows: PolicyRows,
    change: FloatArray,
    low: float,
    scale: float,
    group: IntArray,
    system: FloatArray,
    total: FloatArray,
) -> None:
    """Write every state's group, and the sums over a group of I − γ P_π and of the change."""
    groups = len(total)
    count = np.zeros(groups)
    for s in range(index(len(change))):
        number = min(groups - 1, int((change[s] - low) * scale))
        group[s] = number
        count[index(number)] += 1.0
        total[index(number)] += change[s]
    for s in range(index(len(change))):
        g, code = index(group[s]), rows.code[s]
        system[g, g] += 1.0
        if is_deterministic(code):
            system[g, index(group[index(code)])] -= rows.discount
        else:
            row = index(row_of(code))
            for k in range(index(rows.indptr[row]), index(rows.indptr[row + index(1)])):
                system[g, index(group[index(rows.indices[k])])] -= rows.discount * rows.data[k]
    for h in range(groups):
        if count[h] == 0.0:
            system[h, h] = 1.0
