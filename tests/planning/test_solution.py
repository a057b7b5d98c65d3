"""What a Solution offers beside its numbers."""

import numpy as np
import pytest

import adalook as al

WEATHER = {
    "sunny": {"walk": [(0.8, "sunny", 2.0), (0.2, "rainy", 1.0)], "drive": [(1.0, "sunny", 0.5)]},
    "rainy": {"drive": [(0.5, "sunny", 0.5), (0.5, "rainy", 0.5)]},
}


def test_action_values():
    mdp = al.MDP.from_table(WEATHER, 0.9)
    sol = al.solve(mdp)
    assert sol.action_values[1, 0] == -np.inf
    np.testing.assert_allclose(sol.action_values.max(axis=1), sol.values, atol=1e-7)
    assert sol.action_values.argmax(axis=1).tolist() == sol.policy.tolist()
    stochastic = al.zoo.garnet(40, 3, 20, seed=0)  # rows long enough to be summed with compensation
    sol = al.solve(stochastic)
    for s in range(40):
        for a in range(3):
            successors, chances = stochastic.transition_row(s, a)
            expected = stochastic.rewards[s, a] + stochastic.discount * (chances @ sol.values[successors])
            assert sol.action_values[s, a] == pytest.approx(expected, abs=1e-12)


def test_frames_have_names():
    frame = al.solve(al.MDP.from_table(WEATHER, 0.9)).to_frame(action_values=True)
    assert frame.index.tolist() == ["sunny", "rainy"]
    assert frame.action.tolist() == ["walk", "drive"]
    assert frame["q(drive)"]["sunny"] < frame.value["sunny"]
    assert (frame.lower <= frame.upper).all()
    assert al.solve(al.zoo.garnet(5, 2, 2)).to_frame().index.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("make", [lambda: al.zoo.maze(size=20), lambda: al.zoo.garnet(300, 4, 5, seed=1)])
def test_initial_values_are_a_head_start(make):
    mdp = make()
    cold = al.solve(mdp)
    warm = al.solve(mdp, initial_values=cold.values)
    assert warm.iterations <= 1
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-7)
    anything = al.solve(mdp, initial_values=np.random.default_rng(0).normal(size=mdp.num_states))
    np.testing.assert_allclose(anything.values, cold.values, atol=1e-7)
    assert anything.certified
