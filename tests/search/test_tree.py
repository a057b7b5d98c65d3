"""What a search says about itself, its limits, and how it treats value functions."""

from __future__ import annotations

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError
from adalook.search import Budget, FixedDepth, Root, Status, search, search_many
from adalook.simulators.minatar import MinAtarSimulator
from adalook.simulators.tabular import TabularSimulator
from tests.search.plain import assert_same, hashed_values, plain_action_values, roots_along
from tests.search.worlds import Graph, Slow


def zero(observations, depth):
    return np.zeros(len(observations))


def apply_bellman(next_states, rewards, discount, values, times):
    for _ in range(times):
        values = (rewards + discount * values[next_states]).max(axis=1)
    return values


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_a_random_deterministic_model_gives_the_bellman_operator(depth, seed):
    rng = np.random.default_rng(seed)
    next_states, rewards = rng.integers(0, 30, (30, 3)), rng.normal(size=(30, 3))
    values = rng.normal(size=30)
    expected = apply_bellman(next_states, rewards, 0.95, values, depth)
    for start in range(0, 30, 3):
        sim = TabularSimulator(al.MDP(rewards, next_states, 0.95), start=start)
        root = Root(sim.save(), sim.reset(seed=0))
        result = search(sim, Root.of(sim), lambda leaves, _: values[leaves[:, 0]], FixedDepth(depth), discount=0.95)
        assert root.observation[0] == start
        assert result.value == pytest.approx(expected[start], abs=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_the_maze_gives_the_bellman_operator_where_no_goal_is_near(depth):
    """Entering a goal moves to a random cell, which a tree samples: states that can do so in h steps are left out."""
    mdp = al.zoo.maze(size=20, seed=0, discount=0.9)
    rng = np.random.default_rng(0)
    values = rng.normal(size=mdp.num_states)
    probabilities = dense(mdp)
    expected = values
    for _ in range(depth):
        expected = (mdp.rewards + mdp.discount * probabilities @ expected).max(axis=1)
    checked = np.flatnonzero(~meets_chance(probabilities, depth))
    assert len(checked) > 20
    for start in rng.permutation(checked)[:25].tolist():
        sim = TabularSimulator(mdp, start=start)
        sim.reset(seed=0)
        result = search(sim, Root.of(sim), lambda leaves, _: values[leaves[:, 0]], FixedDepth(depth), discount=0.9)
        assert result.value == pytest.approx(expected[start], abs=1e-12)
        assert result.nodes < result.tree_nodes or depth < 3


def dense(mdp):
    """(S, A, S) probabilities."""
    probabilities = np.zeros((mdp.num_states, mdp.num_actions, mdp.num_states))
    for state, action in np.ndindex(probabilities.shape[:2]):
        successors, weights = mdp.transition_row(state, action)
        probabilities[state, action, successors] = weights
    return probabilities


def meets_chance(probabilities, steps):
    """(S,) whether some path of so many steps meets a random move."""
    chance = at_once = (probabilities.max(axis=2) < 1.0).any(axis=1)
    reach = (probabilities > 0).any(axis=1)
    for _ in range(steps - 1):
        chance = at_once | (reach & chance).any(axis=1)
    return chance


def test_values_are_asked_for_once_per_level_and_once_per_observation():
    sim = Graph(20, 4, seed=2, ends=0.3)
    roots = roots_along(sim, 3, 1)
    calls = []

    def value_fn(observations, depth):
        assert len({row.tobytes() for row in observations}) == len(observations)
        calls.append(depth)
        return hashed_values(observations, depth)

    search_many(sim, roots, value_fn, FixedDepth(3), discount=0.9, every_level=True)
    assert calls == [1, 2, 3]


def test_levels_that_nobody_asks_about_are_not_evaluated_and_change_nothing():
    sim = Graph(25, 3, seed=5, ends=0.3)  # some trees end before the others
    roots = roots_along(sim, 12, 1)
    calls = []

    def value_fn(observations, depth):
        calls.append(depth)
        return hashed_values(observations, depth)

    for root in roots:
        last = search(sim, root, value_fn, FixedDepth(3), discount=0.9)
        full = search(sim, root, hashed_values, FixedDepth(3), discount=0.9, every_level=True)
        np.testing.assert_array_equal(last.action_values, full.action_values)
        assert (last.depth, last.path, last.status, last.nodes) == (full.depth, full.path, full.status, full.nodes)
        np.testing.assert_array_equal(last.leaf().observation, full.leaf().observation)
    assert set(calls) == {3}
    together = search_many(sim, roots, hashed_values, FixedDepth(3), discount=0.9)
    for root, both in zip(roots, together, strict=True):
        alone = search(sim, root, hashed_values, FixedDepth(3), discount=0.9)
        np.testing.assert_array_equal(alone.action_values, both.action_values)
    with pytest.raises(ArgumentError, match="every_level=True"):
        search(Graph(25, 3, ends=0.0), roots[0], hashed_values, FixedDepth(3), discount=0.9).leaf(depth=1)


def test_the_path_leads_to_the_value_and_to_the_leaf():
    sim = MinAtarSimulator("Asterix", sticky=0.2)
    for i, root in enumerate(roots_along(sim, 8, 11)):
        result = search(sim, root, hashed_values, FixedDepth(3), discount=0.9, seed=i)
        world, total, ended = sim.twin(), 0.0, False
        world.restore(sim.branch(root.state, i))
        for step, action in enumerate(result.path):
            transition = world.step(action)
            total += 0.9**step * transition.reward
            ended = transition.ended
        leaf = result.leaf()
        assert result.path[0] == result.action
        assert leaf.return_to_leaf == total
        assert leaf.ended == ended
        np.testing.assert_array_equal(leaf.observation, transition.observation)
        bonus = 0.0 if ended else 0.9**leaf.depth * hashed_values(leaf.observation[None], leaf.depth)[0]
        assert result.value == total + bonus


def test_every_level_is_the_search_to_that_depth():
    sim = Graph(25, 3, seed=4, ends=0.2)
    for root in roots_along(sim, 10, 1):
        deep = search(sim, root, hashed_values, FixedDepth(4), discount=0.9, every_level=True)
        for level in deep.levels:
            expected = plain_action_values(sim, root, level.depth, 0.9)
            np.testing.assert_array_equal(level.action_values, expected)
            for action in range(3):
                leaf = deep.leaf(action, level.depth)
                bonus = 0.0 if leaf.ended else 0.9**level.depth * hashed_values(leaf.observation[None], level.depth)[0]
                assert leaf.return_to_leaf + bonus == level.action_values[action]


def test_a_tree_in_which_everything_has_ended_stops():
    sim = Graph(6, 2, ends=1.0)
    result = search(sim, roots_along(sim, 1, 1)[0], hashed_values, FixedDepth(5), discount=0.9)
    assert (result.depth, result.status, result.nodes) == (1, Status.ENDED, 2)


def test_ties_go_to_the_first_action():
    sim = Graph(1, 4, ends=0.0, rewards=0.0)
    assert search(sim, roots_along(sim, 1, 1)[0], zero, FixedDepth(2), discount=0.9).action == 0


def test_plain_trees_are_counted_exactly_however_deep():
    sim = Graph(3, 4, ends=0.0)
    result = search(sim, roots_along(sim, 1, 1)[0], zero, FixedDepth(60), discount=0.99)
    assert result.tree_nodes == sum(4**depth for depth in range(1, 61))
    assert result.nodes <= 60 * 3 * 4


def test_a_wide_enough_beam_is_the_full_tree():
    sim = MinAtarSimulator("Freeway")
    for root in roots_along(sim, 4, 9):
        full = search(sim, root, hashed_values, FixedDepth(4), discount=0.9, every_level=True)
        assert_same(search(sim, root, hashed_values, FixedDepth(4), discount=0.9, width=10**9), full)


@pytest.mark.parametrize("width", [1, 2, 7])
def test_a_beam_costs_as_much_at_every_level_and_bounds_values_from_below(width):
    sim = Graph(300, 4, seed=7, ends=0.05)
    for root in roots_along(sim, 5, 1):
        full = search(sim, root, hashed_values, FixedDepth(5), discount=0.9)
        narrow = search(sim, root, hashed_values, FixedDepth(5), discount=0.9, width=width)
        assert all(level.nodes <= width * 4 for level in narrow.levels)
        assert (narrow.action_values <= full.action_values).all()
        assert narrow.value > -np.inf
        for action in range(4):  # even an action that the beam has dropped has a leaf at some level
            leaf = narrow.leaf(action)
            assert leaf.ended or leaf.return_to_leaf <= narrow.levels[leaf.depth - 1].action_values[action] + 1.0


def test_a_beam_keeps_the_most_valuable_nodes():
    sim = Graph(300, 4, seed=8, ends=0.0)
    (root,) = roots_along(sim, 1, 1)
    narrow = search(sim, root, hashed_values, FixedDepth(2), discount=0.9, width=1)
    full = search(sim, root, hashed_values, FixedDepth(2), discount=0.9)
    best_first = int(narrow.levels[0].action_values.argmax())
    assert narrow.action == best_first
    assert narrow.action_values[best_first] == full.action_values[best_first]
    assert np.isneginf(np.delete(narrow.action_values, best_first)).all()


def test_out_of_nodes_the_last_complete_level_answers():
    sim = Graph(300, 4, seed=9, ends=0.0)
    (root,) = roots_along(sim, 1, 1)
    for nodes in (1, 4, 20, 60, 10**6):
        result = search(sim, root, hashed_values, FixedDepth(4), discount=0.9, budget=Budget(nodes=nodes))
        assert result.nodes <= max(nodes, 4)  # the first level is always made
        assert result.status is (Status.DONE if nodes == 10**6 else Status.NODE_LIMIT)
        assert_levels_equal(result, search(sim, root, hashed_values, FixedDepth(result.depth), discount=0.9))


def test_out_of_time_the_last_complete_level_answers():
    sim = Slow(300, 4, seed=9, ends=0.0, seconds=0.001)
    (root,) = roots_along(sim, 1, 1)
    result = search(sim, root, hashed_values, FixedDepth(9), discount=0.9, budget=Budget(seconds=0.05))
    assert result.status is Status.TIME_LIMIT
    assert 1 <= result.depth < 9
    assert result.seconds.total < 1.0
    assert_levels_equal(result, search(sim, root, hashed_values, FixedDepth(result.depth), discount=0.9))


def assert_levels_equal(result, other):
    assert (result.depth, result.path) == (other.depth, other.path)
    np.testing.assert_array_equal(result.action_values, other.action_values)


def test_seconds_add_up():
    sim = Slow(40, 3, ends=0.0, seconds=0.002)
    result = search(sim, roots_along(sim, 1, 1)[0], zero, FixedDepth(3), discount=0.9)
    assert result.seconds.expansion >= 0.002 * result.nodes
    assert result.seconds.expansion > 0.9 * result.seconds.total


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discount": 0.0}, "discount"),
        ({"discount": 1.5}, "discount"),
        ({"discount": 0.9, "width": 0}, "width"),
        ({"discount": 0.9, "value_fn": lambda leaves, depth: np.zeros(len(leaves) + 1)}, "wrong shape"),
        ({"discount": 0.9, "value_fn": lambda leaves, depth: np.full(len(leaves), np.nan)}, "not finite"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    sim = Graph()
    value_fn = options.pop("value_fn", zero)
    with pytest.raises(al.AdalookError, match=message):
        search(sim, roots_along(sim, 1, 1)[0], value_fn, FixedDepth(2), **options)


def test_wrong_budgets_and_depths_are_named():
    for make in (lambda: Budget(nodes=0), lambda: Budget(seconds=-1.0), lambda: FixedDepth(0), lambda: FixedDepth(1.5)):
        with pytest.raises(al.AdalookError, match="wrong"):
            make()


def test_no_roots_no_results():
    assert search_many(Graph(), [], zero, FixedDepth(1), discount=0.9) == []
