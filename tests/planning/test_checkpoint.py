"""Checkpoints: a killed solve goes on from its last saved values, and from nobody else's."""

from __future__ import annotations

import json
import os
import signal
import sys

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.planning import checkpoint
from adalook.planning.checkpoint import SolveCheckpoint
from tests.processes import child, wait_until

ENDLESS = al.MDP([[1.0, 0.5], [0.0, 2.0]], [[0, 1], [1, 0]], 1 - 1e-9)
"""Value iteration closes in on its values by a billionth a pass."""


@pytest.fixture
def often(monkeypatch):
    """Let checkpoints be written after every pass."""
    monkeypatch.setattr(checkpoint, "INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)


def test_a_stopped_solve_goes_on_bit_for_bit(tmp_path):
    file, method = tmp_path / "solve.ckpt", al.ValueIteration()
    first = al.solve(ENDLESS, method, max_iterations=30, checkpoint=file)
    second = al.solve(ENDLESS, method, max_iterations=12, checkpoint=file)
    whole = al.solve(ENDLESS, method, max_iterations=42)
    assert (first.passes, second.passes, len(second.trace)) == (30, 42, 12)
    assert second.iterations == whole.iterations
    assert second.values.tobytes() == whole.values.tobytes()
    assert second.policy_loss == whole.policy_loss
    assert "went on from a checkpoint of pass 30" in second.explain()
    assert "passes 31 to 42" in second.explain()
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name]


def test_a_killed_solve_goes_on(tmp_path):
    file = tmp_path / "solve.ckpt"
    script = (
        "import sys, adalook as al\n"
        "from adalook.planning import checkpoint\n"
        "checkpoint.INTERVAL_SECONDS, checkpoint.SHARE = 0.0, 1e9\n"
        "mdp = al.MDP([[1.0, 0.5], [0.0, 2.0]], [[0, 1], [1, 0]], 1 - 1e-9)\n"
        "al.solve(mdp, al.ValueIteration(), tolerance=1e-3, checkpoint=sys.argv[1])\n"
    )

    def passes() -> int:
        return json.loads(file.read_bytes().split(b"\n", 1)[0])["passes"] if file.exists() else 0

    with child([sys.executable, "-c", script, str(file)]) as process:
        assert wait_until(lambda: passes() > 5, 60.0)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    saved = passes()
    sol = al.solve(ENDLESS, al.ValueIteration(), tolerance=1e-3, max_iterations=3, checkpoint=file)
    whole = al.solve(ENDLESS, al.ValueIteration(), tolerance=1e-3, max_iterations=saved + 3)
    assert sol.passes == saved + 3
    assert sol.values.tobytes() == whole.values.tobytes()


@pytest.mark.parametrize(
    "mdp",
    [
        al.zoo.maze(size=15, seed=2),
        al.zoo.garnet(300, 3, 4, seed=1, discount=0.999),
        al.zoo.queue(300, discount=0.9999),
        al.MDP([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]], [[1, 2], [2, 2], [2, 2]], 1.0),
    ],
    ids=["maze", "garnet", "queue", "total reward"],
)
def test_every_kind_of_model_goes_on_and_is_certified(mdp, tmp_path, often):
    file = tmp_path / "solve.ckpt"
    al.solve(mdp, max_iterations=1, checkpoint=file)
    sol, whole = al.solve(mdp, checkpoint=file), al.solve(mdp)
    assert sol.converged
    assert np.abs(sol.values - whole.values).max() <= 1e-7
    again = al.solve(mdp, checkpoint=file)
    assert again.converged
    assert again.passes > sol.passes
    assert len(again.trace) <= 2, "what has converged needs to be confirmed only"


