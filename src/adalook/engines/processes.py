"""Hosts in processes on this machine, each at the other end of a pipe.

A host ends when its pipe does, and with the process that started it, however that dies: a thread watches it, and on
Linux the kernel does, which needs no Python: a host that hangs ends, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import process as multiprocessing_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any

from adalook.engines.base import START_SECONDS, HostFailed, HostLost, HostRecipe, Hosts, greeting, guarded_answer
from adalook.errors import ArgumentError, EngineError

CLOSING_SECONDS = 5.0
START_ATTEMPTS = 3
PARENT_CHECK_SECONDS = 2.0
"""How often a host checks that its parent lives: a forked sibling that holds the pipe would keep it open."""
PR_SET_PDEATHSIG = 1


@dataclass(eq=False)
class _HostProcess:
    """A host as its parent sees it."""

    process: BaseProcess
    pipe: Connection
    greeting: dict[str, str] | None = None
    """What it said first, once that was received."""
    waiting: int = 0
    """Messages that it has not answered."""
    forgotten: int = 0
    """How many of its next answers nobody wants any more."""


class ProcessHosts(Hosts):
    """Hosts in processes of this machine. They may be started again after they were closed."""

    def __init__(self, recipes: Sequence[HostRecipe]) -> None:
        super().__init__(recipes)
        self._context = multiprocessing.get_context("spawn")
        self._hosts: list[_HostProcess] = []

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the current hosts; one that dies is replaced when its answer is missed."""
        return [host.process.pid or 0 for host in self._hosts]

    def begin(self) -> None:
        """Start all processes that do not run, and do not wait for them."""
        try:
            for number in range(len(self._hosts), len(self)):
                self._hosts.append(self._start(number))
        except BaseException:
            self.close()
            raise

    def start(self) -> list[dict[str, str]]:
        self.begin()
        return [self._greeted(number) for number in range(len(self))]

    def restart(self, host: int) -> bool:
        self._stop(self._hosts[host])
        self._hosts[host] = self._start(host)
        return True

    def send(self, host: int, message: Any, published: Any = None) -> None:
        """Send a message; a broken pipe fails again when the answer is received, and is handled there."""
        self._hosts[host].waiting += 1
        with contextlib.suppress(OSError):
            self._hosts[host].pipe.send((message, published))

    def receive(self, hosts: Collection[int], seconds: float | None = None) -> list[tuple[int, Any]]:
        end = None if seconds is None else time.monotonic() + seconds
        pipes: dict[Any, int] = {self._hosts[number].pipe: number for number in hosts}
        while True:
            ready = wait(list(pipes), None if end is None else max(0.0, end - time.monotonic()))
            if not ready:
                return []
            received = [(pipes[pipe], answer) for pipe in ready for answer in self._read(pipes[pipe])]
            if received:
                return sorted(received, key=lambda item: item[0])

    def _read(self, number: int) -> list[Any]:
        """Return what a host has sent, if somebody wants it."""
        host = self._hosts[number]
        try:
            content = host.pipe.recv()
        except (EOFError, OSError):
            host.process.join(CLOSING_SECONDS)
            return [HostLost(f"exit code {host.process.exitcode}")]
        if host.greeting is None:
            host.greeting = _checked_greeting(content, number)
            return []
        host.waiting -= 1
        if host.forgotten:
            host.forgotten -= 1
            return []
        return [content]

    def forget(self) -> None:
        for host in self._hosts:
            host.forgotten = host.waiting

    def close(self, *, kill: bool = False) -> None:
        """End all hosts: the end of its pipe asks each to, and it is killed if that does not help, or with `kill`."""
        for host in self._hosts:
            if kill:
                host.process.kill()
            with contextlib.suppress(OSError):
                host.pipe.close()  # all of them end at the same time
        while self._hosts:
            self._stop(self._hosts.pop())

    def _stop(self, host: _HostProcess) -> None:
        with contextlib.suppress(OSError):
            host.pipe.close()
        host.process.join(CLOSING_SECONDS)
        if host.process.is_alive():
            host.process.kill()
            host.process.join()
        host.process.close()

    def _start(self, number: int) -> _HostProcess:
        ours, theirs = self._context.Pipe()
        # The kernel's signal comes when the thread that started a process ends, so only the main one can ask for it.
        by_kernel = threading.current_thread() is threading.main_thread()
        arguments = (theirs, self.recipes[number], os.getpid(), by_kernel)
        process = self._context.Process(target=run_host, args=arguments, daemon=True, name=f"adalook actor {number}")
        try:
            with spawnable_main():
                process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                "this cannot be sent to other processes",
                expected="functions and classes that are defined at the top of a module",
                got=error,
                remedy="put them into a module of their own, or leave out the engine",
            ) from None
        theirs.close()  # only the host has it now, so that its death ends the pipe
        return _HostProcess(process, ours)

    def _greeted(self, number: int) -> dict[str, str]:
        """Wait until a host has said what it is; one that dies before is started again, a few times."""
        reason = ""
        for _ in range(START_ATTEMPTS):
            host = self._hosts[number]
            if host.greeting is None and not host.pipe.poll(START_SECONDS):
                raise EngineError(f"actor {number} did not begin", expected=f"a sign within {START_SECONDS:g} s")
            lost = [] if host.greeting is not None else self._read(number)
            if host.greeting is not None:
                return host.greeting
            reason = lost[0].reason
            self.restart(number)
        raise EngineError(
            f"actor {number} died before it could begin",
            got=reason,
            remedy="a script that uses actors needs 'if __name__ == \"__main__\":' before its own work",
        )


