"""Pictures are moved by a few pixels, frames together, and what enters repeats the border."""

from __future__ import annotations

import numpy as np
import pytest

from adalook.errors import ArgumentError
from adalook.learning.agents.dqn import DQN
from adalook.learning.replay.buffer import Batch
from adalook.learning.replay.shifts import check_shift, shifted
from tests.learning.small import small_config


def batch(count: int, side: int = 12) -> Batch:
    rng = np.random.default_rng(0)
    observations, leaves = rng.integers(0, 256, (2, count, 4, side, side), dtype=np.uint8)
    zeros = np.zeros(count, np.int64)
    return Batch(observations, zeros, zeros.astype(np.float32), leaves, zeros, zeros, zeros.astype(bool))


def offset(before: np.ndarray, after: np.ndarray, pixels: int) -> tuple[int, int] | None:
    """By how much a picture (frames, height, width) was moved down and right; None if it was not moved so."""
    height, width = before.shape[1:]
    for y in range(-pixels, pixels + 1):
        for x in range(-pixels, pixels + 1):
            rows, columns = np.arange(height) - y, np.arange(width) - x
            moved = before[:, rows.clip(0, height - 1)][:, :, columns.clip(0, width - 1)]
            if np.array_equal(moved, after):
                return y, x
    return None


@pytest.mark.parametrize("pixels", [1, 2])
def test_every_picture_is_moved_on_its_own_by_every_offset_alike(pixels: int) -> None:
    data = batch(400)
    moved = shifted(data, pixels, np.random.default_rng(1))
    offsets = [
        [offset(before, after, pixels) for before, after in zip(one, other, strict=True)]
        for one, other in ((data.observations, moved.observations), (data.leaves, moved.leaves))
    ]
    assert None not in offsets[0] + offsets[1]
    assert offsets[0] != offsets[1], "a leaf is not moved as its observation is"
    cells = (2 * pixels + 1) ** 2
    for each in offsets:
        counts = [each.count(cell) for cell in set(each)]
        assert len(counts) == cells
        assert max(counts) < 400 / cells + 6 * np.sqrt(400 / cells)


def test_the_rest_of_a_batch_and_its_pictures_are_left_alone() -> None:
    data = batch(3)
    copy = data.observations.copy()
    moved = shifted(data, 2, np.random.default_rng(1))
    assert moved.actions is data.actions
    assert moved.observations.dtype == data.observations.dtype
    np.testing.assert_array_equal(data.observations, copy)


def test_other_observations_are_refused_by_name() -> None:
    check_shift(0, (3,))
    check_shift(4, (4, 84, 84))
    with pytest.raises(ArgumentError, match=r"random_shift does not suit these observations.*\(4,\)"):
        DQN("CartPole-v1", small_config("CartPole-v1", random_shift=4), depth=0)
    with pytest.raises(ArgumentError, match="more than 16 pixels"):
        check_shift(4, (4, 10, 10))
