"""What a world shows while it is played, and whether two worlds showed the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators.base import Simulator, Transition

Trace = list[tuple[bytes, float, bool]]
"""(observation, reward, ended) of each step"""


def play(world: Simulator, plan: list[int]) -> Trace:
    """Play until the plan or the episode is over."""
    trace: Trace = []
    for action in plan:
        transition = check_transition(world, world.step(action))
        trace.append((transition.observation.tobytes(), transition.reward, transition.terminated))
        if transition.episode_over:
            break
    return trace


def difference(one: Trace, other: Trace) -> str:
    """How two traces first differ, in words; empty if they do not."""
    for step, (left, right) in enumerate(zip(one, other, strict=False), 1):
        if left == right:
            continue
        if left[2] != right[2]:
            return f"after {step} steps one world ended and the other did not"
        if left[1] != right[1]:
            return f"step {step} pays {left[1]:g} in one and {right[1]:g} in the other"
        return f"different observations after {step} steps"
    return "" if len(one) == len(other) else "one episode is over before the other"


def check_observation(sim: Simulator, observation: Any, source: str) -> np.ndarray[Any, Any]:
    """The observation, if it is an array of the promised shape and type."""
    shape, dtype = sim.observation_shape, sim.observation_dtype
    if not isinstance(observation, np.ndarray) or observation.shape != shape or observation.dtype != dtype:
        got: Any = type(observation).__name__
        if isinstance(observation, np.ndarray):
            got = f"{observation.shape} {observation.dtype}"
        raise SimulatorError(f"{source} returns a wrong observation", expected=f"an array {shape} {dtype}", got=got)
    return observation


def check_transition(sim: Simulator, transition: Any) -> Transition:
    """The transition, if it is well formed."""
    if not isinstance(transition, Transition):
        raise SimulatorError("step returns the wrong thing", expected="a Transition", got=type(transition).__name__)
    check_observation(sim, transition.observation, "step")
    for name in ("reward", "raw_reward"):
        value = getattr(transition, name)
        if not isinstance(value, float | int | np.floating) or not math.isfinite(value):
            raise SimulatorError(f"step returns a wrong {name}", expected="a finite number", got=repr(value))
    for name in ("terminated", "episode_over"):
        if not isinstance(getattr(transition, name), bool | np.bool_):
            raise SimulatorError(f"step returns a wrong {name}", expected="a bool", got=repr(getattr(transition, name)))
    return transition
