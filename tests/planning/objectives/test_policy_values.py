"""`evaluate`: bounds on a policy's values hold against exact rationals, however little is asked for."""

from fractions import Fraction

import numpy as np
import pytest

import adalook as al
from tests.exact import ExactMDP, random_mdp

RNG = np.random.default_rng(0)


def random_actions(mdp: al.MDP, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.choice(np.flatnonzero(row)) for row in mdp.offered])


def random_chances(mdp: al.MDP, rng: np.random.Generator) -> np.ndarray:
    table = rng.exponential(size=mdp.offered.shape) * (rng.random(mdp.offered.shape) < 0.7) * mdp.offered
    table[np.arange(len(table)), random_actions(mdp, rng)] += 0.1
    return table / table.sum(axis=1, keepdims=True)


def exact_values(mdp: al.MDP, chances: np.ndarray) -> list[Fraction]:
    """V^π of a stochastic policy, as the exact values of a model with its mixed rows."""
    exact = ExactMDP(mdp)
    for s, actions in enumerate(exact.actions):
        reward, mixed = Fraction(0), {}
        for a, (paid, row) in actions.items():
            weight = Fraction(float(chances[s, a]))
            reward += weight * paid
            for t, p in row.items():
                mixed[t] = mixed.get(t, Fraction(0)) + weight * p
        exact.actions[s] = {0: (reward, mixed)}
    return exact.evaluate([0] * mdp.num_states)


def check(result: al.PolicyValues, exact: list[Fraction]) -> None:
    for low, value, true, high in zip(result.lower, result.values, exact, result.upper, strict=True):
        assert Fraction(float(low)) <= true <= Fraction(float(high))
        assert abs(Fraction(float(value)) - true) <= Fraction(result.error)


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99, 1 - 1e-7])
def test_certificates_against_exact_rationals(discount):
    rng = np.random.default_rng(1)
    for case in range(60):
        mdp = random_mdp(rng, int(rng.integers(1, 7)), int(rng.integers(1, 4)), discount)
        tolerance = [1e-8, 1.0, 0.0][case % 3]
        actions = random_actions(mdp, rng)
        check(al.evaluate(mdp, actions, tolerance=tolerance), ExactMDP(mdp).evaluate(actions.tolist()))
        chances = random_chances(mdp, rng)
        check(al.evaluate(mdp, chances, tolerance=tolerance), exact_values(mdp, chances))


def test_the_best_policy_has_the_best_values():
    mdp = al.zoo.maze(size=20)
    sol = al.solve(mdp)
    result = al.evaluate(mdp, sol.policy)
    assert (result.upper >= sol.lower).all()
    assert (result.values <= sol.upper).all()
    assert result.error < 1e-7


def test_a_certain_policy_is_a_stochastic_one():
    mdp = al.zoo.garnet(30, 4, 3, seed=2)
    actions = random_actions(mdp, RNG)
    one, other = al.evaluate(mdp, actions), al.evaluate(mdp, np.eye(4)[actions])
    np.testing.assert_allclose(one.values, other.values, atol=one.error + other.error)
    assert one.action_values.shape == (30, 4)


def test_names_are_actions():
    mdp = al.MDP([[0.0, 1.0]], [[0, 0]], 0.5, action_names=["rest", "work"])
    assert al.evaluate(mdp, ["work"]).values.tolist() == [2.0]
    with pytest.raises(al.AdalookError, match="Did you mean 'work'"):
        al.evaluate(mdp, ["wrk"])


def test_episodes_without_a_discount():
    """From 0, "go" ends with one half and pays 1: two steps on average. "stay" costs 1, and alone would never end."""
    mdp = al.MDP.from_table(
        {"s": {"go": [(0.5, "end", 1.0), (0.5, "s", 1.0)], "stay": [(1.0, "s", -1.0)]}, "end": {}}, 1.0
    )
    result = al.evaluate(mdp, ["go", "go"])
    assert result.lower[0] <= 2.0 <= result.upper[0]
    assert result.error < 1e-7
    mixed = al.evaluate(mdp, np.array([[0.25, 0.75], [1.0, 0.0]]))
    assert mixed.lower[0] <= -4.0 <= mixed.upper[0]
    assert mixed.error < 1e-6
    never = al.MDP(mdp.rewards, [[0, 0], [1, 1]], 1.0, mask=mdp.offered, state_names=["s", "end"])
    with pytest.raises(al.AdalookError, match="state s"):
        al.evaluate(never, [1, 0])


@pytest.mark.parametrize("tolerance", [1e-3, 0.0])
def test_stochastic_policies_keep_their_digits_near_discount_one(tolerance):
    """In float64 alone the bounds were some hundred wide."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        mdp = random_mdp(rng, int(rng.integers(1, 7)), int(rng.integers(1, 4)), 1 - 1e-9, ties=True)
        chances = random_chances(mdp, rng)
        result = al.evaluate(mdp, chances, tolerance=tolerance)
        check(result, exact_values(mdp, chances))
        assert ((result.lower <= result.values) & (result.values <= result.upper)).all()
        assert result.error <= tolerance + 1e-14 * np.abs(result.values).max() + 1e-12
