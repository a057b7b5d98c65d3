"""Names of models, methods and priors on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import adalook as al
from adalook.cli.main import main
from adalook.cli.sources import build_method, build_model


def test_gymnasium_tables_are_sources() -> None:
    pytest.importorskip("gymnasium")
    lake = build_model("gym:FrozenLake-v1?map_name=8x8&is_slippery=false&discount=0.5")
    assert (lake.num_states, lake.discount, lake.deterministic) == (65, 0.5, True)
    assert not build_model("gym:FrozenLake-v1?is_slippery=true").deterministic


def test_gymnasium_that_is_not_installed_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert main(["solve", "gym:FrozenLake-v1"]) == 2
    assert "pip install 'adalook[gym]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("auto", "Auto"),
        ("vi", "VI"),
        ("pi", "PI"),
        ("mpi:20", al.ModifiedPolicyIteration(20).name),
        ("hpi:3", "3-PI"),
        ("HPI:3", "3-PI"),
        ("tlpi:0.94", "TLPI(0.94)"),
        ("tlpi:g^3", "TLPI(0.729)"),
        ("qlpi:2=0.1,4=0.05,8=0.02", "QLPI(2: 0.1, 4: 0.05, 8: 0.02)"),
        ("wlpi", "WLPI"),
        ("wlpi:4", "WLPI(4)"),
    ],
)
def test_methods_by_name(text: str, name: str) -> None:
    assert build_method(text, None, al.zoo.chain(n=9, discount=0.9))[0].name == name


@pytest.mark.parametrize("prior", ["exact", "few:2", "squares:3", None])
def test_priors_by_name(prior: str | None) -> None:
    maze = al.zoo.maze(size=12)
    method, about = build_method("tlpi:g^2", prior, maze)
    assert about is not None
    assert about["kind"] == (prior or "few:3")
    assert about["queries"] > 0
    assert al.solve(maze, method).converged


def test_umb_files_ask_for_their_discount(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.umb").write_bytes(b"")
    assert main(["solve", str(tmp_path / "x.umb")]) == 2
    assert "--discount" in capsys.readouterr().err


def test_a_model_of_ones_own_keeps_its_discount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--discount was passed over in silence."""
    (tmp_path / "ownmodel.py").write_text(
        "import adalook as al\nbuild = lambda discount=0.9: al.zoo.chain(discount=discount)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert build_model("ownmodel:build").discount == build_model("ownmodel:build", 0.9).discount == 0.9
    assert build_model("ownmodel:build?discount=0.5").discount == 0.5
    with pytest.raises(al.errors.ArgumentError, match=r"expected 0\.9.*ownmodel:build.discount=0\.5"):
        build_model("ownmodel:build", 0.5)
