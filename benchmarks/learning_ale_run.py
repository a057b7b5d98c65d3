"""One training run on Atari, watched from the side: `python -m benchmarks.learning_ale_run JOB`, a JSON object.

RUN/samples.jsonl gets a line a minute: steps, memory, open files. Agents are made and trained as anybody would.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import adalook as al
from adalook.learning.agents.base import Agent
from adalook.learning.config import Config
from adalook.learning.presets import atari
from adalook.learning.runs.directory import CONFIG_FILE
from adalook.learning.runs.options import RunOptions
from adalook.learning.runs.run import resume_run, start_run
from benchmarks.child import resident_bytes

Record = dict[str, Any]

SAMPLES = "samples.jsonl"
OPTIONS = RunOptions(evaluation_episodes=0, checkpoint_period_seconds=300.0, progress=False)


def config() -> Config:
    """The Atari preset, for runs of minutes instead of days."""
    return dataclasses.replace(
        atari(),
        buffer_transitions=10_000,  # fills within the run, so that forgetting is tried as well
        epsilon_anneal_steps=10_000,
        learning_starts_steps=1_000,  # the preset's 80,000 steps would be the better part of the run
        overlap=False,  # one core each: two runs share the machine
    )


class Samples(threading.Thread):
    """Looks at the process every so often, without a hand in the run."""

    def __init__(self, agent: Agent, path: Path, period_seconds: float) -> None:
        super().__init__(daemon=True)
        self._agent, self._path, self._period = agent, path, period_seconds
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.wait(self._period):
            self.take()

    def take(self) -> None:
        trainer = self._agent.trainer
        sample = {
            "time": time.time(),
            "step": trainer.step,
            "training_seconds": trainer.seconds,
            "resident_bytes": resident_bytes(),
            "replay_bytes": trainer.replay.bytes_used,
            "transitions": len(trainer.replay),
            "open_files": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None,
            "threads": threading.active_count(),
            "process": os.getpid(),
        }
        with self._path.open("a") as file:
            file.write(json.dumps(sample) + "\n")

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()


def main() -> int:
    job = json.loads(sys.argv[1])
    run, env = Path(job["run"]), f"ALE/{job['game']}-v5"
    agent: Agent
    if job["depth"] is None:
        agent = al.QLDQN(env, config())
    else:
        agent = al.DQN(env, config(), depth=job["depth"])
    if not (run / CONFIG_FILE).exists():
        start_run(run, agent)
    _ = agent.trainer  # made here, not by the thread
    seconds = 60.0 * job["minutes"]
    samples = Samples(agent, run / SAMPLES, period_seconds=min(60.0, seconds / 15.0))
    samples.start()
    outcome = resume_run(run, seconds=seconds, options=OPTIONS, agent=agent)
    samples.stop()
    return 3 if outcome.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
