"""Figure 5: queries until convergence for every method and setting, under each way of counting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook.report.claims.verdicts import SIMILAR
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import (
    FIXED,
    MethodRuns,
    cheapest,
    cost_ratio,
    depth_name,
    largest_tried,
    method_runs,
    wlpi_like_for_like,
)
from adalook.report.data.records import CONVENTIONS, HEADLINE, Convention
from adalook.report.data.statistics import FEWEST_SAMPLES
from adalook.report.figures.style import (
    GREY,
    INK,
    LARGE,
    NORMAL,
    PALE,
    SMALL,
    FigureSpec,
    counts,
    new_figure,
    pretty,
    short_number,
    spread,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = (
    (("hpi",), "Fixed lookahead", "h"),
    (("tlpi",), "TLPI, Ṽ* = V*", "κ"),
    (("qlpi",), "QLPI, Ṽ* = V*", "θ₂, θ₄, θ₈"),
    (("aggregated",), "QLPI, aggregated", "cells per group"),
)
"""Groups, title and x-axis of the paper's panels."""
OTHERS = ("New here: no prior, other priors", "method, PI passes for its prior")
"""Title and x-axis of the panel of all other groups."""
GROUP_NAMES = {"few": "a few iterations of PI", "similar": "similar task"}
WIDE_RANGE = 12.0
"""Beyond this ratio of the highest to the lowest cost the axis is logarithmic."""


def panels_by_convention(maze: ExperimentData) -> list[FigureSpec]:
    """Draw Figure 5 under the headline convention, then under each of the others."""
    if not method_runs(maze.records, FIXED):
        return []
    return [_panels_spec(maze, convention) for convention in CONVENTIONS]


def _panels_spec(maze: ExperimentData, convention: Convention) -> FigureSpec:
    headline = convention == HEADLINE
    methods = method_runs(maze.records)
    best = cheapest([one for one in methods if one.group == FIXED], convention)
    assert best is not None, "there are fixed depths"
    bars = "" if len(best.runs) >= FEWEST_SAMPLES else f" (fewer than {FEWEST_SAMPLES} seeds, too few for an interval)"
    return FigureSpec(
        name=f"figure-5-{convention.improvement}-{convention.evaluation}",
        number="Figure 5" if headline else f"Figure 5, {convention}",
        title=f"Queries to the model until convergence, counted by {convention}",
        caption=(
            f"Lower is better. {convention.explanation} Marks are means over {len(best.runs)} seeds, thin bars ± one "
            f"standard deviation as in the paper, thick bars 95% bootstrap intervals of the mean{bars}. Dashed line: "
            f"the best fixed depth ({pretty(depth_name(best, methods))}), with a band of 10% around it. The cost of "
            "aggregated priors and of those from a few iterations is included; V* and the similar task are taken as "
            f"given. The fifth panel is not in the paper. {wlpi_like_for_like(methods)}".rstrip()
        ),
        figure=_panels(maze, convention, best),
    )


