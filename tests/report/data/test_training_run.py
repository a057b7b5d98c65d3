"""Reading what a training run logged: the right numbers, torn ends left out, damage named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from adalook.cli.main import main
from adalook.errors import FileError
from adalook.report.data.training_run import read_run_log
from tests.report.synthetic_run import BREAKOUT, write_lines, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def add(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_all_that_was_logged_is_there(run: Path) -> None:
    log = read_run_log(run)
    assert log.steps == 1_000
    assert log.episode_steps.tolist() == list(range(10, 1_001, 10))
    assert log.episode_scores[-1] == 10.0
    assert [evaluation.mean for evaluation in log.evaluations] == [5.0, 9.0]
    assert log.evaluations[0].standard_error == pytest.approx(1.0)  # of 4 and 6
    assert [each.step for each in log.progress] == list(range(100, 1_001, 100))
    assert log.progress[0].depths == {1: 50, 2: 25, 3: 25}
    assert log.progress[0].distances == {1: (0.1, 0.2, 0.3), 2: (0.0, 0.1, 0.4)}
    assert log.torn == ()


def test_time_runs_in_straight_lines_and_is_not_known_beyond_its_end(run: Path) -> None:
    times = read_run_log(run).clock.at(np.array([0.0, 50.0, 100.0, 1_000.0, 1_001.0]))
    np.testing.assert_allclose(times, [0.0, 1.0, 2.0, 20.0, np.nan])


def test_of_equal_evaluations_the_first_is_the_best(run: Path) -> None:
    add(run / "log.jsonl", json.dumps({"kind": "evaluation", "step": 900, "scores": [9.0], "steps": [1]}) + "\n")
    best = read_run_log(run).best_evaluation
    assert best is not None
    assert best.step == 800


@pytest.mark.parametrize("half", ['{"kind": "episode", "st', "\0\0\0", '{"kind": "caf\udcc3'])
def test_a_torn_last_line_is_left_out_and_said_so(run: Path, half: str) -> None:
    path = run / "log.jsonl"
    path.write_bytes(path.read_bytes() + half.encode(errors="surrogateescape"))
    log = read_run_log(run)
    assert log.torn == ("log.jsonl",)
    assert len(log.episode_steps) == 100


def test_a_torn_clock_is_said_so(run: Path) -> None:
    add(run / "clock.jsonl", '{"step": 11')
    log = read_run_log(run)
    assert log.torn == ("clock.jsonl",)
    assert log.clock.steps[-1] == 1_000


def test_what_the_prior_did_is_kept_apart(run: Path) -> None:
    before = [{"kind": "episode", "step": 5_000, "phase": "prior", "score": 99.0, "steps": 3}]
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    write_lines(run / "log.jsonl", before + lines)
    ticks = [json.loads(line) for line in (run / "clock.jsonl").read_text().splitlines()]
    write_lines(run / "clock.jsonl", [{"step": 5_000, "phase": "prior", "seconds": 33.0}, *ticks])
    log = read_run_log(run)
    assert log.steps == 1_000
    assert log.episode_scores.max() == 10.0
    assert (log.prior_steps, log.prior_seconds) == (5_000, 33.0)
    assert log.clock.seconds[0] == 2.0


def test_a_trained_prior_is_kept_apart_to_the_step(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    small = ["--buffer-transitions", "500", "--learning-starts-steps", "50", "--hidden-units", "8", "--no-tensorboard"]
    prior = ["--prior", "train", "--prior-steps", "88", "--report-period-steps", "80"]
    assert main(["train", BREAKOUT, "--steps", "80", "--out", run, *small, *prior]) == 0
    log = read_run_log(tmp_path / "run")
    assert log.prior_steps == 88
    (progress,) = log.progress
    assert sum(progress.depths.values()) == 80
    assert 0 not in progress.depths


@pytest.mark.parametrize(
    "line",
    [
        "{half a line",
        "[1, 2]",
        '{"kind": "episode", "phase": "agent", "step": 3}',
        '{"kind": "evaluation", "step": 3, "scores": []}',
        '{"kind": "progress", "step": 3, "loss": "much"}',
    ],
)
def test_damage_before_the_end_is_an_error_with_its_line(run: Path, line: str) -> None:
    path = run / "log.jsonl"
    first, rest = path.read_text().split("\n", 1)
    path.write_text(f"{first}\n{line}\n{rest}")
    with pytest.raises(FileError, match=r"line 2 of .*log\.jsonl is damaged"):
        read_run_log(run)


def test_without_a_clock_there_are_no_times(run: Path) -> None:
    (run / "clock.jsonl").unlink()
    log = read_run_log(run)
    assert not log.clock
    assert np.isnan(log.clock.at(np.array([10.0]))).all()


def test_a_run_without_a_log_or_with_an_empty_one_is_refused(run: Path) -> None:
    (run / "log.jsonl").write_text("")
    with pytest.raises(FileError, match="nothing in it yet"):
        read_run_log(run)
    (run / "log.jsonl").unlink()
    with pytest.raises(FileError, match=r"has no log\.jsonl"):
        read_run_log(run)
