"""Training on Ray: the same bits on any number of actors, when they are killed, when a machine or driver is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import adalook as al
from adalook.engines.session import PREFIX
from adalook.learning.runs.run import load_agent
from tests.cluster import can_make_namespaces, ray_cluster
from tests.engines.test_ray import short_of
from tests.learning.engines.hoarding import Hoarding
from tests.learning.small import BREAKOUT, fingerprint, small_config
from tests.processes import child, processes_of, running, wait_until

ROOT = Path(__file__).parents[3]
SECONDS = 1800.0

# ---- Ray on this machine

TWENTY_KILLS = """
import json, os, random, signal, sys, threading
from pathlib import Path
import adalook as al
from adalook.engines.session import ray_session
from tests.learning.small import trained

def listening():
    "Addresses on which this process and those it started listen, as hexadecimal in /proc."
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    inodes = set()
    for pid in ours:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(os.readlink(link))
            except OSError:
                pass
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table]
    return [line[1].partition(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes]

if __name__ == "__main__":
    rng, kills = random.Random(0), []

    def kill(agent):
        acting = agent.trainer.acting
        if agent.step % 16 == 0 and len(kills) < 20:
            host = rng.randrange(2)
            pid = acting._hosts.process_ids[host]
            delay = rng.choice((0.0, 0.001, 0.005, 0.02))
            kills.append(pid)
            threading.Timer(delay, os.kill, (pid, signal.SIGKILL)).start()

    said = {}
    with ray_session(None, 3) as ray:
        said["listening"] = sorted(set(listening()))
        said["dashboard"] = bool(ray.get_runtime_context().gcs_address) and ray._private.worker._global_node.webui_url
        alone, _ = trained(None, 160)
        said["equal"] = {n: trained(al.Ray(n), 160)[0] == alone for n in (1, 2, 3)}
        alone, _ = trained(None, 400)
        killed, lost = trained(al.Ray(2), 400, kill)
        said["kills"], said["lost"], said["equal when killed"] = len(kills), lost, killed == alone
    print(json.dumps(said))
"""


@pytest.mark.slow
def test_actors_and_twenty_kills_change_no_bit_and_nobody_outside_is_listened_to(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    said = json.loads(output_of(TWENTY_KILLS, tmp_path).splitlines()[-1])
    assert said["equal"] == {"1": True, "2": True, "3": True}
    assert said["kills"] == 20
    assert said["lost"] >= 15  # a kill may hit a process that is dead already
    assert said["equal when killed"]
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert said["listening"]
    assert set(said["listening"]) <= loopback
    assert not said["dashboard"]


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_nothing_running_and_the_run_resumes(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    command = [sys.executable, "-m", "adalook", "train", BREAKOUT, *settings, "--evaluation-episodes", "0"]
    on_ray = [
        *command,
        "--engine",
        "ray",
        "--actors",
        "2",
        "--checkpoint-period-steps",
        "40",
        "--out",
        str(tmp_path / "a"),
    ]
    before = os.listdir("/dev/shm")
    with child([*on_ray, "--steps", "100000"], cwd=ROOT, stderr=subprocess.PIPE, text=True) as driver:
        saved = (tmp_path / "a" / "checkpoints").glob
        assert wait_until(lambda: list(saved("*/manifest.json")) or driver.poll() is not None, SECONDS)
        started = [pid for pid in processes_of(f"{PREFIX}{driver.pid}-") if pid != driver.pid]
        assert len(started) >= 4  # gcs_server, raylet, actors
        assert list((tmp_path / "a" / "ray").glob("session_*/logs/raylet.out"))
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        assert wait_until(lambda: not any(map(running, started)), 60.0)
        assert not [name for name in os.listdir("/dev/shm") if name not in before and name.startswith("plasma")]
    step = load_agent(tmp_path / "a").step
    assert step > 0
    last = str(step + 100)
    subprocess.run(
        [sys.executable, "-m", "adalook", "train", "--resume", str(tmp_path / "a"), "--steps", last],
        check=True,
        cwd=ROOT,
        timeout=SECONDS,
        capture_output=True,
    )
    subprocess.run([*command, "--steps", last, "--out", str(tmp_path / "b")], check=True, cwd=ROOT, timeout=SECONDS)
    assert fingerprint(load_agent(tmp_path / "a")) == fingerprint(load_agent(tmp_path / "b"))


SETTINGS = {
    "num_envs": 4,
    "hidden_units": 16,
    "buffer_transitions": 600,
    "learning_starts_steps": 20,
    "batch_transitions": 8,
    "ranked_transitions": 20,
}


ASYNCHRONOUS = """
import json, os, signal
import adalook as al
from tests.learning.small import BREAKOUT, small_config

if __name__ == "__main__":
    agent = al.QLDQN(BREAKOUT, small_config(), seed=3, engine=al.Ray(2, asynchronous=True, calls_in_flight=3))
    rounds, in_flight, said = [], set(), {}
    for done in agent.rounds():
        acting = agent.trainer.acting
        rounds.append((len(done.decisions), len(done.updates), done.staleness))
        in_flight |= {len(calls) for calls in acting._calls}
        if agent.step == 200:
            os.kill(acting._hosts.process_ids[1], signal.SIGKILL)
        if agent.step >= 400:
            break
    said = {"rounds": rounds, "in flight": sorted(in_flight), "lost": acting.lost, "step": agent.step}
    agent.forget_training()
    print(json.dumps(said))
"""


@pytest.mark.slow
def test_asynchronous_actors_are_bounded_and_say_how_stale_they_are(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    said = json.loads(output_of(ASYNCHRONOUS, tmp_path).splitlines()[-1])
    decisions, updates, staleness = zip(*said["rounds"], strict=True)
    assert set(decisions) == {2}  # each reply is a round of its own
    assert said["step"] == 400
    assert sum(updates) == sum(1 for step in range(1, 401) if step > 100)  # as many as in one process, whoever is late
    assert max(said["in flight"]) <= 3
    assert said["lost"] == 1
    assert min(staleness) == 0
    # An answer was asked for at most three of its actor's rounds ago; between those the other may have made some more.
    assert 0 < max(staleness) < 100


SHORT = """
import os, sys
import numpy as np
import adalook as al
from adalook.engines import session
from tests.learning.small import BREAKOUT, small_config
from tests.learning.engines.hoarding import Hoarding

if __name__ == "__main__":
    session.OBJECT_STORE_BYTES = 80 * 2**20
    fault, place = sys.argv[1:]
    env = Hoarding("Breakout", os.getpid(), place) if fault == "memory" else BREAKOUT
    agent = al.QLDQN(env, small_config(), seed=3, engine=al.Ray(2))
    kept = []
    try:
        for done in agent.rounds():
            if done.step == 120:
                agent.save(place)
            if done.step >= 120 and fault == "store":
                kept.append(agent.trainer.acting._hosts.publish(np.ones(10 * 2**20, np.uint8)))
            if done.step >= 4000:
                break
    except al.AdalookError as error:
        print(error)
    agent.forget_training()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("store", "the object store of Ray is full: got Local disk is full. The last checkpoint"),
        ("memory", "actor . died 4 times in a row: got it was out of memory. Go on from the last checkpoint"),
    ],
)
def test_training_that_runs_short_ends_with_one_line_and_its_checkpoint(fault: str, line: str, tmp_path: Path) -> None:
    """Real shortages: the store is filled up, the simulator takes more and more memory in the actors."""
    pytest.importorskip("ray")
    said = output_of(SHORT, tmp_path, fault, str(tmp_path / "run"), env=short_of(fault)).splitlines()
    assert len(said) == 1
    assert re.match(line, said[0])
    env = Hoarding("Breakout", os.getpid(), "") if fault == "memory" else BREAKOUT
    assert al.QLDQN.load(tmp_path / "run", env).step == 120


