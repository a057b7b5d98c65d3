"""Atari searches equal plain recursion, on the games of the paper and two more."""

from __future__ import annotations

import numpy as np
import pytest

from adalook.search import FixedDepth, WorkerPool, search, search_many
from adalook.simulators.make import make_simulator
from tests.search.reference import assert_same, hashed_values, plain_action_values, roots_along

GAMES = {"Tutankham": 8, "VideoPinball": 9, "Berzerk": 18, "Solaris": 18, "Breakout": 4, "Pong": 6}


def cases():
    """Yield depths 1 to 3, but 3 only with few actions; what takes more than 3 s is marked slow."""
    for game, num_actions in GAMES.items():
        for depth in (1, 2, 3) if num_actions <= 9 else (1, 2):
            slow = num_actions**depth > 300
            yield pytest.param(game, depth, marks=[pytest.mark.slow] if slow else [], id=f"{game}-{depth}")


@pytest.mark.parametrize(("game", "depth"), list(cases()))
def test_equals_plain_recursion(game, depth):
    sim = make_simulator(f"ALE/{game}-v5", clip_rewards=True, life_loss_ends=True)
    assert sim.num_actions == GAMES[game]
    for root in roots_along(sim, 2, 60):
        result = search(sim, root, hashed_values, FixedDepth(depth), discount=0.99)
        expected = plain_action_values(sim, root, depth, 0.99)
        np.testing.assert_array_equal(result.action_values, expected)
        assert (result.action, result.value) == (int(expected.argmax()), expected.max())
        assert result.tree_nodes <= sum(sim.num_actions**k for k in range(1, depth + 1))


def test_workers_change_nothing():
    sim = make_simulator("ALE/VideoPinball-v5")
    roots = roots_along(sim, 2, 60)
    alone = search_many(sim, roots, hashed_values, FixedDepth(2), discount=0.99)
    assert any(result.saved > 0 for result in alone)
    for count in (1, 2):
        with WorkerPool(sim, count) as workers:
            results = search_many(sim, roots, hashed_values, FixedDepth(2), discount=0.99, expander=workers)
        for mine, theirs in zip(alone, results, strict=True):
            assert_same(mine, theirs)
