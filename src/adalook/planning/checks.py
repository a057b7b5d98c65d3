"""Policies and values that come from outside are checked here, before any kernel sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import as_array
from adalook.errors import ArgumentError
from adalook.mdp.model import MDP
from adalook.mdp.names import action_numbers
from adalook.mdp.simulation import offered_actions, shown_action


def checked_policy(mdp: MDP, given: Any, name: str) -> IntArray:
    """Return a copy (S,) of a policy, by numbers or names, every action of which is on offer."""
    array: IntArray = action_numbers(as_array(name, given), mdp.action_names, mdp.num_actions)
    if array.shape != (mdp.num_states,) or array.dtype.kind not in "iu":
        wanted = f"ints ({mdp.num_states},)"
        raise ArgumentError(f"{name} is wrong", expected=wanted, got=f"{array.dtype} {array.shape}")
    inside = (array >= 0) & (array < mdp.num_actions)
    offered = np.take_along_axis(mdp.offered, np.where(inside, array, 0).astype(np.intp)[:, None], 1)[:, 0]
    for trouble, good in (("out of range", inside), ("not offered", offered)):
        if not good.all():
            state = int(np.argmin(good))
            raise ArgumentError(
                f"{name}: the action of state {mdp.state_label(state)} is {trouble}",
                expected=f"one of {offered_actions(mdp, state)}",
                got=shown_action(mdp, int(array[state])),
            )
    return np.asarray(array.astype(np.int32))


def checked_state_values(mdp: MDP, given: Any, name: str, remedy: str = "") -> FloatArray:
    """Return a copy (S,) of values, all of them finite."""
    expected = f"floats ({mdp.num_states},)"
    raw: np.ndarray = as_array(name, given)
    if raw.dtype.kind not in "iuf":
        got = f"dtype {raw.dtype}" if raw.ndim else type(given).__name__
        raise ArgumentError(f"{name}: no array of values", expected=expected, got=got, remedy=remedy)
    array: FloatArray = np.array(raw, np.float64)
    if array.shape != (mdp.num_states,):
        raise ArgumentError(f"{name}: wrong shape", expected=(mdp.num_states,), got=array.shape)
    finite = np.isfinite(array)
    if not finite.all():
        state = int(np.argmin(finite))
        raise ArgumentError(f"{name}: the value of state {mdp.state_label(state)} is not finite", got=array[state])
    return array
