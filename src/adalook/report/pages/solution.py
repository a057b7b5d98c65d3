"""The page of one solution, `report.html`, with an explorer if its model can be drawn.

A page holds a bounded number of passes: where it shows fewer than there were, it says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from adalook.errors import FileError
from adalook.report.data.solution import MAKE_ONE, SavedSolution, SavedTrace, load_solution, load_trace
from adalook.report.pages.document import document, explorer_section, table
from adalook.report.pages.explorer import ExplorerData, GridModel, Meaning, Run, run_explorer
from adalook.storage.files import atomic_write

MOST_PASSES = 1000
"""So many passes go into the charts of a page."""
MOST_ROWS = 60
"""So many go into its table."""

MOST_STATES = 200
"""So many states go into the table of a policy."""

NEAR_OPTIMUM = 1e-3
"""Values stand for V* if they are certified to be nearer to it than this share of their own range …"""
ROUNDING = 1e-9
"""… or, where all are much the same, than this share of the largest."""

CHARTS = {
    "loss": "Certified bound on the policy’s loss",
    "distance": "Largest distance to the returned values",
    "queries": "Queries to the model so far",
    "changed": "States whose action changed",
    "depth": "Deepest lookahead",
}


def write_solution_page(directory: str | Path) -> Path:
    """Turn the solution saved in a directory into `report.html` beside it.

    Returns:
        the page.
    """
    place = Path(directory)
    solution = load_solution(place)
    trace = load_trace(place, solution)
    path = place / "report.html"
    try:
        page = solution_page(solution, trace)
    except (KeyError, TypeError, IndexError) as error:
        raise FileError(f"{place} holds a damaged solution", got=repr(error), remedy=MAKE_ONE) from error
    with atomic_write(path) as file:
        file.write(page.encode())
    return path


def solution_page(solution: SavedSolution, trace: SavedTrace | None) -> str:
    """Return the page as HTML."""
    about = solution.about
    shown = _shown_passes(len(about["trace"]), () if trace is None else trace.frames.tolist())
    passes = _Passes(about["trace"], shown)
    explorer, reason = _explorer(solution, trace, passes)
    name = about["model"]["source"] or "a model"
    body = (
        f'<header class="top"><h1>{escape(name)}</h1>\n<p class="lead">{escape(_headline(about))}</p></header>\n<main>'
        + (explorer_section("Explorer", _explorer_intro(explorer.meaning), explorer) if explorer else _policy(solution))
        + f"<section><h2>Result</h2>{table(_summary(about), 'summary')}</section>"
        + _convergence(passes, reason)
        + "</main>\n"
        f"<footer>Made by adalook {escape(about['adalook_version'])}. One file: it needs no network.</footer>"
    )
    data = {"convergence-data": json.dumps(passes.data(), allow_nan=False)}
    if explorer:
        data["explorer-data"] = explorer.text
    return document(f"adalook: {name}", body, data)


EVALUATED, JUST_VALUES = "value of the policy", "values"


def _explorer_intro(meaning: Meaning) -> str:
    if meaning.values == EVALUATED:
        shown = "the value of each cell under the policy so far, how far that is from"
    else:
        shown = "the values so far, how far they are from"
    target = "the solution’s values, which stand for V*," if meaning.optimal else f"{meaning.target}, which are not V*,"
    return f"The solve, iteration by iteration: {shown} {target} and how deep the method looked."


class _Passes:
    """The passes that a page shows; queries of those between are added to the next one that is shown."""

    def __init__(self, trace: Sequence[dict[str, Any]], shown: Sequence[int]) -> None:
        self.trace, self.shown = trace, shown

    def column(self, name: str) -> list[Any]:
        return [self.trace[number][name] for number in self.shown]

    def queries(self) -> dict[str, dict[str, list[int] | None]]:
        """Return the queries by convention; None where they were not counted."""
        kinds = {"improvement": ("tree", "root", "shared"), "evaluation": ("exact", "simulated")}
        return {kind: {name: self._counts(kind, name) for name in names} for kind, names in kinds.items()}

    def _counts(self, kind: str, name: str) -> list[int] | None:
        counts = [entry["queries"][kind][name] for entry in self.trace]
        if any(count is None for count in counts):
            return None
        ends = [number + 1 for number in self.shown]
        return [sum(counts[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]

    def data(self) -> dict[str, Any]:
        """Return the data that convergence.js draws."""
        return {
            "numbers": list(self.shown),
            "policy_loss": self.column("policy_loss"),
            "distance": self.column("distance"),
            "changed": self.column("changed"),
            "max_depth": self.column("max_depth"),
            "queries": self.queries(),
            "prior": None,
        }


def _shown_passes(passes: int, frames: Sequence[int]) -> list[int]:
    """Return the passes to show: all if they are few, else some of them and all that have a frame."""
    return sorted({*_spread(passes, MOST_PASSES), *frames})


def _spread(passes: int, most: int) -> list[int]:
    """Return at most `most` passes, evenly spread from the first to the last."""
    return [int(number) for number in np.linspace(0, passes - 1, min(passes, most)).round()]


def _explorer(solution: SavedSolution, trace: SavedTrace | None, passes: _Passes) -> tuple[ExplorerData | None, str]:
    """Return the explorer, or None and the reason why there is none."""
    layout, states = solution.layout, len(solution.values)
    if layout is None:
        return None, "This model has no layout, so there is no maze to draw: give it one with al.MDP(…, layout=…)."
    if trace is None:
        return (
            None,
            f"With {states:,} states in {_passes(len(passes.trace))} this is too large for the explorer.",
        )
    fewer = len(trace.frames) < len(passes.trace)
    omitted = f"To keep the page small it shows {len(trace.frames):,} of {_passes(len(passes.trace))}." if fewer else ""
    run, warning = _run(solution.about, trace, passes), _warning(solution)
    if not np.array_equal(solution.policy, trace.policy[-1]):
        run = _with_returned(run, solution, len(passes.trace))
    meaning = _meaning(solution.about, evaluated=not run.returned, optimal=not warning)
    model = GridModel("", layout, solution.values, layout.action_names)
    return run_explorer(model, run, meaning, omitted=omitted, warning=warning), ""


def _run(about: dict[str, Any], trace: SavedTrace, passes: _Passes) -> Run:
    place = {number: index for index, number in enumerate(passes.shown)}
    return Run(
        model="",
        method="",
        group="",
        label=about["method"],
        status=about["status"],
        numbers=passes.shown,
        distance=passes.column("distance"),
        changed=passes.column("changed"),
        max_depth=passes.column("max_depth"),
        queries=passes.queries(),
        prior=None,
        frames=[place[number] for number in trace.frames.tolist()],
        values=trace.values,
        policy=trace.policy,
        depth=trace.depth,
    )


def _with_returned(run: Run, solution: SavedSolution, number: int) -> Run:
    """Append the returned policy as a last frame, where no pass started from it."""

    def free(counts: dict[str, list[int] | None]) -> dict[str, list[int] | None]:
        return {name: None if steps is None else [*steps, 0] for name, steps in counts.items()}

    return replace(
        run,
        numbers=[*run.numbers, number],
        distance=[*run.distance, None],
        changed=[*run.changed, None],
        max_depth=[*run.max_depth, None],
        queries={kind: free(counts) for kind, counts in run.queries.items()},
        frames=[*run.frames, len(run.numbers)],
        values=np.vstack([run.values, solution.values]),
        policy=np.vstack([run.policy, solution.policy]),
        depth=np.vstack([run.depth, np.zeros_like(run.depth[0])]),
        returned=True,
    )


def _meaning(about: dict[str, Any], *, evaluated: bool, optimal: bool) -> Meaning:
    """Return the explorer's labels; values from backups and sweeps are no policy's values.

    Args:
        about: the solution.
        evaluated: whether every policy that is shown was evaluated.
        optimal: whether the solution's values stand for V*.
    """
    evaluated = evaluated and all(entry["exact"] for entry in about["trace"])
    values = EVALUATED if evaluated else JUST_VALUES
    if optimal:
        return Meaning(values)
    return Meaning(values, target="the returned values", distance="distance to returned", optimal=False)


def _warning(solution: SavedSolution) -> str:
    """Return why the solution's values must not be taken for V*; empty if they may."""
    error = float(np.maximum(solution.upper - solution.values, solution.values - solution.lower).max())
    status = solution.about["status"]
    near = max(NEAR_OPTIMUM * np.ptp(solution.values), ROUNDING * np.abs(solution.values).max())
    ended = status in ("CONVERGED", "ROUNDING_LIMIT")
    if ended and error <= near:
        return ""
    why = "" if ended else f"The solve stopped before it was done ({solution.about['message']}). "
    bound = f"only certified to be within {error:.3g} of it" if np.isfinite(error) else "not certified at all"
    return f"{why}V* is not known: the returned values are {bound}. Distances here are to these values, not to V*."


