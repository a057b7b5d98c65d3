"""Runs small enough for tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from adalook.engines.base import Engine
from adalook.learning.agents.base import Agent
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.config import Config
from adalook.learning.presets import config_for
from adalook.learning.replay.buffer import Batch, Replay

BREAKOUT = "MinAtar/Breakout-v1"


def small_config(env: Any = BREAKOUT, **changes: Any) -> Config:
    """A preset that learns after a hundred steps and forgets after six hundred; QL-DQN as in the paper."""
    small = {
        "nodes_per_step": 0.0,
        "shared_head": False,
        "learn_every_action": False,
        "num_envs": 4,
        "hidden_units": 16,
        "buffer_transitions": 600,
        "learning_starts_steps": 100,
        "target_period_steps": 60,
        "ranked_transitions": 40,
        "epsilon_anneal_steps": 400,
        "prior_steps": 120,
        "batch_transitions": 8,
    }
    return dataclasses.replace(config_for(env), **(small | changes))


def count_of(replay: Replay, head: int | None = None) -> int:
    """How many transitions a buffer holds, or holds for one head."""
    heads = replay._records.rows(replay._records.numbers())["head"]
    return len(heads) if head is None else int((heads == head).sum())


def sample_of(replay: Replay, head: int | None = None, draws: int = 20_000) -> Batch:
    """Many transitions of a buffer, or those of one head among them."""
    drawn = replay.sample(np.random.default_rng(0), draws)
    kept = slice(None) if head is None else drawn.heads == head
    return Batch(**{field.name: getattr(drawn, field.name)[kept] for field in dataclasses.fields(Batch)})


def fingerprint(agent: Agent) -> Any:
    """All of an agent's state, arrays as (type, shape, bytes), segments as their bytes; the clock left out."""
    return _plain(agent.state())


def trained(
    engine: Engine | None, steps: int, on_round: Callable[[Agent], None] = lambda agent: None
) -> tuple[Any, int]:
    """The fingerprint of a small QL-DQN after so many steps on an engine, and how many actors it lost."""
    agent = QLDQN(BREAKOUT, small_config(), seed=3, engine=engine)
    for _ in agent.rounds():
        on_round(agent)
        if agent.step >= steps:
            break
    result, lost = fingerprint(agent), getattr(agent.trainer.acting, "lost", 0)
    agent.forget_training()
    return result, lost


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items() if key != "seconds"}
    if isinstance(state, list | tuple):
        return [_plain(value) for value in state]
    if isinstance(state, np.ndarray):
        return state.dtype.str, state.shape, state.tobytes()
    return bytes(state.payload.data) if hasattr(state, "payload") else state
