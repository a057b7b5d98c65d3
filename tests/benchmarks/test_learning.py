"""The learning benchmark: its statistics, what counts as finished, how it ends, and a report from real runs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adalook.learning.acting import Decision
from adalook.learning.training import Episode, Round
from adalook.storage.files import make_directory
from benchmarks import learning, learning_ale_report, learning_contenders, learning_figures, learning_report
from benchmarks import learning_statistics as statistics
from benchmarks.learning_contenders import CONTENDERS, RANDOM, Contender, Game, Job
from benchmarks.learning_run import BINS, INTERIM, Timeline, run

SECONDS = 1.0


def test_interquartile_mean_drops_the_outer_quarters() -> None:
    strata = [np.array([0.0, 1.0, 2.0, 100.0]), np.array([3.0, 4.0, -50.0, 5.0])]
    assert statistics.aggregate(strata).value == np.mean([1.0, 2.0, 3.0, 4.0])


def test_seeds_are_drawn_within_games() -> None:
    """Games that differ, seeds that do not: no resample may change anything."""
    estimate = statistics.aggregate([np.zeros(4), np.ones(4)], statistics.mean_of_games)
    assert (estimate.low, estimate.value, estimate.high) == (0.5, 0.5, 0.5)


def test_interval_agrees_with_theory_on_many_seeds() -> None:
    scores = np.random.default_rng(0).normal(3.0, 2.0, 400)
    estimate = statistics.aggregate([scores], statistics.mean_of_games)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * scores.std() / 20.0, rel=0.05)


@pytest.mark.parametrize(
    ("first", "second", "chance"), [([3, 4], [1, 2], 1.0), ([1, 2], [1, 2], 0.5), ([1, 1], [1, 2], 0.25)]
)
def test_probability_of_improvement_counts_ties_half(first: list[float], second: list[float], chance: float) -> None:
    estimate = statistics.probability_of_improvement([np.array(first, float)], [np.array(second, float)])
    assert estimate.value == chance
    assert estimate.low <= chance <= estimate.high


def test_difference_has_the_sign_of_the_first() -> None:
    gap = statistics.difference([np.array([3.0, 3.1, 3.2])], [np.array([1.0, 1.1, 1.2])], statistics.mean_of_games)
    assert gap.value == pytest.approx(2.0)
    assert gap.above_zero


def test_seeds_come_first_and_random_play_before_all() -> None:
    jobs = learning.jobs_for(["Breakout", "Asterix"], ["depth0", "ql"], [0, 1], 1.0)
    assert [job.name for job in jobs[:4]] == [
        "Breakout--random--0",
        "Asterix--random--0",
        "Breakout--depth0--0",
        "Breakout--ql--0",
    ]
    assert [job.seed for job in jobs[2:]] == [0] * 4 + [1] * 4


class TestStaleness:
    job = Job("Breakout", "ql", 0, 5.0)

    @property
    def record(self) -> dict[str, Any]:
        """As it comes from the disk."""
        return dict(json.loads(json.dumps({"definition": self.job.definition()})))

    def test_own_record_is_its_result(self) -> None:
        assert self.job.is_result(self.record)

    def test_other_budget_is_not(self) -> None:
        assert not dataclasses.replace(self.job, seconds=6.0).is_result(self.record)

    def test_other_settings_are_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        record = self.record
        tuned = {**CONTENDERS["ql"].settings, "ranked_transitions": 500}
        monkeypatch.setitem(CONTENDERS, "ql", Contender("QL", None, tuned))
        assert not self.job.is_result(record)

    def test_setting_added_since_at_its_default_is_no_change(self) -> None:
        record = self.record
        assert record["definition"]["config"].pop("head_balance") == 0.0
        assert self.job.is_result(record)

    def test_tuning_qldqn_leaves_runs_of_dqn_as_they_are(self) -> None:
        job = Job("Breakout", "depth1", 0, 5.0)
        record = json.loads(json.dumps({"definition": job.definition()}))
        record["definition"]["config"]["shares"] = [0.9]
        assert job.is_result(record)
        record["definition"]["config"]["learning_rate"] = 1.0
        assert not job.is_result(record)

    def test_foreign_file_is_not(self) -> None:
        assert not self.job.is_result({})


def _round(depths: list[int], scores: list[float], phase: str = "agent") -> Round:
    decisions = [Decision(0, depth, nodes=10 * depth) for depth in depths]
    return Round(0, 0.0, 0.1, decisions, [Episode(score, 5) for score in scores], [], phase)


def test_timeline_adds_up_within_parts_of_the_budget() -> None:
    timeline = Timeline(seconds=10.0)
    timeline.add(_round([0, 0], [], phase="prior"), 0.01)
    timeline.add(_round([1, 3], [2.0, 4.0]), 0.05)
    timeline.add(_round([2, 2], [7.0]), 10.3)  # the last round ends beyond the budget
    plain = timeline.to_plain()
    assert (plain["steps"][0], plain["prior_steps"][0], plain["steps"][-1]) == (4, 2, 2)
    assert (plain["episodes"][0], plain["scores"][0], plain["scores"][-1]) == (2, 6.0, 7.0)
    assert plain["nodes"][0] == 40
    assert {depth: sum(counts) for depth, counts in plain["depths"].items()} == {"0": 2, "1": 1, "2": 2, "3": 1}
    record = {"definition": {"seconds": 10.0}, "timeline": plain}
    at, depth = learning_figures.depth_curve(record, "seconds")
    assert (at.tolist(), depth.tolist()) == ([10.0 / BINS, 10.0], [2.0, 2.0])


def test_curves_of_seeds_meet_where_all_have_one() -> None:
    curves = [(np.array([0.0, 10.0]), np.array([0.0, 10.0])), (np.array([2.0, 8.0]), np.array([4.0, 10.0]))]
    x, mean, low, high = learning_figures.over_seeds(curves)
    assert (x[0], x[-1]) == (2.0, 8.0)
    assert (low[0], mean[0], high[0]) == (2.0, 3.0, 4.0)


def test_interruption_ends_the_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def watched(*words: Any, **options: Any) -> Any:
        started.append(popen(*words, **options))
        return started[-1]

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(learning.subprocess, "Popen", watched)
    monkeypatch.setattr(learning.time, "sleep", interrupt)
    jobs = learning.jobs_for(["Breakout"], ["depth0"], [0, 1, 2], 600.0)[1:]
    with pytest.raises(KeyboardInterrupt), learning.Pool(2, tmp_path) as pool:
        list(pool.work_off(jobs))
    assert [child.returncode for child in started] == [-15, -15]


def test_failed_child_says_why(tmp_path: Path) -> None:
    with learning.Pool(1, tmp_path) as pool:
        ((_, problem),) = pool.work_off([Job("Pong", "depth0", 0, 1.0)])
    assert "Pong" in problem


@pytest.fixture(scope="module")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short runs of three agents, one seed, and random play, in few episodes."""
    out = tmp_path_factory.mktemp("learning")
    make_directory(out / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(learning_contenders.GAMES, "Breakout", Game("Breakout", 1, 2, 3))
        for agent in (RANDOM, "depth0", "depth1", "ql"):
            job = Job("Breakout", agent, 0, SECONDS)
            (out / "runs" / f"{job.name}.json").write_text(json.dumps(run(job)))
        jobs = learning.jobs_for(["Breakout"], ["depth0", "depth1", "ql"], [0, 1], SECONDS)
        learning_report.write(jobs, out)
    return out


def test_run_keeps_to_its_budget_and_judges_on_the_way(real_runs: Path) -> None:
    record = json.loads((real_runs / "runs" / "Breakout--ql--0.json").read_text())
    assert SECONDS <= record["cpu_seconds"] < SECONDS + 0.5
    assert [len(interim["scores"]) for interim in record["interim"]] == [1] * len(INTERIM)
    assert all(0 < interim["steps"] < record["steps"] for interim in record["interim"])
    assert all(
        interim["cpu_seconds"] >= share * SECONDS for interim, share in zip(record["interim"], INTERIM, strict=True)
    )
    assert len(record["final"]["scores"]) == 2
    assert sum(record["timeline"]["steps"]) == record["steps"] > 0
    assert 1.0 <= record["final"]["mean_depth"] <= CONTENDERS["ql"].config.max_depth
    assert record["final"]["nodes_per_step"] >= 1.0


def test_report_of_a_part_says_what_is_missing(real_runs: Path) -> None:
    known = json.loads((real_runs / "learning.json").read_text())
    assert known["missing"] == ["Breakout--depth0--1", "Breakout--depth1--1", "Breakout--ql--1"]
    scores = {
        agent: json.loads((real_runs / "runs" / f"Breakout--{agent}--0.json").read_text())["final"]["score"]
        for agent in (RANDOM, "depth0", "depth1", "ql")
    }
    cells = known["games"]["Breakout"]["agents"]
    assert {agent: cell["score"]["value"] for agent, cell in cells.items()} == {
        agent: score for agent, score in scores.items() if agent != RANDOM
    }
    best = max(scores["depth0"], scores["depth1"], scores["ql"])
    if best > scores[RANDOM]:
        expected = (scores["ql"] - scores[RANDOM]) / (best - scores[RANDOM])
        assert known["aggregate"]["iqm"]["ql"]["value"] == pytest.approx(expected)
    else:
        assert known["aggregate"] is None
    text = (real_runs / "learning.md").read_text()
    assert "Not complete" in text
    assert all(
        (real_runs / f"learning-{name}.svg").stat().st_size > 1000 for name in ("greedy", "time", "steps", "depth")
    )


@pytest.mark.parametrize(("mebibytes_a_minute", "leaks"), [(0.0, False), (10.0, True)])
def test_growth_beyond_the_replay_memory_is_a_leak(tmp_path: Path, mebibytes_a_minute: float, leaks: bool) -> None:
    """The replay memory itself grows by 100 MiB a minute in both."""
    mebi = 2**20
    lines = [
        {
            "training_seconds": 60.0 * minute,
            "step": 100 * minute,
            "replay_bytes": 100 * minute * mebi,
            "resident_bytes": int((600 + (100 + mebibytes_a_minute) * minute) * mebi),
            "transitions": 0,
            "open_files": 9,
            "threads": 2,
            "process": 1,
        }
        for minute in range(1, 16)
    ]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = learning_ale_report.look_at(tmp_path)
    assert found is not None
    assert found["beyond_replay_mib_per_minute"] == pytest.approx(mebibytes_a_minute, abs=1e-6)
    assert found["leaks"] is leaks
