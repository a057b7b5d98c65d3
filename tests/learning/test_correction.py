"""The leaf correction: the lead that other actions need, and spreads that are measured while an agent acts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adalook.learning.correction import LeafCorrection, RunningSpread, optimism
from tests.search.sims import Graph


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("actions", [2, 9])
def test_an_exhaustive_tree_needs_the_lead_of_the_formula(depth: int, actions: int) -> None:
    own, others, discount = 0.3, 0.8, 0.9
    expected = (
        discount**depth * math.sqrt(2 * math.log(actions)) * (others * math.sqrt(depth) - own * (depth - 1) ** 0.5)
    )
    leaves = {"own_leaves": actions ** (depth - 1), "all_leaves": actions**depth}
    assert optimism(own, others, discount=discount**depth, **leaves) == pytest.approx(expected)


def test_there_is_no_lead_below_zero() -> None:
    assert optimism(5.0, 1.0, discount=1.0, own_leaves=8, all_leaves=16) == 0.0


def test_spreads_are_those_of_the_errors_without_what_all_actions_share() -> None:
    rng = np.random.default_rng(0)
    spread = RunningSpread(memory=500.0)
    for _ in range(3_000):
        errors = rng.normal(size=6) * [0.2, 1, 1, 1, 1, 1] + 100.0
        spread.update(errors, own=0)
    shared = np.sqrt(np.mean(np.array([0.2, 1, 1, 1, 1, 1]) ** 2) / 6)
    assert spread.own == pytest.approx(math.hypot(0.2 * 5 / 6, math.sqrt(5) / 6), rel=0.1)
    assert spread.others > spread.own > shared


def test_untried_actions_are_no_errors() -> None:
    spread = RunningSpread()
    spread.update(np.array([1.0, np.inf, -1.0]), own=0)
    assert (spread.own, spread.others) == (1.0, 1.0)
    spread.update(np.array([np.inf, 7.0, -1.0]), own=0)  # the agent's own was not tried: nothing to compare with
    assert (spread.own, spread.others) == (1.0, 1.0)


def correct(correction: LeafCorrection, env: Graph, searched: list[float], error: float) -> list[float]:
    values = np.array([1.0, 0.0, 0.0])
    after = values - [0.0, error, -error]
    leaves = np.full(3, 3.0)
    return correction.corrected(env, values, after, np.array(searched), discount=0.9, leaves=leaves).tolist()


def test_the_agents_own_action_is_kept_unless_another_leads_by_more_than_errors_explain() -> None:
    env = Graph(6, 3, seed=0)
    kept = correct(LeafCorrection(), env, [1.0, 1.5, -np.inf], error=2.0)
    assert kept[0] == 1.0
    assert np.argmax(kept) == 0
    assert kept[2] == -np.inf
    assert np.argmax(correct(LeafCorrection(), env, [1.0, 9.0, 0.0], error=2.0)) == 1
    assert correct(LeafCorrection(), env, [1.0, 1.5, 0.0], error=0.0) == [1.0, 1.5, 0.0]


def test_every_environment_has_a_spread_of_its_own_that_can_be_saved() -> None:
    correction, other = LeafCorrection(), LeafCorrection()
    one, two = Graph(6, 3, seed=0), Graph(6, 3, seed=0)
    correct(correction, one, [1.0, 1.5, 0.0], error=2.0)
    assert correction.state(one) != correction.state(two)
    other.load_state(two, correction.state(one))
    assert correct(other, two, [1.0, 1.5, 0.0], error=1.0) == correct(correction, one, [1.0, 1.5, 0.0], error=1.0)
