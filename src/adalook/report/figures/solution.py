"""The figure of a solution on a grid: values and policy, and the deepest lookahead per state.

Drawn with Figure objects only, so nothing global is touched and no window is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._pictures import depth_bin, depth_colour
from adalook.errors import FileError
from adalook.report.data.solution import SavedLayout, SavedSolution, load_solution
from adalook.report.figures.style import DOTS_PER_INCH, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

SMALL_GRID = 40
"""Up to this many rows and columns a cell is large enough for an arrow, and an SVG is worth its size."""
PANEL_INCHES = 5.6
"""The longer side of a panel."""
WIDE = 1.8
"""Grids wider than this many times their height get their panels on top of each other."""
MOST_NAMED_DEPTHS = 10
"""Up to this many different depths a scale goes by rank; beyond that by the number."""

MOST_BARS = 60
"""Up to this many states of a model without a grid get a bar each."""

WALL, EMPTY = "#3b3b3b", "#f4f4f4"
GOAL, TRAP = "#cc79a7", "#d55e00"
"""From the palette of Okabe and Ito, which the colour-blind can tell apart; the shapes differ too."""
BAR_INCHES = 0.17


def draw_solution(directory: str | Path) -> list[Path]:
    """Draw the solution saved in a directory as `solution.png` beside it and, if the grid is small, `solution.svg`.

    Returns:
        the files drawn.
    """
    folder = Path(directory)
    solution = load_solution(folder)
    if solution.layout is None:
        raise FileError(
            f"the solution in {folder} cannot be drawn: its model has no layout",
            remedy="give the model one: al.MDP(…, layout=al.Layout(cells, walls))",
        )
    kinds = ["png", "svg"] if max(solution.layout.shape) <= SMALL_GRID else ["png"]
    return save(_figure(solution, solution.layout), folder / "solution", kinds)


def solution_figure(directory: str | Path) -> Figure:
    """Return the figure of a solution saved in a directory: on its grid or, if it has none, values by state."""
    solution = load_solution(Path(directory))
    return _values_by_state(solution) if solution.layout is None else _figure(solution, solution.layout)


def _values_by_state(solution: SavedSolution) -> Figure:
    """Return a bar per state with its action for small models, otherwise the values in the order of the states."""
    from matplotlib.figure import Figure

    count = len(solution.values)
    if count > MOST_BARS:
        figure = Figure(figsize=(8.0, 4.5), layout="constrained")
        panel = figure.subplots()
        panel.plot(np.arange(count), solution.values, linewidth=0.8)
        panel.set_xlabel("state")
        panel.set_ylabel("value")
    else:
        figure = Figure(figsize=(8.0, 1.6 + 0.28 * count), layout="constrained")
        panel = figure.subplots()
        places = np.arange(count)
        actions = [solution.action_label(action) for action in solution.policy.tolist()]
        distinct = list(dict.fromkeys(actions))
        for number, action in enumerate(distinct):
            chosen = [place for place in places if actions[place] == action]
            panel.barh(chosen, solution.values[chosen], color=f"C{number % 10}", label=action)
        panel.set_yticks(places, [solution.state_label(state) for state in range(count)])
        panel.invert_yaxis()
        panel.set_xlabel("value")
        figure.legend(title="action", loc="outside right upper", frameon=False)
    figure.suptitle(_title(solution.about), fontsize=12)
    return figure


def _figure(solution: SavedSolution, layout: SavedLayout) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows, columns = layout.shape
    scale = PANEL_INCHES / max(rows, columns)
    width, height = max(2.0, columns * scale), max(1.0, rows * scale)
    panels = 1 if solution.depth is None else 2
    stacked = columns > WIDE * rows
    across, down = (1, panels) if stacked else (panels, 1)
    figure = Figure(
        figsize=(across * (width + 1.2) + 0.2, down * (height + 0.4) + 1.1),
        layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, wspace=0.02, hspace=0.02),
    )
    axes = figure.subplots(down, across, squeeze=False).ravel()
    points = 72.0 * scale
    bar = BAR_INCHES / (columns * scale)
    _draw_values(axes[0], solution, layout, points, bar)
    if solution.depth is not None:
        _draw_depths(axes[1], layout.grid(solution.depth), bar)
    for panel in axes:
        _draw_grid(panel, layout, points)
    _write_legend(figure, layout)
    figure.suptitle(_title(solution.about), fontsize=12)
    return figure


def _title(about: dict[str, Any]) -> str:
    count = about["iterations"]
    loss = about["policy_loss"]
    parts = [
        str(about["method"]),
        str(about["status"]).lower().replace("_", " "),
        f"{count} iteration{'' if count == 1 else 's'}",
        "no finite bound on the loss" if loss is None else f"certified loss ≤ {loss:.2g}",
    ]
    if not about["certified"]:
        parts[-1] += ", tolerance not certified"
    source, states = about["model"]["source"], f"{about['model']['states']:,} states"
    return " · ".join(parts) + "\n" + (f"{source} · {states}" if source else states)


def _draw_values(panel: Axes, solution: SavedSolution, layout: SavedLayout, points: float, bar_width: float) -> None:
    import matplotlib
    from matplotlib.colors import Normalize

    grid = layout.grid(solution.values)
    low, high = (np.nanmin(grid), np.nanmax(grid)) if np.isfinite(grid).any() else (0.0, 0.0)
    span = Normalize(low, high if high > low else low + 1.0)
    colours = matplotlib.colormaps["viridis"]
    image = panel.imshow(grid, cmap=colours, norm=span, interpolation="nearest")
    _add_bar(panel, image, "value", bar_width)
    arrows = bool(layout.moves) and max(layout.shape) <= SMALL_GRID
    panel.set_title("Values and policy" if arrows else "Values", fontsize=11)
    if arrows:
        _draw_arrows(panel, solution.policy, layout, colours, span(grid), points)


def _draw_arrows(
    panel: Axes, policy: np.ndarray, layout: SavedLayout, colours: Colormap, shades: np.ndarray, points: float
) -> None:
    """Draw policy arrows, light on dark cells and dark on light ones; none below a goal or a trap."""
    covered = np.zeros(layout.shape, bool)
    for cell in (*layout.goals, *layout.traps):
        covered[cell] = True
    row, column = layout.cells.T
    step = np.asarray(layout.moves)[policy]
    shown = (row >= 0) & step.any(axis=1)
    shown[shown] = ~covered[row[shown], column[shown]]
    row, column, step = row[shown], column[shown], step[shown]
    bright = colours(shades[row, column])[:, :3] @ (0.299, 0.587, 0.114) > 0.5
    panel.quiver(
        column,
        row,
        0.62 * step[:, 1],
        0.62 * step[:, 0],
        color=np.where(bright, "#1a1a1a", "#ffffff"),
        angles="xy",
        scale_units="xy",
        scale=1.0,
        pivot="mid",
        units="dots",
        width=max(1.0, 0.09 * points * DOTS_PER_INCH / 72.0),
        headwidth=3.4,
        headlength=3.4,
        headaxislength=3.0,
    )


def _draw_depths(panel: Axes, grid: np.ndarray, bar_width: float) -> None:
    """Draw the depth per cell, in the colours that depths have everywhere; on a scale if some are too deep for them."""
    import matplotlib
    from matplotlib.colors import BoundaryNorm, ListedColormap

    used = np.unique(grid[np.isfinite(grid)]).astype(int)
    used = used if len(used) else np.array([1])
    named = len(used) <= MOST_NAMED_DEPTHS
    levels = used if named else np.arange(used[0], used[-1] + 1)
    bounds = np.concatenate([[levels[0] - 0.5], (levels[1:] + levels[:-1]) / 2.0, [levels[-1] + 0.5]])
    scale: Any = matplotlib.colormaps["cividis"](np.linspace(0.0, 1.0, max(2, len(levels))))[: len(levels)]
    if depth_bin(int(used[-1]) + 1) > used[-1]:
        scale = [depth_colour(int(depth)) for depth in levels]
    image = panel.imshow(
        grid, cmap=ListedColormap(scale), norm=BoundaryNorm(bounds, len(levels)), interpolation="nearest"
    )
    bar = _add_bar(panel, image, "depth in steps", bar_width, spacing="uniform")
    if named:
        bar.set_ticks((bounds[1:] + bounds[:-1]) / 2.0, labels=[str(level) for level in levels])
    else:
        step = next(step for step in (2, 5, 10, 20, 50, *range(100, 60_001, 100)) if len(levels) <= step * 12)
        bar.set_ticks([levels[0], *(level for level in levels[1:] if level % step == 0)])
    bar.ax.minorticks_off()
    panel.set_title("Deepest lookahead per state", fontsize=11)


def _add_bar(panel: Axes, image: Any, label: str, width: float, **options: Any) -> Any:
    """Add a colour bar exactly as high as the panel."""
    room = panel.inset_axes((1.0 + 0.5 * width, 0.0, width, 1.0))
    bar = panel.figure.colorbar(image, cax=room, **options)
    bar.set_label(label, fontsize=10)
    bar.ax.tick_params(labelsize=9)
    return bar


def _draw_grid(panel: Axes, layout: SavedLayout, points: float) -> None:
    """Draw walls, goals, traps and the start; the same on both panels."""
    draw_walls(panel, layout)
    for mark in _marks(layout):
        x, y = [cell[1] for cell in mark.cells], [cell[0] for cell in mark.cells]
        panel.plot(x, y, clip_on=False, zorder=3, **mark.style(points))


def draw_walls(panel: Axes, layout: SavedLayout) -> None:
    """Draw the walls of a grid, with a frame but no axes: cells have no units."""
    panel.set_facecolor(EMPTY)
    walls = np.zeros((*layout.shape, 4), np.uint8)
    walls[layout.walls] = [int(WALL[i : i + 2], 16) for i in (1, 3, 5)] + [255]
    panel.imshow(walls, interpolation="nearest")
    panel.set_xticks([])
    panel.set_yticks([])


@dataclass(frozen=True)
class _Mark:
    """A kind of special cell; without a colour it is a ring, so that the arrow inside can be seen."""

    name: str
    shape: str
    colour: str | None
    cells: tuple[tuple[int, int], ...]

    def style(self, points: float) -> dict[str, Any]:
        """Return the plot style where a cell is `points` points wide."""
        from matplotlib.patheffects import withStroke

        # Most of a cell, but never too small to see, unless there are so many that they would overlap.
        least = 8.0 if len(self.cells) <= 60 else 1.0
        size = float(np.clip((0.6 if self.colour else 0.85) * points, least, 40.0))
        edge = min(1.0, 0.07 * size)
        style: dict[str, Any] = {"linestyle": "", "marker": self.shape, "markersize": size}
        if self.colour:
            return style | {"markerfacecolor": self.colour, "markeredgecolor": "black", "markeredgewidth": edge}
        rim = [withStroke(linewidth=4.0 * edge, foreground="black")]
        ring = {"markerfacecolor": "none", "markeredgecolor": "white", "markeredgewidth": 2.0 * edge}
        return style | ring | {"path_effects": rim}


def _marks(layout: SavedLayout) -> list[_Mark]:
    kinds = (
        _Mark("start", "o", None, () if layout.start is None else (layout.start,)),
        _Mark("goal", "*", GOAL, layout.goals),
        _Mark("trap", "X", TRAP, layout.traps),
    )
    return [kind for kind in kinds if kind.cells]


def _write_legend(figure: Figure, layout: SavedLayout) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = _marks(layout)
    entries: list[Any] = [Line2D([], [], **mark.style(points=0.0) | {"markersize": 10}) for mark in marks]
    names = [mark.name for mark in marks]
    if layout.walls.any():
        entries.append(Patch(facecolor=WALL, edgecolor=WALL))
        names.append("wall")
    if entries:
        figure.legend(
            entries, names, loc="outside lower center", ncols=len(entries), frameon=False, fontsize=10, handlelength=1.2
        )
