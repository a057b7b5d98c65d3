"""Every planning figure and table of the paper under its own number, and ours beside them, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adalook.report.data.experiment import ExperimentData
from adalook.report.figures import chain as figures_chain
from adalook.report.figures import maze as figures_maze
from adalook.report.figures import queries as figures_queries
from adalook.report.figures import sweep as figures_sweep
from adalook.report.figures import table_one
from adalook.report.figures.spec import Sketch
from adalook.report.figures.style import save
from adalook.storage.files import make_directory


@dataclass(frozen=True)
class Figure:
    """A figure on disk."""

    number: str
    """As in the paper, such as 'Figure 4'; ours have names instead."""
    title: str
    caption: str
    svg: Path
    png: Path


def draw_figures(experiments: Mapping[str, ExperimentData], directory: str | Path) -> list[Figure]:
    """Draw whatever the experiments have data for, in the order of the paper.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     draw_figures({}, directory)
    []
    """
    place = Path(directory)
    make_directory(place)
    figures = []
    for sketch in sketch_figures(experiments):
        svg, png = save(sketch.figure, place / sketch.name)
        figures.append(Figure(sketch.number, sketch.title, sketch.caption, svg, png))
    return figures


def sketch_figures(experiments: Mapping[str, ExperimentData]) -> list[Sketch]:
    """The same before they are saved."""
    sketches: list[Sketch | None] = [table_one.sketch(experiments)]
    if "chain" in experiments:
        sketches.append(figures_chain.chain(experiments["chain"]))
    if "maze" in experiments:
        maze = experiments["maze"]
        sketches += [figures_maze.snapshot(maze), figures_maze.distances(maze), figures_maze.histograms(maze)]
        sketches += figures_queries.panels_by_convention(maze)
        sketches.append(figures_queries.overview(maze))
    if "sweep" in experiments:
        sweep = experiments["sweep"]
        sketches += [
            figures_sweep.best_depths(sweep),
            figures_sweep.relative_costs(sweep),
            figures_sweep.adaptive(sweep),
        ]
    return [sketch for sketch in sketches if sketch is not None]
