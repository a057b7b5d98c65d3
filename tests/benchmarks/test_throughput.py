"""The throughput benchmark: what it measures, whom it holds ours against, and what its page says."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import throughput_report as report
from benchmarks.throughput import CASES, CLEANRL, OURS, SB3, Case, middle, run, summary
from benchmarks.throughput_job import Watch

ATARI, MINATAR = CASES


def setting(contender: str, rate: float, *, threads: int = 1) -> dict[str, Any]:
    return {
        "contender": contender,
        "envs": 1,
        "threads": threads,
        "steps_per_second": rate,
        "processor_seconds_per_step": 0.01,
    }


def test_the_watch_times_what_lies_between_two_steps() -> None:
    watch = Watch(first_step=10, last_step=20)
    assert not watch.stops_at(8)
    time.sleep(0.05)
    assert not watch.stops_at(12)
    assert not watch.stops_at(16)
    assert watch.stops_at(24)
    assert watch.record is not None
    assert watch.record["steps"] == 12
    assert 0.0 < watch.record["seconds"] < 0.05
    assert watch.stops_at(28)
    assert watch.record["steps"] == 12


def test_the_fastest_setting_of_a_peer_counts() -> None:
    case = summary(ATARI, [setting(OURS, 150.0), setting(SB3, 50.0), setting(SB3, 120.0, threads=2)])
    assert case["ratios"][SB3] == pytest.approx(1.25)
    assert case["goals"][SB3] == [1.5, False]
    assert case["goals"][CLEANRL] is None
    assert "1.25× Stable-Baselines3 (goal 1.5×: **missed**)" in report.verdicts(case)
    assert "CleanRL: did not run" in report.verdicts(case)


def test_a_goal_that_is_reached_is_met() -> None:
    case = summary(MINATAR, [setting(OURS, 400.0), setting(SB3, 200.0)])
    assert case["goals"][SB3] == [2.0, True]


def test_the_median_run_stands_for_a_setting_and_a_failure_for_all() -> None:
    job = MINATAR.job(OURS, 8, 1)
    runs = [{"steps": 10, "seconds": seconds, "processor_seconds": 1.0} for seconds in (1.0, 5.0, 2.0)]
    assert middle(job, runs)["steps_per_second"] == 5.0
    assert middle(job, [*runs, {"failure": "no answer"}]) == {
        "contender": OURS,
        "envs": 8,
        "threads": 1,
        "failure": "no answer",
    }


def test_all_contenders_have_the_same_settings() -> None:
    own = {"contender": "", "envs": 0, "threads": 0}
    for case in CASES:
        assert len({dataclasses.replace(job, **own) for job in case.jobs()}) == 1  # type: ignore[arg-type]


def test_the_page_shows_every_setting_and_why_one_did_not_run() -> None:
    about = {"date": "today", "cpu": "a chip", "cores": 2, "python": "3", "load_before": 0.1}
    about["versions"] = dict.fromkeys(("torch", "stable_baselines3", "ale-py"), "1")
    failed = {"contender": CLEANRL, "envs": 1, "threads": 1, "failure": "no such thing"}
    case = summary(ATARI, [setting(OURS, 150.0), setting(SB3, 75.0), failed])
    page = report.markdown({"machine": about, "repeats": 3, "cases": [case]}, "throughput")
    assert "| adalook | 1 | 1 | 150 |  | 10.00 |" in page
    assert "| Stable-Baselines3 | 1 | 1 | 75 | 2.00× | 10.00 |" in page
    assert "| CleanRL | 1 | 1 | no such thing | | |" in page
    assert "provisional" not in page
    about["load_before"] = 3.0
    assert "provisional" in report.markdown({"machine": about, "repeats": 3, "cases": [case]}, "throughput")


def test_cleanrl_says_why_it_is_not_there(tmp_path: Path) -> None:
    job = ATARI.job(CLEANRL, 1, 1)
    assert "make .venv-cleanrl" in run(job, tmp_path / "no-python")["failure"]
    assert "no CleanRL" in run(job, Path(sys.executable))["failure"]


@pytest.mark.parametrize("contender", [OURS, SB3])
def test_contenders_update_as_often(contender: str) -> None:
    """Every step from the first of learning to the last that is measured, up to what one round of worlds brings."""
    if contender == SB3:
        pytest.importorskip("stable_baselines3")
    case = Case(MINATAR.env, 64, 16, 64, {SB3: 2.0})
    record = run(case.job(contender, 8, 1))
    assert "failure" not in record, record
    assert record["steps"] == 64
    assert record["updates_in_all"] == pytest.approx(80, abs=16)
    assert record["seconds"] > 0.0
    assert record["processor_seconds"] > 0.0
