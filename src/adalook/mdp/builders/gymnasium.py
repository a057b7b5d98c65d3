"""Models from the transition tables of Gymnasium's toy-text environments.

`env.unwrapped.P[s][a]` lists (probability, next state, reward, terminated). Here `terminated` ends the episode, even
where the entered state has moves of its own in the table (as in Taxi and CliffWalking): such transitions lead to a
sink, an extra last state that pays nothing.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from adalook.errors import ModelError
from adalook.mdp import checks
from adalook.mdp.layout import Cell, Layout
from adalook.mdp.model import MDP

FROZEN_LAKE_MOVES: tuple[Cell, ...] = ((0, -1), (1, 0), (0, 1), (-1, 0))
CLIFF_MOVES: tuple[Cell, ...] = ((-1, 0), (0, 1), (1, 0), (0, -1))


def from_gymnasium(env: Any, discount: float) -> MDP:
    """Build the model of `MDP.from_gymnasium`."""
    from scipy.sparse import coo_array

    gamma = checks.checked_discount(discount)
    inner = getattr(env, "unwrapped", env)
    table = getattr(inner, "P", None)
    if not isinstance(table, dict) or not table:
        raise ModelError(
            f"{type(inner).__name__} has no transition table",
            expected="an environment with a dictionary P[state][action], such as FrozenLake, Taxi, CliffWalking",
            remedy="for other environments build al.MDP(rewards, transitions, discount) or use MDP.from_function",
        )
    num_states = len(table)
    if sorted(table) != list(range(num_states)):
        raise ModelError("the table's states are wrong", expected=f"0 to {num_states - 1}, each once")
    if not all(isinstance(a, int | np.integer) for actions in table.values() for a in actions):
        raise ModelError("the table's actions are wrong", expected="whole numbers from 0")
    num_actions = 1 + max((max(actions, default=0) for actions in table.values()), default=0)
    sink = num_states
    mask = np.zeros((num_states + 1, num_actions), bool)
    rewards = np.zeros((num_states + 1, num_actions))
    pairs: list[int] = []
    successors: list[int] = []
    chances: list[float] = []
    ends = False
    for s, actions in table.items():
        for a, outcomes in actions.items():
            if a < 0 or not outcomes:
                raise ModelError(f"the table entry of state {s}, action {a} is wrong", expected="a list of outcomes")
            mask[s, a] = True
            for outcome in outcomes:
                try:
                    chance, ahead, reward, terminated = outcome
                    chance, ahead, reward = float(chance), operator.index(ahead), float(reward)
                except (TypeError, ValueError):
                    raise ModelError(
                        f"an outcome of state {s}, action {a} is wrong",
                        expected="(probability, next state, reward, terminated)",
                        got=repr(outcome),
                    ) from None
                if not 0 <= ahead < num_states:
                    raise ModelError(
                        f"an outcome of state {s}, action {a} leads out of range",
                        expected=f"0 to {num_states - 1}",
                        got=ahead,
                    )
                ends |= bool(terminated)
                pairs.append(s * num_actions + a)
                successors.append(sink if terminated else ahead)
                chances.append(chance)
                rewards[s, a] += chance * reward
    mask[sink] = True
    size = num_states + 1 if ends else num_states
    if ends:
        pairs.extend(sink * num_actions + a for a in range(num_actions))
        successors.extend([sink] * num_actions)
        chances.extend([1.0] * num_actions)
    transitions = coo_array((chances, (pairs, successors)), shape=(size * num_actions, size))
    layout = _layout(inner, num_states, size)
    return MDP(rewards[:size], transitions, gamma, mask=mask[:size], layout=layout)


def _layout(inner: Any, num_states: int, size: int) -> Layout | None:
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
    cells = np.full((size, 2), -1)
    cells[:num_states] = np.stack(np.divmod(np.arange(num_states), shape[1]), axis=1)
    return Layout(cells, np.zeros(shape, bool), moves, start[0] if start else None, goals, traps, names)


def _where(cells: np.ndarray) -> tuple[Cell, ...]:
    """Return the cells (row, column) that are True."""
    return tuple((int(row), int(column)) for row, column in np.argwhere(cells))
