"""Trajectories: their frequencies are the model's, their mean return is the policy's value."""

import numpy as np

import adalook as al

GRID = al.zoo.gridworld(4, 4, discount=0.9)


def test_one_seed_gives_one_simulation():
    policy = al.solve(GRID).policy
    one, again = (GRID.simulate(policy, 30, episodes=5, seed=3) for _ in range(2))
    assert (one.states == again.states).all()
    assert (one.states != GRID.simulate(policy, 30, episodes=5, seed=4).states).any()


def test_mean_returns_are_values():
    sol = al.solve(GRID)
    runs = GRID.simulate(sol.policy, 200, start=0, episodes=20_000)
    error = runs.returns.std() / np.sqrt(20_000)
    assert abs(runs.returns.mean() - sol.values[0]) < 4 * error + 1e-6


def test_steps_follow_the_model():
    mdp = al.zoo.garnet(20, 3, 4, seed=1)
    runs = mdp.simulate(np.full((20, 3), 1 / 3), 50, episodes=200)
    for s, a, t in zip(runs.states[:, :-1].ravel(), runs.actions.ravel(), runs.states[:, 1:].ravel(), strict=True):
        assert t in mdp.transition_row(s, a)[0]
    assert (runs.rewards == mdp.rewards[runs.states[:, :-1], runs.actions]).all()
    assert abs(np.bincount(runs.actions.ravel()) / runs.actions.size - 1 / 3).max() < 0.02


def test_successors_have_their_frequencies():
    mdp = al.MDP([[0.0], [0.0], [0.0]], np.tile([0.2, 0.5, 0.3], (3, 1, 1)), 0.9)
    runs = mdp.simulate([0, 0, 0], 1000, episodes=50)
    share = np.bincount(runs.states[:, 1:].ravel()) / runs.actions.size
    np.testing.assert_allclose(share, [0.2, 0.5, 0.3], atol=0.01)


def test_policies_that_depend_on_time():
    mdp = al.MDP([[0.0, 1.0]], [[0, 0]], 1.0)
    assert mdp.simulate([[0], [1], [0], [1]], 4).rewards.tolist() == [[0.0, 1.0, 0.0, 1.0]]


def test_names_say_where_to_start():
    mdp = al.MDP([[0.0], [0.0]], [[1], [0]], 0.9, state_names=["here", "there"])
    assert mdp.simulate([0, 0], 3, start="there").states.tolist() == [[1, 0, 1, 0]]
