"""Learning experiments: what counts as finished, how a run keeps to its budget, how it ends, and its page."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from adalook.cli.main import main
from adalook.errors import ArgumentError, FileError
from adalook.experiments import minatar
from adalook.experiments.atari import PAPER_SCALE
from adalook.experiments.atari import SUITE as ATARI
from adalook.experiments.learning.runs import LearningRuns, reproduce_learning
from adalook.experiments.learning.suite import (
    AGENTS,
    RANDOM,
    Game,
    LearningExperiment,
    Suite,
    TrainingJob,
    learning_experiment,
)
from adalook.experiments.learning.training import BINS, INTERIM, SAMPLES, JobInProgress, Timeline, run_training_job
from adalook.experiments.registry import chosen_learning
from adalook.experiments.runner import Interrupted
from adalook.learning.acting import Decision
from adalook.learning.config import RETIRED, Config
from adalook.learning.runs.directory import load_newest
from adalook.learning.training import Episode, Round
from adalook.report.data.learning_curves import depth_shares
from adalook.report.pages.learning import write_learning_report
from tests.experiments.small import Inline

SECONDS = 1.0
SUITE = minatar.SUITE
BREAKOUT = SUITE.games["Breakout"]
KEPT = Path(__file__).parents[3] / "results"
QUICK = dataclasses.replace(SUITE, games={"Breakout": Game("Breakout", "MinAtar/Breakout-v1", 1, 2, 3)})
"""Judged in few episodes."""


def test_seeds_come_first_and_random_play_before_all() -> None:
    jobs = LearningExperiment(SUITE, ("Breakout", "Asterix"), ("depth0", "ql"), 2, 1.0).jobs()
    assert [job.name for job in jobs[:4]] == [
        "Breakout--random--0",
        "Asterix--random--0",
        "Breakout--depth0--0",
        "Breakout--ql--0",
    ]
    assert [job.seed for job in jobs[2:]] == [0] * 4 + [1] * 4


def test_a_fast_machine_has_the_budget_of_the_reference_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here each second counts a thousandfold: the budget of a reference second is over after some rounds."""
    monkeypatch.setattr("adalook.experiments.learning.machine.machine_speed", lambda: 1_000.0)
    job = TrainingJob(QUICK, dataclasses.replace(QUICK.games["Breakout"], interim_episodes=0), "depth0", 0, 1.0)
    record = run_training_job(job)
    assert record["machine_speed"] == 1_000.0
    assert record["cpu_seconds"] >= 1.0
    assert record["steps"] < 100


class TestStaleness:
    job = TrainingJob(SUITE, BREAKOUT, "ql", 0, 5.0)

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
        tuned = {**AGENTS["ql"].settings, "ranked_transitions": 500}
        monkeypatch.setitem(AGENTS, "ql", dataclasses.replace(AGENTS["ql"], settings=tuned))
        assert not self.job.is_result(record)

    def test_setting_added_since_at_its_default_is_no_change(self) -> None:
        record = self.record
        assert record["definition"]["config"].pop("head_balance") == 0.0
        assert self.job.is_result(record)

    def test_tuning_qldqn_leaves_runs_of_dqn_as_they_are(self) -> None:
        job = TrainingJob(SUITE, BREAKOUT, "depth1", 0, 5.0)
        record = json.loads(json.dumps({"definition": job.definition()}))
        record["definition"]["config"]["depth_shares"] = [0.9]
        assert job.is_result(record)
        record["definition"]["config"]["learning_rate"] = 1.0
        assert not job.is_result(record)

    def test_foreign_file_is_not(self) -> None:
        assert not self.job.is_result({})


def _round(depths: list[int], scores: list[float], phase: str = "agent") -> Round:
    decisions = [Decision(0, depth, nodes=10 * depth) for depth in depths]
    return Round(0, 0.0, 0.1, decisions, [Episode(score, 5) for score in scores], [], phase)


