"""Settings: presets, ranges, plain form."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.config import Config
from adalook.learning.presets import LEARNING_RATE_UNDER_CHANCE, atari, config_for, minatar, tabular, vector
from adalook.learning.runs.directory import CONFIG_FILE, read_run_config
from adalook.learning.runs.run import load_agent
from adalook.simulators.base import Simulator
from adalook.storage.documents import with_digest

PRESETS = [atari(), minatar(), tabular(), vector()]


def test_presets_are_chosen_by_the_env() -> None:
    mdp = al.zoo.chain(n=5, discount=0.8)
    assert config_for("ALE/Pong-v5") == atari()
    assert config_for("MinAtar/Asterix-v1") == minatar()
    assert config_for(mdp) == dataclasses.replace(tabular(), discount=0.8)
    assert config_for("CartPole-v1") == vector()
    assert config_for("no such environment") == vector()  # whoever makes it complains


def test_settings_that_are_gone_are_left_out_if_they_were_off_and_refused_otherwise() -> None:
    plain = minatar().to_plain()
    assert Config.from_plain(plain | {"novelty_bonus": 0.0, "patience_steps": 0, "search_workers": 2}) == minatar()
    with pytest.raises(ArgumentError, match="did not pay and is gone"):
        Config.from_plain(plain | {"novelty_bonus": 0.5})


def test_names_of_games_make_no_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium, "make", None)
    assert config_for("ALE/Pong-v5") == atari()
    assert config_for("MinAtar/Asterix-v1") == minatar()


@pytest.mark.parametrize(
    "env",
    [
        "FrozenLake-v1",
        gymnasium.make("FrozenLake-v1", map_name="8x8"),
        al.make_simulator("FrozenLake-v1", map_name="8x8"),
    ],
    ids=["name", "env", "simulator"],
)
def test_envs_with_discrete_observations_get_a_table_with_an_entry_for_each(env: Any) -> None:
    config = config_for(env)
    # As long as they go on by themselves; optimistic where it is known that the one reward of a toy is far away.
    optimism = 0.0 if isinstance(env, Simulator) else 1.0
    assert config == dataclasses.replace(
        tabular(), max_episode_steps=1_000, initial_value=optimism, learning_rate=LEARNING_RATE_UNDER_CHANCE
    )
    agent = QLDQN(env, dataclasses.replace(config, num_envs=2, learning_starts_steps=32))
    assert agent.network.trunk.features == (16 if isinstance(env, str) else 64)
    assert agent.learn(steps=64).step == 64


class DiscreteRing(gymnasium.Env[int, int]):
    """A ring of three states, numbered from `first` on."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, first: int) -> None:
        self.first, self.place = first, 0
        self.observation_space = gymnasium.spaces.Discrete(3, start=first)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return self.first, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place = (self.place + int(action)) % 3
        return self.first + self.place, float(self.place == 2), False, False, {}


def test_a_table_holds_the_greatest_number_of_a_state() -> None:
    env = DiscreteRing(first=5)
    agent = DQN(env, dataclasses.replace(config_for(env), learning_starts_steps=32, max_episode_steps=20))
    assert agent.network.trunk.features == 8
    assert agent.learn(steps=400).evaluate(2).mean > 5  # a reward on every third step, if it goes round


def test_a_table_for_an_env_without_discrete_observations_is_refused() -> None:
    assert config_for(DiscreteRing(first=-1)) == vector()
    for env in (DiscreteRing(first=-1), "CartPole-v1", "MinAtar/Breakout-v1"):
        with pytest.raises(ArgumentError, match="discrete observations"):
            DQN(env, tabular())


def test_atari_explores_as_long_as_cleanrl() -> None:
    """A tenth of its ten million steps."""
    config = atari()
    assert (config.epsilon_end, config.epsilon_anneal_steps, config.learning_starts_steps) == (0.01, 1_000_000, 80_000)


def test_minatar_is_as_published() -> None:
    config = minatar()
    assert (config.learning_rate, config.second_moment_decay, config.optimizer_epsilon) == (0.00025, 0.95, 0.01)
    assert (config.batch_transitions, config.buffer_transitions, config.target_period_steps) == (32, 100_000, 1000)
    assert (config.epsilon_end, config.epsilon_anneal_steps, config.learning_starts_steps) == (0.1, 100_000, 5000)
    assert (config.discount, config.hidden_units, config.optimizer) == (0.99, 128, "rmsprop")


@pytest.mark.parametrize("config", PRESETS)
def test_plain_form_survives_json(config: Config) -> None:
    assert Config.from_plain(json.loads(json.dumps(config.to_plain()))) == config


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"no setting .*'discount' here"):
        Config.from_plain({"gamma": 0.9})
    for plain in ([1], None):
        with pytest.raises(ArgumentError, match="expected a mapping"):
            Config.from_plain(plain)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["agent", "env", "seed", "config", "depth"])
