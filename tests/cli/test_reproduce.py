"""`adalook reproduce`: one line of complaint, exit codes as promised, Ctrl-C that says how to go on."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adalook.cli.main import main
from adalook.cli.reproduce import ReproduceCommand
from adalook.experiments.learning.suite import AGENTS
from tests.processes import child


def test_chain_from_the_command_line(tmp_path, capsys):
    assert main(["reproduce", "chain", "--out", str(tmp_path), "--workers", "1"]) == 0
    assert "68 jobs done" in capsys.readouterr().out
    assert json.loads((tmp_path / "chain" / "experiment.json").read_text())["jobs"] == 68
    assert main(["reproduce", "chain", "--out", str(tmp_path)]) == 0
    assert "done already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["labyrinth"], "there is no experiment 'labyrinth': expected chain"),
        (["chain", "--seeds", "3"], "the chain has no seeds"),
        (["maze", "--seeds", "0"], "seeds is wrong"),
        (["maze", "--workers", "0"], "workers is wrong"),
        (["maze", "--address", "127.0.0.1:6379"], "Ray only"),
        (["maze", "--engine", "abacus"], "expected processes or ray"),
        (["maze", "--games", "Breakout"], "--games is for learning experiments"),
        (["atari", "--games"], "--games names none: expected one or more"),
    ],
)
def test_wrong_arguments_take_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert words in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["reproduce", "chain", "--out", str(tmp_path / "file")]) == 2
    assert "cannot make directory" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "everybody"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_signal_stops_cleanly_and_says_how_to_go_on(tmp_path, number, everybody):
    command = [sys.executable, "-m", "adalook", "reproduce", "sweep", "--out", str(tmp_path), "--workers", "1"]
    journal = tmp_path / "sweep" / "journal.jsonl"
    with child(command, stderr=subprocess.PIPE, text=True) as run:
        deadline = time.monotonic() + 300
        while not journal.exists() or journal.read_bytes().count(b"\n") < 4:
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.01)
        (os.killpg if everybody else os.kill)(run.pid, number)  # a terminal sends Ctrl-C to the workers too
        _, err = run.communicate(timeout=300)
    assert run.returncode == 130
    assert "jobs are done and kept" in err
    assert "run the same command again to go on" in err
    assert err.count("\n") == 1
    assert not Path(f"/proc/{run.pid}").exists()
    said = int(re.search(r"interrupted: (\d+) of 1650", err)[1])
    on_disk = journal.read_bytes().count(b"\n") - 1
    assert said <= on_disk <= said + 1, "one more may have come in just before it was counted"


def test_help_names_every_agent() -> None:
    text = inspect.getsource(ReproduceCommand)
    named = re.findall(r"[a-z0-9-]+", text[text.index("which agents") : text.index("SECONDS")])
    assert set(AGENTS) <= set(named)
