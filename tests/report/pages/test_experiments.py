"""The report's page: complete, self-contained, small, and honest about what it leaves out."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adalook.cli.main import main
from adalook.errors import FileError
from adalook.report.claims.verdicts import CheckedClaim, ConventionVerdict, Verdict
from adalook.report.data.experiment import ExperimentData, load_experiment
from adalook.report.figures import maze as figures_maze
from adalook.report.figures import planning as figures
from adalook.report.figures.style import FigureSpec
from adalook.report.pages.experiments import report_page, write_report
from adalook.report.pages.explorer import experiment_explorer, pack
from tests.report.small_maze import run_small_maze

VOID = {"meta", "link", "img", "input", "br"}


class Checked(HTMLParser):
    """Reads a page, and finds elements that are not closed and addresses that point elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.data: dict[str, Any] = {}
        self._carrier = ""
        self.feed(page)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.addresses += [found[name] or "" for name in ("src", "href") if name in found]
        self.ids += [found["id"] or ""] if "id" in found else []
        self._carrier = (found.get("id") or "") if found.get("type") == "application/json" else ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._carrier = ""

    def handle_data(self, data: str) -> None:
        if self._carrier:
            self.data[self._carrier] = json.loads(data)


def unpacked(packed: dict[str, Any]) -> dict[str, np.ndarray]:
    content = zlib.decompress(base64.b64decode(packed["data"]))
    arrays, offset = {}, 0
    for name, kind, length in packed["arrays"]:
        assert offset % np.dtype(kind).itemsize == 0  # else the browser refuses
        arrays[name] = np.frombuffer(content, kind, length, offset)
        offset += arrays[name].nbytes
    assert offset == len(content)
    return arrays


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small_maze(tmp_path_factory.mktemp("results") / "maze")


