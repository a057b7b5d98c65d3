"""The paper's open question on mazes of many sizes and discounts: can an adaptive horizon always beat a fixed one?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from adalook.report.contenders import FIXED, Contender, by_model, cheapest, contenders, cost_ratio
from adalook.report.experiment import Experiment
from adalook.report.judgement import (
    NO_RUNS,
    SIMILAR,
    Experiments,
    Finding,
    Grade,
    Judgement,
    Question,
    Verdict,
    grade,
    under_each,
)
from adalook.report.records import Convention
from adalook.report.statistics import Estimate

Cell = tuple[float, ...]


def cells(sweep: Experiment) -> dict[Cell, list[Contender]]:
    """Contenders by (size, discount); cells without a fixed depth to compare with are left out."""
    found = {cell: contenders(records) for cell, records in by_model(sweep.records, "size", "discount").items()}
    return {cell: there for cell, there in found.items() if any(one.group == FIXED for one in there)}


def best_fixed(there: list[Contender], convention: Convention) -> Contender:
    best = cheapest([one for one in there if one.group == FIXED], convention)
    assert best is not None, "cells() keeps only cells with a fixed depth"
    return best


def adaptive_ratios(sweep: Experiment, convention: Convention) -> dict[str, dict[Cell, Estimate]]:
    """Queries over those of the cell's best fixed depth, for each adaptive method in each cell."""
    ratios: dict[str, dict[Cell, Estimate]] = {}
    for cell, there in cells(sweep).items():
        best = best_fixed(there, convention)
        for one in there:
            if one.group != FIXED:
                ratios.setdefault(one.label, {})[cell] = cost_ratio(one, best, convention)
    return ratios


def _depth_depends(experiments: Experiments) -> list[Judgement]:
    grid = cells(experiments["sweep"])

    def judge(convention: Convention) -> Finding:
        if len(grid) < 2:
            return NO_RUNS
        best = {cell: best_fixed(there, convention) for cell, there in grid.items()}
        worst: dict[str, float] = {}
        for cell, there in grid.items():
            for one in (contender for contender in there if contender.group == FIXED):
                gap = cost_ratio(one, best[cell], convention).value
                worst[one.label] = max(worst.get(one.label, 1.0), gap)
        everywhere = {label: gap for label, gap in worst.items() if all(_has(there, label) for there in grid.values())}
        if not everywhere:
            return NO_RUNS
        label, gap = min(everywhere.items(), key=lambda item: item[1])
        depths = sorted({contender.lookahead for contender in best.values()})
        figures = (
            f"best depth from {depths[0]} to {depths[-1]} over {len(grid)} cells; the best single choice, {label}, "
            f"costs up to {gap:.2f} times the best"
        )
        return grade([len(depths) > 1, gap > SIMILAR]), figures

    return under_each(judge)


def _has(there: list[Contender], label: str) -> bool:
    return any(contender.label == label for contender in there)


Passes = Callable[[Estimate], bool]


def _adaptive(passes: Passes) -> Callable[[Experiments], list[Judgement]]:
    """One setting in all cells: holds; in every cell some setting: in part; else it does not hold."""

    def judge(experiments: Experiments) -> list[Judgement]:
        sweep = experiments["sweep"]

        def under(convention: Convention) -> Finding:
            ratios = adaptive_ratios(sweep, convention)
            if not ratios:
                return NO_RUNS
            counts = {label: sum(map(passes, found.values())) for label, found in ratios.items()}
            texts = [f"{label} in {counts[label]} of {len(found)} ({_span(found)})" for label, found in ratios.items()]
            best = max(counts, key=lambda label: (counts[label] / len(ratios[label]), -_worst(ratios[label])))
            score = f"{best} in {counts[best]} of {len(ratios[best])} cells"
            short = [cell for cell, gap in ratios[best].items() if not passes(gap)]
            where = ", ".join(f"size {size:g} γ {discount:g}" for size, discount in short)
            texts += [f"{best} falls short at {where}"] if short else []
            return Grade(_verdict(ratios, passes), score), "; ".join(texts)

        return under_each(under)

    return judge


def _verdict(ratios: Mapping[str, Mapping[Cell, Estimate]], passes: Passes) -> Verdict:
    every = set().union(*ratios.values())
    good = {label: {cell for cell, gap in found.items() if passes(gap)} for label, found in ratios.items()}
    if any(there == every for there in good.values()):
        return Verdict.HOLDS
    return Verdict.IN_PART if set().union(*good.values()) == every else Verdict.FAILS


def _worst(found: Mapping[Cell, Estimate]) -> float:
    return max(gap.value for gap in found.values())


def _span(found: Mapping[Cell, Estimate]) -> str:
    numbers = [gap.value for gap in found.values()]
    return f"{min(numbers):.2f} to {max(numbers):.2f}"


QUESTIONS = (
    Question(
        "depth-depends",
        "Maze, summary: the burden of finding the best fixed horizon for a given environment",
        "Which fixed depth is best depends on the environment.",
        "Over all sizes and discounts the best depth differs, and no single depth stays within 10% of the best "
        "(in part: only one of the two).",
        ("sweep",),
        _depth_depends,
    ),
    Question(
        "adaptive-matches",
        "Discussion: as well as the best fixed horizon in hindsight",
        "An adaptive method matches the best fixed depth of every size and discount.",
        "One setting's mean queries are at most 1.10 times those of the best fixed depth in every cell "
        "(in part: in every cell some setting's are).",
        ("sweep",),
        _adaptive(lambda gap: gap.value <= SIMILAR),
    ),
    Question(
        "adaptive-always-better",
        "Discussion: the open question",
        "The best fixed depth can always be outperformed by adaptive lookahead.",
        "One setting's mean queries are below those of the best fixed depth in every cell (in part: in every cell some "
        "setting's are).",
        ("sweep",),
        _adaptive(lambda gap: gap.value < 1.0),
    ),
)
