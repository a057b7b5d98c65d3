"""Settings given by name that would change nothing are refused, with what they need."""

from typing import Any

import pytest

import adalook as al
from adalook.errors import ArgumentError
from adalook.learning.config import Config
from adalook.learning.effects import check_effects

CHAIN = al.zoo.chain(n=4, discount=0.9)


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({"leaf_trust": 0.3}, "search_shape='rollouts'"),
        ({"stage_nodes": 4}, "search_shape='rollouts'"),
        ({"bootstrap": False}, "search_shape='rollouts'"),
        ({"learn_real_steps": True, "n_steps": 3}, "search_shape='rollouts'"),
        ({"beam_width": 2}, "search_shape='beam'"),
        ({"search_shape": "rollouts", "beam_width": 2}, "search_shape='beam'"),
        ({"search_shape": "rollouts", "shared_head": False}, "search_shape='exhaustive' or search_shape='beam'"),
        ({"search_shape": "rollouts", "samples": 3}, "search_shape='exhaustive' or search_shape='beam'"),
        ({"search_shape": "rollouts", "bootstrap": False, "leaf_correction": True}, "bootstrap=True"),
        ({"depth_shares": (0.3, 0.1)}, "nodes_per_step=0"),
        ({"nodes_per_step": 0, "deepest_tree": 3}, "nodes_per_step above 0"),
        ({"prior_steps": 100}, "prior='train'"),
        ({"reset_keep": 0.2}, "reset_period_steps above 0"),
        ({"hidden_units": 8}, "a network with layers"),
        ({"network": "mlp", "initial_value": 1.0}, "network='table'"),
        ({"optimizer": "rmsprop", "first_moment_decay": 0.5}, "optimizer='adam'"),
        ({"frame_skip": 8}, "an Atari game by its name"),
    ],
)
def test_a_setting_without_effect_is_refused_with_what_it_needs(settings: dict[str, Any], needs: str) -> None:
    with pytest.raises(ArgumentError, match=f"has no effect here: expected {needs}"):
        al.QLDQN(CHAIN, **settings)


@pytest.mark.parametrize("settings", [{"search_shape": "beam"}, {"prior": "network"}, {"leaf_correction": True}])
def test_dqn_refuses_what_only_ql_dqn_has(settings: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"has no effect here: expected QL-DQN .* got DQN"):
        al.DQN(CHAIN, depth=1, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"search_shape": "beam", "beam_width": 2, "leaf_correction": True, "shared_head": False, "head_balance": 1.0},
        {"search_shape": "rollouts", "stage_nodes": 4, "leaf_trust": 0.3, "learn_real_steps": True, "n_steps": 3},
        {"nodes_per_step": 0, "depth_shares": (0.3, 0.1), "prior": "train", "prior_steps": 100},
        {"reset_period_steps": 50, "reset_keep": 0.2},
    ],
)
def test_settings_with_what_they_need_are_taken(settings: dict[str, Any]) -> None:
    config = al.QLDQN(CHAIN, **settings).config
    assert {name: getattr(config, name) for name in settings} == settings


def test_rules_of_atari_are_taken_for_its_games() -> None:
    check_effects("dqn", "ALE/Pong-v5", Config(), ["frame_skip", "reward_scale", "life_loss_penalty"])


def test_a_config_given_whole_may_say_more_than_an_agent_uses() -> None:
    config = al.Config.for_env(CHAIN, leaf_trust=0.3)
    assert al.DQN(CHAIN, config).config == al.QLDQN(CHAIN, config).config == config
