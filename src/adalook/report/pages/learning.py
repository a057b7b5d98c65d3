"""The Markdown page of a learning experiment, with its figures and its numbers as JSON.

Experiments whose agents were evaluated by greedy play get tables of scores, goals and aggregates; others, such as short
runs on Atari, a table of speed, training scores and memory.
"""

from __future__ import annotations

import json
from pathlib import Path

from adalook.report.data.learning import JsonDict, LearningData, learning_summary, load_learning, memory_summary
from adalook.report.data.statistics import FEWEST_SAMPLES
from adalook.report.figures import learning as figures
from adalook.report.figures.style import FigureSpec, save_figure
from adalook.storage.files import atomic_write, make_directory

NAMED = 10
"""Missing runs that the page names; the JSON file names all."""
TITLES = {"minatar": "Learning on MinAtar: QL-DQN against fixed depths", "atari": "Training on Atari"}


def write_learning_report(results: Path, out: Path) -> list[Path]:
    """Write NAME.md, NAME.json and figures of a learning experiment; returns the files, none if no run is finished."""
    data = load_learning(results)
    if not data.agents:
        return []
    make_directory(out)
    if data.is_evaluated:
        known = learning_summary(data)
        drawn = figures.evaluation_figures(data, known)
        text = _evaluation_page(data, known, drawn)
    else:
        known = _training_summary(data)
        drawn = figures.training_figures(data)
        text = _training_page(data, known, drawn)
    page, numbers = out / f"{data.name}.md", out / f"{data.name}.json"
    for path, content in ((page, text), (numbers, json.dumps(known, indent=1) + "\n")):
        with atomic_write(path) as file:
            file.write(content.encode())
    saved = [save_figure(spec, out) for spec in drawn]
    return [page, numbers, *(path for figure in saved for path in (figure.svg, figure.png))]


def run_in_words(record: JsonDict) -> str:
    """Return one run in a line."""
    final = record["final"]
    if "steps" not in record:
        return f"{record['game']:<14}random play: score {final['score']:.2f}"
    evaluated = "" if final is None else f"score {final['score']:6.2f}, mean depth {final['mean_depth']:.2f}, "
    return (
        f"{record['game']:<14}{record['agent']:<10}seed {record['seed']}: {evaluated}"
        f"last training episodes {number(record['last_training_score'])}, {record['steps']:,} steps "
        f"({record['steps'] / record['cpu_seconds']:,.0f}/s), "
        f"wall {record['wall_seconds'] / record['cpu_seconds']:.2f}× processor time"
    )


def number(value: float | None) -> str:
    """Return a number with two digits; a dash for none."""
    return "–" if value is None else f"{value:.2f}"


def interval(estimate: JsonDict, digits: int = 2) -> str:
    """Return a number with its interval; alone if it rests on one sample."""
    value = f"{estimate['value']:.{digits}f}"
    if estimate["samples"] < 2:
        return value
    return f"{value} [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"


def _evaluation_page(data: LearningData, known: JsonDict, drawn: list[FigureSpec]) -> str:
    episodes = "; ".join(f"{game}: {data.final_episodes[game]} episodes" for game in data.games)
    lines = [
        f"# {TITLES.get(data.name, data.name)}",
        "",
        f"`adalook reproduce {data.name}`: every run trains for {data.seconds:g} s of processor time on one core, "
        "tree search and prior included; evaluation is not counted. Scores are means of greedy final evaluations "
        f"({episodes}), with 95 % bootstrap intervals over seeds. "
        f"Those that rest on fewer than {FEWEST_SAMPLES} runs are too narrow.",
        "",
        "Fixed depths are the paper's baselines: they learn about the action taken. QL-DQN, with a prior and without, "
        "is this project's variant: θ follows the cost, one head serves all depths, and it learns about every first "
        "action of its trees. The paper's has given shares, a head for each depth and a prior, and learns about the "
        "action taken. "
        "`--agents every1 every2 every3` are fixed depths that learn about every action.",
        "",
        _measured_on(data),
        "",
        *_missing(known),
        *_goal_lines(known),
        *_aggregate_lines(data, known),
    ]
    for game, cells in known["games"].items():
        lines += _game_lines(data, game, cells)
    lines += ["## Curves", "", *_pictures(drawn)]
    return "\n".join(lines).rstrip() + "\n"


def _pictures(drawn: list[FigureSpec]) -> list[str]:
    return [f"![{spec.title}]({spec.name}.svg)\n" for spec in drawn]


def _measured_on(data: LearningData) -> str:
    return f"Measured on {data.machine['cores']} cores of {data.machine['cpu']}, {data.machine['date'][:10]}."


