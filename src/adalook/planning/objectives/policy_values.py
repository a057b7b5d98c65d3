"""`evaluate`: the values of one policy, with certified bounds.

A deterministic policy makes of the model one with a single action per state, which `solve` solves and certifies: what
it calls V* is V^π. A stochastic policy is mixed, too, row by row, but mixing rounds; so its bounds come from the model
itself. With d = T_π v − v, T_π v(s) = Σ_a π(a | s) (r(s, a) + γ Σ_s' P(s' | s, a) v(s')), in float64 off by at most

    γₙ σ (|r| + (1 + γρ)|v|)        n: the terms of a backup, one per action, and the last operations

where ρ bounds the sums of the model's rows and σ those of the policy's, V^π lies within the bounds of the certificate
for row sums ρσ. Where these bounds are wider than what was asked for, others come from double-doubles, see
`precision.mixed`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import as_array, non_negative
from adalook.errors import ArgumentError, ModelError
from adalook.mdp.aggregation import entries
from adalook.mdp.model import MDP
from adalook.mdp.names import Names
from adalook.mdp.simulation import checked_stochastic_policy
from adalook.mdp.transitions import ModelArrays
from adalook.planning.certificate import Certificate, CertifiedBounds, from_contraction
from adalook.planning.checks import checked_policy
from adalook.planning.lookahead.levels import Residual, action_values
from adalook.planning.solve import DEFAULT_TOLERANCE, published, solve

if TYPE_CHECKING:
    import pandas

ROUNDING_UNIT = 2.0**-53
ENOUGH = 0.9
"""Share of the tolerance at which a correction of the values is not followed by another."""


@dataclass(frozen=True, eq=False)
class PolicyValues(CertifiedBounds):
    """The answer of `evaluate`: V^π with bounds that hold in exact arithmetic."""

    mdp: MDP
    policy: IntArray | FloatArray
    """(S,) actions, or (S, A) probabilities."""
    values: FloatArray
    """(S,) estimate of V^π, between lower and upper."""
    certificate: Certificate
    solver: str
    """What computed the values."""
    seconds: float

    @cached_property
    def error(self) -> float:
        """Certified bound on max|values − V^π|."""
        width = np.maximum(self.upper - self.values, self.values - self.lower)
        return math.nextafter(float(width.max()), math.inf)

    @cached_property
    def action_values(self) -> FloatArray:
        """(S, A) r(s, a) + γ Σ P(s' | s, a) values(s'); −inf where an action is not offered."""
        return action_values(self.mdp, self.values)

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas table, a row per state: its name, value and bounds."""
        from adalook.planning.tables import frame

        return frame(self.mdp, {"value": self.values, "lower": self.lower, "upper": self.upper})

    def __repr__(self) -> str:
        kind = "a stochastic" if self.policy.ndim == 2 else "a deterministic"
        return (
            f"PolicyValues({kind} policy on {self.mdp.num_states:,} states, {self.values.min():.6g} to "
            f"{self.values.max():.6g}, each within {self.error:.2g})"
        )


def evaluate(mdp: MDP, policy: Any, *, tolerance: float = DEFAULT_TOLERANCE) -> PolicyValues:
    """Return the values of a policy, with certified bounds.

    Args:
        mdp: the model; with discount 1 the policy must end from everywhere.
        policy: (S,) actions, by numbers or names, or (S, A) probabilities of actions.
        tolerance: absolute, on the width of the bounds before they are rounded to floats; 0 asks for all that
            arithmetic can give. What was reached is `error`.

    >>> import adalook as al
    >>> mdp = al.zoo.chain(n=9)
    >>> always_left = al.evaluate(mdp, np.zeros(mdp.num_states, int))
    >>> bool((al.solve(mdp).upper >= always_left.lower).all())
    True
    """
    began = perf_counter()
    if not isinstance(mdp, MDP):
        raise ModelError("evaluate got no model", expected="an al.MDP", got=type(mdp).__name__)
    tolerance = non_negative.validate("tolerance", tolerance)
    given = _policy_array(mdp, policy)
    if given.ndim == 1:
        actions = checked_policy(mdp, given, "policy")
        solution = solve(under_policy(mdp, actions), tolerance=tolerance, keep_states=False)
        return PolicyValues(
            mdp, actions, solution.values, solution.certificate, solution.summary, perf_counter() - began
        )
    chances = checked_stochastic_policy(mdp, given)
    mixed = _mixed(mdp, chances)
    solution = solve(mixed, tolerance=tolerance / 2.0, keep_states=False)
    if mdp.discount == 1.0:
        from adalook.planning.objectives.total_reward import certify_mixed

        certificate = certify_mixed(mdp, chances, solution.values)
    else:
        certificate = _certify_mixed(mdp, chances, mixed, solution.values, tolerance)
    values = certificate.values
    if mdp.discount < 1.0 and not certificate.low <= 0.0 <= certificate.high:
        values = values + 0.5 * (certificate.low + certificate.high)
    return PolicyValues(mdp, chances, published(values), certificate, solution.summary, perf_counter() - began)