def _headline(about: dict[str, Any]) -> str:
    status = about["status"].lower().replace("_", " ")
    doubt = "" if about["certified"] else f"; the tolerance of {about['tolerance']:g} is not certified"
    return f"{about['method']}: {status}, {about['message']}{doubt}."


def _summary(about: dict[str, Any]) -> list[tuple[str, str]]:
    model, queries, prior = about["model"], about["queries"], about["prior"]
    improvement = ", ".join(f"{n:,} {name}" for name, n in queries["improvement"].items() if n is not None)
    evaluation = ", ".join(f"{n:,} {name}" for name, n in queries["evaluation"].items())
    low_high = " to ".join("not finite" if value is None else f"{value:.6g}" for value in about["value_range"])
    loss = about["policy_loss"]
    rows = [
        ("model", f"{model['states']:,} states, {model['actions']} actions, discount {model['discount']:.15g}"),
        ("method", about["method"]),
        ("prior", f"{prior['kind']}, for {prior['queries']:,} queries that are not in the charts" if prior else ""),
        ("iterations", f"{about['iterations']:,} that changed the policy, in {_passes(about['passes'])}"),
        ("certificate", "no finite bound" if loss is None else f"no state’s value is more than {loss:.3g} below V*"),
        ("values", low_high),
        ("queries to improve", improvement + ("; " + queries["note"] if "note" in queries else "")),
        ("queries to evaluate", evaluation),
        ("evaluation", ", ".join(dict.fromkeys(entry["evaluation"] for entry in about["trace"]))),
        ("time", f"{about['seconds']:.3g} s, of which {about['certificate_seconds']:.2g} s for the certificate"),
    ]
    return [(name, text) for name, text in rows if text]


