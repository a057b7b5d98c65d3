"""Hosts on Ray: what goes wrong is said in one line."""

from __future__ import annotations

from typing import Any

import pytest

import adalook as al
from adalook.engines.ray import RayHosts
from adalook.errors import EngineError


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
