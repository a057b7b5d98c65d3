"""The certificate: bounds on V* and on a policy's loss that hold however the values were found.

Let d = T v − v, exactly, and l <= d <= u everywhere. Row sums lie in [ρ₁, ρ₂] around one. Then

    V* <= v + U  with  U = u / (1 − γρ₂) if u >= 0, else u / (1 − γρ₁)
    V* >= v + L  with  L = l / (1 − γρ₂) if l <= 0, else l / (1 − γρ₁)

because T(v + U) <= v + U and T(v + L) >= v + L (T is monotone, and adds γρU for a constant U). The same lower bound
on T_π v − v holds for V^π, so max(V* − V^π) <= U − L_π: `policy_loss`.

A backup in float64 is off by at most γₙ(|r| + γ P|v|), γₙ = nu/(1 − nu). We take the largest such bound over all
rows: U and L are decided by the extreme state anyway, and one number costs nothing. Rows longer than
`LONG_ROW` entries are summed with compensation, so n stays small. The last steps are rounded outward, each to the next
float, and 1 − γρ is exact before that. The bounds are true for the stored float64 data read as exact rationals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import ModelError
from adalook.mdp.model import MDP
from adalook.planning.checks import checked_policy, checked_state_values
from adalook.planning.lookahead.levels import Residual, backup

LARGEST = float(np.finfo(float).max)

Ratio = tuple[int, int]
"""An exact rational (numerator, denominator > 0), not in lowest terms: a solve in microseconds has no time for that."""


class ModelSizes(Protocol):
    """The numbers of a model that its certificate rests on: an `MDP` has them, and so have its shards together."""

    @property
    def discount(self) -> float:
        """The discount γ."""

    @property
    def largest_reward(self) -> float:
        """max |r(s, a)|."""

    @property
    def row_sums(self) -> tuple[float, float]:
        """Bounds (low, high) on the exact sums of all transition rows."""

    @property
    def rounding_terms(self) -> int:
        """n such that a backup in float64 is off by at most γₙ(|r| + γ P|V|)."""

    @property
    def contraction(self) -> tuple[Fraction, Fraction]:
        """1 − γρ, exactly, for the bounds ρ on the row sums."""


class CertifiedBounds:
    """The bounds of an answer that carries its certificate."""

    certificate: Certificate

    @property
    def lower(self) -> FloatArray:
        """(S,) certified: at most the true values, which are V* of a solution and V^π of an evaluated policy."""
        return self.certificate.lower

    @property
    def upper(self) -> FloatArray:
        """(S,) certified: at least the true values."""
        return self.certificate.upper


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds: values + low <= V* <= values + high, as computed in float64, and max(V* − V^policy) <= policy_loss."""

    values: FloatArray  # (S,)
    low: float | FloatArray
    high: float | FloatArray
    policy_loss: float

    @cached_property
    def lower(self) -> FloatArray:
        """(S,) lower <= V*; added up when first asked for."""
        return self.values + self.low

    @cached_property
    def upper(self) -> FloatArray:
        """(S,) V* <= upper; added up when first asked for."""
        return self.values + self.high


def rounding_bound(mdp: ModelSizes, size: float) -> float:
    """Return how far a computed T v − v can be from the exact one, for |v| <= size.

    That is γₙ(|r| + (1 + γρ)|v|) with two operations more than a backup has; the last factor makes up for 1/(1 − nu)
    and for computing all this in floats, the last term for underflow.
    """
    reach = mdp.largest_reward + (1.0 + mdp.discount * mdp.row_sums[1]) * size
    return (mdp.rounding_terms + 2) * 2.0**-53 * reach * 1.000001 + 1e-300


def loss_bound(mdp: MDP, residual: Residual, greedy: bool) -> float:
    """Return about `policy_loss`, in plain floats: what the loop watches; the last word is `from_residual`'s."""
    error = rounding_bound(mdp, residual.size)
    high = residual.high + error
    low = (residual.low if greedy else residual.own_low) - error
    lightest, heaviest = mdp.row_sums
    least, most = 1.0 - mdp.discount * heaviest, 1.0 - mdp.discount * lightest
    return (high / least if high >= 0 else high / most) - (low / least if low <= 0 else low / most)


