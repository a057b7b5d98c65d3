"""CleanRL's own dqn_atari.py, as it is, under a watch: `PYTHON throughput_cleanrl.py CHECKOUT < job.json`.

Runs in CleanRL's Python, which has other versions of Gymnasium than ours, so it imports neither adalook nor the rest of
the benchmarks as a package. The script knows nothing of the watch: it is shown the steps by the worlds it moves.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from throughput_job import Job, Watch


class Measured(Exception):
    """The watch has stopped."""


def watch_worlds(watch: Watch) -> None:
    """Count the moves of Gymnasium's SyncVectorEnv; a move that is made after the last one measured is not."""
    from gymnasium.vector import SyncVectorEnv

    move, steps = SyncVectorEnv.step, 0

    def counted(self: Any, actions: Any) -> Any:
        nonlocal steps
        if watch.stops_at(steps):
            raise Measured
        steps += self.num_envs
        return move(self, actions)

    SyncVectorEnv.step = counted


def flags(job: Job) -> list[str]:
    """The job in the script's words. So many steps that its schedules do not end before the watch stops."""
    game = job.env.removeprefix("ALE/").removesuffix("-v5")
    settings = {
        "env-id": f"{game}NoFrameskip-v4",
        "total-timesteps": 2 * job.last_step,
        "learning-rate": job.learning_rate,
        "buffer-size": job.buffer_transitions,
        "gamma": job.discount,
        "target-network-frequency": job.target_period_steps,
        "batch-size": job.batch_transitions,
        "start-e": job.epsilon,
        "end-e": job.epsilon,
        "learning-starts": job.learning_starts_steps,
        "train-frequency": job.update_period_steps,
        "seed": job.seed,
    }
    return [part for name, value in settings.items() for part in (f"--{name}", str(value))]


def main() -> None:
    checkout, job = Path(sys.argv[1]).resolve(), Job(**json.load(sys.stdin))
    script = checkout / "cleanrl" / "dqn_atari.py"
    sys.path.insert(0, str(checkout))
    import ale_py  # noqa: F401 - Gymnasium knows its games from now on
    import torch

    torch.set_num_threads(job.threads)
    watch = Watch(job.first_step, job.last_step)
    watch_worlds(watch)
    sys.argv = [str(script), *flags(job)]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # it writes its logs where it stands
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Measured:
            print(json.dumps(watch.record), flush=True)
        os.chdir(checkout)


if __name__ == "__main__":
    main()
