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
_calls = 0


class Hoarding(MinAtarSimulator):
    """MinAtar's Breakout; after a while every expansion keeps 64 MB."""

    def __init__(self, game: str, home: int, **options: Any) -> None:
        super().__init__(game, **options)
        self.home = home

    def expand(self, states: Sequence[State], actions: Sequence[int], *others: Any, **options: Any) -> Children:
        """Expand as usual, and keep something."""
        global _calls
        _calls += 1
        if _calls > 100 and os.getpid() != self.home:
            _kept.append(np.ones(2**26, np.uint8))
            time.sleep(0.05)  # for the monitor looks ten times a second
        return super().expand(states, actions, *others, **options)
