"""The Markdown page of a learning experiment, with its figures and its numbers as JSON.

It is made from whatever is there: an experiment of which no run is finished has a page that names what is missing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from adalook.report.claims.table import check_learning_claims
from adalook.report.claims.verdicts import CheckedClaim
from adalook.report.data.learning import JsonDict, LearningData, learning_summary, load_learning
from adalook.report.data.statistics import FEWEST_SAMPLES
from adalook.report.figures.learning import learning_figures
from adalook.report.figures.style import FigureSpec, save_figure
from adalook.storage.files import atomic_write, make_directory

NAMED = 10
"""Missing runs that the page names; the JSON file names all."""
TITLES = {
    "minatar": "Learning on MinAtar: QL-DQN against fixed depths",
    "atari": "Learning on Atari: QL-DQN against fixed depths",
}
PICTURES = "pictures"
"""The folder of results that holds pictures of trained agents at play, GAME.gif and GAME.png."""


def write_learning_report(results: Path, out: Path) -> list[Path]:
    """Write NAME.md, NAME.json, figures and pictures of a learning experiment; returns the files, the page first."""
    data = load_learning(results)
    make_directory(out)
    known = learning_summary(data)
    claims = check_learning_claims({data.name: data})
    known["claims"] = {claim.id: claim.verdict.value for claim in claims}
    drawn = learning_figures(data, known)
    pictures = _copy_pictures(data, results, out)
    page, numbers = out / f"{data.name}.md", out / f"{data.name}.json"
    text = _page(data, known, claims, drawn, pictures)
    for path, content in ((page, text), (numbers, json.dumps(known, indent=1, ensure_ascii=False) + "\n")):
        with atomic_write(path) as file:
            file.write(content.encode())
    saved = [save_figure(spec, out) for spec in drawn]
    return [page, numbers, *(path for figure in saved for path in (figure.svg, figure.png)), *pictures]


def _copy_pictures(data: LearningData, results: Path, out: Path) -> list[Path]:
    """Put pictures of trained agents at play beside the page, unless they are there; returns those there are."""
    names = [f"{game}.{kind}" for game in data.games for kind in ("gif", "png")]
    found = [name for name in names if (results / PICTURES / name).exists()]
    place = out / PICTURES
    if found and place.resolve() != (results / PICTURES).resolve():
        make_directory(place)
        for name in found:
            shutil.copyfile(results / PICTURES / name, place / name)
    return [place / name for name in found]


def run_in_words(record: JsonDict) -> str:
    """Return one run in a line."""
    final = record["final"]
    if "steps" not in record:
        return f"{record['game']:<14}random play: score {final['score']:.2f}"
    evaluated = "" if final is None else f"score {final['score']:6.2f}, mean depth {final['mean_depth']:.2f}, "
    if not record["steps"]:
        return f"{record['game']:<14}{record['agent']:<10}seed {record['seed']}: {evaluated}not trained"
    return (
        f"{record['game']:<14}{record['agent']:<10}seed {record['seed']}: {evaluated}"
        f"last training episodes {number(record['last_training_score'])}, {record['steps']:,} steps "
        f"({record['steps'] / record['cpu_seconds']:,.0f}/s), "
        f"wall {record['wall_seconds'] / record['cpu_seconds']:.2f}× processor time"
    )


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with so many digits; a dash for none."""
    return "–" if value is None else f"{value:,.{digits}f}"


def interval(estimate: JsonDict | None, digits: int = 2) -> str:
    """Return a number with its interval; alone if it rests on one sample, a dash for none."""
    if estimate is None:
        return "–"
    value = f"{estimate['value']:,.{digits}f}"
    if estimate["samples"] < 2:
        return value
    return f"{value} [{estimate['low']:,.{digits}f}, {estimate['high']:,.{digits}f}]"


# ---- the page


def _page(
    data: LearningData,
    known: JsonDict,
    claims: Sequence[CheckedClaim],
    drawn: Sequence[FigureSpec],
    pictures: Sequence[Path],
) -> str:
    lines = [
        f"# {TITLES.get(data.name, data.name)}",
        "",
        *_introduction(data),
        *_missing(data),
        *_claim_lines(claims),
        *_goal_lines(known),
        *_aggregate_lines(data, known),
        *(line for spec in drawn for line in _figure_lines(spec)),
        *_picture_lines(data, pictures),
    ]
    for game, cells in known["games"].items():
        lines += _game_lines(data, game, cells)
    lines += _memory_lines(data, known)
    return "\n".join(lines).rstrip() + "\n"


