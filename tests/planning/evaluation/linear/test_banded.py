"""Banded elimination solves for the values of any policy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.planning.evaluation.linear import banded
from adalook.planning.evaluation.sweeps import PolicyRows
from tests.exact import naive_values, random_mdp
from tests.planning.evaluation.test_evaluation import random_policy

discounts = st.sampled_from([0.0, 0.5, 0.99, 0.99999])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), discounts)
def test_banded_elimination_gives_a_policys_values(seed, num_states, discount):
    mdp = random_mdp(np.random.default_rng(seed), num_states, 2, discount)
    policy = random_policy(mdp, seed)
    rows = PolicyRows.of(mdp, policy)
    values = banded.solve_banded(rows, *banded.bandwidths(rows))
    scale = max(1.0, mdp.largest_reward) / (1.0 - discount)
    np.testing.assert_allclose(values, naive_values(mdp, policy), rtol=0, atol=1e-9 * scale)


def test_bandwidths_of_a_queue():
    rows = PolicyRows.of(al.zoo.queue(50), np.zeros(50, np.int32))
    assert banded.bandwidths(rows) == (1, 1)
