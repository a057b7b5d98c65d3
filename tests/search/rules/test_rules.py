"""Depth rules: the distances they compute and what they decide."""

from __future__ import annotations

import numpy as np
import pytest

import adalook as al
from adalook.search import (
    FixedDepth,
    GapDepth,
    LevelView,
    QuantileDepth,
    RecentDistances,
    SearchStatus,
    search,
    search_many,
)
from tests.search.reference import assert_same, hashed_values, roots_along
from tests.search.sims import Graph


def view(action_values, depth=1, references=None, previous=None):
    action_values = np.array(action_values, float)
    values = action_values.max(axis=1)
    references = np.zeros(len(values)) if references is None else np.array(references, float)
    return LevelView(depth, action_values, values, references if previous is None else np.array(previous), references)


class Table:
    """Ranks that a test has fixed, which record what they are asked."""

    def __init__(self, shares):
        self.shares, self.asked = shares, []

    def rank_share(self, depth, distances):
        self.asked.append((depth, distances.copy()))
        return np.full(len(distances), self.shares[depth])


def test_gap_goes_on_while_the_choice_is_close():
    rule = GapDepth(0.5, max_depth=3)
    level = view([[1.0, 0.4, 0.0], [1.0, 0.6, 0.9], [0.0, 0.0, -np.inf], [1.0, -np.inf, -np.inf], [1.0, 0.5, 0.0]])
    distances = rule.distances(level)
    np.testing.assert_allclose(distances, [0.6, 0.1, 0.0, np.inf, 0.5])
    assert rule.deeper(level, distances).tolist() == [False, True, True, False, False]  # a lead of `gap` is enough


def test_gap_with_one_action_never_goes_on():
    rule = GapDepth(0.5, max_depth=3)
    level = view([[1.0]])
    assert not rule.deeper(level, rule.distances(level)).any()


def test_gap_agrees_with_fixed_depth_at_its_extremes():
    sim = Graph(60, 4, seed=1, terminal=0.1)
    for root in roots_along(sim, 5, 1):
        shallow = search(sim, root, hashed_values, GapDepth(1e-12, 3), discount=0.9)
        deep = search(sim, root, hashed_values, GapDepth(np.inf, 3), discount=0.9)
        assert shallow.depth == 1
        fixed = search(sim, root, hashed_values, FixedDepth(3), discount=0.9)
        np.testing.assert_array_equal(deep.action_values, fixed.action_values)


def test_quantile_measures_the_distance_to_the_prior():
    rule = QuantileDepth({2: 0.5}, Table({1: 0.1}), prior=lambda roots: roots[:, 0])
    references = rule.reference(np.array([[3.0], [1.0]]), hashed_values)
    np.testing.assert_array_equal(rule.distances(view([[1.0, 2.0], [4.0, 0.0]], references=references)), [1.0, 3.0])


def test_quantile_without_a_prior_measures_what_the_last_level_changed():
    sim = Graph(60, 4, seed=1, terminal=0.1)
    rule = QuantileDepth({2: 1.0, 3: 1.0}, Table({1: 0.0, 2: 0.0}))
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
        ({2: 0.0}, {1: 0.0}, 1),
        ({2: 1.0}, {1: 0.999}, 2),
        ({2: 1.0, 3: 1.0}, {1: np.nan, 2: 0.0}, 1),
    ],
)
def test_quantile_deepens_by_rank(shares, ranks, depth):
    sim = Graph(60, 4, seed=1, terminal=0.0)
    table = Table(ranks)
    result = search(sim, roots_along(sim, 1, 1)[0], hashed_values, QuantileDepth(shares, table), discount=0.9)
    assert (result.depth, result.status) == (depth, SearchStatus.DONE)
    for asked, level in zip(table.asked, result.levels, strict=False):
        assert asked[0] == level.depth
        assert asked[1][0] == level.distance


def test_quantile_that_selects_all_is_fixed_depth():
    sim = Graph(60, 4, seed=1, terminal=0.1)
    recent = RecentDistances(min_count=1)
    rule = QuantileDepth({2: 1.0, 3: 1.0}, recent, prior=lambda roots: np.zeros(len(roots)))
    for root in roots_along(sim, 8, 1):
        for depth in (1, 2, 3):
            recent.add(depth, 0.5)
        result = search(sim, root, hashed_values, rule, discount=0.9)
        np.testing.assert_array_equal(
            result.action_values, search(sim, root, hashed_values, FixedDepth(3), discount=0.9).action_values
        )


def test_roots_of_one_call_stop_at_their_own_depth():
    sim = Graph(200, 3, seed=5, terminal=0.0)
    roots = roots_along(sim, 12, 1)
    together = search_many(sim, roots, hashed_values, GapDepth(0.4, 4), discount=0.9)
    assert len({result.depth for result in together}) > 1
    for root, result in zip(roots, together, strict=True):
        assert_same(search(sim, root, hashed_values, GapDepth(0.4, 4), discount=0.9), result)


def test_recent_distances_rank_new_ones_behind_equal_ones():
    recent = RecentDistances(window=4, min_count=4)
    for distance in (0.0, 0.0, 0.0, 0.0):
        assert np.isnan(recent.rank_share(1, np.zeros(1)))[0]
        recent.add(1, distance)
    assert recent.rank_share(1, np.array([0.0, 1.0])).tolist() == [0.8, 0.0]
    for distance in (5.0, 6.0, 7.0, 8.0):  # the zeros are dropped
        recent.add(1, distance)
    assert recent.rank_share(1, np.array([0.0, 6.5])).tolist() == [0.8, 0.4]


def test_recent_distances_deepen_the_share_that_was_set():
    rng = np.random.default_rng(0)
    recent = RecentDistances(window=500, min_count=100)
    chosen = []
    for distance in rng.exponential(size=4000):
        chosen.append(bool(recent.rank_share(1, np.array([distance]))[0] < 0.2))
        recent.add(1, distance)
    assert np.mean(chosen[500:]) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("shares", [{3: 0.1}, {1: 0.5, 2: 0.1}, {2: 1.5}, {2: -0.1}, {2: "all"}])
def test_wrong_shares_are_named(shares):
    with pytest.raises(al.AdalookError, match="QuantileDepth"):
        QuantileDepth(shares, RecentDistances())


@pytest.mark.parametrize("gap", [0.0, -1.0, float("nan"), "small"])
def test_wrong_gaps_are_named(gap):
    with pytest.raises(al.AdalookError, match="gap"):
        GapDepth(gap, 3)
