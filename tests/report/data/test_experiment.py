"""Results folders: what is read is what was written, and no damage goes unnoticed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adalook.errors import FileError
from adalook.report.data.experiment import load_experiment
from tests.report import synthetic_results
from tests.report.synthetic_results import Raw


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = synthetic_results.traced_run()
    return synthetic_results.write(tmp_path / "maze", "maze", [run], synthetic_results.arrays(run["trace"]))


def test_what_is_read_is_what_was_written(folder: Path) -> None:
    maze = load_experiment(folder)
    assert maze.name == "maze"
    assert maze.settings == {"seeds": synthetic_results.SEEDS}
    assert maze.versions == {"adalook": "0.1.0", "numpy": "2"}
    (run,) = maze.records
    assert (run.label, run.seed, run.iterations, run.passes, run.lookahead) == ("PI", 0, 2, 3, 1)
    assert run.distance.tolist() == synthetic_results.traced_run()["distance"]
    assert maze.times == {run.job: 0.1}
    steps, model = maze.trace(run), maze.model(run)
    assert steps is not None
    assert model is not None
    assert np.array_equal(steps.values, synthetic_results.trace().values)
    assert model.layout.goals == ((3, 3),)
    assert np.array_equal(model.values, synthetic_results.small_maze().values)
    assert maze.select("hpi", depth=1) == [run]
    assert maze.select("hpi", depth=2) == maze.select("tlpi") == []


def test_totals_add_up_under_every_convention(folder: Path) -> None:
    (run,) = load_experiment(folder).records
    assert run.total("tree", "exact") == 3 * (32 + 8)
    assert run.total("root", "simulated") == run.total() == 3 * (32 + 50 * 8)
    assert run.cumulative("tree", "exact") == (40, 80, 120)


@pytest.mark.parametrize(("counted", "extra"), [(True, 7 + 5), (False, 0)])
def test_a_prior_is_paid_for_where_it_counts(counted: bool, extra: int, tmp_path: Path) -> None:
    run = synthetic_results.traced_run() | {"trace": None, "model_key": None}
    run["prior"] = {
        "kind": "aggregation",
        "counted": counted,
        "queries": {"improvement": {"tree": 7, "root": 8, "shared": 9}, "evaluation": {"exact": 5, "simulated": 6}},
    }
    (read,) = load_experiment(synthetic_results.write(tmp_path, "maze", [run])).records
    assert read.total("tree", "exact") == 120 + extra
    assert read.cumulative("tree", "exact") == (40 + extra, 80 + extra, 120 + extra)


def test_counts_beyond_64_bits_survive(tmp_path: Path) -> None:
    run = synthetic_results.traced_run() | {"trace": None, "model_key": None}
    run["queries"]["improvement"]["tree"] = [2**70, 1, 1]
    (read,) = load_experiment(synthetic_results.write(tmp_path, "maze", [run])).records
    assert read.total("tree", "exact") == 2**70 + 2 + 24


def test_budgets_tell_the_lookahead(tmp_path: Path) -> None:
    runs = [synthetic_results.traced_run() | {"trace": None, "job": name} for name in "abc"]
    runs[0]["parameters"] = {"budgets": {"2": 0.1, "8": 0.02}}
    runs[1]["parameters"] = {"depth": 3, "states_per_depth": 1}
    runs[2]["parameters"] = {"kappa_power": 5}
    records = load_experiment(synthetic_results.write(tmp_path, "maze", runs)).records
    assert [record.lookahead for record in records] == [8, 3, 5]
    assert [record.budgets for record in records] == [{2: 0.1, 8: 0.02}, {2: 1 / 8, 3: 1 / 8}, {}]


def test_a_folder_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"experiment\.json.*adalook reproduce"):
        load_experiment(tmp_path / "none")


def test_a_run_that_was_killed_says_to_go_on(folder: Path) -> None:
    (folder / "experiment.json").unlink()
    (folder / "journal.jsonl").write_text("")
    with pytest.raises(FileError, match="has not ended: start it again"):
        load_experiment(folder)


@pytest.mark.parametrize("file", ["records.json", "traces.npz", "models.json"])
def test_one_flipped_bit_is_noticed(file: str, folder: Path) -> None:
    content = bytearray((folder / file).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / file).write_bytes(content)
    with pytest.raises(FileError, match=f"{file} does not belong to the experiment.json"):
        load_experiment(folder)


@pytest.mark.parametrize("file", ["records.json", "traces.npz"])
def test_a_missing_file_is_named(file: str, folder: Path) -> None:
    (folder / file).unlink()
    with pytest.raises(FileError, match=f"cannot read .*{file}"):
        load_experiment(folder)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": "something else"}, "no experiment that this version reads"),
        ({"format_version": 99}, "version 99"),
        ({"jobs": 2}, "is not complete: expected 2 records, got 1"),
        ({"jobs": "1"}, "expected 'jobs' to be int"),
        ({"settings": []}, "expected 'settings' to be dict"),
        ({"sha256": {}}, "sha256 of records.json"),
    ],
)
def test_a_wrong_head_is_refused(entries: Raw, message: str, folder: Path) -> None:
    about = json.loads((folder / "experiment.json").read_text())
    (folder / "experiment.json").write_text(json.dumps(about | entries))
    with pytest.raises(FileError, match=message):
        load_experiment(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN', "[" * 100_000])
def test_what_is_no_json_object_is_refused(text: str, folder: Path) -> None:
    (folder / "experiment.json").write_text(text)
    with pytest.raises(FileError, match=r"experiment\.json is damaged: expected"):
        load_experiment(folder)


def changed(*path: Any, to: Any) -> Callable[[Raw], None]:
    def change(run: Raw) -> None:
        place = run
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("iterations", to=-1), "whole number"),
        (changed("iterations", to=2.0), "whole number"),
        (changed("iterations", to=True), "whole number"),
        (changed("distance", to=[1.0, 0.0]), "expected 3 distances, got 2"),
        (changed("distance", 0, to=float("nan")), "finite number"),
        (changed("distance", 0, to=-1.0), "distances >= 0"),
        (changed("queries", "improvement", "tree", to=[1, 2]), "3 numbers in tree"),
        (changed("queries", "improvement", "tree", 1, to=-5), "whole number"),
        (changed("queries", "evaluation", to={}), "exact"),
        (changed("deep_states", 0, to=9), "at most 8 deep states"),
        (changed("model", "discount", to=1.0), "discount"),
        (changed("model", "states", to=0), "states"),
        (changed("job", to=""), "a text"),
        (changed("parameters", to=3), "record 0"),
        (changed("prior", to={"kind": "exact"}), "queries"),
        (changed("effective_lookahead", to=[[0.5, 0.4]]), "add up to 1"),
        (changed("effective_lookahead", to=[[0.5], [0.5, 0.5]]), "record 0"),
    ],
)
def test_a_damaged_record_is_named(change: Callable[[Raw], None], message: str, tmp_path: Path) -> None:
    run = copy.deepcopy(synthetic_results.traced_run()) | {"trace": None}
    change(run)
    with pytest.raises(FileError, match=r"records\.json is damaged in record 0") as caught:
        load_experiment(synthetic_results.write(tmp_path, "maze", [run]))
    assert message in str(caught.value)


def test_a_missing_entry_is_named(tmp_path: Path) -> None:
    run = synthetic_results.traced_run()
    del run["distance"]
    with pytest.raises(FileError, match="record 0: got KeyError\\('distance'\\)"):
        load_experiment(synthetic_results.write(tmp_path, "maze", [run]))


def test_a_job_must_not_come_twice(tmp_path: Path) -> None:
    run = synthetic_results.traced_run() | {"trace": None}
    with pytest.raises(FileError, match="holds a job twice"):
        load_experiment(synthetic_results.write(tmp_path, "maze", [run, run]))


@pytest.mark.parametrize(
    ("suffix", "array", "message"),
    [
        ("values", np.zeros((2, 8)), r"of shape \(3, 8\)"),
        ("values", np.full((3, 8), np.inf), "finite numbers"),
        ("policy", np.full((3, 8), 4, np.uint8), "actions below 4"),
        ("policy", np.zeros((3, 8)), "float64"),
        ("depth", np.zeros(8, np.uint16), r"of shape \(3, 8\)"),
    ],
)
def test_damaged_traces_are_named(suffix: str, array: np.ndarray, message: str, tmp_path: Path) -> None:
    run = synthetic_results.traced_run()
    arrays = synthetic_results.arrays(run["trace"]) | {f"{run['trace']}/{suffix}": array}
    with pytest.raises(FileError, match=rf"traces\.npz is damaged in .*{message}"):
        load_experiment(synthetic_results.write(tmp_path, "maze", [run], arrays))


def test_missing_traces_are_named(tmp_path: Path) -> None:
    run = synthetic_results.traced_run()
    arrays = synthetic_results.arrays(run["trace"])
    del arrays[f"{run['trace']}/depth"]
    with pytest.raises(FileError, match=r"traces\.npz is damaged.*expected an array .*depth"):
        load_experiment(synthetic_results.write(tmp_path, "maze", [run], arrays))


@pytest.mark.parametrize(
    ("suffix", "array"),
    [("cells", np.full((8, 2), 5, np.int16)), ("walls", np.zeros((4, 5), bool)), ("values", np.full(8, np.nan))],
)
def test_damaged_models_are_named(suffix: str, array: np.ndarray, tmp_path: Path) -> None:
    run = synthetic_results.traced_run()
    arrays = synthetic_results.arrays(run["trace"]) | {f"model/{synthetic_results.MAZE_KEY}/{suffix}": array}
    with pytest.raises(FileError, match=r"models\.json is damaged in size=5"):
        load_experiment(synthetic_results.write(tmp_path, "maze", [run], arrays))


def test_an_archive_of_objects_is_not_opened(folder: Path, tmp_path: Path) -> None:
    import hashlib

    np.savez(folder / "traces.npz", a=np.array([{}], dtype=object))
    about = json.loads((folder / "experiment.json").read_text())
    about["sha256"]["traces.npz"] = hashlib.sha256((folder / "traces.npz").read_bytes()).hexdigest()
    (folder / "experiment.json").write_text(json.dumps(about))
    with pytest.raises(FileError, match=r"traces\.npz is damaged"):
        load_experiment(folder)


def test_wrong_times_are_refused_and_missing_ones_are_not(folder: Path) -> None:
    (folder / "times.json").write_text('{"a": "soon"}')
    with pytest.raises(FileError, match=r"times\.json is damaged.*'soon' for 'a'"):
        load_experiment(folder)
    (folder / "times.json").unlink()
    assert load_experiment(folder).times == {}
