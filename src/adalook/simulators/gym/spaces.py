"""Gymnasium environments taken apart: instances, the time limit, actions and observations as arrays."""

from __future__ import annotations

import copy
import math
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
            raise cannot_be_made(getattr(env, "id", env), error, options) from error


def cannot_be_made(name: str, error: Exception, options: dict[str, Any]) -> ArgumentError:
    """Return the error about an environment whose maker raised one."""
    wrong = [key for key, value in options.items() if isinstance(error, KeyError) and error.args == (value,)]
    if wrong:  # such as map_name=9x9
        return ArgumentError(f"{name} cannot be made: it knows no such {wrong[0]}", got=repr(options[wrong[0]]))
    reason = str(error).strip().partition("\n")[0]
    return ArgumentError(f"{name} cannot be made", got=f"{type(error).__name__}: {reason}")


def not_an_environment(env: Any) -> ArgumentError:
    """Return the error about something that is given for an environment."""
    remedy = ""
    if isinstance(env, type):
        remedy = f"{env.__name__} is a class: make one, {env.__name__}()"
    elif hasattr(env, "num_envs"):
        remedy = "pass one environment, as gymnasium.make makes it: agents play several copies of it (num_envs=…)"
    return ArgumentError(
        "env is wrong", expected="a Gymnasium environment or id", got=type(env).__name__, remedy=remedy
    )


def checked_spaces(env: Any) -> str:
    """Return the name of an environment that has both spaces; raise `ArgumentError` for one that lacks them."""
    name = str(getattr(getattr(env, "spec", None), "id", None) or type(env.unwrapped).__name__)
    for space in ("action_space", "observation_space"):
        if getattr(env, space, None) is None:
            raise ArgumentError(
                f"{name} has no {space}",
                expected="a space of Gymnasium, set in the class or in __init__",
                remedy=f"set self.{space} = gymnasium.spaces.…",
            )
    return name


def checked_reset(env: Any, name: str, seed: int | None) -> Any:
    """Reset an environment and return what it observes; raise `ArgumentError` if it is not as Gymnasium has it."""
    try:
        answer = env.reset(seed=seed)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise ArgumentError(
            f"{name}: reset does not take a seed",
            got=error,
            remedy="write it as def reset(self, *, seed=None, options=None)",
        ) from error
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise ArgumentError(
            f"{name}: reset returns something else",
            expected="(observation, info), as Gymnasium has it",
            got=type(answer).__name__,
            remedy="end reset with: return observation, {}",
        )
    return answer[0]


class StepAnswer(NamedTuple):
    """The answer of an environment to an action, without its info."""

    observation: Any
    """As it came: see `as_array`."""
    reward: float
    terminated: bool
    truncated: bool


def checked_step(answer: Any, name: str) -> StepAnswer:
    """Return what an environment's `step` answered; raise `ArgumentError` if it is not as Gymnasium has it."""
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise ArgumentError(
            f"{name}: step returns something else",
            expected="(observation, reward, terminated, truncated, info), as Gymnasium has it",
            got=f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__,
            remedy="end step with: return observation, reward, terminated, truncated, {}",
        )
    observation, reward, terminated, truncated, _ = answer
    if type(reward) is not float:
        reward = _scalar(reward)
    if not is_reward(reward):
        raise ArgumentError(
            f"{name}: a reward is wrong",
            expected="a finite number",
            got=shown(answer[1]),
            remedy="return float(reward)",
        )
    return StepAnswer(
        observation, float(reward), _flag(name, "terminated", terminated), _flag(name, "truncated", truncated)
    )


def as_array(observation: Any, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> np.ndarray[Any, Any]:
    """Return an observation as an array of the space's shape and dtype; raise `ArgumentError` if it is none."""
    try:
        given = np.asarray(observation)
    except (ValueError, TypeError, OverflowError):
        given = np.empty(0, object)
    if given.size != math.prod(shape) or given.dtype.kind not in "biuf" or np.ma.isMaskedArray(observation):
        raise ArgumentError(
            f"{name}: an observation is not as observation_space declares it",
            expected=f"numbers {shape} {dtype}",
            got=shown(observation) if given.dtype.kind not in "biuf" else f"{given.shape} {given.dtype}",
        )
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ArgumentError(f"{name}: an observation is not a number", got=shown(observation))
    array = given.astype(dtype).reshape(shape)
    if given.dtype != dtype and dtype.kind in "biu" and not (array == given.reshape(shape)).all():
        raise ArgumentError(
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
        raise ArgumentError(f"{name}: step returns a wrong {what}", expected="True or False", got=shown(value))
    return bool(scalar)


def rendered(env: Any, name: str) -> np.ndarray[Any, Any] | None:
    """Return what an environment renders as (height, width, 3) uint8; None if that is nothing."""
    try:
        frame = env.render()
    except gymnasium_package().error.DependencyNotInstalled:
        return None
    except Exception as error:  # rendering is anybody's code
        raise ArgumentError(
            f"{name}: render fails",
            expected='a picture, after env.render_mode = "rgb_array"',
            got=f"{type(error).__name__}: {error}",
            remedy="draw by what render finds, whatever render_mode it was made with; or drop rgb_array from metadata",
        ) from error
    if frame is None:
        return None
    picture = np.asarray(frame)
    if picture.ndim != 3 or picture.shape[2] not in (3, 4) or picture.dtype.kind not in "iuf":
        raise ArgumentError(
            f"{name}: render returns no picture",
            expected='an array (height, width, 3) of 0 to 255, for render_mode "rgb_array"',
            got=shown(frame, 60) if picture.dtype == object or picture.ndim < 2 else picture.shape,
        )
    return picture[:, :, :3].astype(np.uint8, copy=False)


def two_instances(env: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return two environments that share nothing, from an environment or from an id."""
    gymnasium = gymnasium_package()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about newer versions; whatever is fatal comes as an error too
        if isinstance(env, str):
            return instance(env, options), instance(env, options)
        if not isinstance(env, gymnasium.Env):
            raise not_an_environment(env)
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
