"""The backup of all states is the Bellman operator: monotone, a contraction, and equal to plain loops."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adalook.planning.lookahead.levels import backup
from tests.exact import naive_lookahead, random_mdp


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_the_backup_is_monotone_and_contracts(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3, 0.9)
    policy = np.argmax(mdp.offered, axis=1).astype(np.int32)
    low = rng.standard_normal(6)
    high = low + rng.random(6)
    one, other = backup(mdp, low, policy).values, backup(mdp, high, policy).values
    slack = 1e-12 * max(1.0, mdp.largest_reward)
    assert (one <= other + slack).all()
    assert np.abs(one - other).max() <= 0.9 * np.abs(low - high).max() + slack
    np.testing.assert_allclose(one, naive_lookahead(mdp, low, 1), rtol=1e-12)
