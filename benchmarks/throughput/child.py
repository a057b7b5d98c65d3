"""One contender in a process of its own, `python -m benchmarks.throughput.child`; see `job.py`."""

from __future__ import annotations

import dataclasses
import warnings

from adalook.learning.config import Config
from benchmarks.throughput.job import Job, Watch, say, told


def case_config(env: str, fast: bool) -> Config:
    """Our settings for an env: its family's preset, or what the learning experiment on Atari gives to plain DQN."""
    from adalook.experiments.atari import paper_config
    from adalook.learning.presets import config_for

    if fast:  # Stable-Baselines3's DQN is not double
        return dataclasses.replace(paper_config(), double=False, overlap=True)
    return config_for(env)


def ours(job: Job) -> int:
    """DQN of depth 0 with the settings of the case; what the job says overrides it. All updates it made."""
    import adalook as al

    config = dataclasses.replace(
        case_config(job.env, job.fast),
        batch_transitions=job.batch_transitions,
        buffer_transitions=job.buffer_transitions,
        update_period_steps=job.update_period_steps,
        target_period_steps=job.target_period_steps,
        learning_rate=job.learning_rate,
        learning_starts_steps=job.learning_starts_steps,
        discount=job.discount,
        epsilon_start=job.epsilon,
        epsilon_end=job.epsilon,
        num_envs=job.num_envs,
        threads=job.threads,
    )
    watch = Watch(job)
    updates = 0
    for done in al.DQN(job.env, config, depth=0, seed=job.seed).rounds():
        updates += len(done.updates)
        if watch.stops_at(done.step):
            break
    return updates


def main() -> None:
    job = told()
    warnings.simplefilter("ignore")
    if job.contender == "adalook":
        updates = ours(job)
    else:
        from benchmarks.throughput.sb3_peer import stable_baselines3

        updates = stable_baselines3(job)
    say({"updates_in_all": updates})


if __name__ == "__main__":
    main()
