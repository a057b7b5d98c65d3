"""What an agent has learned serves outside: a loop as anybody writes it, in an environment that Gymnasium makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from adalook.learning.agents.dqn import DQN
from adalook.learning.presets import config_for
from tests.learning.small import BREAKOUT

CARTPOLE = "CartPole-v1"


def mean_return(env: Any, choose: Callable[[Any], int], episodes: int) -> float:
    """Of episodes with seeds of their own, none of which an agent was trained with."""
    returns = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=1_000 + episode)
        total, episode_over = 0.0, False
        while not episode_over:
            observation, reward, terminated, truncated, _ = env.step(choose(observation))
            total, episode_over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def learned_and_random(agent: DQN, env: Any, episodes: int) -> tuple[float, float]:
    """Mean returns of the agent's greedy play and of random play."""
    env.action_space.seed(0)
    learned = mean_return(env, lambda observation: agent.predict(observation, deterministic=True)[0], episodes)
    return learned, mean_return(env, lambda _: int(env.action_space.sample()), episodes)


def test_cartpole_is_balanced_far_longer_than_by_chance() -> None:
    config = dataclasses.replace(
        config_for(CARTPOLE),
        epsilon_anneal_steps=2_000,
        learning_starts_steps=200,
        target_period_steps=100,
        learning_rate=1e-3,
    )
    agent = DQN(CARTPOLE, config, seed=0).learn(steps=4_000)
    learned, by_chance = learned_and_random(agent, gymnasium.make(CARTPOLE), episodes=10)
    assert by_chance < 40
    assert learned > 3 * by_chance


def test_minatar_is_played_far_better_than_by_chance_from_its_own_pictures() -> None:
    import minatar.gym

    if BREAKOUT not in gymnasium.registry:
        minatar.gym.register_envs()
    config = dataclasses.replace(
        config_for(BREAKOUT),
        hidden_units=64,
        epsilon_anneal_steps=3_000,
        learning_starts_steps=500,
        target_period_steps=200,
        optimizer="adam",
        learning_rate=5e-4,
        optimizer_epsilon=1e-8,
        second_moment_decay=0.999,
    )
    agent = DQN(BREAKOUT, config, seed=0).learn(steps=6_000)
    env = gymnasium.make(
        BREAKOUT, max_episode_steps=1_000, disable_env_checker=True
    )  # a greedy player may go on for ever
    learned, by_chance = learned_and_random(agent, env, episodes=30)
    assert by_chance < 1.0
    assert learned > 3 * by_chance + 0.5
