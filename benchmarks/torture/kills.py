"""kill −9 at random moments: of saves, of training, of experiments; what resumes is what was never interrupted."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from adalook.learning.runs.directory import RunDirectory, load_newest
from adalook.storage.serializer import Segment
from benchmarks.results import ROOT
from benchmarks.torture.outcome import Row, Scale

LOST, UNREADABLE, DIFFERENT, LEFTOVERS = "reported save lost", "unreadable", "resumed differently", "left files"
BAD = frozenset({LOST, UNREADABLE, DIFFERENT, LEFTOVERS, "hang"})
SAVES, TRAININGS, EXPERIMENTS, KILLED_ACTORS = 2_000, 100, 40, 40
"""Kills, in the full torture."""
KILLS_IN_A_RUN = 10
SOONER = 0.7
"""Kills come by so much sooner after a run that ended before its time: a machine may be less busy than at first."""
LAST_SECONDS = 3_000.0
"""What a run that is no longer killed may take; a busy machine is slow."""


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


def _save(place: Path, report: int) -> None:
    """Save one checkpoint after another, and report each when it is safe."""
    with RunDirectory(place) as run:
        found = run.load_newest()
        for step in range(1 + (0 if found is None else found.step), 10**9):
            full = [Segment(np.full(5_000, number)) for number in range(step, step + 5)]
            run.save(step, {"agent": np.full(2_000, step), "full": full})
            os.write(report, f"{step} ".encode())


def _saves(scale: Scale, rng: np.random.Generator) -> Row:
    """Kill savers that are forked, which is a hundred times cheaper than to start them."""
    row = Row("kill -9", SAVING, BAD, "the last one reported can be read, or a newer one")
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(name) / "run"
        for _ in range(scale.count(SAVES, least=3)):
            reports, report = os.pipe()
            pid = os.fork()
            if not pid:
                with contextlib.suppress(BaseException):
                    _save(place, report)
                os._exit(1)
            os.close(report)
            with open(reports, "rb") as file:
                first = file.read(1)
                time.sleep(float(rng.uniform(0.0, 0.1)))
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                reported = [int(step) for step in (first + file.read()).split()] or [0]
            try:
                found = load_newest(place)
                assert found is not None
                whole = bool((found.state["agent"] == found.step).all())
                row.add("readable" if whole and found.step >= reported[-1] else LOST, f"{found.step} < {reported[-1]}")
            except Exception as error:
                row.add(UNREADABLE, repr(error))
        with RunDirectory(place):  # removes what killed writers left
            pass
        left = [path.name for path in place.rglob(".adalook-*.tmp")]
        row.add(LEFTOVERS if left else "nothing left behind", str(left[:5]))
    return row


def _digest(place: Path, names: tuple[str, ...]) -> str:
    state = hashlib.sha256()
    for name in names:
        for path in sorted(place.glob(name)):
            state.update(path.name.encode() + path.read_bytes())
    return state.hexdigest()


def _killed_until_done(command: Callable[[], list[str]], rng: np.random.Generator, kills: int, longest: float) -> int:
    """Start a command, kill it some times at random moments and start it again; returns how often it was killed."""
    killed = 0
    while True:
        with subprocess.Popen(
            command(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        ) as process:
            try:
                process.wait(timeout=float(rng.uniform(0.1, 1.0)) * longest if killed < kills else LAST_SECONDS)
                return killed
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if killed == kills:
                    return killed
                killed += 1


def _training(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row("kill -9", TRAINING, BAD, "an agent that was killed and resumed has the log of one that was not")
    flags = ["CartPole-v1", "--agent", "dqn", "--steps", "1500", "--evaluation-episodes", "1", "--no-tensorboard"]
    flags += ["--checkpoint-period-steps", "200"]
    base = [sys.executable, "-m", "adalook", "train"]
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        began = time.perf_counter()
        subprocess.run(
            [*base, *flags, "--out", str(whole)], env=_environment(), check=True, capture_output=True, timeout=600
        )
        seconds = time.perf_counter() - began
        wanted = _digest(whole, ("log.jsonl",))
        for number in range(scale.count(TRAININGS, least=1) // 4 + 1):
            place = Path(name) / f"run-{number}"
            first, again = [*base, *flags, "--out", str(place)], [*base, "--resume", str(place), "--steps", "1500"]
            killed = _killed_until_done(
                lambda place=place, first=first, again=again: again if (place / "config.json").exists() else first,
                rng,
                4,
                seconds,
            )
            seconds *= 1.0 if killed else SOONER
            same = _digest(place, ("log.jsonl",)) == wanted
            row.add("the same" if same else DIFFERENT, f"killed {killed} times")
            row.outcomes["the same" if same else DIFFERENT] += max(0, killed - 1)
            if list(place.rglob(".adalook-*.tmp")):
                row.add(LEFTOVERS, str(place))
    return row


def _experiments(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row("kill -9", EXPERIMENT, BAD, "the records are those of an uninterrupted run")
    base = [sys.executable, "-m", "adalook", "reproduce", "chain", "--out"]
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        began = time.perf_counter()
        subprocess.run([*base, str(whole)], env=_environment(), check=True, capture_output=True, timeout=600)
        seconds = time.perf_counter() - began
        files = ("chain/records.json", "chain/traces.npz", "chain/models.json")
        wanted = _digest(whole, files)
        total, number = 0, 0
        while total < scale.count(EXPERIMENTS, least=2) and number < 10 * EXPERIMENTS:
            number += 1
            place = Path(name) / f"run-{number}"
            killed = _killed_until_done(lambda place=place: [*base, str(place)], rng, 4, seconds)
            total += killed
            seconds *= 1.0 if killed else SOONER
            same = _digest(place, files) == wanted
            row.add("the same" if same else DIFFERENT, f"killed {killed} times")
            row.outcomes["the same" if same else DIFFERENT] += max(0, killed - 1)
    return row


ACTORS = """
    import json, os, random, signal, sys, threading
    import adalook as al
    from tests.learning.small import trained

    def main():
        kind, wanted, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        rng, kills = random.Random(seed), []

        def end(pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        def kill(agent):
            if agent.step % 16 == 0 and len(kills) < wanted:
                pid = agent.trainer.acting._hosts.process_ids[rng.randrange(2)]
                kills.append(pid)
                threading.Timer(rng.choice((0.0, 0.001, 0.005, 0.02)), end, (pid,)).start()

        steps = 20 * wanted + 40
        alone, _ = trained(None, steps)
        found, lost = trained({"ray": al.Ray, "processes": al.LocalProcesses}[kind](2), steps, kill)
        print(json.dumps({"kills": len(kills), "lost": lost, "equal": found == alone}))

    if __name__ == "__main__":
        main()
"""


def _actors(scale: Scale, kind: str, seed: int) -> Row:
    """Kill actors at random moments of training: not a bit may change."""
    row = Row("kill -9", ACTORS_OF[kind], BAD, "not a bit of the agent changes")
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "train_and_kill.py"
        script.write_text(textwrap.dedent(ACTORS))
        wanted = scale.count(KILLED_ACTORS, least=2)
        while row.tried < wanted:
            kills = min(KILLS_IN_A_RUN, wanted - row.tried)
            command = [sys.executable, str(script), kind, str(kills), str(seed + row.tried)]
            try:
                done = subprocess.run(
                    command, env=_environment(), capture_output=True, text=True, timeout=LAST_SECONDS, check=True
                )
            except subprocess.TimeoutExpired as error:
                row.add("hang", str(error))
                break
            except subprocess.CalledProcessError as error:
                row.add(DIFFERENT, error.stderr[-300:])
                break
            said = json.loads(done.stdout.splitlines()[-1])
            row.outcomes["the same" if said["equal"] else DIFFERENT] += said["kills"]
    return row


SAVING, EXPERIMENT, TRAINING = "while checkpoints are saved", "while an experiment runs", "while training"
ACTORS_OF = {"processes": "actors in local processes while training", "ray": "actors of Ray while training"}


def rows(scale: Scale, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """Kill processes that write, at random moments; all kinds of them or those that are named."""
    rng = np.random.default_rng([scale.seed, 4])
    for title, kill in {SAVING: _saves, EXPERIMENT: _experiments, TRAINING: _training}.items():
        if not only or title in only:
            yield kill(scale, rng)
    for kind, title in ACTORS_OF.items():
        present = kind != "ray" or importlib.util.find_spec("ray") is not None
        if present and (not only or title in only):
            yield _actors(scale, kind, scale.seed)
