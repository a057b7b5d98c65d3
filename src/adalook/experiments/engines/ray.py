"""The engine on Ray: on a cluster, or on a Ray started here for the purpose, on loopback and without dashboard."""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections.abc import Generator, Sequence
from typing import Any

from adalook import __version__
from adalook._extras import import_extra
from adalook.experiments.engines import base
from adalook.experiments.engines.base import EngineError, FinishedJob, Job
from adalook.experiments.store import versions
from adalook.planning.threads import available_cores

AHEAD = 4
"""Jobs handed out per core before the first is back: enough that nobody waits for the parent."""
KNOCK_SECONDS = 5.0
CHECK_ADDRESS = "check --address, or leave it out to start a Ray here"
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""No reports to Ray's makers, and its future manners already now, which saves a warning."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Read when ray is imported: no clusters, so every port is opened on 127.0.0.1 only. Without it `_node_ip_address`
of a loopback is replaced by the machine's own address, and the ports are open to the network."""


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
        ray = _connected(self.address, self.workers)
        try:
            cores = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            remote = ray.remote(num_cpus=1, max_retries=2)(run_checked)
            here, waiting = fingerprint(), list(reversed(jobs))
            running: dict[Any, str] = {}
            while waiting or running:
                while waiting and len(running) < cores * AHEAD:
                    job = waiting.pop()
                    running[remote.remote(job, here)] = job.name
                ready, _ = ray.wait(list(running))
                for reference in ready:
                    yield _result(ray, reference, running.pop(reference))
        finally:
            ray.shutdown()


def fingerprint() -> dict[str, str]:
    """Return what must agree between machines for their results to be the same."""
    return {"adalook": __version__, **versions()}


def run_checked(job: Job, expected: dict[str, str]) -> FinishedJob:
    """Run one job in a worker that may be on another machine; raise `EngineError` if its versions differ."""
    here = fingerprint()
    for name, wanted in expected.items():
        if here[name] != wanted:
            raise EngineError(
                f"a machine of the Ray cluster has another {name}",
                expected=wanted,
                got=here[name],
                remedy="install the same versions everywhere: results could differ otherwise",
            )
    return base.run_timed(job)


def _connected(address: str | None, workers: int | None) -> Any:
    """Return the module ray, connected to a cluster or to a Ray of its own."""
    if address is not None:
        _knock(address)
    for name, value in (QUIET if address is not None else QUIET | LOOPBACK).items():
        os.environ.setdefault(name, value)
    ray = import_extra("ray", extra="ray", purpose="the engine ray")
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": {"env_vars": base.ONE_THREAD},
    }
    try:
        if address is None:
            _stay_on_loopback()
            cores = workers or available_cores()
            ray.init("local", num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **options)
        else:
            ray.init(address, **options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = "here" if address is None else f"at {address}"
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise EngineError(f"cannot use Ray {where}", got=reason, remedy=CHECK_ADDRESS) from error
    return ray


def _stay_on_loopback() -> None:
    """Let a Ray that starts here open no port to the network, although ray may have been imported before.

    It reads `LOOPBACK` once, when it is imported; where the place in which it keeps that has gone, it is refused.
    """
    constants: Any = importlib.import_module("ray._private.ray_constants")
    if not hasattr(constants, "ENABLE_RAY_CLUSTER"):
        raise EngineError(
            "this version of Ray cannot be kept on loopback",
            expected="ray._private.ray_constants.ENABLE_RAY_CLUSTER",
            remedy="use --engine processes, or start a cluster of your own and pass --address",
        )
    constants.ENABLE_RAY_CLUSTER = False


def _knock(address: str) -> None:
    """Raise `EngineError` if nobody listens at the address: Ray itself would keep trying for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return  # "auto" and other names that Ray knows
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(
            f"no Ray answers at {address}", got=error, remedy="check --address, or leave it out"
        ) from None


def _result(ray: Any, reference: Any, job: str) -> FinishedJob:
    try:
        finished = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, EngineError | KeyboardInterrupt):
            raise cause from None
        raise EngineError(f"job {job} failed", got=f"{type(cause).__name__}: {cause}") from error
    except ray.exceptions.RayError as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise EngineError(
            f"Ray lost job {job}", got=reason, remedy="what is finished is kept; run the same command to go on"
        ) from error
    assert isinstance(finished, FinishedJob)
    return finished
