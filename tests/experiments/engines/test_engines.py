"""Engines: the same files whatever runs the jobs; workers that fail, die or are left alone."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

import adalook as al
from adalook.cli.main import main
from adalook.errors import ArgumentError, MissingExtraError
from adalook.experiments import atari, minatar
from adalook.experiments.engines.base import ONE_THREAD, EngineError
from adalook.experiments.engines.processes import Processes
from adalook.experiments.engines.ray import RayEngine, check_room, fingerprint, resources_of, run_checked
from adalook.experiments.learning.runs import reproduce_learning
from adalook.experiments.learning.suite import AGENTS, Game, LearningExperiment
from adalook.experiments.methods import hpi
from adalook.experiments.models import MazeModel
from adalook.experiments.registry import chosen_engine, chosen_experiments
from adalook.experiments.runner import reproduce
from adalook.experiments.trial import Trial
from tests.experiments.small import CHAIN, MAZE, SWEEP, Inline, digests
from tests.processes import child, wait_until


@dataclass(frozen=True)
class FatalMaze(MazeModel):
    """Kills its worker the first `times` that it is built; keeps count in a file."""

    counter: str = ""
    times: int = 0

    def build(self) -> al.MDP:
        path = Path(self.counter)
        so_far = len(path.read_bytes()) if path.exists() else 0
        if so_far < self.times:
            path.write_bytes(b"x" * (so_far + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().build()


@dataclass(frozen=True)
class FailingMaze(MazeModel):
    def build(self) -> al.MDP:
        raise ValueError("no such maze")


@dataclass(frozen=True)
class SlowMaze(MazeModel):
    def build(self) -> al.MDP:
        time.sleep(3600)
        return super().build()


@dataclass(frozen=True)
class NosyMaze(MazeModel):
    """Looks at the worker's surroundings."""

    def build(self) -> al.MDP:
        assert all(os.environ[name] == "1" for name in ONE_THREAD)
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        return super().build()


def trial(model: MazeModel, name: str = "job") -> Trial:
    return Trial(name, model, hpi(1))


def children() -> set[int]:
    """Processes of ours, but for multiprocessing's tracker of resources."""
    listing = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    spawned = [line for line in listing.stdout.splitlines() if "spawn_main" in line]
    return {int(re.match(r"\s*(\d+)", line)[1]) for line in spawned}


def test_one_worker_two_workers_and_none_give_the_same_files(tmp_path):
    for name, engine in (("inline", Inline()), ("one", Processes(1)), ("two", Processes(2))):
        reproduce(MAZE, tmp_path / name, engine)
    assert digests(tmp_path / "inline") == digests(tmp_path / "one") == digests(tmp_path / "two")
    assert not children()


def test_a_worker_that_is_killed_is_reported_and_the_run_can_go_on(tmp_path):
    deadly = trial(FatalMaze(8, 0.9, 0, str(tmp_path / "count"), times=1), "deadly")
    with pytest.raises(
        EngineError, match=r"a worker process died while it ran deadly.*run the same command.*--workers"
    ):
        list(Processes(1).run([deadly, trial(MazeModel(8, 0.9, 0), "plain")]))
    assert not children()
    names = [finished.job for finished in Processes(1).run([deadly, trial(MazeModel(8, 0.9, 0), "plain")])]
    assert sorted(names) == ["deadly", "plain"]


def test_a_job_that_raises_is_an_error_that_names_it():
    with pytest.raises(EngineError, match="job broken failed: got ValueError: no such maze") as caught:
        list(Processes(1).run([trial(FailingMaze(8, 0.9, 0), "broken")]))
    assert "in build" in caught.value.__notes__[0]
    assert not children()


def test_stopping_early_ends_every_worker():
    jobs = [trial(MazeModel(8, 0.9, 0), "quick"), *(trial(SlowMaze(8, 0.9, 0), f"slow {i}") for i in range(3))]
    began = time.monotonic()
    with closing(Processes(2).run(jobs)) as outcomes:
        assert next(outcomes).job == "quick"
        assert len(children()) == 2
    assert not children()
    assert time.monotonic() - began < 600  # nobody waited for a slow one


def test_workers_have_one_thread_and_no_ear_for_ctrl_c():
    before = dict(os.environ)
    resource_tracker._resource_tracker._stop()  # as in a new process: it starts with the first worker
    assert [finished.job for finished in Processes(1).run([trial(NosyMaze(8, 0.9, 0))])] == ["job"]
    assert dict(os.environ) == before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("workers", [0, -1, 100_000, 1.5, True])
def test_wrong_numbers_of_workers_are_refused(workers):
    with pytest.raises(ArgumentError, match="workers is wrong"):
        Processes(workers)
    with pytest.raises(ArgumentError, match="workers is wrong"):
        RayEngine(workers=workers)


# ---- Ray


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'adalook\[ray\]'"):
        list(RayEngine().run([trial(MazeModel(8, 0.9, 0))]))
    assert main(["reproduce", "chain", "--engine", "ray", "--out", str(tmp_path)]) == 2
    assert "adalook[ray]" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "x:y"])
