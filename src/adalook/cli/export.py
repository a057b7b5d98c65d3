"""The command `adalook export`: put the agent of a run into a folder that is small enough to ship."""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from adalook import _validation as validation
from adalook.cli.terminal import DONE, optional


@dataclass(frozen=True)
class ExportCommand:
    """Write what the agent of a run acts by, without what it learned from, with a card of its scores and its making.

    The folder is read by `adalook evaluate` and by al.QLDQN.load or al.DQN.load; training cannot go on from it.

    Example: adalook export runs/breakout agents/minatar-breakout
    """

    run_directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The directory of a run; RUN/best is the agent with the best evaluation."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """The folder to write; an exported agent that is there is replaced."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 20
    """Episodes that the agent plays for the scores on its card."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 1_000
    """Seed of these episodes."""
    env: Annotated[str | None, optional(str, "ENV")] = None
    """The environment of the run, named again: needed where that is module:name, whose module will be imported."""
    commit: Annotated[str | None, optional(str, "COMMIT")] = None
    """The version of the code that trained it; without it what git says about this code, if anything."""

    def run(self) -> int:
        """Play, and write the folder; return the exit code."""
        from adalook.learning.runs.directory import load_newest
        from adalook.learning.runs.export import WEIGHTS
        from adalook.learning.runs.run import load_agent

        validation.integer(1).validate("--episodes", self.episodes)
        agent = load_agent(self.run_directory, self.env)
        newest = load_newest(self.run_directory)
        steps = agent.step if newest is None else newest.step
        evaluation = agent.evaluate(self.episodes, seed=self.seed)
        agent.export(
            self.out,
            steps=steps,
            score=round(evaluation.mean, 3),
            scores=evaluation.scores.round(3).tolist(),
            evaluated_with=f"adalook evaluate {self.out.name} --episodes {self.episodes} --seed {self.seed}",
            commit=self.commit or _commit(),
            made_by=_training_command(agent.run_config(), steps),
        )
        size = sum(path.stat().st_size for path in self.out.iterdir() if path.is_file())
        print(f"{self.out}: mean score {evaluation.mean:.2f} over {self.episodes} episodes; {size / 1e3:,.0f} kB")
        print(f"play with: adalook evaluate {self.out}; weights in {self.out / WEIGHTS}")
        return DONE


def _training_command(run_config: dict[str, Any], steps: int) -> str:
    """Return the command that trains such an agent: its steps, and what settings matter and are not the preset's."""
    from adalook.learning.config import Config
    from adalook.learning.effects import has_effect
    from adalook.learning.presets import config_for

    agent, env, config = run_config["agent"], run_config["env"], Config.from_plain(run_config["config"])
    words = [f"adalook train {run_config['env']} --agent {run_config['agent']} --seed {run_config['seed']}"]
    words += [f"--depth {run_config['depth']}"] if "depth" in run_config else []
    words.append(f"--steps {steps}")
    preset = config_for(run_config["env"], run_config["agent"]).to_plain() if run_config["env"] is not None else {}
    for name, value in run_config["config"].items():
        if value != preset.get(name) and has_effect(agent, env, config, name):
            given = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words.append(f"--{name.replace('_', '-')} {given}")
    return " ".join([*words, "--out RUN"])


def _commit() -> str:
    """Return the commit of the checkout that this code is in; 'unknown' where it is in none."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10.0).stdout.strip()
    return "unknown"
