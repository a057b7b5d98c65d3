"""The folder and its journal: what a reader and a second run may rely on, also after accidents."""

import hashlib
import json
import multiprocessing
from dataclasses import replace

import numpy as np
import pytest

import adalook
from adalook.errors import FileError
from adalook.experiments.runner import Interrupted, reproduce
from adalook.experiments.store import Journal, Store
from adalook.storage.arrays import pack_arrays
from adalook.storage.lock import DirectoryLock
from tests.experiments.small import CHAIN, MAZE, SWEEP, Inline, digests


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The maze run in one go."""
    directory = tmp_path_factory.mktemp("whole") / "maze"
    reproduce(MAZE, directory, Inline())
    return directory


def interrupted(directory, jobs: int) -> None:
    with pytest.raises(Interrupted, match=f"{jobs} of {len(MAZE.jobs())} jobs are done and kept"):
        reproduce(MAZE, directory, Inline(most=jobs))


def test_the_folder_describes_itself(whole):
    summary = json.loads((whole / "experiment.json").read_text())
    records = json.loads((whole / "records.json").read_text())["records"]
    times = json.loads((whole / "times.json").read_text())
    models = json.loads((whole / "models.json").read_text())
    assert summary["format"] == "adalook experiment"
    assert summary["settings"]["seeds"] == 2
    assert summary["jobs"] == len(records) == len(times) == len(MAZE.jobs())
    assert set(summary["versions"]) == {"python", "numpy", "scipy", "numba", "platform"}
    assert [record["job"] for record in records] == sorted(times)
    for name, checksum in summary["sha256"].items():
        assert hashlib.sha256((whole / name).read_bytes()).hexdigest() == checksum
    assert {path.name for path in whole.iterdir()} == {*summary["sha256"], "times.json", "experiment.json"}
    with np.load(whole / "traces.npz", allow_pickle=False) as traces:
        for record in records:
            if record["trace"]:
                shape = (record["passes"], record["model"]["states"])
                assert all(traces[f"{record['trace']}/{name}"].shape == shape for name in ("values", "policy", "depth"))
                assert record["model_key"] in models


def test_without_traces_there_are_no_files_for_them(tmp_path):
    reproduce(CHAIN, tmp_path, Inline())
    assert {path.name for path in tmp_path.iterdir()} == {"experiment.json", "records.json", "times.json"}


def test_a_finished_folder_is_not_run_again(whole):
    before, engine = digests(whole), Inline()
    report = reproduce(MAZE, whole, engine)
    assert report.was_finished
    assert "done already" in report.sentence
    assert engine.ran == []
    assert digests(whole) == before


def test_fresh_runs_it_again(tmp_path):
    reproduce(CHAIN, tmp_path, Inline())
    before, engine = digests(tmp_path), Inline()
    report = reproduce(CHAIN, tmp_path, engine, fresh=True)
    assert len(engine.ran) == len(CHAIN.jobs())
    assert not report.was_finished
    assert digests(tmp_path) == before


def test_an_interrupted_run_goes_on_and_ends_the_same(whole, tmp_path):
    interrupted(tmp_path, 20)
    engine = Inline()
    report = reproduce(MAZE, tmp_path, engine)
    assert report.found == 20
    assert len(engine.ran) == len(MAZE.jobs()) - 20
    assert digests(tmp_path) == digests(whole)


def test_a_run_that_is_interrupted_again_and_again_loses_nothing(whole, tmp_path):
    for done in (7, 14, 21):
        with pytest.raises(Interrupted, match=f"{done} of"):
            reproduce(MAZE, tmp_path, Inline(most=7))
    report = reproduce(MAZE, tmp_path, Inline())
    assert (report.found, report.redone) == (21, 0)
    assert digests(tmp_path) == digests(whole)


def test_results_do_not_depend_on_the_order_of_jobs(whole, tmp_path):
    class Backwards(Inline):
        def run(self, jobs):
            return super().run(jobs[::-1])

    reproduce(MAZE, tmp_path, Backwards())
    assert digests(tmp_path) == digests(whole)


@pytest.mark.parametrize("cut", [1, 100, "to the newline"])
def test_a_torn_last_line_is_run_again(whole, tmp_path, cut):
    interrupted(tmp_path, 12)
    journal = tmp_path / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content[: -1 if cut == "to the newline" else -1 - cut])
    engine = Inline()
    report = reproduce(MAZE, tmp_path, engine)
    assert (report.found, report.redone) == (11, 1)
    assert "torn or damaged" in report.sentence
    assert digests(tmp_path) == digests(whole)


def test_a_damaged_line_is_run_again(whole, tmp_path):
    interrupted(tmp_path, 12)
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b'"CONVERGED"', b'"CONVERTED"')
    lines[8] = b"\x00" * 40 + b"\n"
    lines[9] = b'{"seconds": 1e999}\n'
    journal.write_bytes(b"".join(lines))
    assert reproduce(MAZE, tmp_path, Inline()).redone == 3
    assert digests(tmp_path) == digests(whole)


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_a_lost_or_damaged_trace_is_made_again(whole, tmp_path, harm):
    interrupted(tmp_path, 12)
    harm(sorted((tmp_path / "journal-traces").iterdir())[0])
    assert reproduce(MAZE, tmp_path, Inline()).redone == 1
    assert digests(tmp_path) == digests(whole)


def test_a_journal_that_does_not_say_what_it_is_of_is_refused(tmp_path):
    interrupted(tmp_path, 3)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"?" + journal.read_bytes()[1:])
    with pytest.raises(FileError, match=r"first line.*--fresh"):
        reproduce(MAZE, tmp_path, Inline())
    assert not reproduce(MAZE, tmp_path, Inline(), fresh=True).was_finished


def test_a_line_counts_only_whole(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path, {"experiment": "x"}) as journal:
        journal.open()
        journal.append({"job": "a", "value": 0.1 + 0.2})
        journal.append({"job": "b", "text": "γ"})
    content = path.read_bytes()
    second = content.index(b"\n", content.index(b"\n") + 1) + 1
    for size in range(content.index(b"\n") + 1, len(content) + 1):
        path.write_bytes(content[:size])
        read = Journal(path, {})
        assert [line["job"] for line in read.lines] == ["a", "b"][: (size >= second) + (size == len(content))]
        assert read.run == {"experiment": "x"}
    assert read.lines[0]["value"] == 0.1 + 0.2


@pytest.mark.parametrize("finished", [True, False])
def test_another_setting_is_refused_in_words(tmp_path, finished):
    if finished:
        reproduce(CHAIN, tmp_path, Inline())
    else:
        with pytest.raises(Interrupted):
            reproduce(CHAIN, tmp_path, Inline(most=2))
    other = replace(CHAIN, discount=0.95)
    before = digests(tmp_path)
    with pytest.raises(FileError, match=r"discount is 0.9 there and 0.95 here.*--out.*--fresh"):
        reproduce(other, tmp_path, Inline())
    with pytest.raises(FileError, match=r'experiment is "chain" there and "sweep" here'):
        reproduce(SWEEP, tmp_path, Inline())
    assert digests(tmp_path) == before
    reproduce(other, tmp_path, Inline(), fresh=True)


def test_another_version_may_not_go_on(tmp_path, monkeypatch):
    with pytest.raises(Interrupted):
        reproduce(CHAIN, tmp_path, Inline(most=2))
    monkeypatch.setattr("adalook.experiments.store.__version__", "99.0")
    with pytest.raises(FileError, match=f'adalook_version is "{adalook.__version__}" there and "99.0" here'):
        reproduce(CHAIN, tmp_path, Inline())


@pytest.mark.parametrize("name", ["records.json", "traces.npz", "models.json"])
def test_changed_results_are_noticed(whole, tmp_path, name):
    for path in whole.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
    with pytest.raises(FileError, match=f"{name} is missing or was changed.*--fresh"):
        reproduce(MAZE, tmp_path, Inline())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "adalook experiment"}'])
def test_a_damaged_summary_is_noticed(tmp_path, text):
    (tmp_path / "experiment.json").write_text(text)
    with pytest.raises(FileError, match=r"experiment\.json is damaged"):
        reproduce(CHAIN, tmp_path, Inline())


def test_a_kill_while_finishing_is_mended(whole, tmp_path, monkeypatch):
    """The journal goes last: what a kill leaves beside the summary is swept up."""
    monkeypatch.setattr(Store, "_forget_journal", lambda store: None)
    reproduce(MAZE, tmp_path, Inline())
    monkeypatch.undo()
    assert (tmp_path / "journal.jsonl").exists()
    (tmp_path / ".adalook-0123.tmp").write_bytes(b"half")
    engine = Inline()
    assert reproduce(MAZE, tmp_path, engine).was_finished
    assert engine.ran == []
    assert digests(tmp_path) == digests(whole)


def test_a_kill_before_the_summary_needs_no_job_again(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(Store, "finish", lambda store, journal: {})
    reproduce(MAZE, tmp_path, Inline())
    monkeypatch.undo()
    engine = Inline()
    reproduce(MAZE, tmp_path, engine)
    assert engine.ran == []
    assert digests(tmp_path) == digests(whole)


def hold(directory, held, release) -> None:
    with DirectoryLock(directory):
        held.set()
        release.wait(60)


def test_two_runs_do_not_share_a_folder(tmp_path):
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, held, release))
    other.start()
    try:
        assert held.wait(60)
        with pytest.raises(FileError, match="is in use"):
            reproduce(CHAIN, tmp_path, Inline())
    finally:
        release.set()
        other.join(60)
    reproduce(CHAIN, tmp_path, Inline())


def test_arrays_make_the_same_file_at_any_time(monkeypatch):
    arrays = {"b/c": np.arange(5.0), "a": np.zeros((2, 3), np.uint8)}
    first = pack_arrays(arrays)
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert pack_arrays(dict(reversed(arrays.items()))) == first


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    def run_until_full(jobs):
        engine = Inline()
        outcomes = engine.run(jobs)
        yield next(outcomes)
        monkeypatch.setattr("os.fsync", full)
        yield from outcomes

    engine = Inline()
    engine.run = run_until_full
    with pytest.raises(FileError, match="No space left"):
        reproduce(CHAIN, tmp_path, engine)
    monkeypatch.undo()
    assert reproduce(CHAIN, tmp_path, Inline()).jobs == len(CHAIN.jobs())


def test_a_disk_that_fills_up_is_named_with_its_file(tmp_path):
    """For real, by a limit on the size of files: the system takes a piece of the line and refuses the rest."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "journal.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_up() -> None:
        with Journal(path, {}) as journal:
            journal.open()
            journal.append({"job": "a"})
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
            journal.append({"job": "b"})

    try:
        with pytest.raises(FileError, match=r"cannot write .*journal\.jsonl.*ulimit"):
            fill_up()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    again = Journal(path, {})
    assert ([line["job"] for line in again.lines], again.damaged) == (["a"], 1)


@pytest.mark.parametrize("place", ["taken", "taken/chain", "taken/results/chain"])
def test_a_file_where_the_folder_should_be_is_named(tmp_path, place):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(FileError, match=r"Choose another place: .*taken exists and is not a directory"):
        reproduce(CHAIN, tmp_path / place, Inline())
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_link_to_nowhere_is_named(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError, match=r"link exists and is not a directory"):
        reproduce(CHAIN, tmp_path / "link", Inline())
