"""The page of a solution in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adalook as al
from adalook.cli.main import main
from adalook.planning.solution_files import save_solution
from adalook.report.data.solution import load_solution
from adalook.report.pages.solution import write_solution_page
from tests.report.pages.explorer_page import NARROW, WIDE, changed_since, move_slider, part, picture, readout, text


def test_solve_report_of_a_maze(visit: Any, tmp_path: Path) -> None:
    assert main(["solve", "zoo:maze?size=12", "--method", "pi", "--report", "--out", str(tmp_path)]) == 0
    about = json.loads((tmp_path / "solution.json").read_text())
    page = visit(tmp_path / "report.html")
    assert not part(page, "canvas-b").is_visible()
    assert not part(page, "seed").is_visible()
    before = picture(page, "a")
    move_slider(page, 1)
    assert picture(page, "a") != before
    assert float(text(page, "distance-a")) == float(f"{about['trace'][1]['distance']:.6g}")
    assert page.locator("#convergence polyline").count() == 5


def solve_in(directory: Path, size: int, max_iterations: int | None = None) -> None:
    """The page of a maze, without the pictures that the command draws beside it."""
    maze = al.zoo.maze(size=size)
    solution = al.solve(maze, al.PolicyIteration(), max_iterations=max_iterations)
    save_solution(solution, maze, directory, with_trace=True)
    write_solution_page(directory)


def test_a_solve_that_stopped_early_shows_no_optimum(visit: Any, tmp_path: Path) -> None:
    solve_in(tmp_path, size=12, max_iterations=2)
    page = visit(tmp_path / "report.html", "#t=0&cell=1,1")
    assert page.locator("#explorer .problem").is_visible()
    shown = readout(page, "a")
    assert "V*" not in shown
    assert "distance to returned" in shown
    changed_since(page, lambda: part(page, "colour").select_option("distance"))
    page.evaluate("document.querySelectorAll('.explorer details').forEach(each => each.open = true)")
    assert "V*" not in page.locator(".explorer").inner_text()
    assert "V*" not in part(page, "chart-distance").get_attribute("aria-label")


def test_the_policy_that_was_returned_comes_last_and_without_a_distance(visit: Any, tmp_path: Path) -> None:
    solve_in(tmp_path, size=12, max_iterations=2)
    policy = load_solution(tmp_path).policy
    page = visit(tmp_path / "report.html", "#t=2&cell=1,1")
    assert part(page, "slider").get_attribute("max") == "2"
    assert text(page, "iteration-a") == "2, the policy returned: iteration limit"
    assert [text(page, f"{name}-a") for name in ("distance", "changed", "depth")] == ["–"] * 3
    shown = readout(page, "a")
    assert set(shown) == {"state", "cell", "value", "action"}
    assert shown["action"] == ("up", "down", "right", "left")[policy[int(shown["state"])]]
    assert part(page, "chart-distance").locator("circle:not(.marker)").count() == 2  # what is not known is not zero


def test_the_ring_around_the_start_is_whole_on_a_large_maze(visit: Any, tmp_path: Path) -> None:
    solve_in(tmp_path, size=100)
    page = visit(tmp_path / "report.html", width=NARROW)
    edge, corner = part(page, "canvas-a").evaluate(
        """canvas => {
            const corner = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, 40, 40).data.buffer);
            const edge = corner.filter((_, at) => at < 40 || at % 40 === 0);
            return [new Set(edge).size, new Set(corner).size];
        }"""
    )
    assert edge == 1  # nothing but wall
    assert corner > 3


def test_solve_report_without_layout(visit: Any, tmp_path: Path) -> None:
    assert main(["solve", "zoo:forest", "--method", "vi", "--report", "--out", str(tmp_path)]) == 0
    for width in (WIDE, NARROW):
        page = visit(tmp_path / "report.html", width=width)
        assert page.locator("#convergence polyline").count() == 5
        assert page.evaluate("document.documentElement.scrollWidth") == width
