"""Hosts in processes on this machine, each at the other end of a pipe."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Collection
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from adalook.errors import EngineError
from adalook.learning.engines.base import LocalProcesses
from adalook.learning.engines.distributed import HostLost, Transport
from adalook.learning.engines.host import ActorHost, HostSpec, Reply, StepRequest, Weights
from adalook.search.workers.pool import spawnable_main
from adalook.search.workers.worker import end_with_parent

if TYPE_CHECKING:
    from adalook.learning.agents.base import Agent

CLOSING_SECONDS = 5.0


class ProcessTransport(Transport):
    """Hosts in processes; each ends when its pipe does, which is also what happens when this process is killed."""

    def __init__(self, engine: LocalProcesses, spec: HostSpec, agent: Agent) -> None:
        self._count, self._spec = min(engine.actors, agent.config.num_envs), spec
        self._context = multiprocessing.get_context("spawn")
        self._hosts: list[tuple[BaseProcess, Connection]] = []

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the current hosts."""
        return [process.pid or 0 for process, _ in self._hosts]

    def start(self) -> list[dict[str, str]]:
        """Start all hosts at once, and wait until each has said what it is."""
        self._hosts = [self._start_host(number) for number in range(self._count)]
        return [self._greeting(number) for number in range(self._count)]

    def restart(self, host: int) -> bool:
        """Start another process."""
        process, pipe = self._hosts[host]
        _stop(process, pipe)
        self._hosts[host] = self._start_host(host)
        self._greeting(host)
        return True

    def _start_host(self, number: int) -> tuple[BaseProcess, Connection]:
        ours, theirs = self._context.Pipe()
        # The kernel's signal comes when the thread that started a process ends, so only the main one can ask for it.
        by_kernel = threading.current_thread() is threading.main_thread()
        arguments = (theirs, self._spec, os.getpid(), by_kernel)
        process = self._context.Process(target=run_host, args=arguments, daemon=True, name=f"adalook actor {number}")
        with spawnable_main():
            process.start()
        theirs.close()  # only the host has it now, so that its death ends the pipe
        return process, ours

    def _greeting(self, host: int) -> dict[str, str]:
        process, pipe = self._hosts[host]
        try:
            about = pipe.recv()
        except (EOFError, OSError):
            process.join(CLOSING_SECONDS)
            raise EngineError(
                f"actor {host} died before it could begin",
                got=f"exit code {process.exitcode}",
                remedy="a script that uses actors needs 'if __name__ == \"__main__\":' before its own work",
            ) from None
        if isinstance(about, Exception):
            raise about
        assert isinstance(about, dict)
        return about

    def publish(self, weights: Weights) -> Weights:
        """Return the weights: they travel with requests."""
        return weights

    def send(self, host: int, request: StepRequest, weights: Weights | None) -> None:
        """Send a request; a broken pipe fails again when the reply is received, and is handled there."""
        with contextlib.suppress(OSError):
            self._hosts[host][1].send((request, weights))

    def receive(self, hosts: Collection[int]) -> list[tuple[int, Reply | HostLost]]:
        """Wait for the next reply of any of these hosts."""
        pipes = {self._hosts[host][1]: host for host in hosts}
        host = pipes[wait(list(pipes))[0]]  # type: ignore[index]
        process, pipe = self._hosts[host]
        try:
            return [(host, pipe.recv())]
        except (EOFError, OSError):
            process.join(CLOSING_SECONDS)
            return [(host, HostLost(f"exit code {process.exitcode}"))]

    def close(self) -> None:
        """End all hosts: the end of its pipe asks each to, and it is killed if that does not help."""
        for _, pipe in self._hosts:
            with contextlib.suppress(OSError):
                pipe.close()
        for process, pipe in self._hosts:
            _stop(process, pipe)
        self._hosts = []


def run_host(pipe: Connection, spec: HostSpec, parent: int, by_kernel: bool) -> None:
    """Say what this host is and answer requests until the pipe ends; the entry point of the process."""
    end_with_parent(parent, by_kernel)
    with contextlib.suppress(EOFError, OSError):
        try:
            host = ActorHost(spec)
            about: Any = host.about()
        except Exception as error:
            pipe.send(EngineError("an actor cannot begin", got=f"{type(error).__name__}: {error}"))
            return
        pipe.send(about)
        requests: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_read, args=(pipe, requests), daemon=True, name="adalook requests").start()
        while (request := requests.get()) is not None:
            pipe.send(host.step(*request))


def _read(pipe: Connection, requests: SimpleQueue[Any]) -> None:
    """Read requests while others are answered: the parent never has to wait until one fits into the pipe."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            requests.put(pipe.recv())
    requests.put(None)


def _stop(process: BaseProcess, pipe: Connection) -> None:
    """End a process and wait for it."""
    with contextlib.suppress(OSError):
        pipe.close()
    process.join(CLOSING_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    process.close()
