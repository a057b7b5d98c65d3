"""The two walks of docs/architecture.md are the files that really run, and short enough to be read."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import adalook as al
from adalook.learning.presets import config_for
from tests.architecture.source import PACKAGE, REPOSITORY

GAME = "MinAtar/Breakout-v1"
MOST_FILES_OF_A_SOLVE = 12
MOST_FILES_OF_A_ROUND = 20


def files_run_by(call: Callable[[], Any]) -> set[str]:
    """Return the package's files, `__init__` and `errors` apart, in which a Python function runs during a call."""
    seen, root = set[str](), f"{PACKAGE}/"

    def note(frame: FrameType, event: str, argument: object) -> None:
        seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {name.removeprefix(root) for name in seen if name.startswith(root)}
    return {name for name in files if name != "errors.py" and not name.endswith("__init__.py")}


def listed_under(heading: str) -> list[str]:
    """Return the files of a walk as docs/architecture.md lists them."""
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)


def test_a_solve() -> None:
    mdp = al.zoo.maze()
    al.solve(mdp)  # imports what it needs, and loads compiled kernels
    run, listed = files_run_by(lambda: al.solve(mdp)), listed_under("A solve, file by file")
    assert run == set(listed)
    assert len(run) <= MOST_FILES_OF_A_SOLVE


def test_a_round_of_training() -> None:
    config = replace(config_for(GAME), learning_starts_steps=160, ranked_transitions=80)
    rounds = al.QLDQN(GAME, config, seed=0).rounds()
    while next(rounds).step < 480:  # by now it learns, and looks deeper than one step
        pass
    run, listed = files_run_by(lambda: next(rounds)), listed_under("A round of training, file by file")
    assert run == set(listed)
    assert len(run) <= MOST_FILES_OF_A_ROUND
