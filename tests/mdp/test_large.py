"""Large models: rewards in the narrowest type that holds them, the same answers, and no array too many."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import adalook as al
from adalook.mdp import checks


@pytest.fixture
def all_are_large(monkeypatch):
    """Let every model count as large."""
    monkeypatch.setattr(checks, "LARGE_PAIRS", 0)


@pytest.mark.parametrize(
    ("rewards", "kind"),
    [
        ([[0.0, 1.0], [-127.0, 127.0]], np.int8),
        ([[0.0, 1.0], [-128.0, 127.0]], np.float32),
        ([[0.5, 1.0], [2.0**100, 3.0]], np.float32),
        ([[0.1, 1.0], [2.0, 3.0]], np.float64),
        ([[1e-60, 1.0], [2.0, 3.0]], np.float64),
        ([[1e60, 1.0], [2.0, 3.0]], np.float64),
    ],
)
def test_the_narrowest_type_that_is_exact(rewards, kind, all_are_large):
    mdp = al.MDP(rewards, [[0, 1], [1, 0]], 0.9)
    assert mdp.rewards.dtype == kind
    assert (mdp.rewards.astype(np.float64) == np.array(rewards)).all()
    assert mdp.largest_reward == np.abs(np.array(rewards)).max()


def test_what_is_not_finite_is_refused_all_the_same(all_are_large):
    with pytest.raises(al.AdalookError, match="state 1, action 0 is not finite"):
        al.MDP([[0.0, 1.0], [np.nan, 2.0]], [[0, 1], [1, 0]], 0.9)


def test_ordinary_models_keep_float64():
    assert al.zoo.maze().rewards.dtype == np.float64
    assert al.MDP(np.zeros((2, 1), np.float32), [[0], [1]], 0.9).rewards.dtype == np.float64


@pytest.mark.parametrize(
    "scale", [1.0, pytest.param(0.5, marks=pytest.mark.slow)], ids=["int8", "float32"]
)  # each compiles kernels of its own
def test_narrow_rewards_change_no_bit_of_an_answer(scale, monkeypatch):
    maze = al.zoo.maze(size=20, seed=1)

    def solve(tolerance):
        mdp = al.MDP._adopt(scale * maze.rewards, maze.codes, maze.rows, maze.discount)
        return mdp, al.solve(mdp, tolerance=tolerance)

    wide, narrow = [solve(1e-6), solve(0.0)], []
    monkeypatch.setattr(checks, "LARGE_PAIRS", 0)
    narrow = [solve(1e-6), solve(0.0)]
    for (mdp, one), (small, other) in zip(wide, narrow, strict=True):
        assert small.rewards.dtype == (np.int8 if scale == 1.0 else np.float32)
        assert one.values.tobytes() == other.values.tobytes()
        assert (one.policy == other.policy).all()
        assert (one.policy_loss, one.passes) == (other.policy_loss, other.passes)
        assert small.nbytes < mdp.nbytes


def test_a_solve_of_certain_moves_takes_less_than_64_bytes_a_state():
    """Values, policy, pointers, predecessors and the wavefront: what is allocated beside the model itself."""
    n = 40_000
    states = np.arange(n)
    ahead = np.stack([np.maximum(states - 1, 0), np.minimum(states + 1, n - 1), (states + 200) % n, states], axis=1)
    rewards = np.zeros((n, 4))
    rewards[::1000, 3] = 1.0
    mdp = al.MDP(rewards, ahead, 0.999)
    al.solve(mdp, keep_states=False)
    fresh = al.MDP(rewards, ahead, 0.999)  # without predecessors
    tracemalloc.start()
    sol = al.solve(fresh, keep_states=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sol.converged
    assert "wavefront" in sol.solvers
    assert peak < 64 * n
