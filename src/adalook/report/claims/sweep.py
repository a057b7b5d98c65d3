"""Claims about mazes of many sizes and discounts, on whether an adaptive horizon always beats a fixed one.

A cell is a size and a discount. Its few seeds are too few for an interval of their own, so what is tested is the
geometric mean over all cells and seeds, each run over the reference method's on the same maze. The same size and seed
give the same maze whatever the discount, so mazes are what the bootstrap draws, with all their discounts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adalook.report.claims import verdicts
from adalook.report.claims.verdicts import Claim, ConventionVerdict, Experiments, Finding, Verdict
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import (
    FIXED,
    MethodRuns,
    by_model,
    cheapest,
    common_seeds,
    cost_ratio,
    interval,
    largest_tried,
    method_runs,
)
from adalook.report.data.records import Convention
from adalook.report.data.statistics import Estimate, geometric_mean

SizeAndDiscount = tuple[float, ...]
"""A cell of the sweep: mazes of one size and one discount."""
Grid = Mapping[SizeAndDiscount, list[MethodRuns]]
Reference = Callable[[list[MethodRuns], Convention], MethodRuns | None]
"""Picks, among the methods of a cell, the one that the others are compared with."""
TOGETHER = 0.95
"""Confidence of the intervals of all settings together, where one good setting is enough (Bonferroni)."""


def cells(sweep: ExperimentData) -> dict[SizeAndDiscount, list[MethodRuns]]:
    """Return method runs by (size, discount); cells without a fixed depth to compare with are left out."""
    found = {cell: method_runs(records) for cell, records in by_model(sweep.records, "size", "discount").items()}
    return {cell: there for cell, there in found.items() if any(one.group == FIXED for one in there)}


def best_fixed(there: list[MethodRuns], convention: Convention) -> MethodRuns:
    """Return the runs of the cheapest fixed depth of a cell."""
    best = cheapest([one for one in there if one.group == FIXED], convention)
    assert best is not None, "cells() keeps only cells with a fixed depth"
    return best


def adaptive_ratios(sweep: ExperimentData, convention: Convention) -> dict[str, dict[SizeAndDiscount, Estimate]]:
    """Return the queries of each adaptive method in each cell over those of the cell's best fixed depth."""
    ratios: dict[str, dict[SizeAndDiscount, Estimate]] = {}
    for cell, there in cells(sweep).items():
        best = best_fixed(there, convention)
        for one in there:
            if one.group != FIXED:
                ratios.setdefault(one.label, {})[cell] = cost_ratio(one, best, convention)
    return ratios


@dataclass(frozen=True)
class RelativeCost:
    """The cost of one setting over that of a reference method, in each cell and over all cells and seeds."""

    label: str
    by_cell: Mapping[SizeAndDiscount, float]
    pooled: Estimate

    def good_cells(self, good: Callable[[float], bool]) -> set[SizeAndDiscount]:
        return {cell for cell, gap in self.by_cell.items() if good(gap)}


def relative_cost(
    label: str, grid: Grid, reference: Reference, convention: Convention, confidence: float = TOGETHER
) -> RelativeCost:
    """Compare one setting with a reference method; cells without one of the two are left out."""
    by_cell: dict[SizeAndDiscount, float] = {}
    logs: dict[tuple[float, int], list[float]] = {}
    for cell, there in grid.items():
        other, own = reference(there, convention), [one for one in there if one.label == label]
        if other is None or not own:
            continue
        by_cell[cell] = cost_ratio(own[0], other, convention).value
        seeds = common_seeds(own[0], other)
        shares = np.log(own[0].totals(convention, seeds) / other.totals(convention, seeds))
        for seed, share in zip(seeds, shares, strict=True):
            logs.setdefault((cell[0], seed), []).append(float(share))
    each_maze = [math.exp(np.mean(shares)) for shares in logs.values()]
    return RelativeCost(label, by_cell, geometric_mean(each_maze, confidence))


def edge_cells(grid: Grid, convention: Convention) -> list[SizeAndDiscount]:
    """Return the cells whose best fixed depth is the largest tried, so that a larger one may be better still."""
    return [cell for cell, there in grid.items() if largest_tried(best_fixed(there, convention), there)]


def _edge(grid: Grid, convention: Convention) -> str:
    count = len(edge_cells(grid, convention))
    return f"; the best fixed depth is the largest depth tried in {count} of {len(grid)} cells" if count else ""


def _depth_depends(experiments: Experiments) -> list[ConventionVerdict]:
    grid = cells(experiments["sweep"])

    def check(convention: Convention) -> Finding:
        labels = _everywhere(grid, FIXED)
        if len(grid) < 2 or not labels:
            return verdicts.NO_RUNS
        found = [relative_cost(label, grid, best_fixed, convention) for label in labels]
        single = min(found, key=lambda one: one.pooled.value)
        mildest = min(max(one.by_cell.values()) for one in found)
        depths = sorted({best_fixed(there, convention).lookahead for there in grid.values()})
        numbers = (
            f"best depth from {depths[0]} to {depths[-1]} over {len(grid)} cells; the best single choice, "
            f"{single.label}, costs {interval(single.pooled)} times the best over all; every single choice costs "
            f"{mildest:.2f} times the best or more in some cell{_edge(grid, convention)}"
        )
        differ, never_close = len(depths) > 1, mildest > verdicts.SIMILAR
        verdict = verdicts.grade_intervals(
            [single.pooled],
            lambda gap: gap.low > 1.0,
            rate=lambda passed: verdicts.grade([differ, never_close and all(passed)]),
        )
        return verdict, numbers

    return verdicts.under_each(check)


