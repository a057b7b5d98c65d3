"""`adalook solve --shards`: models in shards, from files and from names, and flags that do not go with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import adalook as al
from adalook.cli.main import main


def test_shards_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    al.zoo.maze(12).save(tmp_path / "maze.npz")
    for source in (str(tmp_path / "maze.npz"), "zoo:maze?size=12"):
        out = tmp_path / f"out-{len(source)}"
        assert main(["solve", source, "--shards", "3", "--json", "--out", str(out)]) == 0
        about = json.loads(capsys.readouterr().out)
        assert about["shards"] == 3
        assert about["policy_loss"] <= 1e-8
        found = al.ShardedSolution.load(out)
        assert np.abs(found.values - al.solve(al.zoo.maze(12)).values).max() < 1e-7
    assert main(["solve", "zoo:maze?size=12", "--shards", "2", "--max-iterations", "1"]) == 3
    assert "in 2 shards" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--shards", "2", "--method", "pi"], "--method is for models in one piece"),
        (["--engine", "processes", "--actors", "2"], "Add --shards N"),
        (["--shards", "2", "--engine", "cloud"], "no such engine"),
        (["--shards", "2", "--engine", "processes"], "needs actors"),
    ],
)
def test_flags_that_do_not_go_with_shards(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "zoo:chain?n=9", *flags]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
