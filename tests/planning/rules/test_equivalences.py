"""Methods that must agree, do: WLPI(h) and QLPI at full budget with h-PI, all of them with exact rational answers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from tests.exact import ExactMDP, naive_lookahead, naive_values, random_mdp

MODELS = {
    "chain": lambda: al.zoo.chain(n=20),
    "maze": lambda: al.zoo.maze(size=12, seed=3),
    "big maze": lambda: al.zoo.maze(size=30, seed=1),
    "garnet": lambda: al.zoo.garnet(60, 3, 4, seed=1, discount=0.9),
    "certain garnet": lambda: al.zoo.garnet(80, 3, 1, seed=2, discount=0.95),
    "grid": lambda: al.zoo.gridworld(7, 7, slip=0.3, seed=1),
}


def methods(mdp: al.MDP) -> list:
    prior = al.priors.exact(mdp)
    poor = al.priors.few_iterations(mdp, 1)
    return [
        al.ValueIteration(),
        al.PolicyIteration(),
        al.ModifiedPolicyIteration(5),
        al.HPI(3),
        al.TLPI(mdp.discount**2 if mdp.discount else 0.5, prior),
        al.TLPI(0.3, poor, beta=0.1),
        al.QLPI({2: 0.3, 4: 0.2}, prior),
        al.QLPI({3: 0.5}, poor, slack=1),
        al.Auto(),
        al.WLPI(),
        al.WLPI(depth=3),
    ]


def same_iterates(one: al.Solution, other: al.Solution, scale: float) -> None:
    assert len(one.trace) == len(other.trace)
    for a, b in zip(one.trace, other.trace, strict=True):
        np.testing.assert_allclose(a.values, b.values, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("h", [1, 2, 3, 5])
def test_wave_of_depth_h_visits_the_values_of_hpi(model, h):
    mdp = MODELS[model]()
    start = np.random.default_rng(0).integers(mdp.num_actions, size=mdp.num_states)
    wave, fixed = (al.solve(mdp, m, initial_policy=start, tolerance=0.0) for m in (al.WLPI(depth=h), al.HPI(h)))
    same_iterates(wave, fixed, 1.0)
    assert wave.queries.improvement["shared"] <= fixed.queries.improvement["tree"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 4), st.integers(1, 4))
def test_wave_of_depth_h_visits_the_values_of_hpi_on_any_model(seed, num_states, num_actions, h):
    mdp = random_mdp(np.random.default_rng(seed), num_states, num_actions, 0.9)
    wave, fixed = (al.solve(mdp, m, tolerance=0.0) for m in (al.WLPI(depth=h), al.HPI(h)))
    same_iterates(wave, fixed, max(1.0, mdp.largest_reward))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("h", [2, 4])
def test_qlpi_that_selects_every_state_is_hpi(model, h):
    mdp = MODELS[model]()
    full, fixed = (al.solve(mdp, m, tolerance=0.0) for m in (al.QLPI({h: 1.0}, np.zeros(mdp.num_states)), al.HPI(h)))
    same_iterates(full, fixed, 1.0)
    assert [item.changed for item in full.trace] == [item.changed for item in fixed.trace]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("h", [1, 2, 3])
def test_hpi_improves_on_h_plain_backups(model, h):
    """The values after one update are at least T^h V, computed by loops that share nothing with the library."""
    mdp = MODELS[model]()
    sol = al.solve(mdp, al.HPI(h), tolerance=0.0)
    first, second = sol.trace[0], sol.trace[min(1, len(sol.trace) - 1)]
    np.testing.assert_allclose(first.values, naive_values(mdp, _myopic(mdp)), atol=1e-9)
    assert (second.values >= naive_lookahead(mdp, first.values, h) - 1e-9).all()
    deep = naive_lookahead(mdp, first.values, h - 1)
    chosen = np.array([_q(mdp, s, int(first.policy[s]), deep) for s in range(mdp.num_states)])
    np.testing.assert_allclose(chosen, naive_lookahead(mdp, deep, 1), atol=1e-9)


def _myopic(mdp: al.MDP) -> np.ndarray:
    return np.argmax(np.where(mdp.offered, mdp.rewards, -np.inf), axis=1)


def _q(mdp: al.MDP, s: int, a: int, values: np.ndarray) -> float:
    successors, chances = mdp.transition_row(s, a)
    return mdp.rewards[s, a] + mdp.discount * float(chances @ values[successors])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_every_method_agrees_with_exact_policy_iteration(seed, num_states, num_actions, discount):
    mdp = random_mdp(np.random.default_rng(seed), num_states, num_actions, discount)
    exact = ExactMDP(mdp)
    best = exact.solve([int(np.argmax(mdp.offered[s])) for s in range(mdp.num_states)])
    scale = max(1.0, mdp.largest_reward) / (1.0 - discount)
    for method in methods(mdp):
        sol = al.solve(mdp, method, tolerance=1e-9 * scale)
        assert sol.converged, method.name
        loss = max(x - y for x, y in zip(best, exact.evaluate([int(a) for a in sol.policy]), strict=True))
        assert 0 <= loss <= Fraction(sol.policy_loss), method.name
        assert max(abs(float(x) - y) for x, y in zip(best, sol.values, strict=True)) <= 2e-9 * scale, method.name


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_renaming_the_states_renames_the_answer(seed, num_states):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, num_states, 3, 0.9)
    order = rng.permutation(num_states)
    dense = np.zeros((num_states, 3, num_states))
    for s in range(num_states):
        for a in range(3):
            successors, chances = mdp.transition_row(s, a)
            dense[s, a, successors] = chances
    other = al.MDP(mdp.rewards[order], dense[order][:, :, order], 0.9, mask=mdp.offered[order])
    np.testing.assert_allclose(al.solve(other).values, al.solve(mdp).values[order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("seed", range(4))
def test_in_place_policy_iteration_ends_where_exact_policy_iteration_does(seed, discount):
    """Slippery grids, by Auto's in-place iteration, with rewards of both signs."""
    base = al.zoo.gridworld(18, 20, slip=0.3, seed=seed, discount=discount, holes=0.05)
    dense = np.random.default_rng(seed).standard_normal(base.rewards.shape) * (seed % 2)
    mdp = al.MDP._adopt(base.rewards + dense, base.codes, base.rows, discount)
    sol = al.solve(mdp, al.Auto("in-place MPI"), tolerance=1e-7)
    assert sol.trace[0].evaluation == "in-place MPI"
    exact = al.solve(mdp, al.PolicyIteration(), tolerance=0.0)
    assert sol.certified
    np.testing.assert_allclose(sol.values, exact.values, atol=2e-7)


@pytest.mark.parametrize("model", [al.zoo.gridworld(20, 20, slip=0.3, discount=0.99), al.zoo.garnet(700, 3, 4)])
def test_auto_goes_on_exactly_where_partial_evaluation_ends(model):
    """A tolerance beyond float64: partial evaluation must give way to exact, and those must end."""
    sol = al.solve(model, tolerance=1e-17, max_iterations=3_000)
    assert sol.status is al.Status.CONVERGED
    assert sol.policy_loss < 1e-8
