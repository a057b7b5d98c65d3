"""The page of a solution, `adalook solve --report`: small, and honest about what it knows and what it leaves out."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.cli.main import main
from adalook.errors import FileError
from adalook.planning import solution_files
from adalook.planning.rules.base import Method
from adalook.planning.solution_files import save_solution
from adalook.report.data.solution import load_solution, load_trace
from adalook.report.pages import solution as solution_page
from adalook.report.pages.solution import write_solution_page
from adalook.storage.documents import with_digest
from tests.report.pages.test_experiments import Checked, unpacked


def solved(source: str, out: Path, *options: str) -> Checked:
    assert main(["solve", source, "--report", "--out", str(out), *options]) == 0
    return Checked((out / "report.html").read_text())


def test_solve_report_of_a_maze_has_the_explorer_with_the_trace(tmp_path: Path) -> None:
    page = solved("zoo:maze?size=12&seed=3", tmp_path, "--method", "pi")
    assert {"explorer", "convergence"} <= set(page.ids)
    (run,) = page.data["explorer-data"]["runs"]
    shown = unpacked(run["packed"])
    maze = al.zoo.maze(size=12, seed=3)
    again = al.solve(maze, al.PolicyIteration())
    assert np.array_equal(shown["values"].reshape(-1, maze.num_states), [item.values for item in again.trace])
    policies = shown["policy"].reshape(-1, maze.num_states)
    assert np.array_equal(policies[1:], [item.policy for item in again.trace[:-1]])
    assert np.array_equal(policies[0], maze.rewards.reshape(maze.num_states, -1).argmax(axis=1))


def solved_here(out: Path, method: Method, **limits: Any) -> Checked:
    """The page of a small maze, without the pictures that the command draws beside it."""
    maze = al.zoo.maze(size=12, seed=3)
    save_solution(al.solve(maze, method, **limits), maze, out, with_trace=True)
    return Checked(write_solution_page(out).read_text())


def test_a_solve_that_stopped_early_does_not_claim_to_know_the_optimum(tmp_path: Path) -> None:
    page = solved_here(tmp_path, al.PolicyIteration(), max_iterations=2)
    explorer = (tmp_path / "report.html").read_text().split('<section id="explorer">')[1].split('<div class="explorer"')
    solution = load_solution(tmp_path)
    error = np.maximum(solution.upper - solution.values, solution.values - solution.lower).max()
    assert error > 1.0
    assert "stopped before it was done" in explorer[0]
    assert f"certified to be within {error:.3g} of it" in explorer[0]
    assert "V*" not in explorer[1].split("</section>")[0]
    assert "largest distance to the returned values" in explorer[1].lower()
    meaning = page.data["explorer-data"]["meaning"]
    assert (meaning["optimal"], meaning["target"]) == (False, "the returned values")


def test_the_policy_that_was_returned_is_the_last_frame(tmp_path: Path) -> None:
    page = solved_here(tmp_path, al.PolicyIteration(), max_iterations=2)
    (run,) = page.data["explorer-data"]["runs"]
    solution, trace = load_solution(tmp_path), load_trace(tmp_path, load_solution(tmp_path))
    policies = unpacked(run["packed"])["policy"].reshape(-1, len(solution.policy))
    assert not np.array_equal(policies[-1], policies[-2])
    assert np.array_equal(policies, [*trace.policy, solution.policy])
    assert np.array_equal(unpacked(run["packed"])["values"].reshape(policies.shape)[-1], solution.values)
    assert run["returned"]
    assert (run["numbers"], run["frames"]) == ([0, 1, 2], [0, 1, 2])
    assert (run["distance"][-1], run["changed"][-1], run["max_depth"][-1]) == (None, None, None)
    assert run["queries"]["evaluation"]["exact"][-1] == 0


def test_a_solve_that_converged_ends_with_the_policy_it_returned_and_knows_the_optimum(tmp_path: Path) -> None:
    page = solved_here(tmp_path, al.PolicyIteration())
    (run,) = page.data["explorer-data"]["runs"]
    assert not run["returned"]
    assert page.data["explorer-data"]["meaning"]["optimal"]
    explorer = (tmp_path / "report.html").read_text().split('<section id="explorer">')[1]
    assert 'class="problem"' not in explorer.split("</section>")[0]
    assert "Largest distance to V* over" in explorer


def test_a_loose_tolerance_does_not_make_an_optimum(tmp_path: Path) -> None:
    page = solved_here(tmp_path, al.PolicyIteration(), tolerance=1000.0)
    assert not page.data["explorer-data"]["meaning"]["optimal"]
    assert "V* is not known" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (al.ValueIteration(), "values"),
        (al.ModifiedPolicyIteration(3), "values"),
        (al.PolicyIteration(), "value of the policy"),
    ],
)
def test_values_are_called_a_policys_only_if_it_was_evaluated(method: Method, name: str, tmp_path: Path) -> None:
    page = solved_here(tmp_path, method)
    assert page.data["explorer-data"]["meaning"]["values"] == name
    assert ("under the policy so far" in (tmp_path / "report.html").read_text()) == (name == "value of the policy")


def test_one_pass_is_not_called_passes(tmp_path: Path) -> None:
    solved_here(tmp_path, al.PolicyIteration(), max_iterations=1)
    text = (tmp_path / "report.html").read_text()
    assert "1 that changed the policy, in 1 pass<" in text


def test_solve_report_without_layout_is_a_page_of_convergence(tmp_path: Path) -> None:
    page = solved("zoo:forest", tmp_path)
    assert "explorer" not in page.ids
    assert "explorer-data" not in page.data
    text = (tmp_path / "report.html").read_text()
    assert "no layout" in text
    assert "converged" in text
    assert not (tmp_path / "trace.npz").exists()
    trace = json.loads((tmp_path / "solution.json").read_text())["trace"]
    assert page.data["convergence-data"]["changed"] == [entry["changed"] for entry in trace]


def test_solve_report_needs_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "zoo:chain", "--report"]) == 2
    assert "--out DIR" in capsys.readouterr().err


def test_a_long_solve_shows_some_passes_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution_files, "MAX_TRACED_STATES", 1000)
    monkeypatch.setattr(solution_page, "MOST_PASSES", 20)
    page = solved("zoo:maze?size=12", tmp_path, "--method", "vi")
    text = (tmp_path / "report.html").read_text()
    about = json.loads((tmp_path / "solution.json").read_text())
    (run,) = page.data["explorer-data"]["runs"]
    numbers = [run["numbers"][entry] for entry in run["frames"]]
    assert len(numbers) == 1000 // about["model"]["states"]
    assert (numbers[0], numbers[-1]) == (0, about["passes"] - 1)
    assert f"shows {len(numbers)} of {about['passes']} passes" in text
    assert "The charts show" in text
    assert sum(run["queries"]["improvement"]["shared"]) == about["queries"]["improvement"]["shared"]


def test_a_model_too_large_for_the_explorer_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution_files, "MAX_TRACED_STATES", 50)
    page = solved("zoo:maze?size=12", tmp_path)
    assert "explorer" not in page.ids
    assert "too large for the explorer" in (tmp_path / "report.html").read_text()


def test_the_worst_page_stays_below_five_megabytes(tmp_path: Path) -> None:
    """Numbers without any pattern, as many as a trace may hold."""
    states, frames = 3000, solution_files.MAX_TRACED_STATES // 3000
    random = np.random.default_rng(0)
    layout = al.Layout(np.argwhere(np.ones((50, 60), bool)), np.zeros((50, 60), bool))
    mdp = al.MDP(random.random((states, 2)), random.integers(0, states, (states, 2)), 0.5, layout=layout)
    solution = al.solve(mdp)
    noisy = replace(solution.trace[0], values=random.random(states), depth=random.integers(1, 9, states))
    save_solution(replace(solution, trace=(noisy,) * frames), mdp, tmp_path, with_trace=True)
    with np.load(tmp_path / "trace.npz") as saved:
        arrays = dict(saved) | {"values": random.random((frames, states))}
    np.savez(tmp_path / "trace.npz", **arrays)
    about = json.loads((tmp_path / "solution.json").read_text())
    del about["digest"]
    about["trace_sha256"] = hashlib.sha256((tmp_path / "trace.npz").read_bytes()).hexdigest()
    (tmp_path / "solution.json").write_text(json.dumps(with_digest(about)))
    assert 3_000_000 < write_solution_page(tmp_path).stat().st_size < 5_000_000


def test_a_trace_that_does_not_belong_is_refused(tmp_path: Path) -> None:
    maze = al.zoo.maze(size=12)
    save_solution(al.solve(maze), maze, tmp_path, with_trace=True)
    content = (tmp_path / "trace.npz").read_bytes()
    (tmp_path / "trace.npz").write_bytes(content[:-9])
    with pytest.raises(FileError, match=re.escape("trace.npz")):
        load_trace(tmp_path, load_solution(tmp_path))


def test_a_solution_saved_without_trace_has_none(tmp_path: Path) -> None:
    maze = al.zoo.maze(size=12)
    save_solution(al.solve(maze), maze, tmp_path)
    assert load_trace(tmp_path, load_solution(tmp_path)) is None
    assert not (tmp_path / "trace.npz").exists()


def test_the_given_initial_policy_is_the_first_of_the_trace(tmp_path: Path) -> None:
    maze = al.zoo.maze(size=12)
    start = np.random.default_rng(1).integers(0, 4, maze.num_states)
    solution = al.solve(maze, initial_policy=start)
    save_solution(solution, maze, tmp_path, with_trace=True, initial_policy=start)
    trace = load_trace(tmp_path, load_solution(tmp_path))
    assert np.array_equal(trace.policy[0], start)
    assert trace.frames.tolist() == list(range(len(solution.trace)))
