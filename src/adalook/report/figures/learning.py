"""Figures of learning experiments: the paper's figures 6 and 7, and ours beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._pictures import depth_bin, depth_colour, depth_label
from adalook.report.data.learning import AgentStyle, JsonDict, LearningData
from adalook.report.data.learning_curves import (
    Band,
    CurveFunction,
    mean_and_spread,
    mean_shares,
    normalised_iqm,
    score_curve,
    tie_curve,
)
from adalook.report.data.statistics import mean_and_std
from adalook.report.figures import style as plotting
from adalook.report.figures.style import FigureSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
PANEL_WIDTH, PANEL_HEIGHT = 3.5, 2.6
BAND = 0.13
AXES = {"seconds": "minutes of training", "steps": "steps"}
ADAPTIVE_MOST = 3
"""Agents whose use of depths is drawn: the first that have no fixed depth."""


def learning_figures(data: LearningData, known: JsonDict) -> list[FigureSpec]:
    """Return the figures that there are data for: the paper's first, then ours."""
    if not data.games_of(data.agents):
        return []
    drawn = [
        score_by(data, "seconds", "Figure 6", "Score of training episodes by time"),
        score_by(data, "steps", "Figure 7", "Score of training episodes by steps"),
        final_scores(data),
        None if known["aggregate"] is None else aggregate(data, known),
        score_by_nodes(data),
        depth_use(data),
        ties(data),
    ]
    return [spec for spec in drawn if spec is not None]


# ---- figures 6 and 7


def score_by(data: LearningData, axis: str, number: str, title: str) -> FigureSpec | None:
    """Draw training scores by "seconds" or "steps", a panel per game, and one for all games together.

    Games: mean over seeds ± standard deviation, as in the paper. Together: interquartile mean of normalised scores.
    """
    games = data.games_of(data.usual_agents)
    if not games:
        return None
    scales = {game: scale for game in games if (scale := data.scale(game, LearningData.training_scores)) is not None}
    together = len(scales) > 1
    figure, panels = _panels(len(games) + together)
    for panel, game in zip(panels, games, strict=False):
        _draw_agents(panel, data, game, score_curve, axis)
        random = data.random_score(game)
        if random is not None:
            panel.axhline(random, color=plotting.GREY, linewidth=0.8, label="random play")
        plotting.tidy(panel, title=game, x=AXES[axis], y="score")
        _x_axis(panel, axis)
    if together:
        _draw_together(panels[-1], data, scales, axis)
    if not any(panel.collections for panel in panels):  # bands: without runs there is only random play
        return None
    _legend(figure, panels)
    caption = "Mean over seeds, with a band of one standard deviation; one seed has none."
    if together:
        caption += (
            " Last panel: interquartile mean over games and seeds, with 95 % bootstrap intervals; 0 is random play, 1 "
            "the best agent's last training episodes. Agents are drawn there that have runs in each of these games."
        )
    name = f"figure-{number.removeprefix('Figure ')}"
    return FigureSpec(name, number, title, caption, figure)


def _draw_agents(panel: Axes, data: LearningData, game: str, curve: CurveFunction, axis: str) -> None:
    """Draw a line with its band for each agent."""
    for agent in data.usual_agents:
        curves = [curve(record, axis) for record in data.runs.get((game, agent), [])]
        _line(panel, data.styles[agent], mean_and_spread(curves), axis)


def _draw_together(panel: Axes, data: LearningData, scales: dict[str, tuple[float, float]], axis: str) -> None:
    for agent in data.usual_agents:
        curves = [[score_curve(record, axis) for record in data.runs.get((game, agent), [])] for game in scales]
        if all(curves):
            _line(panel, data.styles[agent], normalised_iqm(curves, list(scales.values())), axis)
    games = "all games" if len(scales) == len(data.games) else f"{len(scales)} games"
    plotting.tidy(panel, title=f"{games}: normalised, IQM", x=AXES[axis], y="normalised score")
    _x_axis(panel, axis)


