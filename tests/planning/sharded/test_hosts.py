"""Hosts of shards: the same bits in one process and in several, and after any of them is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.engines.processes import ProcessHosts
from adalook.errors import ArgumentError, FileError, ModelError
from adalook.planning.sharded.rounds import Rounds
from adalook.storage.arrays import pack_arrays, unpack_arrays
from tests.planning.sharded import models
from tests.processes import child, wait_until


def processes(count: int) -> Any:
    return al.LocalProcesses(actors=count)


def assert_same(one: al.ShardedSolution, other: al.ShardedSolution) -> None:
    """Every number is the same, to the bit."""
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.policy, other.policy)
    assert (one.low, one.high, one.policy_loss, one.status) == (other.low, other.high, other.policy_loss, other.status)
    assert [item[:-1] for item in one.trace] == [item[:-1] for item in other.trace]


@pytest.fixture(scope="module")
def expected() -> al.ShardedSolution:
    return models.slippery_grid(16, 3).solve()


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_processes_give_the_same_bits(count: int, expected: al.ShardedSolution) -> None:
    solution = models.slippery_grid(16, 3).solve(engine=processes(count))
    assert solution.restarts == 0
    assert_same(solution, expected)


def test_a_killed_process_changes_nothing(expected: al.ShardedSolution, monkeypatch: pytest.MonkeyPatch) -> None:
    run_round = Rounds.run_round

    def run_and_kill(self: Rounds) -> None:
        run_round(self)
        hosts = self._hosts.hosts
        assert isinstance(hosts, ProcessHosts)
        if len(self.trace) == 4:
            os.kill(hosts.process_ids[1], signal.SIGKILL)

    monkeypatch.setattr(Rounds, "run_round", run_and_kill)
    solution = models.slippery_grid(16, 3).solve(engine=processes(2))
    assert solution.restarts == 1
    assert_same(solution, expected)


@pytest.mark.slow
def test_processes_killed_at_twenty_moments(expected: al.ShardedSolution, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while they build their shards, and while they work."""
    rng = np.random.default_rng(0)
    start = ProcessHosts._start
    seen: list[int] = []

    def note(self: ProcessHosts, number: int) -> Any:
        worker = start(self, number)
        seen.append(worker.process.pid or 0)
        return worker

    monkeypatch.setattr(ProcessHosts, "_start", note)
    for _ in range(20):
        seen.clear()

        def kill_later(delay: float, victim: int) -> None:
            time.sleep(delay)
            if len(seen) > victim:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(seen[victim], signal.SIGKILL)

        killer = threading.Thread(target=kill_later, args=(float(rng.uniform(0.0, 4.0)), int(rng.integers(2))))
        killer.start()
        solution = models.slippery_grid(16, 3).solve(engine=processes(2))
        killer.join()
        assert_same(solution, expected)


def test_what_a_shard_raises_is_raised_here() -> None:
    def lost(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(states), 1)), states[:, None]

    with pytest.raises(ArgumentError, match="cannot be sent to other processes"):
        al.ShardedMDP.from_function(lost, 10, 1, 0.9).solve(engine=processes(1))
    with pytest.raises(ModelError, match="a successor of state 9, action 0 is out of range"):
        al.ShardedMDP.from_function(off_the_end, 10, 1, 0.9).solve(engine=processes(1))


def off_the_end(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((len(states), 1)), (states + 1)[:, None]


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path: Path, expected: al.ShardedSolution) -> None:
    model, place = models.slippery_grid(16, 3), tmp_path / "checkpoint"
    for limit in (2, 4, 5):
        stopped = model.solve(max_rounds=limit, checkpoint=place)
        assert stopped.status is al.Status.ITERATION_LIMIT
        assert stopped.rounds == limit
    solution = model.solve(checkpoint=place, checkpoint_seconds=0.0)
    assert_same(solution, expected)
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("changed", "packed", "word"),
    [("x", False, "shape"), ("g", False, "shape"), ("nobody", True, "claim")],
)
def test_a_checkpoint_that_others_wrote_is_refused(tmp_path: Path, changed: str, packed: bool, word: str) -> None:
    models.slippery_grid(16, 3).solve(max_rounds=2, checkpoint=tmp_path)
    path = tmp_path / "checkpoint.npz"
    arrays = unpack_arrays(path.read_bytes(), path) | {changed: np.zeros(2**20 if packed else 3)}
    path.write_bytes(pack_arrays(arrays, compress=packed))
    with pytest.raises(FileError, match=word):
        models.slippery_grid(16, 3).solve(checkpoint=tmp_path)


def test_a_checkpoint_of_another_solve_is_refused(tmp_path: Path) -> None:
    models.slippery_grid(16, 3).solve(max_rounds=2, checkpoint=tmp_path)
    for other in (models.slippery_grid(16, 2), models.slippery_grid(16, 3, discount=0.9), models.slippery_grid(15, 3)):
        with pytest.raises(FileError, match="another solve"):
            other.solve(checkpoint=tmp_path)
    (tmp_path / "checkpoint.npz").write_bytes(b"PK")
    with pytest.raises(FileError, match="damaged"):
        models.slippery_grid(16, 3).solve(checkpoint=tmp_path)


SCRIPT = """
import sys
import adalook as al
from tests.planning.sharded import models

if __name__ == "__main__":
    engine = al.LocalProcesses(actors=2)
    model = models.slippery_grid(16, 3)
    model.solve(engine=engine, checkpoint=sys.argv[1], checkpoint_seconds=0.0, out=sys.argv[2])
"""


@pytest.mark.slow
def test_the_driver_killed_at_any_round_goes_on(tmp_path: Path, expected: al.ShardedSolution) -> None:
    script = tmp_path / "solve.py"
    script.write_text(models.SLOWLY + SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for wanted in (1, 3, 5):
        place, out = tmp_path / f"checkpoint-{wanted}", tmp_path / f"out-{wanted}"
        command = [sys.executable, str(script), str(place), str(out)]
        with child(command, env=environment) as process:
            assert wait_until(lambda place=place, wanted=wanted: models.rounds_saved(place) >= wanted, 300.0)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert not (out / "sharded.json").exists()
        subprocess.run(command, env=environment, check=True, timeout=300)
        assert_same(al.ShardedSolution.load(out), expected)
