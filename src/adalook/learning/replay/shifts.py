"""Random shifts: what is learnt from a picture should hold for the same picture a few pixels away.

Each picture of a batch, its stacked frames together, is moved by up to so many pixels up or down and sideways; what
enters at its border repeats the border (Kostrikov et al. 2021). Observation and leaf are moved on their own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from adalook.errors import ArgumentError
from adalook.learning.replay.buffer import Batch

Pictures = np.ndarray[Any, Any]


def check_shift(pixels: int, observation_shape: tuple[int, ...]) -> None:
    """Raise an error if observations are no pictures, or so small that a shift would empty them."""
    is_picture = len(observation_shape) == 3
    if pixels and not (is_picture and 4 * pixels < min(observation_shape[1:])):
        raise ArgumentError(
            "config: random_shift does not suit these observations",
            expected=f"pictures (frames, height, width) of more than {4 * pixels} pixels each way",
            got=f"observations {observation_shape}",
            remedy="leave random_shift at 0",
        )


def shifted(batch: Batch, pixels: int, rng: np.random.Generator) -> Batch:
    """Return a batch whose pictures are moved by at most so many pixels, each by an offset of its own.

    >>> batch = Batch(np.eye(8, dtype=np.uint8)[None, None], *[np.zeros(1, int)] * 2, np.eye(8)[None, None],
    ...     *[np.zeros(1, int)] * 3)
    >>> shifted(batch, 1, np.random.default_rng(1)).observations.shape
    (1, 1, 8, 8)
    """
    observations, leaves = (_moved(pictures, pixels, rng) for pictures in (batch.observations, batch.leaves))
    return dataclasses.replace(batch, observations=observations, leaves=leaves)


def _moved(pictures: Pictures, pixels: int, rng: np.random.Generator) -> Pictures:
    """Return pictures (n, frames, height, width), each moved by an offset of its own."""
    height, width = pictures.shape[2:]
    padded = np.pad(pictures, ((0, 0), (0, 0), (pixels, pixels), (pixels, pixels)), mode="edge")
    moved = np.empty_like(pictures)
    for picture, source, (y, x) in zip(moved, padded, rng.integers(0, 2 * pixels + 1, (len(pictures), 2)), strict=True):
        picture[:] = source[:, y : y + height, x : x + width]
    return moved
