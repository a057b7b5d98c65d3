"""State aggregation: merge groups of states into one state each, and lift values of the small model back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import as_array
from adalook.errors import ModelError
from adalook.mdp import checks
from adalook.mdp.model import MDP
from adalook.mdp.transitions import is_deterministic, row_of

Lift = Callable[[FloatArray], FloatArray]


def aggregate(mdp: MDP, groups: Any) -> tuple[MDP, Lift]:
    """Return the model whose states are groups of states, and a function that lifts its values back.

    Each row is the average of its members' rows, of those that offer the action.

    Args:
        mdp: the model.
        groups: (S,) ints, the group of each state; numbers need not be consecutive.

    Returns:
        the small model, and `lift(values of groups) -> values (S,)`. Groups are numbered in ascending order.

    >>> import adalook as al
    >>> mdp = al.zoo.maze(size=30, seed=0)
    >>> small, lift = al.aggregate(mdp, mdp.layout.squares(3))
    >>> lift(al.solve(small).values).shape == (mdp.num_states,)
    True
    """
    from scipy.sparse import coo_array

    if not isinstance(mdp, MDP):
        raise ModelError("aggregate got no model", expected="an al.MDP", got=type(mdp).__name__)
    given = as_array("groups", groups, ModelError)
    if given.shape != (mdp.num_states,) or given.dtype.kind not in "iu":
        raise ModelError("groups are wrong", expected=f"ints ({mdp.num_states},)", got=f"{given.dtype} {given.shape}")
    names, group = np.unique(given, return_inverse=True)
    size, actions = len(names), mdp.num_actions
    source, action, row, weight = entries(mdp)
    # row: where the entry leads, already as a group
    offering = np.zeros((size, actions))
    np.add.at(offering, group, mdp.offered)
    rewards = np.zeros((size, actions))
    np.add.at(rewards, group, np.where(mdp.offered, mdp.rewards, 0.0))
    mask = offering > 0
    rewards[mask] /= offering[mask]
    pair = group[source] * actions + action
    table = coo_array((weight / offering.ravel()[pair], (pair, group[row])), shape=(size * actions, size)).tocsr()
    total = np.asarray(table.sum(axis=1)).ravel()
    table.data /= np.repeat(np.where(total > 0, total, 1.0), np.diff(table.indptr))
    small = MDP(rewards, table, mdp.discount, mask=mask)

    def lift(values: FloatArray) -> FloatArray:
        given = checks.number_array(values, "lift: values").astype(np.float64, copy=False)
        if given.shape != (size,):
            raise ModelError("lift: values are wrong", expected=f"floats ({size},), one per group", got=given.shape)
        return given[group]

    return small, lift


def entries(mdp: MDP) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return every transition of the model: (states, actions, successors, probabilities)."""
    state, action = np.nonzero(mdp.offered)
    code = mdp.codes[state, action]
    certain = is_deterministic(code)
    row = row_of(code[~certain])
    length = mdp.rows.indptr[row + 1] - mdp.rows.indptr[row]
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    entry = np.repeat(mdp.rows.indptr[row], length) + within
    return (
        np.concatenate([state[certain], np.repeat(state[~certain], length)]),
        np.concatenate([action[certain], np.repeat(action[~certain], length)]),
        np.concatenate([code[certain], mdp.rows.indices[entry]]),
        np.concatenate([np.ones(certain.sum()), mdp.rows.data[entry]]),
    )
