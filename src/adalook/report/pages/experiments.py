"""The report of the planning experiments: `index.html`, figures beside it, and all claims as Markdown.

Learning experiments have pages of their own, see `learning`; their claims are in this report's table, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from adalook.errors import FileError
from adalook.report.claims.learning import LEARNING
from adalook.report.claims.table import EXPERIMENTS, check_claims, claims_markdown
from adalook.report.claims.verdicts import RULE, CheckedClaim, ConventionVerdict, Verdict
from adalook.report.data.experiment import ExperimentData, load_experiment
from adalook.report.data.learning import LearningData, is_learning_results, load_learning
from adalook.report.data.method_runs import (
    MethodRuns,
    cheapest,
    cost_ratio,
    depth_name,
    interval,
    method_runs,
    wlpi_like_for_like,
)
from adalook.report.data.records import COUNTING, HEADLINE
from adalook.report.figures.planning import draw_figures
from adalook.report.figures.style import SavedFigure, pretty
from adalook.report.pages.document import document, explorer_section, figure_html, figure_list, table
from adalook.report.pages.explorer import experiment_explorer
from adalook.storage.files import atomic_write, make_directory

DEFAULT_RESULTS = tuple(Path("results") / name for name in ("chain", "maze", "sweep", *LEARNING))
RUN_FIRST = "run adalook reproduce maze first"
TITLE = "Looking ahead only as far as each state needs"
VERDICT_STYLE = {
    Verdict.HOLDS: "holds",
    Verdict.IN_PART: "part",
    Verdict.FAILS: "not",
    Verdict.NOT_TESTED: "unknown",
}


def write_report(directories: Sequence[str | Path], out: str | Path) -> list[Path]:
    """Read results folders (none: those of `results/` that are there) and write the report.

    Returns:
        the files written, the page first.
    """
    experiments, trained = _load(directories)
    place = Path(out)
    make_directory(place)
    figures = draw_figures(experiments, place / "figures")
    claims = check_claims(experiments, trained)
    page, markdown = place / "index.html", place / "claims.md"
    for path, text in ((page, report_page(experiments, figures, claims)), (markdown, claims_markdown(claims))):
        with atomic_write(path) as file:
            file.write(text.encode())
    return [page, markdown, *(path for figure in figures for path in (figure.svg, figure.png))]


def _load(directories: Sequence[str | Path]) -> tuple[dict[str, ExperimentData], dict[str, LearningData]]:
    """Return the experiments on planning and those on learning, by name."""
    named = [Path(directory) for directory in directories]
    found = named or [place for place in DEFAULT_RESULTS if (place / "experiment.json").exists()]
    experiments: dict[str, ExperimentData] = {}
    trained: dict[str, LearningData] = {}
    for place in found:
        experiment = load_learning(place) if is_learning_results(place) else load_experiment(place)
        if experiment.name in {*experiments, *trained}:
            raise FileError(f"{place} holds the same experiment as another directory", got=repr(experiment.name))
        if isinstance(experiment, LearningData):
            trained[experiment.name] = experiment
        else:
            experiments[experiment.name] = experiment
    if not experiments:
        raise FileError(
            "there is nothing to report",
            expected=f"results in {', '.join(str(place) for place in DEFAULT_RESULTS[:3])}",
            remedy=RUN_FIRST,
        )
    return experiments, trained


def report_page(
    experiments: Mapping[str, ExperimentData], figures: Sequence[SavedFigure], claims: Sequence[CheckedClaim]
) -> str:
    """Return the page as HTML."""
    maze = experiments.get("maze")
    explorer = next(filter(None, map(experiment_explorer, experiments.values())), None)
    sections = {
        "explorer": explorer_section("Explorer", EXPLORER_INTRO, explorer) if explorer else "",
        "numbers": _headline(maze) if maze else "",
        "figures": _figures(figures),
        "claims": _claims(claims),
        "made": _made(experiments),
    }
    names = {"numbers": "In numbers", "figures": "Figures", "claims": "Claims", "explorer": "Explorer"}
    names["made"] = "How it was made"
    links = "".join(f'<a href="#{key}">{names[key]}</a>' for key, section in sections.items() if section)
    body = (
        f'<header class="top"><h1>{TITLE}</h1>\n{INTRO}</header>\n'
        f'<nav aria-label="sections"><div>{links}</div></nav>\n'
        f"<main>{''.join(sections.values())}</main>\n{_footer(experiments)}"
    )
    return document(f"adalook: {TITLE.lower()}", body, {"explorer-data": explorer.text} if explorer else {})


INTRO = """<p class="lead">The planning experiments of “Planning and Learning with Adaptive Lookahead” run again, with
every claim checked against the data.</p>
<p>Policy iteration improves a policy by looking one step ahead in every state. Looking further takes fewer iterations,
but each costs more. The paper looks far ahead only in some states: those where one step is not enough (TLPI goes by a
threshold, QLPI by a quantile). adalook adds a rule that needs no prior knowledge: WLPI looks one step further only in
states with a successor whose value has just changed. All of them are run here on the paper’s chain and maze, from the
same initial policies.</p>"""

EXPLORER_INTRO = """Two methods on the same maze from the same random policy, iteration by iteration: the value of each
cell under the policy so far, how far that is from the optimum, and how deep the method looked."""


def _headline(maze: ExperimentData) -> str:
    """Return the cheapest setting of each kind of method as HTML, compared with the best fixed depth."""
    methods = method_runs(maze.records)
    best_fixed = cheapest([one for one in methods if one.group == "hpi"], HEADLINE)
    if best_fixed is None:
        return ""
    cards = []
    for group in dict.fromkeys(one.group for one in methods):
        family = [one for one in methods if one.group == group]
        best = cheapest(family, HEADLINE)
        if best is not None:
            cards.append(_card(best, family, best_fixed))
    seeds = len({record.seed for record in maze.records})
    return (
        '<section id="numbers"><h2>In numbers</h2>\n'
        f"<p>Queries to the model until no action can be improved, mean of {seeds} "
        f"maze{'' if seeds == 1 else 's'}, the best setting of each kind of method. "
        f"{escape(HEADLINE.explanation)} This is the convention <em>{HEADLINE}</em>; the claims below give every other "
        "way of counting. "
        f"{escape(wlpi_like_for_like(methods))}"
        f'</p>\n<ul class="headline">{"".join(cards)}</ul></section>'
    )


def _card(best: MethodRuns, family: Sequence[MethodRuns], fixed: MethodRuns) -> str:
    mean = best.totals(HEADLINE).mean()
    if best is fixed:
        compared, name = "the best fixed depth in hindsight", depth_name(best, family)
    else:
        compared, name = f"{interval(cost_ratio(best, fixed, HEADLINE))} × the best fixed depth", best.label
    which = f"{pretty(name)}, the best of {len(family)}" if len(family) > 1 else pretty(name)
    return (
        f'<li><span class="name">{escape(best.style.description)}</span><b>{mean:,.0f}</b>'
        f"<span>{escape(which)}</span><span>{escape(compared)}</span></li>"
    )


def _figures(figures: Sequence[SavedFigure]) -> str:
    """Return all figures as HTML, variants such as "Figure 5, tree + exact" folded away below the first."""
    by_number: dict[str, list[SavedFigure]] = {}
    for figure in figures:
        by_number.setdefault(figure.number.split(",")[0], []).append(figure)
    parts = [figure_html(first) + _variants(number, more) for number, (first, *more) in by_number.items()]
    if not parts:
        return ""
    return f'<section id="figures"><h2>Figures</h2>\n<div class="figures">{"".join(parts)}</div></section>'


def _variants(number: str, figures: Sequence[SavedFigure]) -> str:
    if not figures:
        return ""
    names = "; ".join(figure.number.removeprefix(f"{number}, ") for figure in figures)
    return f"<details><summary>More of {escape(number)}: {escape(names)}</summary>{figure_list(figures)}</details>"


def _claims(claims: Sequence[CheckedClaim]) -> str:
    counts = "".join(
        f"<li>{sum(claim.verdict is verdict for claim in claims)} {_badge(verdict)}</li>"
        for verdict in Verdict
        if any(claim.verdict is verdict for claim in claims)
    )
    in_order = list(enumerate(claims, start=1))
    rows, untested = (
        "\n".join(
            _claim(number, claim) for number, claim in in_order if (claim.verdict is Verdict.NOT_TESTED) == folded
        )
        for folded in (False, True)
    )
    if untested:
        count = sum(claim.verdict is Verdict.NOT_TESTED for claim in claims)
        rows += f"\n<details><summary>{count} not tested by these results</summary>{untested}</details>"
    ours = [claim.headline for claim in claims if claim.headline is not Verdict.NOT_TESTED]
    alone = ", ".join(f"{ours.count(verdict)} × {verdict.value}" for verdict in Verdict if verdict in ours)
    return (
        '<section id="claims"><h2>The paper’s claims, checked against the data</h2>\n'
        f"<p>{escape(COUNTING)}</p>\n"
        "<p>Verdicts are computed from the results, under every way of counting queries; open a claim for its numbers. "
        f"Brackets are 95% bootstrap intervals over seeds. {escape(RULE)}</p>\n"
        f'<ul class="verdict-counts">{counts}</ul>\n'
        f"<p>Under {HEADLINE}, the headline, alone: {alone or 'nothing tested'}.</p>\n{rows}</section>"
    )


def _badge(verdict: Verdict) -> str:
    return f'<span class="verdict {VERDICT_STYLE[verdict]}">{escape(verdict.value)}</span>'


def _verdicts(claim: CheckedClaim) -> str:
    """Return the verdicts of a claim as HTML: under the headline convention, and over all conventions."""
    if len(claim.verdicts) < 2 or not claim.counts_queries:
        return _badge(claim.verdict)
    named = ((str(HEADLINE), claim.headline), ("all ways of counting", claim.verdict))
    return "".join(f'<p><span class="id">{name}</span> {_badge(verdict)}</p>' for name, verdict in named)


def _claim(number: int, claim: CheckedClaim) -> str:
    remark = f"<p>{escape(claim.remark)}</p>" if claim.remark else ""
    details = _convention_table(claim.verdicts) if claim.verdicts else ""
    return (
        f'<article class="claim" id="claim-{escape(claim.id)}"><div>{_verdicts(claim)}</div>'
        f"<div><p>{number}. {escape(claim.claim)}</p>{remark}"
        f'<p class="test"><span class="id">{escape(claim.paper_place)}.</span> Test: {escape(claim.test)}</p>'
        f"{details}</div></article>"
    )


def _convention_table(verdicts: Sequence[ConventionVerdict]) -> str:
    learned = verdicts[0].convention in EXPERIMENTS
    summary, way = ("Numbers by experiment", "experiment") if learned else ("Numbers by way of counting", "queries")
    rows = "".join(
        f'<tr><th scope="row">{escape(each.convention)}</th><td>{_badge(each.verdict)}</td>'
        f"<td>{escape(each.numbers)}</td></tr>"
        for each in verdicts
    )
    return (
        f'<details><summary>{summary}</summary><div class="scroll"><table><thead><tr>'
        f'<th scope="col">{way}</th><th scope="col">verdict</th><th scope="col">numbers</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _made(experiments: Mapping[str, ExperimentData]) -> str:
    parts = []
    for name, experiment in experiments.items():
        seconds = sum(experiment.times.values())
        rows = [("runs", f"{len(experiment.records):,}")]
        rows += [("work", f"{seconds:,.0f} s of one core, all runs together")] if experiment.times else []
        rows += [(key.replace("_", " "), _words(setting)) for key, setting in experiment.settings.items()]
        rows += [("versions", ", ".join(f"{key} {version}" for key, version in experiment.versions.items()))]
        parts.append(f"<h3>{escape(name)}</h3>{table(rows, 'summary')}")
    commands = " && ".join([*(f"adalook reproduce {name}" for name in experiments), "adalook report"])
    return (
        '<section id="made"><h2>How it was made</h2>\n'
        f"<p>With <code>{escape(commands)}</code>. Everything random is drawn from the seeds, so "
        f"the same versions on the same machine give the same numbers.</p>{''.join(parts)}</section>"
    )


def _words(setting: Any) -> str:
    if isinstance(setting, list) and all(isinstance(item, int | float | str) for item in setting):
        return ", ".join(f"{item}" for item in setting)
    return setting if isinstance(setting, str) else json.dumps(setting, ensure_ascii=False)


def _footer(experiments: Mapping[str, ExperimentData]) -> str:
    version = next(iter(experiments.values())).versions.get("adalook", "")
    return (
        f"<footer>Made by adalook {escape(version)}. One file: it needs no network and can be sent as it is.</footer>"
    )
