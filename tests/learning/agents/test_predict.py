"""Observations as others show them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from adalook.errors import ArgumentError
from adalook.learning.agents.base import as_batch
from adalook.learning.agents.dqn import DQN
from tests.learning.small import small_config

FORMS = ["MinAtar/Breakout-v1", "MinAtar/Seaquest-v1"]


@pytest.mark.parametrize("env", FORMS)
def test_minatar_pictures_are_read_as_gymnasium_shows_them_and_as_we_do(env: str) -> None:
    """Seaquest has as many channels as rows and columns: its shape does not tell which come first."""
    import minatar.gym

    if env not in gymnasium.registry:
        minatar.gym.register_envs()
    agent = DQN(env, small_config(env), seed=2)
    sim = agent.sim.clone()
    ours = sim.reset(seed=1)
    theirs, _ = gymnasium.make(env, disable_env_checker=True).reset(seed=1)
    rows, single = as_batch(theirs, agent.sim)
    assert single
    assert rows.shape == (1, *ours.shape)
    assert rows.dtype == ours.dtype
    shown, _ = as_batch(np.moveaxis(ours, 0, -1).astype(bool)[None], agent.sim)
    assert np.array_equal(shown[0], ours)
    assert np.array_equal(as_batch(ours, agent.sim)[0][0], ours)
    assert np.array_equal(rows[0].sum(axis=(1, 2)) > 0, theirs.any(axis=(0, 1)))


def test_the_number_of_a_state_is_taken_as_gymnasium_gives_it() -> None:
    agent = DQN("FrozenLake-v1")
    action, _ = agent.predict(3, deterministic=True)
    assert action == agent.predict(np.array([3]), deterministic=True)[0]
    assert action == agent.predict(np.int64(3), deterministic=True)[0]


@pytest.mark.parametrize("state", [99, -1, 2.7, "x", None, [0, 99]])
def test_what_is_no_state_of_a_table_is_refused(state: object) -> None:
    agent = DQN("FrozenLake-v1")
    with pytest.raises(ArgumentError, match="this observation"):
        agent.predict(state)
