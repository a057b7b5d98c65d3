"""Blocks: models in files, solved without being read into memory, to the same answers."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import adalook as al
from adalook.mdp.files import npz
from adalook.planning.evaluation import blocks
from tests.processes import child

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
    monkeypatch.setattr(npz, "CHECKED_NUMBERS", 40_000)
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


LIMITED = """
import resource, sys
import numpy as np
import adalook as al

def data_bytes():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmData"))

small, large = sys.argv[1:]
al.solve(al.MDP.load(small, mmap=True), tolerance=1e-6)  # compiles
al.MDP.load(small)
room = data_bytes() + 32 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (room, room))
try:
    al.MDP.load(large)
except al.AdalookError as error:
    print(error)
sol = al.solve(al.MDP.load(large, mmap=True), tolerance=1e-6)
print(sol.status.name, sol.policy_loss <= 1e-6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit leaves out mapped files on Linux only")
def test_a_model_larger_than_the_memory_that_is_left(tmp_path):
    """48 MB of model, 32 MiB of memory to solve it in."""

    def build(n, path):
        def fn(s):
            return ((s[:, None] * 7 + np.arange(100)) % 101) / 4.0 + 0.1, (s[:, None] + np.arange(100) - 50) % n

        al.MDP.from_function(fn, n, 100, 0.9, path=path, batch_size=4_096)

    build(200, tmp_path / "small.npz")
    build(40_000, tmp_path / "large.npz")
    assert (tmp_path / "large.npz").stat().st_size > 48_000_000
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "small.npz"), str(tmp_path / "large.npz")]
    environment = {**os.environ, "ADALOOK_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with child(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        answer = process.communicate(timeout=300)[0].splitlines()
    assert "mmap=True" in answer[0]
    assert answer[1] == "CONVERGED True"


def test_a_policy_whose_sweeps_are_slow_is_eliminated_within_its_band():
    """A long queue, γ near 1: sweeps alone had not ended after 80 passes."""
    sol = al.solve(al.zoo.queue(3_000, discount=0.99999), al.Auto("blocks"), tolerance=1e-6, max_iterations=60)
    assert sol.converged
    assert "blocks, banded LU" in sol.solvers
