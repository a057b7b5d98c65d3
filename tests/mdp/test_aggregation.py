"""Aggregated models: rows are averaged over the states of a group."""

import numpy as np

import adalook as al


def test_aggregation_averages_rows():
    rewards = np.array([[1.0, 0.0], [3.0, 2.0], [0.0, 5.0]])
    mask = np.array([[True, False], [True, True], [True, True]])
    mdp = al.MDP(rewards, [[2, 0], [1, 2], [0, 2]], 0.9, mask=mask)
    small, lift = al.aggregate(mdp, [7, 7, 9])
    assert small.rewards.tolist() == [[2.0, 2.0], [0.0, 5.0]]
    assert small.transition_row(0, 0)[1].tolist() == [0.5, 0.5]
    assert small.transition_row(0, 1)[0].tolist() == [1]
    assert lift(np.array([10.0, 20.0])).tolist() == [10.0, 10.0, 20.0]


def test_groups_of_one_change_nothing():
    mdp = al.zoo.maze(size=12, seed=0)
    small, lift = al.aggregate(mdp, np.arange(mdp.num_states))
    np.testing.assert_allclose(lift(al.solve(small).values), al.solve(mdp).values, atol=1e-9)
