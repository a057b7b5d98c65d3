"""Hosts of shards that are Ray actors, on this machine or on those of a cluster.

Every actor builds its own shards; nothing but requests and answers goes through Ray. An actor that is lost is replaced
by a new one, wherever there is room. Where there is none within the engine's patience, its shards go to the others.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adalook._ray import check_ray, check_versions, first_line, ray_session, versions_here
from adalook.planning.sharded.blocks import BlockSource
from adalook.planning.sharded.hosts import (
    Failure,
    Hosts,
    Request,
    ShardError,
    ShardGroup,
    guarded_answer,
    raise_failure,
)

if TYPE_CHECKING:
    from adalook.planning.sharded.hosts import RayEngineSettings

START_SECONDS = 600.0
"""How long actors may take to begin: a loaded machine imports for a minute."""


class RayHosts(Hosts):
    """Shards in actors on Ray; at first shard k lives in actor k·count // shards."""

    def __init__(self, source: BlockSource, edges: Sequence[int], engine: RayEngineSettings) -> None:
        super().__init__()
        check_ray(engine.address, "al.Ray")
        shards = len(edges) - 1
        count = min(engine.actors, shards)
        self._engine = engine
        self._owner = [k * count // shards for k in range(shards)]
        self._session = contextlib.ExitStack()
        self._actors: dict[int, Any] = {}
        self._processes: dict[int, int] = {}
        try:
            self._ray = self._session.enter_context(ray_session(engine.address, count))
            # On this machine nobody else wants the cores; in a cluster actors are spread by them.
            cpus = 0 if engine.address is None else engine.cpus_per_actor
            self._remote = self._ray.remote(RayShardHost).options(
                num_cpus=cpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
            )
            self._model = self._ray.put((source, tuple(edges)))  # kept: actors that come later need it
            for index in range(count):
                self._actors[index] = self._remote.remote(self._model)
            for index in range(count):
                if not self._begun(index, START_SECONDS):
                    raise ShardError(
                        "the actors did not start in time",
                        expected=f"room for {count} actors of {cpus:g} cores",
                        got=f"a cluster of {self._ray.cluster_resources().get('CPU', 0):g} cores",
                        remedy="ask for fewer actors, or wait until others have finished",
                    )
        except BaseException:
            self.close()
            raise

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the current actors, on their machines; one that dies is replaced when its answer is missed."""
        return [self._processes[index] for index in self._actors]

    def ask(self, requests: Mapping[int, Sequence[Request]]) -> dict[int, Any]:
        waiting: dict[Any, int] = {}
        for index, actor in self._actors.items():
            own = {k: calls for k, calls in requests.items() if self._owner[k] == index}
            if own:
                waiting[actor.answer.remote(own)] = index
        answers: dict[int, Any] = {}
        failure: Failure | None = None
        while waiting:
            (reference,), _ = self._ray.wait(list(waiting), num_returns=1)
            index = waiting.pop(reference)
            try:
                answer = self._ray.get(reference)
            except (self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError) as error:
                raise ShardError(
                    "the object store of Ray is full",
                    got=first_line(error),
                    remedy="use more shards; a checkpoint, if there is one, is intact",
                ) from error
            except self._ray.exceptions.RayTaskError as error:
                raise ShardError("an actor could not answer", got=first_line(error.cause)) from error
            except self._ray.exceptions.RayError:  # the actor or its machine died, or the answer was lost with it
                self._replace(index)
                continue
            if isinstance(answer, Failure):
                failure = answer
            else:
                answers.update(answer)
        if failure is not None:
            raise_failure(failure)
        return answers

    def close(self) -> None:
        for actor in self._actors.values():
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        self._actors = {}
        self._session.close()

    def _replace(self, index: int) -> None:
        """Start another actor for one that was lost or, where there is no room, leave its shards to the others."""
        self.restarts += 1
        self._lost |= {k for k, owner in enumerate(self._owner) if owner == index}
        self._kill(index)
        self._actors[index] = self._remote.remote(self._model)
        if self._begun(index, self._engine.patience_seconds):
            return
        self._kill(index)
        if not self._actors:
            raise ShardError(
                "all actors are lost, and there is no room for another",
                remedy="add machines; a checkpoint, if there is one, is intact",
            )
        others = sorted(self._actors)
        for place, k in enumerate(k for k, owner in enumerate(self._owner) if owner == index):
            self._owner[k] = others[place % len(others)]

    def _kill(self, index: int) -> None:
        with contextlib.suppress(Exception):
            self._ray.kill(self._actors.pop(index))

    def _begun(self, index: int, seconds: float) -> bool:
        """Wait until an actor is there, with the same versions as here; False if it is not in time."""
        exceptions = self._ray.exceptions
        try:
            node, process, versions = self._ray.get(self._actors[index].about.remote(), timeout=seconds)
        except exceptions.GetTimeoutError:
            return False
        except exceptions.RayTaskError as error:
            raise ShardError("an actor cannot begin", got=first_line(error.cause)) from error
        except exceptions.RayError:
            return False
        check_versions(versions_here(), versions, node)
        self._processes[index] = process
        return True


class RayShardHost:
    """A host of shards as Ray starts it."""

    def __init__(self, model: tuple[BlockSource, tuple[int, ...]]) -> None:
        self._group = ShardGroup(*model)

    def about(self) -> tuple[str, int, dict[str, str]]:
        """Return the name of this machine, the id of this process, and its versions."""
        return platform.node(), os.getpid(), versions_here()

    def answer(self, requests: Mapping[int, Sequence[Request]]) -> dict[int, Any] | Failure:
        """Carry out requests, and return the answers or what went wrong."""
        return guarded_answer(self._group, requests)
