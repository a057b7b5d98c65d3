"""Models that processes on other machines can build a part of: functions of states at the top of a module."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import adalook as al


def slippery(states: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A grid of side×side cells, row by row, with moves that slip sideways; the last cell pays, some cells cost."""
    row, column = np.divmod(states, side)
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    ahead = np.stack(
        [np.clip(row + r, 0, side - 1) * side + np.clip(column + c, 0, side - 1) for r, c in moves], axis=1
    )
    successors = np.stack(
        [np.stack([ahead[:, (a + turn) % 4] for turn in (0, 1, 3)], axis=1) for a in range(4)], axis=1
    )
    chances = np.broadcast_to([0.8, 0.1, 0.1], successors.shape)
    rewards = np.repeat(((states == side * side - 1) - 0.3 * (states % 7 == 3)).astype(float)[:, None], 4, axis=1)
    return rewards, successors, chances


def slippery_grid(side: int, shards: Any, discount: float = 0.95) -> al.ShardedMDP:
    """The grid as a sharded model."""
    return al.ShardedMDP.from_function(partial(slippery, side=side), side * side, 4, discount, shards=shards)


def whole_grid(side: int, discount: float = 0.95) -> al.MDP:
    """The same grid in one piece."""
    return al.MDP.from_function(partial(slippery, side=side), side * side, 4, discount)


def rounds_saved(checkpoint: Path) -> int:
    """Rounds after which the last checkpoint in a directory was written."""
    return max((int(path.name.partition("-")[2]) for path in checkpoint.glob("state-*")), default=0)


SLOWLY = """
import time
from adalook.planning.sharded.rounds import Rounds

run_round = Rounds.run_round
Rounds.run_round = lambda self: (time.sleep(0.3), run_round(self))
"""
"""Begin of a script whose rounds leave time to kill something in between."""


def jumping(states: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A ring of n states with steps to both sides; stepping onto state 0 from its left jumps to a random state."""
    ahead = np.stack([(states + 1) % n, (states - 1) % n], axis=1)
    rewards = (ahead == 0).astype(float)
    return rewards, np.where((ahead == 0) & (np.arange(2) == 0), n, ahead)


def uniform(states: np.ndarray, n: int) -> np.ndarray:
    """The one shared row of the ring: every state is equally likely."""
    return np.full((len(states), 1), 1.0 / n)


def jumping_ring(n: int, shards: Any, discount: float = 0.95) -> al.ShardedMDP:
    """The ring as a sharded model."""
    return al.ShardedMDP.from_function(
        partial(jumping, n=n), n, 2, discount, shards=shards, shared_rows=partial(uniform, n=n)
    )


def whole_ring(n: int, discount: float = 0.95) -> al.MDP:
    """The same ring in one piece."""
    transitions = np.zeros((n, 2, n))
    rewards, ahead = jumping(np.arange(n), n)
    for s in range(n):
        for a in range(2):
            if ahead[s, a] == n:
                transitions[s, a] = 1.0 / n
            else:
                transitions[s, a, ahead[s, a]] = 1.0
    return al.MDP(rewards, transitions, discount)
