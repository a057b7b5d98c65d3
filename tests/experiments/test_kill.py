"""kill -9 at random moments: nothing that was reported done is lost, nothing is unreadable, the end is the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adalook.experiments.maze import MazeExperiment
from adalook.experiments.runner import reproduce
from tests.experiments.small import Inline, digests

EXPERIMENT = MazeExperiment(seeds=3, size=14)

RUN = """
import sys
from pathlib import Path
from adalook.experiments.engines.processes import Processes
from adalook.experiments.runner import reproduce
from tests.experiments.test_kill import EXPERIMENT

class Reporting(Processes):
    '''Says which jobs are done: the next one is asked for only when the last one is safe.'''
    def run(self, jobs):
        for finished in super().run(jobs):
            yield finished
            print(finished.job, flush=True)

reproduce(EXPERIMENT, Path(sys.argv[1]), Reporting(2))
"""

PATIENCE_SECONDS = 300.0


class Run:
    """A run in a process group of its own."""

    def __init__(self, directory: Path, reports: Path) -> None:
        self.directory, self.reports = directory, reports
        with open(reports, "ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN, str(directory)],
                stdout=file,
                start_new_session=True,
                cwd=Path(__file__).parents[2],
            )

    def wait_for_first_report(self, already: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None and len(reported(self.reports)) <= already:
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def kill(self, everybody: bool) -> bool:
        """True if it was still at work."""
        alive = self.process.poll() is None
        if alive:
            (os.killpg if everybody else os.kill)(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return alive

    def wait_until_nobody_is_left(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while group_exists(self.process.pid):
            assert time.monotonic() < deadline, "workers outlived their parent"
            time.sleep(0.02)


def group_exists(group: int) -> bool:
    listing = subprocess.run(["ps", "-o", "stat=", "-g", str(group)], capture_output=True, text=True)
    return any(not state.startswith("Z") for state in listing.stdout.split())


def reported(reports: Path) -> list[str]:
    return reports.read_text().splitlines()


def done(directory: Path) -> dict[str, object]:
    """Records by job, of a folder under way or finished, read as any reader of JSON would."""
    if (directory / "experiment.json").exists():
        records = json.loads((directory / "records.json").read_text())["records"]
        return {record["job"]: record for record in records}
    lines = (directory / "journal.jsonl").read_bytes().splitlines(keepends=True)
    whole = [json.loads(line) for line in lines[1:] if line.endswith(b"\n")]
    return {line["job"]: line["record"] for line in whole}


def kill_at_random_moments(tmp_path: Path, kills: int, seed: int) -> None:
    """Kill and resume until `kills` runs were killed at work; every folder that gets finished must be the same."""
    reproduce(EXPERIMENT, tmp_path / "reference", Inline())
    expected = digests(tmp_path / "reference")
    moments = random.Random(seed)
    directory, reports = tmp_path / "round 0", tmp_path / "reports 0"
    reports.touch()
    killed = rounds = 0
    while killed < kills:
        run = Run(directory, reports)
        run.wait_for_first_report(len(reported(reports)))
        time.sleep(moments.uniform(0.0, 0.3))
        killed += run.kill(everybody=moments.random() < 0.5)
        run.wait_until_nobody_is_left()
        assert set(reported(reports)) <= set(done(directory)), "a job that was reported done is lost"
        assert len(set(reported(reports))) == len(reported(reports)), "a job was run again"
        if (directory / "experiment.json").exists():
            assert digests(directory).items() >= expected.items()
            rounds += 1
            directory, reports = tmp_path / f"round {rounds}", tmp_path / f"reports {rounds}"
            reports.touch()
    reproduce(EXPERIMENT, directory, Inline())
    assert digests(directory) == expected


def test_two_kills(tmp_path):
    kill_at_random_moments(tmp_path, kills=2, seed=1)


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    kill_at_random_moments(tmp_path, kills=20, seed=2)


@pytest.mark.slow
def test_kills_while_starting_and_finishing(tmp_path):
    """Moments spread over the whole life of a process, from before the journal to after the summary."""
    reproduce(EXPERIMENT, tmp_path / "reference", Inline())
    directory, reports = tmp_path / "run", tmp_path / "reports"
    reports.touch()
    for moment in (0.05, 0.3, 0.6, 0.9, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0):
        run = Run(directory, reports)
        time.sleep(moment)
        run.kill(everybody=True)
        assert set(reported(reports)) <= (set(done(directory)) if reported(reports) else set())
    reproduce(EXPERIMENT, directory, Inline())
    assert digests(directory) == digests(tmp_path / "reference")