def test_timeline_adds_up_within_parts_of_the_budget() -> None:
    timeline = Timeline()
    timeline.add(_round([0, 0], [], phase="prior"), 0.001)
    timeline.add(_round([1, 3], [2.0, 4.0]), 0.005)
    timeline.add(_round([2, 2], [7.0]), 1.03)  # the last round ends beyond the budget
    plain = timeline.to_plain()
    again = Timeline()
    again.load_plain(json.loads(json.dumps(plain)))
    assert again.to_plain() == plain
    assert (plain["steps"][0], plain["prior_steps"][0], plain["steps"][-1]) == (4, 2, 2)
    assert (plain["episodes"][0], plain["scores"][0], plain["scores"][-1]) == (2, 6.0, 7.0)
    assert plain["nodes"][0] == 40
    assert {depth: sum(counts) for depth, counts in plain["depths"].items()} == {"0": 2, "1": 1, "2": 2, "3": 1}
    record = {"definition": {"seconds": 10.0}, "timeline": plain}
    at, shares = depth_shares(record, "seconds")
    assert at.tolist() == [10.0 / BINS, 10.0]
    assert {depth: share.tolist() for depth, share in shares.items()} == {1: [0.5, 0.0], 2: [0.0, 1.0], 3: [0.5, 0.0]}


def test_every_atari_game_can_be_trained_on() -> None:
    jobs = learning_experiment(ATARI, games=("Pong",), agents=("ql",), seeds=1).jobs()
    assert [(job.game.env, job.agent) for job in jobs] == [("ALE/Pong-v5", RANDOM), ("ALE/Pong-v5", "ql")]
    with pytest.raises(
        ArgumentError, match=r"no such game .* or one of \d+ others, got 'Pogn'\. Did you mean 'Pong'\?"
    ):
        learning_experiment(ATARI, games=("Pogn",))


def test_an_ablation_that_would_change_nothing_is_refused() -> None:
    """MinAtar is searched by exhaustive trees: there `part-trust` would be `ql`, and `search-60` no search alone."""
    for agent in ("part-trust", "search-60", "guided", "clipped"):
        assert learning_experiment(ATARI, agents=(agent,)).agents == (agent,)
        with pytest.raises(ArgumentError, match=f"agent {agent} would not be in minatar what its name says"):
            learning_experiment(SUITE, agents=(agent,))