def _introduction(data: LearningData) -> list[str]:
    judged = [f"{game}: {data.final_episodes[game]}" for game in data.games if data.final_episodes[game]]
    episodes = f" ({', '.join(judged)} episodes)" if judged else ""
    budget = f"{data.seconds:g} s of processor time on one core" if data.steps is None else f"{data.steps:,} steps"
    return [
        f"`adalook reproduce {data.name.replace('-paper', ' --paper-scale')}`: every run trains for {budget}, "
        "tree search and prior included; evaluation is not counted. Scores are means of greedy final evaluations"
        f"{episodes}, with 95 % bootstrap intervals over seeds. "
        f"Those that rest on fewer than {FEWEST_SAMPLES} runs are too narrow.",
        "",
        "Fixed depths are the paper's baselines: they learn about the action taken. The paper's QL-DQN has given "
        "shares, a head for each depth and a prior, and learns about the action taken, too. QL-DQN, with a prior and "
        "without, is this project's variant: docs/learning.md says what it does otherwise.",
        "",
        f"Measured on {data.machine['cores']} cores of {data.machine['cpu']}, {data.machine['date'][:10]}."
        f"{_speeds(data) if data.steps is None else ''}",
        "",
    ]


def _speeds(data: LearningData) -> str:
    """Return in words how fast the machines of the runs were."""
    trained = [record for records in data.runs.values() for record in records if record.get("steps")]
    speeds = [record["machine_speed"] for record in trained if record.get("machine_speed")]
    unknown = len(trained) - len(speeds)
    if not speeds:
        return ""
    rest = (
        f" {unknown} runs are of before that was measured, and had their seconds of processor time on whatever machine "
        "they were made: steps/s tell."
        if unknown
        else ""
    )
    return (
        " Seconds are those of a reference machine, by which runs of different machines can be compared: "
        f"{len(speeds)} runs were made on machines {min(speeds):.2f} to {max(speeds):.2f} times as fast.{rest}"
    )


def _missing(data: LearningData) -> list[str]:
    lines = []
    if data.missing:
        names, more = ", ".join(data.missing[:NAMED]), len(data.missing) - NAMED
        lines += [
            f"**Not complete**: {len(data.missing)} of {len(data.planned)} planned runs are missing: {names}"
            f"{f' and {more} more' if more > 0 else ''}.",
            "",
        ]
    if data.outdated:
        lines += [f"Left out, since they were made with other settings: {', '.join(data.outdated)}.", ""]
    return lines


def _claim_lines(claims: Sequence[CheckedClaim]) -> list[str]:
    rows = ["## Claims", "", "| | claim | where | verdict | numbers |", "|---|---|---|---|---|"]
    for place, claim in enumerate(claims, start=1):
        numbers = "; ".join(dict.fromkeys(each.numbers for each in claim.verdicts))
        rows.append(f"| {place} | {claim.claim} | {claim.paper_place} | **{claim.verdict.value}** | {numbers or '–'} |")
    tests = [f"{place}. {claim.test}" for place, claim in enumerate(claims, start=1)]
    return [*rows, "", "How each was tested:", "", *tests, ""]


def _goal_lines(known: JsonDict) -> list[str]:
    if not known["goals"]:
        return ["Nothing can be said about the goals yet: runs of QL-DQN or of fixed depths are missing.", ""]
    rows = ["## Goals", "", "| goal | difference | met | interval without 0 |", "|---|---:|---|---|"]
    certainties = {None: "too few seeds", True: "yes", False: "no"}
    for goal in known["goals"]:
        met, certain = "yes" if goal["met"] else "**no**", certainties[goal["certain"]]
        rows.append(f"| {goal['goal']} | {interval(goal['difference'])} | {met} | {certain} |")
    return [*rows, ""]


