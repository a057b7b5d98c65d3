"""The command `adalook demo`: every lookahead rule of planning on the paper's maze, then a minute of QL-DQN."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import tyro

from adalook.cli.terminal import DONE, plain_console

if TYPE_CHECKING:
    from rich.console import Console

    from adalook.learning.evaluation import Evaluation
    from adalook.planning.rules.spec import MethodSetting
    from adalook.planning.solution import Solution

GAME = "MinAtar/Breakout-v1"
EPISODES = 10
DRAWN = ("wlpi", "qlpi")
"""Methods, by their registered names, whose lookahead is drawn."""
EPSILON_ANNEAL_STEPS, LEARNING_STARTS_STEPS = 8_000, 1_000
"""A minute of training has some 15,000 steps: with the preset's settings all of them would explore."""


@dataclass(frozen=True)
class DemoCommand:
    """Solve the paper's 30×30 maze with every lookahead rule, compare what they cost, draw how deep they looked.

    With --learn-seconds 60 also train QL-DQN on MinAtar Breakout, and compare it with the untrained agent.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo")
    """Directory for the figures, and for the training run."""
    learn_seconds: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 0.0
    """How long to train QL-DQN, after the maze; needs adalook[learn]. 0: not at all."""

    def run(self) -> int:
        """Run the demonstration; return the exit code."""
        from adalook.storage.files import make_directory

        console = plain_console()
        make_directory(self.out)
        _show_planning(console, self.out)
        if self.learn_seconds > 0.0:
            _show_learning(console, self.out / "breakout", self.learn_seconds)
        return DONE


class SolvedBy(NamedTuple):
    """A method in one setting, and its solution of the maze."""

    method: MethodSetting
    solution: Solution

    @property
    def name(self) -> str:
        """The method's registered name."""
        return self.method.spec.name

    @property
    def queries(self) -> int:
        """Everything it asked the model, by the convention root + simulated."""
        return self.solution.queries.total()


def _show_planning(console: Console, directory: Path) -> None:
    """Solve the maze with every lookahead rule, print what they cost and draw where two of them looked deep."""
    import numpy as np

    import adalook as al
    from adalook.planning.rules.registry import DEFAULT_METHOD, compared_methods, find_method
    from adalook.planning.solution_files import save_solution
    from adalook.report.figures.solution import draw_solution

    console.print(
        "The paper's 30×30 maze, from a random policy, by every lookahead rule until nothing can be improved …",
        soft_wrap=True,
    )
    console.print("(the first run compiles the kernels, some ten seconds, and keeps them)")
    mdp = al.zoo.maze(size=30, seed=0, discount=0.98)
    start = np.random.default_rng(0).integers(0, mdp.num_actions, mdp.num_states)
    prior = al.priors.exact(mdp)
    compared: list[SolvedBy] = []
    for chosen in map(find_method, (DEFAULT_METHOD, *compared_methods())):
        method = chosen.make(mdp, prior)
        runs = [al.solve(mdp, method, initial_policy=start, tolerance=0.0) for _ in range(4)]
        if any(run.status is al.Status.INTERRUPTED for run in runs):
            raise KeyboardInterrupt
        compared.append(SolvedBy(chosen, min(runs[1:], key=lambda solution: solution.seconds)))
    _print_comparison(console, compared, DEFAULT_METHOD)
    for one in compared:
        if one.name in DRAWN:
            place = directory / one.name
            save_solution(one.solution, mdp, place, source="zoo:maze?size=30&seed=0&discount=0.98")
            drawn = " and ".join(str(path) for path in draw_solution(place))
            console.print(f"How deep {one.method.label} looked in each state: {drawn}", soft_wrap=True)


