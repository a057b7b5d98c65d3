"""Blocks: models in files, solved without being read into memory, to the same answers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import adalook as al
from adalook.mdp.files import npz
from adalook.planning.evaluation import blocks

MODELS = {
    "maze": lambda: al.zoo.maze(size=25, seed=3, discount=0.999),
    "chain": lambda: al.zoo.chain(n=400, discount=0.99),
    "garnet": lambda: al.zoo.garnet(400, 3, 4, seed=1, discount=0.99),
    "queue": lambda: al.zoo.queue(300, discount=0.999),
    "layered": lambda: al.zoo.layered(400),
    "forest": lambda: al.zoo.forest(),
}


@pytest.mark.parametrize("kind", MODELS)
def test_blocks_end_where_other_ways_do(kind, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4_000)
    mdp = MODELS[kind]()
    sol, other = al.solve(mdp, al.Auto("blocks"), tolerance=1e-7), al.solve(mdp, tolerance=1e-7)
    assert sol.converged
    assert sol.solvers[0] == "blocks"
    slack = 2.0**-40 * np.abs(other.values).max()
    assert (sol.lower <= other.upper + slack).all()
    assert (other.lower <= sol.upper + slack).all()
    assert al.evaluate(mdp, sol.policy).values.min() >= (other.lower - 1e-6).min()


def test_an_exact_demand_ends():
    sol = al.solve(al.zoo.garnet(30, 3, 3, seed=2), al.Auto("blocks"), tolerance=0.0)
    assert sol.status in (al.Status.CONVERGED, al.Status.ROUNDING_LIMIT)
    assert sol.policy_loss <= 1e-9


def test_a_mapped_model_is_solved_in_its_file(tmp_path, monkeypatch):
    """The model has 480 bytes a state; what is allocated to check and to solve it is a fraction of that."""
    monkeypatch.setattr(npz, "CHECKED_STATES", 1_000)
    n, actions = 30_000, 40
    rng = np.random.default_rng(0)
    near = np.arange(n)[:, None] + rng.integers(-50, 51, size=(n, actions))
    mdp = al.MDP(rng.standard_normal((n, actions)), np.clip(near, 0, n - 1), 0.99)
    mdp.save(tmp_path / "model.npz")
    whole = al.solve(mdp)
    nbytes = mdp.nbytes
    del mdp
    al.solve(al.MDP.load(tmp_path / "model.npz", mmap=True))  # compiles
    tracemalloc.start()
    sol = al.solve(al.MDP.load(tmp_path / "model.npz", mmap=True), keep_states=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert nbytes >= 480 * n
    assert peak < 0.4 * nbytes
    assert sol.converged
    assert sol.solvers[0] == "blocks"
    assert np.abs(sol.values - whole.values).max() <= 1e-7


def test_blocks_go_on_from_a_checkpoint(tmp_path):
    mdp = al.zoo.maze(size=40, seed=2, discount=0.999)
    mdp.save(tmp_path / "maze.npz")
    mapped = al.MDP.load(tmp_path / "maze.npz", mmap=True)
    file = tmp_path / "maze.ckpt"
    al.solve(mapped, max_iterations=1, checkpoint=file)
    sol = al.solve(mapped, checkpoint=file)
    assert sol.converged
    assert sol.passes > len(sol.trace)
    assert np.abs(sol.values - al.solve(mdp).values).max() <= 1e-7
    al.solve(mdp, checkpoint=file)  # the model is the same, in memory or not
