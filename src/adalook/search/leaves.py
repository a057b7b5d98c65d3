"""What the leaves of a level are worth: each distinct observation is evaluated once, all of them in one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.errors import ArgumentError
from adalook.search.level import Nodes
from adalook.search.rules.base import ValueFunction


def leaf_values(nodes: Nodes, value_fn: ValueFunction, depth: int) -> FloatArray:
    """(n,) values of n nodes; 0 for those that have ended, which the value function does not get to see.

    The value function is called once, or not at all if every node has ended. Observations come in the order of the
    nodes that show them first, so that what it answers does not depend on who expanded what.
    """
    values = np.zeros(len(nodes.terminated))
    alive = np.flatnonzero(~nodes.terminated)
    if not len(alive):
        return values
    shown = nodes.rows[alive]
    if len(shown) == len(nodes.observations) and (shown[:-1] < shown[1:]).all():
        wanted, batch = shown, nodes.observations  # as they are: nothing to pick, nothing to copy
    else:
        rows, first = np.unique(shown, return_index=True)
        wanted = rows[np.argsort(first)]
        batch = nodes.observations[wanted]
    by_row = np.empty(len(nodes.observations))
    by_row[wanted] = checked_values(value_fn(batch, depth), len(batch))
    values[alive] = by_row[shown]
    return values


def checked_values(values: Any, count: int) -> FloatArray:
    """What a value function returned, as (count,) finite float64."""
    array = np.asarray(values, np.float64)
    if array.shape != (count,):
        raise ArgumentError("the value function returned a wrong shape", expected=f"({count},)", got=array.shape)
    if not np.isfinite(array).all():
        raise ArgumentError("the value function returned a value that is not finite", got=array[~np.isfinite(array)][0])
    return array
