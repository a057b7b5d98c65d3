"""Results of a search: Bellman operators, paths, levels, ties, beams, budgets, times and wrong arguments."""

from __future__ import annotations

import time

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError
from adalook.search import Budget, FixedDepth, Root, SearchStatus, search, search_many
from adalook.search.workers import base as workers_base
from adalook.simulators.minatar import MinAtarSimulator
from adalook.simulators.tabular import TabularSimulator
from tests.clock import FakeClock
from tests.search.reference import assert_same, hashed_values, plain_action_values, roots_along
from tests.search.sims import Counting, Graph, Slow, Wired


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
    """Return the probabilities (S, A, S) of a model."""
    probabilities = np.zeros((mdp.num_states, mdp.num_actions, mdp.num_states))
    for state, action in np.ndindex(probabilities.shape[:2]):
        successors, weights = mdp.transition_row(state, action)
        probabilities[state, action, successors] = weights
    return probabilities


def meets_chance(probabilities, steps):
    """Return whether (S,) some path of so many steps meets a random move."""
    chance = at_once = (probabilities.max(axis=2) < 1.0).any(axis=1)
    reach = (probabilities > 0).any(axis=1)
    for _ in range(steps - 1):
        chance = at_once | (reach & chance).any(axis=1)
    return chance


def test_the_value_function_is_called_once_per_level_with_distinct_observations():
    sim = Graph(20, 4, seed=2, terminal=0.3)
    roots = roots_along(sim, 3, 1)
    calls = []

    def value_fn(observations, depth):
        assert len({row.tobytes() for row in observations}) == len(observations)
        calls.append(depth)
        return hashed_values(observations, depth)

    search_many(sim, roots, value_fn, FixedDepth(3), discount=0.9, every_level=True)
    assert calls == [1, 2, 3]


def test_levels_that_the_rule_does_not_need_are_not_evaluated_and_change_nothing():
    sim = Graph(25, 3, seed=5, terminal=0.3)  # some trees terminate before the others
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
    with pytest.raises(ArgumentError, match="every_level=True"):
        search(Graph(25, 3, terminal=0.0), roots[0], hashed_values, FixedDepth(3), discount=0.9).leaf(depth=1)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_tree_that_terminates_early_changes_nothing_for_the_others(depth):
    sim = Graph(25, 2, seed=6, terminal=0.5)
    roots = []
    for state in np.flatnonzero(~sim._terminal).tolist():
        sim.restore(state)
        roots.append(Root.of(sim))
    calls = []

    def value_fn(observations, depth):
        calls.append(depth)
        return hashed_values(observations, depth)

    together = search_many(sim, roots, value_fn, FixedDepth(depth), discount=0.9)
    assert calls == [depth]
    assert {SearchStatus.TERMINATED, SearchStatus.DONE} == {result.status for result in together}
    assert len({result.depth for result in together}) > 1
    for root, result in zip(roots, together, strict=True):
        assert_same(search(sim, root, hashed_values, FixedDepth(depth), discount=0.9), result)


def test_the_path_leads_to_the_value_and_to_the_leaf():
    sim = MinAtarSimulator("Asterix", sticky=0.2)
    for i, root in enumerate(roots_along(sim, 8, 11)):
        result = search(sim, root, hashed_values, FixedDepth(3), discount=0.9, seed=i, samples=1)
        clone, total, terminated = sim.clone(), 0.0, False
        clone.restore(sim.reseed(root.state, i))
        for step, action in enumerate(result.path):
            transition = clone.step(action)
            total += 0.9**step * transition.reward
            terminated = transition.terminated
        leaf = result.leaf()
        assert result.path[0] == result.action
        assert leaf.return_to_leaf == total
        assert leaf.terminated == terminated
        np.testing.assert_array_equal(leaf.observation, transition.observation)
        bonus = 0.0 if terminated else 0.9**leaf.depth * hashed_values(leaf.observation[None], leaf.depth)[0]
        assert result.value == total + bonus


def test_every_level_is_the_search_to_that_depth():
    sim = Graph(25, 3, seed=4, terminal=0.2)
    for root in roots_along(sim, 10, 1):
        deep = search(sim, root, hashed_values, FixedDepth(4), discount=0.9, every_level=True)
        for level in deep.levels:
            expected = plain_action_values(sim, root, level.depth, 0.9)
            np.testing.assert_array_equal(level.action_values, expected)
            for action in range(3):
                leaf = deep.leaf(action, level.depth)
                bonus = (
                    0.0 if leaf.terminated else 0.9**level.depth * hashed_values(leaf.observation[None], level.depth)[0]
                )
                assert leaf.return_to_leaf + bonus == level.action_values[action]


def test_a_tree_in_which_every_path_has_terminated_stops():
    sim = Graph(6, 2, terminal=1.0)
    result = search(sim, roots_along(sim, 1, 1)[0], hashed_values, FixedDepth(5), discount=0.9)
    assert (result.depth, result.status, result.nodes) == (1, SearchStatus.TERMINATED, 2)


