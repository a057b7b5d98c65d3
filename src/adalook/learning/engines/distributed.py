"""Environments that are split over hosts in other processes, and the rounds in which they are stepped.

Groups of consecutive environments are stepped by hosts, one `ActorHost` for each to begin with. A synchronous round
asks for a step of every group and merges the replies in the order of the environments: the same results for any number
of hosts. Asynchronously each reply is a round of its own, and hosts are asked for the next before they have answered.

A host that is lost is started again and sent what it had, as the last reply left it; one that cannot be started again
leaves its groups to the others. Neither changes a synchronous run.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from adalook.engines.base import Engine, HostFailed, HostLost, Hosts, checked_engine
from adalook.engines.session import check_versions
from adalook.errors import ArgumentError, EngineError, shown
from adalook.learning.engines.host import ActorHost, StepReply, StepRequest, host_spec
from adalook.learning.networks import rounding_digest
from adalook.learning.training import Acted, Acting, Draws, InProcessActing, PendingStep

if TYPE_CHECKING:
    from adalook.learning.agents.base import Agent
    from adalook.simulators.base import Simulator

logger = logging.getLogger("adalook.engine")

MAX_DEATHS = 3
"""So many times in a row a host may be lost without having answered anything."""
LIST_FIELDS = ("saved", "scores", "steps", "idle")
"""Of the state of an `EnvPool`: lists with an entry for each environment. Observations are an array."""
LOG_FOLDER = "ray"
"""In the directory of a run."""


def check_learning_engine(engine: Engine | None, sim: Simulator) -> None:
    """Raise unless this is an engine, and one that environments of training can be on."""
    if checked_engine(engine).split == "envs" and not sim.saves:
        raise ArgumentError(
            "this environment cannot be saved, so that no actor could take the place of one that dies",
            expected="an environment whose state can be saved, or al.InProcess()",
            got=shown(sim),
        )


def distribute(agent: Agent, here: InProcessActing) -> Acting:
    """Return the environments of an agent where its engine has them: here, or in other processes.

    Args:
        agent: whose environments they are.
        here: the same environments in this process, at their start.
    """
    engine = agent.engine
    return here if engine is None or engine.split != "envs" else DistributedActing(agent, here, engine)


@dataclass(eq=False)
class _Call:
    """A request that was sent, with the weights that it is to be answered by."""

    request: StepRequest
    weights: Any
    version: int


class DistributedActing(Acting):
    """Environments in other processes, one group of them for each host.

    Args:
        agent: whose environments they are.
        here: the same in this process, at their start; they are closed.
        engine: how many hosts, and whether they are waited for; they start with the first round.
    """

    def __init__(self, agent: Agent, here: InProcessActing, engine: Any) -> None:
        self._agent, self._engine = agent, engine
        self.num_actions = here.num_actions
        count = len(here.pool)
        hosts = min(engine.actors, count)
        if hosts < engine.actors:
            logger.warning("%d actors are enough for %d environments (num_envs)", hosts, count)
        edges = [count * i // hosts for i in range(hosts + 1)]
        self.groups = [range(first, last) for first, last in pairwise(edges)]
        """The environments of each group."""
        self._probe = here.pool.observations[0]
        self._states = split_state(here.state(), self.groups)
        """Of each group, as the last reply left it: all that is needed to go on."""
        here.close()
        self._hosts: Hosts | None = None
        self._host_of = list(range(hosts))
        """The host of each group."""
        self._calls: list[deque[_Call]] = [deque() for _ in range(hosts)]
        """By host: what it was asked for and has not answered, oldest first."""
        self._cold: set[int] = set(range(hosts))
        """Groups that their hosts do not have yet."""
        self._versions: list[int | None] = [None] * hosts
        """By host: the weights that it has."""
        self._deaths = [0] * hosts
        self._published: tuple[int, Any] = (-1, None)
        self._received: list[tuple[int, Any]] = []
        """Replies that came together with one that was taken."""
        self.lost = 0
        """How often a host was lost so far."""

    # ---- rounds

    def begin(self, draw: Callable[[range], Draws], updates: int) -> PendingStep:
        """Ask for a step of every group; asynchronously, wait for the first that is answered, too."""
        self.start()
        count = self.groups[-1].stop
        round_state = self._agent.round_state()
        if not self._engine.asynchronous:
            draws = draw(range(count))
            for group, envs in enumerate(self.groups):
                part = Draws(draws.random_actions[envs.start : envs.stop], draws.seeds[envs.start : envs.stop])
                self._ask(group, part, updates, round_state)
            return _Round(range(count), lambda: merge_steps(list(self._answers())))
        for group, envs in enumerate(self.groups):
            asked = sum(call.request.group == group for call in self._calls[self._host_of[group]])
            for _ in range(self._engine.calls_in_flight - asked):
                self._ask(group, draw(envs), updates, round_state)
        group, acted = self._receive()
        return _Round(self.groups[group], lambda: acted)

    def _answers(self) -> Iterator[Acted]:
        """Yield the steps of all groups, in their order."""
        steps: dict[int, Acted] = {}
        while len(steps) < len(self.groups):
            group, steps[group] = self._receive()
        for group in range(len(self.groups)):
            yield steps[group]

    def _ask(self, group: int, draws: Draws, updates: int, round_state: dict[str, Any]) -> None:
        """Send the request for the next step of a group."""
        request = StepRequest(group, draws, updates, round_state)
        if self._published[0] != updates:
            assert self._hosts is not None
            self._published = (updates, self._hosts.publish(self._agent.network.weights()))
        self._send(self._host_of[group], _Call(request, self._published[1], updates))

    def _send(self, host: int, call: _Call) -> None:
        """Send a call, with the environments and the weights as far as the host does not have them."""
        assert self._hosts is not None
        request = call.request
        if request.group in self._cold:
            self._cold.discard(request.group)
            request = replace(request, state=self._states[request.group])
        weights = None if self._versions[host] == call.version else call.weights
        self._versions[host] = call.version
        self._calls[host].append(call)
        self._hosts.send(host, request, weights)

    def _receive(self) -> tuple[int, Acted]:
        """Wait for a reply; return the group and its step. Hosts that are lost meanwhile are replaced."""
        assert self._hosts is not None
        while not self._received:
            self._received += self._hosts.receive([host for host, calls in enumerate(self._calls) if calls])
            lost = [(host, reply) for host, reply in self._received if isinstance(reply, HostLost)]
            self._received = [item for item in self._received if item not in lost]
            for host, reply in lost:
                self._recover(host, reply.reason)
        host, reply = self._received.pop(0)
        if isinstance(reply, HostFailed):
            raise reply.error(host)
        return self._accept(host, reply)

    def _accept(self, host: int, reply: StepReply) -> tuple[int, Acted]:
        """Take a reply as the newest state of its group."""
        request = self._calls[host].popleft().request
        group = request.group
        observations = self._states[group]["envs"]["observations"]
        self._states[group] = reply.state
        self._deaths[host] = 0
        return group, Acted(observations, reply.decisions, reply.transitions, reply.episodes, request.updates)

    # ---- faults

    def _recover(self, host: int, reason: str) -> None:
        """Start a lost host again, or leave its groups to others, and repeat what it was asked for."""
        assert self._hosts is not None
        calls = list(self._calls[host])
        self._calls[host].clear()
        self._versions[host] = None
        self.lost += 1
        self._deaths[host] += 1
        groups = [group for group, owner in enumerate(self._host_of) if owner == host]
        self._cold.update(groups)
        if self._deaths[host] > MAX_DEATHS:
            raise EngineError(
                f"actor {host} died {self._deaths[host]} times in a row",
                got=reason,
                remedy="go on from the last checkpoint, with fewer actors if memory is short",
            )
        logger.warning("actor %d was lost (%s): what it was doing is repeated", host, reason)
        began = time.monotonic()
        if not self._hosts.restart(host):
            self._hand_over(host, groups, reason)
        logger.warning("actor %d is replaced after %.1f s", host, time.monotonic() - began)
        for call in calls:
            self._send(self._host_of[call.request.group], call)

    def _hand_over(self, host: int, groups: list[int], reason: str) -> None:
        """Leave groups of a host that is gone for good to those that are left, evenly."""
        left = sorted(set(self._host_of) - {host})
        if not left:
            raise EngineError(
                "no actor is left",
                got=reason,
                remedy="go on from the last checkpoint when there are machines again",
            )
        for group in groups:
            self._host_of[group] = min(left, key=self._host_of.count)
        logger.warning("actor %d cannot be started again: its environments go to %d others", host, len(left))

    # ---- beginning and end

    def start(self) -> None:
        """Start the hosts, unless they run, and check that they compute what this process would."""
        if self._hosts is not None:
            return
        agent = self._agent
        recipe = partial(ActorHost, host_spec(agent, self._probe))
        logs = None if agent.run_directory is None else agent.run_directory / LOG_FOLDER
        hosts = self._engine.hosts([recipe] * len(self.groups), logs)
        self._closing = weakref.finalize(self, hosts.close)
        began = time.monotonic()
        logger.info("starting %d actors …", len(self.groups))
        try:
            check_hosts(hosts.start(), rounding_digest(agent.leaf_values, self._probe, agent.heads[0]))
        except BaseException:
            self._closing()
            raise
        self._hosts = hosts
        logger.info("%d actors are there after %.1f s", len(self.groups), time.monotonic() - began)

    def state(self) -> dict[str, Any]:
        """Return the environments as the last replies left them."""
        return merge_states(self._states)

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave; what hosts were asked for before is forgotten."""
        self._states = split_state(state, self.groups)
        self._cold = set(range(len(self.groups)))
        self._published = (-1, None)
        self._versions = [None] * len(self._versions)
        self._received.clear()
        for calls in self._calls:
            calls.clear()
        if self._hosts is not None:
            self._hosts.forget()

    def close(self) -> None:
        """End the hosts."""
        if self._hosts is not None:
            self._closing()
            self._hosts = None


