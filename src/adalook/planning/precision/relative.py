"""Values relative to a common constant: float64 goes further where states differ by less than they are worth.

Near γ = 1 all values are about r / (1 − γ), and rounding is in proportion to that. Where it soon does not matter any
more in which state one began, states differ by far less. For w = v − c

    T w − w = (T v − v) + (1 − γ) c

so that the residual of w is that of v but for a constant, which bounds allow for, and its rounding goes with |w|.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from adalook._arrays import FloatArray, IntArray
from adalook.planning.certificate import Certificate, from_residual, loss_bound
from adalook.planning.evaluation.sweeps import PolicyRows, sweep, sweep_entries
from adalook.planning.lookahead.levels import Residual, backup

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "sweeps of relative values"
LAST_SWEEPS = 16
"""Sweeps of the relative values, which began as well as float64 knew the others."""


class RelativePass(NamedTuple):
    """A policy's values but for a constant, the residual of their backup, and what follows for the policy."""

    values: FloatArray  # (S,)
    residual: Residual
    certificate: Certificate


def relative_values(mdp: MDP, policy: IntArray, values: FloatArray, tolerance: float) -> RelativePass | None:
    """Return values relative to a constant that certify the policy within the tolerance; None if they cannot.

    Args:
        mdp: the model.
        policy: (S,) one that has settled.
        values: (S,) its values, as well as float64 knows them.
        tolerance: on the policy's loss.
    """
    highest, lowest = float(values.max()), float(values.min())
    level = 0.5 * (highest + lowest)
    drift = (1.0 - mdp.discount) * level  # by which a sweep moves them all
    size = 0.5 * (highest - lowest) + LAST_SWEEPS * abs(drift)
    if not loss_bound(mdp, Residual(drift, drift, drift, drift, size), greedy=False) <= tolerance:
        return None  # that is what rounding would leave
    relative = sweep(PolicyRows.of(mdp, policy), values - level, LAST_SWEEPS, -1.0, sweep_entries(mdp)).values
    residual = backup(mdp, relative, policy).residual
    certificate = from_residual(mdp, relative, residual, greedy=False)
    return RelativePass(relative, residual, certificate) if certificate.policy_loss <= tolerance else None
