"""Episodes without a discount: solved where every policy ends, refused with the reason elsewhere."""

from fractions import Fraction

import numpy as np
import pytest

import adalook as al
from adalook.planning.objectives.total_reward import durations
from tests.exact import ExactMDP


def random_episodic(rng: np.random.Generator, n: int, actions: int) -> al.MDP:
    """A model whose last state is terminal, and in which every action has a chance to lead to a later state."""
    chances = rng.exponential(size=(n, actions, n)) * (rng.random((n, actions, n)) < 0.6)
    for s in range(n - 1):
        chances[s, :, rng.integers(s + 1, n, size=actions)] += rng.uniform(0.001, 1.0)
    chances[-1] = 0.0
    chances[-1, :, -1] = 1.0
    chances /= chances.sum(axis=2, keepdims=True)
    rewards = rng.normal(size=(n, actions)) * 10.0 ** rng.integers(-3, 4)
    rewards[-1] = 0.0
    return al.MDP(rewards, chances, 1.0)


def check(mdp: al.MDP, sol: al.Solution) -> None:
    """Compare with exact rationals; V is zero in the terminal state, without which the equations have one solution."""
    exact = ExactMDP(mdp)
    n = mdp.num_states - 1
    exact.num_states = n
    for actions in exact.actions:
        for _, row in actions.values():
            row.pop(n, None)
    true = [*exact.solve(sol.policy[:n].tolist()), Fraction(0)]
    own = [*exact.evaluate(sol.policy[:n].tolist()), Fraction(0)]
    for s in range(n + 1):
        assert Fraction(float(sol.lower[s])) <= true[s] <= Fraction(float(sol.upper[s]))
        assert true[s] - own[s] <= Fraction(sol.policy_loss)


@pytest.mark.parametrize("method", [None, al.PolicyIteration(), al.HPI(2), al.ValueIteration()])
def test_certificates_against_exact_rationals(method):
    rng = np.random.default_rng(3)
    for case in range(25):
        mdp = random_episodic(rng, int(rng.integers(2, 7)), int(rng.integers(1, 4)))
        tolerance = [1e-6, 10.0, 1e-3][case % 3]
        sol = al.solve(mdp, method, tolerance=tolerance)
        check(mdp, sol)
        assert sol.converged
        assert sol.certified, sol
        assert sol.mdp is mdp


def test_gamblers_ruin():
    """With p = 1/2 the chance to reach 10 from s is s/10, whatever is staked; the duration of timid play s(10 − s)."""
    table = {s: {0: [(0.5, s - 1, 0.0), (0.5, s + 1, float(s == 9))]} for s in range(1, 10)} | {0: {}, 10: {}}
    mdp = al.MDP.from_table(table, 1.0)
    np.testing.assert_allclose(al.solve(mdp).values, [*np.arange(10) / 10, 0.0], atol=1e-8)
    np.testing.assert_allclose(durations(mdp).weights[1:10], [s * (10 - s) for s in range(1, 10)], rtol=0.1)


def test_long_episodes():
    """A drifting walk of thousands of steps."""
    n = 3_000
    s = np.arange(n)
    down, up = np.maximum(s - 1, 0), np.minimum(s + 1, n - 1)
    table = {int(k): {0: [(0.5, int(down[k]), -1.0), (0.5, int(up[k]), -1.0)]} for k in s[1:]} | {0: {}}
    sol = al.solve(al.MDP.from_table(table, 1.0), tolerance=1.0)
    expected = -(s * (2.0 * n - s) - s)  # reflected at the top
    assert sol.certified
    np.testing.assert_allclose(sol.values, expected, atol=2.0)


def test_warm_starts_and_traces_are_in_the_models_own_units():
    mdp = random_episodic(np.random.default_rng(0), 6, 2)
    sol = al.solve(mdp)
    again = al.solve(mdp, initial_values=sol.values)
    np.testing.assert_allclose(again.values, sol.values, atol=1e-6)
    np.testing.assert_allclose(again.trace[-1].values, sol.values, atol=1e-6)
    assert len(again.trace) <= len(sol.trace)


def test_frozen_lake_needs_no_discount_for_a_horizon_and_is_refused_without_one():
    mdp = al.MDP([[1.0, 0.0], [0.0, 0.0]], [[0, 1], [1, 1]], 1.0, state_names=["here", "end"], action_names=["a", "b"])
    with pytest.raises(al.AdalookError, match=r"from state here, action a need never.*horizon="):
        al.solve(mdp)
    assert al.solve(mdp, horizon=7).values[0, 0] == 7.0


def test_without_terminal_states():
    with pytest.raises(al.AdalookError, match="no terminal state"):
        al.solve(al.MDP([[1.0]], [[0]], 1.0))


def test_methods_with_a_prior_are_refused():
    mdp = random_episodic(np.random.default_rng(0), 4, 2)
    with pytest.raises(al.AdalookError, match="prior"):
        al.solve(mdp, al.TLPI(0.9, np.zeros(4)))


def test_only_terminal_states():
    assert al.solve(al.MDP([[0.0], [0.0]], [[0], [1]], 1.0)).values.tolist() == [0.0, 0.0]


WALK = {"far": {"walk": [(0.9, "near", -1.0), (0.1, "far", -1.0)]}, "near": {"walk": [(1.0, "home", -1.0)]}, "home": {}}


@pytest.mark.parametrize("wrong", [[0.0, 0.0], "abc", [0.0, np.nan, 0.0], 3.0])
def test_wrong_initial_values_are_named(wrong):
    with pytest.raises(al.errors.ArgumentError, match="initial_values"):
        al.solve(al.MDP.from_table(WALK, 1.0), initial_values=wrong)


def test_passes_are_told_in_the_rewards_of_the_model():
    """Inside, values are divided by durations, here some thousand steps; nobody outside should see that."""
    mdp = al.MDP([[-1.0, -2.0], [0.0, 0.0]], [[[0.999, 0.001], [0.9985, 0.0015]], [[0.0, 1.0]] * 2], 1.0)
    seen: list[al.planning.solution.Iteration] = []
    sol = al.solve(mdp, al.ValueIteration(), tolerance=1e-3, on_iteration=seen.append)
    assert seen[-1].policy_loss == sol.trace[-1].policy_loss
    np.testing.assert_allclose(seen[-1].values, sol.values, rtol=1e-5)
    assert all(np.abs(item.values - sol.values).max() <= 2.0 * item.policy_loss for item in seen[1:])
    assert isinstance(sol.policy_loss, float)


def test_a_policy_that_never_ends_is_told_apart_from_a_model():
    table = {"far": {"walk": [(1.0, "home", -1.0)], "wait": [(1.0, "far", -1.0)]}, "home": {}}
    mdp = al.MDP.from_table(table, 1.0)
    with pytest.raises(al.errors.ModelError, match=r"needs a policy that ends.*from state far no terminal one"):
        al.evaluate(mdp, ["wait", "walk"])
    with pytest.raises(al.errors.ModelError, match="from state far, action wait need never"):
        al.solve(mdp)
