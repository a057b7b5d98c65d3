"""Models read from the transition tables of Gymnasium's toy-text environments."""

import gymnasium as gym
import numpy as np
import pytest

import adalook as al


def make(name: str, **settings) -> gym.Env:
    return gym.make(name, **settings)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_tables_agree_with_value_iteration_on_the_table(name):
    env = make(name)
    mdp = al.MDP.from_gymnasium(env, 0.95)
    table = env.unwrapped.P
    assert mdp.num_states == len(table) + 1, "one sink for ended episodes"
    values = np.zeros(len(table))
    for _ in range(600):
        values = np.array(
            [
                max(
                    sum(p * (r + (0.0 if terminated else 0.95 * values[t])) for p, t, r, terminated in outcomes)
                    for outcomes in actions.values()
                )
                for actions in table.values()
            ]
        )
    np.testing.assert_allclose(al.solve(mdp).values[:-1], values, atol=1e-8)
    assert al.solve(mdp).values[-1] == 0.0


def test_ended_means_ended_even_where_the_entered_state_has_moves():
    table = {
        0: {0: [(0.5, 1, 1.0, True), (0.25, 1, 0.0, False), (0.25, 1, 0.0, False)]},
        1: {0: [(1.0, 1, 8.0, False)]},
    }
    mdp = al.MDP.from_gymnasium(type("Env", (), {"P": table})(), 0.5)
    np.testing.assert_allclose(al.solve(mdp).values, [0.5 + 0.5 * 0.5 * 16, 16.0, 0.0])


def test_the_default_discount_is_0_99():
    assert al.MDP.from_gymnasium(make("FrozenLake-v1")).discount == 0.99


def test_layouts_of_toy_text():
    lake = al.MDP.from_gymnasium(make("FrozenLake-v1", map_name="8x8"))
    assert lake.layout.shape == (8, 8)
    assert lake.layout.goals == ((7, 7),)
    assert lake.layout.cells[-1].tolist() == [-1, -1]
    assert al.MDP.from_gymnasium(make("CliffWalking-v1")).layout.shape == (4, 12)
    assert al.MDP.from_gymnasium(make("Taxi-v4")).layout is None
    assert len(np.unique(lake.layout.squares(4))) == 5
