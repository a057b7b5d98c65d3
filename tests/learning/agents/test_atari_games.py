"""Every game of ALE can be learned: actions, lives, pictures and states of each are what the agents expect."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from adalook.learning.agents.base import Agent
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.simulators.ale.emulator import atari_ids

SOME_OF_EACH_KIND = ("ALE/Skiing-v5", "ALE/Backgammon-v5")
"""Rewards that are negative, and three actions."""


@pytest.mark.parametrize(
    "game",
    [pytest.param(game, marks=() if game in SOME_OF_EACH_KIND else pytest.mark.slow) for game in atari_ids()],
)
def test_agents_learn_in_every_game(game: str) -> None:
    searching = QLDQN(game, seed=0, overlap=False, learning_starts_steps=8, ranked_transitions=4)
    assert updates_within(searching, steps=40) > 0
    plain = DQN(game, seed=0, overlap=False, learning_starts_steps=40)
    assert updates_within(plain, steps=56) > 0


def updates_within(agent: Agent, steps: int) -> int:
    """Train for so many steps, and return how many updates of finite loss that made."""
    rounds = itertools.takewhile(lambda done: done.step < steps, agent.rounds())
    losses = [update.loss for done in rounds for update in done.updates]
    assert np.isfinite(losses).all()
    return len(losses)
