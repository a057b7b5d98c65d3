"""The loop and those who listen to it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.learning.acting import Decision
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.learner import Update
from adalook.learning.runs.callbacks import EverySeconds, EverySteps, ProgressCallback
from adalook.learning.runs.loggers import JsonlFile, JsonlLogger, ProgressBar, TensorBoardLogger
from adalook.learning.runs.options import RunOptions
from adalook.learning.runs.progress import ProgressStatistics
from adalook.learning.runs.run import resume_run, start_run
from adalook.learning.training import EnvPool, Episode, Round
from adalook.simulators.tabular import TabularSimulator
from tests.learning.small import BREAKOUT, small_config


def round_of(step: int = 8, **changes: Any) -> Round:
    usual: dict[str, Any] = {
        "seconds": 1.0,
        "epsilon": 0.5,
        "decisions": [Decision(0, 1, distances={1: 0.25}, nodes=3, tree_nodes=4), Decision(1, 2, distances={1: 0.75})],
        "episodes": [Episode(3.0, 10)],
        "updates": [Update(0.5, 1.0), Update(1.5, 2.0)],
    }
    return Round(step, **(usual | changes))


def test_a_truncated_episode_is_cut_off_but_not_ended() -> None:
    mdp = al.MDP(np.ones((2, 1)), np.array([[1], [0]]), 0.9)
    envs = EnvPool(TabularSimulator(mdp, start=0), 1, seed=0, max_episode_steps=3)
    seen = []
    for _ in range(6):
        (transition,), episodes = envs.step([0])
        seen.append((transition.terminated, transition.episode_over, [episode.steps for episode in episodes]))
    assert seen == [(False, False, []), (False, False, []), (False, True, [3])] * 2
    assert envs.observations.tolist() == [[0]]


def test_what_is_stored_is_what_was_decided() -> None:
    agent = QLDQN(BREAKOUT, small_config(train_shallow_heads=True, depth_shares=(1.0,)), seed=0)
    shown = agent.trainer.envs.observations.copy()
    done = next(agent.rounds())
    replay = agent.trainer.replay
    ended_early = sum(len(decision.experiences) < 2 for decision in done.decisions)
    assert len(replay) == 2 * len(done.decisions) - ended_early
    assert agent.ranks.count(1) == len(done.decisions)  # once per state, not once per leaf
    drawn = replay.sample(np.random.default_rng(0), 64)
    assert all(any(np.array_equal(row, state) for state in shown) for row in drawn.observations)


def test_updates_begin_after_the_start_and_targets_are_copied_on_time() -> None:
    agent = DQN(BREAKOUT, small_config(num_envs=1, learning_starts_steps=20, target_period_steps=25), seed=0)
    rounds, learner = agent.rounds(), agent.trainer.learner
    first = learner.target.weights()["trunk.conv.weight"].copy()
    for step in range(1, 26):
        assert len(next(rounds).updates) == (step > 20)
        copied = not np.array_equal(learner.target.weights()["trunk.conv.weight"], first)
        assert copied == (step == 25)


def test_a_tally_adds_up_and_begins_anew() -> None:
    statistics = ProgressStatistics()
    statistics.add(round_of(8))
    summary = statistics.summarize(round_of(8))
    assert (summary.episodes, summary.mean_score, summary.mean_episode_steps) == (1, 3.0, 10.0)
    assert (summary.updates, summary.loss, summary.mean_value) == (2, 1.0, 1.5)
    assert summary.depths == {1: 1, 2: 1}
    assert summary.distances[1] == pytest.approx((0.3, 0.5, 0.7))
    assert summary.merged_share == 0.25
    empty = statistics.summarize(round_of(16))
    assert (empty.episodes, empty.mean_score, empty.loss, empty.merged_share) == (0, None, None, None)


def test_a_tally_goes_on_from_its_state() -> None:
    first, second = ProgressStatistics(), ProgressStatistics()
    first.add(round_of(8))
    second.load_state(json.loads(json.dumps(first.state()["scores"])) and first.state())
    first.add(round_of(16))
    second.add(round_of(16))
    assert first.summarize(round_of(16)) == second.summarize(round_of(16))


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


def test_a_log_that_cannot_be_closed_says_which() -> None:
    log = JsonlFile(Path("/dev/full"))  # takes all, until it is flushed
    log.write({"a": 1})
    with pytest.raises(FileError, match="cannot write /dev/full: got No space left on device"):
        log.close()


def test_a_log_goes_back_to_its_place(tmp_path: Path) -> None:
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


def test_the_progress_line_says_how_far_it_is() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=150)
    with ProgressBar(max_steps=32, max_seconds=float("inf"), console=console) as line:
        ProgressCallback([line], period_steps=8)(round_of(8))
    assert "step 8" in text.getvalue()
    assert "score 3.00" in text.getvalue()
    assert "1:50% 2:50%" in text.getvalue()


def test_the_progress_line_forgets_what_the_prior_scored() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=150)
    with ProgressBar(max_steps=32, max_seconds=float("inf"), console=console) as line:
        reporter = ProgressCallback([line], period_steps=8)
        reporter(round_of(8, phase="prior", episodes=[Episode(99.0, 1)], last_of_phase=True))
        reporter(round_of(8))
    assert "agent step 8" in text.getvalue()
    assert "score 3.00" in text.getvalue()


def test_training_needs_an_end(tmp_path: Path) -> None:
    start_run(tmp_path / "run", DQN(BREAKOUT, small_config()))
    with pytest.raises(ArgumentError, match="needs an end"):
        resume_run(tmp_path / "run")


def test_seconds_are_seconds_of_training(tmp_path: Path) -> None:
    start_run(tmp_path / "run", DQN(BREAKOUT, small_config()))
    outcome = resume_run(tmp_path / "run", seconds=0.5, options=RunOptions(tensorboard=False, progress=False))
    assert 0.5 <= outcome.seconds < 5
    again = resume_run(tmp_path / "run", seconds=0.5, options=RunOptions(tensorboard=False, progress=False))
    assert (again.step, again.seconds) == (outcome.step, outcome.seconds)
