"""Searches equal plain recursion bit for bit: action, value, and the value of every first action."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.search import FixedDepth, search, search_many
from adalook.simulators.minatar import GAMES, MinAtarSimulator
from adalook.simulators.tabular import TabularSimulator
from tests.search.reference import hashed_values, plain_action_values, plain_tree_nodes, roots_along
from tests.search.sims import Graph


def assert_equals_plain(sim, root, depth, discount, seed=0):
    result = search(sim, root, hashed_values, FixedDepth(depth), discount=discount, seed=seed, samples=1)
    expected = plain_action_values(sim, root, depth, discount, seed)
    np.testing.assert_array_equal(result.action_values, expected)
    assert result.action == int(expected.argmax())
    assert result.value == expected.max()
    return result


@given(
    seed=st.integers(0, 10**6),
    num_states=st.integers(1, 15),
    num_actions=st.integers(1, 4),
    terminal=st.sampled_from([0.0, 0.2, 0.6]),
    depth=st.integers(1, 4),
    discount=st.sampled_from([0.5, 0.97, 1.0]),
)
@settings(max_examples=150, deadline=None)
def test_graphs_with_terminal_states_and_many_equal_nodes(seed, num_states, num_actions, terminal, depth, discount):
    sim = Graph(num_states, num_actions, seed, terminal)
    (root,) = roots_along(sim, 1, 1, seed)
    result = assert_equals_plain(sim, root, depth, discount)
    assert result.tree_nodes == plain_tree_nodes(sim, root, result.depth)
    assert result.nodes <= result.tree_nodes


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_stochastic_tabular_models(seed, depth):
    sim = TabularSimulator(al.zoo.garnet(12, 3, 2, seed=seed, discount=0.9))
    (root,) = roots_along(sim, 1, 2, seed)
    assert_equals_plain(sim, root, depth, 0.9, seed=seed)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("game", GAMES)
def test_minatar(game, depth):
    sim = MinAtarSimulator(game)
    saved = 0
    for i, root in enumerate(roots_along(sim, 6, 7)):
        result = assert_equals_plain(sim, root, depth, 0.99, seed=i)
        assert result.tree_nodes == plain_tree_nodes(sim, root, result.depth, seed=i)
        saved += result.saved
    assert depth < 3 or saved > 0


@pytest.mark.parametrize("game", GAMES)
def test_minatar_with_sticky_actions(game):
    sim = MinAtarSimulator(game, sticky=0.3)
    for i, root in enumerate(roots_along(sim, 3, 11)):
        assert_equals_plain(sim, root, 3, 0.99, seed=i)


def test_many_roots_at_once_are_each_root_alone():
    sim = MinAtarSimulator("Asterix")
    roots = roots_along(sim, 5, 9)
    together = search_many(sim, roots, hashed_values, FixedDepth(3), discount=0.99, seed=range(5), samples=1)
    for i, (root, result) in enumerate(zip(roots, together, strict=True)):
        np.testing.assert_array_equal(result.action_values, plain_action_values(sim, root, 3, 0.99, seed=i))


def test_a_stochastic_tree_depends_on_its_own_seed_only():
    sim = MinAtarSimulator("SpaceInvaders", sticky=0.5)
    (root,) = roots_along(sim, 1, 20)
    answers = [search(sim, root, hashed_values, FixedDepth(3), discount=0.9, seed=seed) for seed in range(6)]
    assert len({tuple(answer.action_values) for answer in answers}) > 1
