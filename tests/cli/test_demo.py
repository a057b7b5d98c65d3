"""`adalook demo`."""

from __future__ import annotations

from pathlib import Path

import pytest

from adalook.cli.main import main


def test_demo_compares_and_draws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert not err
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip().endswith("0.0e+00")}
    assert list(rows) == ["Auto", "PI", "2-PI", "4-PI", "TLPI", "QLPI", "WLPI"]
    totals = {name: int(row[-3].replace(",", "")) for name, row in rows.items()}
    assert rows["Auto"][1] == "(default)"
    assert totals["Auto"] == totals["WLPI"] == min(totals.values())
    for name in ("wlpi", "qlpi"):
        assert (tmp_path / "demo" / name / "solution.png").stat().st_size > 10_000
        assert str(tmp_path / "demo" / name / "solution.png") in out
