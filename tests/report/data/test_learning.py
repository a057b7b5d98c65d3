"""Statistics of learning experiments, and what a page of training runs says."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from adalook.cli.main import main
from adalook.errors import FileError
from adalook.report.data import statistics
from adalook.report.data.learning import learning_summary, load_learning, memory_summary
from adalook.report.data.learning_curves import mean_and_spread, normalised_iqm, score_curve

KEPT = Path(__file__).parents[3] / "results"


def test_interquartile_mean_drops_the_outer_quarters() -> None:
    strata = [np.array([0.0, 1.0, 2.0, 100.0]), np.array([3.0, 4.0, -50.0, 5.0])]
    assert statistics.stratified(strata).value == np.mean([1.0, 2.0, 3.0, 4.0])


def test_seeds_are_drawn_within_games() -> None:
    """Games that differ, seeds that do not: no resample may change anything."""
    estimate = statistics.stratified([np.zeros(4), np.ones(4)], statistics.row_means)
    assert (estimate.low, estimate.value, estimate.high) == (0.5, 0.5, 0.5)


def test_interval_agrees_with_theory_on_many_seeds() -> None:
    scores = np.random.default_rng(0).normal(3.0, 2.0, 400)
    estimate = statistics.stratified([scores], statistics.row_means)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * scores.std() / 20.0, rel=0.05)


@pytest.mark.parametrize(
    ("first", "second", "chance"), [([3, 4], [1, 2], 1.0), ([1, 2], [1, 2], 0.5), ([1, 1], [1, 2], 0.25)]
)
def test_probability_of_improvement_counts_ties_half(first: list[float], second: list[float], chance: float) -> None:
    estimate = statistics.probability_of_improvement([np.array(first, float)], [np.array(second, float)])
    assert estimate.value == chance
    assert estimate.low <= chance <= estimate.high


def test_difference_has_the_sign_of_the_first() -> None:
    gap = statistics.stratified_difference(
        [np.array([3.0, 3.1, 3.2])], [np.array([1.0, 1.1, 1.2])], statistics.row_means
    )
    assert gap.value == pytest.approx(2.0)
    assert gap.above_zero


def test_intervals_agree_with_scipy() -> None:
    rng = np.random.default_rng(3)
    games = [rng.normal(3.0, 2.0, 12), rng.normal(1.0, 0.5, 9)]

    def iqm(*samples: np.ndarray, axis: int) -> np.ndarray:
        rows = np.concatenate(samples, axis=-1)
        return statistics.interquartile_mean(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:-1])

    theirs = scipy_bootstrap(games, iqm, n_resamples=10_000, method="percentile", random_state=1).confidence_interval
    ours = statistics.stratified(games)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.05)


CURVES = [(np.array([0.0, 10.0]), np.array([0.0, 10.0])), (np.array([2.0, 8.0]), np.array([4.0, 10.0]))]


def test_curves_of_seeds_meet_where_all_have_one() -> None:
    x, mean, low, high = mean_and_spread([*CURVES, (np.empty(0), np.empty(0))])
    assert (x[0], x[-1]) == (2.0, 8.0)
    assert mean[0] == 3.0
    assert (low[0], high[0]) == pytest.approx((3.0 - 2.0**0.5, 3.0 + 2.0**0.5))  # of a sample: n − 1
    assert len(mean_and_spread([(np.empty(0), np.empty(0))]).x) == 0


def test_games_are_normalised_before_they_are_put_together() -> None:
    band = normalised_iqm([CURVES[:1], [(x, 100.0 + 10.0 * y) for x, y in CURVES[:1]]], [(0.0, 10.0), (100.0, 200.0)])
    assert band.centre == pytest.approx(np.linspace(0.0, 1.0, len(band.x)))
    assert band.low == pytest.approx(band.high), "one seed per game: nothing to resample"


def test_a_score_stays_until_the_next_episode_is_over() -> None:
    episodes, scores = np.zeros(100, int), np.zeros(100)
    episodes[[20, 60]], scores[[20, 60]] = 1, (2.0, 6.0)
    timeline = {"steps": [10] * 100, "episodes": episodes.tolist(), "scores": scores.tolist()}
    x, y = score_curve({"timeline": timeline, "definition": {"seconds": 100.0}}, "steps")
    assert (x[0], x[-1]) == (170.0, 1000.0)  # within four bins of the episode
    assert set(y[x < 560]) == {2.0}
    assert set(y[x >= 570]) == {6.0}
    none = timeline | {"episodes": [0] * 100}
    assert len(score_curve({"timeline": none, "definition": {"seconds": 100.0}}, "seconds")[0]) == 0


@pytest.mark.parametrize(("mebibytes_a_minute", "leaks"), [(0.0, False), (10.0, True)])
def test_growth_beyond_the_replay_buffer_is_a_leak(mebibytes_a_minute: float, leaks: bool) -> None:
    """The replay buffer itself grows by 100 MiB a minute in both."""
    minutes = list(range(1, 16))
    samples = {
        "minutes": minutes,
        "replay_mib": [100 * minute for minute in minutes],
        "open_files": [8] * len(minutes),
        "resident_mib": [600 + (100 + mebibytes_a_minute) * minute for minute in minutes],
    }
    found = memory_summary({"samples": samples})
    assert found is not None
    assert found["beyond_replay_mib_per_minute"] == pytest.approx(mebibytes_a_minute, abs=1e-6)
    assert found["leaks"] is leaks


@pytest.mark.parametrize("name", [name for name in ("minatar", "atari") if (KEPT / name / f"{name}.md").exists()])
def test_kept_results_give_the_kept_page(name: str, tmp_path: Path) -> None:
    assert main(["report", str(KEPT / name), "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.md").read_text() == (KEPT / name / f"{name}.md").read_text()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "adalook learning experiment", "format_version": 1}'])
def test_damaged_results_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text(text)
    with pytest.raises(FileError):
        load_learning(tmp_path)


def test_an_experiment_without_runs_names_what_is_missing(tmp_path: Path) -> None:
    index = json.loads((KEPT / "minatar" / "experiment.json").read_text())
    (tmp_path / "experiment.json").write_text(json.dumps(index | {"runs": [], "missing": index["runs"]}))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "minatar.md").read_text()
    assert f"{len(index['runs'])} of {len(index['runs'])} planned runs are missing" in page
    assert page.count("**not tested**") == page.count("| **"), "no verdict is a guess"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The kept results of MinAtar, to take runs from and change them."""
    return Path(shutil.copytree(KEPT / "minatar", tmp_path / "minatar"))


