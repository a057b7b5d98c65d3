"""Figures: all of them under their numbers, what is drawn is what was measured, the same data give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adalook.report.claims.verdicts import Experiments
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import cheapest, method_runs
from adalook.report.data.records import CONVENTIONS, HEADLINE
from adalook.report.data.statistics import mean
from adalook.report.figures import chain as figures_chain
from adalook.report.figures import maze as figures_maze
from adalook.report.figures import queries as figures_queries
from adalook.report.figures import style as plotting
from adalook.report.figures import sweep as figures_sweep
from adalook.report.figures import table_one
from adalook.report.figures.planning import draw_figures, planning_figures
from adalook.report.figures.style import FigureSpec, SavedFigure
from tests.report import synthetic_results

NUMBERS = [
    "Table 1",
    "Figure 1",
    "Figure 2",
    "Figure 3",
    "Figure 4",
    "Figure 5",
    *(f"Figure 5, {convention}" for convention in CONVENTIONS[1:]),
    "Figure 5, all conventions",
    "Sweep 1",
    "Sweep 2",
    "Sweep 3",
]


@pytest.fixture(scope="module")
def experiments() -> Experiments:
    return synthetic_results.load(synthetic_results.raw_results())


@pytest.fixture(scope="module")
def drawn(experiments: Experiments, tmp_path_factory: pytest.TempPathFactory) -> list[SavedFigure]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plotting, "DOTS_PER_INCH", 40)  # quick; what is on them is the same
        return draw_figures(experiments, tmp_path_factory.mktemp("figures") / "new")


@pytest.fixture(scope="module")
def figure_5(experiments: Experiments) -> list[FigureSpec]:
    """Under each convention, the headline first."""
    return figures_queries.panels_by_convention(experiments["maze"])


def marks(panel: Any) -> list[tuple[float, float]]:
    """Places of all single marks in a panel."""
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in panel.lines
        if len(line.get_xdata()) == 1 and line.get_marker() not in ("None", "", None)
    ]


def texts(figure: Any) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def test_every_figure_is_there_under_its_number(drawn: list[SavedFigure]) -> None:
    assert [figure.number for figure in drawn] == NUMBERS
    assert all(figure.title and figure.caption.endswith(".") for figure in drawn)


def test_every_figure_is_an_svg_and_a_png_with_something_on_it(drawn: list[SavedFigure]) -> None:
    from matplotlib.image import imread

    assert len({figure.svg for figure in drawn}) == len(drawn)
    for figure in drawn:
        assert figure.svg.read_text().rstrip().endswith("</svg>")
        assert imread(figure.png).std() > 0.02, figure.number


def test_the_same_data_give_the_same_bytes(experiments: Experiments, tmp_path: Path) -> None:
    chain = {"chain": experiments["chain"]}
    first = [(figure.svg.read_bytes(), figure.png.read_bytes()) for figure in draw_figures(chain, tmp_path / "a")]
    second = [(figure.svg.read_bytes(), figure.png.read_bytes()) for figure in draw_figures(chain, tmp_path / "b")]
    assert len(first) == 2
    assert first == second


def test_nothing_tells_the_day(drawn: list[SavedFigure]) -> None:
    assert not any("<dc:date>" in figure.svg.read_text() for figure in drawn)


def test_no_label_is_cut_off(figure_5: list[FigureSpec]) -> None:
    spec = figure_5[0]
    spec.figure.draw_without_rendering()
    width, height = spec.figure.get_size_inches() * spec.figure.dpi
    for panel in spec.figure.axes:
        box = panel.get_tightbbox()
        assert -1 <= box.x0 <= box.x1 <= width + 1
        assert -1 <= box.y0 <= box.y1 <= height + 1


def test_figure_5_shows_the_means(experiments: Experiments, figure_5: list[FigureSpec]) -> None:
    maze = experiments["maze"]
    for convention, spec in zip(CONVENTIONS, figure_5, strict=True):
        panels = spec.figure.axes
        assert len(panels) == 5
        families = [*(groups for groups, _, _ in figures_queries.PANELS), ("wlpi", "few", "similar")]
        for panel, groups in zip(panels, families, strict=True):
            shown = [y for _, y in marks(panel)]
            expected = [one.totals(convention).mean() for one in method_runs(maze.records, *groups)]
            assert shown == pytest.approx(expected)


def test_figure_5_shows_deviation_and_interval(experiments: Experiments, figure_5: list[FigureSpec]) -> None:
    spec = figure_5[0]
    samples = method_runs(experiments["maze"].records, "hpi")[0].totals(HEADLINE)
    bars = [tuple(line.get_ydata()) for line in spec.figure.axes[0].lines if list(line.get_xdata()) == [0, 0]]
    assert bars[0] == pytest.approx((samples.mean() - samples.std(ddof=1), samples.mean() + samples.std(ddof=1)))
    assert bars[1] == pytest.approx((mean(samples).low, mean(samples).high))


def test_figure_5_marks_the_best_fixed_depth(experiments: Experiments, figure_5: list[FigureSpec]) -> None:
    best = cheapest(method_runs(experiments["maze"].records, "hpi"), HEADLINE)
    assert best is not None
    spec = figure_5[0]
    for panel in spec.figure.axes:
        (line,) = [line for line in panel.lines if line.get_linestyle() == "--"]
        assert line.get_ydata()[0] == best.totals(HEADLINE).mean()
    assert best.label in spec.caption


def test_figure_5_says_that_wlpi_is_not_counted_like_the_others(figure_5: list[FigureSpec]) -> None:
    for spec in figure_5:
        assert "its count is the same under tree, root and shared; like for like (shared + simulated)" in spec.caption


def test_figure_5_warns_of_a_best_depth_at_the_edge_and_of_few_seeds() -> None:
    def cheap(run: synthetic_results.Raw) -> None:
        run["queries"]["improvement"]["shared"] = [1] * run["passes"]

    made = synthetic_results.alter(
        synthetic_results.raw_results(), lambda run: run["parameters"].get("depth") == 4, cheap, "maze"
    )
    few = [run for run in made["maze"] if run["seed"] < 4]
    for records, warned in ((made["maze"], False), (few, True)):
        captions = {
            s.number: s.caption
            for s in figures_queries.panels_by_convention(synthetic_results.load({"maze": records})["maze"])
        }
        assert "(4-PI, the largest depth tried)" in captions["Figure 5, shared + simulated"]
        assert "largest depth tried), with a band" not in captions["Figure 5"]
        assert ("too few for an interval" in captions["Figure 5"]) == warned
    overview = figures_queries.overview(synthetic_results.load(made)["maze"])
    assert overview is not None
    assert "Under shared + simulated, shared + exact the best is the largest depth tried" in overview.caption


def test_methods_can_be_told_apart_without_colour() -> None:
    assert (
        len({style["marker"] for style in synthetic_results.GROUPS.values()})
        == len({style["colour"] for style in synthetic_results.GROUPS.values()})
        == 7
    )


def test_figure_1_puts_the_formulas_beside_the_runs(experiments: Experiments) -> None:
    spec = figures_chain.chain(experiments["chain"])
    assert spec is not None
    cost = spec.figure.axes[2]
    lines = [line for line in cost.lines if line.get_linestyle() == "-"]
    runs = [line for line in cost.lines if line.get_linestyle() == "None"]
    assert [list(line.get_ydata()) for line in lines] == [list(run.get_ydata()) for run in runs]
    assert "n = 20" in cost.get_title(loc="left")


def test_figure_2_shows_the_maze(experiments: Experiments) -> None:
    spec = figures_maze.snapshot(experiments["maze"])
    assert spec is not None
    assert [text.get_text() for text in spec.figure.legends[0].get_texts()] == ["start", "goal", "trap", "wall"]
    assert (3.0, 3.0) in marks(spec.figure.axes[0])


def test_figure_3_ends_where_the_runs_end(experiments: Experiments) -> None:
    spec = figures_maze.distances(experiments["maze"])
    assert spec is not None
    lines = spec.figure.axes[0].lines
    assert [line.get_label().split("   ")[0] for line in lines] == ["h = 1", "h = 2", "h = 3", "h = 4"]
    assert [len(line.get_xdata()) - 1 for line in lines] == [13, 9, 7, 6]
    assert all(line.get_ydata()[-1] == 0.0 for line in lines)
    assert np.mean([12, 13]) == pytest.approx(float(lines[0].get_label().split("(")[1].split()[0]))


def test_figure_4_shows_the_shares(experiments: Experiments) -> None:
    spec = figures_maze.histograms(experiments["maze"])
    assert spec is not None
    assert len(spec.figure.axes) == figures_maze.HISTOGRAM_PANELS
    heights = [bar.get_height() for bar in spec.figure.axes[0].patches]
    assert heights == pytest.approx([0.0, 0.02, 0.08] + [0.05] * 18)
    assert any("κ ≤ γ² in 98.0%" in text for text in texts(spec.figure))


def test_the_map_of_best_depths_names_them(experiments: Experiments) -> None:
    spec = figures_sweep.best_depths(experiments["sweep"])
    assert spec is not None
    for panel in spec.figure.axes:
        assert [text.get_text() for text in panel.texts] == ["1", "2", "≥ 3", "2"]  # as made up, sizes × discounts
    assert "a deeper one may be better still: 1 of 4 cells under root + simulated, 1 of 4" in spec.caption


def test_the_map_of_relative_costs_names_them(experiments: Experiments) -> None:
    spec = figures_sweep.relative_costs(experiments["sweep"])
    assert spec is not None
    first, last = spec.figure.axes
    assert first.get_title(loc="left") == "TLPI γ²"
    assert last.get_title(loc="left") == "WLPI"
    assert first.texts[0].get_text() == f"{(450 + 1000) / (1000 + 1000):.2f}"


def test_table_1_shows_what_was_measured(experiments: Experiments) -> None:
    spec = table_one.comparison_table(experiments)
    assert spec is not None
    found = texts(spec.figure)
    assert "0.350  (0.333)" in found  # 3-PI on the chain of 20: 7 iterations, PI needs 20
    assert "14.0  (14.0)" in found  # c(3) = 2 + 4 + 8
    assert sum(text == table_one.MISSING for text in found) == 0


def test_table_1_says_what_is_missing(experiments: Experiments) -> None:
    spec = table_one.comparison_table({"chain": experiments["chain"]})
    assert spec is not None
    assert sum(text == table_one.MISSING for text in texts(spec.figure)) == 2 * len(table_one.ROWS)


def test_one_seed_and_one_method_can_be_drawn() -> None:
    made = synthetic_results.raw_results()
    few = {name: [run for run in runs if run["group"] == "hpi" and run["seed"] == 0] for name, runs in made.items()}
    specs = planning_figures(synthetic_results.load(few))
    assert [spec.number for spec in specs] == [name for name in NUMBERS if name not in ("Sweep 2", "Sweep 3")]
    for spec in specs[:6]:
        spec.figure.draw_without_rendering()


def test_experiments_without_records_give_no_figures(tmp_path: Path) -> None:
    empty = {name: ExperimentData(name, {}, {}, (), {}, {}, {}) for name in ("chain", "maze", "sweep")}
    assert [figure.number for figure in draw_figures(empty, tmp_path)] == ["Table 1"]
    assert draw_figures({}, tmp_path) == []


def test_other_data_give_another_figure(drawn: list[SavedFigure], tmp_path: Path) -> None:
    made = synthetic_results.chain()
    made[-1]["queries"]["evaluation"]["simulated"][0] += 10_000  # WLPI on the longest chain
    changed = {figure.number: figure for figure in draw_figures(synthetic_results.load({"chain": made}), tmp_path)}
    before = {figure.number: figure for figure in drawn}
    assert changed["Figure 1"].svg.read_bytes() != before["Figure 1"].svg.read_bytes()
