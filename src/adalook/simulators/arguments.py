"""Checks of the actions and states that a simulator is given, and of the steps and observations that it gives.

What a simulator gives is checked where it leaves the simulator (`checking`), so that searches, training, evaluation and
`check_simulator` need not: None, NaN or an array of another shape would go on as a number, or fail far from its cause.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, SimulatorError, shown

LARGEST_REWARD = 1e300
"""Of a step; sums of larger ones would overflow. Models have the same limit."""
MOST_ACTIONS, MOST_VALUES = 2**20, 2**31
"""Actions, and values of one observation: more is a slip."""
CHECKED = ("step", "reset", "observe", "pack")
"""Methods of simulators whose results are checked."""


def checked_action(action: Any, num_actions: int) -> int:
    """Return `action` as an int from 0 to num_actions - 1: negative ones would count from the end."""
    try:
        number = operator.index(action)
    except TypeError:
        number = -1
    if not 0 <= number < num_actions:
        raise _wrong_action_error(action, num_actions)
    return number


def check_actions(actions: Sequence[int], num_actions: int) -> None:
    """Check a batch of actions at once, which takes a microsecond or so."""
    if len(actions) == 0:
        return
    try:
        least, most = min(actions), max(actions)
        fits = least >= 0 and most < num_actions
    except TypeError as error:
        raise ArgumentError("an action is wrong", expected=f"whole numbers 0..{num_actions - 1}", got=error) from error
    if not fits:
        raise _wrong_action_error(least if least < 0 else most, num_actions)


def check_states(states: Sequence[Any], kind: type[Any], owner: str) -> None:
    """Raise unless all states are of type `kind` and belong to `owner`: others may crash an emulator."""
    for state in states:
        if type(state) is not kind or state.owner != owner:
            raise wrong_state_error(state, owner)


def wrong_state_error(state: Any, owner: str) -> ArgumentError:
    """Return the error about something that is not a state of `owner`."""
    actual = getattr(state, "owner", None)
    return ArgumentError(
        "this state belongs to another simulator",
        expected=f"a state of {owner}",
        got=f"a state of {actual}" if isinstance(actual, str) else repr(state)[:60],
        remedy="give states to the simulator that made them, or to a clone of it",
    )


def check_attributes(sim: Any) -> None:
    """Raise `SimulatorError` unless the attributes that a simulator must set are there and make sense."""
    actions: Any = getattr(sim, "num_actions", None)
    shape: Any = getattr(sim, "observation_shape", None)
    dtype: Any = getattr(sim, "observation_dtype", None)
    if not _is_count(actions, MOST_ACTIONS):
        raise _wrong_attribute_error("num_actions", f"a whole number from 1 to {MOST_ACTIONS}", actions)
    if type(shape) is not tuple or not all(_is_count(n, MOST_VALUES) for n in shape) or math.prod(shape) > MOST_VALUES:
        raise _wrong_attribute_error("observation_shape", "a tuple of whole numbers, at least 1", shape)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        raise _wrong_attribute_error(
            "observation_dtype", "a NumPy dtype of numbers, such as np.dtype(np.float32)", dtype
        )


def check_observation(sim: Any, observation: Any, source: str) -> None:
    """Raise `SimulatorError` unless an observation is an array of finite numbers of the declared shape and dtype."""
    shape, dtype = sim.observation_shape, sim.observation_dtype
    if type(observation) is not np.ndarray or observation.shape != shape or observation.dtype != dtype:
        check_attributes(sim)
        is_array = type(observation) is np.ndarray
        raise SimulatorError(
            f"{source} returns a wrong observation",
            expected=f"an array {shape} {dtype}",
            got=f"{observation.shape} {observation.dtype}" if is_array else shown(observation),
        )
    if observation.dtype.kind == "f" and not np.isfinite(observation).all():
        raise SimulatorError(f"{source} returns an observation that is not finite", got=shown(observation))


def check_step(sim: Any, action: Any, transition: Any) -> None:
    """Raise `SimulatorError` unless `transition` is one: finite rewards, bools, and an observation as declared."""
    try:
        rewards = transition.reward, transition.raw_reward
        flags = transition.terminated, transition.episode_over
        observation = transition.observation
    except AttributeError:
        raise _wrong_step_error(action, "result", "a Transition", transition) from None
    for name, value in zip(("reward", "raw_reward"), rewards, strict=True):
        if not is_reward(value):
            raise _wrong_step_error(action, name, f"a finite number up to {LARGEST_REWARD:g}", value)
    for name, value in zip(("terminated", "episode_over"), flags, strict=True):
        if not isinstance(value, bool | np.bool_):
            raise _wrong_step_error(action, name, "a bool", value)
    check_observation(sim, observation, "step")


def is_reward(value: Any) -> bool:
    """Return whether something is a number, of Python or NumPy, that rewards may be; NaN is none."""
    if not isinstance(value, float | int | np.floating | np.integer):
        return False
    try:
        return abs(float(value)) <= LARGEST_REWARD
    except OverflowError:  # a whole number of hundreds of digits
        return False


def checking(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a simulator whose result is checked: one of `CHECKED`."""

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        if name == "step":
            check_step(self, args[0] if args else kwargs.get("action"), result)
        elif name == "pack":
            if not isinstance(result, bytes):
                raise SimulatorError("pack returns something else", expected="bytes", got=shown(result))
        else:
            check_observation(self, result, name)
        return result

    return checked


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(1 <= value <= most)


def _wrong_attribute_error(name: str, expected: str, got: Any) -> SimulatorError:
    return SimulatorError(f"{name} is wrong", expected=f"{expected}, set in __init__ or the class", got=shown(got))


def _wrong_step_error(action: Any, name: str, expected: str, got: Any) -> SimulatorError:
    return SimulatorError(f"step({shown(action)}) returns a wrong {name}", expected=expected, got=shown(got))


def _wrong_action_error(action: Any, num_actions: int) -> ArgumentError:
    return ArgumentError("there is no such action", expected=f"a whole number 0..{num_actions - 1}", got=shown(action))