def _checked_greeting(content: Any, number: int) -> dict[str, str]:
    """Return what a host said first, or raise what kept it from beginning."""
    if isinstance(content, HostFailed):
        raise content.error(number)
    assert isinstance(content, dict)
    return content


def run_host(pipe: Connection, recipe: HostRecipe, parent: int, by_kernel: bool) -> None:
    """Say what this host is and answer messages until the pipe ends; the entry point of the process."""
    end_with_parent(parent, by_kernel)
    with contextlib.suppress(EOFError, OSError):
        try:
            host = recipe()
            first: Any = greeting(host)
        except Exception as error:
            pipe.send(HostFailed.of(error))
            return
        pipe.send(first)
        with contextlib.closing(host) if hasattr(host, "close") else contextlib.nullcontext():
            messages: SimpleQueue[Any] = SimpleQueue()
            threading.Thread(target=_listen, args=(pipe, messages), daemon=True, name="adalook messages").start()
            while (message := messages.get()) is not None:
                pipe.send(guarded_answer(host, *message))


def _listen(pipe: Connection, messages: SimpleQueue[Any]) -> None:
    """Read messages while others are answered: the parent never has to wait until one fits into the pipe."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            messages.put(pipe.recv())
    messages.put(None)


def end_with_parent(parent: int, by_kernel: bool) -> None:
    """Let this process end with its parent, by a thread that watches and, if asked to, by the kernel, too.

    Ctrl-C is the parent's to answer: it ends the pipe.
    """
    threading.Thread(target=_end_with, args=(parent,), daemon=True, name="adalook parent watch").start()
    if by_kernel:
        _ask_kernel_to_end(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with(parent: int) -> None:
    """End this process when its parent is another."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


def _ask_kernel_to_end(parent: int) -> None:
    """Let Linux kill this process when the thread that started it ends; elsewhere nothing happens."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before
            os._exit(1)


@contextlib.contextmanager
def spawnable_main() -> Iterator[None]:
    """Hide the main module's file name from spawned processes while it names no file.

    Python's `spawn` runs the main module's file again in every child. A script that came through a pipe
    (`python - < script`) has the file name `<stdin>`, and its children would die of that. They have to do without the
    main module, just as those of `python -c` and of notebooks do.
    """
    main = sys.modules["__main__"]
    name = getattr(main, "__file__", None)
    if name is None or spawn_can_import_main():
        yield
        return
    main.__file__ = None
    try:
        yield
    finally:
        main.__file__ = name


def spawn_can_import_main() -> bool:
    """Return whether spawned processes can run the main module: it is a module, or a file that exists."""
    main: Any = sys.modules["__main__"]
    if getattr(main.__spec__, "name", None) is not None:
        return True
    name = getattr(main, "__file__", None)
    # A relative name counts from where the program began, wherever it has gone since.
    original = getattr(multiprocessing_process, "ORIGINAL_DIR", None) or ""
    return name is not None and os.path.isfile(os.path.join(original, name))