def _aggregate_lines(data: LearningData, known: JsonDict) -> list[str]:
    if known["aggregate"] is None:
        return []
    adaptive = list(known["aggregate"]["beats"])
    heads = "".join(f" {data.styles[agent].title} beats it |" for agent in adaptive)
    rows = [
        f"## All games together ({', '.join(known['compared_games'])})",
        "",
        "Interquartile mean over games and seeds of (score − random play) / (best agent's mean − random play). "
        "*Beats*: how probably a run scores above one of the other agent; a tie counts half.",
        "",
        f"| agent | normalised IQM |{heads}",
        "|---|---:|" + "---:|" * len(adaptive),
    ]
    for agent, estimate in known["aggregate"]["iqm"].items():
        beaten = (known["aggregate"]["beats"][name].get(agent) for name in adaptive)
        cells = "".join(f" {interval(chance)} |" for chance in beaten)
        rows.append(f"| {data.styles[agent].title} (`{agent}`) | {interval(estimate)} |{cells}")
    return [*rows, ""]


def _figure_lines(spec: FigureSpec) -> list[str]:
    title = f"{spec.number}: {spec.title[0].lower()}{spec.title[1:]}" if spec.number else spec.title
    return [f"## {title}", "", f"![{spec.title}]({spec.name}.svg)", "", spec.caption, ""]


def _picture_lines(data: LearningData, pictures: Sequence[Path]) -> list[str]:
    if not pictures:
        return []
    lines = ["## Trained agents at play", ""]
    for game in data.games:
        for path in (path for path in pictures if path.stem == game):
            what = "an episode, with the depth of each decision" if path.suffix == ".gif" else "states by depth"
            lines += [f"![{game}: {what}]({PICTURES}/{path.name})", "", f"{game}: {what}.", ""]
    return lines


def _game_lines(data: LearningData, game: str, cells: JsonDict) -> list[str]:
    rows = [f"## {game}", "", f"Random play: {number(cells['random'])}."]
    if not cells["agents"]:
        return [*rows, "No run of an agent is finished yet.", ""]
    if cells["scale"] is None:
        rows[-1] += " Scores have no scale here yet: random play, or an agent above it, is missing."
    rows += [
        "",
        "| agent | seeds | score | last 50 training episodes | steps | steps/s | nodes/step | depth | ties | "
        "stalled/episodes | evaluation: nodes/step | depth | stalled, cut/episodes | wall/CPU |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for agent, cell in cells["agents"].items():
        note = " (prior unfinished)" if cell["priors_unfinished"] else ""
        ties = "–" if cell["ties"] is None else f"{cell['ties']:.0%}"
        rows.append(
            f"| {data.styles[agent].title} (`{agent}`){note} | {cell['seeds']} | {interval(cell['score'])} | "
            f"{number(cell['last_training_score'])} | {number(cell['steps'], 0)} | "
            f"{number(cell['steps_per_second'], 0)} | {number(cell['nodes_per_step'], 1)} | "
            f"{number(cell['training_depth'])} | {ties} | {_count(cell['stalled'])}/{cell['episodes']:,} | "
            f"{number(cell['evaluation_nodes_per_step'], 1)} | {number(cell['mean_depth'])} | "
            f"{_count(cell['evaluation_stalled'])}, {_count(cell['evaluation_cut'])}/{cell['evaluation_episodes']} | "
            f"{number(cell['wall_per_cpu'])} |"
        )
    return [*rows, ""]


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _memory_lines(data: LearningData, known: JsonDict) -> list[str]:
    """Return the table of memory, as far as runs looked at theirs; the worst seed counts."""
    rows = []
    for game, cells in known["games"].items():
        for agent, cell in cells["agents"].items():
            if (memory := cell["memory"]) is not None:
                rows.append(
                    f"| {game} | {data.styles[agent].title} (`{agent}`) | {memory['resident_mib']:,.0f} MiB | "
                    f"{memory['replay_mib']:,.0f} MiB | {memory['grown_mib']:+.1f} MiB | "
                    f"{'**yes**' if memory['leaks'] else 'no'} | {memory['most_open_files']} |"
                )
    if not rows:
        return []
    return [
        "## Memory",
        "",
        "At the end of a run, the worst seed. *Growth* is that of resident memory beyond the replay buffer in the "
        "second half of the run, by a straight line; above 5 % it counts as a leak.",
        "",
        "| game | agent | resident | replay | growth | leak | open files |",
        "|---|---|---:|---:|---:|---|---:|",
        *rows,
        "",
    ]
