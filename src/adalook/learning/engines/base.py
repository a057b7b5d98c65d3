"""The engines that training can run on, small frozen objects that are passed in: `al.QLDQN(env, engine=al.Ray(8))`.

An engine says where the environments are, and so where trees grow and leaves are valued. The agent's own process has
the learner, the replay buffer and the ranks. Synchronous rounds give the same results on every engine, to the bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from adalook._ray import check_ray
from adalook._validation import boolean, check_fields, integer, optional, positive, text
from adalook.errors import ArgumentError, shown

if TYPE_CHECKING:
    from adalook.learning.agents.base import Agent
    from adalook.learning.training import Acting, InProcessActing
    from adalook.simulators.base import Simulator

MOST_ACTORS = 4096


class LearningEngine(ABC):
    """A place for the environments of training."""

    def check(self, sim: Simulator) -> None:
        """Raise at once if the engine cannot be used at all, or not for this simulator."""
        if not sim.saves:
            raise ArgumentError(
                "this environment cannot be saved, so that no actor could take the place of one that dies",
                expected="an environment whose state can be saved, or al.InProcess()",
                got=shown(sim),
            )

    @abstractmethod
    def distribute(self, agent: Agent, here: InProcessActing) -> Acting:
        """Return the environments of an agent where this engine has them.

        Args:
            agent: whose environments they are.
            here: the same environments in this process, at their start.
        """


@dataclass(frozen=True)
class InProcess(LearningEngine):
    """The engine that is used if none is given: all environments in this process."""

    def check(self, sim: Simulator) -> None:
        """Accept every simulator."""

    def distribute(self, agent: Agent, here: InProcessActing) -> Acting:
        """Return the environments as they are."""
        del agent
        return here


@dataclass(frozen=True)
class LocalProcesses(LearningEngine):
    """Actors in processes on this machine; each has some of the environments, and a copy of the network.

    >>> LocalProcesses(actors=2)
    LocalProcesses(actors=2, asynchronous=False, calls_in_flight=2)
    """

    actors: Annotated[int, integer(min=1, max=MOST_ACTORS), "Processes that environments are split over."]
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

    def __post_init__(self) -> None:
        check_fields(self, "engine")

    def distribute(self, agent: Agent, here: InProcessActing) -> Acting:
        """Return the environments in processes, which start with the first round."""
        from adalook.learning.engines.distributed import DistributedActing
        from adalook.learning.engines.processes import ProcessTransport

        return DistributedActing(agent, here, self, ProcessTransport)


@dataclass(frozen=True)
class Ray(LearningEngine):
    """Actors on Ray, on this machine or on those of a cluster; each has some of the environments and a network.

    >>> Ray(actors=8, address="10.0.0.1:6379").asynchronous
    False
    """

    actors: Annotated[int, integer(min=1, max=MOST_ACTORS), "Ray actors that environments are split over."]
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
        "How long the cluster may take to start a lost actor again; then others take its environments.",
    ] = 60.0

    def __post_init__(self) -> None:
        check_fields(self, "engine")

    def check(self, sim: Simulator) -> None:
        """Raise if Ray is not installed, if nobody listens at the address, or if there is no token for it."""
        super().check(sim)
        check_ray(self.address, "al.Ray")

    def distribute(self, agent: Agent, here: InProcessActing) -> Acting:
        """Return the environments on Ray, which starts, or is connected to, with the first round."""
        from adalook.learning.engines.distributed import DistributedActing
        from adalook.learning.engines.ray import RayTransport

        return DistributedActing(agent, here, self, RayTransport)


def check_engine(engine: Any, sim: Simulator) -> None:
    """Raise unless this is an engine, and one that can be used for a simulator."""
    if not isinstance(engine, LearningEngine):
        raise ArgumentError(
            "this is no engine",
            expected="al.InProcess(), al.LocalProcesses(actors=2), al.Ray(actors=2), or None",
            got=shown(engine),
        )
    engine.check(sim)


ENGINES = ("local", "processes", "ray")


def engine_named(name: str, actors: int | None, address: str | None, asynchronous: bool) -> LearningEngine | None:
    """Return the engine that flags of the command line describe; None for this process.

    >>> engine_named("processes", actors=3, address=None, asynchronous=False)
    LocalProcesses(actors=3, asynchronous=False, calls_in_flight=2)
    """
    if name not in ENGINES:
        raise ArgumentError("there is no such engine", expected=" or ".join(ENGINES), got=shown(name))
    if address is not None and name != "ray":
        raise ArgumentError("an address is for Ray only", remedy="add --engine ray, or leave out --address")
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
        return LocalProcesses(actors, asynchronous)
    return Ray(actors, address, asynchronous)
