"""Gymnasium environments taken apart: instances, the time limit, actions, answers as arrays and numbers."""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple

import numpy as np

from adalook.errors import ArgumentError, SimulatorError, shown
from adalook.simulators.arguments import is_reward
from adalook.simulators.gym.snapshot import REPLAY_IT, gymnasium_package

_PASSIVE_WRAPPERS = ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker")
"""Wrappers that only watch the live env."""


def known_ids() -> list[str]:
    """Return the ids that `gymnasium.make` knows, without those of games that have simulators of their own."""
    registry = gymnasium_package().registry
    return [name for name, spec in registry.items() if not str(spec.entry_point).startswith(("ale_py", "minatar"))]


def instance(env: Any, options: dict[str, Any]) -> Any:
    """Return what `gymnasium.make` makes of an id or a spec; raise `ArgumentError` with the reason if it cannot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about newer versions; whatever is fatal comes as an error too
        try:
            return gymnasium_package().make(env, **options)
        except Exception as error:  # environments are anybody's code
            reason = str(error).strip().partition("\n")[0]
            name = getattr(env, "id", env)
            raise ArgumentError(f"{name} cannot be made", got=f"{type(error).__name__}: {reason}") from error


def two_instances(env: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return two environments that share nothing, from an environment or from an id."""
    gymnasium = gymnasium_package()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about newer versions; whatever is fatal comes as an error too
        if isinstance(env, str):
            return instance(env, options), instance(env, options)
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
                remedy=REPLAY_IT,
            ) from error


def without_time_limit(env: Any) -> tuple[Any, int | None]:
    """Return the environment under the passive wrappers, and the steps after which they truncate it, if they do."""
    limits = []
    while type(env).__name__ in _PASSIVE_WRAPPERS and type(env).__module__.startswith("gymnasium.wrappers"):
        if type(env).__name__ == "TimeLimit":
            limits.append(int(env._max_episode_steps))
        env = env.env
    return env, min(limits, default=None)


def _wrappers_of(env: Any, name: str) -> list[Any]:
    """Return the passive wrappers of this name around an environment, outermost first."""
    found = []
    while type(env).__name__ in _PASSIVE_WRAPPERS and type(env).__module__.startswith("gymnasium.wrappers"):
        if type(env).__name__ == name:
            found.append(env)
        env = env.env
    return found


def elapsed_steps(env: Any) -> int:
    """Return the steps since the last reset that a time limit has counted; 0 without one."""
    return max((int(limit._elapsed_steps or 0) for limit in _wrappers_of(env, "TimeLimit")), default=0)


def was_reset(env: Any) -> bool:
    """Return whether an episode has begun, as far as Gymnasium's wrappers tell; those without one are taken to have."""
    return all(bool(order._has_reset) for order in _wrappers_of(env, "OrderEnforcing"))


def action_range(name: str, space: Any) -> tuple[int, int]:
    """Return the first action of a discrete space, and how many there are."""
    if type(space).__name__ != "Discrete":
        raise ArgumentError(
            f"{name} cannot be searched",
            expected="finitely many actions (a Discrete action space)",
            got=space,
            remedy="wrap it so that each of a few whole numbers stands for one action",
        )
    return int(space.start), int(space.n)


def observation_format(name: str, space: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and dtype of the arrays that observations become."""
    kind = type(space).__name__
    if kind in ("Box", "MultiDiscrete", "MultiBinary"):
        return tuple(space.shape), np.dtype(space.dtype)
    if kind == "Discrete":
        return (1,), np.dtype(np.int64)
    if kind == "Tuple" and all(type(part).__name__ == "Discrete" for part in space.spaces):
        return (len(space.spaces),), np.dtype(np.int64)
    raise ArgumentError(
        f"observations of {name} are not arrays",
        expected="a Box, Discrete, MultiDiscrete or MultiBinary observation space",
        got=space,
        remedy="wrap it in gymnasium.wrappers.FlattenObservation",
    )


class StepAnswer(NamedTuple):
    """The answer of an environment to an action, without its info."""

    observation: Any
    """As it came: see `observation_array`."""
    reward: float
    terminated: bool
    truncated: bool


def step_answer(name: str, answer: Any) -> StepAnswer:
    """Return what an environment's `step` answered, or raise `SimulatorError` that says what is wrong with it."""
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise SimulatorError(
            f"{name}: step returns something else",
            expected="(observation, reward, terminated, truncated, info), as Gymnasium has it",
            got=f"a tuple of {len(answer)}" if isinstance(answer, tuple) else type(answer).__name__,
            remedy="end step with: return observation, reward, terminated, False, {}",
        )
    observation, reward, terminated, truncated, _ = answer
    if type(reward) is not float:
        reward = _scalar(reward)
    if not is_reward(reward):
        raise SimulatorError(f"{name}: step returns a wrong reward", expected="a finite number", got=shown(answer[1]))
    return StepAnswer(
        observation, float(reward), _flag(name, "terminated", terminated), _flag(name, "truncated", truncated)
    )


def reset_answer(name: str, answer: Any) -> Any:
    """Return the observation that an environment's `reset` answered, or raise `SimulatorError`."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise SimulatorError(
            f"{name}: reset returns something else",
            expected="(observation, info), as Gymnasium has it",
            got=type(answer).__name__,
            remedy="end reset with: return observation, {}",
        )
    return answer[0]


def observation_array(
    name: str, observation: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Return an observation as an array of the declared shape and dtype, or raise `SimulatorError` if it is none."""
    try:
        given = np.asarray(observation)
    except (ValueError, TypeError, OverflowError):
        given = np.empty(0, object)
    if given.size != np.prod(shape, dtype=int) or given.dtype.kind not in "biuf" or np.ma.isMaskedArray(observation):
        raise SimulatorError(
            f"{name}: an observation is not as observation_space declares it",
            expected=f"numbers {shape} {dtype}",
            got=shown(observation) if given.dtype.kind not in "biuf" else f"{given.shape} {given.dtype}",
        )
    array = given.astype(dtype).reshape(shape)
    if given.dtype != dtype and dtype.kind in "biu" and not (array == given.reshape(shape)).all():
        raise SimulatorError(
            f"{name}: an observation does not fit observation_space",
            expected=f"values of {dtype}",
            got=shown(observation),
        )
    return array


def _scalar(value: Any) -> Any:
    """Return the one number in an array, anything else as it is."""
    single = isinstance(value, np.ndarray) and value.size == 1 and not np.ma.isMaskedArray(value)
    return value.item() if single else value


def _flag(name: str, what: str, value: Any) -> bool:
    """Return a flag as a bool: 0 and 1 will do, None will not."""
    if type(value) is bool:
        return value
    scalar = _scalar(value)
    if not isinstance(scalar, bool | np.bool_ | int | np.integer) or scalar not in (0, 1):
        raise SimulatorError(f"{name}: step returns a wrong {what}", expected="True or False", got=shown(value))
    return bool(scalar)
