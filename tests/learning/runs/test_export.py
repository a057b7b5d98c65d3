"""Exported agents: they act as the agent did, are small, and what is damaged is refused."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

import adalook as al
from adalook.cli.export import _training_command
from adalook.cli.main import main
from adalook.errors import AdalookError, ArgumentError, FileError
from adalook.learning.agents.base import Agent
from adalook.learning.presets import minatar
from adalook.learning.runs.export import CARD, MOST_DISTANCES, PAGE, WEIGHTS
from adalook.learning.runs.run import load_agent

ENV = "MinAtar/Breakout-v1"
QUICK = dataclasses.replace(
    minatar(), learning_starts_steps=32, ranked_transitions=16, prior_steps=64, max_episode_steps=60
)
SHIPPED = sorted(path.parent for path in (Path(__file__).parents[3] / "agents").glob(f"*/{CARD}"))


def trained(kind: str) -> Agent:
    agents = {
        "dqn": lambda: al.DQN(ENV, QUICK, depth=1),
        "qldqn": lambda: al.QLDQN(ENV, QUICK, seed=3),
        "with prior": lambda: al.QLDQN(ENV, dataclasses.replace(QUICK, shared_head=False), prior="train"),
    }
    return agents[kind]().learn(steps=160)


@pytest.mark.parametrize("kind", ["dqn", "qldqn", "with prior"])
def test_an_exported_agent_plays_as_the_agent_does(kind: str, tmp_path: Path) -> None:
    agent = trained(kind)
    agent.export(tmp_path / "agent", score=1.0)
    loaded = load_agent(tmp_path / "agent")
    ours, theirs = (player.evaluate(3, seed=5) for player in (agent, loaded))
    assert ours.scores.tolist() == theirs.scores.tolist()
    assert ours.depths == theirs.depths
    assert type(agent).load(tmp_path / "agent").seed == agent.seed
    assert {path.name for path in (tmp_path / "agent").iterdir()} == {CARD, WEIGHTS, PAGE}


def test_distances_are_thinned_yet_spread_as_before(tmp_path: Path) -> None:
    agent = trained("qldqn")
    many = np.sort(np.random.default_rng(0).random(50_000))
    agent.ranks.replace({1: many})
    agent.export(tmp_path)
    loaded = load_agent(tmp_path)
    assert loaded.ranks.count(1) == MOST_DISTANCES
    asked = np.linspace(0.0, 1.0, 50)
    draws = np.zeros(50)
    assert loaded.ranks.rank_share(1, asked, draws) == pytest.approx(
        agent.ranks.rank_share(1, asked, draws), abs=2.0 / MOST_DISTANCES
    )


@pytest.mark.parametrize("name", [CARD, WEIGHTS])
def test_damage_is_refused(name: str, tmp_path: Path) -> None:
    trained("dqn").export(tmp_path, score=1.5)
    path = tmp_path / name
    whole = path.read_bytes()
    for damaged in (b"", whole[:-7], whole.replace(b"1.5", b"9.5") if name == CARD else whole[:-1] + b"\x01"):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=name):
            load_agent(tmp_path)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"null", b"1" * 5_000])
def test_cards_that_are_no_cards_are_refused(content: bytes, tmp_path: Path) -> None:
    trained("dqn").export(tmp_path)
    (tmp_path / "agent.json").write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        al.DQN.load(tmp_path)


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    trained("dqn").export(tmp_path)
    for name in ("policy.safetensors", "agent.json"):
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
        with pytest.raises(FileError, match=f"cannot read .*{name}"):
            al.DQN.load(tmp_path)


def test_cards_hold_what_json_holds(tmp_path: Path) -> None:
    for about in (object(), float("nan")):
        with pytest.raises(ArgumentError, match="the card cannot hold this"):
            trained("dqn").export(tmp_path, note=about)


def test_another_version_and_another_kind_are_refused(tmp_path: Path) -> None:
    trained("dqn").export(tmp_path)
    with pytest.raises(AdalookError, match="another agent"):
        al.QLDQN.load(tmp_path)
    card = json.loads((tmp_path / CARD).read_text())
    (tmp_path / CARD).write_text(json.dumps(card | {"format_version": 99}))
    with pytest.raises(FileError, match="version"):
        load_agent(tmp_path)


def test_a_run_is_exported_with_the_command_that_made_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = al.DQN(ENV, dataclasses.replace(QUICK, discount=0.9), seed=2).learn(steps=96)
    agent.save(tmp_path / "run")
    out = tmp_path / "agents" / "mine"
    assert main(["export", str(tmp_path / "run"), str(out), "--episodes", "2", "--commit", "abc123"]) == 0
    about = json.loads((out / CARD).read_text())["about"]
    assert about["made_by"].startswith(f"adalook train {ENV} --agent dqn --seed 2 --depth 0 --steps {agent.step} ")
    assert "--discount 0.9" in about["made_by"]
    assert (about["commit"], len(about["scores"])) == ("abc123", 2)
    assert "adalook evaluate" in capsys.readouterr().out
    gif, gallery = tmp_path / "play.gif", tmp_path / "states.png"
    assert main(["evaluate", str(out), "--episodes", "1", "--gif", str(gif), "--gallery", str(gallery)]) == 0
    assert gif.read_bytes().startswith(b"GIF")
    assert gallery.read_bytes().startswith(b"\x89PNG")
    assert about["made_by"] in (out / PAGE).read_text()


@pytest.mark.parametrize("directory", SHIPPED, ids=lambda path: path.name)
def test_shipped_agents_load_and_play(directory: Path) -> None:
    agent = load_agent(directory)
    card = json.loads((directory / CARD).read_text())
    assert sum(path.stat().st_size for path in directory.iterdir()) < 2_000_000
    assert card["about"]["made_by"].startswith(("adalook train ", "adalook reproduce "))
    assert 0 < agent.evaluate(1, max_episode_steps=20).steps[0] <= 20


def test_agents_are_shipped() -> None:
    assert {path.name for path in SHIPPED} >= {"atari-videopinball", "minatar-asterix", "minatar-breakout"}


def test_the_command_on_a_card_has_no_setting_that_train_would_refuse() -> None:
    config = al.Config.for_env(ENV, leaf_trust=0.5, prior_steps=7, learning_rate=1e-3)
    command = _training_command(al.DQN(ENV, config, depth=1).run_config(), 10)
    assert "--learning-rate 0.001" in command
    assert "--leaf-trust" not in command
    assert "--prior-steps" not in command


def test_a_card_says_how_to_play_the_agent_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder as it was given, and for an environment in a module of its own its name, as evaluate asks for it."""
    monkeypatch.chdir(tmp_path)
    al.DQN(ENV).export("kept/mine")
    assert "\n    adalook evaluate kept/mine --episodes 5 --gif episode.gif\n" in Path("kept/mine", PAGE).read_text()
    Path("mygame.py").write_text("import gymnasium\n\ndef make():\n    return gymnasium.make('CartPole-v1')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    al.DQN("mygame:make").export("own")
    assert "adalook evaluate own --episodes 5 --gif episode.gif --env mygame:make\n" in Path("own", PAGE).read_text()