def _print_comparison(console: Console, compared: list[SolvedBy], default: str) -> None:
    """Print a table of the methods, and how WLPI compares with the others."""
    from rich.box import SIMPLE_HEAVY
    from rich.table import Table

    table = Table(box=SIMPLE_HEAVY, pad_edge=False, padding=0)  # fits in 80 columns
    table.add_column("method", no_wrap=True)
    table.add_column("needs\nprior")
    for heading in (
        "iter-\nations",
        "queries\n(root)",
        "queries\n(shared)",
        "root +\nsimulated",
        "ms",
        "certified\nerror",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in compared:
        solution, queries = one.solution, one.solution.queries
        table.add_row(
            f"{one.method.label} (default)" if one.name == default else one.method.label,
            "yes" if one.method.spec.method_class.needs_prior else "no",
            f"{solution.iterations}",
            f"{queries.improvement['root']:,}",
            f"{queries.improvement['shared']:,}",
            f"{queries.total():,}",
            f"{1e3 * solution.seconds:.1f}",
            f"{solution.policy_loss:.1e}",
        )
    console.print(table)
    by_name = {one.name: one for one in compared}
    wlpi, base = by_name["wlpi"], by_name["pi"]
    second = min((one for one in compared if one.name not in ("wlpi", default)), key=lambda one: one.queries)
    worst = max(one.solution.policy_loss for one in compared)
    console.print(
        f"Every method ends within {worst:.1g} of the optimum. On this maze {by_name[default].method.label} does what "
        f"{wlpi.method.label} does: without any prior it asks the model\n"
        f"{base.queries / wlpi.queries:.1f} times less often than {base.method.label} and "
        f"{second.queries / wlpi.queries:.1f} times less often than the next best, {second.method.label} "
        "(root + simulated).\n"
        "TLPI and QLPI are given V* for free as their prior. Times are the best of 3 after a warm-up.",
        soft_wrap=True,
    )


def _show_learning(console: Console, directory: Path, seconds: float) -> None:
    """Train QL-DQN in `directory`, resuming a run that exists, and compare it with the untrained agent."""
    from adalook.learning.agents.qldqn import QLDQN
    from adalook.learning.presets import config_for
    from adalook.learning.runs.directory import CONFIG_FILE
    from adalook.learning.runs.episode_gif import EpisodeGif
    from adalook.learning.runs.options import RunOptions
    from adalook.learning.runs.run import load_agent, resume_run, start_run

    config = dataclasses.replace(
        config_for(GAME, "qldqn"),
        epsilon_anneal_steps=EPSILON_ANNEAL_STEPS,
        learning_starts_steps=LEARNING_STARTS_STEPS,
    )
    untrained = QLDQN(GAME, config, seed=0)
    console.print(f"\nQL-DQN on {GAME}, which chooses how deep to look state by state: {seconds:g} s of training …")
    trained_before = 0.0
    if (directory / CONFIG_FILE).exists():
        trained_before = load_agent(directory).trainer.seconds
        console.print(f"(there is a run already, trained for {trained_before:,.0f} s: it goes on)")
    else:
        start_run(directory, untrained)
    options = RunOptions(evaluation_episodes=0, tensorboard=False, progress=console.is_terminal)
    result = resume_run(directory, seconds=trained_before + seconds, options=options)
    if result.interrupted:
        raise KeyboardInterrupt
    agent, gif = load_agent(directory), EpisodeGif(max_frames=600)
    evaluations = {
        "random play": untrained.evaluate(EPISODES, epsilon=1.0),
        "untrained: its trees alone": untrained.evaluate(EPISODES),
        f"after {result.seconds:,.0f} s, {result.step:,} steps": agent.evaluate(EPISODES, watcher=gif),
    }
    _print_scores(console, evaluations)
    gif.save(directory / "episode.gif")
    console.print(
        f"An episode, with the depth of every decision: {directory / 'episode.gif'}\n"
        f"More: adalook report {directory}; adalook train --resume {directory} --seconds 600",
        soft_wrap=True,
    )


def _print_scores(console: Console, evaluations: dict[str, Evaluation]) -> None:
    """Print a table of mean scores and depths."""
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
