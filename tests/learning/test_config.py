"""Settings: presets, ranges, plain form."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import adalook as al
from adalook.commands.train import Settings, comments_on
from adalook.errors import ArgumentError
from adalook.learning.config import Config, atari, config_for, minatar, tabular, vector
from adalook.learning.habits import Habits

PRESETS = [atari(), minatar(), tabular(), vector()]


def test_presets_are_chosen_by_the_world() -> None:
    mdp = al.zoo.chain(n=5, discount=0.8)
    assert config_for("ALE/Pong-v5") == atari()
    assert config_for("MinAtar/Asterix-v1") == minatar()
    assert config_for(mdp) == dataclasses.replace(tabular(), discount=0.8)


def test_minatar_is_as_published() -> None:
    config = minatar()
    assert (config.learning_rate, config.square_decay, config.optimiser_epsilon) == (0.00025, 0.95, 0.01)
    assert (config.batch_transitions, config.buffer_transitions, config.target_period_steps) == (32, 100_000, 1000)
    assert (config.epsilon_end, config.epsilon_anneal_steps, config.learning_starts_steps) == (0.1, 100_000, 5000)
    assert (config.discount, config.hidden_units, config.optimiser) == (0.99, 128, "rmsprop")


@pytest.mark.parametrize("config", PRESETS)
def test_plain_form_survives_json(config: Config) -> None:
    assert Config.from_plain(json.loads(json.dumps(config.to_plain()))) == config


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no such setting"):
        Config.from_plain({"gamma": 0.9})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("envs", 0),
        ("envs", 1.5),
        ("discount", 1.1),
        ("shares", (float("nan"),)),
        ("learning_rate", 0.0),
        ("learning_rate", float("inf")),
        ("square_decay", 1.0),
        ("batch_transitions", 0),
        ("threads", 0),
        ("network", "resnet"),
        ("buffer_transitions", 31),
        ("compression", "zip"),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"config: .*expected"):
        dataclasses.replace(minatar(), **{name: value})


def test_epsilon_falls_in_a_straight_line_and_stays() -> None:
    config = dataclasses.replace(minatar(), epsilon_start=1.0, epsilon_end=0.2, epsilon_anneal_steps=100)
    assert [round(config.epsilon(step), 6) for step in (0, 50, 100, 1000)] == [1.0, 0.6, 0.2, 0.2]


@pytest.mark.parametrize("kind", [Config, Habits])
def test_every_setting_has_a_comment(kind: type) -> None:
    comments = comments_on(kind)
    assert set(comments) == {field.name for field in dataclasses.fields(kind)}
    assert all(len(comment) > 10 for comment in comments.values())


def test_every_setting_is_a_flag() -> None:
    assert {field.name for field in dataclasses.fields(Settings)} == {
        field.name for field in dataclasses.fields(Config)
    }
