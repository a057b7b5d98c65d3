"""What a Gymnasium environment offers: copies of it, its time limit, its actions and observations as arrays."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.gym.snapshot import gymnasium_package, layers_of

_WATCHERS = ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker")
"""Wrappers that only watch a live world."""


def known_ids() -> list[str]:
    """The ids that `gymnasium.make` knows, apart from those of games that have simulators of their own."""
    registry = gymnasium_package().registry
    return [name for name, spec in registry.items() if not str(spec.entry_point).startswith(("ale_py", "minatar"))]


def two_of(env: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Two environments that share nothing, from one or from an id."""
    gymnasium = gymnasium_package()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about newer versions; whatever is fatal comes as an error too
        if isinstance(env, str):
            try:
                return gymnasium.make(env, **options), gymnasium.make(env, **options)
            except Exception as error:  # environments are anybody's code
                reason = str(error).strip().partition("\n")[0]
                raise ArgumentError(f"{env} cannot be made", got=f"{type(error).__name__}: {reason}") from error
        if not isinstance(env, gymnasium.Env):
            raise ArgumentError("env is wrong", expected="a Gymnasium environment or id", got=type(env).__name__)
        if options:
            raise ArgumentError("an environment that is made already takes no options", got=", ".join(options))
        try:
            return copy.deepcopy(env), copy.deepcopy(env)
        except Exception as error:  # copying runs anybody's code
            raise SimulatorError(
                f"{type(env.unwrapped).__name__} cannot be simulated: it cannot be copied",
                got=f"{type(error).__name__}: {error}",
                remedy="write a Simulator with `save` and `restore` of its own, see docs/simulators.md",
            ) from error


def without_limit(env: Any) -> tuple[Any, int | None]:
    """The environment under the wrappers that only watch, and the steps after which they stop it, if they do."""
    limits = []
    while type(env).__name__ in _WATCHERS and type(env).__module__.startswith("gymnasium.wrappers"):
        if type(env).__name__ == "TimeLimit":
            limits.append(int(env._max_episode_steps))
        env = env.env
    return env, min(limits, default=None)


def actions(name: str, space: Any) -> tuple[int, int]:
    """(first, how many) of a discrete space."""
    if type(space).__name__ != "Discrete":
        raise ArgumentError(
            f"{name} cannot be searched",
            expected="finitely many actions (a Discrete action space)",
            got=space,
            remedy="wrap it so that each of a few whole numbers stands for one action",
        )
    return int(space.start), int(space.n)


def observations(name: str, space: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """(shape, dtype) of the arrays that observations become."""
    kind = type(space).__name__
    if kind in ("Box", "MultiDiscrete", "MultiBinary"):
        return tuple(space.shape), np.dtype(space.dtype)
    if kind == "Discrete":
        return (1,), np.dtype(np.int64)
    if kind == "Tuple" and all(type(part).__name__ == "Discrete" for part in space.spaces):
        return (len(space.spaces),), np.dtype(np.int64)
    raise ArgumentError(
        f"observations of {name} are no arrays",
        expected="a Box, Discrete, MultiDiscrete or MultiBinary observation space",
        got=space,
        remedy="wrap it in gymnasium.wrappers.FlattenObservation",
    )


def suspects(env: Any) -> str:
    """Which parts of an environment are known to begin anew when copied."""
    ez_pickle = gymnasium_package().utils.EzPickle
    found = [
        f"'{key}' ({type(value).__name__})"
        for layer in layers_of(env)
        for key, value in vars(layer).items()
        if isinstance(value, ez_pickle) and key != "env"
    ]
    return f", such as {', '.join(found)}, which EzPickle makes anew instead of copying" if found else ""
