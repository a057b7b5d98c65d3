"""Fixed depth and gap: the distances they compute and what they decide."""

from __future__ import annotations

import numpy as np
import pytest

import adalook as al
from adalook.search import (
    FixedDepth,
    GapDepth,
    LevelView,
    search,
    search_many,
)
from tests.search.reference import assert_same, hashed_values, roots_along
from tests.search.sims import Graph


def view(action_values, depth=1, references=None, previous=None):
    action_values = np.array(action_values, float)
    values = action_values.max(axis=1)
    references = np.zeros(len(values)) if references is None else np.array(references, float)
    previous = references if previous is None else np.array(previous)
    return LevelView(depth, action_values, values, previous, references, range(len(values)))


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


def test_roots_of_one_call_stop_at_their_own_depth():
    sim = Graph(200, 3, seed=5, terminal=0.0)
    roots = roots_along(sim, 12, 1)
    together = search_many(sim, roots, hashed_values, GapDepth(0.4, 4), discount=0.9)
    assert len({result.depth for result in together}) > 1
    for root, result in zip(roots, together, strict=True):
        assert_same(search(sim, root, hashed_values, GapDepth(0.4, 4), discount=0.9), result)


@pytest.mark.parametrize("gap", [0.0, -1.0, float("nan"), "small"])
def test_wrong_gaps_are_named(gap):
    with pytest.raises(al.AdalookError, match="gap"):
        GapDepth(gap, 3)
