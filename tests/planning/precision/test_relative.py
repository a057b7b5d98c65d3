"""Near γ = 1 values relative to a constant certify what absolute ones cannot."""

from __future__ import annotations

import numpy as np
import pytest

import adalook as al
from adalook.planning.certificate import from_residual, rounding_bound
from adalook.planning.lookahead.levels import backup
from adalook.planning.precision.relative import NAME, relative_values
from tests.exact import ExactMDP, random_mdp

DISCOUNT = 0.9999


def mixing(num_states: int = 500, scale: float = 1.0) -> al.MDP:
    """A model whose values are all about the same: it is soon forgotten where one began."""
    mdp = al.zoo.garnet(num_states, 4, 6, seed=0, discount=DISCOUNT)
    return al.MDP._adopt(scale * (mdp.rewards + 3.0), mdp.codes, mdp.rows, mdp.discount)


def test_the_last_pass_certifies_what_rounding_forbade() -> None:
    mdp = mixing(scale=0.6)
    sol = al.solve(mdp, tolerance=1e-6)
    *earlier, last = sol.trace
    assert last.evaluation == NAME
    assert earlier[-1].policy_loss > 1e-6
    assert 2.0 * rounding_bound(mdp, float(sol.values.max())) / (1.0 - DISCOUNT) > 1e-6, "of absolute values"
    assert sol.converged
    assert last.policy_loss == sol.policy_loss <= 1e-6
    assert NAME in sol.explain()
    proven = al.solve(mdp, tolerance=0.0)
    assert proven.policy_loss == 0.0
    for values in (sol.values, last.values):
        np.testing.assert_allclose(values, proven.values, atol=1e-6, rtol=0.0)
    assert (sol.lower <= proven.upper).all()
    assert (proven.lower <= sol.upper).all()
    assert float((sol.upper - sol.lower).max()) <= 1e-6


def test_where_states_differ_by_what_they_are_worth_nothing_is_tried() -> None:
    mdp = al.zoo.maze(12, seed=1, discount=DISCOUNT)
    proven = al.solve(mdp, tolerance=0.0)
    size = float(proven.values.max())
    reached = 2.0 * rounding_bound(mdp, size) / (1.0 - DISCOUNT)
    assert relative_values(mdp, proven.policy, proven.values, 0.1 * reached) is None
    assert relative_values(mixing(), np.zeros(500, np.int32), np.zeros(500), 0.0) is None


@pytest.mark.parametrize("seed", range(30))
def test_the_bounds_hold_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, int(rng.integers(2, 7)), 3, float(rng.choice([0.99, 0.9999, 1 - 1e-6])))
    best = al.solve(mdp, tolerance=0.0)
    policy = best.policy if seed % 2 else rng.integers(0, 3, mdp.num_states).astype(np.int32)
    if not mdp.offered[np.arange(mdp.num_states), policy].all():
        policy = best.policy
    exact = ExactMDP(mdp)
    values = np.array([float(v) for v in exact.evaluate([int(a) for a in policy])])
    found = relative_values(mdp, policy, values, tolerance=np.inf)
    assert found is not None
    certificate = from_residual(mdp, found.values, backup(mdp, found.values, policy).residual, greedy=False)
    assert found.certificate.policy_loss == certificate.policy_loss
    optimal = exact.solve([int(a) for a in best.policy])
    assert all(low <= v <= high for low, v, high in zip(certificate.lower, optimal, certificate.upper, strict=True))
    losses = [b - v for b, v in zip(optimal, exact.evaluate([int(a) for a in policy]), strict=True)]
    assert max(losses) <= found.certificate.policy_loss
