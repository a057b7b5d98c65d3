"""Rollouts of an agent's own policy: they are Q of that policy, and the agent's own action is hard to replace."""

from __future__ import annotations

import math

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError
from adalook.learning.lookahead import ErrorSpread, Lookahead
from adalook.learning.policy_rollouts import PolicyRollouts, stage_lengths
from adalook.search.result import SearchStatus
from adalook.search.search import Budget, Root
from adalook.simulators.tabular import TabularSimulator

DISCOUNT = 0.9
WALK = al.MDP(np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), [[0, 1], [0, 2], [1, 3], [3, 3]], DISCOUNT)
"""Right, right, right pays 1 and ends; left goes back."""


def table(values):
    """Return Q as a function of observations."""
    return lambda observations: np.asarray(values, np.float64)[observations[:, 0]]


RIGHT = table([[0.0, 1.0]] * 4)
LEFT = table([[1.0, 0.0]] * 4)


def rollouts(policy=1, *, mdp=WALK, start=0, value=0.0, **changed):
    """Return rollouts of a policy that always does the same, in a simulator that has begun."""
    sim = TabularSimulator(mdp, start=start)
    sim.reset(seed=0)
    options = {"depth": 12, "budget": Budget(), "samples": 1, "adaptive": False, "caution": 0.0, "seed": 0} | changed
    return sim, PolicyRollouts(
        sim,
        lambda observations: np.full(len(observations), policy),
        lambda observations: np.full(len(observations), value),
        discount=DISCOUNT,
        **options,
    )


def test_long_rollouts_are_the_action_values_of_the_policy():
    sim, search = rollouts(policy=1)
    always_right = al.evaluate(WALK, np.ones(4, int)).values
    expected = [DISCOUNT * always_right[0], DISCOUNT * always_right[1]]
    stage = list(search.stages(Root.of(sim), 0, [12]))[-1]
    np.testing.assert_allclose(stage.values[:, 0], expected)


def test_values_count_after_the_last_step_and_not_after_the_end():
    sim, search = rollouts(policy=1, value=5.0, start=2)
    (stage,) = search.stages(Root.of(sim), 0, [1])
    np.testing.assert_allclose(stage.values[:, 0], [DISCOUNT * 5.0, 1.0])
    assert stage.terminated[:, 0].tolist() == [False, True]


def test_the_agents_own_action_stays_in_a_tie_and_goes_when_another_leads():
    sim, search = rollouts(policy=1, depth=2)  # nothing is seen within two steps of the start
    assert search.search(Root.of(sim), 0).action == 1
    sim, search = rollouts(policy=0, depth=2, start=2)
    assert search.search(Root.of(sim), 0).action == 1  # 1 is paid at once


def test_caution_asks_for_more_than_the_values_err():
    def choice(caution):
        sim, search = rollouts(policy=0, start=2, value=10.0, caution=caution)
        search.value_error = 1.0
        search.steps = 1
        result = search.search(Root.of(sim), 0)
        return result.action

    # Left keeps V = 10, right ends with 1; the agent goes left, and by values that is right.
    assert choice(0.0) == 0
    sim, search = rollouts(policy=0, start=2, value=0.5, caution=0.0)
    search.value_error, search.steps = 1.0, 1
    assert search.search(Root.of(sim), 0).action == 1  # a lead of 1 - 0.45
    search.caution = 1.0
    assert search.search(Root.of(sim), 0).action == 0  # which is less than 0.9


def test_the_error_of_values_is_that_of_the_returns_that_followed():
    _, exact = rollouts(policy=0, value=0.0, caution=1.0)
    assert exact.value_error == 0.0
    _, wrong = rollouts(policy=0, value=3.0, caution=1.0)  # the returns are 0 but for the end, where V stands in
    assert 2.0 < wrong.value_error <= 3.0


