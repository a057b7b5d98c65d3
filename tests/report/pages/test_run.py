"""`adalook report RUN …`: the page says what the run did, and why something is missing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from adalook.cli.main import main
from adalook.report.pages.run import duration
from adalook.storage.documents import with_digest
from tests.report.pages.test_experiments import Checked
from tests.report.synthetic_run import BREAKOUT, run_config, write_run

SMALL = ["--buffer-transitions", "500", "--learning-starts-steps", "100", "--hidden-units", "8", "--no-tensorboard"]
SOON = ["--ranked-transitions", "40", "--report-period-steps", "100", "--evaluation-episodes", "2"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run, evaluated once."""
    run = tmp_path_factory.mktemp("runs") / "short"
    ends = ["--steps", "400", "--evaluation-period-steps", "300", "--out", str(run)]
    shares = ["--nodes-per-step", "0", "--depth-shares", "0.7", "0.5"]
    assert main(["train", BREAKOUT, *shares, *ends, *SMALL, *SOON]) == 0
    return run


def words(page: Path) -> str:
    """What a reader sees, more or less."""
    text = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page.read_text(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def report(out: Path, *arguments: str | Path) -> str:
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return words(out / "index.html")


def complaint(arguments: list[str | Path], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["report", *map(str, arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("adalook: error: ")
    assert error.count("\n") == 1
    return error


def test_a_trained_run_has_curves_and_pictures_of_its_best_agent(trained: Path, tmp_path: Path) -> None:
    text = report(tmp_path / "page", trained, "--episodes", "2", "--decisions", "60")
    assert "QL-DQN on MinAtar/Breakout-v1" in text
    assert "Agent steps 400" in text
    assert re.search(r"Seen by the agent with the best evaluation, of step (304|400), in 2 evaluation episodes", text)
    assert "shares 0.7, 0.5 (preset: 0.3, 0.1)" in text
    drawn = {path.name for path in (tmp_path / "page" / "figures").iterdir()}
    assert {f"{name}.{kind}" for name in ("learning", "loss", "states") for kind in ("svg", "png")} <= drawn


@pytest.mark.slow
def test_without_a_best_agent_the_newest_checkpoint_plays(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(run / "best")
    assert "Seen by the agent of the newest checkpoint, of step 400," in report(tmp_path / "page", run)


def test_without_any_checkpoint_the_page_says_why_there_are_no_pictures(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(run / "best")
    shutil.rmtree(run / "checkpoints")
    text = report(tmp_path / "page", run)
    assert "No images of states:" in text
    assert "has no checkpoint yet" in text
    assert not list((tmp_path / "page" / "figures").glob("states*"))


def test_a_checkpoint_of_another_version_is_said_so(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adalook.learning.runs import run as runs

    def broken(*_: object) -> None:
        raise KeyError("something new")

    monkeypatch.setattr(runs, "load_agent", broken)
    assert "does not fit this version of adalook: got KeyError('something new')" in report(tmp_path / "page", trained)


def test_numbers_of_the_page_are_those_of_the_log(tmp_path: Path) -> None:
    text = report(tmp_path / "page", write_run(tmp_path / "run"), "--episodes", "0")
    for said in (
        "Best evaluation 9.00 ± 1.00, 2 episodes, at step 800; the best of 2, so biased upwards",
        "Last evaluation 9.00",
        "Last training episodes 9.55 mean of the last 10 of 100",
        "Agent steps 1,000 50 a second",
        "Training time 20.0 s up to step 1,000",
        "All as in the preset",
        "--episodes 0 asked for none",
    ):
        assert said in text, said


def test_what_differs_from_the_preset_is_listed_and_escaped(tmp_path: Path) -> None:
    about = run_config(prior="<b>run</b>", discount=0.9)
    place = tmp_path / "page"
    text = report(place, write_run(tmp_path / "run", about), "--episodes", "0")
    assert "discount 0.9 (preset: 0.99)" in text
    assert "prior <b>run</b> (preset: self)" in text
    assert "<b>run</b>" not in (place / "index.html").read_text()


def test_the_page_is_whole_and_asks_for_nothing_from_elsewhere(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "runs" / name) for name in ("a", "b")]
    report(tmp_path / "page", *runs, "--episodes", "0")
    page = Checked((tmp_path / "page" / "index.html").read_text())
    assert len(page.ids) == len(set(page.ids))
    assert page.addresses
    for address in page.addresses:
        assert address.startswith(("data:", "#"))
        assert not address.startswith("#") or address[1:] in page.ids


@pytest.mark.slow
def test_several_runs_share_a_page_with_curves_by_env_and_a_section_each(tmp_path: Path) -> None:
    other = run_config("dqn", "MinAtar/Freeway-v1") | {"depth": 2}
    runs = [write_run(tmp_path / "a" / "run"), write_run(tmp_path / "b" / "run")]
    runs.append(write_run(tmp_path / "c", other))
    text = report(tmp_path / "page", *runs, "--episodes", "0")
    assert "3 training runs" in text
    assert "a/run MinAtar/Breakout-v1 QL-DQN 7 1,000 20.0 s 50 9.55 9.00 9.00" in text
    assert "c MinAtar/Freeway-v1 DQN of depth 2 7" in text
    assert "MinAtar/Breakout-v1: learning curves, by steps and by time" in text
    assert "Lines are the mean of the last 10 episodes of training." in text
    headings = re.findall(r"<h2>(.*?)</h2>", (tmp_path / "page" / "index.html").read_text())
    assert headings == ["Compared", "a/run", "b/run", "c"]
    names = {path.stem for path in (tmp_path / "page" / "figures").iterdir()}
    assert {"learning", "run-3-learning", "run-3-depth"} <= names
    assert "run-1-learning" not in names  # its curve is among those compared
    assert "learning-2" not in names  # the third run is alone in its environment: its own curve is enough


def test_a_torn_log_is_said_on_the_page_and_on_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run")
    with open(run / "log.jsonl", "a") as file:
        file.write('{"kind": "epi')
    text = report(tmp_path / "page", run, "--episodes", "0")
    assert "log.jsonl ends in half a line, which is left out: the run was killed, or is still going on." in text
    assert "run: log.jsonl ends in half a line" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_with_reports_but_no_episode_yet_has_no_curve(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    lines = [line for line in (run / "log.jsonl").read_text().splitlines() if json.loads(line)["kind"] == "progress"]
    (run / "log.jsonl").write_text("\n".join(lines) + "\n")
    text = report(tmp_path / "page", run, "--episodes", "0")
    assert "No episode was over yet" in text
    assert "Loss and value" in text
    assert "Learning curve," not in text
    compared = report(tmp_path / "both", run, write_run(tmp_path / "other"), "--episodes", "0")
    assert compared.count("No episode was over yet") == 1
    assert compared.count("Learning curve,") == 1  # the other run's own


def test_what_is_wrong_takes_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = write_run(tmp_path / "run"), ["--out", tmp_path / "page"]
    results = tmp_path / "results"
    results.mkdir()
    (results / "experiment.json").write_text("{}")
    assert "do not fit on one page" in complaint([run, results, *out], capsys)
    assert "named twice" in complaint([run, tmp_path / "." / "run", *out], capsys)
    assert "--decisions is wrong: expected a whole number >= 1" in complaint([run, "--decisions", "0", *out], capsys)
    nowhere = complaint([tmp_path / "nowhere", *out], capsys)
    assert "nothing to report in" in nowhere
    assert "experiment.json) or a run of adalook train (config.json), got no such directory" in nowhere
    (tmp_path / "parent" / "empty").mkdir(parents=True)
    assert "got neither.\n" in complaint([run, tmp_path / "parent", *out], capsys)
    write_run(tmp_path / "parent" / "below")
    assert f"Name one of {tmp_path / 'parent' / 'below'}" in complaint([tmp_path / "parent", *out], capsys)
    (run / "config.json").write_text("{")
    assert "config.json is damaged" in complaint([run, *out], capsys)
    (run / "config.json").unlink()
    assert "is no run" in complaint([run, *out], capsys)
    best = tmp_path / "run" / "best"
    best.mkdir()
    (best / "config.json").write_text(json.dumps(with_digest(run_config())))
    assert "has no log.jsonl" in complaint([best, *out], capsys)
    assert not (tmp_path / "page").exists()


WITHOUT_TORCH = """
import sys

class NotInstalled:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NotInstalled())
from adalook.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_curves_need_no_torch_and_pictures_say_that_they_do(tmp_path: Path) -> None:
    run, out = write_run(tmp_path / "run"), tmp_path / "page"
    command = [sys.executable, "-c", WITHOUT_TORCH, "report", str(run), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'adalook[learn]'" in words(out / "index.html")
    assert (out / "figures" / "learning.svg").exists()


def test_durations_are_rounded_before_they_are_split() -> None:
    assert duration(3599.6) == "1 h 0 min"
    assert duration(119.6) == "2 min 0 s"
