"""CleanRL's own dqn_atari.py, as pip installs it, under a watch: `PYTHON cleanrl_peer.py`; see `job.py`.

Runs in CleanRL's Python (`make .venv/cleanrl/ready`), which has another Gym than ours, so it imports neither adalook
nor the rest of the benchmarks as a package. The script is not touched: only what it calls is. It wants the answers of
Gym 0.21, and the oldest ALE for today's Python gives those of 0.26; and the watch is shown the steps by the envs it
moves.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from job import FAR_AWAY, Job, Watch, told


class Measured(Exception):
    """The watch has stopped."""


def answer_as_before() -> None:
    """Let ALE's environment answer `reset` with an observation, `step` with four values, and draw as it used to."""
    import numpy as np
    from ale_py.env.gym import AtariEnv

    reset, step, seed = AtariEnv.reset, AtariEnv.step, AtariEnv.seed

    def reset_as_before(self: Any) -> Any:
        observation, _info = reset(self)
        return observation

    def step_as_before(self: Any, action: Any) -> Any:
        observation, reward, terminated, truncated, info = step(self, action)
        return observation, reward, terminated or truncated, info

    def seed_as_before(self: Any, number: int | None = None) -> Any:
        seeds = seed(self, number)
        self.np_random = np.random.RandomState(number)
        return seeds

    AtariEnv.reset, AtariEnv.step, AtariEnv.seed = reset_as_before, step_as_before, seed_as_before


def watch_envs(watch: Watch) -> None:
    """Count what passes the wrapper that clips rewards: decisions, without the moves that begin an episode."""
    from gym import RewardWrapper

    move, steps = RewardWrapper.step, 0

    def counted(self: Any, action: Any) -> Any:
        nonlocal steps
        if watch.stops_at(steps):
            raise Measured
        steps += 1
        return move(self, action)

    RewardWrapper.step = counted


def flags(job: Job) -> list[str]:
    """The job in the script's words."""
    game = job.env.removeprefix("ALE/").removesuffix("-v5")
    settings = {
        "gym-id": f"{game}NoFrameskip-v4",
        "total-timesteps": FAR_AWAY,
        "learning-rate": job.learning_rate,
        "buffer-size": job.buffer_transitions,
        "gamma": job.discount,
        "target-network-frequency": job.target_period_steps,
        "batch-size": job.batch_transitions,
        "start-e": job.epsilon,
        "end-e": job.epsilon,
        "learning-starts": job.learning_starts_steps,
        "train-frequency": job.update_period_steps,
        "seed": job.seed + 1,  # it takes 0 for none
    }
    return [part for name, value in settings.items() for part in (f"--{name}", str(value))]


def main() -> None:
    job = told()
    package = importlib.util.find_spec("cleanrl")
    if package is None or package.origin is None:
        sys.exit("this Python has no CleanRL; `make .venv/cleanrl/ready` makes one that has")
    import torch

    torch.set_num_threads(job.threads)
    answer_as_before()
    watch = Watch(job)
    watch_envs(watch)
    script = Path(package.origin).with_name("dqn_atari.py")
    sys.argv = [str(script), *flags(job)]
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)  # it writes its logs where it stands
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Measured:
            os.chdir(before)


if __name__ == "__main__":
    main()
