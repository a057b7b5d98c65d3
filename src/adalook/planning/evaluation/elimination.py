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

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays
from adalook.planning import threads
from adalook.planning.certificate import rounding_bound
from adalook.planning.lookahead.kernels import index, next_value, shared_expectations
from adalook.planning.lookahead.levels import Backup, Residual

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

EPSILON = 2.0**-50
"""Relative error of the sums below, with room."""
ROOM = 1.0 + 2.0**-40
"""Makes up for computing a rounding error in floats."""
MIN_ROW_LENGTH = 10
"""Successors of a row, on average, from which on leaving rows out saves more than deciding about them costs."""


@kept_with_model
def pays(mdp: MDP) -> bool:
    """Return whether a model's rows are long enough; shared ones, which are read once, do not count."""
    first = mdp.rows.num_shared
    entries = len(mdp.rows.indices) - int(mdp.rows.indptr[first])
    return entries >= MIN_ROW_LENGTH * max(1, mdp.rows.num_rows - first)


class KnownBounds(NamedTuple):
    """Bounds on the actions' values from earlier backups; kernels change them in place."""

    bounds: FloatArray  # (S, A) Q_w(s, a) less the offset at that time
    last: FloatArray  # (S,) values of the last backup, zero at first
    offset: FloatArray  # (1,) sum of γ max(v − w) over all backups


class RoundingSizes(NamedTuple):
    """The numbers of a model that rounding depends on, as kernels take them."""

    least_error: float
    """The rounding of T v − v is at most this …"""
    error_per_size: float
    """… plus this times max|v|."""
    lightest: float
    heaviest: float
    """Bounds on the sums of all rows."""

    @classmethod
    def of(cls, mdp: MDP) -> RoundingSizes:
        """Return the sizes of a model."""
        least = rounding_bound(mdp, 0.0)
        return cls(least, rounding_bound(mdp, 1.0) - least, *mdp.row_sums)


class EliminatingBackups:
    """Backs up the values of one solve, again and again, looking only at actions that may be the best."""

    def __init__(self, mdp: MDP) -> None:
        self._mdp = mdp
        bounds: FloatArray = np.where(mdp.codes == NOT_OFFERED, -np.inf, mdp.rewards)
        self.known = KnownBounds(bounds, np.zeros(mdp.num_states), np.zeros(1))
        self.sizes = RoundingSizes.of(mdp)
        self.pairs = 0
        """(state, action) pairs that the last backup looked at."""

    def backup(self, values: FloatArray, policy: IntArray) -> Backup:
        """Back up every state; what comes out is what `levels.backup` computes."""
        mdp, n = self._mdp, self._mdp.num_states
        best, action, shared = np.empty_like(values), np.empty_like(policy), np.empty(mdp.rows.num_shared)
        if len(shared):
            shared_expectations(mdp.arrays, values, shared)
        size, margin = renew(mdp.arrays, self.sizes, self.known, values)
        arguments = (mdp.arrays, shared, values, policy, self.known, margin, best, action)
        if mdp.num_pairs + len(mdp.rows.indices) < threads.MIN_ENTRIES:
            parts = [backup_range(*arguments, 0, n)]
        else:
            parts = threads.split(backup_range, n, arguments)
        low, high, own_low, own_high, pairs = zip(*parts, strict=True)
        self.pairs = sum(pairs)
        return Backup(best, action, shared, Residual(min(low), max(high), min(own_low), max(own_high), size))


@compiled
def renew(model: ModelArrays, sizes: RoundingSizes, known: KnownBounds, v: FloatArray) -> tuple[float, float]:
    """Add γ max(v − w) to the offset, rounded up, and keep v; returns max|v| and the margin of comparisons."""
    rise, size = _largest_rise(v, known.last)
    step = model.discount * rise * (sizes.heaviest if rise > 0.0 else sizes.lightest)
    known.offset[0] += step + EPSILON * (abs(step) + abs(known.offset[0]) + size)
    known.last[:] = v
    error = sizes.least_error + sizes.error_per_size * size * ROOM
    return size, 2.0 * error + EPSILON * abs(known.offset[0])


@compiled
def _largest_rise(v: FloatArray, w: FloatArray) -> tuple[float, float]:
    """Return max(v − w) and max|v|."""
    rise, size = -np.inf, 0.0
    for s in range(len(v)):
        change = v[s] - w[s]
        rise = change if change > rise else rise
        size = abs(v[s]) if abs(v[s]) > size else size
    return rise, size


@compiled
def backup_range(
    model: ModelArrays,
    shared: FloatArray,
    v: FloatArray,
    policy: IntArray,
    known: KnownBounds,
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
    bounds, offset = known.bounds, known.offset[0]
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
