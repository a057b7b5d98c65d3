"""Claims about the chain: the paper's "Motivating Example" and the chain paragraphs that follow Theorems 1 and 2.

All start from the policy that goes to the sink everywhere, with Ṽ* = V*. n is the paper's: n + 1 states and the sink.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from adalook.report.claims import verdicts
from adalook.report.claims.verdicts import Claim, ConventionVerdict, Experiments, Finding
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.records import Convention, Record

ROUNDING = 1e-9
ADAPTIVE = ("tlpi", "qlpi")


def _records(experiment: ExperimentData, *groups: str) -> list[Record]:
    return [record for record in experiment.records if record.group in groups]


def _pairs(experiment: ExperimentData, *groups: str) -> Iterator[tuple[Record, Record]]:
    """Pair each run of the groups with h-PI of the same h on the same chain; h = 1 is left out."""
    fixed = {(_key(record), record.lookahead): record for record in _records(experiment, "hpi")}
    for record in _records(experiment, *groups):
        fixed_run = fixed.get((_key(record), record.lookahead))
        if fixed_run is not None and record.lookahead > 1:
            yield record, fixed_run


def _key(record: Record) -> tuple[object, ...]:
    return record.model["n"], record.discount, record.seed


def _count_iterations(runs: list[Record]) -> list[ConventionVerdict]:
    expected = [math.ceil(run.model["n"] / run.lookahead) for run in runs]
    off = [run.iterations - count for run, count in zip(runs, expected, strict=True)]
    if not runs:
        return verdicts.alike(verdicts.NO_RUNS)
    verdict = verdicts.grade_nearly((gap == 0 for gap in off), (abs(gap) <= 1 for gap in off))
    exact, one_more = sum(gap == 0 for gap in off), sum(gap == 1 for gap in off)
    rest = len(off) - exact - one_more
    numbers = f"{len(runs)} chains and depths: exact in {exact}, one more in {one_more}, otherwise in {rest}"
    formula = sum(run.iterations == math.ceil((run.model["n"] + 1) / run.lookahead) for run in runs)
    return verdicts.alike((verdict, f"{numbers}; ⌈(n+1)/h⌉ in {formula}"))


def _pi_iterations(experiments: Experiments) -> list[ConventionVerdict]:
    return _count_iterations([r for r in _records(experiments["chain"], "hpi") if r.lookahead == 1])


def _hpi_iterations(experiments: Experiments) -> list[ConventionVerdict]:
    return _count_iterations([r for r in _records(experiments["chain"], "hpi") if r.lookahead > 1])


def _same_iterations(experiments: Experiments) -> list[ConventionVerdict]:
    pairs = list(_pairs(experiments["chain"], *ADAPTIVE))
    verdict = verdicts.grade_nearly(
        (one.iterations == fixed_run.iterations for one, fixed_run in pairs),
        (abs(one.iterations - fixed_run.iterations) <= 1 for one, fixed_run in pairs),
    )
    parts = []
    for group, name in (("tlpi", "TLPI"), ("qlpi", "QLPI")):
        gaps = [one.iterations - fixed_run.iterations for one, fixed_run in pairs if one.group == group]
        if gaps:
            parts.append(f"{name}: equal in {gaps.count(0)} of {len(gaps)}, at most {max(gaps):+d}")
    return verdicts.alike((verdict, "; ".join(parts) or "no such runs"))


def _contraction(experiments: Experiments) -> list[ConventionVerdict]:
    """Compare κ(θ), the worst contraction of all states in all iterations, with γ^h: one slow start decides a run."""
    runs = [
        (record, record.induced_contraction)
        for record in _records(experiments["chain"], "qlpi")
        if record.induced_contraction is not None and record.lookahead > 1
    ]
    if not runs:
        return verdicts.alike(verdicts.NO_RUNS)
    passed = [kappa <= record.discount**record.lookahead * (1.0 + ROUNDING) for record, kappa in runs]
    powers = [math.log(kappa) / math.log(record.discount) if kappa > 0.0 else math.inf for record, kappa in runs]
    depths = sorted({record.lookahead for record, _ in runs})
    numbers = f"κ(θ) = γ^{min(powers):.2g} to γ^{max(powers):.2g} for h = {depths[0]} to {depths[-1]}"
    return verdicts.alike((verdicts.grade(passed), numbers))


def _deep_states(experiments: Experiments) -> list[ConventionVerdict]:
    runs = [record for record in _records(experiments["chain"], "tlpi") if record.lookahead > 1]
    most = [max(record.deep_states) for record in runs]
    passed = [count <= record.lookahead for count, record in zip(most, runs, strict=True)]
    over = max((count - record.lookahead for count, record in zip(most, runs, strict=True)), default=0)
    return verdicts.alike((verdicts.grade(passed), f"most deep states in an iteration: h {over:+d}"))


def _iteration_cost(experiments: Experiments) -> list[ConventionVerdict]:
    runs = _records(experiments["chain"], *ADAPTIVE)

    def check(improvement: str) -> Finding:
        shares = [max(record.improvement[improvement]) / record.cost_bound for record in runs]
        passed = [  # the formula is the theorem's bound with at most h deep states
            share <= 1.0 + ROUNDING and max(record.deep_states) <= record.lookahead
            for share, record in zip(shares, runs, strict=True)
        ]
        return verdicts.grade(passed), f"{_range(shares)} of the formula in the most expensive iteration"

    return verdicts.under_each_lookahead(check)


def _total_cost(experiments: Experiments) -> list[ConventionVerdict]:
    pairs = list(_pairs(experiments["chain"], *ADAPTIVE))

    def check(convention: Convention) -> Finding:
        shares = [one.total(*convention) / fixed_run.total(*convention) for one, fixed_run in pairs]
        passed = [share < 1.0 for share in shares]
        return verdicts.grade(passed), f"{_range(shares)} of h-PI's queries"

    return verdicts.under_each(check)


def _wlpi(experiments: Experiments) -> list[ConventionVerdict]:
    chain = experiments["chain"]

    def check(convention: Convention) -> Finding:
        shares = []
        for wave in _records(chain, "wlpi"):
            others = [r.total(*convention) for r in chain.records if r.group != "wlpi" and _key(r) == _key(wave)]
            if others:
                shares.append(wave.total(*convention) / min(others))
        passed = [share <= 1.0 for share in shares]
        return verdicts.grade(passed), f"{_range(shares)} of the best other's queries"

    return verdicts.under_each(check)


def _range(numbers: list[float]) -> str:
    return f"{min(numbers):.2f} to {max(numbers):.2f}" if numbers else "no such runs"


SLOW_START = (
    "QLPI starts slowly: V*(s_i) = γ^(n−i), and after the first step from V = 0 the states s_n and s_(n−1) are equally "
    "far from V*: more states than the one per depth that QLPI may look ahead in."
)
ONE_MORE = "All n + 1 states of the chain have to switch from d to u, so the count is ⌈(n+1)/h⌉, not ⌈n/h⌉."

CLAIMS = (
    Claim(
        "chain-pi-iterations",
        "Motivating Example",
        "On the chain PI takes exactly n iterations.",
        "Updates that changed the policy equal n on every chain (in part: off by at most one).",
        ("chain",),
        _pi_iterations,
        ONE_MORE,
    ),
    Claim(
        "chain-hpi-iterations",
        "Motivating Example",
        "On the chain h-PI takes ⌈n/h⌉ iterations.",
        "Updates that changed the policy equal ⌈n/h⌉ for every chain and depth h ≥ 2 (in part: off by at most one).",
        ("chain",),
        _hpi_iterations,
        ONE_MORE,
    ),
    Claim(
        "chain-same-iterations",
        "Motivating Example, Figure 1, TLPI, QLPI",
        "Deep lookahead in a few states (QLPI: one state per depth; TLPI: κ = γ^h) needs as many iterations as h-PI.",
        "Iterations equal those of h-PI for every chain and depth (in part: off by at most one).",
        ("chain",),
        _same_iterations,
        SLOW_START,
    ),
    Claim(
        "chain-qlpi-contraction",
        "QLPI, after Theorem 2",
        "With one state per depth up to h, QLPI's induced contraction κ(θ) on the chain is γ^h.",
        "κ(θ), the worst |V* − T^h(s) V^π|(s) over ‖V* − V^π‖ of all states and iterations, at most γ^h in every run.",
        ("chain",),
        _contraction,
        f"{SLOW_START} So some state contracts by less there; every later iteration contracts by γ^h.",
    ),
    Claim(
        "chain-tlpi-states",
        "TLPI, after Theorem 1",
        "With κ = γ^h, TLPI looks deep in h states an iteration on the chain.",
        "At most h states beyond one step in every iteration of every run.",
        ("chain",),
        _deep_states,
    ),
    Claim(
        "chain-iteration-cost",
        "Motivating Example, TLPI, QLPI",
        "On the chain an iteration costs S·c(1) + h·c(h) with TLPI and S·c(1) + Σ c(ℓ) with QLPI, not S·c(h).",
        "Queries of the most expensive iteration's lookahead are at most the formula's, with c(h) = 2 + 4 + … + 2^h.",
        ("chain",),
        _iteration_cost,
    ),
    Claim(
        "chain-total-cost",
        "Motivating Example, Figure 1",
        "On the chain adaptive lookahead reaches the optimum at a lower cost than h-PI of the same depth.",
        "Total queries below those of h-PI for every chain and every depth h ≥ 2.",
        ("chain",),
        _total_cost,
    ),
    Claim(
        "chain-wlpi",
        "this project",
        "On the chain WLPI, without a prior, needs no more queries than any other method and setting.",
        "Total queries at most those of the best other method on every chain.",
        ("chain",),
        _wlpi,
    ),
)