def test_an_address_where_nobody_answers_is_said_at_once(address, monkeypatch):
    fail = pytest.fail
    monkeypatch.setattr("adalook.engines.session.import_extra", lambda *_, **__: fail("Ray itself tries for minutes"))
    with pytest.raises(EngineError, match="no Ray answers"):
        list(RayEngine(address).run([trial(MazeModel(8, 0.9, 0))]))


def test_a_machine_with_other_versions_is_refused():
    job = trial(MazeModel(8, 0.9, 0))
    assert run_checked(job, fingerprint()).job == "job"
    with pytest.raises(EngineError, match=r"another numpy: expected 0\.1"):
        run_checked(job, fingerprint() | {"numpy": "0.1"})


PLANNING = (CHAIN, MAZE, SWEEP)
PONG = Game("Pong", "ALE/Pong-v5", interim_episodes=0, final_episodes=0, random_episodes=1)
BREAKOUT = Game("Breakout", "MinAtar/Breakout-v1", interim_episodes=1, final_episodes=2, random_episodes=3)
LEARNING = (
    LearningExperiment(
        dataclasses.replace(minatar.SUITE, games={"Breakout": BREAKOUT}), ("Breakout",), ("ql",), 2, 0.0, 200
    ),
    LearningExperiment(dataclasses.replace(atari.SUITE, games={"Pong": PONG}), ("Pong",), ("depth0",), 1, 0.0, 48),
)
"""By steps, so that results do not depend on how fast machines are."""

ALL_ON_RAY = """
import sys
from pathlib import Path
from adalook.experiments.engines.ray import RayEngine
from adalook.experiments.learning.runs import reproduce_learning
from adalook.experiments.runner import reproduce
from tests.experiments.engines.test_engines import LEARNING, PLANNING

if __name__ == "__main__":
    place, engine = Path(sys.argv[1]), RayEngine(workers=2)
    for experiment in PLANNING:
        reproduce(experiment, place / experiment.name, engine)
    for experiment in LEARNING:
        reproduce_learning(experiment, place / experiment.name, engine, keep_agents=True)
"""


def learnt(directory: Path) -> dict[str, str]:
    """Digests of the agents that an experiment trained: every weight."""
    return {name: digest for name, digest in digests(directory).items() if name.endswith(".safetensors")}


@pytest.mark.slow
def test_all_experiments_give_the_same_on_ray_also_when_the_driver_is_killed_in_between(tmp_path):
    pytest.importorskip("ray")
    script = tmp_path / "on_ray.py"
    script.write_text(ALL_ON_RAY)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])
    }
    command = [sys.executable, str(script), str(tmp_path / "ray")]
    with child(command, env=environment) as driver:
        begun = tmp_path / "ray" / "minatar" / "runs"
        assert wait_until(lambda: list(begun.glob("*--ql--*.json")) or driver.poll() is not None, 900)
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
    kept = {path: path.stat().st_mtime_ns for path in begun.glob("*--ql--*.json")}
    assert kept
    subprocess.run(command, check=True, env=environment, timeout=900)
    assert all(path.stat().st_mtime_ns == time_ for path, time_ in kept.items())  # what was finished is not run again
    for experiment in PLANNING:
        reproduce(experiment, tmp_path / "inline" / experiment.name, Inline())
        assert digests(tmp_path / "inline" / experiment.name) == digests(tmp_path / "ray" / experiment.name)
    for experiment in LEARNING:
        reproduce_learning(experiment, tmp_path / "inline" / experiment.name, Inline(), keep_agents=True)
        agents = learnt(tmp_path / "inline" / experiment.name)
        assert agents
        assert agents == learnt(tmp_path / "ray" / experiment.name)


def test_a_job_says_what_it_needs():
    (job, *_) = LEARNING[1].jobs()[1:]
    assert resources_of(job) == {"num_cpus": 2 if AGENTS["depth0"].config(atari.SUITE).overlap else 1}
    assert resources_of(trial(MazeModel(8, 0.9, 0))) == {"num_cpus": 1}


def test_a_job_that_fits_nowhere_is_said_at_once():
    nodes = [{"Alive": True, "Resources": {"CPU": 2.0}}, {"Alive": False, "Resources": {"CPU": 64.0}}]
    check_room("small", {"num_cpus": 2}, nodes)
    with pytest.raises(
        EngineError, match=r"no machine of the Ray cluster has room for job big: expected 4 cores, got 2"
    ):
        check_room("big", {"num_cpus": 4}, nodes)


# ---- by name


def test_names_of_experiments_and_engines():
    assert [experiment.name for experiment in chosen_experiments("all", seeds=2)] == ["chain", "maze", "sweep"]
    assert [experiment.seeds for experiment in chosen_experiments("all", seeds=2)[1:]] == [2, 2]
    for wrong in ({"name": "labyrinth"}, {"name": "maze", "seeds": 0}, {"name": "chain", "seeds": 3}):
        with pytest.raises(ArgumentError):
            chosen_experiments(**wrong)
    with pytest.raises(ArgumentError, match="for Ray only"):
        chosen_engine("processes", address="127.0.0.1:6379")
    with pytest.raises(ArgumentError, match="processes or ray"):
        chosen_engine("threads")
