"""Sentences that explain why a claim about the maze fails, put together from the records.

Each function takes the experiments and returns a sentence or two, or nothing where nothing needs explaining.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adalook.report.claims.verdicts import Experiments
from adalook.report.data.method_runs import FIXED, MethodRuns, cheapest, cost_ratio, largest_tried, method_runs
from adalook.report.data.records import CONVENTIONS, HEADLINE, Record

ADAPTIVE = ("tlpi", "qlpi")


def best_depth_is_largest_tried(experiments: Experiments) -> str:
    """Name the conventions under which the best fixed depth is the largest one tried."""
    fixed = method_runs(experiments["maze"].records, FIXED)
    short = [str(convention) for convention in CONVENTIONS if largest_tried(cheapest(fixed, convention), fixed)]
    if not short:
        return ""
    deepest = max(one.lookahead for one in fixed)
    return (
        f"Under {', '.join(short)} the best is {deepest}-PI, the largest depth tried: these "
        "runs do not show whether still deeper lookahead costs more again."
    )


def settings_above_best_fixed(experiments: Experiments) -> str:
    """Name the adaptive settings that need more queries than the best fixed depth, and why (headline convention)."""
    maze = experiments["maze"]
    best = cheapest(method_runs(maze.records, FIXED), HEADLINE)
    if best is None:
        return ""
    above = [one for one in method_runs(maze.records, *ADAPTIVE) if cost_ratio(one, best, HEADLINE).value > 1.0]
    return " ".join(_why_above(one, best) for one in above)


def _why_above(one: MethodRuns, best: MethodRuns) -> str:
    each = (one.totals(HEADLINE) / _passes(one)).mean() / (best.totals(HEADLINE) / _passes(best)).mean()
    text = (
        f"Under {HEADLINE} {one.label} needs more queries: {one.iterations().mean():.1f} iterations against "
        f"{best.iterations().mean():.1f} of {best.label}, at {each:.2f} of its queries a pass."
    )
    if one.group == "tlpi" and one.lookahead == 2:
        text += " Theorem 1 guarantees TLPI(γ²) only the speed of PI."
    return text


def _passes(method: MethodRuns) -> np.ndarray:
    return np.array([method.runs[seed].passes for seed in method.seeds], np.float64)


def prior_against_exact(group: str) -> Callable[[Experiments], str]:
    """Return a function that says what a prior other than V* costs: more iterations, and its own queries."""

    def explain(experiments: Experiments) -> str:
        records = experiments["maze"].records
        exact = {_rule(one): one for one in method_runs(records, *ADAPTIVE)}
        pairs = [(one, exact[_rule(one)]) for one in method_runs(records, group) if _rule(one) in exact]
        if not pairs:
            return ""
        ours, theirs = zip(*pairs, strict=True)
        text = f"With these priors the methods need {_iterations(ours)} iterations, with V* {_iterations(theirs)}"
        plain = [one for one in method_runs(records, FIXED) if one.lookahead == 1]
        text += f" (PI: {plain[0].iterations().mean():.1f})" if plain else ""
        return f"{text}.{_left_over(ours, plain)}{_price(ours)}"

    return explain


def _rule(method: MethodRuns) -> tuple[object, ...]:
    """Return the setting of a method without its prior."""
    record = _any(method)
    return record.parameters.get("kappa_power"), *sorted(record.budgets.items())


def _any(method: MethodRuns) -> Record:
    return next(iter(method.runs.values()))


def _iterations(methods: Sequence[MethodRuns]) -> str:
    return _span([float(one.iterations().mean()) for one in methods], "{:.1f}")


def _left_over(ours: Sequence[MethodRuns], plain: Sequence[MethodRuns]) -> str:
    """Say how far the values after a few passes of PI still are from V*."""
    counts = sorted({int(_any(one).parameters["few"]) for one in ours if "few" in _any(one).parameters})
    if not counts or not plain:
        return ""
    left = []
    for count in counts:
        shares = [run.distance[min(count, run.passes - 1)] / run.distance[0] for run in plain[0].runs.values()]
        left.append(100.0 * float(np.mean(shares)))
    return (
        f" After {_span(counts, '{}')} passes of PI the largest distance to V* is still {_span(left, '{:.0f}%')} of "
        "what it was at the start, so the distance to this prior says little about the distance to V*."
    )


def _price(ours: Sequence[MethodRuns]) -> str:
    """Say which share of all queries went into the prior, where its cost is counted."""
    shares = []
    for one in ours:
        runs = one.runs.values()
        paid = sum(run.prior.total(*HEADLINE) for run in runs if run.prior is not None and run.prior.counted)
        shares.append(100.0 * paid / sum(run.total(*HEADLINE) for run in runs))
    return f" The prior itself is {_span(shares, '{:.0f}%')} of the queries ({HEADLINE})." if max(shares) > 0.0 else ""


def _span(numbers: Sequence[float], form: str) -> str:
    """Format the smallest and the largest number.

    >>> _span([1.04, 2.0], "{:.1f}"), _span([3, 3], "{}")
    ('1.0 to 2.0', '3')
    """
    first, last = form.format(min(numbers)), form.format(max(numbers))
    return first if first == last else f"{first} to {last}"
