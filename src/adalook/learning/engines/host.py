"""The far side of an engine: an agent without a buffer, in a process of its own, that acts in some environments.

A host knows nothing that its parent does not know as well: each reply carries the environments as the step left them.
So a host that dies is replaced by a new one, which is sent that state and repeats the step, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from adalook.engines.base import Host
from adalook.learning.acting import Decision
from adalook.learning.config import BUILT_IN_NETWORKS
from adalook.learning.networks import NETWORKS, rounding_digest
from adalook.learning.training import Draws, Episode, InProcessActing
from adalook.simulators.base import Simulator, Transition

Weights = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, eq=False)
class HostSpec:
    """The ingredients of the agent of a host."""

    run_config: dict[str, Any]
    sim: Simulator
    policy: dict[str, Any]
    """What `Agent.policy_state` gave, without distances."""
    probe: np.ndarray[Any, Any]
    """(*observation_shape) an observation, on which hosts show how they round."""
    trunk: Any = None
    """What makes the trunk of a network that is not one of adalook's own."""


@dataclass(frozen=True, eq=False)
class StepRequest:
    """Request to step a group of environments once."""

    group: int
    draws: Draws
    updates: int
    """How often the network had been updated."""
    round_state: dict[str, Any]
    """What `Agent.round_state` gave."""
    state: dict[str, Any] | None = None
    """The environments; None: the host has them."""


@dataclass(frozen=True, eq=False)
class StepReply:
    """A step of a group of environments, and how it left them."""

    decisions: list[Decision]
    transitions: list[Transition]
    episodes: list[Episode]
    state: dict[str, Any]


class ActorHost(Host):
    """An agent that acts in groups of environments, as it is asked to."""

    def __init__(self, spec: HostSpec) -> None:
        from adalook.learning.runs.run import AGENTS

        if spec.trunk is not None:
            NETWORKS[spec.run_config["config"]["network"]] = spec.trunk
        self._probe = spec.probe
        self._agent = AGENTS[spec.run_config["agent"]].from_run_config(spec.run_config, spec.sim)
        self._agent.load_policy(spec.policy)
        self._groups: dict[int, InProcessActing] = {}
        """Environments by the number of their group."""

    def about(self) -> dict[str, str]:
        """Return what must agree between all hosts."""
        torch.set_num_threads(self._agent.config.threads)
        digest = rounding_digest(self._agent.leaf_values, self._probe, self._agent.heads[0])
        return {"numpy": np.__version__, "torch": torch.__version__, "rounding": digest}

    def answer(self, message: StepRequest, published: Weights | None) -> StepReply:
        """Step a group of environments; new weights come with the first request that needs them."""
        torch.set_num_threads(self._agent.config.threads)
        if published is not None:
            self._agent.network.load_weights(published)
        self._agent.follow(message.round_state)
        acting = self._group(message)
        acted = acting.step(message.draws)
        return StepReply(acted.decisions, acted.transitions, acted.episodes, acting.state())

    def _group(self, request: StepRequest) -> InProcessActing:
        """Return a group of environments, as the request sends them if it does."""
        if request.state is None:
            return self._groups[request.group]
        if request.group not in self._groups:
            count = len(request.state["envs"]["saved"])
            self._groups[request.group] = InProcessActing(self._agent.make_envs(count), self._agent.actor)
        self._groups[request.group].load_state(request.state)
        return self._groups[request.group]


def host_spec(agent: Any, probe: np.ndarray[Any, Any]) -> HostSpec:
    """Return what a host of this agent needs."""
    network = agent.config.network
    policy = agent.policy_state() | {"recorded": {}}
    trunk = None if network in BUILT_IN_NETWORKS else NETWORKS[network]
    return HostSpec(agent.run_config(), agent.sim, policy, probe, trunk)
