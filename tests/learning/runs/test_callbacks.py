"""Schedules, and which rounds a report is of."""

from __future__ import annotations

import json
from pathlib import Path

from adalook.learning.acting import Decision
from adalook.learning.runs.callbacks import EverySeconds, EverySteps, ProgressCallback
from adalook.learning.runs.loggers import JsonlLogger
from tests.learning.runs.rounds import round_of


def test_steps_are_due_once_per_multiple_whatever_the_stride() -> None:
    schedule = EverySteps(10)
    assert [step for step in range(0, 50, 4) if schedule.due(step)] == [12, 20, 32, 40]
    resumed = EverySteps(10, first_step=24)
    assert [step for step in range(28, 50, 4) if resumed.due(step)] == [32, 40]


def test_steps_that_begin_anew_are_due_anew() -> None:
    schedule = EverySteps(10)
    assert [schedule.due(step) for step in (10, 20, 4, 8, 12)] == [True, True, False, False, True]


def test_seconds_are_due_when_they_have_passed() -> None:
    now = [0.0]
    schedule = EverySeconds(5.0, clock=lambda: now[0])
    seen = []
    for now[0] in (1.0, 4.9, 5.0, 6.0, 9.9, 10.0):
        seen.append(schedule.due())
    assert seen == [False, False, True, False, False, True]


def test_no_report_is_of_two_phases(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path)
    reporter = ProgressCallback([log], period_steps=16)
    reporter(round_of(8, phase="prior", decisions=[Decision(0, 0)]))
    reporter(round_of(16, phase="prior", decisions=[Decision(0, 0)]))
    reporter(round_of(24, phase="prior", decisions=[Decision(0, 0)], last_of_phase=True))
    reporter(round_of(8))
    reporter(round_of(16))
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    reports = [(line["phase"], line["step"], line["depths"]) for line in lines if line["kind"] == "progress"]
    assert reports == [("prior", 16, {"0": 2}), ("prior", 24, {"0": 1}), ("agent", 16, {"1": 2, "2": 2})]