@pytest.fixture(scope="module")
def report(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`adalook report`, without arguments, where there are results; with some of its figures, because all take long."""
    place = tmp_path_factory.mktemp("work")
    shutil.copytree(results, place / "results" / "maze")
    everything = figures.planning_figures

    def some(experiments: dict[str, ExperimentData]) -> list[FigureSpec]:
        by_name = {spec.name: spec for spec in everything(experiments)}
        return [by_name[f"figure-{name}"] for name in ("2", "3", "5-root-simulated", "5-shared-simulated")]

    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(place):
        patch.setattr(figures, "planning_figures", some)
        assert main(["report"]) == 0
    return place / "report"


# The report --------------------------------------------------------------------------------------------------------


def test_the_report_is_a_page_the_claims_and_the_figures(report: Path) -> None:
    names = {path.name for path in report.iterdir()}
    assert names == {"index.html", "claims.md", "figures"}
    kinds = {path.suffix for path in (report / "figures").iterdir()}
    assert kinds == {".svg", ".png"}
    assert (report / "claims.md").read_text().count("\n| ") > 5
    assert (report / "index.html").stat().st_size < 5_000_000


def test_the_page_is_whole_and_asks_for_nothing_from_elsewhere(report: Path) -> None:
    page = Checked((report / "index.html").read_text())
    assert len(page.ids) == len(set(page.ids))
    assert page.addresses
    for address in page.addresses:
        assert address.startswith(("data:", "#"))
        assert not address.startswith("#") or address[1:] in page.ids


def test_the_page_shows_every_figure_and_every_claim(report: Path) -> None:
    text = (report / "index.html").read_text()
    assert text.count('<figure class="figure">') == len(list((report / "figures").glob("*.svg"))) == 4
    assert text.count('<article class="claim"') == (report / "claims.md").read_text().count("\n### ")


def test_the_headline_is_the_mean_over_seeds_in_root_and_simulated(results: Path, report: Path) -> None:
    records = load_experiment(results).records
    wave = [record.total("root", "simulated") for record in records if record.group == "wlpi"]
    assert len(wave) == 2
    assert f"<b>{np.mean(wave):,.0f}</b>" in (report / "index.html").read_text()


def test_the_explorer_carries_the_saved_arrays_bit_for_bit(results: Path, report: Path) -> None:
    data = Checked((report / "index.html").read_text()).data["explorer-data"]
    experiment = load_experiment(results)
    traced = [record for record in experiment.records if record.trace]
    assert len(data["runs"]) == len(traced) > 10
    assert [model["name"] for model in data["models"]] == ["0", "1"]
    for kept in traced:
        key = (str(kept.seed), f"{kept.group}/{kept.label}")
        (run,) = [run for run in data["runs"] if (run["model"], run["method"]) == key]
        trace, shown = experiment.trace(kept), unpacked(run["packed"])
        for name in ("values", "policy", "depth"):
            assert np.array_equal(shown[name].reshape(kept.passes, -1), getattr(trace, name)), name
        assert run["distance"] == kept.distance.tolist()
        assert run["queries"]["improvement"]["root"] == list(kept.improvement["root"])


def test_models_carry_the_optimal_values_and_the_layout(results: Path) -> None:
    experiment = load_experiment(results)
    model = json.loads(experiment_explorer(experiment).text)["models"][1]
    saved = experiment.models["size=10,discount=0.98,seed=1"]
    arrays = unpacked(model["packed"])
    assert np.array_equal(arrays["values"], saved.values)
    assert np.array_equal(arrays["cells"].reshape(-1, 2), saved.layout.cells)
    assert np.array_equal(arrays["walls"].reshape(10, 10), saved.layout.walls)
    assert model["goals"] == [list(cell) for cell in saved.layout.goals]
    assert model["places"] == ["start", "goal", "trap", "wall"]


def test_too_many_traces_are_left_out_seed_by_seed_and_the_page_says_so(results: Path) -> None:
    experiment = load_experiment(results)
    explorer = experiment_explorer(experiment, most_bytes=1)
    assert {run["model"] for run in json.loads(explorer.text)["runs"]} == {"0"}
    assert explorer.omitted == "To keep the page small it shows 1 of 2 seeds."
    assert experiment_explorer(experiment).omitted == ""


def test_without_traces_there_is_no_explorer(results: Path) -> None:
    experiment = load_experiment(results)
    untraced = replace(experiment, records=tuple(replace(record, trace=None) for record in experiment.records))
    page = report_page({"maze": untraced}, [], [])
    assert 'id="explorer"' not in page
    assert "#explorer" not in Checked(page).addresses


def test_what_results_say_cannot_become_markup(results: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    experiment = load_experiment(results)
    records = tuple(replace(record, label=evil + record.label) for record in experiment.records)
    claim = CheckedClaim("x", evil, evil, evil, [ConventionVerdict(evil, Verdict.FAILS, evil)], Verdict.FAILS, evil)
    page = report_page({"maze": replace(experiment, records=records)}, [], [claim])
    assert evil not in page
    assert Checked(page).data["explorer-data"]["runs"][0]["label"].startswith(evil)


def test_a_verdict_is_a_word_and_a_colour(results: Path) -> None:
    claims = [CheckedClaim(v.name, "here", "it is so", "look", [], v, "") for v in Verdict]
    page = report_page({"maze": load_experiment(results)}, [], claims)
    for style, verdict in zip(("holds", "part", "not", "unknown"), Verdict, strict=True):
        assert page.count(f'<span class="verdict {style}">{verdict.value}</span>') == 2  # its count and its row


def test_figure_4_counts_iterations_from_zero_as_figure_3_and_the_explorer_do(results: Path) -> None:
    maze = load_experiment(results)
    figure = figures_maze.histograms(maze).figure
    assert figure.axes[0].get_title(loc="left") == "iteration t = 0"
    runs = [record.effective_lookahead for record in maze.records if record.effective_lookahead is not None]
    bars = [bar.get_height() for bar in figure.axes[0].patches]
    assert bars == pytest.approx(np.mean([run[0] for run in runs], axis=0))
    for panel in figure.axes[1:]:
        number = int(panel.get_title(loc="left").removeprefix("iteration t = "))
        shares = [run[number] for run in runs if len(run) > number]
        assert [bar.get_height() for bar in panel.patches] == pytest.approx(np.mean(shares, axis=0))


def test_packing_puts_wide_items_first() -> None:
    packed = pack({"bytes": np.arange(3, dtype=np.uint8), "floats": np.array([0.1, np.pi])})
    assert [name for name, _, _ in packed["arrays"]] == ["floats", "bytes"]
    assert unpacked(packed)["floats"].tolist() == [0.1, np.pi]


# adalook report ----------------------------------------------------------------------------------------------------


def test_report_without_results_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 2
    assert "Run adalook reproduce maze first" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_report_of_a_folder_of_results_reports_all_of_them(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).symlink_to(results)
    (tmp_path / "minatar").symlink_to(Path(__file__).parents[3] / "results" / "minatar")
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert f"{tmp_path / 'second'} holds the same experiment" in capsys.readouterr().err
    (tmp_path / "second").unlink()
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "| MinAtar | holds in part |" in (tmp_path / "out" / "claims.md").read_text(), "learning has rows, too"


def test_report_of_a_wrong_directory_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_same_experiment_twice_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="same experiment"):
        write_report([results, results], tmp_path)
