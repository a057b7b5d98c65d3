"""The throughput benchmark: what it measures, whom it holds ours against, and what its page says."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.throughput import report
from benchmarks.throughput.contender import CLEANRL_PYTHON, Contender
from benchmarks.throughput.job import Watch
from benchmarks.throughput.race import CASES, CLEANRL, OURS, SB3, Case, middle, summary
from tests.clock import FakeClock

ATARI, _, MINATAR = CASES


def setting(contender: str, *rates: float, threads: int = 1) -> dict[str, Any]:
    job = MINATAR.job(contender, 1, threads)
    return middle(job, [{"steps": 100, "seconds": 100 / rate, "processor_seconds": 1.0} for rate in rates])


def test_the_watch_times_turns_and_waits_between_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock(monkeypatch)
    case = Case(MINATAR.env, learning_starts_steps=6, warm_up_steps=4, turn_steps=10, goals={})
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n\n"))
    watch = Watch(case.job(OURS, 1, 1))
    assert not watch.stops_at(8)
    clock.sleep(50.0)  # before the first turn
    for step in (12, 16, 24, 30):
        assert not watch.stops_at(step)
        clock.sleep(2.0)
    assert watch.stops_at(35)  # nobody gives a third turn
    ready, first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert ready == {"ready": 12}
    assert (first["steps"], second["steps"]) == (12, 11)
    assert (first["seconds"], second["seconds"]) == (4.0, 4.0)


def test_the_fastest_setting_of_a_peer_counts() -> None:
    case = summary(ATARI, [setting(OURS, 150.0), setting(SB3, 50.0), setting(SB3, 120.0, threads=2)])
    assert case["goals"][SB3] == {"goal": 1.5, "ratio": pytest.approx(1.25), "met": False}
    assert case["goals"][CLEANRL] is None
    assert "1.25× Stable-Baselines3 (goal 1.5×: **missed**)" in report.verdicts(case)
    assert "nothing to compare with CleanRL" in report.verdicts(case)


def test_ratios_are_taken_turn_by_turn() -> None:
    """The machine was slow in the second turn, for both, and ours alone was disturbed in the third."""
    case = summary(MINATAR, [setting(OURS, 400.0, 100.0, 200.0), setting(SB3, 200.0, 50.0, 200.0)])
    assert case["settings"][1]["ratios"] == pytest.approx([2.0, 2.0, 1.0])
    assert case["goals"][SB3]["ratio"] == pytest.approx(2.0)


def test_a_goal_that_is_reached_is_met() -> None:
    case = summary(MINATAR, [setting(OURS, 400.0), setting(SB3, 200.0)])
    assert case["goals"][SB3]["met"]


def test_the_median_turn_stands_for_a_setting_and_a_failure_for_all() -> None:
    job = MINATAR.job(OURS, 8, 1)
    turns = [{"steps": 10, "seconds": seconds, "processor_seconds": 1.0} for seconds in (1.0, 5.0, 2.0)]
    assert middle(job, turns)["steps_per_second"] == 5.0
    assert middle(job, [*turns, {"failure": "no answer"}]) == {
        "contender": OURS,
        "num_envs": 8,
        "threads": 1,
        "failure": "no answer",
    }


def test_all_contenders_have_the_same_settings() -> None:
    own = {"contender": "", "num_envs": 0, "threads": 0}
    for case in CASES:
        assert len({dataclasses.replace(job, **own) for job in case.jobs()}) == 1  # type: ignore[arg-type]


def test_the_page_shows_every_setting_and_why_one_did_not_run() -> None:
    about = {"date": "today", "cpu": "a chip", "cores": 2, "python": "3", "load_before": 0.1}
    about["versions"] = dict.fromkeys(("torch", "stable_baselines3", "ale-py"), "1")
    failed = {"contender": CLEANRL, "num_envs": 1, "threads": 1, "failure": "no such thing"}
    case = summary(ATARI, [setting(OURS, 150.0), setting(SB3, 75.0), failed])
    page = report.markdown({"machine": about, "turns": 3, "cases": [case]}, "throughput")
    assert "| adalook | 1 | 1 | 150 |  | 10.00 |" in page
    assert "| Stable-Baselines3 | 1 | 1 | 75 | 2.00× [2.00–2.00] | 10.00 |" in page
    assert "| CleanRL | 1 | 1 | no such thing | | |" in page
    assert "provisional" not in page
    about["load_before"] = 3.0
    assert "provisional" in report.markdown({"machine": about, "turns": 3, "cases": [case]}, "throughput")


def test_whatever_happens_a_record_comes_back(tmp_path: Path) -> None:
    no_program = tmp_path / "python"
    no_program.write_text("nothing to run")
    with Contender(ATARI.job(CLEANRL, 1, 1), no_program) as contender:
        assert "PermissionError" in contender.ready()["failure"]
    with Contender(ATARI.job(CLEANRL, 1, 1), Path(sys.executable)) as contender:
        contender.ready()
        assert contender.end() == {}
        assert "no CleanRL" in contender.turn()["failure"]


def test_cleanrl_says_why_it_is_not_there(tmp_path: Path) -> None:
    job = ATARI.job(CLEANRL, 1, 1)
    with Contender(job, tmp_path / "no-python") as absent, Contender(job, Path(sys.executable)) as elsewhere:
        assert "make .venv/cleanrl/ready" in absent.ready()["failure"]
        for answer in (elsewhere.ready(), elsewhere.turn()):  # what failed once fails ever after
            assert "no CleanRL" in answer["failure"]


@pytest.mark.parametrize("contender", [OURS, SB3])
def test_contenders_update_as_often(contender: str) -> None:
    """Every step from the first of learning to the last that is measured, up to what one round of all envs brings."""
    if contender == SB3:
        pytest.importorskip("stable_baselines3")
    case = Case(MINATAR.env, 64, 16, 32, {SB3: 2.0})
    with Contender(case.job(contender, 8, 1)) as alive:
        assert alive.ready() == {"ready": 80}
        for _ in range(2):
            turn = alive.turn()
            assert "failure" not in turn, turn
            assert turn["steps"] == 32
            assert turn["seconds"] > 0.0
            assert turn["processor_seconds"] > 0.0
        assert alive.end()["updates_in_all"] == pytest.approx(80, abs=16)


@pytest.mark.slow
@pytest.mark.skipif(not CLEANRL_PYTHON.exists(), reason="make .venv/cleanrl/ready")
def test_cleanrl_takes_its_turns() -> None:
    case = dataclasses.replace(ATARI, learning_starts_steps=64, warm_up_steps=16, turn_steps=16)
    with Contender(case.job(CLEANRL, 1, 1)) as alive:
        assert "ready" in alive.ready()
        assert [alive.turn()["steps"] for _ in range(2)] == [16, 16]
