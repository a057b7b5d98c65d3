"""One preset of the settings per family of environments, and the choice among them.

A preset says only what differs from the defaults of `Config`, so that no number is written twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from adalook.learning.config import Config

Told = TypeVar("Told")


def minatar() -> Config:
    """Return the network and settings published with MinAtar (Young & Tian 2019)."""
    return Config()


def minatar_ql() -> Config:
    """Return the same network for QL-DQN, with settings that learn in minutes.

    The published ones are for millions of steps. Random actions last: Seaquest's submarine needs eight to come up for
    air.
    """
    return dataclasses.replace(
        minatar(),
        exploration_repeat=0.85,
        target_period_steps=500,
        optimizer="adam",
        learning_rate=3e-4,
        optimizer_epsilon=1.5e-4,
        second_moment_decay=0.999,
    )


def atari() -> Config:
    """Return the Nature network (Mnih et al. 2015) with the settings that CleanRL and SB3 use for Atari."""
    return Config(
        max_episode_steps=27_000,  # 108,000 frames, half an hour of play
        network="nature",
        hidden_units=512,
        epsilon_end=0.01,
        epsilon_anneal_steps=1_000_000,
        evaluation_epsilon=0.001,
        nodes_per_step=20.0,  # an emulated step takes half a millisecond: as long as learning
        deepest_tree=3,
        buffer_transitions=1_000_000,
        learning_starts_steps=80_000,
        update_period_steps=4,
        optimizer="adam",
        learning_rate=1e-4,
        optimizer_epsilon=1e-8,
        second_moment_decay=0.999,
        overlap=True,
    )


def atari_fast() -> Config:
    """Return settings for Atari games that are strong after minutes of one core: long rollouts, a small network."""
    return Config(
        num_envs=2,
        life_loss_penalty=1.0,
        reward_scale="log",
        frame_skip=8,
        max_episode_steps=2_250,  # 18,000 frames, five minutes of play, by which planners are usually judged
        stall_steps=1_350,  # three minutes of play without a point, or 18 seconds of one and the same picture
        network="compact",
        hidden_units=256,
        epsilon_start=0.1,  # rollouts explore
        epsilon_end=0.01,
        epsilon_anneal_steps=1_000,
        search_shape="rollouts",
        nodes_per_step=60.0,
        deepest_tree=8,
        learn_real_steps=True,
        buffer_transitions=100_000,
        learning_starts_steps=200,
        gradient_steps=2,
        target_period_steps=500,
        optimizer="adam",
        learning_rate=5e-4,  # minutes are some 10,000 decisions: at 1e-4 the network hardly learns
        optimizer_epsilon=1.5e-4,
        second_moment_decay=0.999,
        double=True,
        ranked_transitions=50,
        overlap=True,
    )


def tabular() -> Config:
    """Return a table of values, for discrete observations that are few enough to check against `al.solve`."""
    return Config(
        max_episode_steps=50,
        network="table",
        epsilon_end=0.5,
        epsilon_anneal_steps=1_000,
        ranked_transitions=100,
        buffer_transitions=10_000,
        learning_starts_steps=200,
        target_period_steps=50,
        optimizer="adam",
        learning_rate=0.02,
        optimizer_epsilon=1e-8,
        second_moment_decay=0.999,
    )


def vector() -> Config:
    """Return two dense layers, for observations that are a vector of numbers, such as CartPole's."""
    return Config(
        max_episode_steps=1_000,
        network="mlp",
        epsilon_end=0.05,
        epsilon_anneal_steps=10_000,
        learning_starts_steps=1_000,
        target_period_steps=500,
        optimizer="adam",
        learning_rate=5e-4,
        optimizer_epsilon=1e-8,
        second_moment_decay=0.999,
    )


