"""A figure before it is saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Sketch:
    """What to draw, what to call it and what to say below it."""

    name: str
    """Of its files, without suffix."""
    number: str
    title: str
    caption: str
    figure: Figure
