"""`adalook solve --horizon`: a policy for each step, printed and written, and flags that do not go with it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import adalook as al
from adalook.cli.main import main


def test_a_policy_for_each_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = al.solve(al.zoo.forest(7), horizon=5)
    assert (
        main(["solve", "zoo:forest?num_states=7", "--horizon", "5", "--json", "--csv", str(tmp_path / "steps.csv")])
        == 0
    )
    about = json.loads(capsys.readouterr().out)
    assert about["horizon"] == 5
    assert np.array_equal(about["values"], expected.values)
    assert about["policy_loss"] == expected.policy_loss
    with (tmp_path / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 7
    for row in rows:
        step, state = int(row["step"]), int(row["state"])
        assert float(row["value"]) == expected.values[step, state]
        assert float(row["lower"]) <= float(row["value"]) <= float(row["upper"])
        assert row["action"] == expected.mdp.action_label(int(expected.policy[step, state]))


def test_the_summary_shows_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "zoo:forest?num_states=7", "--horizon", "3"]) == 0
    printed = capsys.readouterr().out
    assert "3 steps, by backward induction" in printed
    assert "step 2" in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--method", "pi"], "--method is not for a finite horizon"),
        (["--out", "answer"], "--csv FILE writes the policy of every step"),
        (["--max-seconds", "1"], "--max-seconds is not for a finite horizon"),
        (["--engine", "processes"], "--engine is not for a finite horizon"),
        (["--horizon", "0"], "horizon is wrong: expected a whole number >= 1, got 0"),
    ],
)
def test_flags_that_do_not_go_with_a_horizon(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", "zoo:chain?n=9", "--horizon", "3", *flags]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
