"""Certificates against exact rationals: every method and solver, γ up to 1 − 1e-12, mixed scales, ties, denormals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction

import numpy as np

import adalook as al
from adalook.planning.evaluation.functional import FunctionalGraph
from adalook.planning.rules.auto import KNOWN_SOLVERS
from benchmarks.torture import objectives
from benchmarks.torture.outcome import FOREIGN, HANG, MEMORY, REFUSED, Row, Scale, attempt
from tests.exact import ExactMDP

VIOLATED, UNCERTIFIED, HELD = "certificate violated", "converged, not certified", "held"
BAD = frozenset({VIOLATED, UNCERTIFIED, FOREIGN, HANG, MEMORY, REFUSED})
MODELS = 2_500
"""Of each family, in the full torture."""
METHODS: dict[str, Callable[[al.MDP], object]] = {
    "Auto": lambda mdp: al.Auto(),
    "PI": lambda mdp: al.PolicyIteration(),
    "2-PI": lambda mdp: al.HPI(2),
    "WLPI": lambda mdp: al.WLPI(),
    "QLPI": lambda mdp: al.QLPI({2: 0.5, 3: 0.2}, np.zeros(mdp.num_states)),
    "TLPI": lambda mdp: al.TLPI(mdp.discount**2 if mdp.discount else 0.5, np.zeros(mdp.num_states)),
    "MPI": lambda mdp: al.ModifiedPolicyIteration(20),
    "VI": lambda mdp: al.ValueIteration(),
}
LIMITED = {"MPI", "VI"}
"""Methods that need 1/(1 − γ) passes by nature: they get a limit, and must not call it convergence."""


def _model(rng: np.random.Generator, family: str) -> al.MDP:
    """Return a small model of a family."""
    states, actions = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    shape = (states, actions)
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999]))
    rewards = rng.standard_normal(shape)
    if family == "γ near 1":
        discount = 1.0 - 10.0 ** -float(rng.integers(5, 13))
    elif family == "mixed scales":
        rewards *= 10.0 ** rng.integers(-14, 15, shape)
    elif family == "ties":
        rewards = rng.integers(-1, 2, shape).astype(float)
        discount = float(rng.choice([0.5, 0.9, 1 - 1e-8]))
    elif family == "denormals":
        rewards *= 10.0 ** -float(rng.integers(270, 323))
        discount = float(rng.choice([0.5, 0.9, 1 - 1e-7]))
    elif family == "huge":
        rewards *= 10.0 ** float(rng.integers(200, 288))
    if rng.random() < 0.4:
        return al.MDP(rewards, rng.integers(0, states, shape), discount)
    weights = rng.exponential(size=(*shape, states)) * (rng.random((*shape, states)) < 0.7)
    weights[..., 0] += weights.sum(axis=2) == 0.0
    weights /= weights.sum(axis=2, keepdims=True)
    mask = rng.random(shape) < 0.85
    mask[:, 0] = True
    return al.MDP(rewards, weights, discount, mask=mask)


FAMILIES = ("ordinary", "γ near 1", "mixed scales", "ties", "denormals", "huge")


@contextmanager
def _without_pointers() -> Iterator[None]:
    """Force the other ways to evaluate a policy: sweeps, in-place MPI, LU and BiCGSTAB."""
    original = FunctionalGraph.solve

    def solve(self: FunctionalGraph, policy: object, rewards: object = None) -> None:
        return None

    FunctionalGraph.solve = solve  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        FunctionalGraph.solve = original  # type: ignore[method-assign]


def _judge(mdp: al.MDP, exact: ExactMDP, best: list[Fraction], sol: al.Solution, tolerance: float) -> tuple[str, str]:
    """Compare a solution with the truth."""
    own = exact.evaluate([int(action) for action in sol.policy])
    loss = max(b - o for b, o in zip(best, own, strict=True))
    if not _inside(sol.lower, best, sol.upper) or _less(sol.policy_loss, loss):
        return VIOLATED, f"loss {float(loss):.3g}, certified {sol.policy_loss:.3g}"
    if sol.converged and not (sol.policy_loss <= tolerance and loss <= Fraction(tolerance)):
        return UNCERTIFIED, f"loss {float(loss):.3g}, certified {sol.policy_loss:.3g}, tolerance {tolerance:g}"
    return HELD if sol.converged else f"held, {sol.status.value}", ""


def _certified(mdp: al.MDP, exact: ExactMDP, best: list[Fraction], rng: np.random.Generator) -> tuple[str, str]:
    """Certify values and a policy that nobody computed, and the values of that policy, against the truth."""
    policy = [int(rng.choice(np.flatnonzero(offered))) for offered in mdp.offered]
    values = np.array([float(value) for value in best]) * float(rng.choice([0.0, 1.0, 1.0 + 1e-12, -2.0]))
    own = exact.evaluate(policy)
    found = al.certify(mdp, values, np.array(policy))
    loss = max(b - o for b, o in zip(best, own, strict=True))
    if not _inside(found.lower, best, found.upper) or _less(found.policy_loss, loss):
        return VIOLATED, f"loss {float(loss):.3g}, certified {found.policy_loss:.3g}"
    known = al.evaluate(mdp, np.array(policy))
    return (HELD, "") if _inside(known.lower, own, known.upper) else (VIOLATED, "the values of a policy")


def _inside(lower: np.ndarray, truth: list[Fraction], upper: np.ndarray) -> bool:
    bounds = zip(lower.tolist(), truth, upper.tolist(), strict=True)
    return all((low == -np.inf or low <= value) and (high == np.inf or value <= high) for low, value, high in bounds)


def _less(bound: float, truth: Fraction) -> bool:
    return bool(np.isfinite(bound)) and Fraction(bound) < truth


def rows(scale: Scale, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """Solve random models by every method, without pointers in turn, and by two solvers that are forced."""
    certified = Row(
        "certificates", "of values and policies that nobody computed", BAD, "`al.certify` and `al.evaluate`"
    )
    for number, family in enumerate(FAMILIES):
        if only and family not in only:
            continue
        rng = np.random.default_rng([scale.seed, 1, number])
        row = Row("certificates", family, BAD, "solves by 8 methods and 2 solvers; CONVERGED must mean certified")
        for _ in range(scale.count(MODELS)):
            mdp = _model(rng, family)
            exact = ExactMDP(mdp)
            best = exact.solve([int(np.argmax(offered)) for offered in mdp.offered])
            size = float(max(map(abs, best)))
            tolerance = float(rng.choice([0.0, 1e-8, 1e-10 * size]))
            forced = rng.random() < 0.5
            solvers = rng.choice(KNOWN_SOLVERS, 2, replace=False).tolist()
            forms = METHODS | {f"Auto({one})": lambda mdp, one=one: al.Auto(one) for one in solvers}
            outcome, what = attempt(
                lambda mdp=mdp, exact=exact, best=best, rng=rng: FOUND.append(_certified(mdp, exact, best, rng)),
                lambda done: True,
            )
            certified.add(*(FOUND.pop() if FOUND else (outcome, what)))
            for name, make in forms.items():
                with _without_pointers() if forced else nullcontext():
                    limit = 300 if name in LIMITED else 5_000
                    outcome, what = attempt(
                        lambda make=make, limit=limit, mdp=mdp, tolerance=tolerance: al.solve(
                            mdp, make(mdp), tolerance=tolerance, max_iterations=limit
                        ),
                        lambda sol: SOLVED.append(sol) is None,
                    )
                if SOLVED:
                    outcome, what = _judge(mdp, exact, best, SOLVED.pop(), tolerance)
                row.add(outcome, f"{name}, discount {mdp.discount!r}, rewards {mdp.rewards.tolist()}: {what}")
        yield row
    if not only:
        yield certified
    yield from objectives.rows(scale, only)


SOLVED: list[al.Solution] = []
FOUND: list[tuple[str, str]] = []
