"""Priors: what they are worth and what they cost."""

import numpy as np

import adalook as al


def test_priors_say_what_they_cost():
    mdp = al.zoo.maze(size=30, seed=0)
    groups = mdp.layout.squares(3)
    prior = al.priors.aggregation(mdp, groups)
    assert prior.model_reads == mdp.num_pairs
    assert 0 < prior.queries.improvement["shared"] < al.solve(mdp, al.PolicyIteration()).queries.improvement["shared"]
    assert np.asarray(prior).shape == (mdp.num_states,)
    for group in range(groups.max() + 1):
        assert np.ptp(prior.values[groups == group]) == 0.0
    few = al.priors.few_iterations(mdp, 3)
    assert few.queries.evaluation["exact"] == 3 * mdp.num_states
    best = al.priors.exact(mdp)
    np.testing.assert_allclose(best.values, al.solve(mdp, tolerance=0.0).values, atol=1e-10)
    assert np.abs(few.values - best.values).max() > 1e-3
