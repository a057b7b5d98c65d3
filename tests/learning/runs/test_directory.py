"""Checkpoints: everything comes back as it was, and whatever goes wrong one that can be read is left."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import time
from itertools import count

import numpy as np
import pytest

from adalook.errors import ArgumentError, FileError
from adalook.learning.replay.buffer import Experience, Replay
from adalook.learning.replay.frames import SEGMENT_FRAMES
from adalook.learning.runs.directory import RunDirectory, load_newest
from adalook.storage.serializer import Segment, serialize
from tests.learning.runs import checkpoint_writer
from tests.learning.runs.checkpoint_writer import state_of, steps_in
from tests.processes import child


def test_what_would_not_come_back_is_refused_and_nothing_is_written(tmp_path):
    with RunDirectory(tmp_path) as run:
        with pytest.raises(ArgumentError, match="at /agent/best/0 without pickle"):
            run.save(1, {"agent": {"best": [{1, 2}]}})
        assert run.load_newest() is None


def test_generators_come_back(tmp_path):
    rng = np.random.default_rng(5)
    with RunDirectory(tmp_path) as run:
        run.save(1, rng.bit_generator.state)
        again = np.random.default_rng()
        again.bit_generator.state = run.load_newest().state
    assert again.random(8).tolist() == rng.random(8).tolist()


def test_the_newest_two_are_kept_and_segments_are_written_once(tmp_path):
    with RunDirectory(tmp_path) as run:
        before = {}
        for step in range(1, 6):
            run.save(step, state_of(step))
            written = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "segments").iterdir()}
            assert all(written[name] == before[name] for name in written.keys() & before.keys())
            before = written
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["000004-step-4", "000005-step-5"]
    assert len(written) == 4  # 3 of each, 2 shared


def test_nothing_is_left_of_a_killed_writer_after_the_next_checkpoint(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.save(1, state_of(1))
        (tmp_path / "checkpoints" / "000002-step-2").mkdir()
        (tmp_path / "checkpoints" / "000002-step-2" / "state.bin").write_bytes(b"half")
        (tmp_path / "segments" / ".adalook-1234.tmp").write_bytes(b"half")
        assert run.load_newest().step == 1
        run.save(3, state_of(3))
    assert len(os.listdir(tmp_path / "segments")) == 5
    for directory in (tmp_path / "checkpoints").iterdir():
        assert sorted(os.listdir(directory)) == ["manifest.json", "state.bin"]


def spoil_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def spoil_length(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("spoil", [spoil_byte, spoil_length, os.unlink], ids=["bit", "length", "gone"])
@pytest.mark.parametrize("victim", ["state.bin", "manifest.json", "segment"])
def test_a_damaged_newest_checkpoint_is_reported_and_the_previous_one_used(victim, spoil, tmp_path):
    with RunDirectory(tmp_path) as run:
        run.save(1, state_of(1))
        newest = run.save(2, state_of(2))
    own_segment = state_of(2)["segments"][2].digest
    spoil(tmp_path / "segments" / own_segment if victim == "segment" else newest / victim)
    messages = []
    with RunDirectory(tmp_path) as run:
        checkpoint = run.load_newest(messages.append)
        assert (checkpoint.step, steps_in(checkpoint.state)) == (1, {1})
        if (victim, spoil) == ("manifest.json", os.unlink):  # then it never was a checkpoint
            assert messages == []
        else:
            assert "000002-step-2" in messages[0]
            assert "going on from 000001-step-1" in messages[0]
        # going on makes the same segments again: the damaged file must not be taken for one of them
        run.save(2, state_of(2))
        newest = run.save(3, state_of(3))
    assert steps_in(load_newest(tmp_path).state) == {3}
    spoil_byte(newest / "manifest.json")
    assert steps_in(load_newest(tmp_path, messages.append).state) == {2}


def test_by_default_damage_is_a_warning(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.save(1, state_of(1))
        spoil_byte(run.save(2, state_of(2)) / "state.bin")
        with pytest.warns(RuntimeWarning, match=r"state\.bin is damaged"):
            assert run.load_newest().step == 1


def test_when_none_can_be_read_the_error_names_each(tmp_path):
    with RunDirectory(tmp_path) as run:
        paths = [run.save(step, state_of(step)) for step in (1, 2)]
    for path in paths:
        spoil_byte(path / "state.bin")
    with pytest.raises(FileError, match=r"no checkpoint of .* can be read.*000002-step-2.*000001-step-1"):
        load_newest(tmp_path)


def test_a_run_without_checkpoints_has_none(tmp_path):
    assert load_newest(tmp_path / "nowhere") is None


def test_a_manifest_cannot_point_outside_the_run(tmp_path):
    with RunDirectory(tmp_path) as run:
        run._write_checkpoint("000001-step-1", 1, serialize(1), {"../x": Segment(np.zeros(1))})
    with pytest.raises(FileError, match="damaged"):
        load_newest(tmp_path)


def save_with_failing_call(run, step, call, fail_at, code, monkeypatch):
    """Save while the `fail_at`-th call of a function of the system fails: (the error or None, calls made)."""
    original = {"os.fsync": os.fsync, "os.replace": os.replace, "os.open": os.open, "builtins.open": open}[call]
    calls = 0

    def failing(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise OSError(code, os.strerror(code))
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(call, failing)
        try:
            run.save(step, state_of(step))
        except FileError as error:
            return error, calls
        return None, calls


@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "os.open", "builtins.open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_whichever_call_fails_the_error_is_clear_and_the_last_checkpoint_is_left(call, code, tmp_path, monkeypatch):
    with RunDirectory(tmp_path) as run:
        run.save(1, state_of(1))
        reported = 1
        for fail_at in count(1):
            error, calls = save_with_failing_call(run, reported + 1, call, fail_at, code, monkeypatch)
            if error is None:
                reported += 1
            else:
                assert os.strerror(code) in str(error)
                assert code != errno.ENOSPC or "Free some space" in str(error)
            found = load_newest(tmp_path)
            assert (found.step, steps_in(found.state)) == (reported, {reported})
            if calls < fail_at:
                break
        assert fail_at >= 3  # a segment, the state and the manifest: each of them has failed
        assert reported > 1
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_write_that_stops_half_way_leaves_the_last_checkpoint(tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with RunDirectory(tmp_path) as run:
        run.save(1, state_of(1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(FileError, match=r"cannot write .*: got File too large"):
                run.save(2, state_of(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert load_newest(tmp_path).step == 1
        run.save(2, state_of(2))
        assert steps_in(load_newest(tmp_path).state) == {2}


def test_two_processes_cannot_use_one_run(tmp_path):
    source = "import sys; from adalook.learning.runs.directory import RunDirectory; RunDirectory(sys.argv[1])"
    command = [sys.executable, "-c", source, str(tmp_path)]
    with RunDirectory(tmp_path) as run:
        run.save(1, state_of(1))
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode != 0
        assert f"is in use: expected one process at a time, got process {os.getpid()} writing to it" in refused.stderr
        assert load_newest(tmp_path).step == 1  # readers need no lock
    subprocess.run(command, check=True)
    with pytest.raises(ArgumentError, match="closed"):
        run.save(2, state_of(2))


def kill_writers(run_path, kills, seed):
    """Kill a writer at random moments, each time checking what it leaves."""
    rng, reported = random.Random(seed), 0
    for _ in range(kills):
        command = [sys.executable, checkpoint_writer.__file__, str(run_path)]
        with child(command, stdout=subprocess.PIPE, text=True) as writer:
            assert int(writer.stdout.readline()) == reported + 1  # it goes on where the last one was
            time.sleep(rng.uniform(0, 0.15))
            writer.kill()
            said = [reported + 1, *map(int, writer.stdout.read().splitlines())]
        found = load_newest(run_path, on_damage=pytest.fail)
        assert found.step in (said[-1], said[-1] + 1)  # killed between being safe and saying so
        assert steps_in(found.state) == {found.step}
        reported = found.step
    return reported


def test_a_writer_killed_at_any_moment_leaves_what_it_reported(tmp_path):
    assert kill_writers(tmp_path, kills=5, seed=0) >= 5


@pytest.mark.slow
def test_thirty_kills(tmp_path):
    assert kill_writers(tmp_path, kills=30, seed=1) >= 30


@pytest.mark.parametrize("dtype", [bool, np.uint8], ids=["bits", "lz4"])
def test_a_replay_buffer_goes_through_checkpoints_and_only_its_news_are_written(dtype, tmp_path):
    def make():
        return Replay(2 * SEGMENT_FRAMES, (2, 20), np.dtype(dtype), max_depth=2, stacked=True, memory_bytes=2**28)

    def add(replay, numbers):
        for number in numbers:
            frames = (number + np.arange(4)[:, None] >> np.arange(20) & 1).astype(dtype)
            replay.add(Experience(frames[:2], number % 7, number, frames[2:], number % 3, 1, False), {1: number % 11})

    replay, restored = make(), make()
    with RunDirectory(tmp_path) as run:
        add(replay, range(2 * SEGMENT_FRAMES))
        run.save(1, {"replay": replay.state()})
        files = set(os.listdir(tmp_path / "segments"))
        add(replay, range(2 * SEGMENT_FRAMES, 3 * SEGMENT_FRAMES + 50))
        run.save(2, {"replay": replay.state()})
        assert files & set(os.listdir(tmp_path / "segments"))
        restored.load_state(run.load_newest().state["replay"])
        for one in (replay, restored):
            add(one, range(3 * SEGMENT_FRAMES + 50, 4 * SEGMENT_FRAMES + 99))
    one, other = (buffer.sample(np.random.default_rng(0), 500) for buffer in (replay, restored))
    np.testing.assert_array_equal(one.observations, other.observations)
    np.testing.assert_array_equal(one.leaves, other.leaves)
    np.testing.assert_array_equal(one.returns, other.returns)
    assert serialize(replay.state(), {}) == serialize(restored.state(), {})
