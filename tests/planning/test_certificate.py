"""The certificate holds: checked against exact rational arithmetic on 10,000 random models."""

import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adalook as al
from adalook.planning import certificate
from adalook.planning.rules.auto import KNOWN_SOLVERS
from tests.exact import ExactMDP, random_mdp

BATCHES = 20
PER_BATCH = 500
SLICE = 150
METHODS = (
    lambda prior, mdp: al.Auto(),
    lambda prior, mdp: al.WLPI(),
    lambda prior, mdp: al.PolicyIteration(),
    lambda prior, mdp: al.HPI(2),
    lambda prior, mdp: al.WLPI(2),
    lambda prior, mdp: al.ValueIteration(),
    lambda prior, mdp: al.ModifiedPolicyIteration(3),
    lambda prior, mdp: al.TLPI(max(0.3, mdp.discount**3), prior),
    lambda prior, mdp: al.QLPI({2: 0.3, 4: 0.3}, prior),
)


def random_discount(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, rng.random(), 0.99, 1.0 - 10.0 ** -rng.integers(1, 10), 1.0 - 1e-9]))


def violations(mdp, exact, best, lower, upper, policy, loss) -> list[str]:
    found = []
    if any(Fraction(float(low)) > v for low, v in zip(lower, best, strict=True)):
        found.append("lower > V*")
    if any(Fraction(float(high)) < v for high, v in zip(upper, best, strict=True)):
        found.append("upper < V*")
    own = exact.evaluate([int(a) for a in policy])
    if np.isfinite(loss) and max(x - y for x, y in zip(best, own, strict=True)) > Fraction(float(loss)):
        found.append("policy_loss too small")
    return found


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_violation(batch):
    rng = np.random.default_rng(batch)
    found = []
    for _ in range(PER_BATCH):
        mdp = random_mdp(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)), random_discount(rng))
        exact = ExactMDP(mdp)
        prior = rng.standard_normal(mdp.num_states) * mdp.largest_reward * 10.0 ** rng.integers(0, 4)
        method = METHODS[int(rng.integers(len(METHODS)))](prior, mdp)
        start = [rng.choice(np.flatnonzero(mdp.offered[s])) for s in range(mdp.num_states)]
        most = int(rng.choice([1, 2, 3, 200]))
        sol = al.solve(mdp, method, initial_policy=np.array(start), max_iterations=most)
        best = exact.solve([int(a) for a in sol.policy])
        found += violations(mdp, exact, best, sol.lower, sol.upper, sol.policy, sol.policy_loss)
        assert (sol.lower <= sol.values).all()
        assert (sol.values <= sol.upper).all()
        # spoiled: values that are wrong, a little or altogether, and a policy at random
        noise = rng.standard_normal(mdp.num_states) * 10.0 ** rng.integers(-17, 4)
        spoiled = sol.values * rng.choice([1.0, 1.0 + 1e-12, 0.0, -1.0]) + noise
        policy = np.array([rng.choice(np.flatnonzero(mdp.offered[s])) for s in range(mdp.num_states)], np.int32)
        certificate = al.certify(mdp, spoiled, policy)
        found += violations(mdp, exact, best, certificate.lower, certificate.upper, policy, certificate.policy_loss)
    assert found == []


@pytest.mark.parametrize("solver", KNOWN_SOLVERS)
def test_no_violation_whichever_solver_is_taken(solver):
    """Each solver of Auto forced in turn; `make certify` takes 10,000 models for each instead of a slice of them."""
    rng = np.random.default_rng(11)
    found, solvers = [], set()
    for _ in range(int(os.environ.get("ADALOOK_CERTIFY_MODELS", SLICE))):
        mdp = random_mdp(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)), float(rng.choice([0.3, 0.9, 0.999])))
        exact = ExactMDP(mdp)
        tolerance = 10.0 ** rng.integers(-9, 1) * mdp.largest_reward
        sol = al.solve(mdp, al.Auto(solver), tolerance=tolerance, max_iterations=int(rng.choice([1, 2, 3, 2_000])))
        best = exact.solve([int(a) for a in sol.policy])
        found += violations(mdp, exact, best, sol.lower, sol.upper, sol.policy, sol.policy_loss)
        solvers |= set(sol.solvers)
    assert found == []
    assert any(name.endswith(solver) for name in solvers)


