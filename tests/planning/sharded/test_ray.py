"""Shards on Ray: the same bits on any number of actors, when actors are killed, and when a machine is lost."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import adalook as al
from adalook.engines.ray import RayHosts
from adalook.engines.session import PREFIX
from adalook.errors import AdalookError, ModelError
from adalook.planning.sharded.rounds import Rounds
from tests.cluster import can_make_namespaces, ray_cluster
from tests.planning.sharded import models
from tests.planning.sharded.test_hosts import assert_same, off_the_end
from tests.processes import child, processes_of, running, wait_until

pytestmark = pytest.mark.slow
pytest.importorskip("ray")

ALL_SECONDS = 900.0


@pytest.fixture(scope="module")
def expected() -> al.ShardedSolution:
    return models.slippery_grid(16, 3).solve()


@pytest.mark.parametrize("actors", [1, 2, 3])
def test_actors_give_the_same_bits(actors: int, expected: al.ShardedSolution) -> None:
    solution = models.slippery_grid(16, 3).solve(engine=al.Ray(actors=actors))
    assert solution.restarts == 0
    assert_same(solution, expected)


def test_actors_killed_at_twenty_moments(expected: al.ShardedSolution, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between rounds, after some delay: the actor then builds, solves, certifies or waits."""
    rng = random.Random(0)
    run_round, kills = Rounds.run_round, 0

    def run_and_kill(self: Rounds) -> None:
        nonlocal kills
        hosts = self._hosts.hosts
        assert isinstance(hosts, RayHosts)
        if kills < 20 and rng.random() < 0.5:
            victim, delay = rng.choice(hosts.process_ids), rng.choice((0.0, 0.0, 0.002, 0.01, 0.05))
            threading.Thread(target=kill_after, args=(delay, victim)).start()
            kills += 1
        run_round(self)

    def kill_after(delay: float, process: int) -> None:
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)

    monkeypatch.setattr(Rounds, "run_round", run_and_kill)
    restarts = 0
    for _ in range(5):
        solution = models.slippery_grid(16, 3).solve(engine=al.Ray(actors=2))
        restarts += solution.restarts
        assert_same(solution, expected)
        if kills == 20:
            break
    assert kills == 20
    assert restarts >= 10  # some come when all is over, or hit one that is dead already


def test_what_a_shard_raises_is_raised_here() -> None:
    with pytest.raises(ModelError, match="a successor of state 9, action 0 is out of range"):
        al.ShardedMDP.from_function(off_the_end, 10, 1, 0.9).solve(engine=al.Ray(actors=2))


def test_nobody_at_the_address_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with pytest.raises(AdalookError, match=r"no Ray answers at 127.0.0.1:1"):
        models.slippery_grid(5, 2).solve(engine=al.Ray(actors=2, address="127.0.0.1:1"))


ALONE = """
import sys
import adalook as al
from tests.planning.sharded import models

if __name__ == "__main__":
    place, out = sys.argv[1:]
    model, engine = models.slippery_grid(16, 3), al.Ray(actors=2)
    model.solve(engine=engine, checkpoint=place, checkpoint_seconds=0.0, out=out)
"""


def test_a_driver_that_is_killed_leaves_nothing_running_and_the_solve_goes_on(
    tmp_path: Path, expected: al.ShardedSolution
) -> None:
    script, place, out = tmp_path / "solve.py", tmp_path / "checkpoint", tmp_path / "out"
    script.write_text(models.SLOWLY + ALONE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command, before = [sys.executable, str(script), str(place), str(out)], os.listdir("/dev/shm")
    with child(command, env=environment) as driver:
        assert wait_until(lambda: models.rounds_saved(place) >= 2 or driver.poll() is not None, ALL_SECONDS)
        started = [pid for pid in processes_of(f"{PREFIX}{driver.pid}-") if pid != driver.pid]
        assert len(started) >= 4  # gcs_server, raylet, actors
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        assert wait_until(lambda: not any(map(running, started)), 60.0)
        assert not [name for name in os.listdir("/dev/shm") if name not in before and name.startswith("plasma")]
    assert not (out / "sharded.json").exists()
    subprocess.run(command, env=environment, check=True, timeout=ALL_SECONDS)
    assert_same(al.ShardedSolution.load(out), expected)


SCRIPT = """
import sys
import adalook as al
from tests.planning.sharded import models

if __name__ == "__main__":
    address, place, out = sys.argv[1:]
    engine = al.Ray(actors=2, address=address, patience_seconds=20)
    solution = models.slippery_grid(30, 4).solve(engine=engine, checkpoint=place, checkpoint_seconds=0.0, out=out)
    print("restarts", solution.restarts)
"""


@pytest.mark.skipif(not can_make_namespaces(), reason="needs root and iproute2")
@pytest.mark.parametrize("loss", ["killed", "cut off"])
def test_a_machine_that_is_lost_changes_nothing(loss: str, tmp_path: Path) -> None:
    """A head and two workers in network namespaces; one worker is lost in the midst of the rounds."""
    expected = models.slippery_grid(30, 4).solve()
    script, place, out = tmp_path / "solve.py", tmp_path / "checkpoint", tmp_path / "out"
    script.write_text(models.SLOWLY + SCRIPT)
    with ray_cluster(workers=2) as cluster:
        command = cluster.inside(0, sys.executable, str(script), cluster.address, str(place), str(out))
        process: subprocess.Popen[Any] = subprocess.Popen(
            command, env=cluster.environment, stdout=subprocess.PIPE, text=True
        )
        assert wait_until(lambda: models.rounds_saved(place) >= 3 or process.poll() is not None, ALL_SECONDS)
        assert process.poll() is None
        cluster.kill(2) if loss == "killed" else cluster.cut_off(2)
        said, _ = process.communicate(timeout=ALL_SECONDS)
        assert process.returncode == 0
    assert "restarts 1" in said
    assert_same(al.ShardedSolution.load(out), expected)
