"""Points 2, 3 and 4 of QL-DQN: ranks in the replay memory choose the depth, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adalook.learning.depth import BufferRanks, QuantileLookahead, RankedDistances, least_depth, shares_by_depth
from adalook.search.rules.base import LevelView


def ranks_of(*distances: float) -> RankedDistances:
    return RankedDistances.of(100, np.arange(len(distances)), np.array(distances))


def view(depth: int, values: Any, previous: Any = None, references: Any = None) -> LevelView:
    values = np.array(values, float)
    return LevelView(
        depth,
        values[:, None],
        values,
        np.zeros(len(values)) if previous is None else np.array(previous, float),
        np.zeros(len(values)) if references is None else np.array(references, float),
    )


def test_the_share_is_by_rank_and_ties_come_first() -> None:
    ranks = BufferRanks({1: ranks_of(0.1, 0.2, 0.2, 0.4)}, least=4)
    shares = ranks.rank_share(1, np.array([0.5, 0.3, 0.2, 0.0]))
    assert shares.tolist() == [0.0, 1 / 5, 3 / 5, 4 / 5]


def test_equal_distances_do_not_all_go_deeper() -> None:
    ranks = BufferRanks({1: ranks_of(*[0.0] * 50)}, least=10)
    rule = QuantileLookahead({2: 0.3}, ranks)
    assert not rule.deeper(view(1, [1.0]), np.array([0.0])).any()


def test_without_enough_on_record_the_search_stops_at_depth_one() -> None:
    rule = QuantileLookahead({2: 0.9}, BufferRanks({1: ranks_of(0.1, 0.2)}, least=3))
    assert rule.deeper(view(1, [1.0, 2.0]), np.array([9.0, 9.0])).tolist() == [False, False]
    assert QuantileLookahead({2: 0.9}, BufferRanks({}, least=1)).deeper(view(1, [1.0]), np.array([9.0])).tolist() == [
        False
    ]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_about_the_share_goes_deeper_of_distances_like_those_on_record(share: float) -> None:
    rng = np.random.default_rng(0)
    ranks = BufferRanks({1: RankedDistances.of(2000, np.arange(2000), rng.exponential(size=2000))}, least=100)
    deeper = QuantileLookahead({2: share}, ranks).deeper(view(1, np.zeros(4000)), rng.exponential(size=4000))
    assert abs(deeper.mean() - share) < 0.04


def test_each_depth_has_ranks_and_a_share_of_its_own() -> None:
    ranks = BufferRanks({1: ranks_of(1.0, 2.0, 3.0), 2: ranks_of(10.0, 20.0, 30.0)}, least=3)
    rule = QuantileLookahead({2: 0.5, 3: 0.5}, ranks)
    distances = np.array([2.5, 25.0])
    assert rule.deeper(view(1, [0.0, 0.0]), distances).tolist() == [True, True]
    assert rule.deeper(view(2, [0.0, 0.0]), distances).tolist() == [False, True]


def test_a_share_of_all_needs_no_ranks_and_a_share_of_none_no_distance() -> None:
    rule = QuantileLookahead({2: 1.0, 3: 0.0}, BufferRanks({}, least=1000))
    assert rule.deeper(view(1, [0.0]), np.array([0.0])).tolist() == [True]
    assert rule.deeper(view(2, [0.0]), np.array([1e9])).tolist() == [False]


def test_distances_are_from_the_prior_or_from_the_level_above() -> None:
    level = view(2, [3.0, 5.0], previous=[2.5, 5.5], references=[0.0, 9.0])
    ranks = BufferRanks({}, least=1)
    assert QuantileLookahead({2: 0.1}, ranks).distances(level).tolist() == [0.5, 0.5]
    with_prior = QuantileLookahead({2: 0.1}, ranks, prior=lambda observations: np.zeros(len(observations)))
    assert with_prior.distances(level).tolist() == [3.0, 4.0]


def test_shares_beyond_the_ends_mean_the_ends() -> None:
    assert shares_by_depth((-1.0, 0.5, 7.0)) == {2: 0.0, 3: 0.5, 4: 1.0}
    assert [least_depth(shares) for shares in [(), (0.9, 1.0), (1.0,), (1.5, 1.0, 0.2)]] == [1, 1, 2, 3]
