"""A Ray cluster of several hosts on one machine: each node lives in a network namespace of its own, joined by a bridge.

Whoever wants to be part of it, such as a program that uses the cluster, runs in the namespace of the head. A node can
be killed, all its processes at once, or cut off from the others. Needs root, and `ip` (Debian's iproute2).
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.processes import wait_until

PORT = 6399
START_SECONDS = 240.0


def can_make_namespaces() -> bool:
    """Whether this user may make network namespaces here."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    name = f"adalook-{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


@dataclass(frozen=True)
class RayCluster:
    """The head, which has no cores of its own, and some workers."""

    name: str
    workers: int
    environment: dict[str, str]

    @property
    def address(self) -> str:
        """What `al.Ray(address=…)` takes."""
        return f"{self.host(0)}:{PORT}"

    def namespace(self, node: int) -> str:
        """The namespace of the head, node 0, or of a worker."""
        return f"{self.name}-{node}"

    def host(self, node: int) -> str:
        """The address of a node."""
        return f"10.213.7.{10 + node}"

    def inside(self, node: int, *command: str) -> list[str]:
        """A command that runs on a node."""
        return ["ip", "netns", "exec", self.namespace(node), *command]

    def processes(self, node: int) -> list[int]:
        """All processes of a node."""
        found = subprocess.run(["ip", "netns", "pids", self.namespace(node)], capture_output=True, text=True)
        return [int(line) for line in found.stdout.split()]

    def kill(self, node: int) -> None:
        """Kill every process of a node, as a power cut does."""
        for process in self.processes(node):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def cut_off(self, node: int) -> None:
        """Pull the plug of a node's network; its processes go on."""
        subprocess.run(["ip", "link", "set", f"{self.name}v{node}", "down"], check=True)


@contextmanager
def ray_cluster(workers: int, cpus: int = 1) -> Iterator[RayCluster]:
    """Start a head and some workers; at the end no process, namespace or file of theirs is left."""
    name = f"ad{secrets.token_hex(2)}"
    directory = Path(tempfile.mkdtemp(prefix="adr"))  # short: names of sockets must not be long
    environment = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_health_check_initial_delay_ms": "1000",
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "5000",
        "RAY_health_check_failure_threshold": "4",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    cluster = RayCluster(name, workers, environment)
    started: list[subprocess.Popen[bytes]] = []
    try:
        _run("ip", "link", "add", name, "type", "bridge")
        _run("ip", "link", "set", name, "up")
        for node in range(workers + 1):
            _join(cluster, node)
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        ray += ["--object-store-memory", str(100 * 2**20)]
        head = ["--head", f"--port={PORT}", "--num-cpus=0", "--include-dashboard=false", f"--temp-dir={directory}"]
        for node in range(workers + 1):
            role = head if node == 0 else [f"--address={cluster.address}", f"--num-cpus={cpus}"]
            command = cluster.inside(node, *ray, f"--node-ip-address={cluster.host(node)}", *role)
            with open(directory / f"node-{node}.log", "wb") as log:
                started.append(
                    subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
                )
            if not wait_until(lambda node=node: _is_up(directory / f"node-{node}.log"), START_SECONDS):
                raise RuntimeError((directory / f"node-{node}.log").read_text())
        yield cluster
    finally:
        for node in range(workers + 1):
            while cluster.processes(node):
                cluster.kill(node)
                time.sleep(0.1)
            subprocess.run(["ip", "netns", "del", cluster.namespace(node)], capture_output=True)
        for process in started:
            process.wait()
        subprocess.run(["ip", "link", "del", name], capture_output=True)
        shutil.rmtree(directory, ignore_errors=True)


def _is_up(log: Path) -> bool:
    """Whether a node says that it has started."""
    return "Ray runtime started" in log.read_text()


def _join(cluster: RayCluster, node: int) -> None:
    """Make the namespace of a node, and connect it to the bridge."""
    namespace, outside, inside = cluster.namespace(node), f"{cluster.name}v{node}", f"{cluster.name}w{node}"
    _run("ip", "netns", "add", namespace)
    _run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside)
    _run("ip", "link", "set", inside, "netns", namespace)
    _run("ip", "link", "set", outside, "master", cluster.name)
    _run("ip", "link", "set", outside, "up")
    _run("ip", "-n", namespace, "link", "set", "lo", "up")
    _run("ip", "-n", namespace, "addr", "add", f"{cluster.host(node)}/24", "dev", inside)
    _run("ip", "-n", namespace, "link", "set", inside, "up")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
