"""The curves of the learning benchmark: score by time and by steps, depth by time, and all games in one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.report.figures import style as plotting
from benchmarks.learning_contenders import CONTENDERS, RANDOM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]
Runs = dict[tuple[str, str], list[Record]]
Curve = Callable[[Record, str], tuple[FloatArray, FloatArray]]
"""From a run and an axis, "seconds" or "steps", to where and how much."""

AGGREGATE = "learning-iqm"
TITLES = {
    AGGREGATE: "Normalised score over all games",
    "learning-greedy": "Score of greedy evaluations by time",
    "learning-time": "Score of training episodes by time",
    "learning-steps": "Score of training episodes by steps",
    "learning-depth": "Mean depth by time",
}
"""Figures, by the stem of their files."""
SMOOTH_BINS = 9
"""Parts of the budget that a point of a curve is the mean of."""
POINTS = 200
COLUMNS = 3
BAND = 0.13


@dataclass(frozen=True)
class Line:
    """Colours of Okabe and Ito, and dashes for those who see none. Fixed depths are cool, QL-DQN is warm."""

    colour: str
    dashes: Any = "-"
    width: float = 1.4


LINES = {
    "depth0": Line("#8a8a8a", (0, (1, 1))),
    "depth1": Line("#56b4e9", (0, (4, 1.5))),
    "depth2": Line("#0072b2", (0, (5, 1.2, 1, 1.2))),
    "depth3": Line("#000000", (0, (7, 1.5))),
    "ql": Line("#d55e00", width=2.2),
    "ql-prior": Line("#e69f00", width=1.8),
    "ql-paper": Line("#cc79a7", width=1.4),
    "every1": Line("#009e73", (0, (4, 1.5))),
    "every2": Line("#009e73", (0, (5, 1.2, 1, 1.2))),
    "every3": Line("#009e73", (0, (7, 1.5))),
}


def _rolling(sums: FloatArray) -> FloatArray:
    """Sums over a window of bins around each; at the ends over what there is."""
    return np.convolve(sums, np.ones(SMOOTH_BINS), mode="same")


def score_curve(record: Record, axis: str) -> tuple[FloatArray, FloatArray]:
    """Smoothed score of training episodes by "seconds" or "steps", where there were any."""
    timeline = record["timeline"]
    episodes, scores = _rolling(np.array(timeline["episodes"], float)), _rolling(np.array(timeline["scores"]))
    there = episodes > 0.0
    return _places(record, axis)[there], scores[there] / episodes[there]


def depth_curve(record: Record, axis: str) -> tuple[FloatArray, FloatArray]:
    """Smoothed mean depth of training decisions, without the prior's."""
    timeline = record["timeline"]
    counts = np.array(list(timeline["depths"].values()), float)
    depths = np.array([float(depth) for depth in timeline["depths"]])
    own = counts.sum(axis=0) - np.array(timeline["prior_steps"])  # the prior's have depth 0
    decisions, sums = _rolling(own), _rolling(depths @ counts)
    there = own > 0.0
    return _places(record, axis)[there], sums[there] / decisions[there]


def greedy_curve(record: Record, axis: str) -> tuple[FloatArray, FloatArray]:
    """Score of the evaluations on the way and of the final one."""
    steps = [*(interim["steps"] for interim in record["interim"]), record["steps"]]
    scores = [*(interim["score"] for interim in record["interim"]), record["final"]["score"]]
    at = np.interp(steps, _places(record, "steps"), _places(record, axis))
    return at, np.array(scores, np.float64)


def _places(record: Record, axis: str) -> FloatArray:
    """Where the bins end."""
    if axis == "steps":
        return np.cumsum(record["timeline"]["steps"]).astype(np.float64)
    bins = len(record["timeline"]["steps"])
    return np.linspace(0.0, record["definition"]["seconds"], bins + 1)[1:]


