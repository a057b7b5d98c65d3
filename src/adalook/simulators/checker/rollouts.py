"""Probes, the states where a simulator is checked, and the rollouts that are compared there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, SimulatorError, shown
from adalook.simulators.base import Simulator, State, Transition

HORIZON = 12
"""Steps for which two simulators that should be equal are compared."""

Rollout = list[tuple[bytes, float, bool]]
"""(observation, reward, terminated) of each step."""


def fail_if(broken: object, fault: str, *, expected: object = None, got: object = None, remedy: str = "") -> None:
    """Raise `SimulatorError` with the fault if `broken` is true."""
    if broken:
        raise SimulatorError(fault, expected=expected, got=got, remedy=remedy)


@dataclass(frozen=True)
class Probe:
    """A state on a random walk, where all checks are made."""

    sim: Simulator
    state: State
    observation: bytes
    rng: np.random.Generator
    actions: list[int]
    """What the walk did next: HORIZON actions at most, within the episode."""
    rollout: Rollout
    """What these actions brought."""

    def restore(self) -> None:
        """Put the simulator back into this state."""
        self.sim.restore(self.state)

    def is_shown(self) -> bool:
        """Return whether the simulator shows this state's observation."""
        return self.sim.observe().tobytes() == self.observation

    def random_actions(self, length: int = HORIZON) -> list[int]:
        """Return random actions to play from here."""
        return random_actions(self.sim, self.rng, length)


def random_actions(sim: Simulator, rng: np.random.Generator, length: int = HORIZON) -> list[int]:
    """Return `length` actions drawn uniformly."""
    return [int(rng.integers(sim.num_actions)) for _ in range(length)]


def rollout(sim: Simulator, actions: list[int], state: State | None = None) -> Rollout:
    """Play until the actions or the episode end, from `state` if one is given, and return what was seen."""
    if state is not None:
        sim.restore(state)
    seen: Rollout = []
    for action in actions:
        transition = check_transition(sim, sim.step(action))
        seen.append((transition.observation.tobytes(), transition.reward, transition.terminated))
        if transition.episode_over:
            break
    return seen


def difference(one: Rollout, other: Rollout) -> str:
    """Say how two rollouts first differ; empty if they do not."""
    for step, (left, right) in enumerate(zip(one, other, strict=False), 1):
        if left == right:
            continue
        if left[2] != right[2]:
            return f"after {step} steps one terminated and the other did not"
        if left[1] != right[1]:
            return f"step {step} pays {left[1]:g} in one and {right[1]:g} in the other"
        return f"different observations after {step} steps"
    return "" if len(one) == len(other) else "one episode is over before the other"


def packed(sim: Simulator, state: State) -> bytes:
    """Return a state as bytes, to see whether it changes; empty if states cannot be packed."""
    try:
        return sim.pack(state)
    except ArgumentError:
        return b""


def check_observation(sim: Simulator, observation: Any, source: str) -> np.ndarray[Any, Any]:
    """Return the observation if it is an array of the declared shape and dtype."""
    shape, dtype = sim.observation_shape, sim.observation_dtype
    if not isinstance(observation, np.ndarray) or observation.shape != shape or observation.dtype != dtype:
        is_array = isinstance(observation, np.ndarray)
        got = f"{observation.shape} {observation.dtype}" if is_array else type(observation).__name__
        raise SimulatorError(f"{source} returns a wrong observation", expected=f"an array {shape} {dtype}", got=got)
    return observation


def check_transition(sim: Simulator, transition: Any) -> Transition:
    """Return what `step` returned if it is well formed."""
    if not isinstance(transition, Transition):
        raise SimulatorError("step returns the wrong thing", expected="a Transition", got=type(transition).__name__)
    check_observation(sim, transition.observation, "step")
    for name in ("reward", "raw_reward"):
        value = getattr(transition, name)
        finite = isinstance(value, float | int | np.floating) and math.isfinite(value)
        fail_if(not finite, f"step returns a wrong {name}", expected="a finite number", got=shown(value))
    for name in ("terminated", "episode_over"):
        value = getattr(transition, name)
        fail_if(not isinstance(value, bool | np.bool_), f"step returns a wrong {name}", expected="a bool", got=value)
    return transition
