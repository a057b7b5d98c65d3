"""Claims of the paper's section "Maze Experiments", and ours about the same mazes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from adalook.report.claims import explanations, verdicts
from adalook.report.claims.verdicts import Claim, ConventionVerdict, Experiments, Finding, Verdict
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import (
    FIXED,
    MethodRuns,
    cheapest,
    common_seeds,
    cost_ratio,
    depth_name,
    interval,
    method_runs,
    wlpi_like_for_like,
)
from adalook.report.data.records import Convention
from adalook.report.data.statistics import Estimate, difference, mean, ratio

ROUGHLY_NINE_TENTHS, MOST = 0.85, 0.5
SLIGHTLY = 1.25
"""'Slightly worse': more queries, but at most a quarter more."""
TOGETHER = 0.95
"""Confidence of the intervals of all settings together, where one good setting is enough (Bonferroni)."""
ADAPTIVE = ("tlpi", "qlpi")


def _larger_depth_fewer_iterations(experiments: Experiments) -> list[ConventionVerdict]:
    fixed = method_runs(experiments["maze"].records, FIXED)
    gaps = []
    for shallow, deep in pairwise(fixed):
        seeds = common_seeds(shallow, deep)
        gaps.append(difference(deep.iterations(seeds), shallow.iterations(seeds)))
    numbers = ", ".join(f"{c.label} {c.iterations().mean():.1f}" for c in fixed)
    return verdicts.alike((verdicts.grade_intervals(gaps, lambda gap: gap.below_zero), f"mean iterations {numbers}"))


def _trade_off(experiments: Experiments) -> list[ConventionVerdict]:
    """Check that the best depth is neither the first nor the last, and that both ends are significantly worse."""
    fixed = method_runs(experiments["maze"].records, FIXED)

    def check(convention: Convention) -> Finding:
        best = cheapest(fixed, convention)
        if best is None:
            return verdicts.NO_RUNS
        ends = (fixed[0], fixed[-1])
        ratios = [cost_ratio(end, best, convention) for end in ends]
        found = verdicts.grade_intervals(ratios, lambda gap: gap.low > 1.0)
        if best in ends and found.verdict is not Verdict.NOT_TESTED:  # the best is one of the ends: no trade-off
            found = verdicts.Grade(Verdict.FAILS, found.score)
        texts = ", ".join(f"{end.label} {interval(gap)}" for end, gap in zip(ends, ratios, strict=True))
        return found, f"over {_name(best, fixed, convention)}: {texts}"

    return verdicts.under_each(check)


def _pi_worse(experiments: Experiments) -> list[ConventionVerdict]:
    fixed = method_runs(experiments["maze"].records, FIXED)

    def check(convention: Convention) -> Finding:
        best = cheapest(fixed, convention)
        if best is None:
            return verdicts.NO_RUNS
        gap = cost_ratio(fixed[0], best, convention)
        found = verdicts.grade_intervals([gap], lambda gap: gap.low > 1.0)
        return found, f"{interval(gap)} times the queries of {_name(best, fixed, convention)}"

    return verdicts.under_each(check)


def _contract_faster(experiments: Experiments) -> list[ConventionVerdict]:
    """Check how many states contract by γ² or better in one step; κ ≤ γ is guaranteed in every state."""
    histograms = [
        record.effective_lookahead
        for record in experiments["maze"].records
        if record.effective_lookahead is not None and len(record.effective_lookahead)
    ]
    if not histograms:
        return verdicts.alike(verdicts.NO_RUNS)

    def share_beyond(depth: int) -> Estimate:
        return mean([float(rows[:, depth:].sum(axis=1).mean()) for rows in histograms])

    shares = {depth: share_beyond(depth) for depth in (2, 3, 5)}
    verdict = Verdict.HOLDS if shares[2].value >= ROUGHLY_NINE_TENTHS else Verdict.IN_PART
    verdict = verdict if shares[2].value >= MOST else Verdict.FAILS
    found = verdicts.grade_intervals([shares[2]], lambda share: True, rate=lambda passed: verdicts.Grade(verdict, ""))
    texts = [f"κ ≤ γ^{depth} in {interval(share)} of the states" for depth, share in shares.items()]
    return verdicts.alike((found, ", ".join(texts)))


def _tlpi_and_hpi(maze: ExperimentData) -> list[tuple[MethodRuns, MethodRuns]]:
    """Pair each TLPI(γ^h) with h-PI."""
    fixed = {method.lookahead: method for method in method_runs(maze.records, FIXED)}
    return [(one, fixed[one.lookahead]) for one in method_runs(maze.records, "tlpi") if one.lookahead in fixed]


def _tlpi_iterations(experiments: Experiments) -> list[ConventionVerdict]:
    gaps = {}
    for one, rival in _tlpi_and_hpi(experiments["maze"]):
        seeds = common_seeds(one, rival)
        gaps[one.label] = ratio(one.iterations(seeds), rival.iterations(seeds))
    return verdicts.alike(
        (verdicts.grade_intervals(gaps.values(), as_good), f"iterations over those of h-PI: {_list(gaps)}")
    )


def _tlpi_cheaper(experiments: Experiments) -> list[ConventionVerdict]:
    pairs = _tlpi_and_hpi(experiments["maze"])

    def check(convention: Convention) -> Finding:
        gaps = {one.label: cost_ratio(one, rival, convention) for one, rival in pairs}
        return verdicts.grade_intervals(gaps.values(), _cheaper), f"queries over those of h-PI: {_list(gaps)}"

    return verdicts.under_each(check)


def _against_best_fixed(
    *groups: str,
    passes: verdicts.Passes,
    rate: Callable[[Sequence[bool]], verdicts.Grade] = verdicts.grade,
    together: bool = False,
) -> Callable[[Experiments], list[ConventionVerdict]]:
    """Return a check of every setting of the groups against the best fixed depth, under each convention."""

    def check(experiments: Experiments) -> list[ConventionVerdict]:
        maze = experiments["maze"]
        rivals, fixed = method_runs(maze.records, *groups), method_runs(maze.records, FIXED)
        confidence = 1.0 - (1.0 - TOGETHER) / max(1, len(rivals)) if together else TOGETHER

        def under(convention: Convention) -> Finding:
            best = cheapest(fixed, convention)
            if best is None or not rivals:
                return verdicts.NO_RUNS
            gaps = {one.label: cost_ratio(one, best, convention, confidence) for one in rivals}
            found = verdicts.grade_intervals(gaps.values(), passes, rate)
            return found, f"over {_name(best, fixed, convention)}: {_list(gaps)}"

        return verdicts.under_each(under)

    return check


def _one_is_enough(passed: Sequence[bool]) -> verdicts.Grade:
    return verdicts.Grade(Verdict.HOLDS if any(passed) else Verdict.FAILS, verdicts.grade(passed).score)


def as_good(gap: Estimate) -> bool:
    """Whether the whole interval is at most 10% above the other method's cost."""
    return gap.high <= verdicts.SIMILAR


