"""Double-doubles against exact rationals: the values, and the bounds on their errors."""

from fractions import Fraction

import numpy as np
import pytest

from adalook.planning.precision import double_double as dd
from tests.exact import ExactMDP, random_mdp


def pairs(rng, count):
    for _ in range(count):
        yield tuple(float(x) for x in rng.standard_normal(2) * 10.0 ** rng.integers(-40, 40, 2))


def test_sums_and_products_of_two_floats_are_exact():
    for a, b in pairs(np.random.default_rng(0), 300):
        assert sum(map(Fraction, dd.two_sum(a, b))) == Fraction(a) + Fraction(b)
        assert sum(map(Fraction, dd.two_product(a, b))) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.99, 1 - 1e-9, 1 - 1e-12])
def test_changes_are_within_their_bounds(discount):
    """T_a v − v for values of 1e12 that differ by little: far beyond float64, and within what the kernel says."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        mdp = random_mdp(rng, 5, 3, discount)
        exact = ExactMDP(mdp)
        common = float(rng.standard_normal() * 10.0 ** rng.integers(0, 13))
        v = dd.RelativeValues(common, rng.standard_normal(5), rng.standard_normal(5) * 2.0**-54)
        values = [Fraction(common) + Fraction(h) + Fraction(low) for h, low in zip(v.high, v.low, strict=True)]
        rows, shared = mdp.rows.num_rows, mdp.rows.num_shared
        defects = dd.RowDefects(np.empty(rows), np.empty(rows), np.empty(rows))
        dd.row_defects(mdp.arrays, *defects)
        expected = dd.Expectations(np.empty(shared), np.empty(shared), np.empty(shared))
        dd.expectations(mdp.arrays, v.high, v.low, expected)
        operands = dd.Operands(mdp.arrays, mdp.rewards, defects, expected, v)
        for s in range(5):
            for a in exact.actions[s]:
                q, low, error = dd.change(operands, s, a)
                true = exact.q(s, a, values) - values[s]
                assert abs(Fraction(q) + Fraction(low) - true) <= Fraction(error)
                assert error <= 1e-28 * (1.0 + abs(mdp.rewards).max() + abs(common) * (1.0 - discount))
