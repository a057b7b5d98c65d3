"""Figures 2 to 4: the maze, the distance to the optimum per iteration, and how fast states contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import MethodRuns, method_runs
from adalook.report.data.records import Record
from adalook.report.data.solution import SavedLayout
from adalook.report.figures.solution import GOAL, TRAP, WALL, draw_walls
from adalook.report.figures.style import GREY, INK, NORMAL, SMALL, FigureSpec, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEEP, SHALLOW = "#0072b2", "#d55e00"
"""Colours of the histogram's bars: more than two steps of lookahead, and less."""
START = "#0072b2"
MARKERS = "osD^vPX*"
HISTOGRAM_PANELS = 5
CUT = 0.30
"""Bars end here, so that the many states that are done do not flatten the rest; those that are cut say their share."""


def snapshot(maze: ExperimentData) -> FigureSpec | None:
    """Draw the maze of the first seed, and the optimal values of its cells."""
    if not maze.models:
        return None
    key, model = next(iter(sorted(maze.models.items())))
    figure = new_figure(7.4, 3.7)
    left, right = figure.subplots(1, 2)
    _draw_maze(left, model.layout)
    left.set_title("the maze", fontsize=NORMAL, loc="left")
    image = right.imshow(model.layout.grid(model.values), cmap="viridis", interpolation="nearest")
    bar = figure.colorbar(image, ax=right, fraction=0.045, pad=0.02)
    bar.ax.tick_params(labelsize=SMALL)
    _draw_maze(right, model.layout)
    right.set_title("optimal value V* of each cell", fontsize=NORMAL, loc="left")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=NORMAL
    )
    rows, columns = model.layout.shape
    return FigureSpec(
        name="figure-2",
        number="Figure 2",
        title=f"The maze, {rows} × {columns}",
        caption=(
            f"Four rooms with doors ({key.replace(',', ', ')}). The agent starts top left and gets 1 for entering one "
            "of the four goals, which moves it to a random cell, and −1 for entering the trap. Goals, trap and the "
            "initial policy are drawn per seed."
        ),
        figure=figure,
    )


def _draw_maze(panel: Axes, layout: SavedLayout) -> None:
    draw_walls(panel, layout)
    kinds = (
        ("start", "o", START, () if layout.start is None else (layout.start,)),
        ("goal", "*", GOAL, layout.goals),
        ("trap", "X", TRAP, layout.traps),
    )
    for name, marker, colour, cells in kinds:
        if cells:
            rows, columns = zip(*cells, strict=True)
            panel.plot(
                columns,
                rows,
                linestyle="",
                marker=marker,
                markersize=9,
                color=colour,
                markeredgecolor="black",
                markeredgewidth=0.7,
                label=name,
            )
    panel.plot([], [], linestyle="", marker="s", markersize=8, color=WALL, label="wall")


def distances(maze: ExperimentData) -> FigureSpec | None:
    """Draw ‖V* − V^π‖ per iteration for each fixed depth; a run that has ended stays at its last distance."""
    fixed = method_runs(maze.records, "hpi")
    if not fixed:
        return None
    import matplotlib
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(12.6, 4.6)
    panel = figure.subplots()
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(fixed)))
    for number, (method, colour) in enumerate(zip(fixed, shades, strict=True)):
        mean, deviation = _mean_distance(method)
        iterations = np.arange(len(mean))
        low, high = np.maximum(mean - deviation, 0.0), mean + deviation
        # not from t = 0: the start is the same for all, far above, and its bands would bury the axis
        panel.fill_between(iterations[1:], low[1:], high[1:], color=colour, alpha=0.12, lw=0)
        panel.plot(
            iterations,
            mean,
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            markersize=4.5,
            linewidth=1.5,
            label=f"h = {method.lookahead}   ({method.iterations().mean():.1f} iterations)",
        )
    tidy(panel, x="iteration t", y=r"distance to the optimum  $\Vert V^\ast - V^{\pi_t}\Vert_\infty$")
    panel.set_ylim(bottom=0.0)
    _cut_the_start(panel, fixed[0])
    panel.set_xlim(left=0.0)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.legend(frameon=False, fontsize=NORMAL)
    return FigureSpec(
        name="figure-3",
        number="Figure 3",
        title="Distance to the optimum per iteration",
        caption=(
            f"h-PI on the maze, means over {len(fixed[0].runs)} seeds, bands ± one standard deviation; a run that has "
            "converged stays at its last distance. In brackets the mean number of iterations that changed the policy."
        ),
        figure=figure,
    )


