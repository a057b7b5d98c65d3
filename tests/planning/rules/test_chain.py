"""The paper's motivating example: how many updates each method needs on the chain."""

import math

import numpy as np
import pytest

import adalook as al

LENGTHS = (12, 20, 59)
DEPTHS = (2, 3, 4, 5)
DOWN = 1


def solve_chain(n: int, method_of):
    mdp = al.zoo.chain(n=n)
    return mdp, al.solve(mdp, method_of(mdp), initial_policy=np.full(n + 2, DOWN), tolerance=0.0)


@pytest.mark.parametrize("n", LENGTHS)
def test_pi_updates_one_state_at_a_time(n):
    _, sol = solve_chain(n, lambda mdp: al.PolicyIteration())
    assert sol.converged
    assert sol.iterations == n + 1
    assert (sol.policy[: n + 1] == 0).all()


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("h", DEPTHS)
def test_hpi_updates_h_states_at_a_time(n, h):
    _, sol = solve_chain(n, lambda mdp: al.HPI(h))
    assert sol.iterations == math.ceil((n + 1) / h)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("h", DEPTHS)
def test_tlpi_is_as_fast_with_at_most_h_deep_states(n, h):
    _, sol = solve_chain(n, lambda mdp: al.TLPI(mdp.discount**h, al.priors.exact(mdp)))
    assert sol.iterations == math.ceil((n + 1) / h)
    assert max((np.asarray(item.depth) > 1).sum() for item in sol.trace) <= h
    assert {int(d) for item in sol.trace for d in np.unique(item.depth)} <= {1, h}


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("h", DEPTHS)
def test_qlpi_with_one_state_per_depth_needs_at_most_one_more(n, h):
    _, sol = solve_chain(n, lambda mdp: al.QLPI(dict.fromkeys(range(2, h + 1), 1 / (n + 2)), al.priors.exact(mdp)))
    assert sol.converged
    assert math.ceil((n + 1) / h) <= sol.iterations <= math.ceil((n + 1) / h) + 1
    assert all((np.asarray(item.depth) > 1).sum() <= h - 1 for item in sol.trace)


@pytest.mark.parametrize("n", LENGTHS)
def test_wlpi_needs_no_prior_and_few_updates(n):
    _, sol = solve_chain(n, lambda mdp: al.WLPI())
    pi = solve_chain(n, lambda mdp: al.PolicyIteration())[1]
    assert sol.iterations <= 2
    assert sol.queries.improvement["shared"] < pi.queries.improvement["shared"] / 2


def test_values_are_the_analytic_ones():
    _, sol = solve_chain(59, lambda mdp: al.WLPI())
    expected = np.append(0.9 ** np.arange(59, -1, -1), 0.0)
    np.testing.assert_allclose(sol.values, expected, rtol=1e-12)


@pytest.mark.parametrize(("kappa_power", "depth"), [(1, 1), (2, 2), (3, 3), (7, 7), (2.5, 3)])
def test_depth_of_kappa_is_not_rounded_up(kappa_power, depth):
    for discount in (0.9, 0.98, 0.999, 0.123):
        assert al.TLPI(discount**kappa_power, np.zeros(3)).depth(discount) == depth
