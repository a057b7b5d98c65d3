"""A simulator that takes more and more memory, but in the process that it was made in."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from adalook.simulators.base import Children, State
from adalook.simulators.minatar import MinAtarSimulator

_kept: list[Any] = []


class Hoarding(MinAtarSimulator):
    """MinAtar's Breakout; once a path exists, every expansion keeps a sixth of the memory: no actor survives one."""

    def __init__(self, game: str, home: int, path: str, **options: Any) -> None:
        super().__init__(game, **options)
        self.home, self.path = home, path

    def expand(self, states: Sequence[State], actions: Sequence[int], *others: Any, **options: Any) -> Children:
        """Expand as usual, and keep something."""
        if os.getpid() != self.home and os.path.exists(self.path):
            _kept.append(np.ones(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 6, np.uint8))
            time.sleep(1.0)  # for the monitor looks ten times a second
        return super().expand(states, actions, *others, **options)