def _line(panel: Axes, style: AgentStyle, band: Band, axis: str) -> None:
    x = band.x / 60.0 if axis == "seconds" else band.x
    if not len(x):
        return
    panel.fill_between(x, band.low, band.high, color=style.colour, alpha=BAND, linewidth=0)
    panel.plot(x, band.centre, color=style.colour, linestyle=_dashes(style), linewidth=style.width, label=style.title)


def _x_axis(panel: Axes, axis: str) -> None:
    panel.set_xlim(left=0.0)
    if axis == "steps":
        plotting.counts(panel, "x")
    plotting.counts(panel, "y")


# ---- final evaluations


def final_scores(data: LearningData) -> FigureSpec | None:
    """Draw the scores of final evaluations, a panel per game and a row per agent: every seed, and their mean."""
    games = [game for game in data.games_of(data.agents) if any(len(data.scores(game, agent)) for agent in data.agents)]
    if not games:
        return None
    rows = [agent for agent in data.agents if any(len(data.scores(game, agent)) for game in games)]
    figure, panels = _panels(len(games), height=0.7 + 0.24 * len(rows))
    for number, (panel, game) in enumerate(zip(panels, games, strict=True)):
        for row, agent in enumerate(rows):
            scores, colour = data.scores(game, agent), data.styles[agent].colour
            if len(scores):
                panel.plot(scores, np.full(len(scores), row), "o", color=colour, markersize=4, alpha=0.45, mew=0)
                panel.plot([scores.mean()], [row], "|", color=colour, markersize=13, markeredgewidth=2.6)
        random = data.random_score(game)
        if random is not None:
            panel.axvline(random, color=plotting.GREY, linewidth=0.8, zorder=0)
        plotting.tidy(panel, title=game, x="score", grid="x")
        first_of_row = number % _columns(len(games)) == 0
        panel.set_yticks(range(len(rows)), [data.styles[a].title for a in rows] if first_of_row else [""] * len(rows))
        panel.set_ylim(len(rows) - 0.5, -0.5)
        plotting.counts(panel, "x")
    caption = "Greedy play after training: a dot per seed, a line at their mean. Grey: random play."
    return FigureSpec("final", "", "Score of final evaluations", caption, figure)


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
    caption = "Interquartile means of final evaluations over games and seeds, with 95 % bootstrap intervals."
    return FigureSpec("iqm", "", "Normalised score over all games", caption, figure)


def score_by_nodes(data: LearningData) -> FigureSpec | None:
    """Draw the score of final evaluations against what a decision cost, a panel per game and a point per agent."""
    games = [game for game in data.games_of(data.agents) if any(_costs(data, game, agent) for agent in data.agents)]
    if not games:
        return None
    most = max(cost for game in games for agent in data.agents for cost in _costs(data, game, agent))
    figure, panels = _panels(len(games))
    for panel, game in zip(panels, games, strict=True):
        for agent in data.agents:
            nodes, scores, style = _costs(data, game, agent), data.scores(game, agent), data.styles[agent]
            if nodes:
                mean, deviation = mean_and_std(scores)
                bar = {"fmt": "o", "markersize": 7 if style.usual else 4, "color": style.colour}
                panel.errorbar(np.mean(nodes), mean, deviation, **bar, capsize=2, label=style.title)  # type: ignore[arg-type]
        panel.set_xscale("symlog", linthresh=1.0)
        panel.set_xlim(-0.25, max(2.0, 2.0 * most))
        random = data.random_score(game)
        if random is not None:
            panel.axhline(random, color=plotting.GREY, linewidth=0.8, zorder=0)
        plotting.tidy(panel, title=game, x="simulated steps per decision", y="score")
        plotting.counts(panel, "x")
        plotting.counts(panel, "y")
    _legend(figure, panels)
    caption = (
        "Final evaluations: mean score over seeds ± standard deviation, against the simulated steps of a decision "
        "(0: no tree), on a logarithmic scale above 1. Grey: random play."
    )
    return FigureSpec("nodes", "", "Score by nodes per decision", caption, figure)


