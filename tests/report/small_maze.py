"""A maze experiment that takes a second, run for real: two seeds of a 10×10 maze."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

from adalook.experiments.engines.base import FinishedJob, run_timed
from adalook.experiments.maze import MazeExperiment
from adalook.experiments.runner import reproduce
from adalook.experiments.trial import Trial


class OneByOne:
    """An engine in this very process."""

    def run(self, jobs: Sequence[Trial]) -> Generator[FinishedJob]:
        yield from map(run_timed, jobs)


def run_small_maze(directory: Path) -> Path:
    reproduce(MazeExperiment(seeds=2, size=10, depths=(1, 2, 3), few=(2,), squares=(2, 3)), directory, OneByOne())
    return directory
