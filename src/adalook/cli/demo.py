"""`adalook demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from adalook.cli.terminal import CONVERGED, plain_console

if TYPE_CHECKING:
    from rich.console import Console

    from adalook.planning.solution import Solution


@dataclass(frozen=True)
class Demo:
    """Solve the paper's 30×30 maze with every method, compare what they cost, draw how deep they looked.

    With --learn-seconds 60 also train QL-DQN on MinAtar Breakout, and show what it was good for.
    """

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo")
    """Where the pictures go."""
    learn_seconds: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 0.0
    """How long to train QL-DQN, after the maze; needs adalook[learn]. 0: not at all."""


def run_demo(options: Demo) -> int:
    """`adalook demo`."""
    import numpy as np

    import adalook as al
    from adalook.planning.rules.registry import compared_methods, find_method
    from adalook.planning.solution_files import save_solution
    from adalook.report.figures.solution import draw_solution
    from adalook.storage.files import make_directory

    console = plain_console()
    make_directory(options.out)
    console.print(
        "The paper's 30×30 maze, from a random policy, by every method until nothing can be improved …", soft_wrap=True
    )
    console.print("(the first run compiles the kernels, some ten seconds, and keeps them)")
    mdp = al.zoo.maze(size=30, seed=0, discount=0.98)
    start = np.random.default_rng(0).integers(0, mdp.num_actions, mdp.num_states)
    prior = al.priors.exact(mdp)
    methods = [find_method(text) for text in compared_methods()]
    solutions: dict[str, Solution] = {}
    for chosen in methods:
        method = chosen.make(mdp, prior)
        runs = [al.solve(mdp, method, initial_policy=start, tolerance=0.0) for _ in range(4)]
        if any(run.status is al.Status.INTERRUPTED for run in runs):
            raise KeyboardInterrupt
        solutions[chosen.label] = min(runs[1:], key=lambda solution: solution.seconds)
    _print_comparison(console, solutions, {chosen.label for chosen in methods if chosen.spec.needs_prior})
    for name, directory in (("WLPI", options.out / "wlpi"), ("QLPI (0.1, 0.05, 0.02)", options.out / "qlpi")):
        source = "zoo:maze?size=30&seed=0&discount=0.98"
        save_solution(solutions[name], mdp, directory, source=source)
        drawn = " and ".join(str(path) for path in draw_solution(directory))
        console.print(f"How deep {name} looked in each state: {drawn}", soft_wrap=True)
    if options.learn_seconds > 0.0:
        from adalook.cli.demo_learning import show_learning

        show_learning(console, options.out / "breakout", options.learn_seconds)
    return CONVERGED


def _print_comparison(console: Console, solutions: dict[str, Solution], with_prior: set[str]) -> None:
    from rich.box import SIMPLE_HEAVY
    from rich.table import Table

    table = Table(box=SIMPLE_HEAVY, pad_edge=False)
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
    for name, solution in solutions.items():
        queries = solution.queries
        table.add_row(
            name,
            "yes" if name in with_prior else "no",
            f"{solution.iterations}",
            f"{queries.improvement['root']:,}",
            f"{queries.improvement['shared']:,}",
            f"{queries.total():,}",
            f"{1e3 * solution.seconds:.1f}",
            f"{solution.policy_loss:.1e}",
        )
    console.print(table)
    totals = {name: solution.queries.total() for name, solution in solutions.items()}
    rival = min((name for name in totals if name != "WLPI"), key=lambda name: totals[name])
    worst = max(solution.policy_loss for solution in solutions.values())
    less, next_best = totals["PI"] / totals["WLPI"], totals[rival] / totals["WLPI"]
    console.print(
        f"Every method ends within {worst:.1g} of the optimum. On this maze WLPI, without any prior, asks the model "
        f"{less:.1f} times\nless often than PI and {next_best:.1f} times less often than the next best, {rival} "
        "(root + simulated).\n"
        "TLPI and QLPI are given V* for free as their prior. Times are the best of 3 after a warm-up.",
        soft_wrap=True,
    )
