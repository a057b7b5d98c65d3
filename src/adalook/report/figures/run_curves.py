"""Figures of a training run's log: scores, loss, values, depths and distances over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import FloatArray
from adalook._pictures import depth_bin, depth_colour, depth_label
from adalook.report.data.training_run import ProgressRecord, RunLog, TrainingRun
from adalook.report.figures.style import GREY, SMALL, FigureSpec, counts, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Of Okabe and Ito; where there are more runs than colours, dashes tell them apart."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
MARKS = ("o", "s", "D", "^", "v", "p", "*")
WIDTH = 12.6
PANELS_PER_ROW = 4
FEW_DOTS, MOST_DOTS, MOST_POINTS = 200, 3_000, 1_500
"""Few episodes are drawn as larger dots. Of many, so many are drawn, and so many points make a line: more cannot be
told apart, only stored."""


def smoothing_window(episodes: int) -> int:
    """Return how many episodes the smoothed curve averages: a twentieth of all, from 10 to 100.

    >>> [smoothing_window(episodes) for episodes in (30, 1_000, 50_000)]
    [10, 50, 100]
    """
    return max(10, min(100, episodes // 20))


def running_mean(values: FloatArray, window: int) -> FloatArray:
    """Return the mean of the last `window` values up to each, (n,); of fewer at the beginning.

    >>> running_mean(np.array([1.0, 3.0, 5.0]), 2).tolist()
    [1.0, 2.0, 4.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(0, ends - window)
    means: FloatArray = (sums[ends] - sums[begins]) / (ends - begins)
    return means


def time_unit(seconds: float) -> tuple[str, float]:
    """Return the unit in which to show a time, and its length in seconds.

    >>> time_unit(90.0), time_unit(900.0), time_unit(90_000.0)
    (('seconds', 1.0), ('minutes', 60.0), ('hours', 3600.0))
    """
    if seconds < 180:
        return "seconds", 1.0
    return ("minutes", 60.0) if seconds < 3 * 3600 else ("hours", 3600.0)


def learning_curves(runs: Sequence[TrainingRun], name: str) -> FigureSpec:
    """Draw scores by steps and by time; a single run shows every episode as a dot."""
    figure = new_figure(WIDTH, 3.9)
    unit, length = time_unit(max(run.seconds or 0.0 for run in runs))
    timed = any(run.log.clock for run in runs)
    panels = figure.subplots(1, 2 if timed else 1, sharey=True, squeeze=False)[0]
    for number, run in enumerate(runs):
        _draw_scores(panels[0], run, number, lambda steps, _: steps, alone=len(runs) == 1)
        for panel in panels[1:]:
            _draw_scores(panel, run, number, lambda steps, log: log.clock.at(steps) / length, alone=len(runs) == 1)
    tidy(panels[0], x="agent steps", y="score of an episode")
    counts(panels[0], "x")
    for panel in panels[1:]:
        tidy(panel, x=f"{unit} of training")
        panel.tick_params(labelleft=True)
    for panel in panels:
        panel.set_xlim(left=0)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside upper left",
        ncols=3 if len(runs) < 4 else 2,
        frameon=False,
        fontsize=SMALL,
    )
    return FigureSpec(name, "", _curves_title(runs, timed=timed), _curves_caption(runs), figure)


def _curves_title(runs: Sequence[TrainingRun], *, timed: bool) -> str:
    how = "by steps and by time" if timed else "by steps"
    return f"Learning curve, {how}" if len(runs) == 1 else f"{runs[0].env}: learning curves, {how}"


def _curves_caption(runs: Sequence[TrainingRun]) -> str:
    windows = sorted({smoothing_window(len(run.log.episode_scores)) for run in runs})
    averaged = " to ".join(str(window) for window in dict.fromkeys((windows[0], windows[-1])))
    evaluated = any(run.log.evaluations for run in runs)
    points = " Points with bars are evaluations in separate environments: mean, standard error." if evaluated else ""
    dots = "Dots are episodes of training, random actions included; the line is" if len(runs) == 1 else "Lines are"
    if len(runs) == 1 and len(runs[0].log.episode_scores) > MOST_DOTS:
        dots = f"Dots are {MOST_DOTS:,} of the {len(runs[0].log.episode_scores):,} episodes of training; the line is"
    prior = " and without the training of the prior" if any(run.log.prior_steps for run in runs) else ""
    return (
        f"{dots} the mean of the last {averaged} {'of them' if len(runs) == 1 else 'episodes of training'}.{points} "
        f"Time is training time, without evaluations{prior}."
    )


