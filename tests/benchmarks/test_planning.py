"""The planning benchmark: what is timed."""

from __future__ import annotations

import json
from pathlib import Path

import adalook as al
from benchmarks.planning.peers import Adalook
from benchmarks.planning.race import published
from benchmarks.planning.report import markdown
from benchmarks.results import machine


def test_no_solve_of_the_race_begins_with_what_an_earlier_one_found() -> None:
    mdp = al.zoo.garnet(200, 3, 4)
    contender = Adalook(mdp)
    before = dict(vars(mdp)) | {"facts": {}}
    contender.prepare(1e-6)()
    assert mdp.facts
    contender.prepare(1e-6)
    assert dict(vars(mdp)) == before


def test_models_that_a_run_did_not_come_to_keep_their_figures_and_are_marked(tmp_path: Path) -> None:
    ours = {"name": "adalook", "seconds": 0.001, "accurate": True}
    case = {
        "name": "old",
        "states": 5,
        "ours": ours,
        "own": [],
        "peers": [],
        "fastest": None,
        "best_own": None,
        "ratio": None,
        "ratio_at_least": 3.0,
        "regret": None,
        "goal": 2.0,
        "goal_met": True,
        "load_before": 0.1,
    }
    path = tmp_path / "planning.json"
    assert published(path) == {}
    path.write_text(json.dumps({"machine": {**machine(), "date": "2026-01-02T03:04:05"}, "cases": [case]}))
    old = published(path)["old"]
    assert old["measured"] == "2026-01-02"
    results = {
        "machine": machine(),
        "repeats": 1,
        "limit_seconds": 1.0,
        "most_seconds": 1.0,
        "cases": [old, {**old, "name": "new", "measured": "2026-03-04"}],
        "missing": [],
        "growth": None,
        "certificate": None,
    }
    page = markdown(results, "planning")
    assert "| old † |" in page
    assert "| new |" in page
    assert "† measured before (2026-01-02)" in page