def test_ties_go_to_the_first_action():
    sim = Graph(1, 4, terminal=0.0, rewards=0.0)
    assert search(sim, roots_along(sim, 1, 1)[0], zero, FixedDepth(2), discount=0.9).action == 0


def test_ties_with_a_leaf_that_terminated_above_go_to_the_leaf_of_the_level():
    """One path terminates at depth 2, the other goes on; first both have the value 0, then going on costs 1."""
    nexts, terminal = [[1, 1], [2, 3], [2, 2], [3, 3]], [False, False, True, False]
    sim = Wired(nexts, np.zeros((4, 2)), terminal)
    result = search(sim, begin(sim), zero, FixedDepth(3), discount=0.9, every_level=True)
    assert result.path == (0, 1, 0)
    assert not result.leaf().terminated
    assert result.levels[1].leaf_terminated.all()  # at depth 2 both are leaves, and the terminated one is the first
    costly = Wired(nexts, [[0, 0], [0, 0], [0, 0], [-1, -1]], terminal)
    assert search(costly, begin(costly), zero, FixedDepth(3), discount=0.9).path == (0, 0)


def test_of_equal_leaves_that_terminated_above_the_first_counts():
    """Paths terminate at depths 2 and 3 with the value 0, and one goes on and has a lower value."""
    nexts = [[1, 1], [2, 3], [2, 2], [4, 5], [4, 4], [5, 5]]
    rewards = [[0, 0], [0, 0], [0, 0], [0, -1], [0, 0], [0, 0]]
    sim = Wired(nexts, rewards, [False, False, True, False, True, False])
    result = search(sim, begin(sim), zero, FixedDepth(4), discount=0.9)
    assert result.value == 0.0
    assert result.path == (0, 0)


def begin(sim):
    sim.reset()
    return Root.of(sim)


def test_of_equal_nodes_a_beam_keeps_the_first():
    sim = Wired([[1, 2, 3], [1, 1, 1], [2, 2, 2], [3, 3, 3]], np.zeros((4, 3)), [False] * 4)
    for width, kept in ((1, [0]), (2, [0, 1]), (3, [0, 1, 2])):
        result = search(sim, begin(sim), zero, FixedDepth(2), discount=0.9, width=width)
        assert np.flatnonzero(result.action_values == 0.0).tolist() == kept
        assert np.isneginf(result.action_values[len(kept) :]).all()


def test_plain_trees_are_counted_exactly_however_deep():
    sim = Graph(3, 4, terminal=0.0)
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
    sim = Graph(300, 4, seed=7, terminal=0.05)
    for root in roots_along(sim, 5, 1):
        full = search(sim, root, hashed_values, FixedDepth(5), discount=0.9)
        narrow = search(sim, root, hashed_values, FixedDepth(5), discount=0.9, width=width)
        assert all(level.nodes <= width * 4 for level in narrow.levels)
        assert (narrow.action_values <= full.action_values).all()
        assert narrow.value > -np.inf
        for action in range(4):  # even an action that the beam has dropped has a leaf at some level
            leaf = narrow.leaf(action)
            assert leaf.terminated or leaf.return_to_leaf <= narrow.levels[leaf.depth - 1].action_values[action] + 1.0


def test_a_beam_keeps_the_most_valuable_nodes():
    sim = Graph(300, 4, seed=8, terminal=0.0)
    (root,) = roots_along(sim, 1, 1)
    narrow = search(sim, root, hashed_values, FixedDepth(2), discount=0.9, width=1)
    full = search(sim, root, hashed_values, FixedDepth(2), discount=0.9)
    best_first = int(narrow.levels[0].action_values.argmax())
    assert narrow.action == best_first
    assert narrow.action_values[best_first] == full.action_values[best_first]
    assert np.isneginf(np.delete(narrow.action_values, best_first)).all()


def test_out_of_nodes_the_last_complete_level_answers():
    sim = Graph(300, 4, seed=9, terminal=0.0)
    (root,) = roots_along(sim, 1, 1)
    for nodes in (1, 4, 20, 60, 10**6):
        result = search(sim, root, hashed_values, FixedDepth(4), discount=0.9, budget=Budget(nodes=nodes))
        assert result.nodes <= max(nodes, 4)  # the first level is always completed
        assert result.status is (SearchStatus.DONE if nodes == 10**6 else SearchStatus.NODE_LIMIT)
        assert_levels_equal(result, search(sim, root, hashed_values, FixedDepth(result.depth), discount=0.9))


def test_out_of_time_the_last_complete_level_answers(monkeypatch):
    FakeClock(monkeypatch)
    sim = Slow(300, 4, seed=9, terminal=0.0, seconds=0.001)
    (root,) = roots_along(sim, 1, 1)
    result = search(sim, root, hashed_values, FixedDepth(9), discount=0.9, budget=Budget(seconds=0.05))
    assert result.status is SearchStatus.TIME_LIMIT
    assert 1 <= result.depth < 9
    assert 0.05 < result.seconds.total < 0.05 + 0.001 * workers_base.MAX_BATCH_SIZE  # and the batch that was under way
    assert_levels_equal(result, search(sim, root, hashed_values, FixedDepth(result.depth), discount=0.9))


