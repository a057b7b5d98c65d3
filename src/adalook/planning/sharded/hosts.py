"""The hosts of shards, wherever the engine has them: this process, processes of this machine, or actors on Ray.

Hosts hold shards and answer requests. A request that is not answered was lost with its host: whoever asked knows what
the lost shards had been told, and tells it again. Which host holds which shard has no influence on any answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from adalook.engines.base import GO_ON, Host, HostFailed, HostLost, checked_engine
from adalook.errors import ArgumentError, EngineError, shown
from adalook.planning import threads
from adalook.planning.sharded.blocks import BlockSource
from adalook.planning.sharded.shard import Shard


class Request(NamedTuple):
    """A call of a shard's method."""

    method: str
    arguments: tuple[Any, ...] = ()


Requests = Mapping[int, Sequence[Request]]
"""What each shard is asked, one after the other."""


class ShardGroup(Host):
    """The shards that one host holds, by their numbers.

    Args:
        source: makes the part of the model of a range of states.
        edges: between the shards.
        cores: that this process may use; None: as many as there are.
    """

    def __init__(self, source: BlockSource, edges: Sequence[int], cores: int | None = None) -> None:
        if cores is not None:
            os.environ.setdefault("ADALOOK_THREADS", str(cores))
        self._source, self._edges = source, edges
        self._shards: dict[int, Shard] = {}

    def answer(self, message: Requests, published: None = None) -> dict[int, Any]:
        """Carry out the requests of each shard in turn, and return the answer to its last one.

        The request "build" makes the shard anew, and answers with its facts.
        """
        answers: dict[int, Any] = {}
        for k, calls in message.items():
            for method, arguments in calls:
                if method == "build":
                    self._shards.pop(k, None)
                    self._shards[k] = Shard(self._source, range(self._edges[k], self._edges[k + 1]))
                    answers[k] = self._shards[k].facts
                else:
                    answers[k] = getattr(self._shards[k], method)(*arguments)
        return answers


class ShardHosts:
    """The hosts of all shards; at first shard k lives in host k·count // shards.

    Args:
        engine: None or `al.InProcess()`, `al.LocalProcesses(2)`, `al.Ray(2)`.
        source: makes the part of the model of a range of states.
        edges: between the shards.
    """

    def __init__(self, engine: Any, source: BlockSource, edges: Sequence[int]) -> None:
        engine = checked_engine(engine)
        if engine.asynchronous:
            raise ArgumentError("shards are solved in rounds", expected="asynchronous=False", got=shown(engine))
        shards = len(edges) - 1
        count = min(engine.actors, shards)
        self._owner = [k * count // shards for k in range(shards)]
        self.restarts = 0
        """Hosts that were lost and replaced."""
        self._lost: set[int] = set()
        cores = max(1, threads.available_cores() // count) if engine.split else None
        self.hosts = engine.hosts([partial(ShardGroup, source, tuple(edges), cores)] * count)
        try:
            self.hosts.start()
        except BaseException:
            self.close()
            raise

    def ask(self, requests: Requests) -> dict[int, Any]:
        """Return the answer of each shard to the last of its requests; shards without an answer are lost."""
        waiting = {self._owner[k] for k in requests}
        for host in sorted(waiting):
            self.hosts.send(host, {k: calls for k, calls in requests.items() if self._owner[k] == host})
        answers: dict[int, Any] = {}
        failures: list[Exception] = []
        while waiting:
            for host, answer in self.hosts.receive(sorted(waiting)):
                waiting.remove(host)
                if isinstance(answer, HostLost):
                    self._replace(host, answer.reason)
                elif isinstance(answer, HostFailed):
                    failures.append(answer.error(host))
                else:
                    answers |= answer
        if failures:
            raise failures[0]
        return answers

    def take_lost(self) -> set[int]:
        """Return the shards, asked or not, that were lost with their hosts since this was last called."""
        lost, self._lost = self._lost, set()
        return lost

    def close(self) -> None:
        """End what was started."""
        self.hosts.close()

    def __enter__(self) -> ShardHosts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _replace(self, host: int, reason: str) -> None:
        """Start another host for one that was lost or, where there is no room, leave its shards to the others."""
        self.restarts += 1
        held = [k for k, owner in enumerate(self._owner) if owner == host]
        self._lost |= set(held)
        if self.hosts.restart(host):
            return
        others = sorted(set(self._owner) - {host})
        if not others:
            raise EngineError("no actor is left, and there is no room for another", got=reason, remedy=GO_ON)
        for place, k in enumerate(held):
            self._owner[k] = others[place % len(others)]
