"""A figure with its title and caption, before and after it is saved as SVG and PNG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adalook.report.figures.style import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FigureSpec:
    """A figure that is drawn but not saved, with its name, title and caption."""

    name: str
    """Of its files, without suffix."""
    number: str
    """As in the paper, such as 'Figure 4'; figures of our own have other names."""
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
