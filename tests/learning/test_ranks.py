"""Ranks against sorting: the same answers after any history of recording and forgetting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adalook.errors import ArgumentError
from adalook.learning.depth import BYTES_PER_SLOT, RankedDistances

CAPACITY = 24
tied = st.sampled_from([0.0, -0.0, 1.0, 1.5, 5e-324, 1e308])
finite = st.floats(allow_nan=False, allow_infinity=False)
histories = st.lists(st.tuples(st.integers(0, CAPACITY - 1), tied | finite), max_size=80)


def play(history: list[tuple[int, float]]) -> tuple[RankedDistances, dict[int, float]]:
    """A slot that is recorded is forgotten, one that is not is recorded."""
    ranks, recorded = RankedDistances(CAPACITY), {}
    for slot, distance in history:
        if slot in recorded:
            assert ranks.remove(slot) == recorded.pop(slot)
        else:
            ranks.insert(slot, distance)
            recorded[slot] = distance
    return ranks, recorded


@settings(max_examples=300, deadline=None)
@given(histories, tied | finite)
def test_counts_and_quantiles_are_those_of_a_sorted_list(history, asked):
    ranks, recorded = play(history)
    ordered = sorted(recorded.values(), reverse=True)
    assert len(ranks) == len(ordered)
    for distance in (asked, *ordered):
        assert ranks.count_above(distance) == sum(d > distance for d in ordered)
        assert ranks.count_at_least(distance) == sum(d >= distance for d in ordered)
    assert [ranks.quantile(k / len(ordered)) for k in range(1, len(ordered) + 1)] == ordered
    assert [slot for slot in range(CAPACITY) if slot in ranks] == sorted(recorded)
    assert all(ranks.distance_of(slot) == distance for slot, distance in recorded.items())


@settings(max_examples=200, deadline=None)
@given(histories)
def test_the_tree_depends_on_what_is_recorded_and_not_on_how_it_came_about(history):
    grown, recorded = play(history)
    slots = np.array(list(recorded), np.int64)
    built = RankedDistances.of(CAPACITY, slots, np.array(list(recorded.values())))
    live = sorted(recorded)
    assert len(grown) == len(built)
    for name in ("_left", "_right", "_size", "_distances"):
        np.testing.assert_array_equal(getattr(grown, name)[live], getattr(built, name)[live])
    np.testing.assert_array_equal(grown._size, built._size)


def test_a_long_life_with_eviction_agrees_with_sorting():
    rng = np.random.default_rng(0)
    ranks, window = RankedDistances(500), np.empty(500)
    for number in range(6_000):
        slot, distance = number % 500, float(np.round(rng.exponential(), 2))  # rounded: many ties
        if number >= 500:
            ranks.remove(slot)
        ranks.insert(slot, distance)
        window[slot] = distance
        if number >= 500 and number % 7 == 0:
            asked = float(np.round(rng.exponential(), 2))
            assert ranks.share_above(asked) == np.count_nonzero(window > asked) / 500


@pytest.mark.parametrize("order", ["ascending", "descending", "equal"])
def test_the_tree_stays_shallow_whatever_the_order(order):
    n = 20_000
    ranks = RankedDistances(n)
    for slot in range(n):
        ranks.insert(slot, {"ascending": slot, "descending": -slot, "equal": 1.0}[order])
    depth = np.zeros(n + 2, int)
    for node in sorted(range(n), key=lambda node: -ranks._size[node]):
        for child in (ranks._left[node], ranks._right[node]):
            depth[child] = depth[node] + 1
    assert depth[:n].max() < 5 * math.log2(n)


def test_minus_zero_is_zero():
    ranks = RankedDistances(3)
    ranks.insert(0, -0.0)
    ranks.insert(1, 0.0)
    assert ranks.count_above(-0.0) == 0
    assert ranks.count_at_least(0.0) == 2
    assert math.copysign(1, ranks.distance_of(0)) == 1


@pytest.mark.parametrize("distance", [math.nan, math.inf, -math.inf])
def test_a_distance_that_is_not_finite_is_refused_and_changes_nothing(distance):
    ranks = RankedDistances(3)
    for ask in (lambda: ranks.insert(0, distance), lambda: ranks.count_above(distance)):
        with pytest.raises(ArgumentError, match="finite"):
            ask()
    with pytest.raises(ArgumentError, match="finite"):
        RankedDistances.of(3, np.array([0]), np.array([distance]))
    assert len(ranks) == 0
    assert 0 not in ranks


def test_misuse_is_refused():
    ranks = RankedDistances(3)
    ranks.insert(1, 1.0)
    with pytest.raises(ArgumentError, match="free slot"):
        ranks.insert(1, 2.0)
    for slot in (-1, 3):
        with pytest.raises(ArgumentError, match="free slot"):
            ranks.insert(slot, 2.0)
        with pytest.raises(ArgumentError, match="inserted"):
            ranks.remove(slot)
    with pytest.raises(ArgumentError, match="inserted"):
        ranks.remove(0)
    with pytest.raises(ArgumentError, match="share"):
        ranks.quantile(0.0)
    ranks.remove(1)
    with pytest.raises(ArgumentError, match="no distances"):
        ranks.share_above(1.0)
    with pytest.raises(ArgumentError, match="distinct"):
        RankedDistances.of(3, np.array([1, 1]), np.zeros(2))


def test_the_memory_stated_is_the_memory_used():
    ranks = RankedDistances(1000)
    used = sum(getattr(ranks, name).nbytes for name in ("_distances", "_left", "_right", "_size"))
    assert used == 1000 * BYTES_PER_SLOT + 2 * 12
