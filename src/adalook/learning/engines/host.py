"""The far side of an engine: an agent without a buffer, in a process of its own, that acts in some environments.

A host knows nothing that its parent does not know as well: each reply carries the environments as the step left them.
So a host that dies is replaced by a new one, which is sent that state and repeats the step, with the same result.
"""

from __future__ import annotations

import os
import platform
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from adalook import errors
from adalook._ray import versions_here
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

    number: int
    """Of the request; each has another."""
    group: int
    after: int
    """The request that left the group as it is."""
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

    number: int
    decisions: list[Decision]
    transitions: list[Transition]
    episodes: list[Episode]
    state: dict[str, Any]


@dataclass(frozen=True)
class StateMissing:
    """Reply of a host that does not have the environments: it has been started again, unnoticed."""

    number: int


@dataclass(frozen=True)
class StepFailed:
    """Reply when a step raised an error."""

    number: int
    kind: str
    """The name of the error's class."""
    message: str
    trace: str

    def error(self, host: int) -> Exception:
        """Return the error to raise: the same if it is one of adalook's, otherwise one that names it."""
        kind = getattr(errors, self.kind, None)
        if isinstance(kind, type) and issubclass(kind, errors.AdalookError):
            same: Exception = kind.__new__(kind)
            Exception.__init__(same, self.message)
            return same
        failed = errors.EngineError(f"actor {host} failed", got=f"{self.kind}: {self.message}")
        failed.add_note(self.trace)
        return failed


Reply = StepReply | StateMissing | StepFailed


class ActorHost:
    """An agent that acts in groups of environments, as it is asked to."""

    def __init__(self, spec: HostSpec) -> None:
        from adalook.learning.runs.run import AGENTS

        if spec.trunk is not None:
            NETWORKS[spec.run_config["config"]["network"]] = spec.trunk
        self._probe = spec.probe
        self._agent = AGENTS[spec.run_config["agent"]].from_run_config(spec.run_config, spec.sim)
        self._agent.load_policy(spec.policy)
        self._groups: dict[int, tuple[int, InProcessActing]] = {}
        """By number: the request that left it as it is, and the environments."""

    def about(self) -> dict[str, str]:
        """Return what must agree between all hosts, and where this one is."""
        torch.set_num_threads(self._agent.config.threads)
        digest = rounding_digest(self._agent.leaf_values, self._probe, self._agent.heads[0])
        versions = versions_here() | {"numpy": np.__version__, "torch": torch.__version__}
        return versions | {"rounding": digest, "node": platform.node(), "pid": str(os.getpid())}

    def step(self, request: StepRequest, weights: Weights | None = None) -> Reply:
        """Step a group of environments; new weights come with the first request that needs them."""
        try:
            torch.set_num_threads(self._agent.config.threads)
            if weights is not None:
                self._agent.network.load_weights(weights)
            self._agent.follow(request.round_state)
            if request.state is None and self._groups.get(request.group, (None,))[0] != request.after:
                return StateMissing(request.number)
            acting = self._group(request)
            acted = acting.step(request.draws)
            self._groups[request.group] = (request.number, acting)
            return StepReply(request.number, acted.decisions, acted.transitions, acted.episodes, acting.state())
        except Exception as error:
            return StepFailed(request.number, type(error).__name__, str(error), traceback.format_exc())

    def _group(self, request: StepRequest) -> InProcessActing:
        """Return a group of environments, as the request sends them if it does."""
        if request.state is None:
            return self._groups[request.group][1]
        _, acting = self._groups.pop(request.group, (None, None))
        if acting is None:
            acting = InProcessActing(self._agent.make_envs(len(request.state["envs"]["saved"])), self._agent.actor)
        acting.load_state(request.state)
        return acting


def host_spec(agent: Any, probe: np.ndarray[Any, Any]) -> HostSpec:
    """Return what a host of this agent needs."""
    network = agent.config.network
    policy = agent.policy_state() | {"recorded": {}}
    trunk = None if network in BUILT_IN_NETWORKS else NETWORKS[network]
    return HostSpec(agent.run_config(), agent.sim, policy, probe, trunk)
