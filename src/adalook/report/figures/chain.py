"""Figure 1: the chain, and the iterations and queries of each method on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import by_group, by_model
from adalook.report.data.records import HEADLINE, Record
from adalook.report.figures.style import GREY, INK, LARGE, NORMAL, SMALL, FigureSpec, counts, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHIFT = {"hpi": -0.12, "tlpi": 0.0, "qlpi": 0.12}
"""Marks that would hide each other stand side by side."""


def chain(experiment: ExperimentData) -> FigureSpec | None:
    """Draw the chain; iterations, cost of an iteration and total queries over n and h."""
    by_length = {int(n): records for (n,), records in by_model(experiment.records, "n").items()}
    if not by_length:
        return None
    longest = max(by_length)
    figure = new_figure(12.6, 5.0)
    panels = figure.subplot_mosaic("ddd;abc", height_ratios=(1.0, 2.6))
    _diagram(panels["d"])
    _iterations(panels["a"], by_length)
    _iteration_cost(panels["b"], by_length[longest], longest)
    _totals(panels["c"], by_length[longest], longest)
    handles, labels = panels["a"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=NORMAL)
    return FigureSpec(
        name="figure-1",
        number="Figure 1",
        title="The chain: iterations and queries with fixed and adaptive lookahead",
        caption=(
            "The only reward is for u in the last state; every run starts with the policy that takes d everywhere. "
            "Left: iterations until convergence; TLPI and QLPI follow ⌈(n+1)/h⌉ like h-PI, although they look h steps "
            "ahead in at most h states. Middle: lookahead queries of the most expensive iteration, counted by full "
            f"trees, n = {longest}, against the paper's formulas (lines). Right: total queries until convergence "
            f"({HEADLINE}), n = {longest}; WLPI has no depth to set."
        ),
        figure=figure,
    )


def _diagram(panel: Axes) -> None:
    panel.set_axis_off()
    panel.set_xlim(-0.8, 10.6)
    panel.set_ylim(-0.75, 1.75)
    places = {"$s_0$": 0.0, "$s_1$": 1.8, "$s_2$": 3.6, "$s_{n-1}$": 7.0, "$s_n$": 8.8}
    sink = (4.4, 0.0)
    arrow = {"arrowstyle": "-|>", "color": INK, "shrinkA": 13, "shrinkB": 13, "linewidth": 0.9}
    for x in places.values():
        panel.annotate("", sink, (x, 1.2), arrowprops=arrow | {"color": GREY})
    row = list(places.values())
    for left, right in ((row[0], row[1]), (row[1], row[2]), (row[3], row[4])):
        panel.annotate("", (right, 1.2), (left, 1.2), arrowprops=arrow)
        panel.text((left + right) / 2.0, 1.27, "u", ha="center", va="bottom", fontsize=NORMAL)
    panel.text(5.3, 1.2, "· · ·", ha="center", va="center", fontsize=LARGE + 4)
    circles = {name: (x, 1.2) for name, x in places.items()} | {"$s_{n+1}$": sink}
    for name, centre in circles.items():
        panel.plot(*centre, marker="o", markersize=25, color="white", markeredgecolor=INK, markeredgewidth=1.0)
        panel.text(*centre, name, ha="center", va="center", fontsize=NORMAL)
    panel.text(1.2, 0.72, "d", ha="center", va="center", fontsize=NORMAL, color=GREY)
    panel.text(9.25, 1.2, "u stays, reward 1 − γ;\nother rewards are 0", ha="left", va="center", fontsize=SMALL)
    panel.text(4.95, 0.0, "absorbing state, reward 0", ha="left", va="center", fontsize=SMALL)


def _iterations(panel: Axes, by_length: dict[int, list[Record]]) -> None:
    deepest = 1
    for n, records in by_length.items():
        depths = sorted({record.lookahead for record in records if record.group == "hpi"})
        deepest = max(deepest, *depths)
        panel.plot(depths, [math.ceil((n + 1) / h) for h in depths], color=GREY, linewidth=1.0, zorder=1)
        panel.annotate(
            f"n = {n}", (1, n + 1), (-8, 0), textcoords="offset points", ha="right", va="center", fontsize=SMALL
        )
    groups = by_group(record for records in by_length.values() for record in records)
    columns = _columns(groups, deepest)
    for group, runs in groups.items():
        style = runs[0].style
        panel.plot(
            [columns.get(group, record.lookahead + SHIFT.get(group, 0.0)) for record in runs],
            [record.iterations for record in runs],
            linestyle="",
            marker=style.marker,
            color=style.colour,
            markersize=9 if style.marker == "*" else 5,
            label=style.title,
        )
    panel.plot([], [], color=GREY, linewidth=1.0, label="formula")
    tidy(panel, title="Iterations until convergence", x="depth h")
    panel.set_yscale("log")
    _name_columns(panel, groups, deepest)
    panel.set_xlim(-0.7, max([deepest, *columns.values()]) + 0.5)
    panel.yaxis.set_major_formatter("{x:g}")


def _columns(groups: Mapping[str, list[Record]], deepest: int) -> dict[str, float]:
    """Return where the groups without a depth to set stand: right of the deepest."""
    without = [group for group, runs in groups.items() if not runs[0].has_depth]
    return {group: float(deepest + place) for place, group in enumerate(without, start=1)}


def _name_columns(panel: Axes, groups: Mapping[str, list[Record]], deepest: int) -> None:
    columns = _columns(groups, deepest)
    depths = list(range(1, deepest + 1))
    panel.set_xticks(
        [*depths, *columns.values()], [*map(str, depths), *(groups[name][0].style.title for name in columns)]
    )


LINES = {"hpi": "S · c(h)", "tlpi": "S · c(1) + h · c(h)", "qlpi": "S · c(1) + Σ c(ℓ)"}


def _iteration_cost(panel: Axes, records: list[Record], n: int) -> None:
    for group, formula in LINES.items():
        runs = sorted((record for record in records if record.group == group), key=lambda record: record.lookahead)
        if not runs:
            continue
        style = runs[0].style
        depths = [record.lookahead for record in runs]
        allowed = [record.cost_bound for record in runs]
        panel.plot(depths, allowed, color=style.colour, linewidth=1.0, alpha=0.6)
        panel.plot(
            np.array(depths) + SHIFT[group],
            [max(record.improvement["tree"]) for record in runs],
            linestyle="",
            marker=style.marker,
            markersize=5,
            color=style.colour,
        )
        panel.annotate(
            formula,
            (depths[-1], allowed[-1]),
            (8, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=style.colour,
        )
    tidy(panel, title=f"Lookahead queries per iteration, n = {n}", x="depth h")
    panel.set_yscale("log")
    panel.margins(x=0.06)
    low, high = panel.get_xlim()
    panel.set_xlim(low, high + 0.38 * (high - low))
    panel.set_xticks(sorted({record.lookahead for record in records if record.group == "hpi"}))
    counts(panel)


def _totals(panel: Axes, records: list[Record], n: int) -> None:
    deepest = max(record.lookahead for record in records)
    groups = by_group(sorted(records, key=lambda record: record.lookahead))
    columns = _columns(groups, deepest)
    for group, runs in groups.items():
        style = runs[0].style
        panel.plot(
            [columns.get(group, record.lookahead + SHIFT.get(group, 0.0)) for record in runs],
            [record.total(*HEADLINE) for record in runs],
            color=style.colour,
            linewidth=0.8,
            alpha=0.9,
            marker=style.marker,
            markersize=9 if style.marker == "*" else 5,
        )
    tidy(panel, title=f"Total queries, n = {n}", x="depth h")
    panel.set_ylim(bottom=0.0)
    _name_columns(panel, groups, deepest)
    counts(panel)
