"""The engine on Ray: on a cluster, or on a Ray started here for the purpose, on loopback and without dashboard."""

from __future__ import annotations

import platform
from collections.abc import Generator, Sequence
from typing import Any

from adalook.engines.session import check_ray, check_versions, first_line, ray_session, versions_here
from adalook.errors import EngineError
from adalook.experiments.engines import base
from adalook.experiments.engines.base import FinishedJob, Job
from adalook.experiments.store import versions
from adalook.planning.threads import available_cores

AHEAD = 4
"""Jobs handed out per core before the first is back: enough that nobody waits for the parent."""
PURPOSE = "the engine ray"


class RayEngine:
    """An engine that runs jobs on Ray.

    Args:
        address: of a running cluster whose machines have the same adalook; None to start a Ray here.
        workers: how many cores to use; None for all that there are.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        base.check_workers(workers)
        self.address, self.workers = address, workers

    def run(self, jobs: Sequence[Job]) -> Generator[FinishedJob]:
        """Yield every job as it is done; closing the generator ends the connection and what was started here."""
        if not jobs:
            return
        check_ray(self.address, PURPOSE)
        with ray_session(self.address, self.workers or available_cores()) as ray:
            cores = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            for job in jobs:
                check_room(job.name, resources_of(job), ray.nodes())
            remote = ray.remote(max_retries=2)(run_checked)
            here, waiting = fingerprint(), list(reversed(jobs))
            running: dict[Any, str] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < cores * AHEAD:
                        job = waiting.pop()
                        running[remote.options(**resources_of(job)).remote(job, here)] = job.name
                    ready, _ = ray.wait(list(running))
                    for reference in ready:
                        yield _result(ray, reference, running.pop(reference))
            finally:  # in a cluster of others they would go on
                for reference in running:
                    ray.cancel(reference, force=True)


def resources_of(job: Job) -> dict[str, float]:
    """Return what Ray is to set aside for a job: its `resources`, such as {"num_cpus": 2}, or one core."""
    wanted: dict[str, float] = getattr(job, "resources", None) or {"num_cpus": 1}
    return dict(wanted)


def check_room(job: str, wanted: dict[str, float], nodes: Sequence[dict[str, Any]]) -> None:
    """Raise `EngineError` if no machine is large enough for a job: Ray would wait for one for ever."""
    cores = max((node["Resources"].get("CPU", 0.0) for node in nodes if node["Alive"]), default=0.0)
    if wanted.get("num_cpus", 0.0) > cores:
        raise EngineError(
            f"no machine of the Ray cluster has room for job {job}",
            expected=f"{wanted['num_cpus']:g} cores",
            got=f"{cores:g}",
            remedy="add a larger machine, or more --workers where Ray is started here",
        )


def fingerprint() -> dict[str, str]:
    """Return what must agree between machines for their results to be the same."""
    return versions_here() | versions()


def run_checked(job: Job, expected: dict[str, str]) -> FinishedJob:
    """Run one job in a worker that may be on another machine; raise `EngineError` if its versions differ."""
    check_versions(expected, fingerprint(), platform.node())
    return base.run_timed(job)


def _result(ray: Any, reference: Any, job: str) -> FinishedJob:
    try:
        finished = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, EngineError | KeyboardInterrupt):
            raise cause from None
        raise EngineError(f"job {job} failed", got=f"{type(cause).__name__}: {cause}") from error
    except ray.exceptions.RayError as error:
        raise EngineError(
            f"Ray lost job {job}",
            got=first_line(error),
            remedy="what is finished is kept; run the same command to go on",
        ) from error
    assert isinstance(finished, FinishedJob)
    return finished
