"""Every planning figure and table of the paper under its own number, and ours beside them.

To add a figure, write a function that returns its `FigureSpec`, or None without data, and add it to the list here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from adalook.report.data.experiment import ExperimentData
from adalook.report.figures import chain, maze, queries, sweep, table_one
from adalook.report.figures.style import FigureSpec, SavedFigure, save_figure
from adalook.storage.files import make_directory


def draw_figures(experiments: Mapping[str, ExperimentData], directory: str | Path) -> list[SavedFigure]:
    """Draw and save whatever the experiments have data for, in the order of the paper.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     draw_figures({}, directory)
    []
    """
    make_directory(Path(directory))
    return [save_figure(spec, Path(directory)) for spec in planning_figures(experiments)]


def planning_figures(experiments: Mapping[str, ExperimentData]) -> list[FigureSpec]:
    """Return the figures that the experiments have data for, in the order of the paper."""
    specs: list[FigureSpec | None] = [table_one.comparison_table(experiments)]
    if "chain" in experiments:
        specs.append(chain.chain(experiments["chain"]))
    if "maze" in experiments:
        mazes = experiments["maze"]
        specs += [maze.snapshot(mazes), maze.distances(mazes), maze.histograms(mazes)]
        specs += [*queries.panels_by_convention(mazes), queries.overview(mazes)]
    if "sweep" in experiments:
        grid = experiments["sweep"]
        specs += [sweep.best_depths(grid), sweep.relative_costs(grid), sweep.adaptive(grid)]
    return [spec for spec in specs if spec is not None]
