"""Exploration: what was seen since the last reward is not new, and patience ends the belief in the network."""

from __future__ import annotations

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError
from adalook.learning.acting import NO_ACTION
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.exploration import MOST_PICTURES, Novelty
from adalook.learning.presets import atari_fast
from tests.learning.small import small_config


class Env:
    """Something to remember pictures of."""


def picture(grey: int) -> np.ndarray:
    """Four frames of one grey."""
    return np.full((4, 84, 84), grey, np.uint8)


def test_the_bonus_grows_with_the_difference_up_to_its_whole() -> None:
    novelty, env = Novelty(0.5), Env()
    novelty.see(env, picture(100), anew=True)  # type: ignore[arg-type]
    leaves = np.stack([picture(100), picture(104), picture(108), picture(200)])
    assert novelty.bonuses(env, leaves).tolist() == [0.0, 0.25, 0.5, 0.5]  # type: ignore[arg-type]


def test_only_the_newest_frame_counts() -> None:
    novelty, env = Novelty(1.0), Env()
    novelty.see(env, picture(100), anew=True)  # type: ignore[arg-type]
    older = picture(100)
    older[:-1] = 0
    assert novelty.bonuses(env, older[None]).tolist() == [0.0]  # type: ignore[arg-type]


def test_environments_are_remembered_apart_and_forgotten() -> None:
    novelty, one, other = Novelty(1.0), Env(), Env()
    novelty.see(one, picture(0), anew=False)  # type: ignore[arg-type]
    assert novelty.bonuses(other, picture(0)[None]).tolist() == [1.0]  # type: ignore[arg-type]
    assert novelty.bonuses(one, picture(0)[None]).tolist() == [0.0]  # type: ignore[arg-type]
    novelty.see(one, picture(50), anew=True)  # type: ignore[arg-type]
    assert novelty.bonuses(one, picture(0)[None]).tolist() == [1.0]  # type: ignore[arg-type]
    novelty.forget(one)  # type: ignore[arg-type]
    assert novelty.bonuses(one, picture(50)[None]).tolist() == [1.0]  # type: ignore[arg-type]


def test_memory_is_bounded_and_keeps_what_differs() -> None:
    novelty, env = Novelty(1.0), Env()
    rng = np.random.default_rng(0)
    for _ in range(2 * MOST_PICTURES):
        blocks = rng.integers(0, 256, (4, 12, 12)).astype(np.uint8)
        novelty.see(env, blocks.repeat(7, axis=1).repeat(7, axis=2), anew=False)  # type: ignore[arg-type]
    assert len(novelty.state(env)) == MOST_PICTURES  # type: ignore[arg-type]
    alike = Novelty(1.0)
    for _ in range(10):
        alike.see(env, picture(7), anew=False)  # type: ignore[arg-type]
    assert len(alike.state(env)) == 1  # type: ignore[arg-type]


def test_what_is_remembered_survives_a_checkpoint() -> None:
    novelty, again, env = Novelty(1.0), Novelty(1.0), Env()
    for grey in (0, 60, 120):
        novelty.see(env, picture(grey), anew=False)  # type: ignore[arg-type]
    again.load_state(env, novelty.state(env))  # type: ignore[arg-type]
    leaves = np.stack([picture(grey) for grey in range(0, 250, 7)])
    assert np.array_equal(novelty.bonuses(env, leaves), again.bonuses(env, leaves))  # type: ignore[arg-type]


def test_a_reward_and_another_episode_make_an_agent_forget() -> None:
    """Breakout pays for bricks: its memory is short. Where nothing scores it grows; a reset empties it."""
    agent = QLDQN("ALE/Breakout-v5", atari_fast(), seed=0, stage_nodes=5, novelty_bonus=0.5)
    novelty = agent.actor._novelty  # type: ignore[attr-defined]
    env, remembered, rewarded = agent.sim.clone(), [], []
    observation = env.reset(seed=0)
    for step in range(60):
        decision = agent.actor.decide([env], observation[None], np.array([NO_ACTION]), np.array([step]))[0]
        transition = env.step(decision.action)
        observation = transition.observation
        remembered.append(len(novelty.state(env)))
        rewarded.append(transition.reward != 0.0)
    assert any(rewarded)
    assert [count == 0 for count in remembered] == rewarded
    observation = env.reset(seed=1)
    agent.actor.decide([env], observation[None], np.array([NO_ACTION]), np.array([0]))
    assert len(novelty.state(env)) <= 1


def test_observations_must_be_pictures() -> None:
    with pytest.raises(ArgumentError, match="novelty_bonus compares pictures"):
        QLDQN(al.zoo.chain(n=4), small_config(network="mlp", search_shape="rollouts", novelty_bonus=0.1))
