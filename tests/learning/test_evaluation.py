"""Playing without learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError
from adalook.learning.acting import NO_ACTION, Decision
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.evaluation import evaluate
from adalook.simulators.base import Transition
from adalook.simulators.tabular import TabularSimulator
from tests.learning.small import BREAKOUT, fingerprint, small_config


class Countdown(TabularSimulator):
    """Begins at a random state and counts down to zero, for a score of 10 a step, clipped to 1."""

    def __init__(self) -> None:
        successors = np.maximum(np.arange(20) - 1, 0)[:, None]
        super().__init__(al.MDP(np.ones((20, 1)), successors, 0.9))

    def step(self, action: int) -> Transition:
        made = super().step(action)
        return Transition(
            made.observation,
            1.0,
            10.0,
            terminated=bool(made.observation[0] == 0),
            episode_over=bool(made.observation[0] == 0),
        )


class First:
    """Always takes action 0."""

    def decide(self, envs: Any, observations: Any, random_actions: Any, seeds: Any) -> list[Decision]:
        return [Decision(0, 0) for _ in envs]


def play(**changes: Any) -> Any:
    usual: dict[str, Any] = {"episodes": 12, "num_envs": 4, "epsilon": 0.0, "max_episode_steps": 100, "seed": 0}
    return evaluate(First(), Countdown(), **(usual | changes))


def test_scores_are_before_clipping_and_every_episode_is_played_out() -> None:
    result = play()
    assert np.array_equal(result.scores, 10 * result.steps)
    assert len(set(result.steps)) > 3
    assert result.depths == {0: int(result.steps.sum())}
    assert result.mean == result.scores.mean()


def test_an_episode_does_not_depend_on_the_others() -> None:
    assert np.array_equal(play().scores, play(num_envs=1).scores)
    assert np.array_equal(play().scores[:5], play(episodes=5, num_envs=3).scores)
    assert not np.array_equal(play().scores, play(seed=1).scores)


def test_episodes_are_cut_off() -> None:
    assert play(max_episode_steps=2).steps.max() == 2


def test_random_actions_come_as_often_as_asked_for() -> None:
    asked = []

    class Notes(First):
        def decide(self, envs: Any, observations: Any, random_actions: Any, seeds: Any) -> list[Decision]:
            asked.extend(random_actions.tolist())
            return super().decide(envs, observations, random_actions, seeds)

    evaluate(Notes(), Countdown(), episodes=200, num_envs=50, epsilon=0.25, max_episode_steps=100, seed=0)
    assert abs(np.mean(np.array(asked) != NO_ACTION) - 0.25) < 0.04


@pytest.mark.parametrize("episodes", [0, 1.5, True, None])
def test_no_episodes_are_refused(episodes: Any) -> None:
    with pytest.raises(ArgumentError, match=r"number of episodes is wrong: expected .*, got "):
        play(episodes=episodes)


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"seed of the evaluation is wrong: expected .*, got "):
        play(seed=seed)


@pytest.mark.parametrize("epsilon", [-0.1, 7, float("nan"), "0.1"])
def test_a_share_of_random_actions_that_is_none_is_refused(epsilon: Any) -> None:
    with pytest.raises(ArgumentError, match=r"epsilon\) is wrong: expected .*, got "):
        play(epsilon=epsilon)


def test_evaluating_changes_nothing_in_training() -> None:
    agents = [QLDQN(BREAKOUT, small_config(), seed=1) for _ in range(2)]
    for agent in agents:
        agent.learn(steps=160)
    agents[0].evaluate(3)
    for agent in agents:
        agent.learn(steps=40)
    assert fingerprint(agents[0]) == fingerprint(agents[1])


def test_an_agent_plays_with_more_simulated_steps_than_it_was_trained_with() -> None:
    agent = QLDQN(al.zoo.chain(n=9), small_config(network="mlp", search_shape="rollouts", stage_nodes=4), seed=0)
    usual = agent.evaluate(2, seed=1, max_episode_steps=20)
    more = agent.evaluate(2, seed=1, max_episode_steps=20, stage_nodes=12)
    assert usual.nodes / usual.decisions < more.nodes / more.decisions
    assert usual.seconds > 0.0
    again = agent.evaluate(2, seed=1, max_episode_steps=20)
    assert np.array_equal(again.scores, usual.scores)  # it was not changed
    with pytest.raises(ArgumentError, match="stage_nodes"):
        agent.evaluate(2, stage_nodes=0)


def test_stage_nodes_mean_nothing_without_rollouts() -> None:
    for agent in (al.DQN(al.zoo.chain(n=4)), QLDQN(al.zoo.chain(n=4))):
        with pytest.raises(ArgumentError, match="search_shape is rollouts"):
            agent.evaluate(1, stage_nodes=5)
