"""Figures of a state gallery: states by the depth chosen in them, and depth along the episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook._pictures import depth_bin, depth_colour, depth_label
from adalook.report.data.state_gallery import GalleryState, StateGallery
from adalook.report.figures.run_curves import WIDTH
from adalook.report.figures.search_view import show_image
from adalook.report.figures.style import GREY, INK, LARGE, SMALL, FigureSpec, counts, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

STATES_PER_DEPTH = 7
PANEL_INCHES = 1.55
CAPTION_INCHES = 0.62
MOST_BINS = 40
MOST_STRIPS = 8


def states_by_depth(gallery: StateGallery, name: str) -> FigureSpec:
    """Draw a row of states for each depth, with depth, action and distances below each."""
    depths = gallery.depths
    height = (PANEL_INCHES + CAPTION_INCHES) * len(depths) + 0.2
    figure = new_figure(WIDTH, height)
    grid = figure.add_gridspec(len(depths), STATES_PER_DEPTH + 1, width_ratios=[0.55] + [1.0] * STATES_PER_DEPTH)
    for row, depth in enumerate(depths):
        _label_row(figure.add_subplot(grid[row, 0]), gallery, depth)
        for column, state in enumerate(gallery.examples(depth, STATES_PER_DEPTH), start=1):
            _show(figure.add_subplot(grid[row, column]), gallery, state)
    measured = any(state.distances for state in gallery.states)
    distance = (
        " d₁, d₂, … are the distances after depth 1, 2, …; the search goes deeper where they are large."
        if measured
        else ""
    )
    caption = (
        f"Seen by {gallery.agent} in {_episodes(gallery)}, "
        f"spread evenly over the different states of each depth. Below each: the depth chosen and the action taken."
        f"{distance}"
    )
    return FigureSpec(name, "", "States by depth chosen", caption, figure)


def _episodes(gallery: StateGallery) -> str:
    count = len(gallery.episodes)
    words = f"{count} evaluation episode{'' if count == 1 else 's'} ({len(gallery.states):,} decisions"
    return words + (", not all to their end)" if gallery.cut_short else ")")


def _label_row(panel: Axes, gallery: StateGallery, depth: int) -> None:
    count = sum(state.depth == depth for state in gallery.states)
    panel.axis("off")
    panel.add_patch(_swatch(panel, depth))
    panel.text(0.0, 0.62, f"depth {depth}", fontsize=LARGE, fontweight="bold", color=INK, transform=panel.transAxes)
    panel.text(0.0, 0.46, f"{count:,} of {len(gallery.states):,}", fontsize=SMALL, color=INK, transform=panel.transAxes)
    panel.text(0.0, 0.34, "decisions", fontsize=SMALL, color=INK, transform=panel.transAxes)


def _swatch(panel: Axes, depth: int) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((0.0, 0.8), 0.35, 0.12, color=depth_colour(depth), transform=panel.transAxes, clip_on=False)


def _show(panel: Axes, gallery: StateGallery, state: GalleryState) -> None:
    show_image(panel, state.image)
    for spine in panel.spines.values():
        spine.set_color(GREY)
    lines = [f"depth {state.depth}, {gallery.action_name(state.action)}", *_distance_lines(state)]
    panel.set_xlabel("\n".join(lines), fontsize=SMALL, color=INK, linespacing=1.3)


def _distance_lines(state: GalleryState) -> list[str]:
    """Return the distances of a state as lines of at most two, which is as many as fit below an image."""
    named = [
        f"d{str(depth).translate(_SUBSCRIPTS)} {distance:.2g}" for depth, distance in sorted(state.distances.items())
    ]
    return ["  ".join(named[place : place + 2]) for place in range(0, len(named), 2)]


_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def depth_along_episodes(gallery: StateGallery, name: str) -> FigureSpec | None:
    """Draw the depth of decisions by step of the episode; None if there is only one depth."""
    if len(gallery.depths) < 2:
        return None
    figure = new_figure(WIDTH, 3.4)
    histogram, strips = figure.subplots(1, 2)
    _draw_histogram(histogram, gallery)
    _draw_strips(strips, gallery)
    handles, labels = histogram.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=len(handles), frameon=False, fontsize=SMALL)
    caption = (
        f"The same {_episodes(gallery)}. Left: decisions by the depth chosen and the step of the episode. "
        "Right: the episodes one below the other, a line for each step, in the colour of its depth."
    )
    return FigureSpec(name, "", "Depth along the episode", caption, figure)


def _draw_histogram(panel: Axes, gallery: StateGallery) -> None:
    from matplotlib.ticker import MaxNLocator

    last = max(state.step for state in gallery.states) + 1
    width = max(1, -(-last // MOST_BINS))  # whole steps, so that no bin has more of them than another
    edges = np.arange(0, last + width, width)
    below = np.zeros(len(edges) - 1)
    for depth in sorted({depth_bin(depth) for depth in gallery.depths}):
        steps = [state.step for state in gallery.states if depth_bin(state.depth) == depth]
        heights, _ = np.histogram(steps, edges)
        panel.bar(
            edges[:-1],
            heights,
            width=np.diff(edges),
            bottom=below,
            align="edge",
            color=depth_colour(depth),
            edgecolor="white",
            linewidth=0.4,
            label=depth_label(depth),
        )
        below = below + heights
    tidy(panel, x="step of the episode", y="decisions")
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    counts(panel, "x")
    panel.set_xlim(0, edges[-1])


def _draw_strips(panel: Axes, gallery: StateGallery) -> None:
    from matplotlib.colors import ListedColormap

    shown = gallery.episodes[:MOST_STRIPS]
    last = max(state.step for state in gallery.states if state.episode in shown) + 1
    cells = np.full((len(shown), last), np.nan)
    for state in gallery.states:
        if state.episode in shown:
            cells[shown.index(state.episode), state.step] = state.depth
    deepest = max(gallery.depths)
    palette = ListedColormap([depth_colour(depth) for depth in range(deepest + 1)])
    panel.imshow(
        cells,
        aspect="auto",
        interpolation="nearest",
        cmap=palette,
        vmin=-0.5,
        vmax=deepest + 0.5,
        extent=(0, last, len(shown) - 0.5, -0.5),
    )
    for boundary in range(len(shown) - 1):
        panel.axhline(boundary + 0.5, color="white", linewidth=5)
    tidy(panel, x="step of the episode", y="episode", grid="")
    panel.set_yticks(range(len(shown)), [str(episode + 1) for episode in shown])
    panel.spines["left"].set_visible(False)
    panel.tick_params(axis="y", length=0)
    counts(panel, "x")
