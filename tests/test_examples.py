"""The examples run, shortened where they would take long, and print what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SHORTER: dict[str, dict[str, int]] = {
    "maze_gif": {"size": 12},
    "frozen_lake": {"episodes": 100},
    "own_env": {"steps": 300},
    "learn_frozen_lake": {"steps": 64},
    "optuna_search": {"trials": 1, "steps": 64},
}
"""Arguments of `main` with which an example takes seconds."""


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_the_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "optuna_search":
        pytest.importorskip("optuna")
    load(name).main(**SHORTER.get(name, {}))
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.parametrize(("map_name", "steps"), [("4x4", 5_000), ("8x8", 15_000)])
def test_qldqn_learns_slippery_lakes(map_name: str, steps: int) -> None:
    """Within five points of the optimal success rate; policies are judged exactly, so that luck has no part in it."""
    learned, best = load("learn_frozen_lake").main(map_name, steps)
    assert learned >= best - 0.05