class Killed(RuntimeError):
    """Stands for kill -9."""


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget of steps, so that a run that was killed can be compared with one that was not."""
    monkeypatch.setitem(AGENTS, "ql", dataclasses.replace(AGENTS["ql"], settings={"learning_starts_steps": 64}))
    whole = TrainingJob(QUICK, QUICK.games["Breakout"], "ql", 0, 0.0, steps=400, agent_folder=tmp_path / "whole")
    uninterrupted = whole.run().record
    monkeypatch.setattr("adalook.experiments.learning.training.SAVE_SECONDS", 0.0)  # after every round
    job = dataclasses.replace(whole, folder=tmp_path / "unfinished", agent_folder=tmp_path / "resumed")

    counted = JobInProgress.add

    def killed(self: JobInProgress, done: Round, cpu: float, wall: float) -> None:
        counted(self, done, cpu, wall)
        if self.steps == 304:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(JobInProgress, "add", killed)
        with pytest.raises(Killed):
            job.run()
    begun: list[int] = []

    def watched(self: JobInProgress, done: Round, cpu: float, wall: float) -> None:
        begun.append(self.steps)
        counted(self, done, cpu, wall)

    monkeypatch.setattr(JobInProgress, "add", watched)
    resumed = job.run().record
    assert begun[0] == 296  # the checkpoint before the round that was cut
    timed = {"cpu_seconds", "wall_seconds", "machine_speed", "process_seconds", "samples"}
    for name in uninterrupted.keys() - timed - {"interim", "final", "timeline"}:
        assert resumed[name] == uninterrupted[name], name
    assert resumed["final"]["scores"] == uninterrupted["final"]["scores"]
    assert resumed["timeline"] | {"seconds": 0} == uninterrupted["timeline"] | {"seconds": 0}
    one, other = (load_file(tmp_path / name / "policy.safetensors") for name in ("whole", "resumed"))
    filled = {name for name, array in (one | other).items() if array.size}  # depths that nobody went to are empty
    assert len(filled) > 3
    assert all(np.array_equal(one[name], other[name]) for name in filled)


def test_a_checkpoint_of_another_job_is_no_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adalook.experiments.learning.training.SAVE_SECONDS", 0.0)
    job = TrainingJob(QUICK, QUICK.games["Breakout"], "depth0", 0, 0.0, steps=64, folder=tmp_path)
    assert job.run().record["steps"] == 64
    longer = JobInProgress(dataclasses.replace(job, steps=128))
    newest = load_newest(tmp_path)
    assert newest is not None
    longer.restore(newest)
    assert longer.steps == 0
    same = JobInProgress(job)
    same.restore(newest)
    assert same.steps == 64


def test_the_papers_scale_is_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = chosen_learning("atari", ("Tutankham",), ("ql-paper", "ql"), None, None, paper_scale=True).jobs()
    assert {job.steps for job in jobs} == {10_000_000}
    assert max(job.seed for job in jobs) == 4
    for agent in ("depth0", "ql-paper", "ql"):
        config = AGENTS[agent].config(PAPER_SCALE)
        assert (config.network, config.prior_steps) == ("nature", 1_000_000)
    assert main(["reproduce", "minatar", "--paper-scale", "--out", str(tmp_path)]) == 2
    assert "eproduce atari" in capsys.readouterr().err


def test_search_alone_is_judged_untrained() -> None:
    game = dataclasses.replace(ATARI.games["Tutankham"], final_episodes=1)
    job = TrainingJob(ATARI, game, "search-alone", 0, 1_200.0)
    assert job.definition()["seconds"] == 0.0
    spec = dataclasses.replace(AGENTS["search-alone"], settings={"stage_nodes": 5, "max_episode_steps": 3})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(AGENTS, "search-alone", spec)
        record = job.run().record
    assert record["steps"] == 0
    assert record["final"]["mean_episode_steps"] == 3
    assert record["final"]["nodes_per_step"] == 5.0


def test_the_papers_agents_play_by_the_usual_rules() -> None:
    for agent in ("depth0", "depth1", "depth2", "depth3", "ql-paper"):
        config = AGENTS[agent].config(ATARI)
        assert (config.frame_skip, config.reward_scale, config.search_shape) == (4, "clip", "exhaustive"), agent
    assert AGENTS["ql"].config(ATARI).search_shape == "rollouts"


def test_wrong_names_and_budgets_are_refused() -> None:
    for wrong in ({"games": ("Pong",)}, {"agents": ("magic",)}, {"seeds": 0}, {"seconds": 0.0}):
        with pytest.raises(ArgumentError):
            learning_experiment(SUITE, **wrong)  # type: ignore[arg-type]


def test_flags_of_learning_are_refused_for_planning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "chain", "--agents", "ql", "--out", str(tmp_path)]) == 2
    assert "--agents is for learning" in capsys.readouterr().err
    assert main(["reproduce", "minatar", "--games", "Pong", "--out", str(tmp_path)]) == 2
    assert "Breakout" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suite", [SUITE, ATARI], ids=lambda suite: suite.name)
def test_kept_runs_are_described_in_todays_words(suite: Suite) -> None:
    """A setting that is renamed must be renamed in the records, or their runs would count as missing."""
    paths = sorted((KEPT / suite.name / "runs").glob("*.json"))
    assert paths, "no runs are kept"
    for path in paths:
        record = json.loads(path.read_text())
        assert record["definition"]["config"].keys() <= Config().to_plain().keys() | RETIRED.keys(), path.name
        assert suite.game(record["game"]) is not None
        assert record["agent"] in {*AGENTS, RANDOM}


@pytest.fixture(scope="module")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short runs of three agents, one seed, and random play, in few episodes; the second seed is missing."""
    out = tmp_path_factory.mktemp("learning")
    experiment = LearningExperiment(QUICK, ("Breakout",), ("depth0", "depth1", "ql"), 2, SECONDS)
    with pytest.raises(Interrupted, match="4 of 7 jobs are done and kept"):
        reproduce_learning(experiment, out, Inline(most=4))
    write_learning_report(out, out)
    return out


def test_an_interrupted_experiment_goes_on_with_what_is_missing(real_runs: Path) -> None:
    experiment = LearningExperiment(QUICK, ("Breakout",), ("depth0", "ql"), 1, SECONDS)
    assert LearningRuns(real_runs, experiment).missing() == []
    engine = Inline()
    index = (real_runs / "experiment.json").read_bytes()
    assert reproduce_learning(experiment, real_runs, engine) == 3
    assert engine.ran == []
    (real_runs / "experiment.json").write_bytes(index)


