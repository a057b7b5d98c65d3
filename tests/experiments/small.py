"""Small experiments, and an engine without processes, for tests that are about something else."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from pathlib import Path

from adalook.experiments.chain import ChainExperiment
from adalook.experiments.engines.base import FinishedJob, run_timed
from adalook.experiments.maze import MazeExperiment
from adalook.experiments.sweep import SweepExperiment
from adalook.experiments.trial import Trial

CHAIN = ChainExperiment(lengths=(5, 8), depths=(1, 2, 3))
MAZE = MazeExperiment(seeds=2, size=10, depths=(1, 2, 3), kappa_powers=(2, 3), squares=(2, 3), few=(2,))
SWEEP = SweepExperiment(seeds=1, sizes=(8, 10), discounts=(0.9, 0.98), depths=(1, 2), kappa_powers=(2,))


class Inline:
    """Runs jobs right here; after `most` of them it is stopped by Ctrl-C."""

    def __init__(self, most: int | None = None) -> None:
        self.most, self.ran = most, []

    def run(self, jobs: Sequence[Trial]) -> Generator[FinishedJob]:
        for job in jobs:
            if len(self.ran) == self.most:
                raise KeyboardInterrupt
            self.ran.append(job.name)
            yield run_timed(job)


def digests(directory: Path) -> dict[str, str]:
    """SHA-256 of every file but the one that holds what is not reproducible."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != "times.json")
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
