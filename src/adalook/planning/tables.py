"""Answers as tables: pandas frames, rows of text for a terminal, and a grid of arrows for models on a grid."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import IntArray
from adalook._extras import import_extra
from adalook.mdp.model import MDP
from adalook.storage.files import atomic_write

if TYPE_CHECKING:
    import pandas

    from adalook.planning.objectives.finite_horizon import FiniteHorizonSolution
    from adalook.planning.solution import Solution

SMALL = 24
"""Models of at most this many states are printed whole …"""
ENDS = 5
"""… of larger ones this many states at either end."""
LARGEST_PICTURE = (40, 100)
"""Rows and columns of the largest grid that is printed as a picture."""
ARROWS = {(-1, 0): "↑", (1, 0): "↓", (0, -1): "←", (0, 1): "→", (-1, -1): "↖", (-1, 1): "↗", (1, -1): "↙", (1, 1): "↘"}
WALL, GOAL, TRAP, NO_STATE, STAYS = "█", "★", "✗", " ", "·"


def frame(mdp: MDP, columns: Mapping[str, Any]) -> pandas.DataFrame:
    """Return a pandas table with a row per state; the index holds the states' names, or numbers."""
    pandas = import_extra("pandas", extra="frames", purpose="to_frame()")
    index = pandas.Index(mdp.state_names or range(mdp.num_states), name="state")
    return pandas.DataFrame(dict(columns), index=index)


def solution_frame(solution: Solution, with_action_values: bool) -> pandas.DataFrame:
    """Return the table of `Solution.to_frame`."""
    mdp = solution.mdp
    columns: dict[str, Any] = {
        "action": named_actions(mdp, solution.policy),
        "value": solution.values,
        "lower": solution.lower,
        "upper": solution.upper,
    }
    if with_action_values:
        columns |= {f"q({mdp.action_label(a)})": solution.action_values[:, a] for a in range(mdp.num_actions)}
    return frame(mdp, columns)


def horizon_frame(solution: FiniteHorizonSolution) -> pandas.DataFrame:
    """Return the table of `FiniteHorizonSolution.to_frame`, indexed by step and state."""
    pandas = import_extra("pandas", extra="frames", purpose="to_frame()")
    mdp, steps = solution.mdp, solution.horizon
    index = pandas.MultiIndex.from_product(
        [range(steps), mdp.state_names or range(mdp.num_states)], names=["step", "state"]
    )
    columns = {
        "action": named_actions(mdp, solution.policy.ravel()),
        "value": solution.values[:-1].ravel(),
        "lower": solution.lower[:-1].ravel(),
        "upper": solution.upper[:-1].ravel(),
    }
    return pandas.DataFrame(columns, index=index)


def named_actions(mdp: MDP, policy: IntArray) -> np.ndarray:
    """Return the names of a policy's actions or, without names, their numbers."""
    return np.array(mdp.action_names, dtype=object)[policy] if mdp.action_names else policy


def value_text(value: float, values: np.ndarray) -> str:
    """Return a value in six digits, or in as many as it takes to tell `values` apart where they lie close together.

    >>> value_text(1 / 3, np.array([0.0, 1.0])), value_text(12555339.3527, np.array([12555339.3527, 12555343.759]))
    ('0.333333', '12555339.353')
    """
    spread, largest = float(np.ptp(values)), float(np.abs(values).max())
    digits = 6
    if 0.0 < spread < largest < math.inf:
        digits = min(15, max(digits, math.ceil(math.log10(largest / spread)) + 4))
    return f"{value:.{digits}g}"


def policy_rows(mdp: MDP, policy: IntArray, values: np.ndarray) -> Iterator[tuple[str, str, str]]:
    """Yield (state, action, value) as text: every state of a small model, both ends of a large one with … between."""
    n = mdp.num_states
    shown = range(n) if n <= SMALL else [*range(ENDS), None, *range(n - ENDS, n)]
    for state in shown:
        if state is None:
            yield "…", f"({n - 2 * ENDS:,} more)", "…"
        else:
            name, action = printable(mdp.state_label(state)), printable(mdp.action_label(int(policy[state])))
            yield name, action, value_text(values[state], values)


def printable(name: str) -> str:
    r"""Return a name for a line of a table: what would break the line is written as Python does.

    >>> printable("two\nlines")
    'two\\nlines'
    """
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def policy_text(mdp: MDP, policy: IntArray, values: np.ndarray) -> str:
    """Return a policy as text: a picture of arrows on a grid, otherwise a table of states, actions and values.

    >>> import adalook as al
    >>> mdp = al.MDP([[0.0, 1.0], [2.0, 0.0]], [[0, 1], [1, 0]], 0.5, state_names=["low", "high"])
    >>> print(policy_text(mdp, np.array([1, 0]), np.array([3.0, 4.0])))
    state  action  value
    low    1       3
    high   0       4
    """
    drawn = picture(mdp, policy)
    if drawn:
        return drawn
    return _aligned([("state", "action", "value"), *policy_rows(mdp, policy, values)])


