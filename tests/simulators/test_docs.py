"""The examples of docs/simulators.md work as printed."""

from __future__ import annotations

from adalook.simulators.checker.check import check_simulator
from tests.simulators.cases import run_document


def test_the_documented_simulator_is_faithful() -> None:
    names = run_document()
    check_simulator(names["WindyWalk"](gust=0.5))
