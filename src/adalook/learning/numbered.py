"""Worlds whose observations are the numbers of their states: a table can hold their values."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any


def num_states_of(env: Any) -> int | None:
    """How many states a world numbers; None if its observations are no such numbers.

    Args:
        env: the name of a world, an al.MDP, a Gymnasium environment or a simulator.

    >>> num_states_of("FrozenLake-v1"), num_states_of("CartPole-v1")
    (16, None)
    """
    if isinstance(env, str):
        return _num_states_of_name(env)
    if hasattr(env, "observation_space"):
        return _numbered_by(env.observation_space)
    return getattr(env, "num_states", None)


def _num_states_of_name(name: str) -> int | None:
    """By the space of an environment that is made for it: a spec does not tell."""
    try:
        import gymnasium

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about newer versions
            made = gymnasium.make(name)
    except Exception:  # environments are anybody's code; `make_simulator` tells what is wrong with this one
        return None
    with contextlib.closing(made):
        return _numbered_by(made.observation_space)


def _numbered_by(space: Any) -> int | None:
    if type(space).__name__ != "Discrete" or space.start < 0:
        return None
    return int(space.start + space.n)  # entries below the first number are never used
