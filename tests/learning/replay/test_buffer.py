"""Replay against a list of transitions: what went in comes out, oldest forgotten first; restoring loses nothing."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest

from adalook.errors import ArgumentError
from adalook.learning.config import DEEPEST
from adalook.learning.depth import DistanceRanks
from adalook.learning.replay import buffer
from adalook.learning.replay.buffer import SEGMENT_RECORDS, Experience, Replay
from adalook.learning.replay.codecs import LZ4, Bits, Raw
from adalook.learning.replay.frames import SEGMENT_FRAMES

STACK = 4


def stacked_replay(capacity=50, max_depth=3, **settings):
    return Replay(capacity, (STACK, 6, 6), np.dtype(np.uint8), max_depth=max_depth, stacked=True, **settings)


def flat_replay(capacity=50, max_depth=3):
    return Replay(capacity, (4, 5, 5), np.dtype(bool), max_depth=max_depth)


def gif(n, seed=0):
    """(n, 6, 6) frames of one game, no two equal."""
    frames = np.random.default_rng(seed).integers(0, 3, (n, 6, 6), np.uint8)
    frames[:, 0, :3] = np.arange(n)[:, None] // [1, 256, 65536] % 256
    return frames


def play_along(replay, steps, seed=0):
    """Transitions along one gif, whose leaves are later stacks of it; returns the arguments of every `add`."""
    frames, rng = gif(steps + 10, seed), np.random.default_rng(seed)
    added = []
    for t in range(steps):
        depth = int(rng.integers(0, replay.max_depth + 1))
        reach = max(1, depth)
        distances = {h: float(np.round(rng.exponential(), 1)) for h in range(1, depth + 1)}
        experience = Experience(
            frames[t : t + STACK],
            int(rng.integers(18)),
            float(rng.normal()),
            frames[t + reach : t + reach + STACK],
            depth,
            reach,
            bool(rng.integers(2)),
        )
        replay.add(experience, distances)
        added.append((experience, distances))
    return added


def random_transition(replay, rng):
    observation, leaf = rng.integers(0, 2, (2, *replay.observation_shape)).astype(replay.observation_dtype)
    depth = int(rng.integers(0, replay.max_depth + 1))
    distances = {h: float(rng.integers(5)) for h in range(1, depth + 1)}
    experience = Experience(
        observation, int(rng.integers(6)), float(rng.normal()), leaf, depth, max(1, depth), bool(rng.integers(2))
    )
    return experience, distances


def assert_same_batch(one, other):
    for name in ("observations", "actions", "returns", "leaves", "heads", "steps", "terminated"):
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


def test_batches_hold_what_was_added_and_only_the_newest():
    replay = stacked_replay(capacity=50)
    held = [experience for experience, _ in play_along(replay, 200)[-50:]]
    batch = replay.sample(np.random.default_rng(1), 400)
    seen = set()
    for i in range(400):
        matches = [k for k, t in enumerate(held) if np.array_equal(t[0], batch.observations[i])]
        assert len(matches) == 1
        expected = held[matches[0]]
        np.testing.assert_array_equal(batch.leaves[i], expected.leaf)
        assert (batch.actions[i], batch.terminated[i]) == (expected.action, expected.terminated)
        assert (batch.heads[i], batch.steps[i]) == (expected.head, expected.steps)
        assert batch.returns[i] == np.float32(expected.return_to_leaf)
        seen.add(matches[0])
    assert len(seen) == len(held)  # 400 draws of at most 50: that any is missed has odds below 1 in 60


def test_sampling_is_uniform():
    replay = flat_replay(capacity=10)
    rng = np.random.default_rng(0)
    for number in range(25):
        replay.add(random_transition(replay, rng)[0]._replace(action=number))
    drawn = replay.sample(np.random.default_rng(1), 20_000).actions
    counts = np.bincount(drawn, minlength=25)
    assert counts[:15].sum() == 0
    assert abs(counts[15:] - 2000).max() < 5 * math.sqrt(2000)


def test_ranks_follow_the_buffer():
    replay = stacked_replay(capacity=64)
    window = deque(maxlen=64)
    for _, distances in play_along(replay, 300):
        window.append(distances)
    for depth, recorded in replay.ranks.recorded().items():
        assert recorded.tolist() == sorted(distances[depth] for distances in window if depth in distances)
    assert len(replay) == 64


def test_a_leaf_shares_the_frames_of_its_root_and_of_later_roots():
    replay = stacked_replay(capacity=1000)
    play_along(replay, 500)
    assert replay.frames_stored <= 500 + STACK + 3  # one new frame a step: leaves lie on the path that is taken


def test_several_transitions_of_one_step_share_their_frames():
    replay, frames = stacked_replay(), gif(10)
    for depth in (1, 2, 3):
        replay.add(Experience(frames[:4], 0, 0.0, frames[depth : depth + 4], depth, depth, False))
    assert replay.frames_stored == 7


def test_truncation_is_not_termination():
    replay, frames = stacked_replay(), gif(10)
    replay.add(Experience(frames[:4], 0, 0.0, frames[1:5], 1, 1, terminated=False))
    assert replay.sample(np.random.default_rng(0), 1).terminated.tolist() == [False]


@pytest.mark.parametrize(
    ("shape", "dtype"), [((), np.int64), ((1,), np.int64), ((3,), np.float32)], ids=["scalar", "index", "vector"]
)
def test_other_observations(shape, dtype):
    replay = Replay(10, shape, np.dtype(dtype), max_depth=0)
    replay.add(Experience(np.full(shape, 3, dtype), 1, 0.5, np.full(shape, 4, dtype), 0, 1, True))
    batch = replay.sample(np.random.default_rng(0), 2)
    np.testing.assert_array_equal(batch.observations, np.full((2, *shape), 3, dtype))
    np.testing.assert_array_equal(batch.leaves, np.full((2, *shape), 4, dtype))


@pytest.mark.parametrize("codec", [Raw(), Bits(), LZ4()], ids=lambda codec: codec.name)
@pytest.mark.parametrize("stacked", [False, True])
def test_batches_are_the_callers_to_write_to(codec, stacked):
    replay = Replay(10, (2, 8), np.dtype(np.uint8), max_depth=0, stacked=stacked, codec=codec)
    replay.add(Experience(np.ones((2, 8), np.uint8), 0, 0.0, np.ones((2, 8), np.uint8), 0, 1, False))
    batch = replay.sample(np.random.default_rng(0), 2)
    batch.observations[:] = 0
    batch.leaves[:] = 0
    again = replay.sample(np.random.default_rng(0), 2)
    assert again.observations.all()
    assert again.leaves.all()


@pytest.mark.parametrize(
    ("make", "before"),
    [
        (flat_replay, 0),
        (flat_replay, 30),
        (flat_replay, 333),
        (stacked_replay, 77),
        (lambda: stacked_replay(codec=Raw()), 333),
        (lambda: flat_replay(SEGMENT_RECORDS + 500), 2 * SEGMENT_RECORDS + 77),
        (lambda: flat_replay(2 * SEGMENT_RECORDS + 10), 3 * SEGMENT_FRAMES + 5),
        (lambda: stacked_replay(2 * SEGMENT_RECORDS, memory_bytes=2**28), 2 * SEGMENT_RECORDS + 3),
    ],
)
def test_a_restored_buffer_goes_on_bit_for_bit(make, before):
    replay, restored = make(), make()
    rng = np.random.default_rng(2)
    for _ in range(before):
        replay.add(*random_transition(replay, rng))
    for _ in range(17):  # restoring replaces whatever was there
        restored.add(*random_transition(restored, np.random.default_rng(9)))
    restored.load_state(replay.state())
    draws = np.random.default_rng(3), np.random.default_rng(3)
    for number in range(600):
        transition = random_transition(replay, rng)
        for one in (replay, restored):
            one.add(*transition)
        if number % 20 == 0:
            assert_same_batch(replay.sample(draws[0], 32), restored.sample(draws[1], 32))
            mine, others = replay.ranks.recorded(), restored.ranks.recorded()
            assert all(np.array_equal(mine[depth], others[depth]) for depth in mine)
    assert (len(replay), replay.bytes_used, replay.frames_stored) == (
        len(restored),
        restored.bytes_used,
        restored.frames_stored,
    )


def test_a_state_of_other_settings_is_refused():
    with pytest.raises(ArgumentError, match="other settings"):
        flat_replay(50).load_state(flat_replay(51).state())


@pytest.mark.parametrize("first", [-1, 1, 10**6])
def test_records_of_frames_that_are_not_there_are_refused(first):
    replay = flat_replay(50)
    rng = np.random.default_rng(2)
    for _ in range(20):
        replay.add(*random_transition(replay, rng))
    state = replay.state()
    state["frames"]["first_segment"] = first
    with pytest.raises(ValueError, match="frames that are not there"):
        flat_replay(50).load_state(state)


def test_what_cannot_fit_is_refused_with_the_numbers_before_it_is_allocated():
    with pytest.raises(ArgumentError) as caught:
        Replay(10**12, (4, 84, 84), np.dtype(np.uint8), max_depth=3, stacked=True)
    message = str(caught.value)
    assert "1,000,000,000,000 transitions" in message
    assert "GiB at hand" in message
    assert "an estimate of" in message
    assert "buffer_transitions" in message
    with pytest.raises(
        ArgumentError, match=r"at most 1.00 GiB \(the limit that was set\), got an estimate of 6.\d\d GiB"
    ):
        Replay(10**6, (4, 84, 84), np.dtype(np.uint8), max_depth=3, stacked=True, memory_bytes=2**30)


def test_the_memory_at_hand_is_the_smaller_of_the_machines_and_the_containers(monkeypatch):
    monkeypatch.setattr(buffer, "_bytes_from_meminfo", lambda: 5 * 2**30)
    for limit, expected in ((None, 5 * 2**30), (3 * 2**30, 3 * 2**30), (9 * 2**30, 5 * 2**30)):
        monkeypatch.setattr(buffer, "_bytes_from_control_group", lambda limit=limit: limit)
        assert buffer.available_bytes() == expected


@pytest.mark.parametrize("codec", [LZ4(), Raw()], ids=["lz4", "raw"])
def test_frames_that_share_less_than_assumed_cost_old_transitions_and_never_more_memory(codec):
    replay = Replay(
        12_000,
        (STACK, 64),
        np.dtype(np.uint8),
        max_depth=1,
        stacked=True,
        codec=codec,
        new_frames_per_transition=0.1,
    )
    noise = np.random.default_rng(0).integers(0, 256, (12_000, STACK, 64), np.uint8)

    def fill():
        for t in range(len(noise) - 1):
            replay.add(Experience(noise[t], t, 0.0, noise[t + 1], 1, 1, False), {1: 1.0})
            assert replay.bytes_used <= replay.bytes_limit

    with pytest.warns(RuntimeWarning, match="instead of 12,000") as caught:
        fill()
    assert len(caught) == 1  # told once
    assert replay.forgotten_early > 0
    batch = replay.sample(np.random.default_rng(1), 64)
    np.testing.assert_array_equal(batch.observations, noise[batch.actions])
    np.testing.assert_array_equal(batch.leaves, noise[batch.actions + 1])
    assert replay.ranks.count(1) == len(replay)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"observation": np.zeros((4, 5, 4), bool)}, "observation does not match"),
        ({"leaf": np.zeros((4, 5, 5), np.uint8)}, "observation does not match"),
        ({"head": 4}, "head of a transition"),
        ({"head": -1}, "head of a transition"),
        ({"steps": 0}, "steps of a transition"),
        ({"steps": DEEPEST + 1}, "steps of a transition"),
        ({"return_to_leaf": math.nan}, "return to the leaf"),
        ({"distances": {0: 1.0}}, "depth of a distance"),
        ({"distances": {1: 1.0, 2: math.inf}}, "not finite"),
    ],
)
def test_a_bad_transition_is_refused_and_leaves_no_trace(change, match):
    replay = flat_replay()
    good = Experience(np.zeros((4, 5, 5), bool), 0, 0.0, np.ones((4, 5, 5), bool), 1, 1, False)
    distances = change.pop("distances", None)
    with pytest.raises(ArgumentError, match=match):
        replay.add(good._replace(**change), distances)
    assert (len(replay), replay.frames_stored, replay.ranks.count(1)) == (0, 0, 0)


def test_an_empty_buffer_has_nothing_to_draw():
    replay = flat_replay()
    with pytest.raises(ArgumentError, match="nothing to sample"):
        replay.sample(np.random.default_rng(0), 1)


def test_a_new_buffer_empties_the_ranks_it_is_given():
    ranks = DistanceRanks(min_count=1)
    ranks.add(2, 1.0)
    assert Replay(50, (4, 5, 5), np.dtype(bool), max_depth=3, ranks=ranks).ranks is ranks
    assert ranks.count(2) == 0
