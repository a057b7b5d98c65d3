"""The command `adalook reproduce`: run the paper's experiments."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from adalook.cli.terminal import DONE, INTERRUPTED, optional


@dataclass(frozen=True)
class ReproduceCommand:
    """Run the paper's planning experiments again. Killed or stopped by Ctrl-C, the same command goes on.

    Exit code 0: done; 2: wrong arguments or files; 130: stopped by Ctrl-C, with everything finished so far kept.

    Example: adalook reproduce maze --workers 2
    """

    experiment: Annotated[Literal["chain", "maze", "sweep", "all"], tyro.conf.Positional]
    """chain: the motivating example. maze: the maze experiments. sweep: mazes of other sizes and discounts."""
    seeds: Annotated[int | None, optional(int, "N")] = None
    """Mazes per setting; without it 10 for maze, 3 for sweep. The chain has none."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Results go to DIR/chain, DIR/maze, DIR/sweep."""
    workers: Annotated[int | None, optional(int, "N")] = None
    """Processes; without it one per core. Results do not depend on it."""
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
        from adalook.experiments.registry import chosen_engine, chosen_experiments
        from adalook.experiments.runner import Interrupted, reproduce

        engine = chosen_engine(self.engine, self.workers, self.address)
        bar = self.progress and sys.stderr.isatty()
        for experiment in chosen_experiments(self.experiment, self.seeds):
            directory = self.out / experiment.name
            try:
                print(reproduce(experiment, directory, engine, fresh=self.fresh, progress=bar).sentence)
            except Interrupted as stop:
                print(f"adalook: interrupted: {stop}; run the same command again to go on", file=sys.stderr)
                return INTERRUPTED
        return DONE