def _cheaper(gap: Estimate) -> bool:
    """Whether the whole interval is below the other method's cost."""
    return gap.high < 1.0


def _slightly_worse(experiments: Experiments) -> list[ConventionVerdict]:
    maze = experiments["maze"]
    aggregated = method_runs(maze.records, "aggregated")
    exact = {_budgets(method): method for method in method_runs(maze.records, "qlpi")}
    pairs = [(one, exact[_budgets(one)]) for one in aggregated if _budgets(one) in exact]

    def check(convention: Convention) -> Finding:
        gaps = {one.label: cost_ratio(one, rival, convention) for one, rival in pairs}
        found = verdicts.grade_intervals(gaps.values(), lambda gap: 1.0 <= gap.value <= SLIGHTLY)
        return found, f"over the same QLPI with V*: {_list(gaps)}"

    return verdicts.under_each(check)


def _budgets(method: MethodRuns) -> tuple[tuple[int, float], ...]:
    return tuple(sorted(next(iter(method.runs.values())).budgets.items()))


def _robust(experiments: Experiments) -> list[ConventionVerdict]:
    maze = experiments["maze"]
    fixed, adaptive = method_runs(maze.records, FIXED), method_runs(maze.records, *ADAPTIVE)

    def check(convention: Convention) -> Finding:
        if not fixed or not adaptive:
            return verdicts.NO_RUNS
        spread = {}
        for name, methods in (("fixed", fixed), ("adaptive", adaptive)):
            costs = [method.totals(convention).mean() for method in methods]
            spread[name] = max(costs) / min(costs)
        best = cheapest(fixed, convention)
        assert best is not None  # there are some
        worst = max((cost_ratio(one, best, convention) for one in adaptive), key=lambda gap: gap.value)
        numbers = (
            f"worst over best setting: {spread['adaptive']:.2f} adaptive, {spread['fixed']:.2f} fixed; "
            f"worst adaptive over {_name(best, fixed, convention)}: {interval(worst)}"
        )
        narrower = spread["adaptive"] < spread["fixed"]
        return verdicts.grade_intervals(
            [worst], as_good, rate=lambda passed: verdicts.grade([narrower, *passed])
        ), numbers

    return verdicts.under_each(check)