def test_a_run_config_that_lacks_something_is_named_with_it(key: str, tmp_path: Path) -> None:
    DQN("FrozenLake-v1", depth=1).save(tmp_path)
    run_config = dict(read_run_config(tmp_path))
    del run_config[key]
    (tmp_path / CONFIG_FILE).write_text(json.dumps(with_digest(run_config)))
    with pytest.raises(FileError, match=rf"{CONFIG_FILE} has no '{key}'"):
        load_agent(tmp_path)


@pytest.mark.parametrize(("made", "said"), [("dqn", "qldqn"), ("qldqn", "dqn")])
def test_a_run_config_of_another_kind_of_agent_is_refused(made: str, said: str, tmp_path: Path) -> None:
    agent = DQN("FrozenLake-v1", depth=1) if made == "dqn" else al.QLDQN("FrozenLake-v1")
    agent.save(tmp_path)
    run_config = dict(read_run_config(tmp_path))
    (tmp_path / CONFIG_FILE).write_text(json.dumps(with_digest(run_config | {"agent": said, "depth": 1})))
    with pytest.raises(FileError, match=f"is of another agent than {CONFIG_FILE} says: expected {said}, got {made}"):
        load_agent(tmp_path)


def test_another_number_of_envs_than_was_saved_is_refused(tmp_path: Path) -> None:
    mdp = al.zoo.chain(n=5)
    DQN(mdp, dataclasses.replace(config_for(mdp), num_envs=4)).save(tmp_path)
    run_config = dict(read_run_config(tmp_path))
    run_config["config"]["num_envs"] = 3
    (tmp_path / CONFIG_FILE).write_text(json.dumps(with_digest(run_config)))
    with pytest.raises(ArgumentError, match=r"expected num_envs = 4, got num_envs = 3"):
        load_agent(tmp_path, mdp)


def test_trees_deeper_than_the_memory_can_note_are_refused() -> None:
    mdp = al.zoo.chain(n=5)
    with pytest.raises(ArgumentError, match=r"0\.\.127, got 128"):
        DQN(mdp, depth=128)
    deepest = DQN(mdp, dataclasses.replace(config_for(mdp), num_envs=1), depth=127)
    assert next(deepest.rounds()).decisions[0].depth == 127


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_envs", 0),
        ("num_envs", 1.5),
        ("discount", 1.1),
        ("depth_shares", (float("nan"),)),
        ("learning_rate", 0.0),
        ("learning_rate", float("inf")),
        ("second_moment_decay", 1.0),
        ("batch_transitions", 0),
        ("threads", 0),
        ("buffer_transitions", 31),
        ("compression", "zip"),
        ("discount", 0.0),
        ("discount", float("nan")),
        ("discount", "high"),
        ("learning_rate", "a"),
        ("learning_rate", 10**400),
        ("depth_shares", 0.3),
        ("depth_shares", None),
        ("depth_shares", "0.3"),
        ("depth_shares", (0.5,) * 127),
        ("head_balance", None),
        ("num_envs", True),
        ("num_envs", np.array([4])),
        ("overlap", "False"),
        ("life_loss_ends", "no"),
        ("shared_head", 0),
        ("train_shallow_heads", None),
        ("deepest_tree", 128),
        ("device", 5),
        ("device", "banana"),
        ("prior", 5),
        ("prior", ""),
        ("network", ["mlp"]),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"config: .*{name}|buffer_transitions.*expected .*, got "):
        dataclasses.replace(minatar(), **{name: value})


@pytest.mark.parametrize("field", dataclasses.fields(Config), ids=lambda field: field.name)
def test_no_setting_takes_what_is_no_value(field: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"config: {field.name} is wrong: expected .*, got <object"):
        Config(**{field.name: object()})


def test_numbers_of_numpy_are_taken_as_what_they_are() -> None:
    plain = Config(num_envs=4, learning_rate=0.5, overlap=True, depth_shares=(0.5, 0.25), discount=1.0)
    given: dict[str, Any] = {
        "num_envs": np.int64(4),
        "learning_rate": np.float32(0.5),
        "overlap": np.bool_(True),
        "depth_shares": [np.float64(0.5), np.float64(0.25)],
        "discount": 1,
    }
    for config in (Config(**given), Config(**given | {"depth_shares": np.array([0.5, 0.25])})):
        assert json.dumps(config.to_plain()) == json.dumps(plain.to_plain())


def test_heads_are_balanced_only_where_there_are_several() -> None:
    with pytest.raises(ArgumentError, match="shared_head=False"):
        Config(head_balance=0.5)
    assert Config(head_balance=0.5, shared_head=False).head_balance == 0.5


def test_more_threads_than_any_machine_has_are_refused() -> None:
    with pytest.raises(ArgumentError, match="threads"):
        Config(threads=10**6)


def test_a_setting_that_an_engine_replaced_is_read_and_refused_elsewhere() -> None:
    old = Config().to_plain() | {"search_workers": 2}
    assert Config.from_plain(old) == Config()
    with pytest.raises(ArgumentError, match=r"no setting 'search_workers'.*engine=al.LocalProcesses"):
        Config().with_settings(search_workers=2)
