"""Style and saving of figures: colours and markers that work for the colour-blind and in print.

Drawn with Figure objects only, so nothing global is touched and no window is needed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook.report.data.records import GroupStyle
from adalook.report.data.statistics import mean, mean_and_std
from adalook.storage.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
SMALL, NORMAL, LARGE = 8, 9, 10
"""Sizes of letters in points, at the size of a printed page."""
INK, GREY, PALE = "#222222", "#8a8a8a", "#e9e9e9"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def pretty(label: str) -> str:
    """Replace powers such as γ^3 by superscripts.

    >>> pretty("TLPI γ^3, similar task")
    'TLPI γ³, similar task'
    """
    return re.sub(r"\^(\d+)", lambda match: match[1].translate(SUPERSCRIPTS), label)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, whose panels keep clear of each other's labels."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(
        figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, wspace=0.02, hspace=0.04)
    )


def tidy(panel: Axes, *, title: str = "", x: str = "", y: str = "", grid: str = "y") -> None:
    """Give a panel its title and labels, two spines and a faint grid behind the data."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_axisbelow(True)
    if grid:
        panel.grid(axis=grid, color=PALE, linewidth=0.8)  # type: ignore[arg-type]
    panel.tick_params(labelsize=SMALL)
    panel.set_title(title, fontsize=LARGE, loc="left")
    panel.set_xlabel(x, fontsize=NORMAL)
    panel.set_ylabel(y, fontsize=NORMAL)


def spread(panel: Axes, place: float, samples: np.ndarray, style: GroupStyle) -> None:
    """Draw samples of several seeds: mean, 95% interval of the mean (thick) and standard deviation (thin)."""
    centre, deviation = mean_and_std(samples)
    interval = mean(samples)
    # On a logarithmic axis a deviation larger than the mean would reach below zero.
    low = max(centre - deviation, 0.02 * centre)
    panel.plot([place, place], [low, centre + deviation], color=GREY, linewidth=1.0, solid_capstyle="butt")
    panel.plot(
        [place, place],
        [interval.low, interval.high],
        color=style.colour,
        linewidth=3.2,
        solid_capstyle="butt",
        alpha=0.55,
    )
    panel.plot(
        [place],
        [centre],
        linestyle="",
        marker=style.marker,
        markersize=12 if style.marker == "*" else 6,
        color=style.colour,
        markeredgecolor="white",
        markeredgewidth=0.6,
    )


def counts(panel: Axes, axis: str = "y") -> None:
    """Write large numbers on an axis as 200 k and 3 M."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    ticks = panel.yaxis if axis == "y" else panel.xaxis
    ticks.set_major_formatter(FuncFormatter(lambda number, _: short_number(number)))
    ticks.set_minor_formatter(NullFormatter())


def short_number(number: float) -> str:
    """Format a number in at most three digits and a unit.

    >>> [short_number(number) for number in (12, 2_500, 486_000, 3e6)]
    ['12', '2.5 k', '486 k', '3 M']
    """
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


def save(figure: Figure, stem: Path, kinds: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write a figure as `stem`.svg and `stem`.png; the same figure gives the same bytes: a fixed salt and no date."""
    import matplotlib

    paths = []
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, for all files
    with matplotlib.rc_context({"svg.hashsalt": "adalook"}):
        for kind in kinds:
            buffer = io.BytesIO()
            metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
            figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
            path = stem.with_name(f"{stem.name}.{kind}")
            with atomic_write(path) as file:
                file.write(buffer.getvalue())
            paths.append(path)
    return paths


@dataclass(frozen=True)
class FigureSpec:
    """A figure that is drawn but not saved, with its name, title and caption."""

    name: str
    """Of its files, without suffix."""
    number: str
    """As in the paper, such as 'Figure 4'; figures of our own have other names, or none."""
    title: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class SavedFigure:
    """A figure on disk, with its title and caption."""

    number: str
    title: str
    caption: str
    svg: Path
    png: Path


def save_figure(spec: FigureSpec, directory: Path) -> SavedFigure:
    """Write a figure as NAME.svg and NAME.png into a directory."""
    svg, png = save(spec.figure, directory / spec.name)
    return SavedFigure(spec.number, spec.title, spec.caption, svg, png)
