"""Probes, the states where a simulator is checked, and the rollouts that are compared there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.base import Simulator, State

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
        transition = sim.step(action)
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