def _panels(maze: ExperimentData, convention: Convention, best: MethodRuns) -> Figure:
    shown = [(method_runs(maze.records, *groups), title, x) for groups, title, x in PANELS]
    paper = {group for groups, _, _ in PANELS for group in groups}
    shown.append(([one for one in method_runs(maze.records) if one.group not in paper], *OTHERS))
    shown = [panel for panel in shown if panel[0]]
    figure = new_figure(12.6, 3.9)
    widths = [len(methods) + 1.2 for methods, _, _ in shown]
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False, gridspec_kw={"width_ratios": widths}).ravel()
    means = [one.totals(convention).mean() for methods, _, _ in shown for one in methods]
    level = best.totals(convention).mean()
    for panel, (methods, title, x) in zip(axes, shown, strict=True):
        tidy(panel, title=title, x=x)
        panel.axhspan(level / SIMILAR, level * SIMILAR, color=PALE, zorder=0)
        panel.axhline(level, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
        for place, method in enumerate(methods):
            spread(panel, place, method.totals(convention), method.style)
        _name_settings(panel, methods)
        panel.set_xlim(-0.7, len(methods) - 0.3)
    _scale(axes[0], means)
    axes[0].set_title(f"Fixed lookahead, best {short_number(level)}", fontsize=LARGE, loc="left")
    axes[0].set_ylabel(f"queries until convergence\n({convention})", fontsize=NORMAL)
    return figure


def _scale(panel: Axes, means: list[float]) -> None:
    """Scale an axis from zero, or logarithmically if costs differ widely, with room for names on top."""
    from matplotlib.ticker import LogLocator

    ratio = max(means) / min(means)
    if ratio <= WIDE_RANGE:
        panel.set_ylim(0.0, 1.1 * panel.get_ylim()[1])
    else:
        panel.set_yscale("log")
        panel.set_ylim(top=max(means) * ratio**0.15)
        panel.yaxis.set_major_locator(LogLocator(10.0, subs=(1.0, 2.0, 5.0) if ratio < 200.0 else (1.0,)))
    counts(panel)


def _name_settings(panel: Axes, methods: list[MethodRuns]) -> None:
    panel.set_xticks(range(len(methods)), [_setting(method) for method in methods], fontsize=SMALL)
    groups = [method.group for method in methods]
    if len(set(groups)) == 1:
        return
    for group in (group for group in dict.fromkeys(groups) if group in GROUP_NAMES):
        places = [place for place, other in enumerate(groups) if other == group]
        panel.annotate(
            GROUP_NAMES[group],
            (float(np.mean(places)), 0.985),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=SMALL,
            color=INK,
        )


def _setting(method: MethodRuns) -> str:
    """Return a short label of a setting, for what differs within its panel."""
    record = next(iter(method.runs.values()))
    if method.group == "hpi":
        return str(method.lookahead)
    if method.group == "tlpi":
        return pretty(f"γ^{method.lookahead}")
    if method.group == "qlpi" and record.budgets:
        return "\n".join(f"{share:g}" for share in record.budgets.values())
    if method.group == "aggregated":
        return f"{record.parameters['k']}×{record.parameters['k']}"
    if not record.has_depth:
        return method.label
    rule = "QLPI" if record.budgets else pretty(f"γ^{method.lookahead}")
    return f"{rule}\n{record.parameters['few']}" if "few" in record.parameters else rule


def overview(maze: ExperimentData) -> FigureSpec | None:
    """Draw all settings under all six conventions, relative to the best fixed depth of each."""
    methods = method_runs(maze.records)
    fixed = [method for method in methods if method.group == FIXED]
    if not fixed:
        return None
    figure = new_figure(12.6, 1.4 + 0.185 * len(methods))
    axes = figure.subplots(1, len(CONVENTIONS), sharey=True, squeeze=False).ravel()
    for panel, convention in zip(axes, CONVENTIONS, strict=True):
        best = cheapest(fixed, convention)
        assert best is not None
        tidy(
            panel, title=str(convention), x=f"over {pretty(best.label)}, {short_number(best.totals(convention).mean())}"
        )
        _ratios(panel, methods, best, convention)
    axes[0].set_yticks(range(len(methods)), [pretty(method.label) for method in methods], fontsize=SMALL)
    axes[0].set_ylim(len(methods) - 0.4, -0.6)
    return FigureSpec(
        name="figure-5-all-conventions",
        number="Figure 5, all conventions",
        title="Queries relative to the best fixed depth, under every way of counting",
        caption=(
            "Left of the line is cheaper than the best fixed depth of that convention, whose cost is given below each "
            "panel; the band is 10% around it. Bars are 95% bootstrap intervals, paired over seeds. Axes are "
            f"logarithmic and differ between panels. {_edges(fixed)}{wlpi_like_for_like(methods)}".rstrip()
        ),
        figure=figure,
    )


def _edges(fixed: list[MethodRuns]) -> str:
    short = [str(convention) for convention in CONVENTIONS if largest_tried(cheapest(fixed, convention), fixed)]
    if not short:
        return ""
    return f"Under {', '.join(short)} the best is the largest depth tried, so a deeper one may be better still. "


def _ratios(panel: Axes, methods: list[MethodRuns], best: MethodRuns, convention: Convention) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    panel.set_xscale("log")
    panel.axvspan(1.0 / SIMILAR, SIMILAR, color=PALE, zorder=0)
    panel.axvline(1.0, color=INK, linewidth=0.9, zorder=1)
    gaps = [cost_ratio(method, best, convention) for method in methods]
    for place, (method, gap) in enumerate(zip(methods, gaps, strict=True)):
        style = method.style
        panel.plot([gap.low, gap.high], [place, place], color=style.colour, linewidth=2.2, alpha=0.55)
        panel.plot(
            [gap.value], [place], color=style.colour, marker=style.marker, markersize=7 if style.marker == "*" else 4.5
        )
    breaks = [i - 0.5 for i in range(1, len(methods)) if methods[i].group != methods[i - 1].group]
    for line in breaks:
        panel.axhline(line, color=GREY, linewidth=0.5)
    values = np.array([gap.value for gap in gaps])
    candidates = np.array([0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1000])
    inside = candidates[(candidates >= 0.85 * values.min()) & (candidates <= 1.15 * values.max())]
    wide = values.max() / values.min() > 40.0
    ticks = [tick for tick in inside if not wide or np.log10(tick) % 1 == 0]
    panel.xaxis.set_major_locator(FixedLocator(ticks))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}×"))
    panel.grid(axis="x", color=PALE, linewidth=0.8)