def _missing(known: JsonDict) -> list[str]:
    missing = known["missing"]
    if not missing:
        return []
    names = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
    return [f"**Not complete**: {len(missing)} runs are missing: {names}.", ""]


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
        cells = "".join(f" {'–' if chance is None else interval(chance)} |" for chance in beaten)
        rows.append(f"| {data.styles[agent].title} (`{agent}`) | {interval(estimate)} |{cells}")
    return [*rows, ""]


def _game_lines(data: LearningData, game: str, cells: JsonDict) -> list[str]:
    rows = [f"## {game}", "", f"Random play: {number(cells['random'])}."]
    if cells["scale"] is None:
        rows[-1] += " Scores have no scale here yet: random play, or an agent above it, is missing."
    rows += [
        "",
        "| agent | seeds | score | last 50 training episodes | steps | steps/s | nodes/step | depth | evaluation: "
        "nodes/step | depth | wall/CPU |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for agent, cell in cells["agents"].items():
        note = " (prior unfinished)" if cell["priors_unfinished"] else ""
        rows.append(
            f"| {data.styles[agent].title} (`{agent}`){note} | {len(cell['scores'])} | {interval(cell['score'])} | "
            f"{number(cell['last_training_score'])} | {cell['steps']:,.0f} | {cell['steps_per_second']:,.0f} | "
            f"{cell['nodes_per_step']:.1f} | {cell['training_depth']:.2f} | "
            f"{number(cell['evaluation_nodes_per_step'])} | {cell['mean_depth']:.2f} | {cell['wall_per_cpu']:.2f} |"
        )
    return [*rows, ""]


# Experiments whose agents were not evaluated by greedy play -----------------------------------------------------------


def _training_summary(data: LearningData) -> JsonDict:
    """Return all that the page says about such runs, as JSON can hold it."""
    return {
        "machine": dict(data.machine),
        "seconds": data.seconds,
        "missing": list(data.missing),
        "runs": {
            f"{game}--{agent}--{record['seed']}": {
                "game": game,
                "agent": agent,
                "seed": record["seed"],
                "steps": record["steps"],
                "steps_per_second": record["steps"] / record["cpu_seconds"],
                "episodes": sum(record["timeline"]["episodes"]),
                "first_training_score": record["first_training_score"],
                "last_training_score": record["last_training_score"],
                "samples": record["samples"],
                **(memory_summary(record) or {}),
            }
            for (game, agent), records in data.runs.items()
            for record in records
        },
    }


def _training_page(data: LearningData, known: JsonDict, drawn: list[FigureSpec]) -> str:
    lines = [
        f"# {TITLES.get(data.name, data.name)}: {', '.join(data.trained_games)}",
        "",
        f"`adalook reproduce {data.name}`: every run trains for {data.seconds / 60.0:g} minutes of processor time with "
        "one thread and without overlap. The Atari preset, but a replay buffer of 10,000 transitions, ε that falls "
        "over 10,000 steps and learning from step 1,000 on, since the preset's numbers are for days.",
        "",
        "*First 50*, *last 50*: mean score of training episodes. *Growth* is that of resident memory beyond the replay "
        "buffer in the second half of the run, by a straight line; above 5 % it counts as a leak.",
        "",
        _measured_on(data),
        "",
        *_missing(known),
        "| game | agent | seed | minutes | steps | steps/s | episodes | first 50 | last 50 | resident | replay | "
        "growth | leak | open files |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for run in known["runs"].values():
        samples, files = run["samples"], [count for count in run["samples"]["open_files"] if count is not None]
        growth, leak = "–", "–"
        if "leaks" in run:
            growth = f"{run['grown_mib']:+.1f} MiB ({run['beyond_replay_mib_per_minute']:+.2f}/min)"
            leak = "**yes**" if run["leaks"] else "no"
        lines.append(
            f"| {run['game']} | {data.styles[run['agent']].title} (`{run['agent']}`) | {run['seed']} | "
            f"{samples['minutes'][-1]:.1f} | {run['steps']:,} | {run['steps_per_second']:.0f} | {run['episodes']:,} | "
            f"{number(run['first_training_score'])} | {number(run['last_training_score'])} | "
            f"{samples['resident_mib'][-1]:,.0f} MiB | {samples['replay_mib'][-1]:,.0f} MiB | {growth} | {leak} | "
            f"{f'{files[0]}–{max(files)}' if files else '–'} |"
        )
    lines += ["", *_pictures(drawn)]
    return "\n".join(lines).rstrip() + "\n"