def _everywhere(grid: Grid, *groups: str) -> list[str]:
    """Return the labels of some groups that were run in every cell, in their order."""
    by_cell = [[one.label for one in there if one.group in groups] for there in grid.values()]
    return [label for label in by_cell[0] if all(label in there for there in by_cell)] if by_cell else []


def _cheapest_but_wlpi(there: list[MethodRuns], convention: Convention) -> MethodRuns | None:
    return cheapest([one for one in there if one.group != "wlpi"], convention)


def _compared_with(
    reference: Reference, good: Callable[[float], bool], fits: Callable[[MethodRuns], bool]
) -> Callable[[Experiments], list[ConventionVerdict]]:
    """Return a check for a setting that is good against the reference, over all cells and in every one."""

    def check(experiments: Experiments) -> list[ConventionVerdict]:
        grid = cells(experiments["sweep"])
        labels = list(dict.fromkeys(one.label for there in grid.values() for one in there if fits(one)))
        confidence = 1.0 - (1.0 - TOGETHER) / max(1, len(labels))

        def under(convention: Convention) -> Finding:
            found = [relative_cost(label, grid, reference, convention, confidence) for label in labels]
            if not found:
                return verdicts.NO_RUNS
            best = min(found, key=lambda one: (-_rank(one, grid, good), one.pooled.value))
            score = f"{best.label} in {len(best.good_cells(good))} of {len(grid)} cells"
            verdict = verdicts.grade_intervals(
                [one.pooled for one in found],
                lambda gap: good(gap.high),
                rate=lambda passed: verdicts.Grade(_verdict(found, passed, grid, good), score),
            )
            return verdict, _numbers(found, best, grid, good) + _edge(grid, convention)

        return verdicts.under_each(under)

    return check


def _rank(one: RelativeCost, grid: Grid, good: Callable[[float], bool]) -> float:
    """Return a setting's share of good cells, less 1 if it is not good over all cells together."""
    return len(one.good_cells(good)) / len(grid) - (0.0 if good(one.pooled.high) else 1.0)


def _verdict(
    found: Sequence[RelativeCost], passed: Sequence[bool], grid: Grid, good: Callable[[float], bool]
) -> Verdict:
    """Return 'holds' if one setting is good over all and in every cell, 'in part' if in half of them."""
    shares = [len(one.good_cells(good)) / len(grid) for one, over_all in zip(found, passed, strict=True) if over_all]
    best = max(shares, default=0.0)
    if best == 1.0:
        return Verdict.HOLDS
    return Verdict.IN_PART if best >= verdicts.IN_PART_SHARE else Verdict.FAILS


def _numbers(found: Sequence[RelativeCost], best: RelativeCost, grid: Grid, good: Callable[[float], bool]) -> str:
    texts = [
        f"{one.label} {interval(one.pooled)} over all, good in {len(one.good_cells(good))} of {len(one.by_cell)} cells "
        f"({min(one.by_cell.values()):.2f} to {max(one.by_cell.values()):.2f})"
        for one in found
    ]
    short = sorted(set(grid) - best.good_cells(good))
    if short:
        texts.append(f"{best.label} falls short at " + ", ".join(f"size {size:g} γ {g:g}" for size, g in short))
    if len(found) > 1:
        some = set().union(*(one.good_cells(good) for one in found))
        texts.append(f"picked anew for each cell in hindsight, some setting is good in {len(some)} of {len(grid)}")
    return "; ".join(texts)


def _is_adaptive(method: MethodRuns) -> bool:
    return method.group != FIXED


def _is_wlpi(method: MethodRuns) -> bool:
    return method.group == "wlpi"


ONE_SETTING = (
    "One setting for all cells: the geometric mean of its queries over those of each cell's best fixed depth, over all "
    "cells and seeds, has its whole interval {limit}, and its mean in every cell is {limit} (in part: in at least half "
    "of the cells). Intervals are at 95% for all settings together. Both sides are picked in hindsight: the depth in "
    "each cell, the setting once."
)

CLAIMS = (
    Claim(
        "depth-depends",
        "Maze, summary: the burden of finding the best fixed horizon for a given environment",
        "Which fixed depth is best depends on the environment.",
        "Over all sizes and discounts the best depth differs, and every single depth costs more than 1.10 times the "
        "best in some cell and, over all, significantly more (in part: only one of the two). Best depths are picked in "
        "hindsight.",
        ("sweep",),
        _depth_depends,
    ),
    Claim(
        "adaptive-matches",
        "Discussion: as well as the best fixed horizon in hindsight",
        "An adaptive method matches the best fixed depth of every size and discount.",
        ONE_SETTING.format(limit="at or below 1.10"),
        ("sweep",),
        _compared_with(best_fixed, lambda gap: gap <= verdicts.SIMILAR, _is_adaptive),
    ),
    Claim(
        "adaptive-always-better",
        "Discussion: the open question",
        "The best fixed depth can always be outperformed by adaptive lookahead.",
        ONE_SETTING.format(limit="below 1"),
        ("sweep",),
        _compared_with(best_fixed, lambda gap: gap < 1.0, _is_adaptive),
    ),
    Claim(
        "wlpi-lowest-elsewhere",
        "Discussion (can one do without prior knowledge?); this project",
        "On mazes of other sizes and discounts, too, WLPI needs no more queries than any other method and setting.",
        "The geometric mean of WLPI's queries over those of each cell's cheapest other, picked in hindsight, has its "
        "whole interval at or below 1, and so is the mean in every cell (in part: in at least half of the cells). "
        "WLPI's count is the same under tree, root and shared; shared is the like-for-like comparison.",
        ("sweep",),
        _compared_with(_cheapest_but_wlpi, lambda gap: gap <= 1.0, _is_wlpi),
    ),
)
