"""Rollout search: what it values is attained, all paths give the full tree, and kept subtrees are the live env's."""

import itertools

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError
from adalook.search import FixedDepth, GapDepth, Root, SearchStatus
from adalook.search.rollouts import Rollouts, RolloutTrees
from adalook.simulators.minatar import MinAtarSimulator
from adalook.simulators.tabular import TabularSimulator
from tests.search.reference import hashed_values, plain_action_values
from tests.search.sims import Counting, Graph, Wired

ALL_PATHS = 10_000
DISCOUNT = 0.9


def values(observations, _stage=0):
    return hashed_values(observations, 7)


def zeros(observations, _stage):
    return np.zeros(len(observations))


def trees_of(sim, *, nodes=ALL_PATHS, length=4, repeat=0.0, greedy=0.0):
    return RolloutTrees(sim, Rollouts(nodes, length, repeat, greedy), DISCOUNT)


def replayed(sim, root, path, value_fn=values):
    """Return the value of a path from the root, simulated anew."""
    clone, total = sim.clone(), 0.0
    clone.restore(root.state)
    for t, action in enumerate(path):
        transition = clone.step(action)
        total += DISCOUNT**t * transition.reward
        if transition.terminated:
            return total
    return total + DISCOUNT ** len(path) * float(value_fn(transition.observation[None], 1)[0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("repeat", "greedy"), [(0.0, 0.0), (0.8, 0.0), (0.8, 0.5)])
def test_when_all_paths_are_rolled_out_the_values_are_those_of_the_full_tree(seed, repeat, greedy):
    sim = Graph(12, 3, seed=seed)
    sim.reset(seed=seed)
    root = Root.of(sim)
    trees, policy = trees_of(sim, repeat=repeat, greedy=greedy), lambda observations: np.ones(len(observations), int)
    result = trees.search([sim], values, FixedDepth(1), seeds=[seed], policy=policy if greedy else None)[0]
    np.testing.assert_allclose(result.action_values, plain_action_values(sim, root, 4, DISCOUNT, value_fn=values))
    assert result.status is SearchStatus.TERMINATED


@pytest.mark.parametrize("seed", range(5))
def test_every_value_is_that_of_a_path_and_of_a_leaf(seed):
    sim = Graph(40, 4, seed=seed, terminal=0.05)
    sim.reset(seed=seed)
    root = Root.of(sim)
    result = trees_of(sim, nodes=50, length=9, repeat=0.8).search([sim], values, FixedDepth(1), seeds=[seed])[0]
    assert result.nodes == 50
    assert result.value == pytest.approx(replayed(sim, root, result.path))
    for action in range(4):
        leaf = result.leaf(action)
        bootstrap = 0.0 if leaf.terminated else DISCOUNT**leaf.depth * values(leaf.observation[None])[0]
        assert leaf.return_to_leaf + bootstrap == pytest.approx(result.action_values[action])
        assert 1 <= leaf.depth <= 9


def test_every_first_action_is_tried_before_any_is_tried_again():
    sim = Graph(40, 6, seed=1, terminal=0.0)
    sim.reset(seed=1)
    result = trees_of(sim, nodes=6, length=1).search([sim], values, FixedDepth(1), seeds=[3])[0]
    assert np.isfinite(result.action_values).all()


def test_stages_go_on_as_the_rule_says():
    sim = Graph(60, 3, seed=2, terminal=0.0)
    sim.reset(seed=2)
    one = trees_of(sim, nodes=20, length=8).search([sim], values, FixedDepth(3), seeds=[5])[0]
    assert [level.nodes for level in one.levels] == [20, 20, 20]
    assert [level.depth for level in one.levels] == [1, 2, 3]
    never = trees_of(sim, nodes=20, length=8).search([sim], values, GapDepth(1e-12, max_depth=3), seeds=[5])[0]
    assert [level.nodes for level in never.levels] == [20]


def test_values_of_later_stages_only_rise_when_leaves_are_worth_nothing():
    sim = Graph(60, 3, seed=4, terminal=0.1)
    sim.reset(seed=4)
    result = trees_of(sim, nodes=15, length=10).search([sim], zeros, FixedDepth(4), seeds=[5])[0]
    for before, after in itertools.pairwise(result.levels):
        assert (after.returns[before.leaf_terminated] >= before.returns[before.leaf_terminated] - 1e-12).all()


def test_one_seed_gives_one_result_alone_or_beside_others():
    sims = [Graph(40, 3, seed=6) for _ in range(3)]
    for seed, sim in enumerate(sims):
        sim.reset(seed=seed)
    together = trees_of(sims[0], nodes=30, length=6).search(sims, values, FixedDepth(2), seeds=[1, 2, 3])
    for sim, seed, result in zip(sims, [1, 2, 3], together, strict=True):
        alone = trees_of(sim, nodes=30, length=6).search([sim], values, FixedDepth(2), seeds=[seed])[0]
        assert alone.path == result.path
        assert alone.action_values.tolist() == result.action_values.tolist()


def test_simulated_steps_are_steps_of_the_simulator_anywhere_in_the_tree_each_at_most_once():
    sim = Wired([[1, 2], [3, 4], [0, 5], [3, 0], [4, 1], [5, 5]], [[i, 10 + i] for i in range(6)], [False] * 5 + [True])
    sim.reset(seed=0)
    trees = trees_of(sim, nodes=12, length=4)
    result = trees.search([sim], zeros, FixedDepth(1), seeds=[4])[0]
    steps = trees.simulated_steps(sim, 100, seed=1)
    assert len(steps) == result.nodes == 12
    for step in steps:
        clone = sim.clone()
        clone.restore(int(step.observation[0]))
        transition = clone.step(step.leaf.action)
        assert (transition.reward, transition.terminated) == (step.leaf.return_to_leaf, step.leaf.terminated)
        assert transition.observation.tolist() == step.leaf.observation.tolist()
        assert step.leaf.depth == 1
    assert len({int(step.observation[0]) for step in steps}) > 2, "not only first steps"
    some = trees.simulated_steps(sim, 5, seed=1)
    assert len({id(step.leaf.observation) for step in some}) == 5
    assert [s.leaf.action for s in some] == [s.leaf.action for s in trees.simulated_steps(sim, 5, seed=1)]


def test_the_first_rollout_follows_the_policy():
    sim = Graph(60, 3, seed=9, terminal=0.0)
    sim.reset(seed=9)
    trees = trees_of(sim, nodes=6, length=6)
    result = trees.search(
        [sim], zeros, FixedDepth(1), seeds=[1], policy=lambda observations: np.full(len(observations), 2)
    )[0]
    assert result.path == (2, 2, 2, 2, 2, 2)
    assert np.isfinite(result.action_values).tolist() == [False, False, True]


def test_a_kept_tree_that_is_loaded_again_goes_on_in_the_same_way():
    def sim_after(action):
        sim = Counting(30, 3, seed=7, terminal=0.1, seconds=0.0)
        sim.reset(seed=7)
        if action is not None:
            sim.step(action)
        return sim

    sim = sim_after(None)
    trees = trees_of(sim, nodes=25, length=6, repeat=0.5)
    first = trees.search([sim], values, FixedDepth(2), seeds=[1])[0]
    sim.step(first.action)
    trees.keep(sim, first.action)

    other = sim_after(first.action)
    loaded = trees_of(other, nodes=25, length=6, repeat=0.5)
    loaded.load_kept_paths(other, trees.kept_paths(sim), seed=0)
    assert len(trees.kept_paths(sim)) > 5
    one, two = (
        each.search([env], values, FixedDepth(2), seeds=[2])[0] for each, env in ((trees, sim), (loaded, other))
    )
    assert one.path == two.path
    assert one.action_values.tolist() == two.action_values.tolist()
    assert trees.kept_paths(sim) == loaded.kept_paths(other)


def test_the_subtree_of_what_the_live_env_did_is_kept_and_costs_nothing():
    sim = Counting(30, 3, seed=7, terminal=0.0, seconds=0.0)
    sim.reset(seed=7)
    trees = trees_of(sim, length=3)
    first = trees.search([sim], values, FixedDepth(1), seeds=[1])[0]
    assert sim.taken == first.nodes == 3 + 9 + 27
    sim.step(first.action)
    trees.keep(sim, first.action)
    again = trees.search([sim], values, FixedDepth(1), seeds=[2])[0]
    assert again.nodes == 27, "depths 1 and 2 are known, depth 3 is new"
    expected = plain_action_values(sim, Root.of(sim), 3, DISCOUNT, value_fn=values)
    np.testing.assert_allclose(again.action_values, expected)


@pytest.mark.parametrize("seed", range(10))
def test_kept_trees_in_which_most_paths_terminate_go_on(seed):
    sim = Graph(40, 2, seed=seed, terminal=0.4)
    sim.reset(seed=seed)
    trees = trees_of(sim, nodes=12, length=6, repeat=0.5)
    for step in range(30):
        result = trees.search([sim], values, FixedDepth(2), seeds=[step])[0]
        assert np.isfinite(result.value)
        transition = sim.step(result.action)
        trees.keep(sim, result.action)
        if transition.terminated:
            sim.reset(seed=1_000 + step)


def test_a_tree_of_another_state_is_forgotten():
    sim = Counting(30, 3, seed=8, terminal=0.0, seconds=0.0)
    sim.reset(seed=0)
    trees = trees_of(sim, length=2)
    trees.search([sim], values, FixedDepth(1), seeds=[1])
    trees.keep(sim, 1)
    sim.reset(seed=3)  # a new episode, not what action 1 leads to
    before = sim.taken
    result = trees.search([sim], values, FixedDepth(1), seeds=[2])[0]
    assert sim.taken - before == 3 + 9
    expected = plain_action_values(sim, Root.of(sim), 2, DISCOUNT, value_fn=values)
    np.testing.assert_allclose(result.action_values, expected)


def test_a_stochastic_simulator_keeps_nothing_and_foresees_nothing():
    sim = TabularSimulator(al.zoo.garnet(30, 3, 4, seed=0), start=0)
    sim.reset(seed=0)
    trees = trees_of(sim, nodes=20, length=4)
    for seed in range(10):
        result = trees.search([sim], zeros, FixedDepth(1), seeds=[seed])[0]
        sim.step(result.action)
        trees.keep(sim, result.action)
        assert result.nodes == 20


def test_the_live_env_is_left_alone():
    sim = MinAtarSimulator("MinAtar/Breakout-v1")
    sim.reset(seed=0)
    before = sim.pack(sim.save())
    trees_of(sim, nodes=40, length=12, repeat=0.8).search([sim], zeros, FixedDepth(2), seeds=[0])
    assert sim.pack(sim.save()) == before


def test_rollouts_go_where_the_policy_would():
    sim = Graph(400, 4, seed=2, terminal=0.0)
    sim.reset(seed=2)
    asked = []

    def policy(observations):
        asked.append(observations.tobytes())
        return np.full(len(observations), 3)

    def threes(greedy):
        trees = trees_of(sim, nodes=120, length=12, repeat=0.0, greedy=greedy)
        trees.search([sim], zeros, FixedDepth(1), seeds=[5], policy=policy)
        steps = trees.simulated_steps(sim, 120, seed=0)
        return sum(step.leaf.action == 3 for step in steps)

    assert threes(0.0) < 60
    asked.clear()
    assert threes(0.9) > 60
    assert len(asked) <= 121  # once for each node at most, walks through the tree included


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"length": 0}, {"repeat": 1.5}, {"nodes": "many"}, {"greedy": -1}])
def test_a_wrong_shape_is_named(wrong):
    with pytest.raises(ArgumentError, match="is wrong"):
        Rollouts(**wrong)