def over_seeds(curves: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, ...]:
    """(x, mean, lowest, highest) where all seeds have a curve; empty if they share no stretch."""
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if first > last:
        return (np.empty(0),) * 4
    grid = np.linspace(first, last, POINTS)
    values = np.array([np.interp(grid, x, y) for x, y in curves])
    return grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0)


def _panels(games: list[str]) -> tuple[Figure, list[Axes]]:
    columns = min(COLUMNS, len(games))
    rows = -(-len(games) // columns)
    figure = plotting.new_figure(max(6.0, 3.6 * columns), 0.9 + 2.6 * rows)
    return figure, [figure.add_subplot(rows, columns, place) for place in range(1, len(games) + 1)]


def _legend(figure: Figure, panels: list[Axes]) -> None:
    """One for all panels, below them."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=plotting.SMALL,
        handlelength=3.2,
    )


def curves(runs: Runs, games: list[str], agents: list[str], curve: Curve, *, axis: str, what: str) -> Figure:
    """One panel per game, a line per agent: mean over seeds, with a band from the lowest to the highest."""
    figure, panels = _panels(games)
    for panel, game in zip(panels, games, strict=True):
        for agent in (agent for agent in agents if (game, agent) in runs):
            seeds = [points for points in (curve(record, axis) for record in runs[game, agent]) if len(points[0])]
            if seeds:
                _line(panel, agent, over_seeds(seeds))
        if what == "score" and (game, RANDOM) in runs:
            random = runs[game, RANDOM][0]["final"]["score"]
            panel.axhline(random, color=plotting.GREY, linewidth=0.8, label="random play")
        plotting.tidy(panel, title=game, x="steps" if axis == "steps" else "seconds of training", y=what)
        panel.set_xlim(left=0.0)
        if axis == "steps":
            plotting.counts(panel, "x")
    _legend(figure, panels)
    return figure


def _line(panel: Axes, agent: str, points: tuple[FloatArray, ...]) -> None:
    line, (x, mean, low, high) = LINES[agent], points
    panel.fill_between(x, low, high, color=line.colour, alpha=BAND, linewidth=0)
    panel.plot(x, mean, color=line.colour, linestyle=line.dashes, linewidth=line.width, label=CONTENDERS[agent].title)


def aggregate(known: Record) -> Figure:
    """A point with its interval for each agent."""
    iqms = known["aggregate"]["iqm"]
    figure = plotting.new_figure(6.0, 0.9 + 0.32 * len(iqms))
    panel = figure.add_subplot()
    for place, (agent, estimate) in enumerate(iqms.items()):
        colour = LINES[agent].colour
        panel.plot([estimate["low"], estimate["high"]], [place] * 2, color=colour, linewidth=5.0, alpha=0.45)
        panel.plot([estimate["value"]], [place], marker="o", color=colour, markersize=7, markeredgecolor="white")
    panel.axvline(1.0, color=plotting.GREY, linewidth=0.8, zorder=0)
    games = ", ".join(known["compared_games"])
    plotting.tidy(panel, title=games, x="IQM of normalised scores (0: random play, 1: best agent)", grid="x")
    panel.set_yticks(range(len(iqms)), [CONTENDERS[agent].title for agent in iqms])
    panel.margins(y=0.12)
    panel.invert_yaxis()
    return figure


def draw(runs: Runs, games: list[str], agents: list[str], known: Record, out: Path) -> None:
    """All figures, as SVG and PNG; the aggregate once there is one."""
    drawn = {
        "learning-greedy": curves(runs, games, agents, greedy_curve, axis="seconds", what="score"),
        "learning-time": curves(runs, games, agents, score_curve, axis="seconds", what="score"),
        "learning-steps": curves(runs, games, agents, score_curve, axis="steps", what="score"),
        "learning-depth": curves(runs, games, agents, depth_curve, axis="seconds", what="depth"),
    }
    if known["aggregate"] is not None:
        drawn[AGGREGATE] = aggregate(known)
    for stem, figure in drawn.items():
        plotting.save(figure, out / stem)
