"""A test session leaves nothing running, however it is started and however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import VARIABLE, child, running, wait_until

CONFTEST = """
from tests import processes
from tests.conftest import no_process_is_left, pytest_configure, pytest_unconfigure

processes.GRACE_SECONDS = 0.2
"""

LEAVES_A_CHILD = """
import signal, subprocess, sys, time

def test_starts_a_child_that_ignores_signals():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); print(os.getpid(), flush=True)"
    code += "\\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=open("child", "w"), start_new_session=True)
    while not open("child").read():
        time.sleep(0.02)
    time.sleep(SECONDS)
"""


def command_of_session(directory: Path, seconds: float, *options: str) -> list[str]:
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_leaves.py").write_text(LEAVES_A_CHILD.replace("SECONDS", str(seconds)))
    (directory / "pytest.ini").write_text("[pytest]\n")
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]


def environment() -> dict[str, str]:
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def child_runs(directory: Path) -> bool:
    """Whether the child of the inner session has said its number and runs."""
    said = directory / "child"
    return said.exists() and said.read_text().endswith("\n") and running(int(said.read_text()))


def test_a_child_that_is_left_running_fails_its_module(tmp_path: Path) -> None:
    done = subprocess.run(
        command_of_session(tmp_path, 0.0), cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "left running" in done.stdout
    assert not child_runs(tmp_path)


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_no_child_outlives_a_killed_session(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Started by a script with SIGINT ignored, as background jobs are, and killed with -9 at work."""
    command = ["bash", "-c", 'trap "" INT; exec "$@"', "bash", *command_of_session(tmp_path, 600.0, *options)]
    with child(command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL) as session:
        assert wait_until(lambda: child_runs(tmp_path), 300.0)
        os.kill(session.pid, signal.SIGKILL)
        assert wait_until(lambda: not child_runs(tmp_path), 120.0)
