"""Claims of the paper's section "Maze Experiments", and ours about the same mazes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from adalook.report.claims import explanations as reasons
from adalook.report.claims.verdicts import (
    NO_RUNS,
    SIMILAR,
    Experiments,
    Finding,
    Grade,
    Judgement,
    Passes,
    Question,
    Verdict,
    alike,
    grade,
    grade_intervals,
    interval,
    under_each,
)
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import (
    FIXED,
    Contender,
    cheapest,
    common_seeds,
    contenders,
    cost_ratio,
    depth_name,
    wave_like_for_like,
)
from adalook.report.data.records import Convention
from adalook.report.data.statistics import Estimate, difference, mean, ratio

ROUGHLY_NINE_TENTHS, MOST = 0.85, 0.5
SLIGHTLY = 1.25
"""'Slightly worse': more queries, but at most a quarter more."""
TOGETHER = 0.95
"""Confidence of the intervals of all settings together, where one good setting is enough (Bonferroni)."""
ADAPTIVE = ("tlpi", "qlpi")


def _larger_depth_fewer_iterations(experiments: Experiments) -> list[Judgement]:
    fixed = contenders(experiments["maze"].records, FIXED)
    gaps = []
    for shallow, deep in pairwise(fixed):
        seeds = common_seeds(shallow, deep)
        gaps.append(difference(deep.iterations(seeds), shallow.iterations(seeds)))
    figures = ", ".join(f"{c.label} {c.iterations().mean():.1f}" for c in fixed)
    return alike((grade_intervals(gaps, lambda gap: gap.below_zero), f"mean iterations {figures}"))


def _trade_off(experiments: Experiments) -> list[Judgement]:
    """The best depth is neither the first nor the last, and both ends are worse beyond doubt."""
    fixed = contenders(experiments["maze"].records, FIXED)

    def judge(convention: Convention) -> Finding:
        best = cheapest(fixed, convention)
        if best is None:
            return NO_RUNS
        ends = (fixed[0], fixed[-1])
        ratios = [cost_ratio(end, best, convention) for end in ends]
        found = grade_intervals(ratios, lambda gap: gap.low > 1.0)
        if best in ends and found.verdict is not Verdict.NOT_TESTED:  # one end is dearer than the other: no trade-off
            found = Grade(Verdict.FAILS, found.score)
        texts = ", ".join(f"{end.label} {interval(gap)}" for end, gap in zip(ends, ratios, strict=True))
        return found, f"over {_name(best, fixed, convention)}: {texts}"

    return under_each(judge)


def _pi_worse(experiments: Experiments) -> list[Judgement]:
    fixed = contenders(experiments["maze"].records, FIXED)

    def judge(convention: Convention) -> Finding:
        best = cheapest(fixed, convention)
        if best is None:
            return NO_RUNS
        gap = cost_ratio(fixed[0], best, convention)
        found = grade_intervals([gap], lambda gap: gap.low > 1.0)
        return found, f"{interval(gap)} times the queries of {_name(best, fixed, convention)}"

    return under_each(judge)


def _contract_faster(experiments: Experiments) -> list[Judgement]:
    """κ ≤ γ is sure in every state, so "much smaller" has to mean more: at most γ², what two steps would guarantee."""
    histograms = [
        record.effective_lookahead
        for record in experiments["maze"].records
        if record.effective_lookahead is not None and len(record.effective_lookahead)
    ]
    if not histograms:
        return alike(NO_RUNS)

    def share_beyond(depth: int) -> Estimate:
        return mean([float(rows[:, depth:].sum(axis=1).mean()) for rows in histograms])

    shares = {depth: share_beyond(depth) for depth in (2, 3, 5)}
    verdict = Verdict.HOLDS if shares[2].value >= ROUGHLY_NINE_TENTHS else Verdict.IN_PART
    verdict = verdict if shares[2].value >= MOST else Verdict.FAILS
    found = grade_intervals([shares[2]], lambda share: True, rate=lambda passed: Grade(verdict, ""))
    texts = [f"κ ≤ γ^{depth} in {interval(share)} of the states" for depth, share in shares.items()]
    return alike((found, ", ".join(texts)))


def _rivals(maze: ExperimentData) -> list[tuple[Contender, Contender]]:
    """Each TLPI(γ^h) beside h-PI."""
    fixed = {contender.lookahead: contender for contender in contenders(maze.records, FIXED)}
    return [(one, fixed[one.lookahead]) for one in contenders(maze.records, "tlpi") if one.lookahead in fixed]


def _tlpi_iterations(experiments: Experiments) -> list[Judgement]:
    gaps = {}
    for one, rival in _rivals(experiments["maze"]):
        seeds = common_seeds(one, rival)
        gaps[one.label] = ratio(one.iterations(seeds), rival.iterations(seeds))
    return alike((grade_intervals(gaps.values(), as_good), f"iterations over those of h-PI: {_list(gaps)}"))


def _tlpi_cheaper(experiments: Experiments) -> list[Judgement]:
    rivals = _rivals(experiments["maze"])

    def judge(convention: Convention) -> Finding:
        gaps = {one.label: cost_ratio(one, rival, convention) for one, rival in rivals}
        return grade_intervals(gaps.values(), _cheaper), f"queries over those of h-PI: {_list(gaps)}"

    return under_each(judge)


def _against_best_fixed(
    *groups: str, passes: Passes, rate: Callable[[Sequence[bool]], Grade] = grade, together: bool = False
) -> Callable[[Experiments], list[Judgement]]:
    """Queries of every setting of the groups over those of the best fixed depth, under each convention."""

    def judge(experiments: Experiments) -> list[Judgement]:
        maze = experiments["maze"]
        rivals, fixed = contenders(maze.records, *groups), contenders(maze.records, FIXED)
        confidence = 1.0 - (1.0 - TOGETHER) / max(1, len(rivals)) if together else TOGETHER

        def under(convention: Convention) -> Finding:
            best = cheapest(fixed, convention)
            if best is None or not rivals:
                return NO_RUNS
            gaps = {one.label: cost_ratio(one, best, convention, confidence) for one in rivals}
            found = grade_intervals(gaps.values(), passes, rate)
            return found, f"over {_name(best, fixed, convention)}: {_list(gaps)}"

        return under_each(under)

    return judge


def _one_is_enough(passed: Sequence[bool]) -> Grade:
    return Grade(Verdict.HOLDS if any(passed) else Verdict.FAILS, grade(passed).score)


def as_good(gap: Estimate) -> bool:
    """No more than 10% dearer, beyond doubt."""
    return gap.high <= SIMILAR


def _cheaper(gap: Estimate) -> bool:
    """Fewer queries, beyond doubt."""
    return gap.high < 1.0


def _slightly_worse(experiments: Experiments) -> list[Judgement]:
    maze = experiments["maze"]
    aggregated = contenders(maze.records, "aggregated")
    exact = {_budgets(contender): contender for contender in contenders(maze.records, "qlpi")}
    pairs = [(one, exact[_budgets(one)]) for one in aggregated if _budgets(one) in exact]

    def judge(convention: Convention) -> Finding:
        gaps = {one.label: cost_ratio(one, rival, convention) for one, rival in pairs}
        found = grade_intervals(gaps.values(), lambda gap: 1.0 <= gap.value <= SLIGHTLY)
        return found, f"over the same QLPI with V*: {_list(gaps)}"

    return under_each(judge)


def _budgets(contender: Contender) -> tuple[tuple[int, float], ...]:
    return tuple(sorted(next(iter(contender.runs.values())).budgets.items()))


def _robust(experiments: Experiments) -> list[Judgement]:
    maze = experiments["maze"]
    fixed, adaptive = contenders(maze.records, FIXED), contenders(maze.records, *ADAPTIVE)

    def judge(convention: Convention) -> Finding:
        if not fixed or not adaptive:
            return NO_RUNS
        spread = {}
        for name, everyone in (("fixed", fixed), ("adaptive", adaptive)):
            costs = [contender.totals(convention).mean() for contender in everyone]
            spread[name] = max(costs) / min(costs)
        best = cheapest(fixed, convention)
        assert best is not None  # there are some
        worst = max((cost_ratio(one, best, convention) for one in adaptive), key=lambda gap: gap.value)
        figures = (
            f"worst over best setting: {spread['adaptive']:.2f} adaptive, {spread['fixed']:.2f} fixed; "
            f"worst adaptive over {_name(best, fixed, convention)}: {interval(worst)}"
        )
        narrower = spread["adaptive"] < spread["fixed"]
        return grade_intervals([worst], as_good, rate=lambda passed: grade([narrower, *passed])), figures

    return under_each(judge)


def _wlpi_lowest(experiments: Experiments) -> list[Judgement]:
    maze = experiments["maze"]
    everyone = contenders(maze.records)
    waves = [contender for contender in everyone if contender.group == "wlpi"]
    others = [contender for contender in everyone if contender.group != "wlpi"]

    def judge(convention: Convention) -> Finding:
        best = cheapest(others, convention)
        if best is None or not waves:
            return NO_RUNS
        gaps = {one.label: cost_ratio(one, best, convention) for one in waves}
        found = grade_intervals(gaps.values(), lambda gap: gap.high <= 1.0)
        return found, f"{_list(gaps)} of {_name(best, others, convention)}"

    return under_each(judge)


def _name(best: Contender, others: Sequence[Contender], convention: Convention) -> str:
    label = depth_name(best, others) if best.group == FIXED else best.label
    return f"{label} ({best.totals(convention).mean() / 1000:,.0f} k)"


def _list(gaps: dict[str, Estimate]) -> str:
    return ", ".join(f"{label} {interval(gap)}" for label, gap in gaps.items()) or "no such runs"


AS_GOOD = "Queries over those of the best fixed depth: the whole interval at or below 1.10, for every setting."

QUESTIONS = (
    Question(
        "fewer-iterations",
        "Maze, Fixed lookahead; Figure 3",
        "The larger the lookahead, the fewer the iterations.",
        "Mean iterations of (h+1)-PI minus h-PI, paired: the whole interval below 0, for each h.",
        ("maze",),
        _larger_depth_fewer_iterations,
    ),
    Question(
        "trade-off",
        "Maze, Fixed lookahead; Figure 5, first panel",
        "Fixed depth is a trade-off: both the shortest and the longest lookahead are dearer than the best.",
        "Queries over those of the best fixed depth: the whole interval above 1, at both ends.",
        ("maze",),
        _trade_off,
        explain=reasons.depths_end_too_soon,
    ),
    Question(
        "pi-worse",
        "Maze, Fixed lookahead; Figure 5, first panel",
        "Plain PI performs worse than the best fixed lookahead.",
        "Queries of PI over those of the best fixed depth: the whole interval above 1.",
        ("maze",),
        _pi_worse,
        "Where an evaluation costs little beside the lookahead, PI itself is the best fixed depth.",
    ),
    Question(
        "contract-faster",
        "Maze, TLPI; Figure 4",
        "One step contracts much more than by γ in roughly 90% of the states.",
        "Share of the states with effective lookahead of at least 2 (κ ≤ γ²; κ ≤ γ is sure), mean over PI's iterations "
        "and seeds: at least 85% (in part: at least half).",
        ("maze",),
        _contract_faster,
    ),
    Question(
        "tlpi-iterations",
        "Maze, TLPI; Theorem 1",
        "TLPI(γ^h) needs as many iterations as h-PI.",
        "Iterations over those of h-PI, paired: the whole interval at or below 1.10, for each h.",
        ("maze",),
        _tlpi_iterations,
        "h-PI deepens every state, so states that are near the optimum anyway get further than its bound asks; "
        "TLPI does only what κ asks.",
    ),
    Question(
        "tlpi-cheaper",
        "Maze, TLPI; Table 1",
        "TLPI(γ^h) costs less than h-PI.",
        "Queries over those of h-PI, paired: the whole interval below 1, for each h.",
        ("maze",),
        _tlpi_cheaper,
    ),
    Question(
        "tlpi-as-best",
        "Maze, TLPI; Figure 5, second panel",
        "TLPI costs about as much as the best fixed lookahead for all κ.",
        AS_GOOD,
        ("maze",),
        _against_best_fixed("tlpi", passes=as_good),
    ),
    Question(
        "qlpi-as-best",
        "Maze, QLPI; Figure 5, third panel",
        "QLPI performs as well as the best fixed lookahead with all budgets.",
        AS_GOOD,
        ("maze",),
        _against_best_fixed("qlpi", passes=as_good),
    ),
    Question(
        "qlpi-better",
        "Maze, QLPI; Figure 5, third panel",
        "With some budgets QLPI is significantly better than the best fixed lookahead.",
        "Queries over those of the best fixed depth: the whole interval below 1 for at least one setting; intervals at "
        "95% for all settings together.",
        ("maze",),
        _against_best_fixed("qlpi", passes=_cheaper, rate=_one_is_enough, together=True),
    ),
    Question(
        "aggregation-slightly-worse",
        "Maze, Approximate V*; Figure 5, last panel",
        "With aggregated priors QLPI is slightly worse than with V*.",
        "Queries, the aggregated solve included, over those of the same QLPI with V*: between 1 and 1.25 for every k.",
        ("maze",),
        _slightly_worse,
        explain=reasons.prior_against_exact("aggregated"),
    ),
    Question(
        "aggregation-as-best",
        "Maze, Approximate V*; Figure 5, last panel",
        "With aggregated priors QLPI is still as good as the best fixed lookahead, for all k.",
        f"{AS_GOOD} The aggregated solve is included.",
        ("maze",),
        _against_best_fixed("aggregated", passes=as_good),
        explain=reasons.prior_against_exact("aggregated"),
    ),
    Question(
        "better-than-fixed",
        "Maze, summary; the headline of this reproduction",
        "TLPI and QLPI need no more queries than the best fixed lookahead, with all tested settings.",
        "Mean queries over those of the best fixed depth: at most 1, for every setting.",
        ("maze",),
        _against_best_fixed(*ADAPTIVE, passes=lambda gap: gap.value <= 1.0),
        explain=reasons.exceptions_to_the_headline,
    ),
    Question(
        "robust",
        "Maze, summary",
        "TLPI and QLPI are robust to their settings.",
        "The worst setting over the best is a smaller ratio for TLPI and QLPI than for h-PI, and the worst setting is "
        "as good as the best fixed depth (whole interval at or below 1.10).",
        ("maze",),
        _robust,
    ),
    Question(
        "few-iterations-prior",
        "Contraction-Based Adaptive Lookahead; our test",
        "A few iterations of PI give a prior good enough for QLPI and TLPI to match the best fixed lookahead.",
        f"{AS_GOOD} The iterations spent on the prior are included.",
        ("maze",),
        _against_best_fixed("few", passes=as_good),
        explain=reasons.prior_against_exact("few"),
    ),
    Question(
        "similar-task-prior",
        "Contraction-Based Adaptive Lookahead; our test",
        "The values of a similar task (same walls, other goals) are a good enough prior, too.",
        f"{AS_GOOD} The other task counts as solved already.",
        ("maze",),
        _against_best_fixed("similar", passes=as_good),
        explain=reasons.prior_against_exact("similar"),
    ),
    Question(
        "wlpi-lowest",
        "Discussion (can one do without prior knowledge?); ours",
        "On the default maze WLPI, without any prior, needs no more queries than any other method and setting.",
        "Queries over those of the cheapest other, picked in hindsight: the whole interval at or below 1.",
        ("maze",),
        _wlpi_lowest,
        explain=lambda experiments: wave_like_for_like(contenders(experiments["maze"].records)),
    ),
)
