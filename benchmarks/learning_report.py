"""What the learning benchmark found: `learning.{md,json}` and figures, from whatever runs are finished."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from adalook.report.data.statistics import FEWEST_SAMPLES, Estimate
from adalook.storage.files import atomic_write
from benchmarks import learning_figures as figures
from benchmarks import learning_statistics as statistics
from benchmarks.learning_contenders import CONTENDERS, FIXED, GAMES, RANDOM, Job
from benchmarks.planning import machine

Record = dict[str, Any]

NAMED = 10
"""Missing runs that the page names; the JSON file names all."""
ADAPTIVE = ("ql", "ql-prior")
"""Those that the goals are about."""


def read_run(job: Job, runs: Path) -> Record | None:
    """The record of a finished job; None if there is none, or one of other settings."""
    path = runs / f"{job.name}.json"
    if not path.exists():
        return None
    record: Record = json.loads(path.read_text())
    return record if job.is_result(record) else None


def run_in_words(record: Record) -> str:
    """One run in a line."""
    return (
        f"{record['game']:<14}{record['agent']:<10}seed {record['seed']}: score {record['final']['score']:6.2f}, "
        f"last training episodes {number(record['last_training_score'])}, {record['steps']:,} steps "
        f"({record['steps'] / record['cpu_seconds']:,.0f}/s), mean depth {record['final']['mean_depth']:.2f}, "
        f"wall {record['wall_seconds'] / record['cpu_seconds']:.2f}× processor time"
    )


class Results:
    """The finished runs of some jobs, and what follows from them."""

    def __init__(self, jobs: Sequence[Job], runs: Path) -> None:
        found = {job: read_run(job, runs) for job in jobs}
        self.missing = [job.name for job, record in found.items() if record is None]
        self.seconds = jobs[0].seconds
        self.games = list(dict.fromkeys(job.game for job in jobs))
        self.runs: dict[tuple[str, str], list[Record]] = {}
        for job, record in found.items():
            if record is not None:
                self.runs.setdefault((job.game, job.agent), []).append(record)
        wanted = [name for name in CONTENDERS if any(job.agent == name for job in jobs)]
        self.agents = [name for name in wanted if any((game, name) in self.runs for game in self.games)]

    def scores(self, game: str, agent: str) -> np.ndarray[Any, Any]:
        """(seeds,) of final evaluations."""
        return np.array([record["final"]["score"] for record in self.runs.get((game, agent), [])])

    def scale(self, game: str) -> tuple[float, float] | None:
        """(what scores 0, what scores 1): random play and the best agent; None where that says nothing."""
        random, trained = self.scores(game, RANDOM), [self.scores(game, agent) for agent in CONTENDERS]
        means = [scores.mean() for scores in trained if len(scores)]
        if not len(random) or not means or max(means) <= random[0]:
            return None
        return float(random[0]), float(max(means))

    @property
    def trained_games(self) -> list[str]:
        """Those in which some agent has a run."""
        return [game for game in self.games if any((game, agent) in self.runs for agent in self.agents)]

    @property
    def compared_games(self) -> list[str]:
        """Those in which every agent has a run, and scores have a scale."""
        return [
            game
            for game in self.games
            if self.scale(game) is not None and all(len(self.scores(game, agent)) for agent in self.agents)
        ]

    def normalised(self, agent: str) -> list[np.ndarray[Any, Any]]:
        """(seeds,) for each compared game."""
        strata = []
        for game in self.compared_games:
            scale = self.scale(game)
            assert scale is not None, "compared games have one"
            strata.append((self.scores(game, agent) - scale[0]) / (scale[1] - scale[0]))
        return strata


def summary(results: Results) -> Record:
    """All that the report says, as JSON can hold it."""
    known: Record = {
        "machine": machine(),
        "seconds": results.seconds,
        "missing": results.missing,
        "games": {game: _game(results, game) for game in results.games},
        "compared_games": results.compared_games,
        "aggregate": None,
        "goals": [],
    }
    if results.compared_games:
        known["aggregate"] = _aggregate(results)
        known["goals"] = _goals(results)
    return known


def _game(results: Results, game: str) -> Record:
    agents = {agent: _cell(results.runs[game, agent]) for agent in results.agents if (game, agent) in results.runs}
    random = results.scores(game, RANDOM)
    return {"random": float(random[0]) if len(random) else None, "scale": results.scale(game), "agents": agents}


def _cell(records: list[Record]) -> Record:
    """One agent in one game, over seeds."""
    scores = np.array([record["final"]["score"] for record in records])
    return {
        "score": asdict(statistics.aggregate([scores], statistics.mean_of_games)),
        "scores": scores.tolist(),
        "last_training_score": _mean([record["last_training_score"] for record in records]),
        "steps": float(np.mean([record["steps"] for record in records])),
        "steps_per_second": float(np.mean([record["steps"] / record["cpu_seconds"] for record in records])),
        "nodes_per_step": float(np.mean([sum(r["timeline"]["nodes"]) / r["steps"] for r in records])),
        "mean_depth": float(np.mean([record["final"]["mean_depth"] for record in records])),
        "evaluation_nodes_per_step": _mean([record["final"].get("nodes_per_step") for record in records]),
        "training_depth": float(np.mean([_training_depth(record) for record in records])),
        "wall_per_cpu": float(np.mean([record["wall_seconds"] / record["cpu_seconds"] for record in records])),
        "priors_unfinished": sum(not record["prior_finished"] for record in records),
    }


def _mean(numbers: Sequence[float | None]) -> float | None:
    """Of those that are there."""
    there = [number for number in numbers if number is not None]
    return float(np.mean(there)) if there else None


def _training_depth(record: Record) -> float:
    """Mean over the agent's own decisions: the prior's have depth 0. 0 if there were none."""
    timeline = record["timeline"]
    total = sum(int(depth) * sum(counts) for depth, counts in timeline["depths"].items())
    return float(total / max(1, record["steps"] - sum(timeline["prior_steps"])))


def _aggregate(results: Results) -> Record:
    strata = {agent: results.normalised(agent) for agent in results.agents}
    rivals = {
        agent: {
            other: asdict(statistics.probability_of_improvement(strata[agent], strata[other]))
            for other in results.agents
            if other != agent
        }
        for agent in ADAPTIVE
        if agent in strata
    }
    return {"iqm": {agent: asdict(statistics.aggregate(strata[agent])) for agent in strata}, "beats": rivals}


def _goals(results: Results) -> list[Record]:
    """Whether QL-DQN is at least as good as the best fixed depth over the games, and above depth 0 in each of them."""
    strata = {agent: results.normalised(agent) for agent in results.agents}
    iqms = {agent: statistics.aggregate(strata[agent]).value for agent in strata}
    goals = []
    best = max((agent for agent in FIXED if agent in strata), key=lambda agent: iqms[agent], default=None)
    for agent in (agent for agent in ADAPTIVE if agent in strata):
        title = CONTENDERS[agent].title
        if best is not None:
            gap = statistics.difference(strata[agent], strata[best])
            what = f"{title}: normalised IQM at least the best fixed depth's ({best})"
            goals.append(_goal(what, gap, gap.value >= 0.0))
        for game in results.compared_games if "depth0" in strata else []:
            pair = [results.scores(game, agent)], [results.scores(game, "depth0")]
            gap = statistics.difference(*pair, statistics.mean_of_games)
            goals.append(_goal(f"{title}: above depth 0 in {game}", gap, gap.value > 0.0))
    return goals


def _goal(what: str, gap: Estimate, met: bool) -> Record:
    certain = gap.above_zero or gap.below_zero if gap.enough else None
    return {"goal": what, "difference": asdict(gap), "met": met, "certain": certain}


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def interval(estimate: Record, digits: int = 2) -> str:
    """A number with its interval; alone if it rests on one sample."""
    value = f"{estimate['value']:.{digits}f}"
    if estimate["samples"] < 2:
        return value
    return f"{value} [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"


def markdown(known: Record) -> str:
    """The report."""
    lines = [
        "# Learning: QL-DQN against fixed depths",
        "",
        f"`python -m benchmarks.learning`: every run trains for {known['seconds']:g} s of processor time on one core, "
        "tree search and prior included; evaluation is not counted. Scores are means of greedy final evaluations "
        f"({'; '.join(_episodes(game) for game in known['games'])}), with 95 % bootstrap intervals over seeds. "
        f"Those that rest on fewer than {FEWEST_SAMPLES} runs are too narrow.",
        "",
        "Fixed depths are the paper's baselines: they learn about the action taken. QL-DQN, with a prior and without, "
        "is ours: θ follows the cost, one head serves all depths, and it learns about every first action of its trees. "
        "The paper's has given shares, a head for each depth, a prior, and learns about the action taken. "
        "`--agents every1 every2 every3` are fixed depths that learn about every action.",
        "",
        f"Measured on {known['machine']['cores']} cores of {known['machine']['cpu']}, {known['machine']['date'][:10]}.",
        "",
        *_missing(known),
        *_goal_lines(known),
        *_aggregate_lines(known),
    ]
    for game, cells in known["games"].items():
        lines += _game_lines(game, cells)
    lines += ["## Curves", ""]
    drawn = {stem: title for stem, title in figures.TITLES.items() if known["aggregate"] or stem != figures.AGGREGATE}
    lines += [f"![{title}]({stem}.svg)\n" for stem, title in drawn.items()]
    return "\n".join(lines).rstrip() + "\n"


def _episodes(game: str) -> str:
    return f"{game}: {GAMES[game].final_episodes} episodes"


def _missing(known: Record) -> list[str]:
    missing = known["missing"]
    if not missing:
        return []
    names = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
    return [f"**Not complete**: {len(missing)} runs are missing: {names}.", ""]


def _goal_lines(known: Record) -> list[str]:
    if not known["goals"]:
        return ["Nothing can be said about the goals yet: runs of QL-DQN or of fixed depths are missing.", ""]
    rows = ["## Goals", "", "| goal | difference | met | interval without 0 |", "|---|---:|---|---|"]
    certainties = {None: "too few seeds", True: "yes", False: "no"}
    for goal in known["goals"]:
        met, certain = "yes" if goal["met"] else "**no**", certainties[goal["certain"]]
        rows.append(f"| {goal['goal']} | {interval(goal['difference'])} | {met} | {certain} |")
    return [*rows, ""]


def _aggregate_lines(known: Record) -> list[str]:
    if known["aggregate"] is None:
        return []
    adaptive = list(known["aggregate"]["beats"])
    heads = "".join(f" {CONTENDERS[agent].title} beats it |" for agent in adaptive)
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
        rows.append(f"| {CONTENDERS[agent].title} (`{agent}`) | {interval(estimate)} |{cells}")
    return [*rows, ""]


def _game_lines(game: str, cells: Record) -> list[str]:
    rows = [f"## {game}", "", f"Random play: {number(cells['random'])}."]
    if cells["scale"] is None:
        rows[-1] += " Scores have no scale here yet: random play, or an agent above it, is missing."
    rows += [
        "",
        "| agent | seeds | score | last 50 training episodes | steps | steps/s | nodes/step | depth | judged with: "
        "nodes/step | depth | wall/CPU |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for agent, cell in cells["agents"].items():
        note = " (prior unfinished)" if cell["priors_unfinished"] else ""
        rows.append(
            f"| {CONTENDERS[agent].title} (`{agent}`){note} | {len(cell['scores'])} | {interval(cell['score'])} | "
            f"{number(cell['last_training_score'])} | {cell['steps']:,.0f} | {cell['steps_per_second']:,.0f} | "
            f"{cell['nodes_per_step']:.1f} | {cell['training_depth']:.2f} | "
            f"{number(cell['evaluation_nodes_per_step'])} | {cell['mean_depth']:.2f} | {cell['wall_per_cpu']:.2f} |"
        )
    return [*rows, ""]


def write(jobs: Sequence[Job], out: Path) -> None:
    """Report on those jobs that are finished."""
    results = Results(jobs, out / "runs")
    if not results.agents:
        return
    known = summary(results)
    figures.draw(results.runs, results.trained_games, results.agents, known, out)
    for name, text in (("learning.json", json.dumps(known, indent=1) + "\n"), ("learning.md", markdown(known))):
        with atomic_write(out / name) as file:
            file.write(text.encode())
