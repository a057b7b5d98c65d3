"""The command `adalook reproduce`: run the paper's experiments."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from adalook.cli.terminal import DONE, INTERRUPTED, optional
from adalook.errors import ArgumentError

LEARNING = ("minatar", "atari")


@dataclass(frozen=True)
class ReproduceCommand:
    """Run the paper's experiments again. Killed or stopped by Ctrl-C, the same command goes on.

    Exit code 0: done; 2: wrong arguments or files; 130: stopped by Ctrl-C, with everything finished so far kept.

    Example: adalook reproduce maze --workers 2

    Example: adalook reproduce minatar --games Breakout --agents depth0 ql --seeds 1 --seconds 60 --out short
    """

    experiment: Annotated[Literal["chain", "maze", "sweep", "all", "minatar", "atari"], tyro.conf.Positional]
    """Planning: chain, the motivating example; maze, the maze experiments; sweep, mazes of other sizes and discounts;
    all three. Learning, which takes hours and needs adalook[learn]: minatar, atari."""
    seeds: Annotated[int | None, optional(int, "N")] = None
    """Runs per setting; without it 10 for maze, 3 for sweep and atari, 5 for minatar. The chain has none."""
    games: Annotated[
        tuple[str, ...] | None, tyro.conf.DisallowNone, tyro.conf.arg(metavar="GAME …", help_behavior_hint="")
    ] = None
    """Learning: which games. Without it MinAtar's five, and VideoPinball, Tutankham, Solaris and Berzerk of Atari; any
    other Atari game will do."""
    agents: Annotated[
        tuple[str, ...] | None, tyro.conf.DisallowNone, tyro.conf.arg(metavar="AGENT …", help_behavior_hint="")
    ] = None
    """Learning: which agents, of depth0, depth1, depth2, depth3, ql, ql-prior, ql-paper, every1, every2, every3, and
    the ablations recipe1, recipe2, recipe3, one-share, published-optimizer, published-recipe, one-head, search-alone,
    search-60, fast-targets, part-trust, slow-rate, even, network-prior, values, guided, taken-action, tree-steps,
    no-real-steps, corrected, beam, clipped, skip4, resets, shifts, depth0-ours, depth0-resets and depth0-shifts."""
    seconds: Annotated[float | None, optional(float, "SECONDS")] = None
    """Learning: processor time for each run; without it 240 on MinAtar, 1200 on Atari."""
    paper_scale: bool = False
    """Atari in the paper's size, for days and a GPU: 10 million steps, 5 seeds, the Nature network and a prior of a
    million steps, into DIR/atari-paper."""
    keep_agents: bool = False
    """Learning: export every trained agent to DIR/EXPERIMENT/agents, for adalook evaluate."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Results go to DIR/chain, DIR/maze, …; pages and figures of learning experiments too."""
    workers: Annotated[int | None, optional(int, "N")] = None
    """Processes; without it one per core. Results of planning do not depend on it."""
    engine: Literal["processes", "ray"] = "processes"
    """Where jobs run: processes on this machine, or Ray (needs the extra 'ray')."""
    address: Annotated[str | None, optional(str, "ADDRESS")] = None
    """Of a running Ray cluster, such as HOST:6379; without it a Ray is started here."""
    fresh: bool = False
    """Start over, forgetting what is in the folder."""
    progress: bool = True
    """Show a bar with the time left, if standard error is a terminal."""

    def run(self) -> int:
        """Run the experiments; return the exit code."""
        from adalook.experiments.runner import Interrupted

        try:
            return _run_learning(self) if self.experiment in LEARNING else _run_planning(self)
        except Interrupted as stop:
            print(f"adalook: interrupted: {stop}; run the same command again to go on", file=sys.stderr)
            return INTERRUPTED


def _run_planning(options: ReproduceCommand) -> int:
    """Run planning experiments; return the exit code."""
    from adalook.experiments.registry import chosen_engine, chosen_experiments
    from adalook.experiments.runner import reproduce

    for name in ("games", "agents", "seconds", "paper_scale", "keep_agents"):
        if getattr(options, name) not in (None, False):
            raise ArgumentError(
                f"--{name.replace('_', '-')} is for learning experiments",
                got=options.experiment,
                remedy=f"reproduce {' or '.join(LEARNING)}",
            )
    engine = chosen_engine(options.engine, options.workers, options.address)
    bar = options.progress and sys.stderr.isatty()
    for experiment in chosen_experiments(options.experiment, options.seeds):
        directory = options.out / experiment.name
        print(reproduce(experiment, directory, engine, fresh=options.fresh, progress=bar).sentence)
    return DONE


def _run_learning(options: ReproduceCommand) -> int:
    """Run a learning experiment and write its page; return the exit code."""
    from adalook.experiments.learning.runs import reproduce_learning
    from adalook.experiments.registry import chosen_engine, chosen_learning
    from adalook.report.pages.learning import run_in_words, write_learning_report

    games, agents = _names(options, "games"), _names(options, "agents")
    experiment = chosen_learning(options.experiment, games, agents, options.seeds, options.seconds, options.paper_scale)
    engine = chosen_engine(options.engine, options.workers, options.address)
    directory = options.out / experiment.name
    bar = options.progress and sys.stderr.isatty()
    reproduce_learning(
        experiment,
        directory,
        engine,
        fresh=options.fresh,
        keep_agents=options.keep_agents,
        progress=bar,
        on_record=lambda record, left: print(f"{run_in_words(record)}; {left}", flush=True),
    )
    page, *_ = write_learning_report(directory, directory)
    print(f"{directory}: {len(experiment.jobs())} runs done; report in {page}")
    return DONE


def _names(options: ReproduceCommand, flag: str) -> tuple[str, ...]:
    """Return what a flag names; nothing if it is left out, which is not the same as naming none."""
    named: tuple[str, ...] | None = getattr(options, flag)
    if named == ():
        raise ArgumentError(
            f"--{flag} names none", expected="one or more", remedy=f"leave --{flag} out for the usual ones"
        )
    return named or ()