def test_a_level_that_is_given_up_is_counted(monkeypatch):
    monkeypatch.setattr(workers_base, "MAX_BATCH_SIZE", 5)
    FakeClock(monkeypatch)
    sim = Counting(300, 4, seed=9, terminal=0.0, seconds=0.002)
    roots = roots_along(sim, 2, 1)
    begin = time.perf_counter()
    results = search_many(sim, roots, zero, FixedDepth(9), discount=0.9, budget=Budget(seconds=0.3))
    seconds = time.perf_counter() - begin
    assert {result.status for result in results} == {SearchStatus.TIME_LIMIT}
    assert sum(result.nodes for result in results) == sim.taken
    for result in results:
        complete = search(Graph(300, 4, seed=9, terminal=0.0), roots[0], zero, FixedDepth(result.depth), discount=0.9)
        assert result.depth == complete.depth
        assert result.saved >= 0
        assert result.given_up.expansion > 0.0
        assert result.seconds.expansion == pytest.approx(0.002 * sim.taken)
        assert result.seconds.total == pytest.approx(seconds)
    in_levels = sum(level.nodes for result in results for level in result.levels)
    assert in_levels < sim.taken


def assert_levels_equal(result, other):
    assert (result.depth, result.path) == (other.depth, other.path)
    np.testing.assert_array_equal(result.action_values, other.action_values)


def test_seconds_add_up(monkeypatch):
    FakeClock(monkeypatch)
    sim = Slow(40, 3, terminal=0.0, seconds=0.002)
    result = search(sim, roots_along(sim, 1, 1)[0], zero, FixedDepth(3), discount=0.9)
    assert result.seconds.expansion == pytest.approx(0.002 * result.nodes)
    assert result.seconds.total == pytest.approx(result.seconds.expansion)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discount": 0.0}, "discount"),
        ({"discount": 1.5}, "discount"),
        ({"discount": "x"}, r"discount is wrong: expected a number in \(0, 1\], got 'x'"),
        ({"discount": True}, "discount is wrong"),
        ({"width": 0}, "width is wrong: expected a whole number >= 1, or None, got 0"),
        ({"width": "3"}, "width is wrong: .* got '3'"),
        ({"width": 2.5}, "width is wrong: .* got 2.5"),
        ({"width": True}, "width is wrong: .* got True"),
        ({"seed": 1.5}, "seed is wrong: expected a whole number, .* got 1.5"),
        ({"seed": None}, "seed is wrong: .* got None"),
        ({"seed": [0.5]}, r"seed is wrong: .* got \[0.5\]"),
        ({"seed": [1, 2]}, "expected 1 seeds, got 2"),
        ({"budget": 5}, r"budget is wrong: expected a Budget, such as Budget\(nodes=500\), or None, got 5"),
        ({"rule": 3}, r"rule is wrong: expected a DepthRule, such as FixedDepth\(3\), got 3"),
        ({"rule": FixedDepth}, "rule is wrong"),
        ({"root": Graph().save()}, r"root is wrong: expected a Root, such as Root.of\(sim\), got a int"),
        ({"expander": 2}, "expander is wrong: .* got 2"),
        ({"value_fn": 0.0}, "value function is wrong: .* got 0.0"),
        ({"value_fn": lambda leaves, depth: np.zeros(len(leaves) + 1)}, "wrong shape"),
        ({"value_fn": lambda leaves, depth: np.full(len(leaves), np.nan)}, "not finite"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    sim = Graph()
    usual = {"root": roots_along(sim, 1, 1)[0], "value_fn": zero, "rule": FixedDepth(2), "discount": 0.9}
    with pytest.raises(ArgumentError, match=message):
        search(sim, **{**usual, **options})


def test_one_root_is_not_many():
    sim = Graph()
    with pytest.raises(ArgumentError, match="roots are wrong: expected a list of Root, got one Root"):
        search_many(sim, roots_along(sim, 1, 1)[0], zero, FixedDepth(2), discount=0.9)


def test_an_infinite_beam_is_the_full_tree():
    sim = Graph(30, 3)
    (root,) = roots_along(sim, 1, 1)
    full = search(sim, root, hashed_values, FixedDepth(3), discount=0.9, every_level=True)
    assert_same(search(sim, root, hashed_values, FixedDepth(3), discount=0.9, width=np.inf), full)


def test_wrong_budgets_and_depths_are_named():
    for budget in ({"nodes": 0}, {"seconds": -1.0}, {"nodes": "x"}, {"seconds": np.nan}, {"nodes": True}):
        with pytest.raises(ArgumentError, match=r"wrong: expected a number > 0, or infinity, or None, got"):
            Budget(**budget)
    for depth in (0, 1.5, "2", True):
        with pytest.raises(ArgumentError, match="wrong: expected a whole number >= 1, got"):
            FixedDepth(depth)


def test_no_roots_no_results():
    assert search_many(Graph(), [], zero, FixedDepth(1), discount=0.9) == []
