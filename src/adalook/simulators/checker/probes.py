"""Places on a random walk through a world where the checks of `promises` and `expansion` are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.errors import ArgumentError
from adalook.simulators.base import Simulator, State
from adalook.simulators.checker.rollouts import Trace, play

AHEAD = 12
"""Steps for which two worlds that should be equal are played side by side."""


@dataclass(frozen=True)
class Stop:
    """A place on the way where everything is tried; the live world is there."""

    sim: Simulator
    state: State
    observation: np.ndarray[Any, Any]
    rng: np.random.Generator
    onward: list[int]
    """the actions that the walk took from here, twelve at most and within the episode"""
    happened: Trace
    """what they brought"""

    def plan(self, length: int = AHEAD) -> list[int]:
        """Random actions."""
        return [random_action(self.sim, self.rng) for _ in range(length)]

    def go_back(self) -> None:
        self.sim.restore(self.state)


def random_action(sim: Simulator, rng: np.random.Generator) -> int:
    return int(rng.integers(sim.num_actions))


def restored(world: Simulator, state: State, plan: list[int]) -> Trace:
    """Go to a state and play from there."""
    world.restore(state)
    return play(world, plan)


def packed(sim: Simulator, state: State) -> bytes:
    """A state as bytes, to see whether it changes; all alike if states cannot be packed, see `check_packing`."""
    try:
        return sim.pack(state)
    except ArgumentError:
        return b""
