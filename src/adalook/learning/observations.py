"""Observations as people have them at hand, made ready for the network."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook.errors import ArgumentError
from adalook.learning.networks import QNetwork, TableTrunk
from adalook.simulators.base import Simulator


def as_batch(observation: Any, sim: Simulator) -> tuple[np.ndarray[Any, Any], bool]:
    """Observations as (n, *observation_shape), and whether it was one alone.

    As Gymnasium shows them they are taken too: pictures with their channels last, the number of a state as it is. Where
    the shape does not tell first from last, the type does: MinAtar's own pictures are of bool, ours are not.
    """
    array, shape, dtype = np.asarray(observation), sim.observation_shape, sim.observation_dtype
    if array.dtype.kind not in "biuf":
        raise ArgumentError("this observation does not fit", expected="numbers", got=repr(observation))
    if array.shape == () and shape == (1,):
        array = array[None]
    picture, last = len(shape) == 3, (*shape[1:], shape[0])
    for candidate in (array[None], array):
        shown, single = candidate.shape[1:], candidate.ndim > array.ndim
        if shown == shape and not (picture and shown == last and array.dtype == bool):
            return np.ascontiguousarray(candidate, dtype), single
        if picture and shown == last:
            return np.ascontiguousarray(np.moveaxis(candidate, -1, 1), dtype), single
    raise ArgumentError("this observation does not fit", expected=f"{shape}, or a batch of such", got=array.shape)


def refuse_unknown_states(observation: Any, network: QNetwork) -> None:
    """A table has entries for its own states and no others."""
    trunk = network.trunk
    if isinstance(trunk, TableTrunk) and not np.isin(observation, np.arange(trunk.features)).all():
        states = f"whole numbers 0..{trunk.features - 1}"
        raise ArgumentError("this observation is no state of the table", expected=states, got=repr(observation))