def _costs(data: LearningData, game: str, agent: str) -> list[float]:
    """Return the simulated steps per decision of final evaluations, as far as they were counted."""
    finals = [record["final"] for record in data.runs.get((game, agent), []) if record["final"] is not None]
    return [final["nodes_per_step"] for final in finals if "nodes_per_step" in final]


# ---- inside of searches


def depth_use(data: LearningData) -> FigureSpec | None:
    """Draw the shares of depths by time as areas: a row for each agent that chooses them, a column per game."""
    adaptive = [agent for agent in data.usual_agents if data.styles[agent].depth is None][:ADAPTIVE_MOST]
    games = data.games_of(data.usual_agents)
    if not adaptive or not games:
        return None
    figure = plotting.new_figure(max(6.0, 2.7 * len(games)), 0.6 + 2.1 * len(adaptive))
    panels = figure.subplots(len(adaptive), len(games), squeeze=False, sharey=True)
    depths: dict[int, Any] = {}
    for row, agent in enumerate(adaptive):
        for column, game in enumerate(games):
            panel = panels[row, column]
            at, by_depth = mean_shares(data.runs.get((game, agent), []))
            shares: dict[int, Any] = {}
            for depth, share in by_depth.items():
                shares[depth_bin(depth)] = shares.get(depth_bin(depth), 0.0) + share
            if len(at):
                colours = [depth_colour(depth) for depth in shares]
                areas = panel.stackplot(at / 60.0, *shares.values(), colors=colours, linewidth=0)
                depths |= dict(zip(shares, areas, strict=True))
            else:
                panel.text(0.5, 0.5, "no run yet", ha="center", va="center", transform=panel.transAxes, color="grey")
            plotting.tidy(
                panel,
                title=game if row == 0 else "",
                x=AXES["seconds"] if row == len(adaptive) - 1 else "",
                y=data.styles[agent].title if column == 0 else "",
                grid="",
            )
            panel.set_ylim(0.0, 1.0)
            panel.set_xlim(0.0, data.seconds / 60.0 or None)
    if not depths:
        return None
    ordered = sorted(depths)
    figure.legend(
        [depths[depth] for depth in ordered],
        [depth_label(depth) for depth in ordered],
        loc="outside lower center",
        ncols=8,
        frameon=False,
        fontsize=plotting.SMALL,
    )
    caption = "Shares of decisions by the depth they were taken at, means over seeds, the prior's decisions left out."
    return FigureSpec("depth", "", "Depths used by time", caption, figure)


def ties(data: LearningData) -> FigureSpec | None:
    """Draw the share of decisions whose best first actions were equal by time; None if no run counted them."""
    games = data.games_of(data.usual_agents)
    if not games:
        return None
    figure, panels = _panels(len(games))
    for panel, game in zip(panels, games, strict=True):
        _draw_agents(panel, data, game, tie_curve, "seconds")
        plotting.tidy(panel, title=game, x=AXES["seconds"], y="share of decisions")
        panel.set_xlim(left=0.0)
        panel.set_ylim(0.0, 1.0)
    if not any(panel.lines for panel in panels):
        return None
    _legend(figure, panels)
    caption = (
        "Training decisions in which the search finds two or more first actions equally good, so that it has no say in "
        "which to take. Mean over seeds ± standard deviation."
    )
    return FigureSpec("ties", "", "Share of ties by time", caption, figure)


# ---- parts


def _columns(count: int) -> int:
    """Return in how many columns so many panels are drawn: four in two rows of two."""
    return min(COLUMNS if count != 4 else 2, count)


def _panels(count: int, height: float = PANEL_HEIGHT) -> tuple[Figure, list[Axes]]:
    columns = _columns(count)
    rows = -(-count // columns)
    figure = plotting.new_figure(max(6.0, PANEL_WIDTH * columns), 0.7 + height * rows)
    return figure, [figure.add_subplot(rows, columns, number) for number in range(1, count + 1)]


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


def _dashes(style: AgentStyle) -> Any:
    return (0, style.dashes) if style.dashes else "-"
