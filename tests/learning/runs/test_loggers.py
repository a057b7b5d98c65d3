"""The log, TensorBoard events and the progress bar."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

import adalook as al
from adalook.errors import FileError
from adalook.learning.runs.callbacks import ProgressCallback
from adalook.learning.runs.loggers import JsonlFile, JsonlLogger, ProgressBar, TensorBoardLogger
from adalook.learning.training import Episode
from tests.learning.runs.rounds import round_of


def test_the_log_has_episodes_and_progress_and_no_clock(tmp_path: Path) -> None:
    log = JsonlLogger(tmp_path)
    reporter = ProgressCallback([log], period_steps=16)
    for step in (8, 16):
        reporter(round_of(step, seconds=step * 1.5))
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["episode", "episode", "progress"]
    assert lines[2]["depths"] == {"1": 2, "2": 2}
    assert "seconds" not in lines[2]
    assert json.loads((tmp_path / "clock.jsonl").read_text()) == {"step": 16, "phase": "agent", "seconds": 24.0}


def test_a_log_that_cannot_be_closed_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = open("/dev/full", "ab")  # noqa: SIM115 - takes all, until it is flushed
    monkeypatch.setattr("adalook.learning.runs.loggers.open_to_append", lambda path: full)
    log = JsonlFile(tmp_path / "x.jsonl")
    log.write({"a": 1})
    with pytest.raises(FileError, match=r"cannot write .*x\.jsonl: got No space left on device"):
        log.close()


def test_a_log_is_no_link_and_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(FileError, match=f"cannot write .*{name}"):
            JsonlFile(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_log_can_be_cut_back(tmp_path: Path) -> None:
    log = JsonlFile(tmp_path / "x.jsonl")
    log.write({"a": 1})
    length = log.sync()
    log.write({"a": 2})
    log.truncate(length)
    log.write({"a": 3})
    log.close()
    assert (tmp_path / "x.jsonl").read_text() == '{"a": 1}\n{"a": 3}\n'


def test_tensorboard_has_cleanrl_names(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = TensorBoardLogger(tmp_path / "events")
    reporter = ProgressCallback([board], period_steps=8)
    for step in (8, 16):
        reporter(round_of(step, seconds=step / 4))
    board.close()
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    names = set(events.Tags()["scalars"])
    expected = {"charts/SPS", "charts/episodic_return", "losses/td_loss", "losses/q_values", "search/merged_share"}
    assert expected | {"depth/share_1", "distance/depth_1_quantile_0.5"} <= names
    assert [event.value for event in events.Scalars("charts/SPS")] == [4.0]
    assert [event.step for event in events.Scalars("charts/episodic_return")] == [8, 16]


@pytest.mark.parametrize("clock", [lambda session: 1e9, lambda session: 1e9 - session], ids=["one second", "set back"])
def test_tensorboard_reads_the_sessions_of_a_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Callable[[int], float]
) -> None:
    """It reads files by name: neither twelve sessions in one second nor a clock set back change the order."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for session in range(12):
        monkeypatch.setattr(time, "time", lambda session=session: clock(session))
        board = TensorBoardLogger(tmp_path, first_step=session)
        for step in (session + 1, session + 2):  # the second is written again by the next session
            board.episode(step, Episode(float(session), 1), "agent")
        board.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    seen = [(event.step, event.value) for event in events.Scalars("charts/episodic_return")]
    assert seen == [(session + 1, session) for session in range(12)] + [(13, 11)]


def test_events_that_cannot_be_written_are_said_by_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    full = open("/dev/full", "ab")  # noqa: SIM115 - takes all, until it is flushed
    monkeypatch.setattr("adalook.learning.runs.loggers.open_to_append", lambda path: full)
    board = TensorBoardLogger(tmp_path)
    with pytest.raises(FileError, match="No space left on device"):
        ProgressCallback([board], period_steps=8)(round_of(8))
    with pytest.raises(FileError, match="No space left on device"):
        board.close()
    assert capfd.readouterr() == ("", "")


def test_the_progress_bar_says_how_far_it_is() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=150)
    with ProgressBar(max_steps=32, max_seconds=float("inf"), console=console) as bar:
        ProgressCallback([bar], period_steps=8)(round_of(8))
    assert "step 8" in text.getvalue()
    assert "score 3.00" in text.getvalue()
    assert "1:50% 2:50%" in text.getvalue()


def test_the_progress_bar_forgets_what_the_prior_scored() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=150)
    with ProgressBar(max_steps=32, max_seconds=float("inf"), console=console) as bar:
        reporter = ProgressCallback([bar], period_steps=8)
        reporter(round_of(8, phase="prior", episodes=[Episode(99.0, 1)], last_of_phase=True))
        reporter(round_of(8))
    assert "agent step 8" in text.getvalue()
    assert "score 3.00" in text.getvalue()


def test_every_episode_is_printed_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    agent = al.DQN(al.zoo.chain(n=4), seed=0, learning_starts_steps=1_000)
    for level in (False, True, "episodes"):
        agent.learn(64, progress=level)  # type: ignore[arg-type]
        assert ("episode of" in capsys.readouterr().err) == (level == "episodes"), level
    with pytest.raises(al.AdalookError, match="progress is wrong"):
        agent.learn(64, progress="loud")  # type: ignore[arg-type]
