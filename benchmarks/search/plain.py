"""Baselines of the search benchmark: trees by plain recursion, each in one process.

Atari: recursion with cloneState and restoreState over ale-py, the usual preprocessing with OpenCV, a leaf's stack of
four frames ready for a network. MinAtar: recursion that copies the environment with `copy.deepcopy`.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

FRAME_SKIP = 4
SIDE = 84


@dataclass
class Cost:
    """Nodes and seconds that a tree took."""

    nodes: int = 0
    act_seconds: float = 0.0
    """In `act` alone."""
    emulator_seconds: float = 0.0
    """In all calls to the emulator: act, restore, save, screens."""


class PlainAtari:
    """Plain recursion over one Atari game, rewards only: leaves get an observation but the value 0.

    `cost` counts while trees are made.
    """

    def __init__(self, game: str) -> None:
        import ale_py
        import cv2

        from adalook.simulators.ale.emulator import rom_of

        cv2.setNumThreads(1)
        self._resize, self._area = cv2.resize, cv2.INTER_AREA
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ale_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.loadROM(ale_py.roms.get_rom_path(rom_of(game)))
        self._actions = self._ale.getMinimalActionSet()
        height, width = self._ale.getScreenDims()
        self._screens = np.zeros((2, height, width), np.uint8)
        self._brighter = np.zeros((height, width), np.uint8)
        self.cost = Cost()
        self._leaves: list[np.ndarray[Any, Any]] = []

    def action_values(self, machine: Any, frames: list[Any], depth: int, discount: float) -> list[float]:
        """Return the value of each first action, from an ALEState and the four frames (84, 84) that led to it."""
        self._leaves = []
        values = [self._after(machine, frames, action, 0, depth, 0.0, discount) for action in range(len(self._actions))]
        np.stack(self._leaves)  # a batch, as a network would want it
        return values

    def _after(
        self, machine: Any, frames: list[Any], action: int, height: int, depth: int, total: float, discount: float
    ) -> float:
        ale, code = self._ale, self._actions[action]
        begin = time.perf_counter()
        ale.restoreState(machine)
        restored = time.perf_counter()
        reward = sum(ale.act(code) for _ in range(FRAME_SKIP - 1))
        acted = time.perf_counter()
        ale.getScreenGrayscale(self._screens[0])
        looked = time.perf_counter()
        reward += ale.act(code)
        acted_again = time.perf_counter()
        ale.getScreenGrayscale(self._screens[1])
        deeper = height + 1 < depth and not ale.game_over()
        child = ale.cloneState() if deeper else None
        self.cost.nodes += 1
        self.cost.act_seconds += (acted - restored) + (acted_again - looked)
        self.cost.emulator_seconds += time.perf_counter() - begin
        np.maximum(*self._screens, out=self._brighter)
        stack = [*frames[1:], self._resize(self._brighter, (SIDE, SIDE), interpolation=self._area)]
        total += discount**height * reward
        if not deeper:
            self._leaves.append(np.stack(stack))
            return total
        return max(
            self._after(child, stack, following, height + 1, depth, total, discount)
            for following in range(len(self._actions))
        )


class PlainMinAtar:
    """Plain recursion over copies of a MinAtar environment made by `copy.deepcopy`."""

    def __init__(self, game: str, seed: int) -> None:
        from minatar import Environment

        self.environment = Environment(game, sticky_action_prob=0.0)
        self.environment.seed(seed)
        self.actions = self.environment.minimal_action_set()
        self.cost = Cost()

    def action_values(self, depth: int, discount: float) -> list[float]:
        return [self._after(self.environment, action, 0, depth, 0.0, discount) for action in self.actions]

    def _after(self, environment: Any, action: int, height: int, depth: int, total: float, discount: float) -> float:
        child = copy.deepcopy(environment)
        reward, terminated = child.act(action)
        child.state()
        self.cost.nodes += 1
        total += discount**height * reward
        if terminated or height + 1 == depth:
            return total
        return max(self._after(child, following, height + 1, depth, total, discount) for following in self.actions)
