"""The live worlds that an agent acts in: several of one kind, moved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.errors import ArgumentError
from adalook.simulators.base import Simulator, Transition


@dataclass(frozen=True)
class Episode:
    """An episode that is over."""

    score: float
    """Sum of rewards before clipping."""
    steps: int


class EnvPool:
    """`count` worlds, each begun with a seed of its own.

    Args:
        sim: what they are made like; it is left alone.
        max_episode_steps: episodes are cut off here. That is no end: the state keeps its value.
    """

    def __init__(self, sim: Simulator, count: int, *, seed: int, max_episode_steps: int) -> None:
        self.live: list[Simulator] = [sim.clone() for _ in range(count)]
        seeds = np.random.default_rng([seed, _STREAM]).integers(0, 2**31, count)
        self.observations = np.stack(
            [world.reset(seed=int(each)) for world, each in zip(self.live, seeds, strict=True)]
        )
        """(count, *observation_shape), not to be changed"""
        self._max_steps = max_episode_steps
        self._scores, self._steps = [0.0] * count, [0] * count

    def __len__(self) -> int:
        return len(self.live)

    def step(self, actions: Sequence[int]) -> tuple[list[Transition], list[Episode]]:
        """Move every world. Those whose episode is over begin a new one, which `observations` then shows."""
        transitions, episodes = [], []
        shown = []
        for i, (world, action) in enumerate(zip(self.live, actions, strict=True)):
            transition = world.step(action)
            transitions.append(transition)
            self._scores[i] += transition.raw_reward
            self._steps[i] += 1
            if transition.episode_over or self._steps[i] >= self._max_steps:
                episodes.append(Episode(self._scores[i], self._steps[i]))
                self._scores[i], self._steps[i] = 0.0, 0
                shown.append(world.reset())
            else:
                shown.append(transition.observation)
        self.observations = np.stack(shown)  # a new array: the old one is still in use
        return transitions, episodes

    def state(self) -> dict[str, Any]:
        """All of it, as plain data and arrays."""
        return {
            "worlds": [world.pack(world.save()) for world in self.live],
            "observations": self.observations,
            "scores": list(self._scores),
            "steps": list(self._steps),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        if len(state["worlds"]) != len(self.live):
            raise ArgumentError(
                "the run was saved with another number of worlds",
                expected=f"num_envs = {len(state['worlds'])}",
                got=f"num_envs = {len(self.live)}",
                remedy="go on with as many worlds as it was begun with",
            )
        for world, packed in zip(self.live, state["worlds"], strict=True):
            world.restore(world.unpack(packed))
        self.observations = np.asarray(state["observations"])
        self._scores, self._steps = list(state["scores"]), list(state["steps"])

    def close(self) -> None:
        for world in self.live:
            world.close()


_STREAM = 1
"""Tells the worlds' seeds from other things that are drawn from the same seed."""
