"""A results folder of a learning experiment -> `LearningData`: its runs by game and agent, and their statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.errors import FileError
from adalook.report.data import statistics
from adalook.report.data.statistics import Estimate
from adalook.storage.documents import parse_json
from adalook.storage.files import read_file

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
UNKNOWN_COLOUR = "#009e73"
"""Of agents that the index does not know."""
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
    usual: bool = True
    """False: an ablation, which tables show and curves do not."""


@dataclass(frozen=True)
class LearningData:
    """The finished runs of a learning experiment."""

    name: str
    seconds: float
    """Of processor time that every run trains for; 0 if it trains for a number of steps."""
    machine: Mapping[str, Any]
    games: tuple[str, ...]
    final_episodes: Mapping[str, int]
    styles: Mapping[str, AgentStyle]
    """By the agent's name, in the order of tables and legends."""
    runs: Mapping[tuple[str, str], list[JsonDict]]
    """Records by game and agent, over seeds."""
    planned: tuple[str, ...]
    """Names of all runs that were asked for, finished or not."""
    missing: tuple[str, ...]
    """Those that are not finished."""
    steps: int | None = None
    """Agent steps that every run trains for, if not seconds."""
    outdated: tuple[str, ...] = ()
    """Records of runs that would have other settings today; they are left out."""

    @property
    def agents(self) -> list[str]:
        """The names of the agents that have at least one finished run, in the order of tables."""
        return [name for name in self.styles if any((game, name) in self.runs for game in self.games)]

    @property
    def usual_agents(self) -> list[str]:
        """The agents that curves are drawn of: all but ablations, unless there are only such."""
        return [name for name in self.agents if self.styles[name].usual] or self.agents

    def games_of(self, agents: list[str]) -> list[str]:
        """Return the games in which at least one of these agents has a finished run."""
        return [game for game in self.games if any((game, agent) in self.runs for agent in agents)]

    def scores(self, game: str, agent: str) -> FloatArray:
        """Return the scores of final evaluations, (seeds,)."""
        finals = [record["final"] for record in self.runs.get((game, agent), [])]
        return np.array([final["score"] for final in finals if final is not None], np.float64)

    def training_scores(self, game: str, agent: str) -> FloatArray:
        """Return the mean scores of the last training episodes, (seeds,)."""
        last = [record["last_training_score"] for record in self.runs.get((game, agent), [])]
        return np.array([score for score in last if score is not None], np.float64)

    def random_score(self, game: str) -> float | None:
        """Return the mean score of random play; None if it was not measured."""
        scores = self.scores(game, RANDOM)
        return float(scores[0]) if len(scores) else None

    def scale(
        self, game: str, scores: Callable[[LearningData, str, str], FloatArray] | None = None
    ) -> tuple[float, float] | None:
        """Return the mean scores of random play and of the best usual agent, which normalised scores map to 0 and 1.

        None if one of them is missing, or if no agent beats random play.

        Args:
            game: one of the games.
            scores: which; None: those of final evaluations.
        """
        of = LearningData.scores if scores is None else scores
        random = self.random_score(game)
        means = [found.mean() for agent in self.usual_agents if len(found := of(self, game, agent))]
        if random is None or not means or max(means) <= random:
            return None
        return random, float(max(means))

    @property
    def compared_games(self) -> list[str]:
        """The games in which every usual agent has a finished run, and for which scores can be normalised."""
        return [
            game
            for game in self.games
            if self.scale(game) is not None and all(len(self.scores(game, agent)) for agent in self.usual_agents)
        ]

    @property
    def compared_agents(self) -> list[str]:
        """The agents that have a finished run in every compared game."""
        games = self.compared_games
        return [agent for agent in self.agents if games and all(len(self.scores(game, agent)) for game in games)]

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
        return bool(parse_json(read_file(directory / "experiment.json"))["format"] == FORMAT)
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
    try:
        return _gather(place, index)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FileError(f"{place} holds damaged results", got=repr(error), remedy=MAKE_ONE) from error


