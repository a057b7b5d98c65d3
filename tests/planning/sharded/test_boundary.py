"""The boundary: the linear system that Newton's step solves, and the order in which shards can be solved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.planning.sharded.boundary import solve_affine
from adalook.planning.sharded.hosts import ShardHosts
from adalook.planning.sharded.rounds import Limits, Rounds


def going_on() -> bool:
    return False


@pytest.mark.parametrize("size", [1, 2, 7, 60])
@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
def test_a_linear_system_is_solved_in_as_many_exchanges_as_it_has_numbers(size: int, discount: float) -> None:
    rng = np.random.default_rng(size)
    matrix = rng.random((size, size)) * (rng.random((size, size)) < 0.3)
    matrix *= discount / max(1.0, matrix.sum(axis=1).max())
    residual = rng.standard_normal(size) * 1e6
    step, exchanges = solve_affine(lambda d: matrix @ d, residual, 1e-12, going_on)
    assert exchanges <= size
    np.testing.assert_allclose(step, np.linalg.solve(np.eye(size) - matrix, residual), rtol=1e-8)


def test_it_ends_when_it_is_good_enough_or_told_to() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((50, 50)) * 0.99 / 50
    residual = rng.standard_normal(50)
    step, few = solve_affine(lambda d: matrix @ d, residual, 1e-2, going_on)
    left = residual - (step - matrix @ step)
    assert np.linalg.norm(left) <= 1e-2 * np.linalg.norm(residual)
    assert few < solve_affine(lambda d: matrix @ d, residual, 1e-12, going_on)[1]
    assert solve_affine(lambda d: matrix @ d, residual, 1e-12, lambda: True)[1] == 1


def test_the_same_residual_gives_the_same_bits() -> None:
    rng = np.random.default_rng(1)
    matrix, residual = rng.random((30, 30)) / 40, rng.standard_normal(30)
    one, other = (solve_affine(lambda d: matrix @ d, residual.copy(), 1e-9, going_on)[0] for _ in range(2))
    assert np.array_equal(one, other)


def rounds_of(mdp: al.MDP, path: Path, shards: Any) -> Rounds:
    mdp.save(path)
    model = al.ShardedMDP.load(path, shards=shards)
    return Rounds(model._source, model.edges, ShardHosts(None, model._source, model.edges), Limits(1e-8, None, None), 0)


def test_shards_that_lead_to_each_other_are_one_block(tmp_path: Path) -> None:
    """States 0-3 lead to 4-7 and back; 8-11 lead to both, 12-15 to themselves, and nobody leads to 8-11."""
    ahead = np.array([1, 2, 3, 4, 5, 6, 7, 0, 9, 0, 11, 12, 13, 14, 15, 12])
    mdp = al.MDP(np.arange(16.0)[:, None], ahead[:, None], 0.9)
    rounds = rounds_of(mdp, tmp_path / "m.npz", 4)
    assert rounds.stages == [[0, 1, 3], [2]]
    assert rounds.boundary.inner([0, 1, 3]).tolist() == [state in (0, 4) for state in rounds.boundary.states]
    assert not rounds.boundary.inner([2]).any()
    solution = al.ShardedMDP.load(tmp_path / "m.npz", shards=4).solve()
    assert solution.converged
    assert solution.trace[-1].improved == 1  # what nobody leads to comes last, once
    np.testing.assert_allclose(solution.values, al.solve(mdp).values, atol=1e-7)


def test_one_way_shards_are_solved_once_each(tmp_path: Path) -> None:
    ahead = np.minimum(np.arange(100) + 1, 99)[:, None]
    mdp = al.MDP((np.arange(100) == 99).astype(float)[:, None], ahead, 0.99)
    mdp.save(tmp_path / "m.npz")
    solution = al.ShardedMDP.load(tmp_path / "m.npz", shards=10).solve()
    assert solution.converged
    assert sum(item.improved for item in solution.trace) == 10


@pytest.mark.parametrize("seed", range(12))
def test_patient_models_that_are_mixed_up_end_within_few_rounds(seed: int, tmp_path: Path) -> None:
    """Most transitions lead to other shards, and γ is near one: plain rounds would take thousands."""
    mdp = al.zoo.garnet(200, 3, 1 + seed % 4, seed=seed, discount=0.999)
    mdp.save(tmp_path / "m.npz")
    solution = al.ShardedMDP.load(tmp_path / "m.npz", shards=2 + seed % 5).solve()
    assert solution.converged
    assert solution.rounds <= 30
    assert np.abs(solution.values - al.solve(mdp).values).max() <= 1e-7