def _convergence(passes: _Passes, reason: str) -> str:
    known = any(distance is not None for distance in passes.column("distance"))
    charts = "".join(
        f'<figure><figcaption>{title}</figcaption><svg role="img" data-chart="{name}"></svg></figure>'
        for name, title in CHARTS.items()
        if name != "distance" or known
    )
    fewer = len(passes.shown) < len(passes.trace)
    notes = [reason, f"The charts show {len(passes.shown):,} of {_passes(len(passes.trace))}." if fewer else ""]
    note = "".join(f'<p class="note">{escape(text)}</p>' for text in notes if text)
    return (
        f'<section id="convergence"><h2>Convergence</h2>{note}\n<div class="convergence">{charts}</div>'
        f"{_pass_table(passes)}</section>"
    )


def _policy(solution: SavedSolution) -> str:
    """Return the policy as a table: all of a small model, both ends of a large one."""
    count = len(solution.values)
    shown: list[int | None] = list(range(count))
    if count > MOST_STATES:
        shown = [*range(MOST_STATES // 2), None, *range(count - MOST_STATES // 2, count)]
    lines = "".join(
        f'<tr><td colspan="5">… {count - MOST_STATES:,} more …</td></tr>'
        if state is None
        else f"<tr><td>{escape(solution.state_label(state))}</td>"
        f"<td>{escape(solution.action_label(int(solution.policy[state])))}</td>"
        + "".join(
            f'<td class="number">{number[state]:.8g}</td>'
            for number in (solution.values, solution.lower, solution.upper)
        )
        + "</tr>"
        for state in shown
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("state", "action"))
    heads += "".join(f'<th scope="col" class="number">{name}</th>' for name in ("value", "lower", "upper"))
    return (
        '<section id="policy"><h2>Policy</h2><div class="scroll"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div></section>"
    )


def _pass_table(passes: _Passes) -> str:
    number = len(passes.trace)
    rows = _Passes(passes.trace, _spread(number, MOST_ROWS))
    columns = {
        "pass": [f"{at:,}" for at in rows.shown],
        "certified loss": [_short(loss) for loss in rows.column("policy_loss")],
        "distance": [_short(distance) for distance in rows.column("distance")],
        "changed": [f"{count:,}" for count in rows.column("changed")],
        "deepest": [f"{depth:,}" for depth in rows.column("max_depth")],
        "mean depth": [f"{depth:.4g}" for depth in rows.column("mean_depth")],
        "evaluation": rows.column("evaluation"),
    }
    heads = "".join(f'<th scope="col" class="number">{name}</th>' for name in columns)
    lines = "".join(
        "<tr>" + "".join(f'<td class="number">{escape(str(text))}</td>' for text in line) + "</tr>"
        for line in zip(*columns.values(), strict=True)
    )
    title = "Pass by pass" if len(rows.shown) == number else f"Pass by pass, {len(rows.shown)} of {number:,}"
    return (
        f'<details><summary>{title}</summary><div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div></details>"
    )


def _passes(count: int) -> str:
    return f"{count:,} pass" if count == 1 else f"{count:,} passes"


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"
