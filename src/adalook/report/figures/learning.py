"""Figures of learning experiments: score by time and by steps, depth by time, all games in one number, memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.report.data.learning import RANDOM, AgentStyle, JsonDict, LearningData
from adalook.report.figures import style as plotting
from adalook.report.figures.style import FigureSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = Callable[[JsonDict, str], tuple[FloatArray, FloatArray]]
"""From a run and an axis, "seconds" or "steps", to where and how much."""

SMOOTH_BINS = 9
"""Parts of the budget that a point of a curve is the mean of."""
POINTS = 200
COLUMNS = 3
BAND = 0.13


def _rolling(sums: FloatArray) -> FloatArray:
    """Return sums over a window of bins around each; at the ends over fewer."""
    return np.convolve(sums, np.ones(SMOOTH_BINS), mode="same")


def score_curve(record: JsonDict, axis: str) -> tuple[FloatArray, FloatArray]:
    """Return the smoothed score of training episodes by "seconds" or "steps", where there were any."""
    timeline = record["timeline"]
    episodes, scores = _rolling(np.array(timeline["episodes"], float)), _rolling(np.array(timeline["scores"]))
    there = episodes > 0.0
    return _bin_ends(record, axis)[there], scores[there] / episodes[there]


def depth_curve(record: JsonDict, axis: str) -> tuple[FloatArray, FloatArray]:
    """Return the smoothed mean depth of training decisions, without the prior's."""
    timeline = record["timeline"]
    counts = np.array(list(timeline["depths"].values()), float)
    depths = np.array([float(depth) for depth in timeline["depths"]])
    own = counts.sum(axis=0) - np.array(timeline["prior_steps"])  # the prior's have depth 0
    decisions, sums = _rolling(own), _rolling(depths @ counts)
    there = own > 0.0
    return _bin_ends(record, axis)[there], sums[there] / decisions[there]


def greedy_curve(record: JsonDict, axis: str) -> tuple[FloatArray, FloatArray]:
    """Return the scores of the evaluations during training and of the final one."""
    steps = [*(interim["steps"] for interim in record["interim"]), record["steps"]]
    scores = [*(interim["score"] for interim in record["interim"]), record["final"]["score"]]
    at = np.interp(steps, _bin_ends(record, "steps"), _bin_ends(record, axis))
    return at, np.array(scores, np.float64)


def _bin_ends(record: JsonDict, axis: str) -> FloatArray:
    """Return where each bin of a run's timeline ends, (bins,), in "steps" or "seconds" of training."""
    if axis == "steps":
        return np.cumsum(record["timeline"]["steps"]).astype(np.float64)
    bins = len(record["timeline"]["steps"])
    return np.linspace(0.0, record["definition"]["seconds"], bins + 1)[1:]


def over_seeds(curves: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, ...]:
    """Return x, mean, lowest and highest of several curves where all of them have values; empty if nowhere."""
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
    return figure, [figure.add_subplot(rows, columns, number) for number in range(1, len(games) + 1)]


def _legend(figure: Figure, panels: list[Axes]) -> None:
    """Draw one legend for all panels, below them."""
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


def curves(data: LearningData, name: str, title: str, curve: Curve, *, axis: str, what: str) -> FigureSpec:
    """Draw one panel per game, a line per agent: mean over seeds, with a band from the lowest to the highest."""
    figure, panels = _panels(data.trained_games)
    for panel, game in zip(panels, data.trained_games, strict=True):
        for agent in (agent for agent in data.agents if (game, agent) in data.runs):
            seeds = [points for points in (curve(record, axis) for record in data.runs[game, agent]) if len(points[0])]
            if seeds:
                _line(panel, data.styles[agent], over_seeds(seeds))
        if what == "score" and (game, RANDOM) in data.runs:
            random = data.runs[game, RANDOM][0]["final"]["score"]
            panel.axhline(random, color=plotting.GREY, linewidth=0.8, label="random play")
        plotting.tidy(panel, title=game, x="steps" if axis == "steps" else "seconds of training", y=what)
        panel.set_xlim(left=0.0)
        if axis == "steps":
            plotting.counts(panel, "x")
    _legend(figure, panels)
    return _spec(name, title, "Means over seeds, with a band from the lowest to the highest.", figure)


