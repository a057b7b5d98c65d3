"""Run options are validated, and read as they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adalook.errors import ArgumentError, FileError
from adalook.learning.runs.options import RunOptions, read_options, write_options


def test_options_are_read_as_they_were_written_but_for_the_progress_bar(tmp_path: Path) -> None:
    write_options(tmp_path, RunOptions(checkpoint_period_seconds=0.1, evaluation_episodes=0, progress=True))
    assert read_options(tmp_path) == RunOptions(checkpoint_period_seconds=0.1, evaluation_episodes=0, progress=False)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"colour": 1}', '{"report_period_steps": 0}', '{"tensorboard": "no"}', "\xff"]
)
def test_damaged_options_are_said_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "options.json").write_text(text, encoding="latin-1")
    with pytest.raises(FileError, match=r"options\.json is damaged: got .*[^.]\. Remove it") as caught:
        read_options(tmp_path)
    assert ".." not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("report_period_steps", 0),
        ("evaluation_period_steps", -1),
        ("evaluation_episodes", -1),
        ("checkpoint_period_steps", 0),
        ("checkpoint_period_steps", 1.5),
        ("checkpoint_period_seconds", 0.0),
        ("checkpoint_period_seconds", float("nan")),
        ("tensorboard", "yes"),
    ],
)
def test_options_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{name} .*expected"):
        RunOptions(**{name: value})
