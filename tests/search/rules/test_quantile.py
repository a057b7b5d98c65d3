"""The quantile rule and its ranks: distances, what ranks before what, and which trees grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.search import (
    DistanceRanks,
    FixedDepth,
    LevelView,
    QuantileDepth,
    RecentDistances,
    SearchStatus,
    search,
)
from tests.search.reference import hashed_values, roots_along
from tests.search.sims import Graph

tied = st.sampled_from([0.0, -0.0, 1.0, 1.5, 5e-324, 1e308])
finite = st.floats(allow_nan=False, allow_infinity=False)


def ranks_of(*by_depth: Any, min_count: int) -> DistanceRanks:
    ranks = DistanceRanks(min_count)
    ranks.replace({depth: np.array(distances, float) for depth, distances in enumerate(by_depth, 1)})
    return ranks


def view(depth: int, values: Any, previous: Any = None, references: Any = None) -> LevelView:
    values = np.array(values, float)
    return LevelView(
        depth,
        values[:, None],
        values,
        np.zeros(len(values)) if previous is None else np.array(previous, float),
        np.zeros(len(values)) if references is None else np.array(references, float),
        range(len(values)),
    )


class Table:
    """Ranks that a test has fixed, which record what they are asked."""

    def __init__(self, shares):
        self.shares, self.asked = shares, []

    def rank_share(self, depth, distances, draws):
        self.asked.append((depth, distances.copy()))
        return np.full(len(distances), self.shares[depth])


@settings(max_examples=200, deadline=None)
@given(st.lists(tied | finite, min_size=1, max_size=60), st.integers(0, 60), tied | finite, st.sampled_from([0.0, 0.3]))
def test_rank_shares_are_those_of_a_sorted_list(added: list[float], forgotten: int, asked: float, draw: float) -> None:
    ranks = DistanceRanks(min_count=1)
    for distance in added:
        ranks.add(1, distance)
    for distance in added[:forgotten]:
        ranks.remove(1, distance)
    left = added[forgotten:]
    assert ranks.count(1) == len(left)
    assert ranks.recorded()[1].tolist() == sorted(left)
    (share,) = ranks.rank_share(1, np.array([asked]), np.array([draw]))
    if left:
        before = sum(distance > asked for distance in left) + draw * left.count(asked)
        assert share == before / (len(left) + 1)
    else:
        assert np.isnan(share)


@settings(max_examples=100, deadline=None)
@given(st.lists(tied | finite, min_size=1, max_size=60), st.integers(1, 60), tied | finite)
def test_recent_distances_are_ranks_of_the_last_ones(added: list[float], window: int, asked: float) -> None:
    recent, ranks = RecentDistances(window, min_count=1), DistanceRanks(min_count=1)
    for distance in added:
        recent.add(1, distance)
    for distance in added[-window:]:
        ranks.add(1, distance)
    draw = np.full(1, 0.5)
    assert recent.rank_share(1, np.array([asked]), draw) == ranks.rank_share(1, np.array([asked]), draw)


def test_replacing_what_is_on_record_keeps_nothing_of_before() -> None:
    ranks = ranks_of([1.0, 2.0], [3.0], min_count=1)
    ranks.replace({2: np.array([5.0, 4.0])})
    assert {depth: recorded.tolist() for depth, recorded in ranks.recorded().items()} == {2: [4.0, 5.0]}


def test_the_share_is_by_rank_and_ties_are_drawn() -> None:
    ranks = ranks_of([0.1, 0.2, 0.2, 0.4], min_count=4)
    shares = ranks.rank_share(1, np.array([0.5, 0.3, 0.2, 0.2, 0.0]), np.array([0.5, 0.5, 0.0, 0.5, 0.5]))
    assert shares.tolist() == [0.0, 1 / 5, 1 / 5, 2 / 5, 4 / 5]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_of_equal_distances_the_share_that_was_set_goes_deeper(share: float) -> None:
    rule = QuantileDepth({2: share, 3: share}, ranks_of([0.0] * 45 + [1.0] * 5, [0.0] * 50, min_count=10))
    roots = view(1, np.zeros(2000))
    one = rule.deeper(roots, np.zeros(2000))
    assert one.mean() == pytest.approx((51 * share - 5) / 45, abs=0.04)
    np.testing.assert_array_equal(one, rule.deeper(roots, np.zeros(2000)))
    assert (one != rule.deeper(view(2, np.zeros(2000)), np.zeros(2000))).any()


def test_without_enough_on_record_the_search_stops_at_depth_one() -> None:
    rule = QuantileDepth({2: 0.9}, ranks_of([0.1, 0.2], min_count=3))
    assert rule.deeper(view(1, [1.0, 2.0]), np.array([9.0, 9.0])).tolist() == [False, False]
    nothing = QuantileDepth({2: 0.9}, DistanceRanks(min_count=1))
    assert nothing.deeper(view(1, [1.0]), np.array([9.0])).tolist() == [False]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_about_the_share_goes_deeper_of_distances_like_those_on_record(share: float) -> None:
    rng = np.random.default_rng(0)
    ranks = ranks_of(rng.exponential(size=2000), min_count=100)
    deeper = QuantileDepth({2: share}, ranks).deeper(view(1, np.zeros(4000)), rng.exponential(size=4000))
    assert abs(deeper.mean() - share) < 0.04


def test_each_depth_has_ranks_and_a_share_of_its_own() -> None:
    rule = QuantileDepth({2: 0.5, 3: 0.5}, ranks_of([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], min_count=3))
    distances = np.array([2.5, 25.0])
    assert rule.deeper(view(1, [0.0, 0.0]), distances).tolist() == [True, True]
    assert rule.deeper(view(2, [0.0, 0.0]), distances).tolist() == [False, True]


def test_distances_are_from_the_prior_or_from_the_level_above() -> None:
    level = view(2, [3.0, 5.0], previous=[2.5, 5.5], references=[0.0, 9.0])
    alone = QuantileDepth({2: 0.1}, DistanceRanks(min_count=1))
    assert alone.distances(level).tolist() == [0.5, 0.5]
    assert alone.reference(np.zeros((2, 1)), lambda rows, depth: np.full(len(rows), depth - 7.0)).tolist() == [-7, -7]
    with_prior = QuantileDepth({2: 0.1}, DistanceRanks(min_count=1), prior=lambda rows: np.ones(len(rows)))
    assert with_prior.distances(level).tolist() == [3.0, 4.0]
    assert with_prior.reference(np.zeros((2, 1)), lambda rows, depth: np.zeros(len(rows))).tolist() == [1, 1]


def test_a_search_without_a_prior_records_what_each_level_changed() -> None:
    sim = Graph(60, 4, seed=1, terminal=0.1)
    rule = QuantileDepth({2: 1.0, 3: 1.0}, DistanceRanks(min_count=1))
    for root in roots_along(sim, 5, 1):
        result = search(sim, root, hashed_values, rule, discount=0.9)
        at_root = hashed_values(root.observation[None], 0)[0]
        values = [at_root, *(level.value for level in result.levels)]
        np.testing.assert_array_equal(result.distances, np.abs(np.diff(values)))


@pytest.mark.parametrize(
    ("shares", "ranks", "depth"),
    [
        ({2: 0.3, 3: 0.1}, {1: 0.29, 2: 0.09}, 3),
        ({2: 0.3, 3: 0.1}, {1: 0.29, 2: 0.1}, 2),
        ({2: 0.3, 3: 0.1}, {1: 0.3, 2: 0.0}, 1),
        ({2: 0.3, 3: 0.1}, {1: np.nan, 2: 0.0}, 1),
        ({2: 0.0}, {1: 0.0}, 1),
        ({2: 1.0, 3: 1.0}, {1: np.nan, 2: np.nan}, 3),  # a share of 1 needs no ranks
    ],
)
def test_a_tree_grows_by_rank(shares, ranks, depth):
    sim = Graph(60, 4, seed=1, terminal=0.0)
    table = Table(ranks)
    result = search(sim, roots_along(sim, 1, 1)[0], hashed_values, QuantileDepth(shares, table), discount=0.9)
    assert (result.depth, result.status) == (depth, SearchStatus.DONE)
    for asked, level in zip(table.asked, result.levels, strict=False):
        assert asked[0] == level.depth
        assert asked[1][0] == level.distance


def test_selecting_all_is_fixed_depth():
    sim = Graph(60, 4, seed=1, terminal=0.1)
    rule = QuantileDepth({2: 1.0, 3: 1.0}, RecentDistances(), prior=lambda roots: np.zeros(len(roots)))
    for root in roots_along(sim, 8, 1):
        result = search(sim, root, hashed_values, rule, discount=0.9)
        np.testing.assert_array_equal(
            result.action_values, search(sim, root, hashed_values, FixedDepth(3), discount=0.9).action_values
        )


def test_recent_distances_deepen_the_share_that_was_set():
    rng = np.random.default_rng(0)
    recent = RecentDistances(window=500, min_count=100)
    chosen = []
    for distance in rng.exponential(size=4000):
        chosen.append(bool(recent.rank_share(1, np.array([distance]), np.zeros(1))[0] < 0.2))
        recent.add(1, distance)
    assert np.mean(chosen[500:]) == pytest.approx(0.2, abs=0.03)


def test_recent_distances_leave_out_what_a_rule_did_not_measure():
    sim = Graph(60, 4, seed=1, terminal=0.0)
    recent = RecentDistances(window=2, min_count=1)
    for root in roots_along(sim, 5, 1):
        recent.add_result(search(sim, root, hashed_values, FixedDepth(1), discount=0.9))  # which measures none
    assert np.isnan(recent.rank_share(1, np.zeros(1), np.zeros(1)))[0]


@pytest.mark.parametrize("shares", [{3: 0.1}, {1: 0.5, 2: 0.1}, {2: 1.5}, {2: -0.1}, {2: "all"}])
def test_wrong_shares_are_named(shares):
    with pytest.raises(al.AdalookError, match="QuantileDepth"):
        QuantileDepth(shares, RecentDistances())
