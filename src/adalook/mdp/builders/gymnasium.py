"""Models from the transition tables of Gymnasium's toy-text environments.

`env.unwrapped.P[s][a]` lists (probability, next state, reward, terminated): see `adalook.mdp.builders.tables`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook.errors import ModelError
from adalook.mdp.builders.tables import from_table
from adalook.mdp.layout import Cell, Layout
from adalook.mdp.model import MDP

FROZEN_LAKE_MOVES: tuple[Cell, ...] = ((0, -1), (1, 0), (0, 1), (-1, 0))
CLIFF_MOVES: tuple[Cell, ...] = ((-1, 0), (0, 1), (1, 0), (0, -1))


def from_gymnasium(env: Any, discount: float) -> MDP:
    """Build the model of `MDP.from_gymnasium`."""
    if isinstance(env, str | type):
        made = f"gymnasium.make({env!r})" if isinstance(env, str) else f"{env.__name__}()"
        raise ModelError(
            "from_gymnasium got no environment",
            expected="one that is made already",
            got=env if isinstance(env, str) else f"the class {env.__name__}",
            remedy=f"pass {made}",
        )
    inner = getattr(env, "unwrapped", env)
    table = getattr(inner, "P", None)
    if not isinstance(table, dict) or not table:
        raise ModelError(
            f"{type(inner).__name__} has no transition table",
            expected="an environment with a dictionary P[state][action], such as FrozenLake, Taxi, CliffWalking",
            remedy="for other environments build al.MDP(rewards, transitions, discount) or use MDP.from_function",
        )
    return from_table(table, discount, layout=_layout(inner, len(table)))


def _layout(inner: Any, num_states: int) -> Layout | None:
    """Return the layout of FrozenLake and CliffWalking; None for other environments."""
    kind = type(inner).__name__
    goals: tuple[Cell, ...]
    if kind == "FrozenLakeEnv":
        desc = np.asarray(inner.desc).astype("U1")
        goals, traps = _where(desc == "G"), _where(desc == "H")
        shape, start = desc.shape, _where(desc == "S")[:1]
        moves, names = FROZEN_LAKE_MOVES, ("left", "down", "right", "up")
    elif kind == "CliffWalkingEnv":
        shape = tuple(inner.shape)
        traps = _where(np.asarray(inner._cliff, bool))
        goals, start = ((shape[0] - 1, shape[1] - 1),), ((shape[0] - 1, 0),)
        moves, names = CLIFF_MOVES, ("up", "right", "down", "left")
    else:
        return None
    if shape[0] * shape[1] != num_states:
        return None
    cells = np.stack(np.divmod(np.arange(num_states), shape[1]), axis=1)
    return Layout(cells, np.zeros(shape, bool), moves, start[0] if start else None, goals, traps, names)


def _where(cells: np.ndarray) -> tuple[Cell, ...]:
    """Return the cells (row, column) that are True."""
    return tuple((int(row), int(column)) for row, column in np.argwhere(cells))
