"""The figure of searches along a rollout: the root state, the best path and the value of each action.

Reads `search.json` and `search.npz`, which `adalook search --out` writes.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._pictures import Pixels, state_image
from adalook.errors import FileError
from adalook.report.figures.style import DOTS_PER_INCH, GREY, INK, NORMAL, SMALL
from adalook.storage.arrays import PICTURES, unpack_arrays
from adalook.storage.documents import parse_json
from adalook.storage.files import atomic_write, read_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMAT, FORMAT_VERSION = "adalook search", 1
MAKE_ONE = "make one with: adalook search ENV --out DIRECTORY"
MOST_ROWS = 5
PANEL_INCHES = 1.55
BEST, OTHER = "#d55e00", "#56b4e9"
"""Of the palette of Okabe and Ito."""


def draw_searches(directory: str | Path) -> Path:
    """Draw the searches saved in a directory as `search.png`; of many, those whose action values differ most."""
    place = Path(directory)
    buffer = io.BytesIO()
    load_figure(place).savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    path = place / "search.png"
    with atomic_write(path) as file:
        file.write(buffer.getvalue())
    return path


def load_figure(place: Path) -> Figure:
    """Return the figure of the searches saved in a directory."""
    about, arrays = load_searches(place)
    try:
        return _figure(about, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise FileError(f"the searches in {place} are damaged", got=repr(error), remedy=MAKE_ONE) from error


def load_searches(place: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what is said about the searches saved in a directory, and their arrays."""
    try:
        about = parse_json(read_file(place / "search.json"))
        if (about["format"], about["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError("another format")
        path = place / "search.npz"
        arrays = unpack_arrays(read_file(path), path, max_growth=PICTURES)
        known = {
            f"{kind}_{number}" for number in range(len(about["searches"])) for kind in ("root", "path", "pictures")
        }
        if unknown := arrays.keys() - known:
            raise ValueError(f"{path.name} holds {min(unknown)!r}, of which search.json says nothing")
        for number, search in enumerate(about["searches"]):
            if len(arrays[f"path_{number}"]) != len(search["path"]) or f"root_{number}" not in arrays:
                raise ValueError(f"search {number} is not complete")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:  # a FileError is an OSError
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot read the searches in {place}", got=reason, remedy=MAKE_ONE) from error
    return about, arrays


def _figure(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Figure:
    from matplotlib.figure import Figure

    searches = about["searches"]
    telling = sorted(range(len(searches)), key=lambda number: -_spread(searches[number]))
    chosen = sorted(telling[:MOST_ROWS])
    columns = max(len(searches[number]["path"]) for number in chosen)
    width = PANEL_INCHES * (columns + 1) + 3.6
    height = (PANEL_INCHES + 0.42) * len(chosen) + 0.55
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(f"{about['env']}, {about['rule']}: lookahead by rewards", fontsize=NORMAL + 2, color=INK)
    grid = figure.add_gridspec(len(chosen), columns + 2, width_ratios=[1.0] * (columns + 1) + [2.1])
    for row, number in enumerate(chosen):
        search = searches[number]
        seen = [arrays[f"root_{number}"], *arrays[f"path_{number}"]]
        images: Sequence[Pixels | str] = [state_image(observation) for observation in seen]
        if len(arrays.get(f"pictures_{number}", ())) == len(images):
            images = list(arrays[f"pictures_{number}"])
        _show(figure.add_subplot(grid[row, 0]), images[0], f"step {search['step']}")
        for column, action in enumerate(search["path"]):
            axes = figure.add_subplot(grid[row, column + 1])
            title = f"action {action}, reward {search['path_rewards'][column]:g}"
            _show(axes, images[column + 1], title)
        _values(figure.add_subplot(grid[row, columns + 1]), search)
    return figure


def _spread(search: dict[str, Any]) -> float:
    """Return by how much the best action beats the worst that was kept."""
    known = [value for value in search["action_values"] if value is not None]
    return float(max(known) - min(known))


def _show(axes: Axes, image: Pixels | str, title: str) -> None:
    axes.set_title(title, fontsize=SMALL, color=INK)
    show_image(axes, image)


def show_image(axes: Axes, image: Pixels | str) -> None:
    """Show the image of a state, or its numbers where there is nothing to draw, without ticks."""
    axes.set_xticks([])
    axes.set_yticks([])
    if isinstance(image, str):
        axes.text(0.5, 0.5, image, ha="center", va="center", fontsize=NORMAL, transform=axes.transAxes)
        axes.set_box_aspect(1.0)
    else:
        axes.imshow(image, interpolation="nearest")


def _values(axes: Axes, search: dict[str, Any]) -> None:
    values = search["action_values"]
    actions = range(len(values))
    heights = [0.0 if value is None else value for value in values]
    colours = [BEST if action == search["action"] else OTHER for action in actions]
    axes.bar(actions, heights, color=colours)
    for action, value in zip(actions, values, strict=True):
        if value is None:
            axes.text(action, 0.0, "×", ha="center", va="bottom", fontsize=SMALL, color=GREY)
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    if _spread(search) == 0.0 and None not in values:
        title = f"every first action is worth {search['value']:.3g}"
    else:
        title = f"value by first action: {search['action']} is best, {search['value']:.3g}"
    if not any(heights):  # bars of no height look like a picture that failed
        which = "all actions" if None not in values else "all actions that were kept"
        axes.text(
            0.5,
            0.5,
            f"{which} tie at 0",
            ha="center",
            va="center",
            fontsize=NORMAL,
            color=INK,
            transform=axes.transAxes,
        )
        axes.set_ylim(-0.05, 1.0)
        axes.set_yticks([0.0])
    axes.set_title(
        f"{title}\ndepth {search['depth']}, {search['nodes']:,} nodes, {search['saved']:,} saved",
        fontsize=SMALL,
        color=INK,
    )
    axes.set_xticks(list(actions))
    axes.tick_params(labelsize=SMALL - 1, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
