"""Child processes of the tests: started with ordinary signals, and none outlives the test session.

Every process that a session starts inherits an environment variable with the session's name. Whoever carries it is a
descendant, even when its parent has died and init has adopted it. A guardian, started with the session, waits for the
session to end, however it ends, and kills who is left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

VARIABLE = "ADALOOK_TEST_SESSION"
GRACE_SECONDS = 60.0
"""How long processes may take to end by themselves when their test module is over; the machine may be busy."""
SESSION_GRACE_SECONDS = 3.0
"""The same when their session is over: nobody would wait for them."""


def restore_signals() -> None:
    """Give Ctrl-C, SIGTERM and SIGHUP their ordinary meaning here, and so in every child started from now on.

    A shell without job control starts background jobs with SIGINT ignored, nohup ignores SIGHUP: children inherit that.
    """
    ordinary = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    for number, handler in ordinary.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT, signal.SIGTERM])


@contextmanager
def child(command: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process in a group of its own; the whole group is killed at the end, whatever happens."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def running(process_id: int) -> bool:
    """Whether a process runs; a zombie has ended."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processes_of(part: str) -> list[int]:
    """Return the processes that have this text in their command or environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if part.encode() in (path / "cmdline").read_bytes() + (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def descendants(session: str) -> set[int]:
    """Return the running processes that carry the session's name, and the direct children of this process.

    A process that was forked without a new program shows the environment that its parent was started with, so that
    children are also found by their parent. Zombies have ended.
    """
    mark, found = f"{VARIABLE}={session}".encode(), set[int]()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (place / "stat").read_text().rpartition(")")[2].split()[:2]
            environment = (place / "environ").read_bytes().split(b"\0")
            is_child = int(parent) == os.getpid()
            if state != "Z" and (is_child or any(entry.startswith(mark) for entry in environment)):
                found.add(int(place.name))
    return found - {os.getpid()}


def command_of(process_id: int) -> str:
    """Return the command line of a process, empty when it has ended."""
    try:
        return Path(f"/proc/{process_id}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def kill(process_ids: set[int]) -> None:
    """Kill processes that may have ended already."""
    for process_id in process_ids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process_id, signal.SIGKILL)


def start_guardian(session: str) -> subprocess.Popen[bytes]:
    """Start the process that kills the session's descendants once its own standard input is closed."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    command = [sys.executable, "-S", "-E", __file__, session]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)


def guard(session: str) -> None:
    """Wait until the session has ended, then see that nothing of it is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    wait_until(lambda: not descendants(session), SESSION_GRACE_SECONDS)
    wait_until(lambda: kill(descendants(session)) or not descendants(session), 10 * SESSION_GRACE_SECONDS)


if __name__ == "__main__":
    guard(sys.argv[1])
