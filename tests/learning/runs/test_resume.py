"""Interrupted and resumed is the same as never interrupted, to the bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.errors import FileError
from adalook.learning.agents.base import Agent
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.runs.callbacks import EVALUATION_SEEDS
from adalook.learning.runs.options import RunOptions
from adalook.learning.runs.run import load_agent, resume_run, start_run
from tests.learning.small import BREAKOUT, fingerprint, small_config
from tests.processes import child, wait_until

OPTIONS = RunOptions(
    report_period_steps=50,
    evaluation_period_steps=300,
    evaluation_episodes=2,
    checkpoint_period_steps=10_000,
    tensorboard=False,
)
LAST_STEP = 900
ATARI = {
    "num_envs": 2,
    "max_episode_steps": 40,
    "learning_starts_steps": 16,
    "update_period_steps": 8,
    "ranked_transitions": 8,
}


def random_stops(count: int, last: int, seed: int) -> list[int]:
    """So many different steps before the last, in order."""
    return sorted(np.random.default_rng(seed).choice(np.arange(1, last), count, replace=False).tolist())


def agent_of(kind: str, env: str = BREAKOUT, **changes: Any) -> Agent:
    if kind.startswith("dqn"):
        return DQN(env, small_config(env, **changes), depth=int(kind[-1]), seed=3)
    return QLDQN(env, small_config(env, **changes), seed=3)


def train(
    directory: Path, kind: str, stops: list[int], last: int = LAST_STEP, env: str = BREAKOUT, **changes: Any
) -> tuple[Any, bytes]:
    """The state and the log of a run that was stopped and resumed at `stops`."""
    start_run(directory, agent_of(kind, env, **changes))
    for each in [*stops, last]:
        resume_run(directory, steps=each, options=OPTIONS)
    return fingerprint(load_agent(directory)), (directory / "log.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("dqn0", {}),
        ("dqn2", {}),
        ("qldqn", {"nodes_per_step": 12.0, "shared_head": True, "learn_every_action": True}),
        ("qldqn", {"train_shallow_heads": True, "leaf_correction": True, "search_shape": "beam", "beam_width": 4}),
        ("qldqn", {"search_shape": "rollouts", "leaf_correction": True, "learn_tree_steps": 3}),
        ("qldqn", {"prior": "train", "optimizer": "adam", "head_balance": 0.5}),
        ("dqn0", {"reset_period_steps": 250, "random_shift": 1}),
    ],
)
def test_a_resumed_run_equals_one_that_was_never_interrupted(tmp_path: Path, kind: str, changes: Any) -> None:
    state, log = train(tmp_path / "whole", kind, [], **changes)
    again, log_again = train(tmp_path / "parts", kind, random_stops(10, LAST_STEP, seed=len(kind)), **changes)
    assert log == log_again
    assert state == again


def test_kept_trees_of_rollouts_go_on_where_they_were(tmp_path: Path) -> None:
    mdp = al.zoo.chain(n=30, discount=0.9)
    changes = {"search_shape": "rollouts", "nodes_per_step": 12.0, "shared_head": True, "learn_real_steps": True}
    changes |= {"stage_nodes": 8, "rollout_steps": 6, "num_envs": 2, "max_episode_steps": 40}
    whole, parts = (QLDQN(mdp, small_config(mdp, **changes), seed=3) for _ in range(2))
    whole.learn(steps=200)
    for stop in (30, 61, 150):
        parts.learn(steps=stop - parts.step).save(tmp_path / "run")
        kept = parts.actor.state(parts.trainer.acting.pool.live)
        assert sum(len(tree["paths"]) for tree in kept) > 4
        parts = QLDQN.load(tmp_path / "run", mdp)
    parts.learn(steps=200 - parts.step)
    assert fingerprint(parts) == fingerprint(whole)
    assert parts.actor.state(parts.trainer.acting.pool.live) == whole.actor.state(whole.trainer.acting.pool.live)


@pytest.mark.parametrize("stop", random_stops(10, LAST_STEP, seed=1))
def test_one_stop_anywhere_changes_nothing(tmp_path: Path, whole_run: tuple[Any, bytes], stop: int) -> None:
    assert train(tmp_path / "parts", "qldqn", [stop]) == whole_run


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, bytes]:
    return train(tmp_path_factory.mktemp("whole") / "run", "qldqn", [])


def test_a_stop_while_the_prior_is_trained_changes_nothing(tmp_path: Path) -> None:
    whole, parts = (agent_of("qldqn", prior="train") for _ in range(2))
    rounds = whole.rounds()
    for _ in range(60):
        next(rounds)
    rounds = parts.rounds()
    for _ in range(17):
        assert next(rounds).phase == "prior"
    parts.save(tmp_path / "run")
    parts = QLDQN.load(tmp_path / "run")
    rounds = parts.rounds()
    phases = [next(rounds).phase for _ in range(43)]
    assert phases == ["prior"] * 13 + ["agent"] * 30
    assert fingerprint(parts) == fingerprint(whole)


def test_what_was_logged_after_the_checkpoint_is_cut_off(tmp_path: Path) -> None:
    start_run(tmp_path / "run", agent_of("dqn0"))
    resume_run(tmp_path / "run", steps=200, options=OPTIONS)
    log = tmp_path / "run" / "log.jsonl"
    kept = log.read_bytes()
    with log.open("ab") as file:
        file.write(b'{"kind": "episode", "written": "by a run that died before its next checkpo')
    resume_run(tmp_path / "run", steps=200, options=OPTIONS)
    assert log.read_bytes() == kept


def test_a_run_that_is_resumed_at_its_end_keeps_its_last_report(tmp_path: Path) -> None:
    """It may have been killed between its last checkpoint and the report and evaluation that follow it."""
    start_run(tmp_path / "run", agent_of("dqn0"))
    resume_run(tmp_path / "run", steps=210, options=OPTIONS)
    log = tmp_path / "run" / "log.jsonl"
    whole = log.read_bytes()
    assert b'"kind": "progress", "step": 21' in whole
    log.write_bytes(b"".join(line for line in whole.splitlines(keepends=True) if b'"step": 21' not in line))
    resume_run(tmp_path / "run", steps=210, options=OPTIONS)
    assert log.read_bytes() == whole


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_save_a_checkpoint_and_end_the_run(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-m", "adalook", "train", BREAKOUT, "--agent", "dqn", "--steps", "100000000"]
    options = ["--out", str(tmp_path / "run"), "--buffer-transitions", "1000", "--evaluation-episodes", "0"]
    options += ["--checkpoint-period-steps", "100"]
    saved = tmp_path / "run" / "checkpoints"  # the first one is written when training is well under way
    environment, pipe = os.environ | {"OMP_NUM_THREADS": "1"}, subprocess.PIPE
    with child([*command, *options], stderr=pipe, stdout=pipe, env=environment) as process:
        wait_until(lambda: any(saved.glob("*/manifest.json")) or process.poll() is not None, 300.0)
        process.send_signal(number)
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 3, errors.decode()
    assert b"--resume" in output
    assert load_agent(tmp_path / "run").step > 0


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    start_run(tmp_path / "run", agent_of("dqn0"))
    with pytest.raises(FileError, match="holds a run already"):
        start_run(tmp_path / "run", agent_of("dqn0"))


def test_the_best_agent_is_kept_and_plays_as_it_did(tmp_path: Path) -> None:
    import json

    start_run(tmp_path / "run", agent_of("qldqn"))
    resume_run(tmp_path / "run", steps=LAST_STEP, options=OPTIONS)
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    evaluations = [line for line in lines if line["kind"] == "evaluation"]
    assert [line["step"] for line in evaluations] == [300, 600, 900]
    best = max(evaluations, key=lambda line: sum(line["scores"]))
    again = load_agent(tmp_path / "run" / "best").evaluate(2, seed=EVALUATION_SEEDS + 3)
    assert again.scores.tolist() == best["scores"]
    assert {str(depth): count for depth, count in again.depths.items()} == best["depths"]


@pytest.mark.parametrize("kind", ["dqn0", "qldqn"])
def test_a_resumed_run_of_an_atari_game_equals_one_that_was_never_interrupted(tmp_path: Path, kind: str) -> None:
    options: Any = {"last": 64, "env": "ALE/Breakout-v5", **ATARI}
    whole = train(tmp_path / "whole", kind, [], **options)
    assert train(tmp_path / "parts", kind, random_stops(2, 64, seed=2), **options) == whole
