"""Hosts in this process and in others: answers in order, errors by name, deaths, deadlines, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import adalook as al
from adalook.engines.base import Host, HostFailed, HostLost, Hosts, InlineHosts
from adalook.engines.processes import ProcessHosts
from adalook.errors import ArgumentError, EngineError, ModelError
from tests.processes import child, running, wait_until


class Echo(Host):
    """Answers with what it was sent; some words make it fail, hang or die."""

    def __init__(self, name: str = "") -> None:
        if name == "broken":
            raise ModelError("no such host")
        self.name = name

    def about(self) -> dict[str, str]:
        return {"name": self.name}

    def answer(self, message: Any, published: Any) -> Any:
        match message:
            case "raise":
                raise ModelError("the model is wrong", got=3)
            case "raise foreign":
                raise KeyError("key")
            case "die":
                os._exit(7)
            case "hang":
                time.sleep(3600)
        return message, published, self.name


NAMES = ("a", "b")


@pytest.mark.parametrize("kind", [InlineHosts, ProcessHosts])
def test_answers_come_in_order_of_what_was_sent(kind: type[Hosts]) -> None:
    hosts = kind([partial(Echo, name) for name in NAMES])
    try:
        assert [said["name"] for said in hosts.start()] == list(NAMES)
        assert len(hosts.process_ids) == len(hosts) == 2
        published = hosts.publish([1, 2])
        for number in range(3):
            hosts.send(0, number)
        hosts.send(1, "x", published)
        assert [hosts.receive([0])[0] for _ in range(3)] == [(0, (number, None, "a")) for number in range(3)]
        assert hosts.receive([1]) == [(1, ("x", [1, 2], "b"))]
        for number in range(3):
            hosts.send(0, number)
        hosts.forget()
        hosts.send(0, "new")
        assert hosts.receive([0]) == [(0, ("new", None, "a"))]
        assert hosts.restart(0)
        hosts.send(0, "again")
        assert hosts.receive([0]) == [(0, ("again", None, "a"))]
    finally:
        hosts.close()


def test_errors_deaths_and_deadlines_of_processes() -> None:
    hosts = ProcessHosts([Echo, Echo])
    try:
        hosts.start()
        hosts.send(0, "raise")
        ((_, failed),) = hosts.receive([0])
        assert isinstance(failed, HostFailed)
        assert isinstance(failed.error(0), ModelError)
        assert str(failed.error(0)) == "the model is wrong: got 3."
        hosts.send(0, "raise foreign")
        ((_, failed),) = hosts.receive([0])
        assert str(failed.error(0)) == "actor 0 failed: got KeyError: 'key'."
        assert "in answer" in failed.error(0).__notes__[0]
        hosts.send(0, "die")
        hosts.send(0, "lost with it")
        assert hosts.receive([0]) == [(0, HostLost("exit code 7"))]
        assert hosts.restart(0)
        hosts.send(0, "alive")
        assert hosts.receive([0]) == [(0, ("alive", None, ""))]
        hosts.send(1, "hang")
        assert hosts.receive([1], seconds=0.2) == []
        hanging = hosts.process_ids[1]
    finally:
        hosts.close(kill=True)
    assert not running(hanging)


class Stillborn(Echo):
    """Dies as it is made, the first time."""

    def __init__(self, mark: Path) -> None:
        super().__init__()
        if not mark.exists():
            mark.touch()
            os._exit(9)


def test_a_host_that_dies_as_it_begins_is_started_again(tmp_path: Path) -> None:
    hosts = ProcessHosts([partial(Stillborn, tmp_path / "mark"), Echo])
    try:
        assert len(hosts.start()) == 2
        hosts.send(0, "x")
        assert hosts.receive([0]) == [(0, ("x", None, ""))]
    finally:
        hosts.close()


def test_what_keeps_a_host_from_beginning_is_raised() -> None:
    hosts = ProcessHosts([partial(Echo, "broken")])
    with pytest.raises(ModelError, match="no such host"):
        hosts.start()
    hosts.close()
    with pytest.raises(ArgumentError, match="cannot be sent to other processes"):
        ProcessHosts([lambda: Echo()]).start()
    hosts = ProcessHosts([partial(os._exit, 9)])
    with pytest.raises(EngineError, match=r"actor 0 died before it could begin: got exit code 9.*__main__"):
        hosts.start()
    hosts.close()


SCRIPT = """
import time
from functools import partial
from adalook.engines.processes import ProcessHosts
from tests.engines.test_hosts import Echo

if __name__ == "__main__":
    hosts = ProcessHosts([Echo, Echo])
    hosts.start()
    hosts.send(0, "hang")
    print(*hosts.process_ids, flush=True)
    time.sleep(3600)
"""


def test_hosts_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with child([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        hosts = [int(word) for word in parent.stdout.readline().split()]
        assert len(hosts) == 2
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert wait_until(lambda: not any(running(host) for host in hosts), seconds=60)


def test_engines_give_hosts() -> None:
    assert isinstance(al.InProcess().hosts([Echo]), InlineHosts)
    assert isinstance(al.LocalProcesses(1).hosts([Echo]), ProcessHosts)
