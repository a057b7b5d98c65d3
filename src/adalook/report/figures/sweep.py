"""Figures of the sweep: fixed and adaptive lookahead on mazes of other sizes and discounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.report.claims.sweep import Grid, SizeAndDiscount, adaptive_ratios, best_fixed, cells, edge_cells
from adalook.report.claims.verdicts import SIMILAR
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import by_group
from adalook.report.data.records import CONVENTIONS, HEADLINE, Convention, GroupStyle
from adalook.report.data.statistics import Estimate
from adalook.report.figures import style
from adalook.report.figures.style import FigureSpec, new_figure, pretty, short_number, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ratios = Mapping[str, Mapping[SizeAndDiscount, Estimate]]


def best_depths(sweep: ExperimentData) -> FigureSpec | None:
    """Draw the best fixed depth by size and discount, a map per convention."""
    grid = cells(sweep)
    if not grid:
        return None
    figure = new_figure(12.6, 5.6)
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    found = {convention: _best_depths(grid, convention) for convention in CONVENTIONS}
    deepest = max(float(np.nanmax(numbers)) for numbers in found.values())
    for panel, convention in zip(axes.ravel(), CONVENTIONS, strict=True):
        numbers = found[convention]
        # A share of the logarithm: 1 to 2 is as large a step as 10 to 20.
        shades = np.log(numbers) / np.log(max(2.0, deepest))
        _map(panel, grid, shades, _depth_texts(grid, numbers, convention), "cividis", (0.0, 1.0))
        panel.set_title(str(convention), fontsize=style.LARGE, loc="left")
    _name_axes(axes)
    return FigureSpec(
        name="sweep-best-depth",
        number="Sweep 1",
        title="Best fixed depth by size of the maze and discount",
        caption=(
            "The depth of h-PI with the lowest mean number of queries in each cell, under each way of counting. "
            f"Depths tried: {', '.join(str(depth) for depth in _depths(grid))}; {_seeds(grid)} seeds per cell. "
            f"{_edges(grid)}"
        ),
        figure=figure,
    )


def relative_costs(sweep: ExperimentData) -> FigureSpec | None:
    """Draw the cost of one setting of each adaptive method over that of the cell's best fixed depth."""
    ratios = adaptive_ratios(sweep, HEADLINE)
    chosen = _one_of_each(sweep, ratios)
    if not chosen:
        return None
    grid = cells(sweep)
    figure = new_figure(0.9 + 3.1 * len(chosen), 3.3)
    axes = figure.subplots(1, len(chosen), sharex=True, sharey=True, squeeze=False)
    for panel, label in zip(axes.ravel(), chosen, strict=True):
        values = _spread_out(grid, {cell: gap.value for cell, gap in ratios[label].items()})
        texts = [["" if np.isnan(value) else f"{value:.2f}" for value in row] for row in values]
        # Twice as many queries and half as many are equally far from 1, and the ends of the colours.
        _map(panel, grid, np.clip(np.log2(values), -2.0, 2.0), texts, "PuOr_r", (-2.0, 2.0))
        panel.set_title(pretty(label), fontsize=style.LARGE, loc="left")
    _name_axes(axes)
    return FigureSpec(
        name="sweep-relative-cost",
        number="Sweep 2",
        title="Adaptive lookahead relative to the best fixed depth of each cell",
        caption=(
            f"Queries ({HEADLINE}) over those of the best fixed depth of the same size and discount; below 1 (violet) "
            "adaptive is cheaper. Of TLPI and QLPI the setting with the lowest worst case is shown; it is picked in "
            f"hindsight, as are the fixed depths. {_edges(grid, HEADLINE)}"
        ),
        figure=figure,
    )


def adaptive(sweep: ExperimentData) -> FigureSpec | None:
    """Draw all adaptive settings in all cells under all conventions, a marker per cell."""
    if not adaptive_ratios(sweep, HEADLINE):
        return None
    styles = {record.label: record.style for record in sweep.records}
    labels = list(adaptive_ratios(sweep, HEADLINE))
    figure = new_figure(11.4, 1.6 + 0.36 * len(labels))
    axes = figure.subplots(2, 3, sharey=True)
    for panel, convention in zip(axes.ravel(), CONVENTIONS, strict=True):
        tidy(panel, title=str(convention), grid="x")
        _strips(panel, adaptive_ratios(sweep, convention), labels, styles)
    for panel in axes[-1]:
        panel.set_xlabel("queries relative to the best fixed depth", fontsize=style.NORMAL)
    for panel in axes[:, 0]:
        panel.set_yticks(range(len(labels)), [pretty(label) for label in labels], fontsize=style.SMALL)
        panel.set_ylim(len(labels) - 0.4, -0.6)
    return FigureSpec(
        name="sweep-adaptive",
        number="Sweep 3",
        title="Every adaptive setting in every cell, under every way of counting",
        caption=(
            "A mark is a size and discount; left of the line is cheaper than its best fixed depth, the band is 10% "
            "around it. A setting that never needs more than the best fixed depth has all its marks left of the line. "
            f"Axes are logarithmic and differ between panels. {_edges(cells(sweep))}"
        ),
        figure=figure,
    )