def _draw_scores(
    panel: Axes, run: TrainingRun, number: int, place: Callable[[FloatArray, RunLog], FloatArray], *, alone: bool
) -> None:
    """Draw the scores of a run; `place` turns steps (n,) into positions on the x-axis."""
    log, colour = run.log, COLOURS[number % len(COLOURS)]
    steps, scores = log.episode_steps, log.episode_scores
    if alone:
        dots = _spread(len(steps), MOST_DOTS)
        size = 3 if len(dots) > FEW_DOTS else 6
        panel.plot(place(steps[dots], log), scores[dots], ".", color=GREY, alpha=0.45, markersize=size, label="episode")
    window = smoothing_window(len(scores))
    line = _spread(len(steps), MOST_POINTS)
    panel.plot(
        place(steps[line], log),
        running_mean(scores, window)[line],
        color=colour,
        linestyle=DASHES[number // len(COLOURS) % len(DASHES)],
        linewidth=1.6,
        label=f"mean of the last {window} episodes" if alone else run.name,
    )
    if log.evaluations:
        ends = np.array([evaluation.step for evaluation in log.evaluations], np.float64)
        panel.errorbar(
            place(ends, log),
            [evaluation.mean for evaluation in log.evaluations],
            yerr=[evaluation.standard_error for evaluation in log.evaluations],
            linestyle="",
            marker=MARKS[number % len(MARKS)],
            markersize=5,
            color=COLOURS[1] if alone else colour,
            markeredgecolor="white",
            markeredgewidth=0.6,
            elinewidth=1.0,
            label="evaluation" if alone else None,
        )


def _spread(length: int, most: int) -> np.ndarray[Any, Any]:
    """Return at most `most` indices below `length`, evenly spread, with the last one."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(int))


def losses(run: TrainingRun, name: str) -> FigureSpec | None:
    """Draw loss and mean value of the updates; None if there was no update."""
    found = [
        (each.step, each.loss, each.mean_value)
        for each in run.log.progress
        if each.loss is not None and each.mean_value is not None
    ]
    if not found:
        return None
    steps, loss, value = np.array(found, np.float64).T
    figure = new_figure(WIDTH, 3.0)
    for panel, measured, title in zip(figure.subplots(1, 2), (loss, value), ("Loss", "Mean value"), strict=True):
        panel.plot(steps, measured, color=COLOURS[0], linewidth=1.4, **_mark_few(steps))
        tidy(panel, title=title, x="agent steps")
        counts(panel, "x")
        panel.set_xlim(left=0)
    caption = (
        "Means over the updates between two progress reports: the loss against the targets, and the value of the "
        "actions in the batch, which should level off; a value that keeps growing is a sign of divergence."
    )
    return FigureSpec(name, "", "Loss and value", caption, figure)


def depth_use(run: TrainingRun, name: str) -> FigureSpec | None:
    """Draw shares of depths over time and the share of nodes merged; None for an agent without a tree."""
    progress = [each for each in run.log.progress if each.depths]
    if not progress or run.depths == [0]:
        return None
    adaptive, merging = len(run.depths) > 1, any(each.merged_share is not None for each in progress)
    if not (adaptive or merging):
        return None
    figure = new_figure(WIDTH if adaptive and merging else WIDTH / 2, 3.2)
    panels = figure.subplots(1, adaptive + merging, squeeze=False)[0]
    if adaptive:
        _draw_shares(panels[0], progress, run.depths)
    if merging:
        _draw_merged(panels[-1], progress)
    for panel in panels:
        counts(panel, "x")
        panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    what = "Depth use over time, and nodes merged" if adaptive and merging else "Depth use over time"
    title = what if adaptive else f"Nodes merged: every decision searches to depth {run.depths[0]}"
    return FigureSpec(name, "", title, _depth_caption(adaptive, merging), figure)


def _depth_caption(adaptive: bool, merging: bool) -> str:
    shares = "Share of the decisions between two progress reports by depth of the search. " if adaptive else ""
    merged = "Equal nodes of a tree are simulated once: the share of simulator steps that this saved."
    return (shares + (merged if merging else "")).strip()


def _draw_shares(panel: Axes, progress: Sequence[ProgressRecord], depths: Sequence[int]) -> None:
    bins = sorted({depth_bin(depth) for depth in depths})
    uses = np.zeros((len(progress), len(bins)))
    for row, each in enumerate(progress):
        for depth, count in each.depths.items():
            uses[row, bins.index(depth_bin(depth))] += count
    shares = uses / uses.sum(axis=1, keepdims=True)
    # A report is about the steps before it, so each share is drawn up to its step, and back to the one before.
    edges = np.array([0, *(each.step for each in progress)], np.float64)
    below = np.zeros(len(progress))
    for column, depth in enumerate(bins):
        above = below + shares[:, column]
        panel.stairs(
            above, edges, baseline=below, fill=True, color=depth_colour(depth), linewidth=0, label=depth_label(depth)
        )
        panel.stairs(above, edges, baseline=None, color="white", linewidth=0.6)
        below = above
    tidy(panel, title="Depth", x="agent steps", y="share of decisions", grid="")
    panel.set_xlim(0, edges[-1])
    panel.set_ylim(0, 1)
    handles, labels = panel.get_legend_handles_labels()
    panel.legend(
        handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL
    )


def _draw_merged(panel: Axes, progress: Sequence[ProgressRecord]) -> None:
    merged = [(each.step, each.merged_share) for each in progress if each.merged_share is not None]
    steps, shares = np.array(merged, np.float64).T
    panel.plot(steps, shares, color=COLOURS[2], linewidth=1.4, **_mark_few(steps))
    tidy(panel, title="Nodes merged", x="agent steps", y="share of nodes")
    panel.set_xlim(left=0)
    panel.set_ylim(0, max(0.05, 1.15 * float(shares.max())))


def distances(run: TrainingRun, name: str) -> FigureSpec | None:
    """Draw quantiles of the distances measured at each depth; None if none was measured."""
    depths = sorted({depth for each in run.log.progress for depth in each.distances})
    if not depths:
        return None
    rows = -(-len(depths) // PANELS_PER_ROW)
    columns = -(-len(depths) // rows)
    figure = new_figure(WIDTH, 3.0 * rows)
    for place, depth in enumerate(depths):
        panel = figure.add_subplot(rows, columns, place + 1)
        measured = [(each.step, *each.distances[depth]) for each in run.log.progress if depth in each.distances]
        steps, low, middle, high = np.array(measured, np.float64).T
        panel.fill_between(steps, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
        panel.plot(steps, middle, color=COLOURS[0], linewidth=1.4, **_mark_few(steps))
        tidy(panel, title=f"After depth {depth}", x="agent steps", y="" if place % columns else "distance")
        counts(panel, "x")
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
    return FigureSpec(name, "", "Distances by depth", _distance_caption(run), figure)


def _distance_caption(run: TrainingRun) -> str:
    what = {
        "self": "how much this level changed the best value",
        "network": "how far the best value is from what the network expected",
    }.get(run.config["config"].get("prior"), "how far the best value is from the prior’s")
    return (
        f"Median and the middle 80% of the distances that decide the depth: {what}. The search goes deeper in states "
        "whose distance ranks among the largest in the buffer, so each panel shows only the states that "
        "were searched that deep."
    )


def _mark_few(steps: FloatArray) -> dict[str, Any]:
    """Return markers for a line of few points, since a single point would be invisible without."""
    return {"marker": "o", "markersize": 3} if len(steps) < 20 else {}