def _aligned(rows: list[tuple[str, ...]]) -> str:
    """Return rows as lines with columns of one width each, but for the last."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def horizon_text(mdp: MDP, policy: IntArray) -> str:
    """Return a policy (T, S) as text: a line per state, a column per step, both cut in the middle where they are many.

    >>> import adalook as al
    >>> mdp = al.MDP([[0.0, 1.0], [2.0, 0.0]], [[0, 1], [1, 0]], 0.5, action_names=["stay", "move"])
    >>> print(horizon_text(mdp, np.array([[1, 0], [1, 1]])))
    state  step 0  step 1
    0      move    move
    1      stay    move
    """

    def ends(count: int, most: int) -> list[int | None]:
        return [*range(count)] if count <= most else [*range(ENDS), None, *range(count - ENDS, count)]

    steps, states = ends(len(policy), 2 * ENDS), ends(mdp.num_states, SMALL)
    rows = [("state", *("…" if k is None else f"step {k}" for k in steps))]
    for s in states:
        cells = ("…" if s is None or k is None else printable(mdp.action_label(int(policy[k, s]))) for k in steps)
        rows.append(("…" if s is None else printable(mdp.state_label(s)), *cells))
    return _aligned(rows)


def policy_html(solution: Solution) -> str:
    """Return a solution as HTML for notebooks: a headline and the policy."""
    mdp = solution.mdp
    loss = f"policy_loss ≤ {solution.policy_loss:.2g}{'' if solution.certified else ', tolerance not certified'}"
    told = ", ".join(escape(text) for text in (solution.status.value, solution.message, loss))
    head = f"<p><b>{escape(solution.method)}</b>: {told}</p>"
    drawn = picture(mdp, solution.policy)
    if drawn:
        return f'{head}<pre style="line-height:1.1">{escape(drawn)}</pre>'
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in policy_rows(mdp, solution.policy, solution.values)
    )
    return f"{head}<table><tr><th>state</th><th>action</th><th>value</th></tr>{lines}</table>"


def write_csv(solution: Solution, path: Path) -> None:
    """Write a row per state: state, action, value, lower, upper; names where there are any, numbers in full."""
    with _csv_rows(path, "state", *_COLUMNS) as rows:
        rows.writerows(_answers(solution.mdp, solution.policy, solution.values, solution.lower, solution.upper))


def write_horizon_csv(solution: FiniteHorizonSolution, path: Path) -> None:
    """Write a row per step and state: step, state, action, value, lower, upper."""
    lower, upper = solution.lower, solution.upper
    with _csv_rows(path, "step", "state", *_COLUMNS) as rows:
        for k, policy in enumerate(solution.policy):
            answers = _answers(solution.mdp, policy, solution.values[k], lower[k], upper[k])
            rows.writerows([k, *answer] for answer in answers)


_COLUMNS = ("action", "value", "lower", "upper")


@contextmanager
def _csv_rows(path: Path, *head: str) -> Iterator[Any]:
    """Yield a writer of rows into a file with this head, which is there once all of it is written."""
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        rows = csv.writer(text)
        rows.writerow(head)
        yield rows
        text.detach()


def _answers(mdp: MDP, policy: IntArray, *columns: np.ndarray) -> Iterator[list[str]]:
    """Yield a row per state: its name, that of its action, and the numbers in full."""
    for state, (action, *numbers) in enumerate(zip(*(column.tolist() for column in (policy, *columns)), strict=True)):
        yield [mdp.state_label(state), mdp.action_label(action), *map(repr, numbers)]


def picture(mdp: MDP, policy: IntArray) -> str:
    """Return a policy on a grid as lines of arrows; empty if the model has no grid, or one too large to print.

    >>> import adalook as al
    >>> mdp = al.zoo.gridworld(3, 4)
    >>> print(picture(mdp, al.solve(mdp).policy))
    ↓ ↓ ✗ ✗
    ↓ ↓ ↓ ↓
    → → → ★
    """
    layout = mdp.layout
    if layout is None or not layout.moves:
        return ""
    if layout.shape[0] > LARGEST_PICTURE[0] or layout.shape[1] > LARGEST_PICTURE[1]:
        return ""
    marks = np.where(layout.walls, WALL, NO_STATE).astype("U1")
    for (row, column), action in zip(layout.cells.tolist(), policy.tolist(), strict=True):
        if row >= 0:
            marks[row, column] = ARROWS.get(tuple(layout.moves[action]), STAYS)
    for cells, mark in ((layout.goals, GOAL), (layout.traps, TRAP)):
        for row, column in cells:
            marks[row, column] = mark
    return "\n".join(" ".join(line).rstrip() for line in marks.tolist())
