"""Backups that skip what cannot be the best: certified elimination of actions, renewed with every backup.

Let w be the values at which Q_w(s, a) = r + γ P w was last computed, and v those of now. Rows are probabilities, so

    Q_v(s, a) <= Q_w(s, a) + γ max(v − w)

and where the right side is below what the policy's own action attains at v, action a need not be looked at. Values
that move together, as they do once a policy is swept with a constant shift, leave hardly any action to look at: a
backup then reads one row per state and one number per action. Only differences of values matter, not their level, and
nothing is eliminated for good. At w = 0 the bound is the reward: the first backup needs no other start.

The bound holds in floats with a margin of two rounding errors of a backup; the sum of the γ max(v − w) is rounded up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays
from adalook.planning import threads
from adalook.planning.certificate import rounding_bound
from adalook.planning.lookahead.kernels import index, next_value, shared_expectations
from adalook.planning.lookahead.levels import Backup, Residual

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

EPSILON = 2.0**-50
"""Relative error of the sums below, with room."""
MIN_ROW_LENGTH = 10
"""Successors of a row, on average, from which on leaving rows out saves more than deciding about them costs."""


def pays(mdp: MDP) -> bool:
    """Return whether a model's rows are long enough; shared ones, which are read once, do not count."""
    first = mdp.rows.num_shared
    entries = len(mdp.rows.indices) - int(mdp.rows.indptr[first])
    return entries >= MIN_ROW_LENGTH * max(1, mdp.rows.num_rows - first)


class EliminatingBackups:
    """Backs up the values of one solve, again and again, looking only at actions that may be the best."""

    def __init__(self, mdp: MDP) -> None:
        self._mdp = mdp
        self._bounds: FloatArray = np.where(mdp.codes == NOT_OFFERED, -np.inf, mdp.rewards)
        """(S, A) Q_w(s, a) less the offset at that time."""
        self._offset = 0.0
        """Sum of γ max(v − w) over all backups."""
        self._last: FloatArray | None = None
        """(S,) values of the last backup, zero at first."""
        self.pairs = 0
        """(state, action) pairs that the last backup looked at."""

    def backup(self, values: FloatArray, policy: IntArray) -> Backup:
        """Back up every state; what comes out is what `levels.backup` computes. Keeps `values` until the next call."""
        mdp, n = self._mdp, self._mdp.num_states
        rise, size = _largest_rise(values, self._last if self._last is not None else np.empty(0))
        sums = mdp.row_sums[1] if rise > 0.0 else mdp.row_sums[0]
        step = mdp.discount * rise * sums
        self._offset += step + EPSILON * (abs(step) + abs(self._offset) + size)
        self._last = values
        margin = 2.0 * rounding_bound(mdp, size) + EPSILON * abs(self._offset)
        best, action, shared = np.empty_like(values), np.empty_like(policy), np.empty(mdp.rows.num_shared)
        if len(shared):
            shared_expectations(mdp.arrays, values, shared)
        arguments = (mdp.arrays, shared, values, policy, self._bounds, self._offset, margin, best, action)
        if mdp.num_pairs + len(mdp.rows.indices) < threads.MIN_ENTRIES:
            parts = [_backup_range(*arguments, 0, n)]
        else:
            parts = threads.split(_backup_range, n, arguments)
        low, high, own_low, own_high, pairs = zip(*parts, strict=True)
        self.pairs = sum(pairs)
        return Backup(best, action, shared, Residual(min(low), max(high), min(own_low), max(own_high), size))


@compiled
def _largest_rise(v: FloatArray, w: FloatArray) -> tuple[float, float]:
    """Return max(v − w) and max|v|; an empty w stands for zeros."""
    rise, size = -np.inf, 0.0
    for s in range(len(v)):
        change = v[s] - w[s] if len(w) else v[s]
        rise = change if change > rise else rise
        size = abs(v[s]) if abs(v[s]) > size else size
    return rise, size


@compiled
def _backup_range(
    model: ModelArrays,
    shared: FloatArray,
    v: FloatArray,
    policy: IntArray,
    bounds: FloatArray,
    offset: float,
    margin: float,
    best: FloatArray,
    action: IntArray,
    first: int,
    last: int,
) -> tuple[float, float, float, float, int]:
    """Write T v and a greedy policy of states first..last-1, and the bounds of the actions that were looked at.

    Returns (min, max) of T v − v, (min, max) of T_π v − v, and how many pairs were looked at.
    """
    low, high, own_low, own_high = np.inf, -np.inf, np.inf, -np.inf
    count = 0
    for s in range(index(first), index(last)):
        chosen = index(policy[s])
        own = model.rewards[s, chosen] + model.discount * next_value(model, model.codes[s, chosen], shared, v)
        bounds[s, chosen] = own - offset
        top, top_action = own, policy[s]
        count += 1
        for a in range(index(model.codes.shape[1])):
            if bounds[s, a] + offset + margin > top and a != chosen:
                q = model.rewards[s, a] + model.discount * next_value(model, model.codes[s, a], shared, v)
                bounds[s, a] = q - offset
                count += 1
                if q > top:
                    top, top_action = q, a
        best[s], action[s] = top, top_action
        gain, drift = top - v[s], own - v[s]
        low = gain if gain < low else low
        high = gain if gain > high else high
        own_low = drift if drift < own_low else own_low
        own_high = drift if drift > own_high else own_high
    return low, high, own_low, own_high, count
