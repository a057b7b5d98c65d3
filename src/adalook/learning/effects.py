"""Settings that an agent was given by name and that would change nothing about it: refused, never ignored in silence.

Only names count. A preset, or a config that is given whole, may say more than one kind of agent has use for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from adalook.errors import ArgumentError, shown
from adalook.learning.config import BUILT_IN_NETWORKS, Config

ROLLOUTS_ONLY = (
    "stage_nodes",
    "rollout_steps",
    "rollout_repeat",
    "rollout_greedy",
    "learn_real_steps",
    "bootstrap",
    "learn_tree_steps",
    "leaf_trust",
)
LEVELS_ONLY = ("samples", "train_shallow_heads", "shared_head", "head_balance")
"""What only trees that grow level by level have; rollouts train one head, and begin at one drawn future."""
COST_CONTROLLED_ONLY = ("deepest_tree", "depth_control")
ADAPTIVE_ONLY = (
    "search_shape",
    "beam_width",
    *ROLLOUTS_ONLY,
    "leaf_correction",
    "nodes_per_step",
    *COST_CONTROLLED_ONLY,
    "depth_shares",
    "ranked_transitions",
    "prior",
    "prior_steps",
    "learn_every_action",
    "train_shallow_heads",
    "head_balance",
)
NETWORK_ONLY = ("leaf_trust", "leaf_correction", "rollout_greedy")
ATARI_ONLY = ("frame_skip", "reward_scale", "life_loss_penalty")


@dataclass(frozen=True)
class _Rule:
    """Settings, and what has to be so that they have an effect."""

    names: tuple[str, ...]
    has_effect: Callable[[Config], bool]
    needs: str
    """What has to be so, as the error says it."""
    depends_on: tuple[str, ...]
    """The settings that this depends on, for the error to show."""


_RULES = (
    _Rule(
        ("reset_keep",),
        lambda config: config.reset_period_steps > 0,
        "reset_period_steps above 0",
        ("reset_period_steps",),
    ),
    _Rule(("first_moment_decay",), lambda config: config.optimizer == "adam", "optimizer='adam'", ("optimizer",)),
    _Rule(
        ("initial_value",),
        lambda config: config.network == "table" or config.network not in BUILT_IN_NETWORKS,
        "network='table'",
        ("network",),
    ),
    _Rule(("hidden_units",), lambda config: config.network != "table", "a network with layers", ("network",)),
)
_ADAPTIVE_RULES = (
    *_RULES,
    _Rule(
        ROLLOUTS_ONLY, lambda config: config.search_shape == "rollouts", "search_shape='rollouts'", ("search_shape",)
    ),
    _Rule(
        LEVELS_ONLY,
        lambda config: config.search_shape != "rollouts",
        "search_shape='exhaustive' or search_shape='beam'",
        ("search_shape",),
    ),
    _Rule(("beam_width",), lambda config: config.search_shape == "beam", "search_shape='beam'", ("search_shape",)),
    _Rule(
        NETWORK_ONLY,
        lambda config: config.bootstrap or config.search_shape != "rollouts",
        "bootstrap=True, since a search alone asks no network",
        ("bootstrap",),
    ),
    _Rule(
        ("n_steps",),
        lambda config: config.search_shape == "rollouts" and config.learn_real_steps,
        "rollouts with learn_real_steps, or plain DQN of depth 0",
        ("search_shape", "learn_real_steps"),
    ),
    _Rule(
        COST_CONTROLLED_ONLY, lambda config: config.nodes_per_step > 0, "nodes_per_step above 0", ("nodes_per_step",)
    ),
    _Rule(
        ("depth_shares",),
        lambda config: config.nodes_per_step == 0,
        "nodes_per_step=0, since otherwise θ follows the cost",
        ("nodes_per_step",),
    ),
    _Rule(("prior_steps",), lambda config: config.prior == "train", "prior='train'", ("prior",)),
)


def check_effects(agent: str, env: Any, config: Config, names: Iterable[str]) -> None:
    """Raise unless each of these settings changes something about an agent.

    Args:
        agent: "dqn" or "qldqn".
        env: as the agent is given it.
        config: all settings.
        names: those that were given by name.
    """
    for name in names:
        if name in ATARI_ONLY and not (isinstance(env, str) and env.startswith("ALE/")):
            raise _without_effect(name, "an Atari game by its name, such as 'ALE/Pong-v5'", shown(env))
        if name in ADAPTIVE_ONLY and agent != "qldqn":
            raise _without_effect(name, "QL-DQN (al.QLDQN, --agent qldqn)", "DQN")
        for rule in _ADAPTIVE_RULES if agent == "qldqn" else _RULES:
            if name in rule.names and not rule.has_effect(config):
                got = ", ".join(f"{other}={getattr(config, other)!r}" for other in rule.depends_on)
                raise _without_effect(name, rule.needs, got)


def has_effect(agent: str, env: Any, config: Config, name: str) -> bool:
    """Return whether a setting changes something about an agent; see `check_effects`."""
    try:
        check_effects(agent, env, config, [name])
    except ArgumentError:
        return False
    return True


def _without_effect(name: str, needs: str, got: str) -> ArgumentError:
    return ArgumentError(
        f"config: {name} has no effect here", expected=needs, got=got, remedy=f"change that, or leave {name} out"
    )