class _Round(PendingStep):
    def __init__(self, envs: range, finish: Callable[[], Acted]) -> None:
        self.envs, self._finish = envs, finish

    def finish(self) -> Acted:
        """Wait for the replies."""
        return self._finish()


def check_hosts(abouts: list[dict[str, str]], digest: str) -> None:
    """Raise `EngineError` if a host has other versions, or rounds otherwise, than this process."""
    expected = {"numpy": np.__version__, "torch": torch.__version__}
    for about in abouts:
        check_versions(expected, about, about["node"])
        if about["rounding"] != digest:
            raise EngineError(
                f"{about['node']} rounds otherwise than this machine: its processor is of another kind",
                remedy="use machines of one kind, so that results do not depend on who computes what",
            )
    if "\n" in digest:
        logger.warning("on this machine values depend on how many are computed at once: so may results on actors")


def split_state(state: dict[str, Any], groups: list[range]) -> list[dict[str, Any]]:
    """Return the states of groups of environments, from that of all of them (see `Acting.state`)."""
    envs, kept = state["envs"], state["actor"]
    if len(envs["saved"]) != groups[-1].stop:
        raise ArgumentError(
            "the run was saved with another number of environments",
            expected=f"num_envs = {len(envs['saved'])}",
            got=f"num_envs = {groups[-1].stop}",
            remedy="go on with as many as it was begun with",
        )
    observations = np.asarray(envs["observations"])
    return [
        {
            "envs": {name: list(envs[name][group.start : group.stop]) for name in LIST_FIELDS}
            | {"observations": observations[group.start : group.stop]},
            "actor": list(kept[group.start : group.stop]),
        }
        for group in groups
    ]


def merge_states(states: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the state of all environments, from those of groups of them."""
    envs: dict[str, Any] = {name: [entry for state in states for entry in state["envs"][name]] for name in LIST_FIELDS}
    envs["observations"] = np.concatenate([state["envs"]["observations"] for state in states])
    order = ("saved", "observations", "scores", "steps", "idle")
    return {
        "envs": {name: envs[name] for name in order},
        "actor": [entry for state in states for entry in state["actor"]],
    }


def merge_steps(steps: list[Acted]) -> Acted:
    """Return the step of all environments, from those of groups of them."""
    return Acted(
        np.concatenate([step.observations for step in steps]),
        [decision for step in steps for decision in step.decisions],
        [transition for step in steps for transition in step.transitions],
        [episode for step in steps for episode in step.episodes],
        min(step.updates for step in steps),
    )
