"""Hosts that are Ray actors, on this machine or on those of a cluster.

What is published goes out by `ray.put`, one copy per machine. An actor that is lost is replaced by a new one, wherever
there is room; Ray never repeats a call by itself, so that nothing is done twice unnoticed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adalook.engines.base import GO_ON, START_SECONDS, Host, HostLost, HostRecipe, Hosts, greeting, guarded_answer
from adalook.engines.session import check_versions, first_line, ray_session, versions_here
from adalook.errors import EngineError

if TYPE_CHECKING:
    from adalook.engines.base import Ray

logger = logging.getLogger("adalook.engine")

STORE_FULL = "the object store of Ray is full"


class RayHosts(Hosts):
    """Hosts that are Ray actors."""

    def __init__(self, recipes: Sequence[HostRecipe], engine: Ray, logs: Path | None) -> None:
        super().__init__(recipes)
        self._engine, self._logs = engine, logs
        self._session = contextlib.ExitStack()
        self._actors: list[Any] = []
        self._pending: list[deque[Any]] = [deque() for _ in recipes]
        """By host: references to the answers that are not received yet, oldest first."""
        self._greetings: list[dict[str, str]] = [{} for _ in recipes]

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the hosts, on their machines."""
        return [int(said["pid"]) for said in self._greetings]

    def start(self) -> list[dict[str, str]]:
        engine = self._engine
        ray = self._ray = self._session.enter_context(ray_session(engine.address, len(self), self._logs))
        # On this machine nobody else wants the cores; in a cluster actors are spread by them.
        self._cpus = 0 if engine.address is None else engine.cpus_per_actor
        self._remote = ray.remote(RayHost).options(
            num_cpus=self._cpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        references = {id(recipe): ray.put(recipe) for recipe in dict.fromkeys(self.recipes)}  # equal ones travel once
        self._references = [references[id(recipe)] for recipe in self.recipes]
        self._actors = [self._remote.remote() for _ in self.recipes]
        begun = [self._actors[host].start.remote(self._references[host]) for host in range(len(self))]
        deadline = time.monotonic() + START_SECONDS
        for host in range(len(self)):
            reason = self._missing(host, begun[host], max(0.0, deadline - time.monotonic()))
            if reason and (time.monotonic() > deadline or not self.restart(host)):  # killed as it began: once more
                raise EngineError(
                    f"actor {host} did not begin",
                    expected=f"room for {len(self)} actors of {self._cpus:g} cores",
                    got=f"{reason}, in a cluster of {ray.cluster_resources().get('CPU', 0):g} cores",
                    remedy="ask for fewer actors, or wait until others have finished",
                )
        return self._greetings

    def _missing(self, host: int, reference: Any, seconds: float) -> str:
        """Wait until an actor is there, with the same versions as here; return why it is not, or nothing."""
        exceptions = self._ray.exceptions
        try:
            said = self._ray.get(reference, timeout=seconds)
        except exceptions.GetTimeoutError:
            return f"nothing within {seconds:.0f} s"
        except exceptions.RayTaskError as error:
            raise EngineError("an actor cannot begin", got=f"{type(error.cause).__name__}: {error.cause}") from None
        except exceptions.RayError as error:
            return reason_of(error)
        check_versions(versions_here(), said, said["node"])
        self._greetings[host] = said
        return ""

    def restart(self, host: int) -> bool:
        """Start another actor; False if Ray has no room for it within the engine's patience."""
        self._pending[host].clear()
        deadline = time.monotonic() + self._engine.patience_seconds
        pause = 0.05
        while (left := deadline - time.monotonic()) > 0.0:
            self._kill(host)
            self._actors[host] = self._remote.remote()
            if not self._missing(host, self._actors[host].start.remote(self._references[host]), left):
                return True
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))  # it died as it began: once more
            pause = min(2.0 * pause, 1.0)
        self._kill(host)
        return False

    def _kill(self, host: int) -> None:
        with contextlib.suppress(Exception):
            self._ray.kill(self._actors[host])

    def publish(self, content: Any) -> Any:
        """Put it into the object store, from which every machine fetches it once."""
        try:
            return self._ray.put(content)
        except (self._ray.exceptions.RayError, MemoryError) as error:
            raise EngineError(STORE_FULL, got=first_line(error), remedy=GO_ON) from error

    def send(self, host: int, message: Any, published: Any = None) -> None:
        self._pending[host].append(self._actors[host].answer.remote(message, published))

    def receive(self, hosts: Collection[int], seconds: float | None = None) -> list[tuple[int, Any]]:
        heads = {self._pending[host][0]: host for host in hosts}
        ready, _ = self._ray.wait(list(heads), num_returns=1, timeout=seconds)
        received = []
        for reference in ready:
            host = heads[reference]
            self._pending[host].popleft()
            received.append((host, self._received(reference)))
        return received

    def _received(self, reference: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, exceptions.ObjectStoreFullError | exceptions.OutOfDiskError):
                raise EngineError(STORE_FULL, got=first_line(cause), remedy=GO_ON) from error
            if isinstance(error, exceptions.RayTaskError):
                got = f"{type(cause).__name__}: {first_line(cause)}"
                raise EngineError("an actor could not answer", got=got, remedy=GO_ON) from error
            return HostLost(reason_of(error))  # the actor or its machine died, or the answer was lost with it

    def forget(self) -> None:
        for pending in self._pending:
            pending.clear()

    def close(self) -> None:
        """End all hosts, and Ray itself if it was started here for them alone."""
        for host in range(len(self._actors)):
            self._kill(host)
        self._actors = []
        self.forget()
        self._session.close()


class RayHost:
    """A host as Ray starts it."""

    def start(self, recipe: HostRecipe) -> dict[str, str]:
        """Make the host, and return what it says first."""
        self._host: Host = recipe()
        return greeting(self._host)

    def answer(self, message: Any, published: Any) -> Any:
        """Return the host's answer, or what it raised."""
        return guarded_answer(self._host, message, published)


def reason_of(error: BaseException) -> str:
    """Return why Ray lost an actor, in a few words."""
    logger.debug("Ray says: %s", error)
    text = str(error).lower()
    if "out of memory" in text or "oom" in type(error).__name__.lower() or "memory usage threshold" in text:
        return "it was out of memory"
    if "node" in text and ("died" in text or "dead" in text):
        return "its machine is gone"
    return "its process died"
