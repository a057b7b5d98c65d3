"""The values of a stochastic policy where float64 runs out of digits.

With v = c + w as in `double_double`, and σ = Σ_a π(a | s), which rounding leaves near one,

    (T_π v − v)(s) = Σ_a π(a | s) (T_a v − v)(s) + (σ − 1) v(s)

on the model's own rows. Corrections are solved for on the rows as the policy mixes them in float64: a few digits do.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.planning.certificate import Certificate, from_bounds
from adalook.planning.precision import double_double as dd
from adalook.planning.precision.refinement import CorrectionSolver, Parts, Refinement

if TYPE_CHECKING:
    from adalook.mdp.model import MDP


class MixedRefinement(Refinement):
    """Evaluates one stochastic policy in double-doubles.

    Args:
        mdp: the model.
        chances: (S, A) the policy's probabilities.
        mixed: the model of one action per state whose rows are, but for rounding, those of the policy.
        values: (S,) to start from.
    """

    def __init__(self, mdp: MDP, chances: FloatArray, mixed: MDP, values: FloatArray) -> None:
        super().__init__(mdp, np.zeros(mdp.num_states, np.int32), values)
        self._chances, self._mixed = chances, mixed

    def certificate(self, keep: tuple[Fraction, ...], tolerance: float) -> Certificate:
        """Return bounds on the policy's values; `keep` is 1 − γρσ for the least and the largest row sums."""
        low, high, _ = self._evaluate(self._policy, tolerance)
        v, scale = self._values, Fraction(2) ** -self._exponent
        values: FloatArray = np.ldexp(v.common + v.high, -self._exponent)
        return from_bounds(keep, values, Fraction(low) * scale, Fraction(high) * scale)

    def _own_changes(self, policy: IntArray, out: FloatArray) -> tuple[float, float, float, float]:
        bounds: tuple[float, float, float, float] = mixed_changes(self._operands(), self._chances, out)
        return bounds

    def _correction_solver(self, policy: IntArray) -> CorrectionSolver:
        return CorrectionSolver(self._mixed, policy, Parts(self._mixed))


@compiled
def mixed_changes(operands: dd.Operands, chances: FloatArray, out: FloatArray) -> tuple[float, float, float, float]:
    """Write T_π v − v (S,), rounded to floats, for a stochastic policy (S, A).

    Returns what `dd.own_changes` does.
    """
    v = operands.values
    num_states, num_actions = chances.shape
    lowest, highest, largest, rounding = np.inf, -np.inf, 0.0, 0.0
    for s in range(num_states):
        total, lost, size, error = 0.0, 0.0, 0.0, 0.0
        over, over_low, beyond = -1.0, 0.0, 0.0  # σ − 1, exact but for what is beyond
        for a in range(num_actions):
            p = chances[s, a]
            if p == 0.0:
                continue
            over, e = dd.two_sum(over, p)
            over_low, e = dd.two_sum(over_low, e)
            beyond += abs(e)
            q, q_low, e = dd.change(operands, s, a)
            q, q_low = dd.times(q, q_low, p)
            total, lost = dd.add(total, lost, q, q_low)
            size += abs(q)
            error += p * e
        here, here_low = dd.add(v.common, 0.0, v.high[s], v.low[s])
        more, more_low = dd.times(here, here_low, over)
        total, lost = dd.add(total, lost, more, more_low)
        size += abs(more)
        more, more_low = dd.times(here, here_low, over_low)
        total, lost = dd.add(total, lost, more, more_low)
        size += abs(more)
        total += lost
        error = 1.01 * error + 1.01 * beyond * abs(here) + (num_actions + 16) * dd.UNIT * size + dd.UNDERFLOW
        error += abs(total) * 1e-15
        out[s] = total
        lowest, highest = min(lowest, total - error), max(highest, total + error)
        largest, rounding = max(largest, abs(total)), max(rounding, error)
    return lowest, highest, largest, rounding
