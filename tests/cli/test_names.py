"""One name of a problem for every command: a module of the current folder, with masks, names and arguments."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from adalook.cli.main import main

SHOP = """
import adalook as al

def build(capacity=2):
    table = {}
    for stock in range(capacity + 1):
        table[f"{stock} left"] = {
            f"order {order}": [
                (0.5, f"{max(stock + order - sold, 0)} left", 5 * min(sold, stock + order) - 2 * order)
                for sold in (0, 1)
            ]
            for order in range(capacity - stock + 1)
        }
    return al.MDP.from_table(table, discount=0.9)
"""
NAME = "shop_of_a_test:build?capacity=3"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop_of_a_test.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "shop_of_a_test", raising=False)
    return tmp_path


def test_solve_prints_and_writes_the_policy_with_its_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", NAME, "--csv", "shop.csv", "--out", "shop", "--report"]) == 0
    assert "0 left  order" in capsys.readouterr().out
    with open("shop.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == [f"{stock} left" for stock in range(4)]
    assert all(float(row["lower"]) <= float(row["value"]) <= float(row["upper"]) for row in rows)
    assert main(["solve", NAME, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["policy"] == [row["action"] for row in rows]
    assert told["certified"]
    assert "3 left" in (folder / "shop" / "report.html").read_text()


def test_search_train_evaluate_and_report_take_the_same_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", NAME, "--out", "shop"]) == 0
    assert main(["search", NAME, "--depth", "2", "--states", "1", "--values", "shop", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["action_values"][found["action"]] == max(
        value for value in found["action_values"] if value is not None
    )
    assert main(["train", NAME, "--steps", "128", "--no-progress", "--out", "run"]) == 0
    assert main(["evaluate", "run"]) == 2, "code is imported only when it is named again"
    assert f"--env '{NAME}'" in capsys.readouterr().err
    assert main(["evaluate", "run", "--env", NAME, "--episodes", "2"]) == 0
    assert main(["train", NAME, "--resume", "run", "--steps", "192", "--no-progress"]) == 0
    assert main(["search", NAME, "--depth", "1", "--states", "1", "--values", "run"]) == 0
    assert main(["report", "run", "--env", NAME, "--episodes", "1", "--out", "page"]) == 0
    assert (folder / "page" / "index.html").exists()
