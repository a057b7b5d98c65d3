"""Models built in a file: the same numbers as in memory, and hardly any memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError, ModelError
from adalook.mdp import checks
from adalook.mdp.builders import streamed

N = 500


def certain(s):
    """Two certain moves of each state, to a neighbour and to one farther on."""
    return np.stack([s % 7, -(s % 3)], axis=1), np.stack([np.maximum(s - 1, 0), (s * 3 + 1) % N], axis=1)


def slippery(s):
    """Two moves of each state that may slip, the second one certain in every tenth state."""
    ahead = np.stack([np.maximum(s - 1, 0), np.minimum(s + 1, N - 1)], axis=1)
    second = np.where((s % 10 == 0)[:, None], [1.0, 0.0], [0.5, 0.5])
    chance = np.stack([np.broadcast_to([0.75, 0.25], (len(s), 2)), second], axis=1)
    return np.stack([s / 8, s % 5], axis=1), np.stack([ahead, ahead[:, ::-1]], axis=1), chance


@pytest.mark.parametrize("fn", [certain, slippery])
@pytest.mark.parametrize("masked", [False, True])
def test_it_is_the_model_that_memory_would_hold(fn, masked, tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "PART_PAIRS", 128)
    mask = np.ones((N, 2), bool)
    mask[3::11, 1] = not masked
    path = tmp_path / "model.npz"
    built = al.MDP.from_function(fn, N, 2, 0.95, mask=mask, path=path, batch_size=10)
    whole = al.MDP.from_function(fn, N, 2, 0.95, mask=mask)
    assert built.mapped == path.resolve()
    assert np.array_equal(built.rewards, whole.rewards)
    for s in range(N):
        for a in range(2):
            for one, other in zip(built.transition_row(s, a), whole.transition_row(s, a), strict=True):
                assert np.array_equal(one, other)
    sol, other = al.solve(built), al.solve(whole)
    assert sol.converged
    assert np.abs(sol.values - other.values).max() <= 1e-7
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]


def test_large_ones_have_narrow_rewards(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "LARGE_PAIRS", 0)
    assert al.MDP.from_function(certain, N, 2, 0.95, path=tmp_path / "model.npz").rewards.dtype == np.int8
    assert al.MDP.from_function(slippery, N, 2, 0.95, path=tmp_path / "model.npz").rewards.dtype == np.float32


def test_it_takes_the_memory_of_a_part(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "PART_PAIRS", 40_000)
    monkeypatch.setattr("adalook.mdp.files.npz.CHECKED_NUMBERS", 40_000)
    n, actions = 60_000, 20

    def fn(s):
        return np.broadcast_to(s[:, None] % 11, (len(s), actions)), (s[:, None] + np.arange(actions)) % n

    al.MDP.from_function(lambda s: fn(s), n, actions, 0.9, path=tmp_path / "model.npz", batch_size=2_000)
    tracemalloc.start()
    mdp = al.MDP.from_function(fn, n, actions, 0.9, path=tmp_path / "model.npz", batch_size=2_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert mdp.nbytes >= n * actions * 12
    assert peak < 0.75 * mdp.nbytes


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="our own format"):
        al.MDP.from_function(certain, N, 2, 0.95, path=tmp_path / "model.umb")
    with pytest.raises(FileError):
        al.MDP.from_function(certain, N, 2, 0.95, path=tmp_path / "missing" / "model.npz")
    with pytest.raises(ModelError, match="out of range"):
        al.MDP.from_function(certain, N - 1, 2, 0.95, path=tmp_path / "model.npz")
    layout = al.zoo.maze(size=10).layout
    with pytest.raises(ModelError, match="takes no layout"):
        al.MDP.from_function(certain, N, 2, 0.95, path=tmp_path / "model.npz", layout=layout)
    assert list(tmp_path.iterdir()) == []