def test_a_long_row_does_not_loosen_it():
    """A uniform row over 200,000 states is summed with compensation: the bound must not grow with its length."""
    n = 200_000
    rows = al.MDP.from_function(
        lambda s: (np.where(s < 10, 1.0, 0.0)[:, None], np.where(s == n - 1, 0, s + 1)[:, None]), n, 1, 0.99
    )
    assert al.solve(rows, tolerance=1e-9).policy_loss <= 1e-9
    maze = al.zoo.maze(size=460, seed=0, discount=0.99)
    assert np.diff(maze.rows.indptr).max() > n
    assert al.solve(maze, tolerance=0.0).policy_loss < 1e-8


def test_it_is_tight_when_the_values_are_right():
    mdp = al.zoo.maze(size=30, seed=0)
    sol = al.solve(mdp, tolerance=0.0)
    assert sol.policy_loss < 1e-10
    assert (sol.upper - sol.lower).max() < 1e-10


def test_it_grows_with_what_is_wrong():
    mdp = al.zoo.maze(size=30, seed=0)
    sol = al.solve(mdp, tolerance=0.0)
    wrong = al.certify(mdp, sol.values + 1.0, sol.policy)
    assert wrong.policy_loss < 1e-9, "a constant shift says nothing about the policy"
    assert (wrong.lower <= sol.values + 1e-9).all()
    lazy = al.certify(mdp, sol.values, np.zeros_like(sol.policy))
    assert lazy.policy_loss > 0.1


@pytest.mark.parametrize("limit", [{"tolerance": 11.0}, {"max_iterations": 1}])
@pytest.mark.parametrize(
    "method", [al.QLPI({8: 1 / 3}, [100.0, 0.0, 0.0]), al.TLPI(0.9**8, [1000.0, 0.0, 10.0])], ids=["QLPI", "TLPI"]
)
def test_mixed_depths_are_certified_for_the_policy_that_is_returned(method, limit):
    """A deep state counts on a step that its shallow neighbour does not take: the new policy is worse than the old."""
    mdp = al.MDP([[0, -3.5], [0, 0], [0, 1.0]], [[0, 1], [0, 2], [2, 2]], 0.9)
    sol = al.solve(mdp, method, initial_policy=[0, 0, 0], **limit)
    exact = ExactMDP(mdp)
    best = exact.solve([0, 0, 0])
    assert violations(mdp, exact, best, sol.lower, sol.upper, sol.policy, sol.policy_loss) == []


def test_models_with_shared_rows_stopped_early_are_certified():
    """Wide shared rows, every method, one to three passes: the bounds hold for whatever policy comes out."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        n = 10
        table = np.zeros((n, 2, n))
        table[:, 0] = np.eye(n)[rng.integers(n, size=n)]
        table[:, 1] = 1.0 / n
        mdp = al.MDP(rng.integers(-3, 4, (n, 2)).astype(float), table, float(rng.choice([0.5, 0.9, 0.99])))
        assert mdp.rows.num_shared == 1
        exact = ExactMDP(mdp)
        best = exact.solve([0] * n)
        prior = rng.standard_normal(n) * 30
        for make in METHODS:
            sol = al.solve(mdp, make(prior, mdp), max_iterations=int(rng.integers(1, 4)))
            assert violations(mdp, exact, best, sol.lower, sol.upper, sol.policy, sol.policy_loss) == []


@pytest.mark.parametrize("size", [1e300, 1e308])
def test_absurd_values_get_infinite_bounds(size):
    mdp = al.zoo.chain(n=3, discount=1 - 1e-9)
    certificate = al.certify(mdp, np.array([size, -size, size, -size, size]), np.zeros(5, int))
    assert certificate.policy_loss > 1e299


@given(
    change=st.floats(-1e6, 1e6),
    error=st.floats(1e-300, 1.0),
    discount=st.floats(0.0, 1.0 - 1e-12),
    slack=st.floats(0.0, 1e-13),
)
def test_the_last_steps_are_rounded_outward(change, error, discount, slack):
    """What is added to values is at least (change + error)/(1 − γρ) for both row sums ρ, and hardly more."""
    keep = tuple(1 - Fraction(discount) * (1 + Fraction(sign * slack)) for sign in (-1, 1))
    exact = max((Fraction(change) + Fraction(error)) / part for part in keep)
    room = certificate._room(change, error, keep)
    assert exact <= Fraction(room) <= exact + abs(exact) * Fraction(1, 2**50) + Fraction(1, 10**300)