def output_of(script: str, place: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    """What a script says, which must end well."""
    path = place / "script.py"
    path.write_text(script)
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=(os.environ if env is None else env) | {"PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- several machines

CLUSTER = """
import sys
from pathlib import Path
import adalook as al
from tests.learning.small import BREAKOUT, small_config

if __name__ == "__main__":
    address, place, steps = sys.argv[1:]
    engine = al.Ray(actors=2, address=address, patience_seconds=15)
    agent = al.QLDQN(BREAKOUT, small_config(), seed=3, engine=engine)
    for _ in agent.rounds():
        Path(place, "step").write_text(str(agent.step))
        if agent.step >= int(steps):
            break
    agent.save(Path(place, "run"))
    print("lost", agent.trainer.acting.lost)
    agent.forget_training()
"""


@pytest.mark.slow
@pytest.mark.skipif(not can_make_namespaces(), reason="needs root and iproute2")
@pytest.mark.parametrize("loss", ["killed", "cut off"])
def test_a_machine_that_is_lost_changes_nothing(loss: str, tmp_path: Path) -> None:
    """A head and two workers in network namespaces; one worker is lost in the midst of training."""
    pytest.importorskip("ray")
    steps = 600
    alone = al.QLDQN(BREAKOUT, small_config(), seed=3).learn(steps=steps, progress=False)
    script = tmp_path / "train.py"
    script.write_text(CLUSTER)
    with ray_cluster(workers=2) as cluster:
        command = cluster.inside(0, sys.executable, str(script), cluster.address, str(tmp_path), str(steps))
        with child(command, env=cluster.environment, stdout=subprocess.PIPE, text=True) as driver:
            begun = tmp_path / "step"
            assert wait_until(lambda: begun.exists() or driver.poll() is not None, SECONDS)
            assert driver.poll() is None
            cluster.kill(2) if loss == "killed" else cluster.cut_off(2)
            said, _ = driver.communicate(timeout=SECONDS)
            assert driver.returncode == 0
    assert said.startswith("lost ")
    assert int(said.split()[1]) >= 1
    result: Any = al.QLDQN.load(tmp_path / "run")
    assert fingerprint(result) == fingerprint(alone)
