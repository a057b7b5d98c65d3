"""A solution on disk: complete, plain, and never half written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.planning import solution_files
from adalook.planning.solution_files import describe, save_solution


@pytest.fixture(scope="module")
def maze() -> al.MDP:
    return al.zoo.maze(size=12, seed=1)


@pytest.fixture(scope="module")
def solution(maze: al.MDP) -> al.Solution:
    prior = al.priors.exact(maze)
    return al.solve(maze, al.QLPI({2: 0.1, 4: 0.05}, prior), tolerance=0.0)


def saved(directory: Path) -> tuple[dict, dict]:
    with np.load(directory / "solution.npz", allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}, json.loads((directory / "solution.json").read_text())


def test_arrays_come_back_bit_for_bit(maze: al.MDP, solution: al.Solution, tmp_path: Path) -> None:
    save_solution(solution, maze, tmp_path)
    arrays, _ = saved(tmp_path)
    for name in ("values", "policy", "lower", "upper"):
        assert np.array_equal(arrays[name], getattr(solution, name)), name
    assert np.array_equal(arrays["layout_cells"], maze.layout.cells)
    assert np.array_equal(arrays["layout_walls"], maze.layout.walls)


def test_depth_is_the_deepest_over_all_passes(maze: al.MDP, solution: al.Solution, tmp_path: Path) -> None:
    save_solution(solution, maze, tmp_path)
    arrays, _ = saved(tmp_path)
    depths = np.array([iteration.depth for iteration in solution.trace])
    assert depths.max() == 4
    assert np.array_equal(arrays["depth"], depths.max(axis=0))
    deep = [row for row in depths if row.max() > 1]
    assert np.array_equal(arrays["last_depth"], deep[-1])


def test_no_depth_is_made_up_where_the_trace_kept_none(maze: al.MDP, tmp_path: Path) -> None:
    save_solution(al.solve(maze, keep_states=False), maze, tmp_path)
    assert "depth" not in saved(tmp_path)[0]


def test_json_says_what_was_solved_how_and_at_what_cost(maze: al.MDP, solution: al.Solution, tmp_path: Path) -> None:
    save_solution(solution, maze, tmp_path, source="a maze", prior={"kind": "exact"})
    about = saved(tmp_path)[1]
    assert about["format"] == "adalook solution"
    assert about["adalook_version"] == al.__version__
    assert (about["method"], about["status"], about["prior"]) == (
        "QLPI(2: 0.1, 4: 0.05)",
        "CONVERGED",
        {"kind": "exact"},
    )
    assert about["model"] == {
        "source": "a maze",
        "states": maze.num_states,
        "actions": 4,
        "discount": 0.98,
        "deterministic": False,
    }
    assert about["policy_loss"] == solution.policy_loss
    assert about["queries"]["improvement"] == dict(solution.queries.improvement)
    assert about["queries"]["evaluation"] == solution.queries.evaluation
    assert about["layout"]["goals"] == [list(cell) for cell in maze.layout.goals]
    assert "note" not in about["queries"]


def test_json_has_one_entry_per_pass(maze: al.MDP, solution: al.Solution, tmp_path: Path) -> None:
    save_solution(solution, maze, tmp_path)
    trace = saved(tmp_path)[1]["trace"]
    assert [entry["changed"] for entry in trace] == [iteration.changed for iteration in solution.trace]
    assert [entry["distance"] for entry in trace] == [iteration.distance for iteration in solution.trace]
    assert sum(entry["queries"]["improvement"]["root"] for entry in trace) == solution.queries.improvement["root"]
    assert trace[0]["evaluation"] == solution.trace[0].evaluation


def test_a_model_without_layout_has_none_on_disk(tmp_path: Path) -> None:
    chain = al.zoo.chain(n=9)
    save_solution(al.solve(chain), chain, tmp_path)
    arrays, about = saved(tmp_path)
    assert about["layout"] is None
    assert not [name for name in arrays if name.startswith("layout")]


@pytest.mark.parametrize(
    ("name", "limit"), [("MAX_STATES", 50), ("MAX_TREE_LEVELS", 3), ("MAX_TREE_NODES", 99), ("MAX_ROOT_WORK", 99)]
)
def test_counts_that_would_take_too_long_are_null_with_a_note(
    name: str, limit: int, maze: al.MDP, solution: al.Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solution_files, name, limit)
    queries = describe(solution, maze)["queries"]
    assert queries["improvement"]["tree"] is queries["improvement"]["root"] is None
    assert queries["improvement"]["shared"] == solution.queries.improvement["shared"]
    assert 'improvement["tree"]' in queries["note"]


def test_numbers_that_are_not_finite_are_null() -> None:
    assert solution_files._number(math.inf) is None
    assert solution_files._number(math.nan) is None
    assert solution_files._number(0.1) == 0.1


def test_a_failure_leaves_the_previous_files_whole(
    maze: al.MDP, solution: al.Solution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_solution(solution, maze, tmp_path, source="first")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(FileError, match="No space left"):
            save_solution(solution, maze, tmp_path, source="second")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_directory_that_cannot_be_made_is_named(maze: al.MDP, solution: al.Solution, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(FileError, match="taken"):
        save_solution(solution, maze, tmp_path / "taken")


def test_a_solution_of_another_model_is_refused(solution: al.Solution, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="not of this model"):
        save_solution(solution, al.zoo.chain(n=9), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_story_of_a_solve_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sol = al.solve(al.zoo.queue(500, discount=0.9999), tolerance=1e-6)
    sol.save(tmp_path)
    assert al.Solution.load(tmp_path).explain() == sol.explain()
    monkeypatch.setattr("adalook.planning.solve.MAX_PASSES", 10)
    long = al.solve(al.zoo.chain(n=9), al.ValueIteration())
    long.save(tmp_path)
    assert al.Solution.load(tmp_path).explain() == long.explain()
    assert f"of {long.passes} passes the first and the last were kept, {len(long.trace)} of them" in long.explain()
    assert al.Solution.load(tmp_path).queries.improvement["shared"] == long.queries.improvement["shared"]
