"""The paper's maze: WLPI's advantage in queries, and the theorems' bounds on every run."""

import math

import numpy as np
import pytest

import adalook as al
from adalook.planning.lookahead.levels import backup

SEEDS = range(10)
SETTINGS = ((0.3, 0.2, 0.1), (0.2, 0.15, 0.05), (0.2, 0.05, 0.02), (0.1, 0.05, 0.02))
DISCOUNT = 0.98
ACTIONS = 4


def tree(depth: int) -> int:
    """c(h): nodes of a full A-ary tree."""
    return sum(ACTIONS**k for k in range(1, depth + 1))


def most_iterations(mdp: al.MDP, contraction: float) -> int:
    pairs = mdp.num_states * (ACTIONS - 1)
    return math.ceil(pairs * math.log(1.0 / (1.0 - DISCOUNT)) / math.log(1.0 / contraction))


@pytest.fixture(scope="module")
def runs():
    """Every method on ten mazes from random policies, tolerance 0."""
    result = []
    for seed in SEEDS:
        mdp = al.zoo.maze(size=30, seed=seed, discount=DISCOUNT)
        start = np.random.default_rng(seed).integers(ACTIONS, size=mdp.num_states)
        prior = al.priors.exact(mdp)
        methods = {
            "PI": al.PolicyIteration(),
            "WLPI": al.WLPI(),
            **{("HPI", h): al.HPI(h) for h in range(2, 8)},
            **{("TLPI", h): al.TLPI(DISCOUNT**h, prior) for h in range(2, 8)},
            **{("QLPI", s): al.QLPI(dict(zip((2, 4, 8), s, strict=True)), prior) for s in SETTINGS},
        }
        sols = {key: al.solve(mdp, m, initial_policy=start, tolerance=0.0) for key, m in methods.items()}
        result.append((mdp, sols))
    return result


def mean_shared(runs, key) -> float:
    return float(np.mean([sols[key].queries.improvement["shared"] for _, sols in runs]))


def test_all_agree(runs):
    for _, sols in runs:
        best = sols["PI"].values
        for key, sol in sols.items():
            assert sol.converged, key
            np.testing.assert_allclose(sol.values, best, atol=1e-9)


def test_wlpi_needs_at_most_0_60_of_pi(runs):
    assert mean_shared(runs, "WLPI") <= 0.60 * mean_shared(runs, "PI")


def test_wlpi_needs_at_most_0_80_of_the_best_qlpi_with_a_perfect_prior(runs):
    best = min(mean_shared(runs, ("QLPI", setting)) for setting in SETTINGS)
    assert mean_shared(runs, "WLPI") <= 0.80 * best


def test_iterations_stay_within_the_theorems(runs):
    for mdp, sols in runs:
        assert sols["PI"].iterations <= most_iterations(mdp, DISCOUNT)
        for h in range(2, 8):
            assert sols["HPI", h].iterations <= most_iterations(mdp, DISCOUNT**h)
            assert sols["TLPI", h].iterations <= most_iterations(mdp, DISCOUNT ** (h - 1))
        for setting in SETTINGS:
            sol = sols["QLPI", setting]
            assert sol.iterations <= most_iterations(mdp, induced_contraction(mdp, sol))


def induced_contraction(mdp: al.MDP, sol: al.Solution) -> float:
    """κ(θ): the least κ by which every iteration contracted every state (definition 4.3 of the paper)."""
    worst = 0.0
    for item in sol.trace[:-1]:
        levels = [np.asarray(item.values)]
        for _ in range(8):
            levels.append(backup(mdp, levels[-1], sol.policy).values)
        reached = np.stack(levels)[np.asarray(item.depth), np.arange(mdp.num_states)]
        worst = max(worst, np.abs(sol.values - reached).max() / np.abs(sol.values - item.values).max())
    return min(worst, 1.0 - 1e-12)


def test_cost_per_iteration_stays_within_the_theorems(runs):
    for mdp, sols in runs:
        n = mdp.num_states
        for h in range(2, 8):
            for item in sols["TLPI", h].trace:
                deep = int((np.asarray(item.depth) > 1).sum())
                assert item.queries.improvement["tree"] <= n * tree(1) + deep * tree(h)
        for setting in SETTINGS:
            bound = n * tree(1) + sum(
                math.ceil(share * n - 1e-9) * tree(h) for share, h in zip(setting, (2, 4, 8), strict=True)
            )
            assert all(item.queries.improvement["tree"] <= bound for item in sols["QLPI", setting].trace)


def test_conventions_are_ordered(runs):
    """Sharing more never costs more."""
    for _, sols in runs:
        for sol in sols.values():
            count = sol.queries.improvement
            assert count["shared"] <= count["root"] <= count["tree"]
