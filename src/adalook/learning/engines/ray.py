"""Hosts that are Ray actors, on this machine or on those of a cluster.

Weights go out once a round by `ray.put`, one copy per machine. Ray starts an actor again that died, wherever there is
room, but never repeats a call by itself: numbered requests and states in replies do that (see `distributed`).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from adalook._ray import first_line, ray_session
from adalook.errors import EngineError
from adalook.learning.engines.base import Ray
from adalook.learning.engines.distributed import HostLost, Transport
from adalook.learning.engines.host import ActorHost, HostSpec, Reply, StateMissing, StepRequest, Weights

if TYPE_CHECKING:
    from adalook.learning.agents.base import Agent

logger = logging.getLogger("adalook.engine")

LOG_FOLDER = "ray"
"""In the directory of a run."""
START_SECONDS = 600.0
"""How long actors may take to begin: a loaded machine imports PyTorch for a minute."""
GO_ON = "the last checkpoint is intact: go on from there"


class RayTransport(Transport):
    """Hosts that are Ray actors."""

    def __init__(self, engine: Ray, spec: HostSpec, agent: Agent) -> None:
        self._engine, self._spec = engine, spec
        self._count = min(engine.actors, agent.config.num_envs)
        self._logs = None if agent.run_directory is None else agent.run_directory / LOG_FOLDER
        self._session = contextlib.ExitStack()
        self._hosts: list[Any] = []
        self._pending: list[deque[Any]] = []
        """By host: references to the replies that are not received yet, oldest first."""
        self.abouts: list[dict[str, str]] = []
        """What each host last said about itself: where it is, and its process id."""

    def start(self) -> list[dict[str, str]]:
        """Start or connect to Ray, then all hosts at once, and wait until each has said what it is."""
        engine = self._engine
        self._ray = self._session.enter_context(ray_session(engine.address, self._count, self._logs))
        # On this machine nobody else wants the cores; in a cluster actors are spread by them.
        cpus = 0 if engine.address is None else engine.cpus_per_actor
        remote = self._ray.remote(RayHost).options(
            num_cpus=cpus, max_restarts=-1, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        self._spec_reference = self._ray.put(self._spec)  # kept: hosts that are started again need it
        self._hosts = [remote.remote() for _ in range(self._count)]
        self._pending = [deque() for _ in self._hosts]
        greetings = [host.start.remote(self._spec_reference) for host in self._hosts]
        exceptions = self._ray.exceptions
        try:
            self.abouts = self._ray.get(greetings, timeout=START_SECONDS)
        except exceptions.GetTimeoutError:
            room = self._ray.cluster_resources().get("CPU", 0)
            raise EngineError(
                "the actors did not start in time",
                expected=f"room for {self._count} actors of {cpus:g} cores",
                got=f"a cluster of {room:g} cores",
                remedy="ask for fewer actors, or wait until others have finished",
            ) from None
        except exceptions.RayTaskError as error:
            raise EngineError("an actor cannot begin", got=f"{type(error.cause).__name__}: {error.cause}") from None
        except exceptions.RayError as error:
            raise EngineError("an actor cannot begin", got=first_line(error)) from None
        return self.abouts

    def restart(self, host: int) -> bool:
        """Wait until Ray has started the actor again; False if it has no room for it."""
        exceptions = self._ray.exceptions
        deadline = _Deadline(self._engine.patience_seconds)
        self._pending[host].clear()
        while not deadline.passed:
            try:
                self.abouts[host] = self._ray.get(
                    self._hosts[host].start.remote(self._spec_reference), timeout=deadline.left
                )
                return True
            except exceptions.GetTimeoutError:
                break
            except exceptions.ActorUnavailableError:
                deadline.sleep()
            except exceptions.RayActorError:
                break
        with contextlib.suppress(Exception):
            self._ray.kill(self._hosts[host])
        return False

    def publish(self, weights: Weights) -> Any:
        """Put the weights into the object store, from which every machine fetches them once."""
        try:
            return self._ray.put(weights)
        except (self._ray.exceptions.RayError, MemoryError) as error:
            raise EngineError("Ray has no room for the network", got=first_line(error), remedy=GO_ON) from error

    def send(self, host: int, request: StepRequest, weights: Any) -> None:
        """Call the actor; what fails shows when the reply is received."""
        self._pending[host].append(self._hosts[host].step.remote(request, weights))

    def receive(self, hosts: Collection[int]) -> list[tuple[int, Reply | HostLost]]:
        """Wait for the next reply of any of these hosts."""
        heads = {self._pending[host][0]: host for host in hosts}
        ready, _ = self._ray.wait(list(heads), num_returns=1)
        host = heads[ready[0]]
        self._pending[host].popleft()
        return [(host, self._reply(ready[0]))]

    def _reply(self, reference: Any) -> Reply | HostLost:
        exceptions = self._ray.exceptions
        try:
            reply: Reply = self._ray.get(reference)
        except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
            raise EngineError("the object store of Ray is full", got=first_line(error), remedy=GO_ON) from error
        except exceptions.RayTaskError as error:
            cause = error.cause
            raise EngineError(
                "an actor could not answer", got=f"{type(cause).__name__}: {first_line(cause)}", remedy=GO_ON
            ) from error
        except exceptions.RayError as error:  # the actor or its machine died, or the reply was lost with it
            return HostLost(_reason(error))
        return reply

    def close(self) -> None:
        """End all hosts, and Ray itself if it was started here for them alone."""
        for host in self._hosts:
            with contextlib.suppress(Exception):
                self._ray.kill(host)
        self._hosts, self._pending = [], []
        self._session.close()


class RayHost:
    """A host as Ray starts it, and starts it again after it died: without anything, until it is told what it is."""

    def __init__(self) -> None:
        self._host: ActorHost | None = None

    def start(self, spec: HostSpec) -> dict[str, str]:
        """Make the agent, and return what this host is."""
        self._host = ActorHost(spec)
        return self._host.about()

    def step(self, request: StepRequest, weights: Weights | None) -> Reply:
        """Step a group of environments."""
        return StateMissing(request.number) if self._host is None else self._host.step(request, weights)


class _Deadline:
    """So many seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self._end, self._pause = time.monotonic() + seconds, 0.05

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        return self.left == 0.0

    def sleep(self) -> None:
        """Sleep, a little longer each time."""
        time.sleep(min(self._pause, self.left))
        self._pause = min(2 * self._pause, 1.0)


def _reason(error: BaseException) -> str:
    """Return why Ray lost an actor, in a few words."""
    logger.debug("Ray says: %s", error)
    text = str(error).lower()
    if "out of memory" in text or "oom" in type(error).__name__.lower() or "memory usage threshold" in text:
        return "it was out of memory"
    if "node" in text and ("died" in text or "dead" in text):
        return "its machine is gone"
    return "its process died"
