"""QL-DQN steps 2, 3 and 4: distances, their ranks in the replay buffer, shares, and the rule that chooses the depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adalook.learning.depth import (
    CostControlledShares,
    DistanceRanks,
    QuantileLookahead,
    least_depth,
    shares_by_depth,
)
from adalook.search.rules.base import LevelView

tied = st.sampled_from([0.0, -0.0, 1.0, 1.5, 5e-324, 1e308])
finite = st.floats(allow_nan=False, allow_infinity=False)


def ranks_of(*by_depth: Any, least: int) -> DistanceRanks:
    ranks = DistanceRanks(max(2, len(by_depth)), least)
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
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(tied | finite, min_size=1, max_size=60), st.integers(0, 60), tied | finite)
def test_rank_shares_are_those_of_a_sorted_list(added: list[float], forgotten: int, asked: float) -> None:
    ranks = DistanceRanks(1, least=1)
    for distance in added:
        ranks.add(1, distance)
    for distance in added[:forgotten]:
        ranks.remove(1, distance)
    left = added[forgotten:]
    assert ranks.count(1) == len(left)
    assert ranks.recorded()[1].tolist() == sorted(left)
    (share,) = ranks.rank_share(1, np.array([asked]))
    if left:
        assert share == sum(distance >= asked for distance in left) / (len(left) + 1)
    else:
        assert np.isnan(share)


def test_replacing_what_is_on_record_keeps_nothing_of_before() -> None:
    ranks = ranks_of([1.0, 2.0], [3.0], least=1)
    ranks.replace({2: np.array([5.0, 4.0])})
    assert [ranks.recorded()[depth].tolist() for depth in (1, 2)] == [[], [4.0, 5.0]]


def test_the_share_is_by_rank_and_ties_come_first() -> None:
    ranks = ranks_of([0.1, 0.2, 0.2, 0.4], least=4)
    shares = ranks.rank_share(1, np.array([0.5, 0.3, 0.2, 0.0]))
    assert shares.tolist() == [0.0, 1 / 5, 3 / 5, 4 / 5]


def test_equal_distances_do_not_all_go_deeper() -> None:
    rule = QuantileLookahead({2: 0.3}, ranks_of([0.0] * 50, least=10))
    assert not rule.deeper(view(1, [1.0]), np.array([0.0])).any()


def test_without_enough_on_record_the_search_stops_at_depth_one() -> None:
    rule = QuantileLookahead({2: 0.9}, ranks_of([0.1, 0.2], least=3))
    assert rule.deeper(view(1, [1.0, 2.0]), np.array([9.0, 9.0])).tolist() == [False, False]
    nothing = QuantileLookahead({2: 0.9}, ranks_of([], least=1))
    assert nothing.deeper(view(1, [1.0]), np.array([9.0])).tolist() == [False]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_about_the_share_goes_deeper_of_distances_like_those_on_record(share: float) -> None:
    rng = np.random.default_rng(0)
    ranks = ranks_of(rng.exponential(size=2000), least=100)
    deeper = QuantileLookahead({2: share}, ranks).deeper(view(1, np.zeros(4000)), rng.exponential(size=4000))
    assert abs(deeper.mean() - share) < 0.04


def test_each_depth_has_ranks_and_a_share_of_its_own() -> None:
    rule = QuantileLookahead({2: 0.5, 3: 0.5}, ranks_of([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], least=3))
    distances = np.array([2.5, 25.0])
    assert rule.deeper(view(1, [0.0, 0.0]), distances).tolist() == [True, True]
    assert rule.deeper(view(2, [0.0, 0.0]), distances).tolist() == [False, True]


def test_a_share_of_all_needs_no_ranks_and_a_share_of_none_no_distance() -> None:
    rule = QuantileLookahead({2: 1.0, 3: 0.0}, ranks_of(least=1000))
    assert rule.max_depth == 3
    assert rule.deeper(view(1, [0.0]), np.array([0.0])).tolist() == [True]
    assert rule.deeper(view(2, [0.0]), np.array([1e9])).tolist() == [False]


def test_distances_are_from_the_prior_or_from_the_level_above() -> None:
    level = view(2, [3.0, 5.0], previous=[2.5, 5.5], references=[0.0, 9.0])
    alone = QuantileLookahead({2: 0.1}, ranks_of(least=1))
    assert alone.distances(level).tolist() == [0.5, 0.5]
    assert alone.reference(np.zeros((2, 1)), lambda rows, depth: np.full(len(rows), depth - 7.0)).tolist() == [-7, -7]
    with_prior = QuantileLookahead({2: 0.1}, ranks_of(least=1), prior=lambda rows: np.ones(len(rows)))
    assert with_prior.distances(level).tolist() == [3.0, 4.0]
    assert with_prior.reference(np.zeros((2, 1)), lambda rows, depth: np.zeros(len(rows))).tolist() == [1, 1]


def test_shares_beyond_the_ends_mean_the_ends() -> None:
    assert shares_by_depth((-1.0, 0.5, 7.0)) == {2: 0.0, 3: 0.5, 4: 1.0}
    assert [least_depth(shares) for shares in [(), (0.9, 1.0), (1.0,), (1.5, 1.0, 0.2)]] == [1, 1, 2, 3]


def test_shares_rise_where_a_decision_is_cheap_and_fall_where_it_is_dear() -> None:
    shares = CostControlledShares(4, nodes=10.0)
    shares.update(10.0)
    assert dict(shares) == {2: 0.5, 3: 0.5, 4: 0.5}
    shares.update(0.0)
    assert shares[2] == 0.51
    for _ in range(100):
        shares.update(0.0)
    assert 0.999 < shares[2] < 1.0  # a share of 1 would go without ranks
    shares.update(1e9)
    assert shares[2] == 0.0