def config_for(env: object, agent: str = "dqn") -> Config:
    """Return the preset for an environment: by its name, else by what it observes.

    Args:
        env: the name of an environment, an al.MDP, a Gymnasium environment or a simulator.
        agent: "dqn" or "qldqn", which has presets of its own for Atari and MinAtar.

    >>> config_for("MinAtar/Breakout-v1").hidden_units, config_for("ALE/Breakout-v5").hidden_units
    (128, 512)
    >>> config_for("ALE/Breakout-v5", "qldqn").search_shape
    'rollouts'
    >>> config_for("CartPole-v1").network, config_for("FrozenLake-v1").network
    ('mlp', 'table')
    """
    family = env.partition("/")[0] if isinstance(env, str) else ""
    if family in _FAMILIES:
        return _FAMILIES[family][agent]()
    if isinstance(env, str):
        return _asked_of(env, lambda made: config_for(made, agent)) or vector()
    if callable(env) and not isinstance(env, type) and not hasattr(env, "step"):
        return config_for(env(), agent)
    if num_discrete_states(env) is not None:
        return _tabular_for(env)
    shape = getattr(env, "observation_shape", None)
    if shape == (4, 84, 84):
        return atari()
    return _FAMILIES["MinAtar"][agent]() if isinstance(shape, tuple) and len(shape) == 3 else vector()


_FAMILIES = {"MinAtar": {"dqn": minatar, "qldqn": minatar_ql}, "ALE": {"dqn": atari, "qldqn": atari_fast}}


def _tabular_for(env: object) -> Config:
    config = dataclasses.replace(tabular(), learning_rate=LEARNING_RATE_UNDER_CHANCE) if _by_chance(env) else tabular()
    if hasattr(env, "observation_space"):  # Gymnasium's: their episodes end by themselves
        return dataclasses.replace(
            config, max_episode_steps=vector().max_episode_steps, initial_value=max(0.0, _best_reward(env))
        )
    return dataclasses.replace(config, discount=getattr(env, "discount", config.discount))


LEARNING_RATE_UNDER_CHANCE = 0.001
"""Of tables: drawn returns scatter, and steps of 0.02 by more than actions differ: on FrozenLake 8x8 policies came and
went (`examples/learn_frozen_lake.py`)."""


def _by_chance(env: Any) -> bool:
    """Return whether steps of a problem with discrete observations are known to depend on chance."""
    if hasattr(env, "stochastic"):  # a simulator
        return bool(env.stochastic)
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if isinstance(table, dict):  # toy text
        return any(len({o[1:] for o in outcomes}) > 1 for actions in table.values() for outcomes in actions.values())
    return not getattr(env, "deterministic", True)  # an al.MDP


def _best_reward(env: Any) -> float:
    """Return the largest reward in the transition table of a toy-text environment; 0 without a table.

    A goal pays once, so that this is about the best return; where rewards recur, it is at least no prejudice.
    """
    table = getattr(getattr(env, "unwrapped", env), "P", None)
    if not isinstance(table, dict):
        return 0.0
    return max((float(o[2]) for actions in table.values() for os in actions.values() for o in os), default=0.0)


def num_discrete_states(env: Any) -> int | None:
    """Return how many states an environment with discrete observations numbers; None if it has no such observations.

    Args:
        env: the name of an environment, an al.MDP, a Gymnasium environment or a simulator.

    >>> num_discrete_states("FrozenLake-v1"), num_discrete_states("CartPole-v1")
    (16, None)
    """
    if isinstance(env, str):
        return _asked_of(env, num_discrete_states)
    if hasattr(env, "observation_space"):
        return _size_of_discrete(env.observation_space)
    return getattr(env, "num_states", None)


def _asked_of(name: str, question: Callable[[Any], Told]) -> Told | None:
    """Return the answer of an environment that is made to be asked: a name does not tell. None if it cannot be made."""
    from adalook.simulators.make import named_problem  # which the flags of the command line do not wait for

    try:
        made = named_problem(name)
    except Exception:  # environments are anybody's code; `make_simulator` tells what is wrong with this one
        return None
    try:
        return question(made)
    finally:
        if hasattr(made, "close"):
            made.close()


def _size_of_discrete(space: Any) -> int | None:
    """Return the number of entries a table needs for a Discrete space; None for any other space."""
    if type(space).__name__ != "Discrete" or space.start < 0:
        return None
    return int(space.start + space.n)  # entries below the first number are never used
