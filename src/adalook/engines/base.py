"""The engines, small frozen objects that are passed in: `al.QLDQN(env, engine=al.Ray(8))`, `model.solve(engine=…)`.

Whoever has work to share out gives the engine a recipe for each *host*, an object that answers messages in a process of
its own, and gets `Hosts`: send, receive, and start again what was lost. Environments of training, shards of a model and
nodes of trees all travel this way; none of them knows what its engine is made of. Results never depend on the engine.
"""

from __future__ import annotations

import os
import platform
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from adalook import errors
from adalook._validation import boolean, check_fields, integer, one_of, optional, positive, text
from adalook.engines.session import check_ray, versions_here
from adalook.errors import ArgumentError, EngineError, shown

MOST_ACTORS = 4096
START_SECONDS = 600.0
"""How long hosts may take to begin: a loaded machine imports PyTorch for a minute."""
GO_ON = "the last checkpoint, if there is one, is intact: go on from there"

Split = Literal["envs", "nodes"]


class Host(ABC):
    """An object in another process that answers messages, one after the other."""

    def about(self) -> dict[str, str]:
        """Return what whoever started it should know, beside versions and where it is."""
        return {}

    @abstractmethod
    def answer(self, message: Any, published: Any) -> Any:
        """Return the answer to a message; `published` is what was published for it, or None."""


HostRecipe = Callable[[], Host]
"""Makes a host in its process; it is pickled."""


@dataclass(frozen=True)
class HostLost:
    """Received in place of an answer when a host died, or its machine did."""

    reason: str


@dataclass(frozen=True)
class HostFailed:
    """Received in place of an answer when a host raised an error."""

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
        failed = EngineError(f"actor {host} failed", got=f"{self.kind}: {self.message}")
        failed.add_note(self.trace)
        return failed

    @classmethod
    def of(cls, error: Exception) -> HostFailed:
        """Describe an error that is being handled."""
        return cls(type(error).__name__, str(error), traceback.format_exc())


def greeting(host: Host) -> dict[str, str]:
    """Return what a host says first: versions, where it is, and what it has to say about itself."""
    return versions_here() | {"node": platform.node(), "pid": str(os.getpid())} | host.about()


def guarded_answer(host: Host, message: Any, published: Any) -> Any:
    """Return the answer of a host, or what it raised."""
    try:
        return host.answer(message, published)
    except Exception as error:
        return HostFailed.of(error)


class Hosts(ABC):
    """Some hosts, by number, and the messages to and from them. Each host answers every message, in order."""

    def __init__(self, recipes: Sequence[HostRecipe]) -> None:
        self.recipes = list(recipes)

    def __len__(self) -> int:
        return len(self.recipes)

    @property
    @abstractmethod
    def process_ids(self) -> list[int]:
        """Process ids of the current hosts, on their machines."""

    @abstractmethod
    def start(self) -> list[dict[str, str]]:
        """Start all hosts that do not run, and return what each says about itself, see `greeting`."""

    @abstractmethod
    def restart(self, host: int) -> bool:
        """Start a host anew that was lost; False if there is no room for it any more."""

    def publish(self, content: Any) -> Any:
        """Return what `send` takes to give this to any number of hosts."""
        return content

    @abstractmethod
    def send(self, host: int, message: Any, published: Any = None) -> None:
        """Send a message. It does not wait for the host, and what fails is received."""

    @abstractmethod
    def receive(self, hosts: Collection[int], seconds: float | None = None) -> list[tuple[int, Any]]:
        """Wait for the next answer, `HostFailed` or `HostLost` of any of these hosts; nothing when time is up."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the answers to all that was sent so far."""

    @abstractmethod
    def close(self) -> None:
        """End all hosts."""


class InlineHosts(Hosts):
    """Hosts in this process, one after the other; what they raise is raised."""

    def start(self) -> list[dict[str, str]]:
        self.hosts = [recipe() for recipe in self.recipes]
        self.queues: list[deque[tuple[Any, Any]]] = [deque() for _ in self.hosts]
        return [greeting(host) for host in self.hosts]

    @property
    def process_ids(self) -> list[int]:
        """The id of this process, for each."""
        return [os.getpid()] * len(self)

    def restart(self, host: int) -> bool:
        self.queues[host].clear()
        self.hosts[host] = self.recipes[host]()
        return True

    def send(self, host: int, message: Any, published: Any = None) -> None:
        self.queues[host].append((message, published))

    def receive(self, hosts: Collection[int], seconds: float | None = None) -> list[tuple[int, Any]]:
        host = next(host for host in hosts if self.queues[host])
        return [(host, self.hosts[host].answer(*self.queues[host].popleft()))]

    def forget(self) -> None:
        for queue in self.queues:
            queue.clear()

    def close(self) -> None:
        self.hosts, self.queues = [], []


class Engine(ABC):
    """A place where work is done."""

    actors: int
    asynchronous: bool
    split: str
    """What is shared out: "envs", the environments of training with their trees; "nodes", those of every tree; ""."""

    def check(self) -> None:
        """Raise at once, before anything is begun, if the engine cannot be used."""
        return

    @abstractmethod
    def hosts(self, recipes: Sequence[HostRecipe], logs: Path | None = None) -> Hosts:
        """Return hosts, one for each recipe; nothing starts before `Hosts.start`.

        Args:
            recipes: of the hosts.
            logs: a directory for logs, where an engine writes any.
        """


