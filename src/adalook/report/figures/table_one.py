"""Table 1: the paper's comparison of the algorithms, with what was measured beside each formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adalook.report.data.experiment import ExperimentData
from adalook.report.data.method_runs import by_model
from adalook.report.data.records import Record
from adalook.report.figures.style import INK, NORMAL, PALE, FigureSpec, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("Algorithm", "Iterations over PI's", "chain", "maze", "Queries / iteration / S", "chain", "maze")
EDGES = (0.0, 0.125, 0.285, 0.415, 0.545, 0.745, 0.865)
"""Where the columns begin, as shares of the width."""
MISSING = "–"


@dataclass(frozen=True)
class Row:
    """An algorithm and the paper's two formulas for it."""

    name: str
    group: str
    iterations: str
    cost: str


ROWS = (
    Row("PI", "hpi", "1", "c(1)"),
    Row("h-PI", "hpi", "1 / h", "c(h)"),
    Row("TLPI", "tlpi", "1 / h(κ)", "c(1) + θ c(h(κ))"),
    Row("QLPI", "qlpi", "log γ / log κ", r"O($\Sigma\;\theta_h$ c(h))"),
)


@dataclass(frozen=True)
class Measured:
    """Means over seeds, and what the formulas give for the same runs."""

    iterations: float
    iterations_formula: float
    cost: float
    cost_formula: float


def comparison_table(experiments: Mapping[str, ExperimentData]) -> FigureSpec | None:
    """Draw the table, for the longest chain and the maze at the deepest setting that all algorithms share."""
    records = {name: _hardest(experiments[name]) for name in ("chain", "maze") if name in experiments}
    depths = {name: _shared_depth(found) for name, found in records.items()}
    if not records:
        return None
    figure = new_figure(10.4, 1.75)
    panel = figure.subplots()
    _rule_lines(panel)
    styles = {record.group: record.style for found in records.values() for record in found}
    for number, row in enumerate(ROWS, start=1):
        if row.group in styles:
            style = styles[row.group]
            panel.plot([0.016], [number], marker=style.marker, color=style.colour, markersize=5)
        measured = {name: _measure(row, found, depths[name]) for name, found in records.items()}
        _write(panel, number, row, measured)
    shown = ", ".join(f"{name}: h = {depth}" for name, depth in depths.items())
    return FigureSpec(
        name="table-1",
        number="Table 1",
        title="Algorithms compared: the paper's formulas and what was measured",
        caption=(
            "Measured, and in brackets what the formula gives for the same runs. Iterations are over those of PI; c(h) "
            "is the cost of looking h steps ahead by a full tree, θ the share of states that do, κ the contraction "
            f"that QLPI's budgets induce. On the longest chain and on the maze (mean over seeds) with {shown}; QLPI on "
            "the maze has its smallest budgets. The iteration formulas are worst-case bounds: on the maze every method "
            "needs far fewer, so ratios between methods may differ from theirs."
        ),
        figure=figure,
    )


def _rule_lines(panel: Axes) -> None:
    panel.set_axis_off()
    panel.set_xlim(0.0, 1.0)
    panel.set_ylim(len(ROWS) + 0.55, -0.6)
    panel.axhspan(-0.55, 0.5, color=PALE, zorder=0)
    for x, text in zip(EDGES, COLUMNS, strict=True):
        panel.text(x + 0.008, 0.0, text, va="center", fontsize=NORMAL, weight="bold", color=INK)
    for number in range(1, len(ROWS) + 1):
        panel.axhline(number + 0.5, color=PALE, linewidth=0.8)


def _write(panel: Axes, number: int, row: Row, measured: Mapping[str, Measured | None]) -> None:
    def pair(name: str, digits: str, value: str, formula: str) -> str:
        found = measured.get(name)
        if found is None:
            return MISSING
        return f"{getattr(found, value):{digits}}  ({getattr(found, formula):{digits}})"

    texts = (
        f"     {row.name}",
        row.iterations,
        pair("chain", ".3f", "iterations", "iterations_formula"),
        pair("maze", ".3f", "iterations", "iterations_formula"),
        row.cost,
        pair("chain", ",.1f", "cost", "cost_formula"),
        pair("maze", ",.0f", "cost", "cost_formula"),
    )
    for x, text in zip(EDGES, texts, strict=True):
        panel.text(x + 0.008, number, text, va="center", fontsize=NORMAL, color=INK)


def _hardest(experiment: ExperimentData) -> list[Record]:
    """Return the records of the longest chain; all records of other experiments."""
    if experiment.name != "chain" or not experiment.records:
        return list(experiment.records)
    return list(by_model(experiment.records, "n").values())[-1]


def _shared_depth(records: list[Record]) -> int:
    fixed = {record.lookahead for record in records if record.group == "hpi"}
    return max(fixed & {record.lookahead for record in records if record.group == "tlpi"}, default=1)


def _measure(row: Row, records: list[Record], depth: int) -> Measured | None:
    """Return the measured numbers of a row; None without runs, or without PI to compare with."""
    base = [record.iterations for record in records if record.group == "hpi" and record.lookahead == 1]
    runs = _runs(row, records, depth)
    if not base or not runs:
        return None
    formula = [record.cost_bound / record.num_states for record in runs]
    return Measured(
        iterations=float(np.mean([record.iterations for record in runs]) / np.mean(base)),
        iterations_formula=float(np.mean([_fewer(record) for record in runs])),
        cost=float(np.mean([max(record.improvement["tree"]) / record.num_states for record in runs])),
        cost_formula=float(np.mean(formula)),
    )


def _runs(row: Row, records: list[Record], depth: int) -> list[Record]:
    of_kind = [record for record in records if record.group == row.group]
    if row.name == "PI":
        return [record for record in of_kind if record.lookahead == 1]
    same = [record for record in of_kind if record.lookahead == depth]
    if same or row.group != "qlpi":
        return same
    smallest = min((sum(record.budgets.values()) for record in of_kind), default=0.0)
    return [record for record in of_kind if sum(record.budgets.values()) == smallest]


def _fewer(record: Record) -> float:
    """Return the formula's iterations over those of PI: log γ / log κ, which is 1/h for κ = γ^h."""
    if record.induced_contraction is None or not 0.0 < record.induced_contraction < 1.0:
        return 1.0 / record.lookahead
    return math.log(record.discount) / math.log(record.induced_contraction)
