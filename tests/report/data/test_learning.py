"""Statistics of learning experiments, and what a page of training runs says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from adalook.cli.main import main
from adalook.errors import FileError
from adalook.report.data import statistics
from adalook.report.data.learning import load_learning, memory_summary
from adalook.report.figures import learning as learning_figures

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


def test_curves_of_seeds_meet_where_all_have_one() -> None:
    curves = [(np.array([0.0, 10.0]), np.array([0.0, 10.0])), (np.array([2.0, 8.0]), np.array([4.0, 10.0]))]
    x, mean, low, high = learning_figures.over_seeds(curves)
    assert (x[0], x[-1]) == (2.0, 8.0)
    assert (low[0], mean[0], high[0]) == (2.0, 3.0, 4.0)


@pytest.mark.parametrize(("mebibytes_a_minute", "leaks"), [(0.0, False), (10.0, True)])
def test_growth_beyond_the_replay_buffer_is_a_leak(mebibytes_a_minute: float, leaks: bool) -> None:
    """The replay buffer itself grows by 100 MiB a minute in both."""
    minutes = list(range(1, 16))
    samples = {
        "minutes": minutes,
        "replay_mib": [100 * minute for minute in minutes],
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


def test_an_experiment_without_runs_has_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = json.loads((KEPT / "atari" / "experiment.json").read_text())
    (tmp_path / "experiment.json").write_text(json.dumps(index | {"runs": []}))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report")]) == 2
    assert "no run" in capsys.readouterr().err
