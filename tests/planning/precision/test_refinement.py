"""Policies that float64 cannot find or certify: γ near one, rewards of many scales, tiny and huge ones."""

import warnings

import numpy as np
import pytest

import adalook as al
from tests.exact import ExactMDP, random_mdp

LURE = ([[1.0, 0.0], [-3.0, -3.0]], [[1, 0], [0, 0]])
"""One step pays 1, and −3 on the way back: staying is best, by a gain of 1e-8 a step when γ = 1 − 1e-8."""
METHODS = {
    "auto": lambda mdp: al.Auto(),
    "pi": lambda mdp: al.PolicyIteration(),
    "hpi": lambda mdp: al.HPI(2),
    "wlpi": lambda mdp: al.WLPI(),
    "qlpi": lambda mdp: al.QLPI({2: 0.5}, np.zeros(mdp.num_states)),
    "tlpi": lambda mdp: al.TLPI(mdp.discount**2, np.zeros(mdp.num_states)),
}


def loss(mdp, sol):
    """The policy's true loss, in exact rationals."""
    exact = ExactMDP(mdp)
    policy = [int(a) for a in sol.policy]
    best, own = exact.solve(policy), exact.evaluate(policy)
    return max(b - o for b, o in zip(best, own, strict=True))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("discount", [1 - 1e-8, 1 - 1e-10, 1 - 1e-12])
def test_near_one_the_right_policy_is_found_and_proven(name, discount):
    mdp = al.MDP(*LURE, discount)
    sol = al.solve(mdp, METHODS[name](mdp))
    assert sol.converged
    assert sol.policy_loss == loss(mdp, sol) == 0
    np.testing.assert_array_equal(sol.values, [0.0, -3.0])
    assert any(item.evaluation.startswith("refined") for item in sol.trace)


@pytest.mark.parametrize("scale", [1e-315, 1e-290, 1e-150, 1e150, 1e290])
def test_scale_is_no_excuse(scale):
    """Tolerance 0 finds the best policy of rewards of any size, without a warning."""
    mdp = al.MDP(np.array(LURE[0]) * scale, LURE[1], 1 - 1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in METHODS.values():
            sol = al.solve(mdp, make(mdp), tolerance=0.0)
            assert sol.converged
            assert sol.policy[0] == 1


def test_an_unused_reward_does_not_hide_the_others():
    mdp = al.MDP([[1.0, 0.0, -1e14], [-3.0, -3.0, -3.0]], [[1, 0, 0], [0, 0, 0]], 0.9)
    sol = al.solve(mdp)
    assert sol.converged
    assert loss(mdp, sol) == 0


def test_a_maze_near_one():
    mdp = al.zoo.maze(12, seed=1, discount=1 - 1e-8)
    sol = al.solve(mdp)
    assert sol.converged
    assert sol.policy_loss <= 1e-8
    rough = al.solve(al.zoo.maze(12, seed=1, discount=1 - 1e-5))
    assert abs(sol.values.max() * 1e-3 - rough.values.max()) < 1e-3 * rough.values.max()


@pytest.mark.parametrize("seed", range(12))
def test_converged_means_certified_and_the_certificate_holds(seed):
    rng = np.random.default_rng(seed)
    for discount in (0.9, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12):
        mdp = random_mdp(rng, int(rng.integers(2, 7)), 3, discount)
        for make in METHODS.values():
            for tolerance in (0.0, 1e-8):
                sol = al.solve(mdp, make(mdp), tolerance=tolerance)
                assert sol.converged == (sol.policy_loss <= tolerance)
                assert sol.status in (al.Status.CONVERGED, al.Status.ROUNDING_LIMIT)
                assert loss(mdp, sol) <= sol.policy_loss
                best = ExactMDP(mdp).solve([int(a) for a in sol.policy])
                assert all(low <= v <= high for low, v, high in zip(sol.lower, best, sol.upper, strict=True))
                assert (sol.lower <= sol.values).all()
                assert (sol.values <= sol.upper).all()


def test_what_cannot_be_certified_says_so():
    """Two ways that pay 0.5 in all, at once or in parts: no interval can prove that neither is better."""
    rewards = np.repeat([[0.0], [0.5], [0.25], [0.5], [0.0]], 2, axis=1)
    mdp = al.MDP(rewards, [[1, 2], [4, 4], [3, 3], [4, 4], [4, 4]], 0.5)
    sol = al.solve(mdp, tolerance=0.0)
    assert sol.status is al.Status.ROUNDING_LIMIT
    assert not sol.converged
    assert not sol.certified
    assert 0.0 < sol.policy_loss < 1e-25
    assert loss(mdp, sol) == 0
    assert "rounding" in sol.message
    assert "not certified" in sol.message
    assert "not certified" in repr(sol)
    assert al.solve(mdp, tolerance=1e-20).converged


def test_large_models_are_refined_as_far_as_the_tolerance_asks_for():
    """Values of 10⁴ at γ = 0.9999: the rounding bound of float64 is a few times 10⁻⁶, the values are good enough."""
    mdp = al.zoo.garnet(2_000, 3, 4, seed=0, discount=0.9999)
    mdp = al.MDP._adopt(5.0 * mdp.rewards + 1.0, mdp.codes, mdp.rows, mdp.discount)
    sol = al.solve(mdp, tolerance=1e-6)
    assert sol.converged
    assert 0.0 < sol.policy_loss <= 1e-6
    proven = al.solve(mdp, tolerance=0.0)
    assert proven.policy_loss == 0.0
    np.testing.assert_allclose(sol.values, proven.values, atol=1e-6)


@pytest.mark.parametrize("discount", [0.9999, 0.99999, 0.999999])
def test_values_are_bounded_as_tightly_as_the_loss(discount):
    """Float64 alone bounds them to a few times 10⁻⁶ and worse here, and so they were once published."""
    mdp = al.zoo.queue(300, discount=discount)
    exact = al.solve(mdp, tolerance=0.0)
    for tolerance in (1e-3, 1e-6, 1e-9):
        sol = al.solve(mdp, tolerance=tolerance)
        assert sol.converged
        assert (sol.upper - sol.lower).max() <= tolerance
        assert (sol.lower <= exact.upper).all()
        assert (exact.lower <= sol.upper).all()
