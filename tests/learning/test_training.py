"""The training loop: what a round stores, when it updates, how episodes are cut off."""

from __future__ import annotations

import numpy as np

import adalook as al
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.training import EnvPool
from adalook.simulators.tabular import TabularSimulator
from tests.learning.small import BREAKOUT, small_config


def test_a_truncated_episode_is_cut_off_but_not_ended() -> None:
    mdp = al.MDP(np.ones((2, 1)), np.array([[1], [0]]), 0.9)
    envs = EnvPool(TabularSimulator(mdp, start=0), 1, seed=0, max_episode_steps=3)
    seen = []
    for _ in range(6):
        (transition,), episodes = envs.step([0])
        seen.append((transition.terminated, transition.episode_over, [episode.steps for episode in episodes]))
    assert seen == [(False, False, []), (False, False, []), (False, True, [3])] * 2
    assert envs.observations.tolist() == [[0]]


def test_what_is_stored_is_what_was_decided() -> None:
    agent = QLDQN(BREAKOUT, small_config(train_shallow_heads=True, depth_shares=(1.0,)), seed=0)
    shown = agent.trainer.envs.observations.copy()
    done = next(agent.rounds())
    replay = agent.trainer.replay
    ended_early = sum(len(decision.experiences) < 2 for decision in done.decisions)
    assert len(replay) == 2 * len(done.decisions) - ended_early
    assert agent.ranks.count(1) == len(done.decisions)  # once per state, not once per leaf
    drawn = replay.sample(np.random.default_rng(0), 64)
    assert all(any(np.array_equal(row, state) for state in shown) for row in drawn.observations)


def test_updates_begin_after_the_start_and_targets_are_copied_on_time() -> None:
    agent = DQN(BREAKOUT, small_config(num_envs=1, learning_starts_steps=20, target_period_steps=25), seed=0)
    rounds, learner = agent.rounds(), agent.trainer.learner
    first = learner.target.weights()["trunk.conv.weight"].copy()
    for step in range(1, 26):
        assert len(next(rounds).updates) == (step > 20)
        copied = not np.array_equal(learner.target.weights()["trunk.conv.weight"], first)
        assert copied == (step == 25)
