"""Claims that the paper proves, measured on every run of the chain, the maze and the sweep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from adalook.report.claims import verdicts
from adalook.report.claims.verdicts import Claim, ConventionVerdict, Experiments, Finding
from adalook.report.data.records import Record

ROUNDING = 1e-9
SETTLED = 1e-9
"""Distances below this are rounding; their ratios say nothing."""
EVERYWHERE = ("chain", "maze", "sweep")


def _records(experiments: Experiments, *groups: str) -> list[Record]:
    return [record for experiment in experiments.values() for record in experiment.records if record.group in groups]


def _contractions(record: Record) -> list[float]:
    """Return ‖V* − V^{π_{t+1}}‖ / ‖V* − V^{π_t}‖ for each iteration."""
    pairs = zip(record.distance[:-1], record.distance[1:], strict=True)
    return [float(after / before) for before, after in pairs if before > SETTLED]


def _contraction(groups: tuple[str, ...]) -> Callable[[Experiments], list[ConventionVerdict]]:
    """Return a check that the distance to V* shrinks at least by γ^h in every iteration."""

    def check(experiments: Experiments) -> list[ConventionVerdict]:
        passed = []
        for record in _records(experiments, *groups):
            limit = record.discount**record.lookahead * (1.0 + ROUNDING)
            passed += [factor <= limit for factor in _contractions(record)]
        return verdicts.alike((verdicts.grade(passed), f"in {sum(passed):,} of {len(passed):,} iterations"))

    return check


def _within_bound(records: Iterable[Record], contraction: Callable[[Record], float]) -> list[ConventionVerdict]:
    shares = []
    for record in records:
        bound = iteration_bound(record.num_states, record.num_actions, record.discount, contraction(record))
        shares.append(record.iterations / bound)
    passed = [share <= 1.0 for share in shares]
    closest = max(shares, default=0.0)
    return verdicts.alike((verdicts.grade(passed), f"at most {100.0 * closest:.2g}% of the bound"))


def _fixed_bound(experiments: Experiments) -> list[ConventionVerdict]:
    return _within_bound(_records(experiments, "hpi"), lambda record: record.discount**record.lookahead)


def _threshold_bound(experiments: Experiments) -> list[ConventionVerdict]:
    deep = [record for record in _records(experiments, "tlpi") if record.lookahead > 1]
    return _within_bound(deep, lambda record: record.discount ** (record.lookahead - 1))


def _quantile_bound(experiments: Experiments) -> list[ConventionVerdict]:
    def contraction(record: Record) -> float:
        measured = record.induced_contraction
        return max(_contractions(record), default=0.0) if measured is None else measured

    return _within_bound(_records(experiments, "qlpi"), contraction)


ENDED = ("CONVERGED", "ROUNDING_LIMIT")
"""Statuses of a solve that ended by itself."""


def _converges(experiments: Experiments) -> list[ConventionVerdict]:
    records = _records(experiments, "tlpi", "qlpi")
    passed = [
        record.status in ENDED and (not len(record.distance) or record.distance[-1] <= 1e-8) for record in records
    ]
    farthest = max((float(record.distance[-1]) for record in records if len(record.distance)), default=math.nan)
    return verdicts.alike((verdicts.grade(passed), f"‖V* − V^π‖ at the end at most {farthest:.1g}"))


def _as_fast_as_one_less(experiments: Experiments) -> list[ConventionVerdict]:
    fixed = {(_where(record), record.lookahead): record.iterations for record in _records(experiments, "hpi")}
    gaps = [
        record.iterations - fixed[_where(record), record.lookahead - 1]
        for record in _records(experiments, "tlpi")
        if (_where(record), record.lookahead - 1) in fixed
    ]
    passed = [gap <= 0 for gap in gaps]
    return verdicts.alike((verdicts.grade(passed), f"at most {max(gaps):+d} iterations" if gaps else "no such runs"))


def _where(record: Record) -> tuple[object, ...]:
    return (*sorted(record.model.items()), record.seed)


def _cost_bound(group: str) -> Callable[[Experiments], list[ConventionVerdict]]:
    """Return a check of the most expensive iteration against the theorem's bound on its queries."""

    def check(experiments: Experiments) -> list[ConventionVerdict]:
        def under(improvement: str) -> Finding:
            shares = [
                max(record.improvement[improvement], default=0) / record.cost_bound
                for record in _records(experiments, group)
            ]
            passed = [share <= 1.0 + ROUNDING for share in shares]
            return verdicts.grade(passed), f"most expensive iteration {max(shares, default=0.0):.2f} of the bound"

        return verdicts.under_each_lookahead(under)

    return check


