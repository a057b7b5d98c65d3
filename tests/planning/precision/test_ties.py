"""Exact ties: states from which a policy pays the same rewards are worth the same."""

import numpy as np
import pytest

import adalook as al
from adalook.planning.precision.ties import bisimilar, certain_ties, futures
from tests.exact import ExactMDP, random_mdp


@pytest.mark.parametrize("alike", [futures, bisimilar])
def test_equal_numbers_mean_equal_values(alike):
    rng = np.random.default_rng(0)
    shared = 0
    for _ in range(200):
        mdp = random_mdp(rng, 6, 2, 0.9, ties=True)
        policy = np.array([rng.choice(np.flatnonzero(row)) for row in mdp.offered], np.int32)
        number = alike(mdp, policy)
        values = ExactMDP(mdp).evaluate([int(a) for a in policy])
        for s in range(6):
            for other in range(s):
                if number[s] == number[other]:
                    shared += 1
                    assert values[s] == values[other]
    assert shared > 30


def test_two_ways_around_a_corner_are_a_tie_and_a_detour_is_none():
    mdp = al.zoo.maze(size=12, seed=0)
    sol = al.solve(mdp, tolerance=0.0)
    assert sol.converged
    assert sol.policy_loss == 0.0
    worse = np.array([[s, a] for s in range(mdp.num_states) for a in range(4) if a != sol.policy[s]])
    assert not certain_ties(mdp, sol.policy, worse)
