"""The command `adalook evaluate`: play episodes with the agent of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from adalook import _validation as validation
from adalook.cli.terminal import DONE, optional
from adalook.errors import ArgumentError, FileError


@dataclass(frozen=True)
class EvaluateCommand:
    """Play episodes with the agent of a run, in environments of its own and without learning.

    Example: adalook evaluate runs/breakout --episodes 20 --gif episode.gif
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The directory of a run; RUN/best is the agent with the best evaluation."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 10
    """Number of episodes."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """The same seed gives the same episodes."""
    epsilon: Annotated[float | None, optional(float, "SHARE")] = None
    """Share of random actions; without it the run's evaluation_epsilon."""
    env: Annotated[str | None, optional(str, "ENV")] = None
    """The environment of the run, named again: needed where that is module:id, whose module will be imported."""
    gif: Annotated[Path | None, optional(Path, "FILE")] = None
    """Write the first episode as an animated GIF, with the depth of each decision drawn on it."""
    json: bool = False
    """Print one JSON object instead of a summary."""

    def run(self) -> int:
        """Play and print the scores; return the exit code."""
        from adalook.learning.runs.episode_gif import EpisodeGif
        from adalook.learning.runs.run import load_agent

        if self.epsilon is not None:
            validation.fraction.validate("--epsilon", self.epsilon)
        if self.gif is not None and self.gif.suffix.lower() != ".gif":
            raise ArgumentError("--gif writes GIFs only", expected="a name that ends in .gif", got=str(self.gif))
        if self.gif is not None and not self.gif.parent.is_dir():
            raise FileError(
                f"cannot write {self.gif}", remedy=f"there is no directory {self.gif.parent}: make it first"
            )
        gif = None if self.gif is None else EpisodeGif()
        evaluation = load_agent(self.directory, self.env).evaluate(
            self.episodes, seed=self.seed, epsilon=self.epsilon, watcher=gif
        )
        if self.gif is not None and gif is not None:
            gif.save(self.gif)
        if self.json:
            about = {
                "scores": evaluation.scores.tolist(),
                "mean": evaluation.mean,
                "depths": {str(depth): count for depth, count in evaluation.depths.items()},
            }
            print(json.dumps(about))
            return DONE
        error = f" ± {evaluation.standard_error:.2f}" if len(evaluation.scores) > 1 else ""
        decisions = sum(evaluation.depths.values())
        print(f"mean score {evaluation.mean:.2f}{error} over {len(evaluation.scores)} episodes")
        print("depth " + ", ".join(f"{depth}: {count / decisions:.1%}" for depth, count in evaluation.depths.items()))
        return DONE
