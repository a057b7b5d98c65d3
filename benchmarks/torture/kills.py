"""kill −9 at random moments: of saves, of training, of experiments; what resumes is what was never interrupted."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np

from adalook.learning.runs.directory import load_newest
from benchmarks.results import ROOT
from benchmarks.torture.outcome import Row, Scale

LOST, UNREADABLE, DIFFERENT, LEFTOVERS = "reported save lost", "unreadable", "resumed differently", "left files"
BAD = frozenset({LOST, UNREADABLE, DIFFERENT, LEFTOVERS, "hang"})
SAVES, TRAININGS, EXPERIMENTS = 500, 100, 40
"""Kills, in the full torture."""

SAVER = """
    import sys
    import numpy as np
    from adalook.learning.runs.directory import RunDirectory
    from adalook.storage.serializer import Segment
    with RunDirectory(sys.argv[1]) as run:
        for step in range(1, 100_000):
            state = {"agent": np.full(2_000, step), "full": [Segment(np.full(5_000, i)) for i in range(step, step + 5)]}
            run.save(step, state)
            print(step, flush=True)
"""


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


def _saves(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row("kill -9", "while checkpoints are saved", BAD, "the last one reported can be read, or a newer one")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "run"
        for _ in range(scale.count(SAVES, least=3)):
            command = [sys.executable, "-c", textwrap.dedent(SAVER), str(place)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(float(rng.uniform(0.0, 0.3)))
                process.kill()
                reported = [int(line) for line in process.stdout.read().split()] or [1]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = load_newest(place)
                assert found is not None
                whole = bool((found.state["agent"] == found.step).all())
                row.add("readable" if whole and found.step >= reported[-1] else LOST, f"{found.step} < {reported[-1]}")
            except Exception as error:
                row.add(UNREADABLE, repr(error))
    return row


def _digest(place: Path, names: tuple[str, ...]) -> str:
    state = hashlib.sha256()
    for name in names:
        for path in sorted(place.glob(name)):
            state.update(path.name.encode() + path.read_bytes())
    return state.hexdigest()


def _killed_until_done(
    command: list[str], again: list[str], rng: np.random.Generator, kills: int, longest: float
) -> int:
    """Run a command, kill it some times at random moments and start it again; returns how often it was killed."""
    killed = 0
    for attempt in range(kills + 1):
        with subprocess.Popen(
            again if attempt else command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        ) as process:
            try:
                process.wait(timeout=float(rng.uniform(0.3, longest)) if attempt < kills else 600)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                killed += 1
            else:
                break
    return killed


def _training(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row("kill -9", "while training", BAD, "an agent that was killed and resumed has the log of one that was not")
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
            first = [*base, *flags, "--out", str(place)]
            again = [*base, "--resume", str(place), "--steps", "1500"]
            killed = _restarted(first, again, place, rng, 4, seconds)
            same = _digest(place, ("log.jsonl",)) == wanted
            row.add("the same" if same else DIFFERENT, f"killed {killed} times")
            row.outcomes["the same" if same else DIFFERENT] += max(0, killed - 1)
            if list(place.rglob(".adalook-*.tmp")):
                row.add(LEFTOVERS, str(place))
    return row


def _restarted(
    first: list[str], again: list[str], place: Path, rng: np.random.Generator, kills: int, seconds: float
) -> int:
    """Kill a training run until it has its config, then at random moments, and let it end."""
    killed = 0
    while not (place / "config.json").exists():
        killed += _killed_until_done(first, again, rng, 0, seconds) if killed > 5 else _once(first, rng, seconds)
    return killed + _killed_until_done(again, again, rng, kills, seconds)


def _once(command: list[str], rng: np.random.Generator, longest: float) -> int:
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment(), start_new_session=True
    ) as process:
        try:
            process.wait(timeout=float(rng.uniform(0.3 * longest, longest)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 1
    return 0


def _experiments(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row("kill -9", "while an experiment runs", BAD, "the records are those of an uninterrupted run")
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
            command = [*base, str(place)]
            killed = _killed_until_done(command, command, rng, 4, seconds)
            total += killed
            same = _digest(place, files) == wanted
            row.add("the same" if same else DIFFERENT, f"killed {killed} times")
            row.outcomes["the same" if same else DIFFERENT] += max(0, killed - 1)
    return row


def rows(scale: Scale) -> list[Row]:
    """Kill processes that write, at random moments."""
    rng = np.random.default_rng([scale.seed, 4])
    return [_saves(scale, rng), _experiments(scale, rng), _training(scale, rng)]