@dataclass(frozen=True)
class InProcess(Engine):
    """The engine that is used if none is given: all work in this process."""

    actors: int = field(default=1, init=False, repr=False)
    asynchronous: bool = field(default=False, init=False, repr=False)
    split: str = field(default="", init=False, repr=False)

    def hosts(self, recipes: Sequence[HostRecipe], logs: Path | None = None) -> Hosts:
        """Return objects in this process."""
        return InlineHosts(recipes)


@dataclass(frozen=True)
class LocalProcesses(Engine):
    """Processes on this machine.

    >>> LocalProcesses(actors=2)
    LocalProcesses(actors=2, asynchronous=False, calls_in_flight=2, split='envs')
    """

    actors: Annotated[int, integer(min=1, max=MOST_ACTORS), "Processes."]
    asynchronous: Annotated[
        bool,
        boolean,
        "Do not wait for the slowest actor: each goes on with the newest network there is when it is asked. Results "
        "then depend on timing; how old networks were is reported as staleness.",
    ] = False
    calls_in_flight: Annotated[
        int,
        integer(min=1, max=64),
        "Rounds that an asynchronous actor may be asked for before the first is answered; 2 keep it from waiting.",
    ] = 2
    split: Annotated[
        Split,
        one_of(*get_args(Split)),
        "What training shares out: envs, each with its trees and a copy of the network; or nodes of every tree, whose "
        "leaves this process values: for fewer environments than processes, and for a GPU.",
    ] = "envs"

    def __post_init__(self) -> None:
        check_fields(self, "engine")
        if self.asynchronous and self.split == "nodes":
            raise ArgumentError("engine: nodes are stepped in rounds", expected="asynchronous=False or split='envs'")

    def hosts(self, recipes: Sequence[HostRecipe], logs: Path | None = None) -> Hosts:
        """Return processes at the other end of pipes."""
        from adalook.engines.processes import ProcessHosts

        return ProcessHosts(recipes)


@dataclass(frozen=True)
class Ray(Engine):
    """Actors on Ray, on this machine or on those of a cluster.

    >>> Ray(actors=8, address="10.0.0.1:6379").asynchronous
    False
    """

    actors: Annotated[int, integer(min=1, max=MOST_ACTORS), "Ray actors."]
    address: Annotated[
        str | None,
        optional(text("the address of a cluster")),
        "Of a running Ray cluster, such as HOST:6379, or auto on one of its machines; without it a Ray starts here.",
    ] = None
    asynchronous: Annotated[bool, boolean, "As in `LocalProcesses`."] = False
    calls_in_flight: Annotated[int, integer(min=1, max=64), "As in `LocalProcesses`."] = 2
    cpus_per_actor: Annotated[float, positive, "Cores that a cluster sets aside for each actor."] = 1.0
    patience_seconds: Annotated[
        float,
        positive,
        "How long the cluster may take to start a lost actor again; then others take over what it had.",
    ] = 60.0
    split: str = field(default="envs", init=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self, "engine")

    def check(self) -> None:
        """Raise if Ray is not installed, if nobody listens at the address, or if there is no token for it."""
        check_ray(self.address, "al.Ray")

    def hosts(self, recipes: Sequence[HostRecipe], logs: Path | None = None) -> Hosts:
        """Return actors; Ray itself starts, or is connected to, when they do."""
        from adalook.engines.ray import RayHosts

        return RayHosts(recipes, self, logs)


def checked_engine(engine: Any) -> Engine:
    """Return an engine that can be used, for None the one in this process; raise if it is none."""
    if engine is None:
        return InProcess()
    if not isinstance(engine, Engine):
        raise ArgumentError(
            "this is no engine",
            expected="al.InProcess(), al.LocalProcesses(actors=2), al.Ray(actors=2), or None",
            got=shown(engine),
        )
    engine.check()
    return engine


ENGINES = ("local", "processes", "ray")


def engine_named(
    name: str,
    actors: int | None = None,
    address: str | None = None,
    asynchronous: bool = False,
    split: Split = "envs",
) -> Engine | None:
    """Return the engine that flags of the command line describe; None for this process.

    >>> engine_named("processes", actors=3)
    LocalProcesses(actors=3, asynchronous=False, calls_in_flight=2, split='envs')
    """
    if name not in ENGINES:
        raise ArgumentError("there is no such engine", expected=" or ".join(ENGINES), got=shown(name))
    if address is not None and name != "ray":
        raise ArgumentError("an address is for Ray only", remedy="add --engine ray, or leave out --address")
    if split != "envs" and name != "processes":
        raise ArgumentError("nodes are split over local processes only", remedy="add --engine processes")
    if name == "local":
        if actors is not None or asynchronous:
            raise ArgumentError(
                "the engine local has no actors",
                remedy="add --engine processes or --engine ray, or leave out --actors and --asynchronous",
            )
        return None
    if actors is None:
        raise ArgumentError(f"the engine {name} needs actors", expected="--actors N, about one per core")
    if name == "processes":
        return LocalProcesses(actors, asynchronous, split=split)
    return Ray(actors, address, asynchronous)