def _spec(name: str, title: str, caption: str, figure: Figure) -> FigureSpec:
    """Return a figure of our own, which has no number in the paper."""
    return FigureSpec(name=name, number="", title=title, caption=caption, figure=figure)


def _line(panel: Axes, style: AgentStyle, points: tuple[FloatArray, ...]) -> None:
    x, mean, low, high = points
    panel.fill_between(x, low, high, color=style.colour, alpha=BAND, linewidth=0)
    panel.plot(x, mean, color=style.colour, linestyle=_dashes(style), linewidth=style.width, label=style.title)


def _dashes(style: AgentStyle) -> Any:
    return (0, style.dashes) if style.dashes else "-"


def aggregate(data: LearningData, known: JsonDict) -> FigureSpec:
    """Draw a point with its interval for each agent."""
    iqms = known["aggregate"]["iqm"]
    figure = plotting.new_figure(6.0, 0.9 + 0.32 * len(iqms))
    panel = figure.add_subplot()
    for row, (agent, estimate) in enumerate(iqms.items()):
        colour = data.styles[agent].colour
        panel.plot([estimate["low"], estimate["high"]], [row] * 2, color=colour, linewidth=5.0, alpha=0.45)
        panel.plot([estimate["value"]], [row], marker="o", color=colour, markersize=7, markeredgecolor="white")
    panel.axvline(1.0, color=plotting.GREY, linewidth=0.8, zorder=0)
    games = ", ".join(known["compared_games"])
    plotting.tidy(panel, title=games, x="IQM of normalised scores (0: random play, 1: best agent)", grid="x")
    panel.set_yticks(range(len(iqms)), [data.styles[agent].title for agent in iqms])
    panel.margins(y=0.12)
    panel.invert_yaxis()
    return _spec("iqm", "Normalised score over all games", "Interquartile means with 95 % intervals.", figure)


def evaluation_figures(data: LearningData, known: JsonDict) -> list[FigureSpec]:
    """Return the figures of agents that were evaluated by greedy play."""
    greedy = "Score of greedy evaluations by time"
    by_time, by_steps = "Score of training episodes by time", "Score of training episodes by steps"
    return [
        *([] if known["aggregate"] is None else [aggregate(data, known)]),
        curves(data, "greedy", greedy, greedy_curve, axis="seconds", what="score"),
        curves(data, "time", by_time, score_curve, axis="seconds", what="score"),
        curves(data, "steps", by_steps, score_curve, axis="steps", what="score"),
        curves(data, "depth", "Mean depth by time", depth_curve, axis="seconds", what="depth"),
    ]


def training_figures(data: LearningData) -> list[FigureSpec]:
    """Return the figure of agents that were not evaluated: a row of panels per game."""
    games = data.trained_games
    figure = plotting.new_figure(10.5, 0.4 + 2.9 * len(games))
    panels = figure.subplots(len(games), 3, squeeze=False)
    for (score, steps, memory), game in zip(panels, games, strict=True):
        for agent in data.agents:
            for record in data.runs.get((game, agent), []):
                _training_lines(score, steps, memory, data.styles[agent], record)
        plotting.tidy(score, title=f"{game}: score of training episodes", x="minutes", y="mean around the minute")
        plotting.tidy(steps, title="Agent steps", x="minutes")
        plotting.counts(steps)
        plotting.tidy(memory, title="Memory (dotted: without replay)", x="minutes", y="MiB")
        for panel in (score, steps, memory):
            panel.set_xlim(left=0.0)
            panel.set_ylim(bottom=0.0)
    _legend(figure, list(panels.ravel()))
    caption = "Training scores are means around the minute; dotted is memory without the replay buffer."
    return [_spec("training", "Score, speed and memory by minute", caption, figure)]


def _training_lines(score: Axes, steps: Axes, memory: Axes, style: AgentStyle, record: JsonDict) -> None:
    line: JsonDict = {"color": style.colour, "linewidth": style.width}
    at, scores = score_curve(record, "seconds")
    score.plot(at / 60.0, scores, linestyle=_dashes(style), **line)
    samples = record["samples"]
    steps.plot(samples["minutes"], samples["steps"], linestyle=_dashes(style), label=style.title, **line)
    memory.plot(samples["minutes"], samples["resident_mib"], **line)
    beyond = np.subtract(samples["resident_mib"], samples["replay_mib"])
    memory.plot(samples["minutes"], beyond, linestyle=":", **line)