@pytest.mark.parametrize(
    ("mdp", "method", "tolerance", "what"),
    [
        (al.zoo.chain(n=6, discount=0.8), al.HPI(2), 1e-8, "model"),
        (al.zoo.chain(n=7), al.HPI(2), 1e-8, "model"),
        (al.zoo.chain(n=6), al.HPI(3), 1e-8, "method"),
        (al.zoo.chain(n=6), al.HPI(2), 1e-7, "tolerance"),
    ],
)
def test_a_checkpoint_of_another_solve_is_refused_and_kept(mdp, method, tolerance, what, tmp_path):
    file = tmp_path / "solve.ckpt"
    al.solve(al.zoo.chain(n=6), al.HPI(2), checkpoint=file)
    before = file.read_bytes()
    with pytest.raises(FileError, match=f"belongs to a solve of another {what}"):
        al.solve(mdp, method, tolerance=tolerance, checkpoint=file)
    assert file.read_bytes() == before


def test_another_prior_is_another_method(tmp_path):
    mdp, file = al.zoo.chain(n=6), tmp_path / "solve.ckpt"
    prior = al.solve(mdp).values
    al.solve(mdp, al.QLPI({2: 0.5}, prior=prior), checkpoint=file)
    assert al.solve(mdp, al.QLPI({2: 0.5}, prior=prior.copy()), checkpoint=file).converged
    with pytest.raises(FileError, match="another method"):
        al.solve(mdp, al.QLPI({2: 0.5}, prior=prior + 1.0), checkpoint=file)


@pytest.mark.parametrize("place", [0.0, 0.3, 0.9])
def test_damage_is_found(place, tmp_path):
    mdp, file = al.zoo.chain(n=50), tmp_path / "solve.ckpt"
    al.solve(mdp, checkpoint=file)
    content = bytearray(file.read_bytes())
    header = content.index(b"\n")
    at = int(place * header) if place < 0.5 else header + int(place * (len(content) - header))
    content[at] ^= 1
    file.write_bytes(content)
    with pytest.raises(FileError):
        al.solve(mdp, checkpoint=file)
    file.write_bytes(bytes(content[:-3]))
    with pytest.raises(FileError):
        al.solve(mdp, checkpoint=file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_in_its_place_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "solve.ckpt")
    with pytest.raises(FileError, match="pipe"):
        al.solve(al.zoo.chain(n=3), checkpoint=tmp_path / "solve.ckpt")


def test_places_that_cannot_be_written_are_named_before_the_work(tmp_path):
    mdp = al.zoo.chain(n=3)
    with pytest.raises(FileError, match="Make the directory"):
        al.solve(mdp, checkpoint=tmp_path / "missing" / "solve.ckpt")
    with pytest.raises(FileError, match="cannot write the checkpoint"):
        al.solve(mdp, checkpoint=tmp_path)
    (tmp_path / "letter").write_text("Dear all")
    with pytest.raises(FileError, match="not a checkpoint"):
        al.solve(mdp, checkpoint=tmp_path / "letter")
    with pytest.raises(ArgumentError, match="checkpoint is wrong"):
        al.solve(mdp, checkpoint=3)
    with pytest.raises(ArgumentError, match="finite horizon takes no checkpoint"):
        al.solve(mdp, horizon=3, checkpoint=tmp_path / "solve.ckpt")


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    file = SolveCheckpoint(tmp_path / "solve.ckpt", ENDLESS, al.Auto(), 1e-8)
    clock = iter([100.0, 130.0]).__next__
    monkeypatch.setattr(checkpoint, "perf_counter", clock)
    file.write(checkpoint.Saved(np.zeros(2), np.zeros(2, np.int32), 1, 1))
    assert file._next == 130.0 + 30.0 / checkpoint.SHARE


def test_a_file_of_another_tolerance_says_which(tmp_path):
    mdp = al.zoo.chain(n=3)
    al.solve(mdp, tolerance=1e-3, checkpoint=tmp_path / "c")
    with pytest.raises(al.errors.FileError, match=r"another tolerance: expected 1e-06, got 0.001"):
        al.solve(mdp, tolerance=1e-6, checkpoint=tmp_path / "c")
