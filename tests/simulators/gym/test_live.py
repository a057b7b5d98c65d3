"""Environments that can be played but not saved."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.errors import SimulatorError
from adalook.simulators.gym.live import LiveGymSimulator


class Locked(gymnasium.Env):
    """An environment that holds what cannot be copied."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.handle = (number for number in range(3))  # generators cannot be copied
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.full(2, action, np.float32), float(action), self.steps == 5, False, {}


def test_plain_dqn_learns_where_nothing_can_be_copied(tmp_path):
    agent = al.DQN(lambda: Locked())
    assert not agent.sim.saves
    agent.learn(steps=64)
    assert agent.evaluate(episodes=2).steps.tolist() == [5.0, 5.0]
    agent.save(tmp_path)
    again = al.DQN.load(tmp_path, env=lambda: Locked())
    assert again.step == 64
    again.learn(steps=16)


def test_lookahead_there_is_refused_with_the_reason():
    with pytest.raises(SimulatorError, match="cannot be copied"):
        al.DQN(lambda: Locked(), depth=1)
    sim = LiveGymSimulator(Locked)
    sim.reset(seed=0)
    with pytest.raises(SimulatorError, match="can be played but not saved"):
        sim.save()


def test_an_instance_that_cannot_be_made_again_is_refused():
    with pytest.raises(SimulatorError, match=r"al\.DQN\(lambda: MyEnv"):
        al.DQN(Locked())


def test_it_plays_as_the_environment_does():
    sim, env = LiveGymSimulator("CartPole-v1"), gymnasium.make("CartPole-v1")
    np.testing.assert_array_equal(sim.reset(seed=4), env.reset(seed=4)[0])
    over = False
    while not over:
        step = sim.step(1)
        observation, reward, terminated, truncated, _ = env.step(1)
        np.testing.assert_array_equal(step.observation, observation)
        over = terminated or truncated
        assert (step.reward, step.terminated, step.episode_over) == (reward, terminated, over)
