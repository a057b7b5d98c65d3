"""`adalook solve`: answers on stdout, files where they were asked for, exit codes as promised."""

from __future__ import annotations

import dataclasses
import inspect
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import adalook as al
from adalook.cli.main import main
from adalook.cli.solve import SolveCommand
from adalook.planning.rules.registry import DEFAULT_METHOD, find_method
from adalook.planning.solve import DEFAULT_TOLERANCE
from tests.processes import child


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    """Exit code and JSON of `adalook solve … --json`."""
    code = main(["solve", *arguments, "--json"])
    out, err = capsys.readouterr()
    assert not err
    return code, json.loads(out)


def test_solve_prints_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "zoo:maze?size=12"]) == 0
    out, err = capsys.readouterr()
    assert not err
    for words in ("zoo:maze?size=12", "Auto", "converged", "certified", "functional graph", "shared", "root"):
        assert words in out


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, about = answer(capsys, "zoo:maze?size=12&seed=3&discount=0.9")
    assert code == 0
    assert about["model"]["discount"] == 0.9
    assert about["model"]["states"] == al.zoo.maze(size=12, seed=3).num_states
    assert about["status"] == "CONVERGED"
    assert about["policy_loss"] <= 1e-8
    assert about["files"] == []


def test_nothing_is_written_without_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer(capsys, "zoo:maze?size=12")
    assert not list(tmp_path.iterdir())


def test_out_writes_the_solution_and_its_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, about = answer(capsys, "zoo:maze?size=12", "--out", str(tmp_path / "new" / "place"))
    names = ["model.npz", "solution.npz", "solution.json", "solution.png", "solution.svg"]
    assert [Path(path).name for path in about["files"]] == names
    assert all(Path(path).stat().st_size for path in about["files"])


def test_a_model_without_layout_is_saved_without_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, about = answer(capsys, "zoo:forest", "--out", str(tmp_path))
    assert [Path(path).name for path in about["files"]] == ["model.npz", "solution.npz", "solution.json"]


def test_an_answer_that_cannot_be_written_is_still_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["solve", "zoo:chain", "--json", "--out", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "CONVERGED"
    assert "No space left" in err


def test_reaching_a_limit_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, about = answer(capsys, "zoo:maze", "--method", "vi", "--max-iterations", "2")
    assert (code, about["status"], about["passes"]) == (3, "ITERATION_LIMIT", 2)
    code, about = answer(capsys, "zoo:maze", "--method", "vi", "--max-seconds", "0")
    assert (code, about["status"]) == (3, "TIME_LIMIT")


def test_the_same_command_goes_on_from_its_checkpoint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "maze.ckpt")
    arguments = ("zoo:maze", "--method", "vi", "--max-iterations", "2", "--checkpoint", file)
    assert [answer(capsys, *arguments)[1]["passes"] for _ in range(3)] == [2, 4, 6]
    assert main(["solve", "zoo:maze?seed=1", *arguments[1:]]) == 2
    assert "another model" in capsys.readouterr().err


def test_files_are_sources(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "maze.npz")
    al.zoo.maze(size=12).save(path)
    assert answer(capsys, path)[1]["model"]["discount"] == 0.98
    assert answer(capsys, path, "--discount", "0.5")[1]["model"]["discount"] == 0.5


def test_files_may_be_mapped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "maze.npz")
    al.zoo.maze(size=12).save(path)
    assert main(["solve", path, "--mmap"]) == 0
    assert "blocks" in capsys.readouterr().out
    assert main(["solve", "zoo:maze", "--mmap"]) == 2
    assert "needs a file" in capsys.readouterr().err


ANNOUNCED = """
import sys
from pathlib import Path
from adalook._interrupts import SignalGuard

listen = SignalGuard.listen

def announce(self):
    listen(self)
    Path(sys.argv[1]).touch()

SignalGuard.listen = announce
from adalook.cli.main import main
sys.exit(main(sys.argv[2:]))
"""
"""The command line, but it touches a file once Ctrl-C is answered: kernels may have to be compiled before that."""


def test_ctrl_c_still_gives_an_answer(tmp_path: Path) -> None:
    slow = ["solve", "zoo:chain?n=20000&discount=0.99999", "--method", "vi", "--tolerance", "1e-12"]
    begun, place = tmp_path / "begun", tmp_path / "solution"
    command = [sys.executable, "-W", "error", "-c", ANNOUNCED, str(begun), *slow, "--json", "--out", str(place)]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 300
        while not begun.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert not err
    about = json.loads(out)
    assert (process.returncode, about["status"]) == (3, "INTERRUPTED")
    assert (place / "solution.json").exists()


def test_flags_say_what_solve_and_the_zoo_say() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(SolveCommand)}
    assert fields["tolerance"] == DEFAULT_TOLERANCE
    assert fields["method"] == DEFAULT_METHOD
    assert type(find_method(DEFAULT_METHOD).make(al.zoo.chain())) is al.Auto
    text = inspect.getsource(SolveCommand)
    assert f"with {', '.join(al.zoo.__all__[:-1])} or {al.zoo.__all__[-1]}, such as" in " ".join(text.split())
