"""The runs of one method with one setting on all seeds, and how methods are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from adalook._arrays import FloatArray
from adalook.report.data.records import Convention, GroupStyle, Record
from adalook.report.data.statistics import Estimate, ratio

FIXED = "hpi"
LIKE_FOR_LIKE = Convention("shared", "simulated")
"""Where every method is counted as WLPI always is: work that states share counts once."""


@dataclass(frozen=True)
class MethodRuns:
    """The runs of one method with one setting, at most one per seed."""

    group: str
    label: str
    runs: Mapping[int, Record]

    @property
    def style(self) -> GroupStyle:
        """The style in which figures draw it."""
        return next(iter(self.runs.values())).style

    @property
    def lookahead(self) -> int:
        return next(iter(self.runs.values())).lookahead

    @property
    def seeds(self) -> list[int]:
        return sorted(self.runs)

    def totals(self, convention: Convention, seeds: Iterable[int] | None = None) -> FloatArray:
        """Return the queries until convergence, (seeds,)."""
        wanted = self.seeds if seeds is None else seeds
        return np.array([self.runs[seed].total(*convention) for seed in wanted], np.float64)

    def iterations(self, seeds: Iterable[int] | None = None) -> FloatArray:
        """Return the number of updates that changed the policy, (seeds,)."""
        wanted = self.seeds if seeds is None else seeds
        return np.array([self.runs[seed].iterations for seed in wanted], np.float64)


def method_runs(records: Iterable[Record], *groups: str) -> list[MethodRuns]:
    """Group records (of some groups, or all) by method and setting, in the order of the paper's figure."""
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        if not groups or record.group in groups:
            found.setdefault((record.group, record.label), {})[record.seed] = record
    methods = [MethodRuns(group, label, runs) for (group, label), runs in found.items()]
    return sorted(methods, key=_sort_key)


def _sort_key(method: MethodRuns) -> tuple[int, tuple[float, ...], str]:
    """Return a key that sorts by group, then by setting, with QLPI's budgets descending as in the paper."""
    parameters = next(iter(method.runs.values())).parameters
    setting = [float(parameters.get(name) or 0) for name in ("k", "depth", "kappa_power")]
    budgets = parameters.get("budgets") or {}
    setting += [-float(share) for _, share in sorted(budgets.items(), key=lambda item: int(item[0]))]
    setting.append(float(parameters.get("few") or 0))
    return method.style.place, tuple(setting), method.label


def common_seeds(*methods: MethodRuns) -> list[int]:
    """Return the seeds on which all of the methods were run."""
    return sorted(set.intersection(*(set(method.runs) for method in methods)))


def cheapest(methods: Iterable[MethodRuns], convention: Convention) -> MethodRuns | None:
    """Return the method with the lowest mean number of queries (the first among equals), or None."""
    return min(methods, key=lambda method: method.totals(convention).mean(), default=None)


def largest_tried(best: MethodRuns | None, fixed: Iterable[MethodRuns]) -> bool:
    """Return whether the best fixed depth is the largest tried, so that a larger one may be better still.

    The smallest depth is 1, where there is nothing beyond.
    """
    depths = {one.lookahead for one in fixed if one.group == FIXED}
    return best is not None and len(depths) > 1 and best.lookahead == max(depths)


def depth_name(best: MethodRuns, fixed: Iterable[MethodRuns]) -> str:
    """Return the best fixed depth's name, with a warning if it is the largest depth tried."""
    return f"{best.label}, the largest depth tried" if largest_tried(best, fixed) else best.label


def wlpi_like_for_like(methods: Iterable[MethodRuns]) -> str:
    """Compare WLPI with the best fixed depth in one sentence, both counted as `shared`, as WLPI always is."""
    there = list(methods)
    fixed = [one for one in there if one.group == FIXED]
    wave = next((one for one in there if one.group == "wlpi"), None)
    best = cheapest(fixed, LIKE_FOR_LIKE)
    if wave is None or best is None:
        return ""
    gap = interval(cost_ratio(wave, best, LIKE_FOR_LIKE))
    return (
        "WLPI shares work between states, so its count is the same under tree, root and shared; like for like "
        f"({LIKE_FOR_LIKE}) it takes {gap} × the best fixed depth ({depth_name(best, fixed)})."
    )


def interval(estimate: Estimate, digits: int = 2) -> str:
    """Format a number, with its interval where there are enough samples for one.

    >>> interval(Estimate(0.914, 0.87, 0.951, samples=10))
    '0.91 [0.87, 0.95]'
    >>> interval(Estimate(0.914, 0.914, 0.914, samples=1))
    '0.91'
    """
    if not estimate.enough:
        return f"{estimate.value:.{digits}f}"
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def cost_ratio(one: MethodRuns, other: MethodRuns, convention: Convention, confidence: float = 0.95) -> Estimate:
    """Return the queries of one method over those of another, on the seeds of both."""
    seeds = common_seeds(one, other)
    return ratio(one.totals(convention, seeds), other.totals(convention, seeds), confidence)


def by_group(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the records of each group, in the order of figures."""
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.style.place):
        found.setdefault(record.group, []).append(record)
    return found


def by_model(records: Iterable[Record], *names: str) -> dict[tuple[float, ...], list[Record]]:
    """Group records by some numbers of their model, such as size and discount, in ascending order."""
    found: dict[tuple[float, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record.model[name] for name in names), []).append(record)
    return dict(sorted(found.items()))