def _cut_the_start(panel: Axes, method: MethodRuns) -> None:
    """Cut the axis below the first distance if that is far above all others, and write it as text."""
    mean, deviation = _mean_distance(method)  # a random policy may run into the trap for ever
    top = 1.35 * float((mean + deviation)[1:].max(initial=0.0))
    if top == 0.0 or mean[0] < 1.2 * top:
        return
    panel.set_ylim(top=top)
    panel.annotate(
        f"t = 0, all h: {mean[0]:.1f} ± {deviation[0]:.1f}",
        (1.2, top),
        xytext=(4, -3),
        textcoords="offset points",
        va="top",
        fontsize=SMALL,
    )


def _mean_distance(method: MethodRuns) -> tuple[FloatArray, FloatArray]:
    runs = [record.distance for record in method.runs.values()]
    length = max(len(run) for run in runs)
    padded = np.array([np.pad(run, (0, length - len(run)), mode="edge") for run in runs])
    return padded.mean(axis=0), padded.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(length)


def histograms(maze: ExperimentData) -> FigureSpec | None:
    """Draw the share of states by effective lookahead in several iterations t of PI."""
    records = [record for record in maze.records if record.effective_lookahead is not None]
    if not records:
        return None
    typical = int(np.median([record.iterations for record in records]))
    chosen = np.unique(np.linspace(0, max(0, typical - 3), HISTOGRAM_PANELS).round().astype(int))
    figure = new_figure(12.6, 3.1)
    axes = figure.subplots(1, len(chosen), sharey=True, squeeze=False).ravel()
    for panel, iteration in zip(axes, chosen, strict=True):
        _histogram(panel, records, int(iteration))
    axes[0].set_ylabel("share of the states", fontsize=NORMAL)
    return FigureSpec(
        name="figure-4",
        number="Figure 4",
        title="Effective lookahead of the states along the iterations of PI",
        caption=(
            "The effective lookahead of a state is h = log_γ κ with κ = |V* − TV| / ‖V* − V‖∞: one step of PI has "
            "contracted its error as much as h steps are guaranteed to. Means over the seeds that have not converged, "
            "bars ± one standard deviation. Hatched: κ > γ², the states that slow PI down. Where a bar is cut, its "
            "share is written beside it."
        ),
        figure=figure,
    )


def _histogram(panel: Axes, records: list[Record], iteration: int) -> None:
    from matplotlib.ticker import PercentFormatter

    rows = [record.effective_lookahead for record in records if record.effective_lookahead is not None]
    shares = np.array([row[iteration] for row in rows if len(row) > iteration])
    mean = shares.mean(axis=0)
    deviation = shares.std(axis=0, ddof=1) if len(shares) > 1 else np.zeros_like(mean)
    places = np.arange(len(mean))
    tidy(panel, title=f"iteration t = {iteration}", x="effective lookahead h")
    bars = panel.bar(places, mean, width=0.86, color=DEEP)
    for bar in bars[:2]:
        bar.set(facecolor="white", edgecolor=SHALLOW, hatch="////")
    inside = mean < CUT
    low = np.minimum(deviation, mean)
    panel.errorbar(
        places[inside], mean[inside], yerr=[low[inside], deviation[inside]], fmt="none", ecolor=GREY, elinewidth=0.9
    )
    for place in places[~inside]:
        panel.annotate(
            f"{mean[place]:.0%}",
            (place - 0.55, CUT),
            ha="right",
            va="top",
            fontsize=NORMAL,
            color=INK,
            xytext=(0, -2),
            textcoords="offset points",
        )
    panel.annotate(
        f"κ ≤ γ² in {100 * mean[2:].sum():.1f}%\n{len(shares)} of {len(rows)} seeds",
        (0.03, 0.97),
        xycoords="axes fraction",
        ha="left",
        va="top",
        fontsize=SMALL,
    )
    panel.set_ylim(0.0, CUT)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    last = len(mean) - 1
    ticks = [*range(0, last, 5), last]
    panel.set_xticks(ticks, [*(str(tick) for tick in ticks[:-1]), f"≥{last}"])
