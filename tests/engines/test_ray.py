"""Hosts on Ray: what goes wrong is said in one line, made up or real."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.engines.base import Host
from adalook.engines.ray import RayHosts
from adalook.errors import EngineError

ROOT = Path(__file__).parents[2]


class Exceptions:
    """The errors of Ray that matter here, by their names there."""

    class RayError(Exception): ...

    class RayTaskError(RayError):
        cause = OSError("no space left")

    class ActorDiedError(RayError): ...

    class ObjectStoreFullError(RayError): ...

    class OutOfDiskError(RayError): ...


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            Exceptions.ObjectStoreFullError("full\nmore"),
            "the object store of Ray is full: got full. The last checkpoint",
        ),
        (Exceptions.OutOfDiskError("disk"), "the object store of Ray is full: got disk. The last checkpoint, if"),
        (Exceptions.RayTaskError("x"), "an actor could not answer: got OSError: no space left. The last checkpoint"),
        (Exceptions.ActorDiedError("Task was killed due to the node running low on memory usage threshold"), "memory"),
        (Exceptions.ActorDiedError("The actor died because its node has died."), "its machine is gone"),
        (Exceptions.ActorDiedError("The actor is dead.\nmore"), "its process died"),
    ],
)
def test_what_goes_wrong_on_ray_is_said_in_one_line(error: Exception, said: str) -> None:
    def get(reference: Any) -> None:
        raise error

    hosts = RayHosts([], al.Ray(2), None)
    hosts._ray = type("Fake", (), {"exceptions": Exceptions, "get": staticmethod(get)})
    if isinstance(error, Exceptions.ActorDiedError):
        assert said in hosts._received(None).reason
        return
    with pytest.raises(EngineError) as raised:
        hosts._received(None)
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


# ---- the same, for real


class Greedy(Host):
    """Answers with more than there is room for, or takes more memory than there is."""

    def answer(self, message: Any, published: Any) -> Any:
        what, size = message
        if what == "reply":
            return np.ones(size, np.uint8)
        if what == "allocate":
            resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
            return np.ones(2**34, np.uint8)
        kept = []
        if what == "hoard":
            for _ in range(size // 2**25):  # slowly, for the monitor looks ten times a second
                kept.append(np.ones(2**25, np.uint8))
                time.sleep(0.05)
            time.sleep(10.0)
        return what, len(kept)


SHORT_OF = """
import json, sys
import numpy as np
from adalook.engines import session
from adalook.engines.base import Ray
from adalook.errors import EngineError
from tests.engines.test_ray import Greedy

if __name__ == "__main__":
    session.OBJECT_STORE_BYTES = 80 * 2**20
    said = {}
    hosts = Ray(1).hosts([Greedy])
    hosts.start()
    if sys.argv[1] == "store":
        try:
            hosts.publish(np.ones(200 * 2**20, np.uint8))
        except EngineError as error:
            said["publish"] = str(error)
        hosts.send(0, ("reply", 300 * 2**20))
        try:
            hosts.receive([0], 120)
        except EngineError as error:
            said["reply"] = str(error)
    else:
        hosts.send(0, ("allocate", 0))
        ((_, failed),) = hosts.receive([0], 120)
        said["allocate"] = str(failed.error(0))
        hosts.send(0, ("hoard", 8 * 2**30))
        ((_, lost),) = hosts.receive([0], 120)
        said["hoard"] = lost.reason
    print(json.dumps(said))
    hosts.close()
"""


def short_of(what: str) -> dict[str, str]:
    """Return an environment in which Ray may not spill to disk, or whose workers may take a tenth of the memory."""
    sizes = {line.partition(":")[0]: int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines()}
    used = 1.0 - sizes["MemAvailable"] / sizes["MemTotal"]
    settings = {"RAY_memory_usage_threshold": f"{used + 0.1:.3f}", "RAY_memory_monitor_refresh_ms": "100"}
    if what == "store":
        settings = {"RAY_local_fs_capacity_threshold": "0.001"}
    return os.environ | settings | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "lines"),
    [
        (
            "store",
            {"publish": "the object store of Ray is full: got .*", "reply": "the object store of Ray is full: got .*"},
        ),
        (
            "memory",
            {
                "allocate": "actor 0 failed: got MemoryError: Unable to allocate 16.0 GiB.*",
                "hoard": "it was out of memory",
            },
        ),
    ],
)
def test_what_is_short_is_said_in_one_line(what: str, lines: dict[str, str], tmp_path: Path) -> None:
    """Real ones: a full object store, an allocation that fails, a worker that Ray's memory monitor kills."""
    pytest.importorskip("ray")
    script = tmp_path / "short.py"
    script.write_text(SHORT_OF)
    done = subprocess.run(
        [sys.executable, str(script), what], capture_output=True, text=True, timeout=900, env=short_of(what)
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said.keys() == lines.keys()
    for name, line in lines.items():
        assert re.fullmatch(line, said[name]), said[name]