def _strips(panel: Axes, ratios: Ratios, labels: list[str], styles: Mapping[str, GroupStyle]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    panel.set_xscale("log")
    panel.axvspan(1.0 / SIMILAR, SIMILAR, color=style.PALE, zorder=0)
    panel.axvline(1.0, color=style.INK, linewidth=0.9, zorder=1)
    for place, label in enumerate(labels):
        group = styles[label]
        values = np.array([gap.value for gap in ratios[label].values()])
        # Spread over the height of the row, in order of the cells, so that equal marks can be told apart.
        heights = place + np.linspace(-0.28, 0.28, len(values))
        panel.plot(values, heights, linestyle="", marker=group.marker, markersize=4, color=group.colour, alpha=0.75)
    everything = [gap.value for found in ratios.values() for gap in found.values()]
    decades = np.log10(max(everything) / min(everything))
    subs = (1.0,) if decades > 2.4 else (1.0, 2.0, 5.0)
    panel.xaxis.set_major_locator(LogLocator(10.0 if decades < 5.0 else 100.0, subs=subs, numticks=12))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{short_number(number)}×"))


def _map(
    panel: Axes,
    grid: Mapping[SizeAndDiscount, Any],
    shades: FloatArray,
    texts: list[list[str]],
    colours: str,
    limits: tuple[float, float],
) -> None:
    """Draw a map of sizes × discounts with a text in each cell, light on dark and dark on light."""
    import matplotlib

    sizes, discounts = _sides(grid)
    image = panel.imshow(shades, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    for row in range(len(sizes)):
        for column in range(len(discounts)):
            if np.isnan(shades[row, column]):
                continue
            colour = matplotlib.colormaps[colours](image.norm(shades[row, column]))
            bright = np.dot(colour[:3], (0.299, 0.587, 0.114)) > 0.5
            panel.text(
                column,
                row,
                texts[row][column],
                ha="center",
                va="center",
                fontsize=style.NORMAL,
                color=style.INK if bright else "white",
            )
    panel.set_xticks(range(len(discounts)), [f"{discount:g}" for discount in discounts], fontsize=style.SMALL)
    panel.set_yticks(range(len(sizes)), [f"{size:g}" for size in sizes], fontsize=style.SMALL)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)


def _name_axes(axes: Any) -> None:
    for panel in axes[-1]:
        panel.set_xlabel("discount γ", fontsize=style.NORMAL)
    for panel in axes[:, 0]:
        panel.set_ylabel("size of the maze", fontsize=style.NORMAL)


def _sides(grid: Mapping[SizeAndDiscount, Any]) -> tuple[list[float], list[float]]:
    return sorted({size for size, _ in grid}), sorted({discount for _, discount in grid})


def _spread_out(grid: Mapping[SizeAndDiscount, Any], values: Mapping[SizeAndDiscount, float]) -> FloatArray:
    """Return numbers by cell as an array (sizes, discounts), NaN where there is none."""
    sizes, discounts = _sides(grid)
    return np.array([[values.get((size, discount), np.nan) for discount in discounts] for size in sizes])


def _best_depths(grid: Grid, convention: Convention) -> FloatArray:
    best = {cell: float(best_fixed(there, convention).lookahead) for cell, there in grid.items()}
    return _spread_out(grid, best)


def _depth_texts(grid: Grid, numbers: FloatArray, convention: Convention) -> list[list[str]]:
    """Return depths as texts, (sizes, discounts): "≥ 28" where 28 is the largest depth tried."""
    edge = _spread_out(grid, dict.fromkeys(edge_cells(grid, convention), 1.0))
    return [
        [f"≥ {_whole(depth)}" if last == 1.0 else _whole(depth) for depth, last in zip(depths, lasts, strict=True)]
        for depths, lasts in zip(numbers, edge, strict=True)
    ]


def _edges(grid: Grid, *conventions: Convention) -> str:
    """Say in how many cells the best depth is the largest tried, under each convention (all, or those named)."""
    counts = {convention: len(edge_cells(grid, convention)) for convention in conventions or CONVENTIONS}
    found = [f"{count} of {len(grid)} cells under {convention}" for convention, count in counts.items() if count]
    if not found:
        return "The largest depth tried is nowhere the best."
    return f"Where the best is the largest depth tried (≥), a deeper one may be better still: {', '.join(found)}."


def _one_of_each(sweep: ExperimentData, ratios: Ratios) -> list[str]:
    """Return the setting of each kind of method with the lowest worst case over all cells."""
    groups = {record.label: record.group for record in sweep.records}
    everywhere = {label for label, found in ratios.items() if len(found) == len(cells(sweep))}
    worst = {label: max(gap.value for gap in ratios[label].values()) for label in ratios if label in everywhere}
    chosen = []
    for group in by_group(sweep.records):
        candidates = [label for label in worst if groups[label] == group]
        if candidates:
            chosen.append(min(candidates, key=lambda label: worst[label]))
    return chosen


def _depths(grid: Grid) -> list[int]:
    return sorted({one.lookahead for there in grid.values() for one in there if one.group == "hpi"})


def _seeds(grid: Grid) -> int:
    return max(len(one.runs) for there in grid.values() for one in there)


def _whole(number: float) -> str:
    return "" if np.isnan(number) else str(int(number))