def test_clear_choices_end_early_and_budgets_bind():
    sim, search = rollouts(policy=1, adaptive=True, value=0.0, start=2)
    search.value_error = 0.01
    result = search.search(Root.of(sim), 0)
    assert (result.status, result.depth) == (SearchStatus.DONE, 1)
    sim, search = rollouts(policy=0, depth=None, budget=Budget(nodes=20))
    result = search.search(Root.of(sim), 0)
    assert (search.steps, result.nodes, result.status) == (10, 20, SearchStatus.NODE_LIMIT)
    sim, search = rollouts(policy=0, depth=None, budget=Budget(seconds=0.02))
    result = search.search(Root.of(sim), 0)
    assert result.status is SearchStatus.TIME_LIMIT
    assert [level.depth for level in result.levels[:4]] == [1, 2, 4, 8]


def test_what_is_not_offered_is_never_chosen():
    mdp = al.MDP(WALK.rewards, [[0, 1], [0, 2], [1, 3], [3, 3]], DISCOUNT, mask=np.arange(8).reshape(4, 2) != 1)
    sim = TabularSimulator(mdp, start=0)
    sim.reset(seed=0)
    agent = Lookahead(RIGHT, sim, depth=6, correction=False)
    assert agent.search(sim).action == 0


def test_futures_that_scatter_leave_the_agents_own_action():
    """Both actions are worth the same; one pays at random."""
    rewards = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]])
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 3] = 1.0
    transitions[0, 1, 1:3] = 0.5
    transitions[1:, :, 3] = 1.0
    sim = TabularSimulator(al.MDP(rewards, transitions, DISCOUNT), start=0)
    chosen = []
    for samples in (1, 8):
        agent = Lookahead(LEFT, sim, depth=3, samples=samples, correction=False, discount=DISCOUNT, adaptive=False)
        sim.reset(seed=0)
        chosen.append([agent.search(sim).action for _ in range(60)])
    assert 15 < sum(chosen[0]) < 45  # one future: a coin
    assert sum(chosen[1]) < 8


def test_an_agent_is_improved_and_tuning_keeps_what_scores_best():
    sim = TabularSimulator(WALK, start=2, max_episode_steps=12)
    agent = Lookahead(LEFT, sim, depth=4, discount=DISCOUNT, correction=False)
    assert agent.evaluate(episodes=2).mean == 1.0
    played = agent.tune(3, corrections=[0.0])
    assert (played[math.inf].mean, played[0.0].mean) == (0.0, 1.0)
    assert agent.correction == 0.0


def test_tuning_leaves_an_agent_alone_that_searches_make_worse():
    """Going right pays 1 and V claims that going left leads to 50."""

    def overrated(observations):
        values = np.tile([0.0, 1.0], (len(observations), 1))
        values[observations[:, 0] == 1] = [0.0, 50.0]
        return values

    sim = TabularSimulator(WALK, start=2, max_episode_steps=12)
    agent = Lookahead(overrated, sim, depth=1, discount=DISCOUNT, correction=False)
    assert agent.evaluate(episodes=1).mean == 0.0
    agent.tune(2, corrections=[0.0])
    assert agent.correction == math.inf
    evaluation = agent.evaluate(episodes=1)
    assert (evaluation.mean, set(evaluation.depths)) == (1.0, {0})


def test_what_cannot_be_rolled_out_is_refused():
    sim = TabularSimulator(WALK, start=0)
    with pytest.raises(ArgumentError, match="no policy to roll out"):
        Lookahead(lambda observations: np.zeros(len(observations)), sim, shape="rollouts")
    with pytest.raises(ArgumentError, match="corrects trees"):
        Lookahead(LEFT, sim, shape="rollouts", correction=ErrorSpread(1.0, 1.0))
    with pytest.raises(ArgumentError, match="only rollouts are tuned"):
        Lookahead(LEFT, sim, shape="tree", depth=1, correction=False).tune()
    with pytest.raises(ArgumentError, match="shape"):
        Lookahead(LEFT, sim, shape="beam")
    assert stage_lengths(1) == [1]