def test_the_plan_of_a_folder_grows(real_runs: Path, tmp_path: Path) -> None:
    """A smaller experiment hides neither the runs that are there nor those that are still to come."""
    place = Path(shutil.copytree(real_runs, tmp_path / "minatar"))
    before = json.loads((place / "experiment.json").read_text())
    assert before["missing"] == ["Breakout--depth0--1", "Breakout--depth1--1", "Breakout--ql--1"]
    before["machine"]["date"] = "2001-01-01"
    (place / "experiment.json").write_text(json.dumps(before))
    small = LearningExperiment(QUICK, ("Breakout",), ("ql",), 1, SECONDS)
    assert reproduce_learning(small, place, Inline()) == 2
    after = json.loads((place / "experiment.json").read_text())
    assert after["machine"]["date"] == "2001-01-01"  # nothing was measured since
    assert {name: after[name] for name in ("runs", "missing", "settings", "agents")} == {
        name: before[name] for name in ("runs", "missing", "settings", "agents")
    }
    (place / "experiment.json").unlink()
    reproduce_learning(small, place, Inline())
    alone = json.loads((place / "experiment.json").read_text())
    assert (alone["runs"], alone["missing"]) == (before["runs"], [])
    assert alone["machine"]["date"] > "2001-01-01"


def test_records_of_other_settings_are_outdated(real_runs: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(real_runs, tmp_path / "minatar"))
    path = place / "runs" / "Breakout--ql--0.json"
    record = json.loads(path.read_text())
    record["definition"]["config"]["discount"] = 0.5
    path.write_text(json.dumps(record))
    LearningRuns(place, LearningExperiment(QUICK, ("Breakout",), ("depth0",), 1, SECONDS)).write_index()
    index = json.loads((place / "experiment.json").read_text())
    assert list(index["outdated"]) == ["Breakout--ql--0"]
    assert "Breakout--ql--0" in index["missing"]


def test_runs_of_another_length_are_not_replaced_unasked(real_runs: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(real_runs, tmp_path / "minatar"))
    longer = LearningExperiment(QUICK, ("Breakout",), ("depth0",), 1, 2.0 * SECONDS)
    with pytest.raises(FileError, match="runs of another length"):
        reproduce_learning(longer, place, Inline())
    with pytest.raises(Interrupted):
        reproduce_learning(longer, place, Inline(most=0), fresh=True)
    assert "Breakout--depth0--0" in json.loads((place / "experiment.json").read_text())["missing"]


@pytest.mark.parametrize("text", ["", "[]", "{", "{}"])
def test_a_damaged_record_is_a_missing_run(text: str, tmp_path: Path) -> None:
    experiment = LearningExperiment(QUICK, ("Breakout",), ("depth0",), 1, SECONDS)
    names = [job.name for job in experiment.jobs()]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / f"{names[0]}.json").write_text(text)
    assert [job.name for job in LearningRuns(tmp_path, experiment).missing()] == names


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
    assert 1.0 <= record["final"]["mean_depth"] <= AGENTS["ql"].config(SUITE).max_depth
    assert record["final"]["nodes_per_step"] >= 1.0
    assert 1 <= len(record["samples"]["resident_mib"]) <= SAMPLES
    assert min(record["samples"]["resident_mib"]) > 10.0


def test_page_of_a_part_says_what_is_missing(real_runs: Path) -> None:
    known = json.loads((real_runs / "minatar.json").read_text())
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
    assert "Not complete" in (real_runs / "minatar.md").read_text()
    assert all((real_runs / f"{name}.svg").stat().st_size > 1000 for name in ("figure-6", "figure-7", "depth", "ties"))


def _states_of_group(leader: int) -> list[str]:
    """The states of all processes in a session: Z has ended."""
    listed = subprocess.run(["ps", "-o", "stat=", "-g", str(leader)], capture_output=True, text=True)
    return listed.stdout.split()


def test_sigterm_ends_the_workers_and_keeps_what_is_done(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "adalook", "reproduce", "minatar", "--games", "Breakout", "--agents", "depth0"]
    command += ["--seconds", "600", "--workers", "2", "--out", str(tmp_path)]
    run = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not (tmp_path / "minatar" / "runs" / "Breakout--random--0.json").exists():
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGTERM)
    _, err = run.communicate(timeout=300)
    assert run.returncode == 130
    assert "1 of 6 jobs are done and kept" in err
    while any(not state.startswith("Z") for state in _states_of_group(run.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    index = json.loads((tmp_path / "minatar" / "experiment.json").read_text())
    assert index["runs"] == ["Breakout--random--0"]
