"""The page in a real browser: what it shows is what is in the files, and everything can be reached and seen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from adalook.report.claims.table import check_claims
from adalook.report.data.experiment import ExperimentData, load_experiment
from adalook.report.data.records import Record
from adalook.report.pages.experiments import report_page
from tests.report.pages.explorer_page import NARROW, WIDE, changed_since, move_slider, part, picture, readout, text
from tests.report.small_maze import run_small_maze

SIDES = {"a": ("hpi", "PI"), "b": ("wlpi", "WLPI")}
"""What the explorer opens with."""
PAUSED_AT = 4_000_000_000_000
"""A moment in the future: a page's clock that is paused there goes on only when it is told to."""
LONGEST_PAUSE_MILLISECONDS = 700
"""Between two frames of a run that is played."""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> ExperimentData:
    return load_experiment(run_small_maze(tmp_path_factory.mktemp("results") / "maze"))


@pytest.fixture(scope="module")
def report(experiment: ExperimentData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "index.html"
    path.write_text(report_page({"maze": experiment}, [], check_claims({"maze": experiment})))
    return path


def record_of(experiment: ExperimentData, side: str, seed: int = 0) -> Record:
    return next(r for r in experiment.records if (r.group, r.label) == SIDES[side] and r.seed == seed)


def point_at(page: Page, side: str, row: int, column: int, size: int = 10) -> None:
    part(page, f"canvas-{side}").scroll_into_view_if_needed()
    box = part(page, f"canvas-{side}").bounding_box()
    page.mouse.move(box["x"] + (column + 0.5) * box["width"] / size, box["y"] + (row + 0.5) * box["height"] / size)


def test_it_opens_where_the_faster_run_has_arrived_and_the_other_has_not(
    visit: Any, report: Path, experiment: ExperimentData
) -> None:
    page = visit(report)
    arrived = min(record_of(experiment, side).passes for side in "ab") - 1
    assert 0 < arrived < max(record_of(experiment, side).passes for side in "ab") - 1
    assert part(page, "slider").input_value() == str(arrived)


def test_the_slider_moves_every_panel(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    move_slider(page, 0)
    names = [f"{name}-{side}" for side in "ab" for name in ("iteration", "distance", "queries")]

    def shown() -> list[str]:
        charts = [part(page, name).inner_html() for name in ("chart-distance", "chart-queries")]
        return [picture(page, "a"), picture(page, "b"), *charts, *(text(page, name) for name in names)]

    first = shown()
    move_slider(page, 1)
    assert not [one for one, other in zip(first, shown(), strict=True) if one == other]
    for side in "ab":
        record = record_of(experiment, side)
        assert float(text(page, f"distance-{side}")) == float(f"{record.distance[1]:.6g}")
        assert text(page, f"queries-{side}") == f"{record.cumulative()[1]:,}"
        assert text(page, f"changed-{side}") == f"{record.changed[1]}"


def test_a_run_that_has_ended_stays_at_its_end(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    longest = max(record_of(experiment, side).passes for side in "ab") - 1
    shortest = record_of(experiment, "b").passes - 1
    assert shortest < longest
    assert part(page, "slider").get_attribute("max") == str(longest)
    move_slider(page, longest)
    assert text(page, "iteration-b") == f"{shortest}, its last: converged"
    assert text(page, "queries-b") == f"{record_of(experiment, 'b').total():,}"


def test_the_numbers_of_a_cell_are_those_on_disk(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    model = experiment.models["size=10,discount=0.98,seed=0"]
    for place in (0, 1):
        move_slider(page, place)
        for state in (0, 17, len(model.values) - 1):
            row, column = model.layout.cells[state].tolist()
            changed_since(page, lambda row=row, column=column: point_at(page, "a", row, column))
            for side in "ab":
                record = record_of(experiment, side)
                trace, shown = experiment.trace(record), readout(page, side)
                value, best = trace.values[place, state], model.values[state]
                assert (shown["state"], shown["cell"]) == (str(state), f"row {row}, column {column}")
                assert float(shown["value"]) == float(f"{value:.6g}")
                assert float(shown["V*"]) == float(f"{best:.6g}")
                assert float(shown["distance"]) == float(f"{abs(best - value):.6g}")
                assert shown["depth"] == str(trace.depth[place, state])
                assert shown["action"] == model.action_names[trace.policy[place, state]]


def test_cells_that_are_no_states_are_explained(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    goal = experiment.models["size=10,discount=0.98,seed=0"].layout.goals[0]
    changed_since(page, lambda: point_at(page, "a", *goal))
    assert "a goal" in text(page, "cell-a")
    changed_since(page, lambda: point_at(page, "b", 0, 0))
    assert "a wall" in text(page, "cell-b")


def test_play_goes_to_the_end_and_can_be_paused(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    move_slider(page, 0)
    page.clock.install()
    page.clock.pause_at(PAUSED_AT)
    last = record_of(experiment, "a").passes - 1
    part(page, "play").click()
    assert text(page, "play") == "Pause"
    assert part(page, "slider").input_value() == "0"
    page.clock.run_for(LONGEST_PAUSE_MILLISECONDS)
    assert part(page, "slider").input_value() == "1"
    part(page, "play").click()
    assert text(page, "play") == "Play"
    page.clock.run_for(10 * LONGEST_PAUSE_MILLISECONDS)
    assert part(page, "slider").input_value() == "1"
    move_slider(page, last - 1)
    part(page, "play").click()
    page.clock.run_for(10 * LONGEST_PAUSE_MILLISECONDS)
    expect(part(page, "play")).to_have_text("Play")
    assert part(page, "slider").input_value() == str(last)
    part(page, "play").click()  # at the end it starts over
    expect(part(page, "slider")).to_have_value("0")
    page.clock.run_for(LONGEST_PAUSE_MILLISECONDS)
    expect(part(page, "slider")).to_have_value("1")


def test_everything_can_be_done_by_keyboard(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    move_slider(page, 0)
    page.clock.install()
    page.clock.pause_at(PAUSED_AT)
    part(page, "slider").focus()
    changed_since(page, lambda: page.keyboard.press("ArrowRight"))
    assert text(page, "iteration-a").startswith("1 ")
    changed_since(page, lambda: page.keyboard.press(","))
    assert text(page, "iteration-a").startswith("0 ")
    page.keyboard.press("Space")
    assert text(page, "play") == "Pause"
    page.keyboard.press("Space")
    assert text(page, "play") == "Play"
    part(page, "canvas-a").focus()
    outline = part(page, "canvas-a").evaluate("canvas => getComputedStyle(canvas).outlineWidth")
    assert outline == "3px"
    row, column = experiment.models["size=10,discount=0.98,seed=0"].layout.start
    for key, cell in (
        ("ArrowDown", (row, column)),
        ("ArrowDown", (row + 1, column)),
        ("ArrowRight", (row + 1, column + 1)),
    ):
        changed_since(page, lambda key=key: page.keyboard.press(key))
        assert readout(page, "b")["cell"] == f"row {cell[0]}, column {cell[1]}"
    changed_since(page, lambda: page.keyboard.press("."))
    assert part(page, "slider").input_value() == "1"


def test_every_control_has_a_name(visit: Any, report: Path) -> None:
    page = visit(report)
    nameless = page.evaluate(
        """[...document.querySelectorAll('.explorer :is(select, input, button, canvas, svg[role])')]
        .filter(e => !(e.labels?.[0]?.innerText.trim() || e.getAttribute('aria-label') || e.innerText?.trim()))
        .map(e => e.dataset.part)"""
    )
    assert nameless == []


@pytest.mark.parametrize("colour", ["distance", "depth", "action"])
def test_cells_can_be_coloured_by(colour: str, visit: Any, report: Path) -> None:
    page = visit(report)
    before = [picture(page, "a"), picture(page, "b"), part(page, "legend").inner_html()]
    changed_since(page, lambda: part(page, "colour").select_option(colour))
    after = [picture(page, "a"), picture(page, "b"), part(page, "legend").inner_html()]
    assert not [one for one, other in zip(before, after, strict=True) if one == other]


def test_the_colours_of_cells_are_those_of_the_legend(visit: Any, report: Path, experiment: ExperimentData) -> None:
    record = next(r for r in experiment.records if r.group == "qlpi" and r.trace and r.seed == 0)
    depth = experiment.trace(record).depth[0]
    page = visit(report, f"#colour=depth&arrows=0&t=0&b=qlpi/{record.label}")
    swatches = {
        swatch.inner_text(): re.findall(r"\d+", swatch.locator("i").evaluate("i => i.style.background"))
        for swatch in part(page, "legend").locator(".swatch").all()
    }
    assert len(set(depth.tolist())) > 1
    cells = experiment.models["size=10,discount=0.98,seed=0"].layout.cells.tolist()
    states = (5, int(depth.argmax()), len(depth) - 1)
    pixels = part(page, "canvas-b").evaluate(
        """(canvas, cells) => {
            const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            const place = (at) => Math.floor(at * canvas.width / 10);
            const corners = cells.map(([row, column]) => place(row + 0.88) * canvas.width + place(column + 0.12));
            return corners.map((corner) => [...image.slice(4 * corner, 4 * corner + 3)].map(String));
        }""",
        [cells[state] for state in states],
    )
    assert pixels == [swatches[str(depth[state])] for state in states]


def test_arrows_can_be_switched_off(visit: Any, report: Path) -> None:
    page = visit(report)
    before = picture(page, "a")
    changed_since(page, lambda: part(page, "arrows").uncheck())
    assert picture(page, "a") != before


@pytest.mark.parametrize("convention", ["tree+exact", "shared+simulated"])
def test_queries_can_be_counted_by(convention: str, visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    move_slider(page, 0)
    assert part(page, "count").input_value() == "root+simulated"
    changed_since(page, lambda: part(page, "count").select_option(convention))
    for side in "ab":
        assert text(page, f"queries-{side}") == f"{record_of(experiment, side).cumulative(*convention.split('+'))[0]:,}"


def test_the_queries_of_a_prior_that_counts_are_there_from_the_start(
    visit: Any, report: Path, experiment: ExperimentData
) -> None:
    record = next(r for r in experiment.records if r.group == "aggregated" and r.trace)
    assert record.prior.counted
    page = visit(report)
    move_slider(page, 0)
    changed_since(page, lambda: part(page, "a").select_option(f"aggregated/{record.label}"))
    assert text(page, "queries-a") == f"{record.cumulative()[0]:,}"
    assert text(page, "title-a") == f"A: {record.label}"
    assert text(page, "prior-a") == f"aggregation, {record.prior.total('root', 'simulated'):,} queries, counted"
    assert text(page, "prior-b") == "none"


def test_a_view_can_be_shared_by_its_address(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    changed_since(page, lambda: part(page, "seed").select_option("1"))
    changed_since(page, lambda: part(page, "a").select_option("hpi/2-PI"))
    changed_since(page, lambda: part(page, "colour").select_option("distance"))
    changed_since(page, lambda: part(page, "over").select_option("queries"))
    move_slider(page, 1)
    changed_since(page, lambda: part(page, "canvas-a").click(position={"x": 60, "y": 60}))
    other = visit(report, page.evaluate("location.hash"))
    record = next(r for r in experiment.records if (r.label, r.seed) == ("2-PI", 1))
    assert float(text(other, "distance-a")) == float(f"{record.distance[1]:.6g}")
    assert readout(other, "a") == readout(page, "a") != {}
    assert picture(other, "a") == picture(page, "a")
    assert part(other, "chart-distance").inner_html() == part(page, "chart-distance").inner_html()


def test_an_address_of_another_page_is_no_trouble(visit: Any, report: Path) -> None:
    view = "#seed=99&a=nothing&b=&t=1e9&colour=toString&count=fingers&cell=x,y&arrows=maybe&over=zzz&valueOf=1"
    page = visit(report, view)
    assert text(page, "title-a") == "A: PI"
    chosen = {name: part(page, name).input_value() for name in ("seed", "colour", "count", "over")}
    assert chosen == {"seed": "0", "colour": "value", "count": "root+simulated", "over": "iterations"}
    assert text(page, "cell-a").startswith("Point at a cell")
    assert part(page, "slider").input_value() == part(page, "slider").get_attribute("max")


def test_another_seed_forgets_the_cell_that_was_chosen(visit: Any, report: Path) -> None:
    page = visit(report)
    changed_since(page, lambda: point_at(page, "a", 1, 1))
    changed_since(page, lambda: part(page, "canvas-a").click(position={"x": 50, "y": 50}))
    assert readout(page, "a")
    changed_since(page, lambda: part(page, "seed").select_option("1"))
    changed_since(page, lambda: point_at(page, "a", 2, 2))
    changed_since(page, lambda: page.mouse.move(2, 2))
    assert text(page, "cell-a").startswith("Point at a cell")


def test_a_cell_of_the_address_stays_when_the_pointer_leaves(visit: Any, report: Path) -> None:
    page = visit(report, "#cell=1,1")
    changed_since(page, lambda: point_at(page, "a", 2, 2))
    assert readout(page, "a")["cell"] == "row 2, column 2"
    changed_since(page, lambda: page.mouse.move(2, 2))
    assert readout(page, "a")["cell"] == "row 1, column 1"


def test_a_click_on_a_chart_goes_there(visit: Any, report: Path, experiment: ExperimentData) -> None:
    page = visit(report)
    part(page, "chart-distance").scroll_into_view_if_needed()
    box = part(page, "chart-distance").bounding_box()
    changed_since(page, lambda: page.mouse.click(box["x"] + box["width"] - 15, box["y"] + 30))
    assert part(page, "slider").input_value() == part(page, "slider").get_attribute("max")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nothing_sticks_out_sideways(width: int, visit: Any, report: Path) -> None:
    page = visit(report, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for side in "ab":
        box = part(page, f"canvas-{side}").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["width"] > 200
    assert page.evaluate("getComputedStyle(document.querySelector('.views')).gridTemplateColumns").count("px") == (
        3 if width == WIDE else 1
    )


def test_a_tap_on_a_phone_shows_the_cell(visit: Any, report: Path) -> None:
    page = visit(report, width=NARROW, has_touch=True, is_mobile=True, device_scale_factor=2)
    box = part(page, "canvas-a").bounding_box()
    position = {"x": 1.5 * box["width"] / 10, "y": 1.5 * box["height"] / 10}
    changed_since(page, lambda: part(page, "canvas-a").tap(position=position))
    assert readout(page, "a")["cell"] == "row 1, column 1"


def test_dark_is_dark(visit: Any, report: Path) -> None:
    backgrounds = [
        visit(report, color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    light, dark = (sum(map(int, re.findall(r"\d+", colour))) for colour in backgrounds)
    assert dark < 120 < 600 < light


def test_claims_open_to_their_figures(visit: Any, report: Path) -> None:
    page = visit(report)
    details = page.locator(".claim details").first
    assert not details.locator("table").is_visible()
    details.locator("summary").click()
    assert details.locator("table").is_visible()
