"""A results folder of a learning experiment -> `LearningData`: its runs by game and agent, and their statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.errors import FileError
from adalook.report.data import statistics
from adalook.report.data.statistics import Estimate

JsonDict = dict[str, Any]

FORMAT = "adalook learning experiment"
FORMAT_VERSION = 1
RANDOM = "random"
"""The name of random play among agents."""
ADAPTIVE = ("ql", "ql-prior")
"""Agents that the goals are about."""
BASELINE = "depth0"
"""Plain DQN, which they are to beat in every game."""
MAKE_ONE = "make one with: adalook reproduce minatar|atari --out DIRECTORY"
LEAK_SHARE = 0.05
"""Memory beyond the replay buffer that grows by more than this share within the second half of a run counts as a leak:
arenas of malloc and caches of torch still move a little."""


@dataclass(frozen=True)
class AgentStyle:
    """The look of an agent in legends and curves."""

    title: str
    depth: int | None
    """Of its trees, if that is fixed."""
    colour: str
    dashes: tuple[float, ...]
    width: float


@dataclass(frozen=True)
class LearningData:
    """The finished runs of a learning experiment."""

    name: str
    seconds: float
    """Of processor time that every run trains for."""
    machine: Mapping[str, Any]
    games: tuple[str, ...]
    final_episodes: Mapping[str, int]
    styles: Mapping[str, AgentStyle]
    """By the agent's name, in the order of tables and legends."""
    runs: Mapping[tuple[str, str], list[JsonDict]]
    """Records by game and agent, over seeds."""
    missing: tuple[str, ...]

    @property
    def agents(self) -> list[str]:
        """The names of the agents that have at least one finished run, in the order of tables."""
        return [name for name in self.styles if any((game, name) in self.runs for game in self.games)]

    @property
    def is_evaluated(self) -> bool:
        """Whether agents were evaluated by greedy play, rather than by the scores of training episodes."""
        return any(record["final"] is not None for records in self.runs.values() for record in records)

    def scores(self, game: str, agent: str) -> FloatArray:
        """Return the scores of final evaluations, (seeds,)."""
        return np.array([record["final"]["score"] for record in self.runs.get((game, agent), [])])

    def scale(self, game: str) -> tuple[float, float] | None:
        """Return the mean scores of random play and of the best agent, which normalised scores map to 0 and 1.

        None if one of them is missing, or if no agent beats random play.
        """
        random, trained = self.scores(game, RANDOM), [self.scores(game, agent) for agent in self.styles]
        means = [scores.mean() for scores in trained if len(scores)]
        if not len(random) or not means or max(means) <= random[0]:
            return None
        return float(random[0]), float(max(means))

    @property
    def trained_games(self) -> list[str]:
        """The games in which at least one agent has a finished run."""
        return [game for game in self.games if any((game, agent) in self.runs for agent in self.agents)]

    @property
    def compared_games(self) -> list[str]:
        """The games in which every agent has a finished run, and for which scores can be normalised."""
        return [
            game
            for game in self.games
            if self.scale(game) is not None and all(len(self.scores(game, agent)) for agent in self.agents)
        ]

    def normalised(self, agent: str) -> list[FloatArray]:
        """Return normalised scores, (seeds,) for each compared game."""
        strata = []
        for game in self.compared_games:
            scale = self.scale(game)
            assert scale is not None, "compared games have one"
            strata.append((self.scores(game, agent) - scale[0]) / (scale[1] - scale[0]))
        return strata


