"""The learning half of `adalook demo`: a minute of QL-DQN on MinAtar Breakout, and what it was good for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from adalook.learning.runs.options import RunOptions

if TYPE_CHECKING:
    from rich.console import Console

    from adalook.learning.evaluation import Evaluation

GAME = "MinAtar/Breakout-v1"
EPISODES = 30
EXPLORING_STEPS, FIRST_STEPS = 8_000, 1_000
"""A minute has some 15,000 steps: the preset would explore for all of them."""


def show_learning(console: Console, directory: Path, seconds: float) -> None:
    """Train in `directory` and compare with what the agent could do before; a run that is there goes on."""
    import dataclasses

    from adalook.learning.agents.qldqn import QLDQN
    from adalook.learning.presets import config_for
    from adalook.learning.runs.directory import CONFIG_FILE
    from adalook.learning.runs.episode_gif import EpisodeGif
    from adalook.learning.runs.run import load_agent, resume_run, start_run

    config = dataclasses.replace(
        config_for(GAME), epsilon_anneal_steps=EXPLORING_STEPS, learning_starts_steps=FIRST_STEPS
    )
    untrained = QLDQN(GAME, config, seed=0)
    console.print(f"\nQL-DQN on {GAME}, which chooses how deep to look state by state: {seconds:g} s of training …")
    trained_before = 0.0
    if (directory / CONFIG_FILE).exists():
        trained_before = load_agent(directory).trainer.seconds
        console.print(f"(a run is there already, {trained_before:,.0f} s old: it goes on)")
    else:
        start_run(directory, untrained)
    run_options = RunOptions(evaluation_episodes=0, tensorboard=False, progress=console.is_terminal)
    outcome = resume_run(directory, seconds=trained_before + seconds, options=run_options)
    if outcome.interrupted:
        raise KeyboardInterrupt
    agent, gif = load_agent(directory), EpisodeGif(max_frames=600)
    scores = {
        "random play": untrained.evaluate(EPISODES, epsilon=1.0),
        "untrained: its trees alone": untrained.evaluate(EPISODES),
        f"after {outcome.seconds:,.0f} s, {outcome.step:,} steps": agent.evaluate(EPISODES, watcher=gif),
    }
    _print_scores(console, scores)
    gif.save(directory / "episode.gif")
    console.print(
        f"An episode, with the depth of every decision: {directory / 'episode.gif'}\n"
        f"More: adalook report {directory}; adalook train --resume {directory} --seconds 600",
        soft_wrap=True,
    )


def _print_scores(console: Console, evaluations: dict[str, Evaluation]) -> None:
    from rich.box import SIMPLE_HEAVY
    from rich.table import Table

    table = Table(box=SIMPLE_HEAVY, pad_edge=False)
    table.add_column("player", no_wrap=True)
    table.add_column(f"mean score of\n{EPISODES} episodes", justify="right")
    table.add_column("how deep it looked")
    for name, evaluation in evaluations.items():
        decisions = sum(evaluation.depths.values())
        depths = ", ".join(f"{depth}: {count / decisions:.0%}" for depth, count in evaluation.depths.items())
        score = f"{evaluation.mean:.1f} ± {evaluation.standard_error:.1f}"
        table.add_row(name, score, "" if name == "random play" else depths)
    console.print(table)
