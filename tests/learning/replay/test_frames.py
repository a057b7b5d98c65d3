"""Frames come back bit for bit, equal ones are stored once, and only those that nobody holds are freed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adalook.errors import ArgumentError, MissingExtraError
from adalook.learning.replay.codecs import LZ4, Bits, Raw, fitting_codec, shows_stacked_frames
from adalook.learning.replay.frames import SEGMENT_FRAMES, WINDOW, FrameStore
from adalook.simulators.make import make_simulator

KINDS = [
    (Raw(), np.uint8),
    (Raw(), np.float32),
    (Raw(), bool),
    (Bits(), bool),
    (Bits(), np.uint8),
    (LZ4(), np.uint8),
    (LZ4(), np.int64),
]
kinds = pytest.mark.parametrize(("codec", "dtype"), KINDS, ids=lambda part: getattr(part, "name", None))


def pictures(dtype, n, seed=0, shape=(3, 5)):
    """(n, *shape) of which no two are equal."""
    drawn = np.random.default_rng(seed).integers(0, 2, (n, *shape)).astype(dtype)
    number = (np.arange(n)[:, None] >> np.arange(14) & 1).astype(dtype)
    drawn.reshape(n, -1)[:, :14] = number
    return drawn


@kinds
def test_frames_come_back_in_any_order_from_sealed_and_open_segments(codec, dtype):
    frames = pictures(dtype, SEGMENT_FRAMES + 100)
    store = FrameStore((3, 5), np.dtype(dtype), codec, max_frames=len(frames))
    assert [store.put(frame) for frame in frames] == list(range(len(frames)))
    asked = np.random.default_rng(1).integers(0, len(frames), 500)
    got = store.read(asked)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, frames[asked])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=60))
def test_a_frame_is_stored_once(drawn):
    frames = pictures(np.uint8, 31)
    store = FrameStore((3, 5), np.dtype(np.uint8), LZ4(), max_frames=100)
    numbers = [store.put(frames[k]) for k in drawn]
    assert store.stored == len(set(drawn))
    np.testing.assert_array_equal(store.read(np.array(numbers, int)), frames[np.array(drawn, int)])


def test_floats_are_shared_by_bits_and_not_by_value():
    store = FrameStore((1,), np.dtype(float), Raw(), max_frames=10)
    zero, minus_zero = store.put(np.array([0.0])), store.put(np.array([-0.0]))
    assert np.signbit(store.read(np.array([zero, minus_zero]))[:, 0]).tolist() == [False, True]


def test_frames_that_are_not_contiguous_are_read_right():
    picture = np.arange(15, dtype=np.uint8).reshape(5, 3).T
    store = FrameStore((3, 5), np.dtype(np.uint8), LZ4(), max_frames=10)
    store.put(picture)
    np.testing.assert_array_equal(store.read(np.array([0]))[0], picture)


@kinds
def test_only_released_frames_outside_the_window_are_freed(codec, dtype):
    frames = pictures(dtype, 3 * SEGMENT_FRAMES)
    store = FrameStore((3, 5), np.dtype(dtype), codec, max_frames=len(frames))
    for frame in frames:
        store.put(frame)
    before = store.bytes_used
    store.release(SEGMENT_FRAMES - 1)
    assert store.kept == 3 * SEGMENT_FRAMES
    store.release(SEGMENT_FRAMES)
    assert store.kept == 2 * SEGMENT_FRAMES
    assert store.bytes_used < before
    store.release(store.stored)  # more than may go: the last WINDOW can still be found by content
    assert store.kept == SEGMENT_FRAMES
    assert store.put(frames[-WINDOW]) == len(frames) - WINDOW
    asked = np.arange(2 * SEGMENT_FRAMES, len(frames))
    np.testing.assert_array_equal(store.read(asked), frames[asked])


@kinds
def test_a_frame_older_than_the_window_is_stored_again(codec, dtype):
    frames = pictures(dtype, WINDOW + 1)
    store = FrameStore((3, 5), np.dtype(dtype), codec, max_frames=len(frames))
    for frame in frames[:WINDOW]:
        store.put(frame)
    assert store.put(frames[0]) == 0
    store.put(frames[WINDOW])
    assert store.put(frames[0]) == WINDOW + 1


@kinds
@pytest.mark.parametrize("stored", [0, 5, SEGMENT_FRAMES, 3 * SEGMENT_FRAMES + 7])
def test_a_restored_store_goes_on_as_the_saved_one_would(codec, dtype, stored):
    frames = pictures(dtype, stored + 50)
    store, restored = (FrameStore((3, 5), np.dtype(dtype), codec, max_frames=4 * SEGMENT_FRAMES) for _ in range(2))
    for frame in frames[:stored]:
        store.put(frame)
    store.release(2 * SEGMENT_FRAMES)
    restored.load_state(store.state())
    again = np.concatenate((frames[stored // 2 : stored // 2 + 20], frames[max(0, stored - 20) :]))
    assert [restored.put(frame) for frame in again] == [store.put(frame) for frame in again]
    kept = np.arange(store.stored - store.kept, store.stored)
    np.testing.assert_array_equal(restored.read(kept), store.read(kept))
    assert (restored.bytes_used, restored.horizon, restored.kept) == (store.bytes_used, store.horizon, store.kept)


def test_segments_are_sealed_once():
    store = FrameStore((3, 5), np.dtype(np.uint8), LZ4(), max_frames=2 * SEGMENT_FRAMES)
    for frame in pictures(np.uint8, 2 * SEGMENT_FRAMES):
        store.put(frame)
    assert store.state()["segments"][0] is store.state()["segments"][0]
    assert not store.state()["segments"][0].payload.flags.writeable


def test_noise_never_takes_more_than_its_limit():
    noise = np.random.default_rng(0).integers(0, 256, (3 * SEGMENT_FRAMES, 64), np.uint8)
    limit = LZ4().bytes_needed((64,), np.dtype(np.uint8), 10)
    store = FrameStore((64,), np.dtype(np.uint8), LZ4(), max_frames=10, max_bytes=limit)
    for frame in noise:
        if not store.has_room(1):
            store.release(store.horizon)
        assert store.has_room(1)
        store.put(frame)
        assert store.bytes_used <= limit


def test_bits_are_for_cells_of_two_values():
    assert (
        fitting_codec(np.dtype(bool), stacked=False).name,
        fitting_codec(np.dtype(np.uint8), stacked=True).name,
    ) == (
        "bits",
        "lz4",
    )
    assert fitting_codec(np.dtype(np.int64), stacked=False).name == "raw"
    with pytest.raises(ArgumentError, match="boolean"):
        FrameStore((3, 5), np.dtype(np.int64), Bits(), max_frames=10)
    store = FrameStore((3,), np.dtype(np.uint8), Bits(), max_frames=10)
    with pytest.raises(ArgumentError, match="zeros and ones, got 2"):
        store.put(np.array([0, 1, 2], np.uint8))


def test_without_lz4_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    with pytest.raises(MissingExtraError, match=r"adalook\[learn\]"):
        LZ4()


@pytest.mark.parametrize(
    ("env", "stacked", "codec"),
    [("ALE/Pong-v5", True, LZ4), ("MinAtar/Breakout-v1", False, Bits), ("CartPole-v1", False, Raw)],
)
def test_the_format_follows_from_the_simulator(env, stacked, codec):
    sim = make_simulator(env)
    assert shows_stacked_frames(sim) == stacked
    chosen = fitting_codec(sim.observation_dtype, stacked=stacked, binary=sim.binary_observations)
    assert isinstance(chosen, codec)
