"""QL-DQN steps 5 and 6: the first action of the best leaf, and what is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.learning.acting import NO_ACTION, RolloutActor, TreeActor, ValueActor, tied
from adalook.learning.correction import LeafCorrection
from adalook.search.rollouts import Rollouts
from adalook.search.rules.fixed import FixedDepth
from adalook.simulators.base import Simulator
from adalook.simulators.tabular import TabularSimulator

DISCOUNT = 0.5


def tree_env(start: int = 0) -> Simulator:
    """A binary tree of depth 2: state 0, then 1 and 2, then 3 … 6, where it stays."""
    successors = np.array([[1, 2], [3, 4], [5, 6], [3, 3], [4, 4], [5, 5], [6, 6]])
    rewards = np.zeros((7, 2))
    rewards[0] = 0.0, 1.0
    rewards[1] = 0.0, 8.0
    rewards[3:] = 1.0  # what pays for ever is no terminal state
    env = TabularSimulator(al.MDP(rewards, successors, DISCOUNT), start=start)
    env.reset(seed=0)
    return env


class Table:
    """Stands in for a Q-function: V_depth(s) = depth · weights[s]."""

    def __init__(self, weights: Any, depths: Any = (1, 2)) -> None:
        self._weights = np.asarray(weights, float)
        self.asked: list[int] = []
        self.network: Any = type("Network", (), {"names": dict.fromkeys(depths)})

    def values(self, observations: Any, depth: int) -> Any:
        self.asked.append(depth)
        return depth * self._weights[observations[:, 0]]

    def action_values(self, observations: Any, depth: int) -> Any:
        return np.stack([observations[:, 0] == 0, observations[:, 0] != 0], axis=1).astype(float)


def decide(actor: Any, env: Simulator, random_action: int = NO_ACTION) -> Any:
    (decision,) = actor.decide([env], env.observe()[None], np.array([random_action]), np.array([0]))
    return decision


def tree(table: Table, depth: int, **options: Any) -> TreeActor:
    usual = {"discount": DISCOUNT, "least_depth": depth, "store_shallow": False}
    return TreeActor(table, FixedDepth(depth), **(usual | options))  # type: ignore[arg-type]


def test_the_first_action_of_the_best_leaf_is_taken() -> None:
    nothing = Table(np.zeros(7))
    assert decide(tree(nothing, 1), tree_env()).action == 1  # one step ahead the reward of 1 is all there is
    assert decide(tree(nothing, 2), tree_env()).action == 0  # two steps ahead there are 8
    # A leaf's value can outweigh the way to it: state 6, by actions 1 and 1, is worth 2 · 100.
    assert decide(tree(Table([0, 0, 0, 0, 0, 0, 100]), 2), tree_env()).action == 1


def test_leaves_are_valued_by_the_head_of_their_depth() -> None:
    table = Table(np.zeros(7))
    decide(tree(table, 2, store_shallow=True), tree_env())
    assert table.asked == [1, 2]
    only_two = Table(np.zeros(7), depths=(2,))
    decide(tree(only_two, 2, store_shallow=True), tree_env())
    assert only_two.asked == [2, 2]


def test_a_tree_of_fixed_depth_asks_about_its_last_level_only() -> None:
    table = Table(np.zeros(7))
    decide(tree(table, 2), tree_env())
    assert table.asked == [2]


def test_the_way_to_the_best_leaf_is_stored() -> None:
    decision = decide(tree(Table(np.arange(7)), 2), tree_env())
    (stored,) = decision.experiences
    assert (decision.action, decision.depth) == (0, 2)
    assert (stored.observation.tolist(), stored.action) == ([0], 0)
    assert stored.leaf.tolist() == [4]
    assert stored.return_to_leaf == 0.0 + DISCOUNT * 8.0
    assert (stored.head, stored.steps, stored.terminated) == (2, 2, False)


def test_a_random_action_stores_the_best_leaf_below_it() -> None:
    decision = decide(tree(Table(np.arange(7)), 2), tree_env(), random_action=1)
    (stored,) = decision.experiences
    assert decision.action == 1
    assert (stored.action, stored.leaf.tolist()) == (1, [6])
    assert stored.return_to_leaf == 1.0


def test_shallow_leaves_are_stored_on_request_in_the_same_subtree() -> None:
    decision = decide(tree(Table(np.arange(7)), 2, store_shallow=True), tree_env(), random_action=1)
    assert [(stored.head, stored.steps) for stored in decision.experiences] == [(2, 2), (1, 1)]
    assert decision.experiences[1].leaf.tolist() == [2]
    assert decision.experiences[1].return_to_leaf == 1.0


def test_the_best_leaf_below_every_action_is_stored_on_request() -> None:
    decision = decide(tree(Table(np.zeros(7)), 2, every_action=True), tree_env())
    assert decision.action == 0
    stored = [(each.action, each.return_to_leaf, each.head) for each in decision.experiences]
    assert stored == [(0, 4.0, 2), (1, 1.0, 2)]
    decision = decide(tree(Table(np.zeros(7)), 2, every_action=True), tree_env(), random_action=1)
    assert [each.action for each in decision.experiences] == [1, 0]  # that of the action taken comes first


def test_plain_dqn_stores_nothing_but_the_step_to_come() -> None:
    actor = ValueActor(Table(np.zeros(7)))  # type: ignore[arg-type]
    env = tree_env()
    assert decide(actor, env).action == 0
    assert decide(actor, env, random_action=1).action == 1
    assert decide(actor, env).experiences == ()
    assert decide(actor, env).depth == 0


def test_all_trees_share_the_passes_through_the_network() -> None:
    table = Table(np.zeros(7))
    envs = [tree_env(start) for start in (0, 1, 2, 0)]
    observations = np.stack([env.observe() for env in envs])
    together = tree(table, 2).decide(envs, observations, np.full(4, NO_ACTION), np.zeros(4, np.int64))
    assert table.asked == [2]
    alone = [decide(tree(Table(np.zeros(7)), 2), env) for env in envs]
    assert [decision.action for decision in together] == [decision.action for decision in alone]


def test_a_tree_whose_paths_all_end_early_counts_as_deep_as_every_tree() -> None:
    class Ends(TabularSimulator):
        def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
            children = super().expand(states, actions, out)
            children.terminated[:] = True
            return children

    env = Ends(al.MDP(np.ones((1, 2)), np.zeros((1, 2), int), 0.9))
    env.reset(seed=0)
    decision = decide(tree(Table([5.0], depths=(3,)), 3), env)
    assert decision.depth == 3
    (stored,) = decision.experiences
    assert (stored.head, stored.steps, stored.terminated, stored.return_to_leaf) == (3, 1, True, 1.0)


def test_a_wide_beam_is_the_whole_tree_and_a_narrow_one_looks_at_less() -> None:
    whole = decide(tree(Table(np.zeros(7)), 2), tree_env())
    wide = decide(tree(Table(np.zeros(7)), 2, width=99), tree_env())
    narrow = decide(tree(Table(np.zeros(7)), 2, width=1), tree_env())
    assert (wide.action, wide.nodes) == (whole.action, whole.nodes) == (0, 6)
    assert (narrow.action, narrow.nodes) == (1, 4)  # the reward of 1 looked better after one step


def test_corrected_leaves_must_lead_over_what_the_network_would_do() -> None:
    table = Table([0, 0, -1.5, 0, 0, 0, 0])  # Q prefers action 0; action 1 leads by less than Q errs
    assert decide(tree(table, 1), tree_env()).action == 1
    env = tree_env()
    actor = tree(table, 1, correction=LeafCorrection())
    assert decide(actor, env).action == 0
    again = tree(table, 1, correction=LeafCorrection())
    again.load_state([env], actor.state([env]))
    assert again.state([env]) == actor.state([env]) != tree(table, 1, correction=LeafCorrection()).state([env])


def test_rollouts_measure_the_same_errors_as_trees() -> None:
    table, env = Table(np.arange(7.0)), tree_env()
    in_tree, in_rollouts = LeafCorrection(), LeafCorrection()
    decide(tree(table, 1, correction=in_tree), env)
    decide(rollouts(table, env, correction=in_rollouts), env)
    assert in_tree.state(env) == pytest.approx(np.array(in_rollouts.state(env)))


def rollouts(table: Table, env: Simulator, nodes: int = 40, **options: Any) -> RolloutActor:
    usual: dict[str, Any] = {"discount": DISCOUNT, "every_action": True, "real_steps": True}
    return RolloutActor(table, FixedDepth(1), env, Rollouts(nodes, length=2), **(usual | options))  # type: ignore[arg-type]


def test_rollouts_take_the_first_action_of_the_best_path() -> None:
    env = tree_env()
    assert decide(rollouts(Table(np.zeros(7)), env), env).action == 0  # two steps ahead there are 8
    env = tree_env()
    assert decide(rollouts(Table([0, 0, 0, 0, 0, 0, 100]), env), env).action == 1


def test_first_actions_that_rollouts_cannot_tell_apart_are_chosen_among_by_the_network() -> None:
    for state, expected in ((0, 0), (3, 1)):  # the table's Q prefers action 0 in state 0 and action 1 elsewhere
        env = tree_env(start=state)
        actor = rollouts(Table(np.zeros(7)), env)
        decision = decide(actor, env)
        if state == 3:
            assert decision.tied_actions == 2
        assert decision.action == expected


def test_what_was_rolled_out_is_stored_for_every_first_action_and_the_real_step_besides() -> None:
    env = tree_env()
    decision = decide(rollouts(Table(np.zeros(7)), env), env)
    assert [(each.action, each.steps) for each in decision.experiences] == [(0, 2), (1, 1)]
    assert [each.return_to_leaf for each in decision.experiences] == [DISCOUNT * 8.0, 1.0]
    assert [each.leaf.tolist() for each in decision.experiences] == [[4], [2]]
    assert decision.learn_real_step
    taken = decide(rollouts(Table(np.zeros(7)), env, every_action=False, real_steps=False), env)
    assert [experience.action for experience in taken.experiences] == [0]
    assert not taken.learn_real_step


def test_a_search_alone_asks_no_network_and_breaks_ties_by_chance() -> None:
    class Silent(Table):
        def values(self, observations: Any, depth: int) -> Any:
            raise AssertionError("a network was asked")

        action_values = values

    env = tree_env()
    decision = decide(rollouts(Silent(np.zeros(7)), env, bootstrap=False), env)
    assert decision.action == 0  # two steps ahead there are 8
    env = tree_env(start=3)  # where both actions are the same
    actor = rollouts(Silent(np.zeros(7)), env, bootstrap=False)
    seeds = np.arange(30)
    actions = [
        actor.decide([env], env.observe()[None], np.array([NO_ACTION]), seeds[i : i + 1])[0].action for i in range(30)
    ]
    assert set(actions) == {0, 1}


def test_steps_from_anywhere_in_the_tree_are_stored_on_request() -> None:
    env = tree_env()
    decision = decide(rollouts(Table(np.zeros(7)), env, every_action=False, tree_steps=3), env)
    path, *steps = decision.experiences
    assert (path.action, path.steps) == (0, 2)
    assert len(steps) == 3
    for step in steps:
        begin, end = int(step.observation[0]), int(step.leaf[0])
        assert (step.steps, end) == (1, 2 * begin + 1 + step.action)


def test_a_first_action_that_no_rollout_tried_is_not_learnt_from() -> None:
    env = tree_env()
    decision = decide(rollouts(Table(np.zeros(7)), env, nodes=2), env, random_action=1)
    assert decision.action == 1
    assert [experience.action for experience in decision.experiences] == [0]  # where the network's own policy went


@pytest.mark.parametrize(("trust", "expected"), [(1.0, 1), (0.3, 1), (0.05, 0), (0.0, 0)])
def test_leaves_are_believed_in_part(trust: float, expected: int) -> None:
    env = tree_env()  # action 0 leads to 8; action 1 to 1, and a leaf that is valued at 100
    actor = rollouts(Table([0, 0, 0, 0, 0, 0, 100]), env, leaf_trust=trust)
    assert decide(actor, env).action == expected


@pytest.mark.parametrize(("trust", "tied_actions"), [(1.0, 1), (0.5, 2)])
def test_a_leaf_next_to_the_root_does_not_beat_a_long_path_that_found_nothing(trust: float, tied_actions: int) -> None:
    class Level(Table):
        def action_values(self, observations: Any, depth: int) -> Any:
            return np.full((len(observations), 2), 10.0)

    mdp = al.MDP(
        np.array([[0.0, 0.0]] * 7 + [[1.0, 1.0]]), np.array([[1, 2], *[[s, 7] for s in range(1, 8)]]), DISCOUNT
    )
    env = TabularSimulator(mdp, start=0)
    env.reset(seed=0)
    actor = RolloutActor(
        Level(np.full(8, 10.0)),  # type: ignore[arg-type]
        FixedDepth(1),
        env,
        Rollouts(3, length=2),
        discount=DISCOUNT,
        every_action=False,
        real_steps=False,
        leaf_trust=trust,
    )
    decision = decide(actor, env)  # a path of two steps, and one of one
    assert decision.nodes == 3
    assert decision.tied_actions == tied_actions


def test_ties_allow_for_rounding() -> None:
    assert tied(np.array([1.0, 1.0 - 1e-7, 0.9, -np.inf])).tolist() == [True, True, False, False]