def _gather(place: Path, index: JsonDict) -> LearningData:
    """Read every record in runs/, those that the index does not know included, and say what is missing of the plan."""
    records = {path.stem: _read(path) for path in sorted((place / "runs").glob("*.json"), key=_by_seed)}
    if not isinstance(index["machine"], dict) or not isinstance(index["experiment"], str):
        raise ValueError("the machine or the name of the experiment is wrong")
    refused = index.get("outdated", {})
    outdated = tuple(name for name in records if refused.get(name) == _digest(place / "runs" / f"{name}.json"))
    runs: dict[tuple[str, str], list[JsonDict]] = {}
    for name, record in records.items():
        _check_record(record)
        if name not in outdated:
            runs.setdefault((record["game"], record["agent"]), []).append(record)
    games = {game: int(about["final_episodes"]) for game, about in index["games"].items()}
    styles = {name: _style(about) for name, about in index["agents"].items()}
    for game, agent in runs:
        final = runs[game, agent][0]["final"]
        games.setdefault(game, 0 if final is None else len(final["scores"]))
        if agent != RANDOM:
            styles.setdefault(agent, AgentStyle(agent, None, UNKNOWN_COLOUR, (1.0, 1.0), 1.4, usual=False))
    planned = tuple(dict.fromkeys([*index["runs"], *index["missing"], *records]))
    return LearningData(
        name=index["experiment"],
        seconds=float(index["settings"]["seconds"]),
        steps=index["settings"].get("steps"),
        machine=index["machine"],
        games=tuple(games),
        final_episodes=games,
        styles=styles,
        runs=runs,
        planned=planned,
        missing=tuple(name for name in planned if name not in records or name in outdated),
        outdated=outdated,
    )


LARGEST_NUMBER = 1e18
"""Of anything that is counted or measured in a run."""


def _is_number(value: Any, least: float = -LARGEST_NUMBER) -> bool:
    return type(value) in (int, float) and least <= value <= LARGEST_NUMBER


def _check_record(record: JsonDict) -> None:
    """Raise ValueError unless a record's numbers are numbers: figures and tables compute with them."""

    def check(holds: bool, what: str) -> None:
        if not holds:
            raise ValueError(f"{what} of {record.get('game')}, {record.get('agent')} is wrong")

    def numbers(values: Any) -> bool:
        return isinstance(values, list) and all(value is None or _is_number(value) for value in values)

    check(isinstance(record["game"], str) and isinstance(record["agent"], str), "the name")
    final = record["final"]
    if final is not None:
        scores = final["scores"]
        check(_is_number(final["score"]) and numbers(scores) and None not in scores and bool(scores), "the final score")
        check(record["agent"] == RANDOM or "mean_depth" in final, "the final depth")
        rest = ("mean_depth", "nodes_per_step", "stalled", "cut")
        check(all(final.get(name) is None or _is_number(final[name]) for name in rest), "the final evaluation")
    if record["agent"] == RANDOM:
        return
    costs = [record[name] for name in ("cpu_seconds", "wall_seconds", "steps")]
    untrained = costs == [0, 0, 0]
    check(untrained or all(_is_number(cost, 1e-9) for cost in costs), "the cost")
    speed = record.get("machine_speed")
    check(speed is None or _is_number(speed, 1e-9), "the speed of the machine")
    check(record["last_training_score"] is None or _is_number(record["last_training_score"]), "the training score")
    check(isinstance(record["prior_finished"], bool) and isinstance(record["definition"], dict), "the definition")
    timeline, samples = record["timeline"], record.get("samples") or {}
    columns = {name: column for name, column in timeline.items() if name != "depths"}
    columns |= {f"depth {int(depth)}": column for depth, column in timeline["depths"].items()}
    check({"steps", "prior_steps", "episodes", "nodes"} <= set(columns), "the timeline")
    check(untrained or "ties" not in columns or sum(columns["steps"]) > 0, "the number of steps")
    for name, column in columns.items():
        whole = numbers(column) and len(column) == len(timeline["steps"])
        check(whole and (name == "scores" or None not in column), f"{name} of the timeline")
    check(all(numbers(column) for column in samples.values()), "the memory")


def _by_seed(path: Path) -> tuple[str, int]:
    """Order the files of runs by their names, numbers as numbers."""
    name, _, seed = path.stem.rpartition("--")
    return name, int(seed) if seed.isdecimal() else 0


def _digest(path: Path) -> str:
    return hashlib.sha256(read_file(path)).hexdigest()


def _style(about: JsonDict) -> AgentStyle:
    return AgentStyle(
        about["title"],
        about["depth"],
        about["colour"],
        tuple(about["dashes"]),
        float(about["width"]),
        bool(about.get("usual", True)),
    )


def _read(path: Path) -> JsonDict:
    try:
        found = parse_json(read_file(path))
    except OSError as error:
        raise FileError(f"cannot read {path}", got=error.strerror or error, remedy=MAKE_ONE) from error
    except ValueError as error:
        raise FileError(f"{path} is damaged", expected="JSON", got=error, remedy=MAKE_ONE) from error
    if not isinstance(found, dict):
        raise FileError(f"{path} is damaged", expected="a JSON object", got=type(found).__name__, remedy=MAKE_ONE)
    return found


# ---- what follows