def is_learning_results(directory: Path) -> bool:
    """Return whether a folder holds results of a learning experiment."""
    try:
        return bool(json.loads((directory / "experiment.json").read_text())["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def load_learning(directory: str | Path) -> LearningData:
    """Read the finished runs of a learning experiment from its folder."""
    place = Path(directory)
    index = _read(place / "experiment.json")
    found = (index.get("format"), index.get("format_version"))
    if found != (FORMAT, FORMAT_VERSION):
        raise FileError(
            f"{place / 'experiment.json'} is no learning experiment that this version reads",
            expected=f"format {FORMAT!r}, version {FORMAT_VERSION}",
            got=f"{found[0]!r}, version {found[1]!r}",
            remedy=MAKE_ONE,
        )
    runs: dict[tuple[str, str], list[JsonDict]] = {}
    try:
        for name in index["runs"]:
            record = _read(place / "runs" / f"{name}.json")
            runs.setdefault((record["game"], record["agent"]), []).append(record)
        return LearningData(
            name=index["experiment"],
            seconds=float(index["settings"]["seconds"]),
            machine=index["machine"],
            games=tuple(index["games"]),
            final_episodes={game: int(about["final_episodes"]) for game, about in index["games"].items()},
            styles={
                name: AgentStyle(
                    about["title"], about["depth"], about["colour"], tuple(about["dashes"]), float(about["width"])
                )
                for name, about in index["agents"].items()
            },
            runs=runs,
            missing=tuple(index["missing"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{place} holds damaged results", got=repr(error), remedy=MAKE_ONE) from error


def _read(path: Path) -> JsonDict:
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise FileError(f"cannot read {path}", got=error.strerror or error, remedy=MAKE_ONE) from error
    except ValueError as error:
        raise FileError(f"{path} is damaged", expected="JSON", got=error, remedy=MAKE_ONE) from error
    if not isinstance(found, dict):
        raise FileError(f"{path} is damaged", expected="a JSON object", got=type(found).__name__, remedy=MAKE_ONE)
    return found


# ---- what follows


def learning_summary(data: LearningData) -> JsonDict:
    """Return all that the page says about evaluated runs, as JSON can hold it."""
    known: JsonDict = {
        "machine": dict(data.machine),
        "seconds": data.seconds,
        "missing": list(data.missing),
        "games": {game: _game(data, game) for game in data.games},
        "compared_games": data.compared_games,
        "aggregate": None,
        "goals": [],
    }
    if data.compared_games:
        known["aggregate"] = _aggregate(data)
        known["goals"] = _goals(data)
    return known


def _game(data: LearningData, game: str) -> JsonDict:
    agents = {agent: _cell(data.runs[game, agent]) for agent in data.agents if (game, agent) in data.runs}
    random = data.scores(game, RANDOM)
    return {"random": float(random[0]) if len(random) else None, "scale": data.scale(game), "agents": agents}


def _cell(records: list[JsonDict]) -> JsonDict:
    """Return the summary of one agent in one game, over seeds."""
    scores = np.array([record["final"]["score"] for record in records])
    return {
        "score": asdict(statistics.stratified([scores], statistics.row_means)),
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
    """Return the mean of those that are there."""
    there = [number for number in numbers if number is not None]
    return float(np.mean(there)) if there else None


def _training_depth(record: JsonDict) -> float:
    """Return the mean depth of the agent's own decisions, without the prior's; 0 if there were none."""
    timeline = record["timeline"]
    total = sum(int(depth) * sum(counts) for depth, counts in timeline["depths"].items())
    return float(total / max(1, record["steps"] - sum(timeline["prior_steps"])))


def _aggregate(data: LearningData) -> JsonDict:
    strata = {agent: data.normalised(agent) for agent in data.agents}
    rivals = {
        agent: {
            other: asdict(statistics.probability_of_improvement(strata[agent], strata[other]))
            for other in data.agents
            if other != agent
        }
        for agent in ADAPTIVE
        if agent in strata
    }
    return {"iqm": {agent: asdict(statistics.stratified(strata[agent])) for agent in strata}, "beats": rivals}


def _goals(data: LearningData) -> list[JsonDict]:
    """Return whether QL-DQN is as good as the best fixed depth over all games, and above depth 0 in each of them."""
    strata = {agent: data.normalised(agent) for agent in data.agents}
    iqms = {agent: statistics.stratified(strata[agent]).value for agent in strata}
    goals = []
    fixed = [agent for agent in strata if data.styles[agent].depth is not None]
    best = max(fixed, key=lambda agent: iqms[agent], default=None)
    for agent in (agent for agent in ADAPTIVE if agent in strata):
        title = data.styles[agent].title
        if best is not None:
            gap = statistics.stratified_difference(strata[agent], strata[best])
            what = f"{title}: normalised IQM at least the best fixed depth's ({best})"
            goals.append(_goal(what, gap, gap.value >= 0.0))
        for game in data.compared_games if BASELINE in strata else []:
            pair = [data.scores(game, agent)], [data.scores(game, BASELINE)]
            gap = statistics.stratified_difference(*pair, statistics.row_means)
            goals.append(_goal(f"{title}: above depth 0 in {game}", gap, gap.value > 0.0))
    return goals


def _goal(what: str, gap: Estimate, met: bool) -> JsonDict:
    certain = gap.above_zero or gap.below_zero if gap.enough else None
    return {"goal": what, "difference": asdict(gap), "met": met, "certain": certain}


def memory_summary(record: JsonDict) -> JsonDict | None:
    """Return how the memory of one run developed; None if it was hardly looked at."""
    samples = record.get("samples") or {"minutes": []}
    if len(samples["minutes"]) < 4:
        return None
    minutes = np.array(samples["minutes"])
    beyond = np.array(samples["resident_mib"]) - np.array(samples["replay_mib"])
    late = minutes >= (minutes[0] + minutes[-1]) / 2.0
    slope = float(np.polyfit(minutes[late], beyond[late], 1)[0])
    grown = slope * float(minutes[late][-1] - minutes[late][0])
    return {
        "beyond_replay_mib_per_minute": slope,
        "grown_mib": grown,
        "leaks": bool(grown > LEAK_SHARE * beyond[late].mean()),
    }
