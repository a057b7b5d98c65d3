"""Policies that come from outside: checked before any kernel sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import ArgumentError
from adalook.mdp.model import MDP
from adalook.planning.lookahead import kernels


def myopic_policy(mdp: MDP) -> IntArray:
    """The best immediate reward in every state."""
    policy = np.empty(mdp.num_states, np.int32)
    kernels.myopic_policy(mdp.rewards, mdp.codes, policy)
    return policy


def checked_policy(mdp: MDP, given: Any, name: str) -> IntArray:
    """A copy (S,) of a given policy, every action of which is on offer."""
    try:
        array = np.asarray(given)
    except ValueError:
        raise ArgumentError(f"{name} is ragged", expected=f"ints ({mdp.num_states},)") from None
    if array.shape != (mdp.num_states,) or array.dtype.kind not in "iu":
        wanted = f"ints ({mdp.num_states},)"
        raise ArgumentError(f"{name} is wrong", expected=wanted, got=f"{array.dtype} {array.shape}")
    inside = (array >= 0) & (array < mdp.num_actions)
    offered = np.take_along_axis(mdp.offered, np.where(inside, array, 0).astype(np.intp)[:, None], 1)[:, 0]
    for trouble, good in (("out of range", inside), ("not offered", offered)):
        if not good.all():
            state = int(np.argmin(good))
            raise ArgumentError(
                f"{name}: the action of state {state} is {trouble}",
                expected=f"one of {np.flatnonzero(mdp.offered[state]).tolist()}",
                got=int(array[state]),
            )
    return array.astype(np.int32)


def checked_values(mdp: MDP, given: Any, name: str) -> FloatArray:
    """Values (S,), all finite."""
    try:
        raw = np.asarray(given)
    except ValueError:
        raise ArgumentError(f"{name} are ragged", expected=f"floats ({mdp.num_states},)") from None
    if raw.dtype.kind not in "iuf":
        raise ArgumentError(f"{name} are no numbers", expected=f"floats ({mdp.num_states},)", got=f"dtype {raw.dtype}")
    array: FloatArray = np.array(raw, np.float64)
    if array.shape != (mdp.num_states,):
        raise ArgumentError(f"{name} have the wrong shape", expected=(mdp.num_states,), got=array.shape)
    finite = np.isfinite(array)
    if not finite.all():
        state = int(np.argmin(finite))
        raise ArgumentError(f"{name}: that of state {state} is not finite", got=array[state])
    return array
