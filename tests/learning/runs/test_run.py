"""Runs in directories: what they keep, how they go on, and what they say when they cannot."""

from __future__ import annotations

import dataclasses
import json
import signal
from pathlib import Path
from typing import Any

import pytest

import adalook as al
from adalook.cli.main import main
from adalook.errors import ArgumentError, FileError
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.runs.directory import RunDirectory, load_newest
from adalook.learning.runs.options import RunOptions, read_options
from adalook.learning.runs.run import _Session, load_agent, resume_run, start_run
from adalook.learning.training import Round
from tests.learning.small import BREAKOUT, fingerprint, small_config

OFTEN = RunOptions(
    report_period_steps=20,
    evaluation_period_steps=100,
    evaluation_episodes=1,
    checkpoint_period_steps=60,
    tensorboard=False,
    progress=False,
)


def lines_of(directory: Path, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def interrupt(monkeypatch: pytest.MonkeyPatch, step: int, how: Any) -> None:
    """Call `how` when the first round of this step was passed to all callbacks."""
    on_round = _Session.on_round

    def on_round_and_stop(session: _Session, done: Round) -> None:
        on_round(session, done)
        if done.step == step:
            monkeypatch.setattr(_Session, "on_round", on_round)
            how()

    monkeypatch.setattr(_Session, "on_round", on_round_and_stop)


def die() -> None:
    raise RuntimeError("killed")


def test_what_an_agent_saved_goes_on(tmp_path: Path) -> None:
    agent = DQN(BREAKOUT, small_config(), seed=3)
    agent.learn(steps=210).save(tmp_path / "run")
    resume_run(tmp_path / "run", steps=300, options=OFTEN)
    assert fingerprint(load_agent(tmp_path / "run")) == fingerprint(
        DQN(BREAKOUT, small_config(), seed=3).learn(steps=300)
    )
    assert [line["step"] for line in lines_of(tmp_path / "run", "progress")] == [220, 240, 260, 280, 300]
    assert [line["step"] for line in lines_of(tmp_path / "run", "evaluation")] == [300]


def test_the_best_of_a_run_cannot_be_trained(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start_run(run, DQN(BREAKOUT, small_config()))
    resume_run(run, steps=100, options=OFTEN)
    before = sorted((run / "best").rglob("*"))
    with pytest.raises(FileError, match=rf"holds only the policy of an agent.*--resume {run}\."):
        resume_run(run / "best", steps=200)
    assert sorted((run / "best").rglob("*")) == before


def test_the_best_score_outlives_a_time_without_evaluations(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start_run(run, DQN(BREAKOUT, small_config()))
    resume_run(run, steps=100, options=OFTEN)
    stored = _newest(run)
    stored["callbacks"]["evaluation"]["best_score"] = 1e6
    with RunDirectory(run) as directory:
        directory.save(101, stored)
    kept = sorted((run / "best").rglob("*"))
    for steps, episodes in ((250, 0), (420, 1)):
        resume_run(run, steps=steps, options=dataclasses.replace(OFTEN, evaluation_episodes=episodes))
    assert _newest(run)["callbacks"]["evaluation"]["best_score"] == 1e6
    assert sorted((run / "best").rglob("*")) == kept
    assert [line["step"] for line in lines_of(run, "evaluation")] == [
        100,
        300,
        400,
        420,
    ]  # on their dates, and at the end


def _newest(run: Path) -> Any:
    newest = load_newest(run)
    assert newest is not None
    return newest.state


def test_a_run_that_is_resumed_without_a_word_logs_as_before(tmp_path: Path) -> None:
    for name, stops in (("whole", [200]), ("parts", [90, 200])):
        start_run(tmp_path / name, DQN(BREAKOUT, small_config(), seed=1))
        for number, stop in enumerate(stops):
            resume_run(tmp_path / name, steps=stop, options=None if number else OFTEN)
    assert (tmp_path / "parts" / "log.jsonl").read_bytes() == (tmp_path / "whole" / "log.jsonl").read_bytes()


def test_short_runs_are_evaluated_and_logged_to_their_last_step(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start_run(run, DQN(BREAKOUT, small_config()))
    result = resume_run(run, steps=24, options=RunOptions(evaluation_episodes=2, tensorboard=False, progress=False))
    assert result.evaluation is not None
    assert len(result.evaluation.scores) == 2
    assert [line["step"] for line in lines_of(run, "evaluation")] == [result.step]
    assert lines_of(run, "progress")[-1]["step"] == result.step
    assert (run / "best").is_dir()


def test_new_options_are_kept_from_then_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start_run(run, DQN(BREAKOUT, small_config()))
    resume_run(run, steps=100, options=OFTEN)
    resume_run(run, steps=200, options=RunOptions(report_period_steps=8, evaluation_episodes=0, tensorboard=False))
    resume_run(run, steps=212)
    steps = [line["step"] for line in lines_of(run, "progress")]
    assert steps == [*range(20, 101, 20), *range(104, 212, 8), 212]  # and at the end
    assert not (run / "tensorboard").exists()


def test_a_run_without_options_has_the_defaults(tmp_path: Path) -> None:
    assert read_options(tmp_path) is None
    start_run(tmp_path / "run", DQN(BREAKOUT, small_config()))
    resume_run(tmp_path / "run", steps=4)
    assert read_options(tmp_path / "run") == RunOptions(progress=False)


@pytest.mark.parametrize(
    "end", [{"steps": 0}, {"steps": -5, "seconds": 3.0}, {"seconds": 0.0}, {"seconds": float("nan")}]
)
def test_an_end_that_is_none_is_refused(tmp_path: Path, end: Any) -> None:
    start_run(tmp_path / "run", DQN(BREAKOUT, small_config()))
    with pytest.raises(ArgumentError, match="is wrong"):
        resume_run(tmp_path / "run", **end)


def test_a_run_that_is_stopped_in_its_prior_says_how_far_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    small = ["--buffer-transitions", "500", "--learning-starts-steps", "50", "--hidden-units", "8", "--no-tensorboard"]
    interrupt(monkeypatch, 40, lambda: signal.raise_signal(signal.SIGTERM))
    assert (
        main(["train", BREAKOUT, "--steps", "80", "--prior", "train", "--prior-steps", "64", "--out", run, *small]) == 3
    )
    assert "the prior has trained for 40 steps, the agent for none yet" in capsys.readouterr().out
    assert main(["train", "--resume", run, "--steps", "80"]) == 0
    assert "80 steps in" in capsys.readouterr().out


def events_of(directory: Path) -> list[int]:
    """The steps at which TensorBoard shows a report."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory))
    events.Reload()
    return [event.step for event in events.Scalars("charts/epsilon")]


def test_tensorboard_shows_every_report_once_however_often_a_run_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    options = RunOptions(report_period_steps=20, checkpoint_period_steps=60, evaluation_episodes=0, progress=False)
    start_run(run, QLDQN(BREAKOUT, small_config(prior="train", prior_steps=160)))
    interrupt(monkeypatch, 100, die)  # the checkpoint is of step 60, events are there until 100
    with pytest.raises(RuntimeError, match="killed"):
        resume_run(run, steps=40, options=options)
    for stop in (40, 100):  # the agent's 40 and 100 are fewer than the prior's 160
        resume_run(run, steps=stop)
    assert events_of(run / "tensorboard" / "prior") == list(range(20, 161, 20))
    assert events_of(run / "tensorboard") == list(range(20, 101, 20))


def test_what_cannot_be_read_is_said_in_whole_sentences(tmp_path: Path) -> None:
    run = tmp_path / "run"
    start_run(run, DQN(BREAKOUT, small_config()))
    resume_run(run, steps=8, options=OFTEN)
    for path in (run / "checkpoints").glob("*/state.bin"):
        path.write_bytes(b"")
    with pytest.raises(FileError, match=r"no checkpoint of .* can be read") as caught:
        resume_run(run, steps=16)
    assert ".." not in str(caught.value)


def test_training_needs_an_end(tmp_path: Path) -> None:
    start_run(tmp_path / "run", DQN(BREAKOUT, small_config()))
    with pytest.raises(ArgumentError, match="needs an end"):
        resume_run(tmp_path / "run")


def test_seconds_are_seconds_of_training(tmp_path: Path) -> None:
    start_run(tmp_path / "run", DQN(BREAKOUT, small_config()))
    result = resume_run(tmp_path / "run", seconds=0.5, options=RunOptions(tensorboard=False, progress=False))
    assert result.seconds >= 0.5
    again = resume_run(tmp_path / "run", seconds=0.5, options=RunOptions(tensorboard=False, progress=False))
    assert (again.step, again.seconds) == (result.step, result.seconds)


def test_learning_in_a_directory_is_a_run(tmp_path: Path) -> None:
    agent = al.QLDQN("zoo:chain?n=5", seed=1)
    seen: list[int] = []
    agent.learn(steps=64, out=tmp_path / "run", callbacks=[lambda done: seen.append(done.step)])
    agent.learn(steps=64, out=tmp_path / "run")
    assert seen[-1] == 64
    assert (tmp_path / "run" / "log.jsonl").exists()
    again = al.QLDQN.load(tmp_path / "run")
    assert (again.step, again.env) == (128, "zoo:chain?n=5")
    with pytest.raises(FileError, match="another agent"):
        al.QLDQN("zoo:chain?n=6").learn(steps=8, out=tmp_path / "run")
    with pytest.raises(FileError, match="at step 128, and the agent is at step 0"):
        al.QLDQN("zoo:chain?n=5", seed=1).learn(steps=8, out=tmp_path / "run")


def test_code_that_a_run_names_is_imported_only_when_it_is_named_again(tmp_path: Path) -> None:
    name = "adalook.mdp.zoo:chain?n=5"
    al.DQN(name).save(tmp_path)
    with pytest.raises(ArgumentError, match=r"names code, adalook\.mdp\.zoo:chain\?n=5"):
        al.DQN.load(tmp_path)
    assert al.DQN.load(tmp_path, env=name).sim.num_actions == 2
