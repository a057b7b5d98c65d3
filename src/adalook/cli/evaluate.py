"""The command `adalook evaluate`: play episodes with the agent of a run, or with an exported one."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from adalook import _validation as validation
from adalook.cli.terminal import DONE, optional
from adalook.errors import ArgumentError, FileError

MOST_STATES = 2_000
"""States that a gallery is chosen from."""


@dataclass(frozen=True)
class EvaluateCommand:
    """Play episodes with a trained agent, in environments of its own and without learning.

    Example: adalook evaluate runs/breakout --episodes 20 --gif episode.gif

    Example: adalook evaluate agents/minatar-breakout
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The directory of a run, or an exported agent; RUN/best is the agent with the best evaluation."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 10
    """Number of episodes."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """The same seed gives the same episodes."""
    epsilon: Annotated[float | None, optional(float, "SHARE")] = None
    """Share of random actions; without it the run's evaluation_epsilon."""
    stage_nodes: Annotated[int | None, optional(int, "N")] = None
    """Steps that a stage of rollouts simulates; without it as many as in training. More take longer and see more."""
    max_episode_steps: Annotated[int | None, optional(int, "N")] = None
    """Episodes are cut off after so many steps; without it after the run's max_episode_steps."""
    env: Annotated[str | None, optional(str, "ENV")] = None
    """The environment of the run, named again: needed where that is module:name, whose module will be imported."""
    gif: Annotated[Path | None, optional(Path, "FILE")] = None
    """Write the first episode as an animated GIF, with the depth of each decision drawn on it."""
    frames: Annotated[int, tyro.conf.arg(metavar="N")] = 2_000
    """Most frames of the GIF; the rest of the episode is left out."""
    gallery: Annotated[Path | None, optional(Path, "FILE")] = None
    """Write a picture, PNG, of states by the depth chosen in them."""
    json: bool = False
    """Print one JSON object instead of a summary."""

    def run(self) -> int:
        """Play and print the scores; return the exit code."""
        from adalook.learning.runs.episode_gif import EpisodeGif
        from adalook.learning.runs.run import load_agent
        from adalook.report.data.state_gallery import GalleryFull, StateGallery
        from adalook.report.figures.run_states import states_by_depth
        from adalook.report.figures.style import save

        if self.epsilon is not None:
            validation.fraction.validate("--epsilon", self.epsilon)
        for flag, value in (("--stage-nodes", self.stage_nodes), ("--max-episode-steps", self.max_episode_steps)):
            validation.optional(validation.integer(1)).validate(flag, value)
        validation.integer(1).validate("--frames", self.frames)
        _check_picture("--gif", self.gif, ".gif")
        _check_picture("--gallery", self.gallery, ".png")
        agent = load_agent(self.directory, self.env)
        gif = EpisodeGif(max_frames=self.frames)
        gallery = StateGallery(
            f"the agent of {self.directory.name}", action_names=agent.sim.action_names, max_decisions=MOST_STATES
        )

        def watch(episode: int, observation: Any, decision: Any, env: Any = None) -> None:
            if self.gif is not None:
                gif(episode, observation, decision, env)
            if self.gallery is not None:
                with contextlib.suppress(GalleryFull):  # states enough, yet the episodes go on
                    gallery(episode, observation, decision, env)

        watch.needs_env = True  # type: ignore[attr-defined]

        evaluation = agent.evaluate(
            self.episodes,
            seed=self.seed,
            epsilon=self.epsilon,
            max_episode_steps=self.max_episode_steps,
            stage_nodes=self.stage_nodes,
            watcher=watch,
        )
        pictures = [path for path in (self.gif, self.gallery) if path is not None]
        if self.gif is not None:
            gif.save(self.gif)
        if self.gallery is not None:
            save(states_by_depth(gallery, "states").figure, self.gallery.with_suffix(""), ("png",))
        if self.json:
            about = {
                "scores": evaluation.scores.tolist(),
                "mean": evaluation.mean,
                "steps": evaluation.steps.tolist(),
                "depths": {str(depth): count for depth, count in evaluation.depths.items()},
                "nodes": evaluation.nodes,
                "seconds": evaluation.seconds,
                "stalled": evaluation.stalled,
                "cut": evaluation.cut,
            }
            print(json.dumps(about))
            return DONE
        error = f" ± {evaluation.standard_error:.2f}" if len(evaluation.scores) > 1 else ""
        decisions = evaluation.decisions
        print(f"mean score {evaluation.mean:.2f}{error} over {len(evaluation.scores)} episodes")
        print("depth " + ", ".join(f"{depth}: {count / decisions:.1%}" for depth, count in evaluation.depths.items()))
        if evaluation.nodes:
            each = evaluation.seconds / decisions
            print(f"{evaluation.nodes / decisions:,.1f} simulated steps and {each * 1e3:,.1f} ms a decision")
        cut = {"cut off": evaluation.cut, "stalled": evaluation.stalled}
        if any(cut.values()):
            print("episodes " + ", ".join(f"{what}: {count}" for what, count in cut.items() if count))
        if pictures:
            print("wrote " + " and ".join(map(str, pictures)))
        return DONE


def _check_picture(flag: str, path: Path | None, suffix: str) -> None:
    """Raise unless a picture can be written there; None is no picture."""
    if path is None:
        return
    if path.suffix.lower() != suffix:
        raise ArgumentError(
            f"{flag} writes {suffix[1:].upper()}s only", expected=f"a name that ends in {suffix}", got=str(path)
        )
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}", remedy=f"there is no directory {path.parent}: make it first")