def learning_summary(data: LearningData) -> JsonDict:
    """Return all that the page says in numbers, as JSON can hold it."""
    known: JsonDict = {
        "machine": dict(data.machine),
        "seconds": data.seconds,
        "planned": len(data.planned),
        "missing": list(data.missing),
        "outdated": list(data.outdated),
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
    agents = {agent: _cell(data, game, agent) for agent in data.agents if (game, agent) in data.runs}
    return {"random": data.random_score(game), "scale": data.scale(game), "agents": agents}


def _cell(data: LearningData, game: str, agent: str) -> JsonDict:
    """Return the summary of one agent in one game, over seeds; None for what was not measured."""
    records, scores = data.runs[game, agent], data.scores(game, agent)
    finals = [record["final"] for record in records if record["final"] is not None]
    timelines = [record["timeline"] for record in records]
    memories = [memory for record in records if (memory := memory_summary(record)) is not None]
    return {
        "seeds": len(records),
        "score": asdict(statistics.stratified([scores], statistics.row_means)) if len(scores) else None,
        "scores": scores.tolist(),
        "last_training_score": _mean([record["last_training_score"] for record in records]),
        "steps": _mean([record["steps"] for record in records]),
        "steps_per_second": _mean([_ratio(record["steps"], record["cpu_seconds"]) for record in records]),
        "nodes_per_step": _mean([_ratio(sum(r["timeline"]["nodes"]), r["steps"]) for r in records]),
        "training_depth": _mean([_training_depth(record) for record in records]),
        "ties": _mean([_ratio(sum(t["ties"]), sum(t["steps"])) if "ties" in t else None for t in timelines]),
        "episodes": sum(sum(timeline["episodes"]) for timeline in timelines),
        "stalled": _sum([sum(t["stalled"]) if "stalled" in t else None for t in timelines]),
        "mean_depth": _mean([final["mean_depth"] for final in finals]),
        "evaluation_nodes_per_step": _mean([final.get("nodes_per_step") for final in finals]),
        "evaluation_episodes": sum(len(final["scores"]) for final in finals),
        "evaluation_stalled": _sum([final.get("stalled") for final in finals]),
        "evaluation_cut": _sum([final.get("cut") for final in finals]),
        "wall_per_cpu": _mean([_ratio(record["wall_seconds"], record["cpu_seconds"]) for record in records]),
        "priors_unfinished": sum(not record["prior_finished"] for record in records),
        "memory": {name: max(memory[name] for memory in memories) for name in memories[0]} if memories else None,
    }


def _ratio(part: float, whole: float) -> float | None:
    """Return part / whole; None of nothing, as of an agent that was not trained."""
    return part / whole if whole else None


def _mean(numbers: Sequence[float | None]) -> float | None:
    """Return the mean of those that are there."""
    there = [number for number in numbers if number is not None]
    return float(np.mean(there)) if there else None


def _sum(numbers: Sequence[int | None]) -> int | None:
    """Return the sum of those that are there."""
    there = [number for number in numbers if number is not None]
    return sum(there) if there else None


def _training_depth(record: JsonDict) -> float:
    """Return the mean depth of the agent's own decisions, without the prior's; 0 if there were none."""
    timeline = record["timeline"]
    total = sum(int(depth) * sum(counts) for depth, counts in timeline["depths"].items())
    return float(total / max(1, record["steps"] - sum(timeline["prior_steps"])))


def _aggregate(data: LearningData) -> JsonDict:
    strata = {agent: data.normalised(agent) for agent in data.compared_agents}
    rivals = {
        agent: {
            other: asdict(statistics.probability_of_improvement(strata[agent], strata[other]))
            for other in strata
            if other != agent
        }
        for agent in ADAPTIVE
        if agent in strata
    }
    return {"iqm": {agent: asdict(statistics.stratified(strata[agent])) for agent in strata}, "beats": rivals}


def _goals(data: LearningData) -> list[JsonDict]:
    """Return whether QL-DQN is as good as the best fixed depth over all games, and above depth 0 in each of them."""
    strata = {agent: data.normalised(agent) for agent in data.compared_agents}
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
    files = [count for count in samples["open_files"] if count is not None]
    beyond = np.array(samples["resident_mib"]) - np.array(samples["replay_mib"])
    late = minutes >= (minutes[0] + minutes[-1]) / 2.0
    slope = float(np.polyfit(minutes[late], beyond[late], 1)[0])
    grown = round(slope * float(minutes[late][-1] - minutes[late][0]), 6) + 0.0  # no -0.0, as machines round otherwise
    return {
        "resident_mib": samples["resident_mib"][-1],
        "replay_mib": samples["replay_mib"][-1],
        "most_open_files": max(files, default=0),
        "beyond_replay_mib_per_minute": slope,
        "grown_mib": grown,
        "leaks": bool(grown > LEAK_SHARE * beyond[late].mean()),
    }