def certify(mdp: MDP, values: FloatArray, policy: IntArray) -> Certificate:
    """Return bounds from one backup of any values and any policy.

    >>> import adalook as al, numpy as np
    >>> mdp = al.zoo.chain(n=3)
    >>> certificate = certify(mdp, np.zeros(5), np.zeros(5, np.int32))
    >>> bool((certificate.upper >= al.solve(mdp).values).all())
    True
    """
    if not isinstance(mdp, MDP):
        raise ModelError("certify got no model", expected="an al.MDP", got=type(mdp).__name__)
    if mdp.discount == 1.0:
        raise ModelError(
            "certify needs a discount below 1", remedy="al.solve and al.evaluate certify their own answers"
        )
    values = checked_state_values(mdp, values, "values")
    residual = backup(mdp, values, checked_policy(mdp, policy, "policy")).residual
    return from_residual(mdp, values, residual, greedy=False)


def from_residual(mdp: ModelSizes, values: FloatArray, residual: Residual, greedy: bool) -> Certificate:
    """Return bounds from a backup that was made anyway.

    With `greedy` for the policy that attains T v, otherwise for the given one.

    The second kind also holds for every policy that takes in each state either the given action or the greedy one.
    """
    low, high, own_low, _, size = residual
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(own_low) and math.isfinite(4.0 * size)):
        return Certificate(values, -math.inf, math.inf, math.inf)  # such values are beyond what floats can bound
    return from_contraction(values, residual, rounding_bound(mdp, residual.size), mdp.contraction, greedy)


def from_contraction(
    values: FloatArray, residual: Residual, error: float, keep: tuple[Fraction, ...], greedy: bool
) -> Certificate:
    """Return bounds from a residual that is known up to `error`; `keep` is 1 − γρ for row sums ρ, low and high."""
    above = _room(residual.high, error, keep)
    below = _room(-residual.low, error, keep)
    own = below if greedy else _room(-residual.own_low, error, keep)
    return Certificate(
        values=values,
        low=-_with_room(below, residual.size),
        high=_with_room(above, residual.size),
        policy_loss=max(0.0, math.nextafter(above + own, math.inf)),
    )


def _room(change: float, error: float, keep: tuple[Fraction, ...]) -> float:
    """Return at least (change + error) / (1 − γρ) for every ρ between the least and the largest row sum.

    A sum or a quotient is rounded to the nearest float, so the next one is beyond what it stands for.
    """
    total = math.nextafter(change + error, math.inf)
    if total >= 0.0:
        least = math.nextafter(keep[1].numerator / keep[1].denominator, 0.0)
        return math.nextafter(total / least, math.inf)
    most = math.nextafter(keep[0].numerator / keep[0].denominator, math.inf)
    return math.nextafter(total / most, math.inf)


def from_bounds(keep: tuple[Fraction, ...], values: FloatArray, low: Fraction, high: Fraction) -> Certificate:
    """Return bounds from T_π v − v >= low and T v − v <= high, where v rounded to floats is `values`.

    `keep` is 1 − γρ for the least and for the largest row sum.
    """
    lower = _shift(low, keep, upward=False)
    upper = _shift(high, keep, upward=True)
    size = float(np.abs(values).max())
    return Certificate(
        values=values,
        low=-_with_room(-_down(lower), size),
        high=_with_room(_up(upper), size),
        policy_loss=max(0.0, _up(_minus(upper, lower))),
    )


def _shift(change: Fraction, keep: tuple[Fraction, ...], upward: bool) -> Ratio:
    """Return the constant that, added to v, makes it an upper (or lower) bound.

    Given is that T v − v <= (or >=) change.
    `keep` is 1 − γρ for the least and for the largest row sum.
    """
    top, bottom = change.as_integer_ratio()
    kept = keep[(top >= 0) == upward]
    return top * kept.denominator, bottom * kept.numerator


def _minus(one: Ratio, other: Ratio) -> Ratio:
    """Return one − other."""
    return one[0] * other[1] - other[0] * one[1], one[1] * other[1]


def _with_room(shift: float, size: float) -> float:
    """Return a little more than the shift: adding it to values of at most this size may lose some to rounding."""
    return math.nextafter(shift + (size + abs(shift)) * 2.0**-50 + 1e-300, math.inf)


def _up(x: Ratio) -> float:
    """Return the least convenient float >= x: dividing whole numbers rounds to the nearest."""
    try:
        return math.nextafter(x[0] / x[1], math.inf)
    except OverflowError:
        return math.inf if x[0] > 0 else -LARGEST


def _down(x: Ratio) -> float:
    """Return the largest convenient float <= x."""
    return -_up((-x[0], x[1]))