def iteration_bound(num_states: int, num_actions: int, discount: float, contraction: float) -> float:
    """Return the most iterations that a method with this contraction per iteration can need.

    >>> iteration_bound(num_states=10, num_actions=2, discount=0.5, contraction=0.25)
    5
    """
    if contraction >= 1.0:
        return math.inf  # it does not contract at all
    if contraction <= 0.0:
        return 1
    exact = num_states * (num_actions - 1) * math.log(1.0 / (1.0 - discount)) / math.log(1.0 / contraction)
    return math.ceil(exact - 1e-9)


CLAIMS = (
    Claim(
        "fixed-contraction",
        "Preliminaries, Contraction-Based Adaptive Lookahead",
        "h-PI brings the policy's value closer to V* by at least γ^h in every iteration.",
        "‖V* − V^π‖ shrinks at least by γ^h in every iteration of every h-PI run.",
        EVERYWHERE,
        _contraction(("hpi",)),
    ),
    Claim(
        "fixed-bound",
        "Preliminaries, Table 1",
        "h-PI needs at most ⌈S(A−1) log(1/(1−γ)) / (h log(1/γ))⌉ iterations.",
        "Iterations of every h-PI run are at most the bound.",
        EVERYWHERE,
        _fixed_bound,
    ),
    Claim(
        "adaptive-converge",
        "Introduction, Theorems 1 and 2",
        "TLPI and QLPI converge to the optimum.",
        "Every run ends as converged, with ‖V* − V^π‖ at most 1e-8.",
        EVERYWHERE,
        _converges,
    ),
    Claim(
        "tlpi-contraction",
        "TLPI, Theorem 1",
        "TLPI with an exact Ṽ* contracts by at least κ in every iteration.",
        "‖V* − V^π‖ shrinks at least by κ = γ^h in every iteration of every TLPI run.",
        EVERYWHERE,
        _contraction(("tlpi",)),
        "The lookahead of a deep state may rely on an action that a shallow neighbour does not choose, so with depths "
        "that differ between neighbours the contraction can be weaker than κ.",
    ),
    Claim(
        "theorem-1-iterations",
        "Theorem 1, Table 1",
        "TLPI needs at most ⌈S(A−1) log(1/(1−γ)) / ((h−1) log(1/γ))⌉ iterations, κ = γ^h.",
        "Iterations of every TLPI run are at most the bound.",
        EVERYWHERE,
        _threshold_bound,
    ),
    Claim(
        "theorem-1-rate",
        "TLPI, Theorem 1",
        "TLPI(γ^h) converges at least as fast as (h−1)-PI.",
        "Iterations of every TLPI run are at most those of (h−1)-PI on the same model and seed.",
        EVERYWHERE,
        _as_fast_as_one_less,
        "The theorem compares worst cases; a single run may differ.",
    ),
    Claim(
        "theorem-1-cost",
        "Theorem 1, Table 1",
        "An iteration of TLPI costs at most S(c(1) + θ c(h)), θ the largest share of deep states in the run.",
        "Queries of the most expensive iteration's lookahead are at most the bound, with c(h) = A + A² + … + A^h.",
        EVERYWHERE,
        _cost_bound("tlpi"),
    ),
    Claim(
        "theorem-2-iterations",
        "Theorem 2, Table 1",
        "QLPI needs at most ⌈S(A−1) log(1/(1−γ)) / log(1/κ)⌉ iterations, κ the contraction its budgets induce.",
        "Iterations of every QLPI run are at most the bound, κ measured as in the definition before Theorem 2.",
        EVERYWHERE,
        _quantile_bound,
    ),
    Claim(
        "theorem-2-cost",
        "Theorem 2, Table 1",
        "An iteration of QLPI costs at most S · Σ θ_h c(h).",
        "Queries of the most expensive iteration's lookahead are at most the bound (budgets rounded up to states).",
        EVERYWHERE,
        _cost_bound("qlpi"),
    ),
)
