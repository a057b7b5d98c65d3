"""From an environment and a config to the parts of an agent: what the settings name is chosen here, once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from adalook.errors import ArgumentError
from adalook.learning.config import Config
from adalook.learning.networks import MinAtarTrunk, MLPTrunk, NatureTrunk, QNetwork, TableTrunk
from adalook.learning.numbered import num_states_of
from adalook.learning.replay import codecs
from adalook.learning.replay.buffer import Replay
from adalook.simulators.base import Simulator
from adalook.simulators.make import make_simulator


def world_of(env: Any, config: Config) -> Simulator:
    """The simulator of an environment, under the rules of training."""
    if isinstance(env, str) and env.startswith("ALE/"):
        return make_simulator(env, life_loss_ends=config.life_loss_ends, clip_rewards=True)
    return make_simulator(env)


def device_of(config: Config) -> torch.device:
    """Where the network lives."""
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(config.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(
            "config: this device cannot be used", expected="auto, cpu or cuda", got=f"{config.device!r} ({reason})"
        ) from None
    return device


def network_of(
    env: Any, sim: Simulator, config: Config, depths: Iterable[int], *, seed: int, device: torch.device
) -> QNetwork:
    """A network with heads for these depths."""
    network = QNetwork(_trunk(env, sim, config), depths, sim.num_actions, seed=seed, shared_head=config.shared_head)
    return network.to(device)


def _trunk(env: Any, sim: Simulator, config: Config) -> torch.nn.Module:
    if config.network == "nature":
        return NatureTrunk(sim.observation_shape, config.hidden_units)
    if config.network == "minatar":
        return MinAtarTrunk(sim.observation_shape, config.hidden_units)
    if config.network == "mlp":
        return MLPTrunk(sim.observation_shape, config.hidden_units)
    num_states = num_states_of(env)
    if num_states is None:
        raise ArgumentError(
            "a table needs a world with numbered states",
            expected="an al.MDP, or a Gymnasium environment with Discrete observations (start >= 0)",
            got=env if isinstance(env, str) else type(env).__name__,
            remedy="choose another network in the config",
        )
    return TableTrunk(num_states)


def replay_of(sim: Simulator, config: Config, max_depth: int) -> Replay:
    """An empty replay memory; refused before it is made if it cannot fit."""
    return Replay(
        config.buffer_transitions,
        sim.observation_shape,
        sim.observation_dtype,
        max_depth=max_depth,
        stacked=config.network == "nature",
        codec=_codec(config),
    )


def _codec(config: Config) -> codecs.Codec | None:
    """None: the replay memory chooses."""
    if config.compression == "auto" and config.network == "minatar":
        return codecs.Bits()  # its observations are zeros and ones
    return {"auto": lambda: None, "none": codecs.Raw, "lz4": codecs.LZ4}[config.compression]()
