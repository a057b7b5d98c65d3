"""A short, seeded slice of the torture: nothing of it may end badly."""

import importlib

import pytest

from benchmarks.torture.outcome import FOREIGN, HANG, REFUSED, Row, Scale, attempt
from benchmarks.torture.run import _plain, page

SLICE = {"certificates": 0.002, "files": 0.001, "directories": 0.01, "inputs": 0.001, "simulators": 0.02}


@pytest.mark.parametrize("area", SLICE)
def test_a_slice_of_the_torture(area):
    rows = list(importlib.import_module(f"benchmarks.torture.{area}").rows(Scale(SLICE[area], seed=7)))
    assert sum(row.tried for row in rows) >= 20
    assert {f"{row.area}, {row.kind}": row.examples for row in rows if row.bad} == {}


@pytest.mark.slow
@pytest.mark.parametrize("area", ["workers", "environments", "kills"])
def test_a_slice_of_the_slow_torture(area):
    rows = importlib.import_module(f"benchmarks.torture.{area}").rows(Scale(0.01, seed=7))
    assert {f"{row.area}, {row.kind}": row.examples for row in rows if row.bad} == {}


def test_outcomes_are_told_apart(monkeypatch):
    import time

    from adalook.errors import ArgumentError

    def refuse():
        raise ArgumentError("no")

    assert attempt(refuse)[0] == REFUSED
    assert attempt(lambda: 1 / 0)[0] == FOREIGN
    assert attempt(lambda: 3, lambda found: found == 3)[0] == "equal"
    assert attempt(lambda: 3, lambda found: found == 4)[0] == "different"
    monkeypatch.setattr("benchmarks.torture.outcome.MAX_SECONDS", 0.2)
    assert attempt(lambda: time.sleep(600))[0] == HANG


def test_the_page_counts_what_is_bad():
    row = Row("files", "models", frozenset({FOREIGN}))
    row.add(REFUSED)
    row.add(FOREIGN, "KeyError | `x`")
    results = {
        "seed": 0,
        "seconds": 1.0,
        "machine": {"cores": 2, "cpu": "a processor", "load_before": 0.0, "date": "2026-01-01"},
        "rows": [_plain(row) | {"module": "files", "factor": 1.0}],
    }
    text = page(results)
    assert "| files | models | 2 | 1 | 1 foreign, 1 refused |  | `files 1` |" in text
    assert "* `foreign: KeyError / 'x'`" in text
