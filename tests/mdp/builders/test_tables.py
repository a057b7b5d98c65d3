"""Models from tables of outcomes, with names."""

import numpy as np
import pytest

import adalook as al

WEATHER = {
    "sunny": {"walk": [(0.8, "sunny", 2.0), (0.2, "rainy", 1.0)], "drive": [(1.0, "sunny", 0.5)]},
    "rainy": {"drive": [(0.5, "sunny", 0.5), (0.5, "rainy", 0.5)]},
}


def test_names_and_rows():
    mdp = al.MDP.from_table(WEATHER, 0.9)
    assert mdp.state_names == ("sunny", "rainy")
    assert mdp.action_names == ("walk", "drive")
    assert mdp.offered.tolist() == [[True, True], [False, True]]
    assert mdp.rewards[0, 0] == pytest.approx(1.8)
    assert mdp.transition_row(1, 1)[1].tolist() == [0.5, 0.5]
    assert mdp.state_index("rainy") == 1
    assert mdp.action_label(1) == "drive"


def test_rewards_apart():
    table = {"a": {"go": {"a": 0.25, "b": 0.75}}, "b": {"go": {"b": 1.0}}}
    mdp = al.MDP.from_table(table, 0.9, rewards={"a": {"go": 3.0}, "b": 1})
    assert mdp.rewards.tolist() == [[3.0], [1.0]]


def test_lists_of_lists():
    table = [[[(1.0, 1, 5.0)], [(1.0, 0, 1.0)]], [[(1.0, 1, 0.0)]]]
    mdp = al.MDP.from_table(table, 0.5)
    assert mdp.state_names == ()
    assert mdp.offered.tolist() == [[True, True], [True, False]]
    assert al.solve(mdp).values.tolist() == [5.0, 0.0]


def test_states_without_actions_end_the_episode():
    mdp = al.MDP.from_table({"start": {"go": [(1.0, "end", 1.0)]}, "end": {}}, 0.9)
    assert mdp.num_states == 2
    assert al.solve(mdp).values.tolist() == [1.0, 0.0]


def test_terminated_leads_to_a_sink_that_has_a_name():
    mdp = al.MDP.from_table({"start": {"go": [(1.0, "start", 1.0, True)]}}, 0.9)
    assert mdp.state_names == ("start", "(end)")
    assert al.solve(mdp).values.tolist() == [1.0, 0.0]


def test_numbers_of_numpy_are_numbers():
    table = {np.int64(0): {np.int64(0): [(np.float64(1.0), np.int64(0), np.float32(2.0), np.bool_(False))]}}
    assert al.solve(al.MDP.from_table(table, 0.5)).values.tolist() == [4.0]


def test_tuples_as_states():
    table = {(0, 0): {"right": [(1.0, (0, 1), 1.0)]}, (0, 1): {"right": [(1.0, (0, 1), 0.0)]}}
    assert al.MDP.from_table(table, 0.9).state_names == ("(0, 0)", "(0, 1)")


def test_rewards_may_depend_on_the_next_state():
    table = {"a": {"x": {"a": 0.25, "b": 0.75}}, "b": {"x": {"b": 1.0}}}
    mdp = al.MDP.from_table(table, 0.9, rewards={"a": {"x": {"a": 4.0, "b": 8.0}}, "b": {"x": 1.0}})
    assert mdp.rewards.tolist() == [[7.0], [1.0]]
    with pytest.raises(al.errors.ModelError, match="state 'a', action 'x'"):
        al.MDP.from_table(table, 0.9, rewards={"a": {"x": {"a": 4.0}}, "b": {"x": 1.0}})


def test_a_table_without_rewards_is_refused():
    with pytest.raises(al.errors.ModelError, match=r"what state 'a', action 'x' pays.*rewards="):
        al.MDP.from_table({"a": {"x": {"a": 1.0}}}, 0.9)