def _wlpi_lowest(experiments: Experiments) -> list[ConventionVerdict]:
    maze = experiments["maze"]
    methods = method_runs(maze.records)
    wlpi = [method for method in methods if method.group == "wlpi"]
    others = [method for method in methods if method.group != "wlpi"]

    def check(convention: Convention) -> Finding:
        best = cheapest(others, convention)
        if best is None or not wlpi:
            return verdicts.NO_RUNS
        gaps = {one.label: cost_ratio(one, best, convention) for one in wlpi}
        found = verdicts.grade_intervals(gaps.values(), lambda gap: gap.high <= 1.0)
        return found, f"{_list(gaps)} of {_name(best, others, convention)}"

    return verdicts.under_each(check)


def _name(best: MethodRuns, others: Sequence[MethodRuns], convention: Convention) -> str:
    label = depth_name(best, others) if best.group == FIXED else best.label
    return f"{label} ({best.totals(convention).mean() / 1000:,.0f} k)"


def _list(gaps: dict[str, Estimate]) -> str:
    return ", ".join(f"{label} {interval(gap)}" for label, gap in gaps.items()) or "no such runs"


AS_GOOD = "Queries over those of the best fixed depth: the whole interval at or below 1.10, for every setting."

CLAIMS = (
    Claim(
        "fewer-iterations",
        "Maze, Fixed lookahead; Figure 3",
        "The larger the lookahead, the fewer the iterations.",
        "Mean iterations of (h+1)-PI minus h-PI, paired: the whole interval below 0, for each h.",
        ("maze",),
        _larger_depth_fewer_iterations,
    ),
    Claim(
        "trade-off",
        "Maze, Fixed lookahead; Figure 5, first panel",
        "Fixed depth is a trade-off: both the shortest and the longest lookahead cost more than the best.",
        "Queries over those of the best fixed depth: the whole interval above 1, at both ends.",
        ("maze",),
        _trade_off,
        explain=explanations.best_depth_is_largest_tried,
    ),
    Claim(
        "pi-worse",
        "Maze, Fixed lookahead; Figure 5, first panel",
        "Plain PI performs worse than the best fixed lookahead.",
        "Queries of PI over those of the best fixed depth: the whole interval above 1.",
        ("maze",),
        _pi_worse,
        "Where an evaluation costs little compared with the lookahead, PI itself is the best fixed depth.",
    ),
    Claim(
        "contract-faster",
        "Maze, TLPI; Figure 4",
        "One step contracts much more than by γ in roughly 90% of the states.",
        "Share of the states with effective lookahead of at least 2 (κ ≤ γ²; κ ≤ γ is guaranteed), mean over PI's "
        "iterations and seeds: at least 85% (in part: at least half).",
        ("maze",),
        _contract_faster,
    ),
    Claim(
        "tlpi-iterations",
        "Maze, TLPI; Theorem 1",
        "TLPI(γ^h) needs as many iterations as h-PI.",
        "Iterations over those of h-PI, paired: the whole interval at or below 1.10, for each h.",
        ("maze",),
        _tlpi_iterations,
        "h-PI looks h steps ahead in every state, so states near the optimum contract by more than its bound "
        "guarantees; TLPI only guarantees κ.",
    ),
    Claim(
        "tlpi-cheaper",
        "Maze, TLPI; Table 1",
        "TLPI(γ^h) costs less than h-PI.",
        "Queries over those of h-PI, paired: the whole interval below 1, for each h.",
        ("maze",),
        _tlpi_cheaper,
    ),
    Claim(
        "tlpi-as-best",
        "Maze, TLPI; Figure 5, second panel",
        "TLPI costs about as much as the best fixed lookahead for all κ.",
        AS_GOOD,
        ("maze",),
        _against_best_fixed("tlpi", passes=as_good),
    ),
    Claim(
        "qlpi-as-best",
        "Maze, QLPI; Figure 5, third panel",
        "QLPI performs as well as the best fixed lookahead with all budgets.",
        AS_GOOD,
        ("maze",),
        _against_best_fixed("qlpi", passes=as_good),
    ),
    Claim(
        "qlpi-better",
        "Maze, QLPI; Figure 5, third panel",
        "With some budgets QLPI is significantly better than the best fixed lookahead.",
        "Queries over those of the best fixed depth: the whole interval below 1 for at least one setting; intervals at "
        "95% for all settings together.",
        ("maze",),
        _against_best_fixed("qlpi", passes=_cheaper, rate=_one_is_enough, together=True),
    ),
    Claim(
        "aggregation-slightly-worse",
        "Maze, Approximate V*; Figure 5, last panel",
        "With aggregated priors QLPI is slightly worse than with V*.",
        "Queries, the aggregated solve included, over those of the same QLPI with V*: between 1 and 1.25 for every k.",
        ("maze",),
        _slightly_worse,
        explain=explanations.prior_against_exact("aggregated"),
    ),
    Claim(
        "aggregation-as-best",
        "Maze, Approximate V*; Figure 5, last panel",
        "With aggregated priors QLPI is still as good as the best fixed lookahead, for all k.",
        f"{AS_GOOD} The aggregated solve is included.",
        ("maze",),
        _against_best_fixed("aggregated", passes=as_good),
        explain=explanations.prior_against_exact("aggregated"),
    ),
    Claim(
        "better-than-fixed",
        "Maze, summary; the main claim",
        "TLPI and QLPI need no more queries than the best fixed lookahead, with all tested settings.",
        "Mean queries over those of the best fixed depth: at most 1, for every setting.",
        ("maze",),
        _against_best_fixed(*ADAPTIVE, passes=lambda gap: gap.value <= 1.0),
        explain=explanations.settings_above_best_fixed,
    ),
    Claim(
        "robust",
        "Maze, summary",
        "TLPI and QLPI are robust to their settings.",
        "The worst setting over the best is a smaller ratio for TLPI and QLPI than for h-PI, and the worst setting is "
        "as good as the best fixed depth (whole interval at or below 1.10).",
        ("maze",),
        _robust,
    ),
    Claim(
        "few-iterations-prior",
        "Contraction-Based Adaptive Lookahead; our test",
        "A few iterations of PI give a prior good enough for QLPI and TLPI to match the best fixed lookahead.",
        f"{AS_GOOD} The iterations spent on the prior are included.",
        ("maze",),
        _against_best_fixed("few", passes=as_good),
        explain=explanations.prior_against_exact("few"),
    ),
    Claim(
        "similar-task-prior",
        "Contraction-Based Adaptive Lookahead; our test",
        "The values of a similar task (same walls, other goals) are a good enough prior, too.",
        f"{AS_GOOD} The other task counts as solved already.",
        ("maze",),
        _against_best_fixed("similar", passes=as_good),
        explain=explanations.prior_against_exact("similar"),
    ),
    Claim(
        "wlpi-lowest",
        "Discussion (can one do without prior knowledge?); this project",
        "On the default maze WLPI, without any prior, needs no more queries than any other method and setting.",
        "Queries over those of the cheapest other, picked in hindsight: the whole interval at or below 1.",
        ("maze",),
        _wlpi_lowest,
        explain=lambda experiments: wlpi_like_for_like(method_runs(experiments["maze"].records)),
    ),
)
