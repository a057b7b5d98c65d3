"""A method that is registered once shows up everywhere: command line, experiments, records, figures and page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

from adalook.cli.main import main
from adalook.errors import ArgumentError
from adalook.experiments.chain import ChainExperiment
from adalook.experiments.engines.processes import Processes
from adalook.experiments.maze import MazeExperiment
from adalook.experiments.runner import reproduce
from adalook.planning.rules import registry
from adalook.report.data.experiment import load_experiment
from adalook.report.figures.chain import chain
from adalook.report.figures.queries import overview
from adalook.report.pages.explorer import experiment_explorer
from tests import toy_method


@pytest.fixture
def toy() -> Iterator[None]:
    registry.register(toy_method.SPEC)
    yield
    del registry.METHODS["toy"]


@pytest.mark.usefixtures("toy")
def test_a_registered_method_is_solved_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "zoo:maze", "--method", "toy:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "Toy"
    assert main(["solve", "zoo:maze", "--method", "help"]) == 0
    assert "toy:3" in capsys.readouterr().out
    assert main(["solve", "zoo:maze", "--method", "magic"]) == 2
    assert "toy:3" in capsys.readouterr().err


@pytest.mark.usefixtures("toy")
def test_a_registered_method_is_run_in_experiments_and_drawn(tmp_path: Path) -> None:
    experiment = ChainExperiment(lengths=(5, 8), depths=(1, 2))
    assert experiment.methods == ("wlpi", "toy:2")
    reproduce(experiment, tmp_path, Processes(1))
    found = load_experiment(tmp_path)
    toys = found.select("toy")
    assert [record.label for record in toys] == ["Toy 2", "Toy 2"]
    assert [record.iterations for record in toys] == [record.iterations for record in found.select("hpi", depth=2)]
    assert toys[0].style.description == "toy method"
    drawn = chain(found)
    assert drawn is not None
    marks = {
        (line.get_label(), to_hex(line.get_color()), line.get_marker())
        for panel in drawn.figure.axes
        for line in panel.lines
    }
    assert ("Toy", "#f0e442", "h") in marks
    assert "Toy" in [text.get_text() for panel in drawn.figure.axes for text in panel.get_xticklabels()]


@pytest.mark.usefixtures("toy")
def test_a_registered_method_is_compared_on_the_maze(tmp_path: Path) -> None:
    small = MazeExperiment(seeds=1, size=8, depths=(1, 2), kappa_powers=(2,), squares=(2,), few=(2,))
    reproduce(small, tmp_path, Processes(1))
    found = load_experiment(tmp_path)
    compared = overview(found)
    assert compared is not None
    assert "Toy 2" in [text.get_text() for text in compared.figure.axes[0].get_yticklabels()]
    assert "toy method" in str(experiment_explorer(found))


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ArgumentError, match="registered already"):
        registry.register(registry.METHODS["hpi"])


def test_a_method_that_cannot_be_sent_to_workers_is_refused() -> None:
    local = dataclasses.replace(toy_method.SPEC, name="local", parse=lambda setting, mdp, prior: toy_method.Toy(2))
    with pytest.raises(ArgumentError, match=r"'local' cannot be sent to the processes .* top level of a module"):
        registry.register(local)
    assert "local" not in registry.METHODS


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that installs a package with these entry points."""
    before = dict(registry.METHODS)

    def install(entry_points: str) -> None:
        information = tmp_path / "toys-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[adalook.methods]\n{entry_points}\n")
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    registry.METHODS.clear()
    registry.METHODS.update(before)


def test_a_method_of_an_installed_package_is_known_to_the_command_line(
    install: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("toy = tests.toy_method:SPEC")
    assert main(["solve", "zoo:maze", "--method", "toy:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "Toy"
    assert main(["solve", "zoo:maze", "--method", "magic"]) == 2
    assert "toy:3" in capsys.readouterr().err


def test_methods_of_installed_packages_are_listed_and_compared(
    install: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("toy = tests.toy_method:SPEC")
    assert registry.compared_methods(beyond_paper=True) == ["wlpi", "toy:2"]
    del registry.METHODS["toy"]
    assert main(["solve", "zoo:maze", "--method", "help"]) == 0
    assert "toy:3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("odd = tests.no_such_module:SPEC", "the installed method 'odd' cannot be loaded: got ModuleNotFoundError"),
        ("odd = tests.toy_method:SPEC", "the installed method 'odd' is wrong: expected its MethodSpec"),
        ("odd = tests.toy_method:Toy", "the installed method 'odd' is wrong: expected its MethodSpec"),
    ],
)
def test_a_broken_installed_method_is_named_and_hurts_no_other(
    install: Callable[[str], None], entry: str, complaint: str
) -> None:
    install(entry)
    assert registry.find_method("hpi:3").setting == "3"
    with pytest.raises(ArgumentError, match=complaint):
        registry.find_method("odd")


def test_every_example_makes_a_method_of_its_class() -> None:
    import adalook as al

    mdp = al.zoo.chain(n=9)
    for spec in registry.METHODS.values():
        for text in (*spec.examples, *spec.compared):
            assert type(registry.find_method(text).make(mdp)) is spec.method_class
