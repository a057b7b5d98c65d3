"""Ray with good manners: what is said before anything starts, and what is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import adalook as al
from adalook.engines.session import PREFIX, check_ray, keep_only_logs, remove_left_behind
from adalook.errors import EngineError, MissingExtraError
from tests.learning.small import BREAKOUT


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"al\.Ray needs the package 'ray'\. Install it.*adalook\[ray\]"):
        al.QLDQN(BREAKOUT, engine=al.Ray(2))


def test_an_address_without_a_token_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(
            EngineError, match=rf"no token for the Ray cluster at {address}: expected .*RAY_AUTH_TOKEN"
        ) as e:
            check_ray(address, "al.Ray")
        assert "\n" not in str(e.value)
        monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
        check_ray(address, "al.Ray")
    with pytest.raises(EngineError, match=f"no Ray answers at {address}"):
        check_ray(address, "al.Ray")


def test_of_what_ray_leaves_in_a_run_only_logs_are_kept(tmp_path: Path) -> None:
    session = tmp_path / "session_2026"
    for name in ("sockets/raylet", "logs/raylet.out", "logs/raylet.err", "logs/old/x", "metrics_port"):
        (session / name).parent.mkdir(parents=True, exist_ok=True)
        (session / name).write_text("log" if name == "logs/raylet.out" else "")
    (tmp_path / "session_latest").symlink_to(session)
    keep_only_logs(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [
        "session_2026/logs/raylet.out"
    ]
    assert not (tmp_path / "session_latest").is_symlink()


def test_directories_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive = tmp_path / f"{PREFIX}{ended.pid}-x", tmp_path / f"{PREFIX}{os.getpid()}-x"
    dead.mkdir()
    alive.mkdir()
    remove_left_behind()
    assert list(tmp_path.iterdir()) == [alive]
