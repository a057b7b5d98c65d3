"""The document's example works as printed, and is as short as it says."""

from __future__ import annotations

from typing import Any

from tests.simulators.worlds import documented_code


def test_the_documented_world_is_faithful() -> None:
    names: dict[str, Any] = {"__name__": "documented"}
    for block in documented_code():
        exec(block, names)
    assert names["check_simulator"](names["WindyWalk"](gust=0.5)) is None


def test_the_documented_world_is_short() -> None:
    code = documented_code()[0]
    lines = [line for line in code.partition("class WindyWalk")[2].splitlines() if line.strip()]
    assert len(lines) <= 40