def test_records_count_whether_the_index_knows_them_or_not(copied: Path) -> None:
    index = json.loads((copied / "experiment.json").read_text())
    known = [name for name in index["runs"] if "--ql--" in name]
    agents = {"ql": index["agents"]["ql"]}
    (copied / "experiment.json").write_text(json.dumps(index | {"runs": known, "missing": [], "agents": agents}))
    data = load_learning(copied)
    assert sorted(data.planned) == sorted(index["runs"])
    assert data.missing == ()
    assert len(data.scores("Breakout", "depth1")) == 3
    assert data.styles["depth1"].title == "depth1", "nobody told what to call it"


@pytest.mark.parametrize(
    "change",
    [
        {"steps": None},
        {"cpu_seconds": "long"},
        {"final": {"score": 1.0, "scores": [1.0]}},
        {"final": {"score": [], "scores": [1.0], "mean_depth": 1.0}},
        {"timeline": {"steps": [1], "depths": {}}},
        {"samples": {"minutes": 3}},
        {"last_training_score": {}},
    ],
)
def test_records_of_other_things_than_numbers_are_refused(change: dict[str, object], copied: Path) -> None:
    path = copied / "runs" / "Breakout--ql--0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileError, match="damaged results"):
        load_learning(copied)


def test_outdated_records_are_left_out_and_named(copied: Path) -> None:
    path = copied / "runs" / "Breakout--ql--0.json"
    index = json.loads((copied / "experiment.json").read_text())
    missing = load_learning(copied).missing
    outdated = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest()}
    (copied / "experiment.json").write_text(json.dumps(index | {"outdated": outdated}))
    data = load_learning(copied)
    assert data.outdated == (path.stem,)
    assert set(data.missing) == {path.stem, *missing}
    assert len(data.scores("Breakout", "ql")) == 2
    path.write_bytes(path.read_bytes() + b"\n")  # made again since
    assert load_learning(copied).missing == missing


def test_runs_without_episodes_or_evaluations_have_a_page(copied: Path) -> None:
    for path in (copied / "runs").glob("*.json"):
        record = json.loads(path.read_text())
        if record["agent"] != "random":
            bins = len(record["timeline"]["steps"])
            record |= {"final": None, "interim": [], "last_training_score": None}
            record["timeline"] |= {"episodes": [0] * bins, "scores": [0.0] * bins}
            path.write_text(json.dumps(record))
    assert main(["report", str(copied), "--out", str(copied)]) == 0
    page = (copied / "minatar.md").read_text()
    assert "| QL-DQN (`ql`) | 3 | – | – |" in page
    assert "Depths used by time" in page
    assert "Figure 6" not in page.split("## Claims")[1].split("How each")[1]
    assert "**holds" not in page


def test_an_agent_that_was_not_trained_has_a_score_and_no_speed() -> None:
    cell = learning_summary(load_learning(KEPT / "atari"))["games"]["Tutankham"]["agents"]["search-60"]
    assert cell["scores"] == [pytest.approx(147.333, abs=0.01)]
    assert (cell["steps_per_second"], cell["nodes_per_step"], cell["wall_per_cpu"]) == (None, None, None)