def _policy_array(mdp: MDP, policy: Any) -> np.ndarray:
    """Return a policy as an array (S,) of ints or names, or (S, A) of floats."""
    given: np.ndarray = as_array("policy", policy)
    if given.shape == (mdp.num_states, mdp.num_actions) and given.dtype.kind in "iufb":
        return given.astype(float)
    if given.ndim == 1:
        return given
    raise ArgumentError(
        "policy is wrong",
        expected=f"ints ({mdp.num_states},) or floats {(mdp.num_states, mdp.num_actions)}",
        got=f"{given.dtype} {given.shape}",
    )


def under_policy(mdp: MDP, actions: IntArray) -> MDP:
    """Return the model that is left when each state offers one action."""
    column = actions.astype(np.intp)[:, None]
    rewards = np.take_along_axis(mdp.rewards, column, 1)
    codes = np.take_along_axis(mdp.codes, column, 1)
    return MDP._adopt(rewards, codes, mdp.rows, mdp.discount, names=Names(mdp.state_names))


def _mixed(mdp: MDP, chances: FloatArray) -> MDP:
    """Return the model of one action per state whose rows are mixed as the policy does, but for rounding."""
    from scipy.sparse import coo_array

    state, action, successor, weight = entries(mdp)
    weight = weight * chances[state, action]
    taken = weight > 0.0
    shape = (mdp.num_states, mdp.num_states)
    table = coo_array((weight[taken], (state[taken], successor[taken])), shape=shape).tocsr()
    total: FloatArray = np.asarray(table.sum(axis=1)).ravel()
    table.data /= np.repeat(total, np.diff(table.indptr))
    rewards = (mdp.rewards * chances).sum(axis=1, keepdims=True)
    return MDP(rewards, table, mdp.discount, state_names=mdp.state_names or None)


def policy_residual(model: ModelArrays, mdp: MDP, chances: FloatArray, values: FloatArray) -> tuple[Residual, float]:
    """Return the extremes of T_π v − v as computed, and how far they can be from the exact ones.

    `model` has the rows of `mdp`, whose rewards and discount it may replace.
    """
    backed_up = action_values(mdp, values, model)
    own = (np.where(chances > 0.0, backed_up, 0.0) * chances).sum(axis=1)
    change, size = own - values, float(np.abs(values).max())
    largest = float(np.abs(model.rewards).max())
    terms = mdp.rounding_terms + mdp.num_actions + 4
    reach = _policy_sums(mdp, chances)[1] * (largest + (1.0 + model.discount * mdp.row_sums[1]) * size)
    error = terms * ROUNDING_UNIT * reach * 1.000001 + 1e-300
    low, high = float(change.min()), float(change.max())
    return Residual(low, high, low, high, size), error


def _policy_sums(mdp: MDP, chances: FloatArray) -> tuple[float, float]:
    """Return bounds on the exact sums of a policy's rows."""
    slack = 2.0 * mdp.num_actions * ROUNDING_UNIT
    total = chances.sum(axis=1)
    return float(total.min()) * (1.0 - slack), float(total.max()) * (1.0 + slack)


def _certify_mixed(mdp: MDP, chances: FloatArray, mixed: MDP, values: FloatArray, tolerance: float) -> Certificate:
    """Return bounds on the values of a stochastic policy, from double-doubles where float64 is not good enough."""
    residual, error = policy_residual(mdp.arrays, mdp, chances, values)
    sums = zip(_policy_sums(mdp, chances), mdp.row_sums, strict=True)
    keep = tuple(1 - Fraction(mdp.discount) * Fraction(one) * Fraction(other) for one, other in sums)
    if min(keep) <= 0:
        return Certificate(values, -math.inf, math.inf, math.inf)
    certificate = from_contraction(values, residual, error, keep, greedy=False)
    if certificate.policy_loss <= tolerance:
        return certificate
    from adalook.planning.precision.mixed import MixedRefinement

    refined = MixedRefinement(mdp, chances, mixed, values).certificate(keep, ENOUGH * tolerance)
    return refined if refined.policy_loss < certificate.policy_loss else certificate
