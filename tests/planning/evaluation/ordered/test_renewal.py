import numpy as np
import pytest

import adalook as al
from adalook.planning.evaluation.ordered import renewal
from tests.exact import ExactMDP, random_mdp


def beginning_anew(seed: int, num_states: int = 80, renewals: int = 2, order: str = "ahead", discount: float = 0.999):
    """Moves lead ahead, stay, or begin anew in one of a few states; some actions are not offered."""
    rng = np.random.default_rng(seed)
    n, anew = num_states, rng.choice(num_states // 2, renewals, replace=False)
    ahead = np.minimum(np.arange(n)[:, None, None] + rng.integers(0, 6, (n, 3, 2)), n - 1)
    again = anew[rng.integers(renewals, size=(n, 3, 1))]
    place = {"ahead": np.arange(n), "back": np.arange(n)[::-1], "none": rng.permutation(n)}[order]
    inverse = np.argsort(place)
    successors = place[np.concatenate([ahead, again], axis=2)][inverse]
    chances = rng.dirichlet([2.0, 2.0, 0.4], size=(n, 3))
    mask = rng.random((n, 3)) < 0.9
    mask[:, 0] = True
    rewards = rng.standard_normal((n, 3))
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), n, 3, discount, mask=mask)


def bus_engine(num_states: int, discount: float) -> al.MDP:
    """Rust's: mileage grows until the engine is replaced, after which it begins at one of four."""

    def moves(s):
        k = np.arange(4)
        worn, new = np.minimum(s[:, None] + k, num_states - 1), np.broadcast_to(k, (len(s), 4))
        rewards = np.stack([-3.0 * (s / num_states) ** 2, np.full(len(s), -4.0)], axis=1)
        return rewards, np.stack([worn, new], axis=1), np.broadcast_to([0.2, 0.4, 0.3, 0.1], (len(s), 2, 4))

    return al.MDP.from_function(moves, num_states, 2, discount)


@pytest.mark.parametrize("order", ["ahead", "back", "none"])
@pytest.mark.parametrize("renewals", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_models_that_begin_anew_are_solved_in_one_pass_of_the_loop(seed, renewals, order):
    mdp = beginning_anew(seed, renewals=renewals, order=order)
    found = renewal.find(mdp)
    assert found is not None
    assert sorted([*found.order.tolist(), *found.states.tolist()]) == list(range(mdp.num_states))
    sol, exact = al.solve(mdp, tolerance=1e-7), al.solve(mdp, al.PolicyIteration(), tolerance=0.0)
    assert (sol.solvers[0], len(sol.trace), sol.certified) == (renewal.NAME, 1, True)
    assert "no cycle is left without the moves into" in sol.trace[0].forecast.reason
    np.testing.assert_allclose(sol.values, exact.values, atol=2e-7)
    assert (sol.lower <= exact.upper).all()
    assert (exact.lower <= sol.upper).all()


@pytest.mark.parametrize("discount", [0.9, 0.9999, 1.0 - 1e-7])
def test_an_engine_that_is_replaced(discount):
    mdp = bus_engine(3_000, discount)
    found = renewal.find(mdp)
    assert found is not None
    assert found.states.tolist() == [0, 1, 2, 3]
    sol = al.solve(mdp, tolerance=1e-6)
    assert sol.certified
    assert sol.solvers[0] == renewal.NAME
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.Auto("banded LU"), tolerance=1e-8).values, atol=2e-6)


@pytest.mark.parametrize(
    "model",
    [al.zoo.gridworld(20, 20), al.zoo.garnet(2_000, 3, 4), al.zoo.queue(500), al.zoo.inventory(60)],
)
def test_other_models_have_no_renewals(model):
    assert renewal.find(model) is None


def test_one_state_that_all_lead_to_is_not_enough():
    """Cycles beside it are left: a ring on which every move may also be sent to state 0."""
    n = 500
    ring = np.stack([(np.arange(n) + 1) % n, np.zeros(n, int)], axis=1)[:, None]
    back = np.stack([(np.arange(n) - 1) % n, np.zeros(n, int)], axis=1)[:, None]
    successors = np.concatenate([ring, back], axis=1)
    rewards = np.random.default_rng(0).standard_normal((n, 2))
    mdp = al.MDP.from_function(lambda s: (rewards[s], successors[s], np.full((len(s), 2, 2), 0.5)), n, 2, 0.99)
    assert renewal.find(mdp) is None
    assert al.solve(mdp, al.Auto(renewal.NAME)).certified


@pytest.mark.parametrize("seed", range(20))
def test_asked_for_it_solves_whatever_few_states_cut(seed):
    """On models of five states, every state may be a renewal: that is policy iteration."""
    mdp = random_mdp(np.random.default_rng(seed), 5, 3, float(np.random.default_rng(seed).choice([0.5, 0.99, 0.9999])))
    assert renewal.find(mdp) is None
    sol = al.solve(mdp, al.Auto(renewal.NAME), tolerance=1e-8)
    assert sol.solvers[0] == renewal.NAME
    exact = ExactMDP(mdp)
    best = exact.solve(sol.policy.tolist())
    own = exact.evaluate(sol.policy.tolist())
    assert max(b - o for b, o in zip(best, own, strict=True)) <= sol.policy_loss
    assert all(low <= value <= high for low, value, high in zip(sol.lower, best, sol.upper, strict=True))
    assert sol.certified
