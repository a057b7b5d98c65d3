"""What holds for every test: ordinary signals at the start, no process left at the end."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import processes

# The same examples on every machine, however slow it is: a suite that fails by chance tells nothing.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

guardian_key = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the session for its descendants; workers of xdist get a name below that of their session."""
    processes.restore_signals()
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        os.environ[processes.VARIABLE] += f"{worker['workerid']}/"
    else:
        os.environ[processes.VARIABLE] = f"{uuid.uuid4().hex}/"
        config.stash[guardian_key] = processes.start_guardian(os.environ[processes.VARIABLE])


def pytest_unconfigure(config: pytest.Config) -> None:
    guardian = config.stash.get(guardian_key, None)
    if guardian is not None:
        guardian.communicate()


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Fail the module's last test when a process that the module started is still running, and kill it."""
    session = os.environ[processes.VARIABLE]
    before = processes.descendants(session)

    def left() -> set[int]:
        now = processes.descendants(session) - before
        return {one for one in now if "multiprocessing.resource_tracker" not in processes.command_of(one)}

    yield
    if not processes.wait_until(lambda: not left(), processes.GRACE_SECONDS):
        names = {one: processes.command_of(one) for one in left()}
        processes.kill(set(names))
        pytest.fail(f"left running: {names}")
