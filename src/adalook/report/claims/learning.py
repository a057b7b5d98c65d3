"""Claims about learning: the paper's section "QL-DQN and Atari Experiments" with figures 6 and 7, and ours.

Verdicts are given for each learning experiment. A game counts once every agent that is compared has `SEEDS` runs in it.
While some games of the plan do not, a claim that holds in the others holds in part, and those are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from adalook._arrays import FloatArray
from adalook.report.claims import verdicts
from adalook.report.claims.verdicts import Claim, ConventionVerdict, Finding, Grade, Verdict
from adalook.report.data import statistics
from adalook.report.data.learning import BASELINE, JsonDict, LearningData
from adalook.report.data.learning_curves import score_curve
from adalook.report.data.statistics import Estimate

LearningExperiments = Mapping[str, LearningData]
LEARNING = ("atari", "minatar")
"""The learning experiments by name, those of the paper first."""
SEEDS = 3
"""Fewest runs of an agent in a game for its mean to count."""
OURS, PAPERS, ONE_HEAD = "ql", "ql-paper", "one-head"
"""QL-DQN as it is here, as in the paper, and as in the paper but for its heads."""
UNSTABLE_GAME, UNSTABLE = "Tutankham", "depth3"
TITLES = {"atari": "Atari", "minatar": "MinAtar"}


class NotEnoughRuns(Exception):
    """Raised where runs are missing that a test needs; says which."""


# ---- what is compared


def _fixed_depths(data: LearningData) -> list[str]:
    """Return the agents of fixed depth, by depth."""
    fixed = {name: style.depth for name, style in data.styles.items() if style.depth is not None and style.usual}
    return sorted(fixed, key=lambda name: fixed[name] or 0)


class ComparedGames(NamedTuple):
    """The games of the plan in which agents are compared."""

    counted: list[str]
    """Those in which each agent has runs enough."""
    left_out: list[str]
    """Those in which some have not."""

    def qualify(self, grade: Grade, numbers: str) -> Finding:
        """Return a finding on the games that count: where others are left out, what holds does so in part."""
        if not self.left_out:
            return grade, numbers
        verdict = Verdict.IN_PART if grade.verdict is Verdict.HOLDS else grade.verdict
        return grade._replace(verdict=verdict), f"{numbers}; too few seeds so far in {', '.join(self.left_out)}"


def _games(data: LearningData, agents: Iterable[str], among: Sequence[str] | None = None) -> ComparedGames:
    """Return the games of the plan in which these agents were to be compared, at least one of which counts.

    Args:
        data: of the experiment.
        agents: at least two.
        among: the games that the question is about; None: all.

    Raises:
        NotEnoughRuns: there are no such games, or runs are missing in each of them.
    """
    agents = list(agents)
    planned = {tuple(name.split("--")[:2]) for name in data.planned}
    wanted = data.games if among is None else among
    games = [game for game in wanted if all((game, agent) in planned for agent in agents)]
    if len(agents) < 2 or not games:
        raise NotEnoughRuns("no such runs")
    few = {
        f"{game} {agent} ({count})": game
        for game in games
        for agent in agents
        if (count := len(data.scores(game, agent))) < SEEDS
    }
    left_out = set(few.values())
    if left_out == set(games):
        named = ", ".join([*few][:4]) + (f" and {len(few) - 4} more" if len(few) > 4 else "")
        raise NotEnoughRuns(f"fewer than {SEEDS} seeds of {named}")
    return ComparedGames([game for game in games if game not in left_out], [g for g in games if g in left_out])


def _in_each(experiments: LearningExperiments, check: Callable[[LearningData], Finding]) -> list[ConventionVerdict]:
    """Return a verdict per experiment; not tested where runs are missing."""
    found = []
    for name in LEARNING:
        if name in experiments:
            try:
                (verdict, score), numbers = check(experiments[name])
            except NotEnoughRuns as missing:
                (verdict, score), numbers = Grade(Verdict.NOT_TESTED, ""), str(missing)
            found.append(ConventionVerdict(TITLES[name], verdict, numbers, score))
    return found


# ---- QL-DQN against fixed depths


def _each_game(agent: str) -> Callable[[LearningExperiments], list[ConventionVerdict]]:
    """Return the test whether an agent's mean score is at least the best fixed depth's in every game."""

    def check(data: LearningData) -> Finding:
        fixed = _fixed_depths(data)
        passed, parts = [], []
        games = _games(data, [agent, *fixed])
        for game in games.counted:
            mean = data.scores(game, agent).mean()
            best = max(fixed, key=lambda name: data.scores(game, name).mean())
            passed.append(bool(mean >= data.scores(game, best).mean()))
            other = f"{data.scores(game, best).mean():.4g} ({data.styles[best].title})"
            parts.append(f"{game} {mean:.4g} against {other}")
        return games.qualify(verdicts.grade(passed), "; ".join(parts))

    return lambda experiments: _in_each(experiments, check)


def _together(agent: str) -> Callable[[LearningExperiments], list[ConventionVerdict]]:
    """Return the test whether an agent's normalised IQM is at least the best fixed depth's over all games."""
    return lambda experiments: _in_each(experiments, lambda data: _iqm_against_best_depth(data, agent))


def _iqm_against_best_depth(data: LearningData, agent: str) -> Finding:
    fixed = _fixed_depths(data)
    games = _games(data, [agent, *fixed])
    strata = {name: _normalised(data, games.counted, name) for name in (agent, *fixed)}
    best = max(fixed, key=lambda name: statistics.stratified(strata[name]).value)
    gap = statistics.stratified_difference(strata[agent], strata[best])
    titles = f"{data.styles[agent].title} less {data.styles[best].title}"
    return games.qualify(_at_least(gap), f"{titles}: {gap.value:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]")


def _normalised(data: LearningData, games: Sequence[str], agent: str) -> list[FloatArray]:
    strata = []
    for game in games:
        scale = data.scale(game)
        if scale is None:
            raise NotEnoughRuns(f"no agent is above random play in {game}, or that was not measured")
        strata.append((data.scores(game, agent) - scale[0]) / (scale[1] - scale[0]))
    return strata


def _at_least(gap: Estimate) -> Grade:
    """Return 'holds' if the whole interval of a difference is at least 0, 'in part' if only its value is."""
    if not gap.enough:
        return Grade(Verdict.NOT_TESTED, f"{gap.samples} runs, an interval takes {statistics.FEWEST_SAMPLES}")
    if gap.low >= 0.0:
        return Grade(Verdict.HOLDS, "")
    return Grade(Verdict.IN_PART if gap.value >= 0.0 else Verdict.FAILS, "")


def _short_prior(experiments: LearningExperiments) -> list[ConventionVerdict]:
    """Test every QL-DQN whose Ṽ* is a DQN that was trained first, within its time, against the best fixed depth."""
    found = []
    for name in LEARNING:
        there = {name: experiments[name]} if name in experiments else {}
        agents = _adaptive_agents(experiments[name], _has_trained_prior) if there else []
        agents = [agent for agent in agents if agent != ONE_HEAD]
        for check in map(_together, agents or [PAPERS]):
            found += check(there)
    return found


def _has_trained_prior(config: JsonDict) -> bool:
    return bool(config.get("prior") == "train")


def _has_one_head(config: JsonDict) -> bool:
    """Return whether all depths of exhaustive trees share a head; rollouts have no depths to share one."""
    return bool(config.get("shared_head") and config.get("search_shape", "exhaustive") == "exhaustive")


def _adaptive_agents(data: LearningData, holds: Callable[[JsonDict], bool]) -> list[str]:
    """Return the agents that choose their depths, ablations left out, whose finished runs had such settings."""
    return [
        agent
        for agent in data.agents
        if data.styles[agent].depth is None
        and (data.styles[agent].usual or agent == ONE_HEAD)
        and all(
            holds(record["definition"]["config"]) for game in data.games for record in data.runs.get((game, agent), [])
        )
    ]


# ---- depths against each other


def _deeper_by_steps(experiments: LearningExperiments) -> list[ConventionVerdict]:
    """Test whether one level more gives a higher training score after as many steps, in every game."""

    def check(data: LearningData) -> Finding:
        fixed = _fixed_depths(data)
        passed, parts = [], []
        games = _games(data, fixed)
        for game in games.counted:
            steps, scores = _scores_at_equal_steps(data, game, fixed)
            passed += [bool(deeper >= score) for score, deeper in pairwise(scores)]
            parts.append(f"{game} {', '.join(f'{score:.3g}' for score in scores)} after {steps:,.0f} steps")
        depths = f"{data.styles[fixed[0]].title} to {data.styles[fixed[-1]].title}"
        return games.qualify(verdicts.grade(passed), f"{depths}: {'; '.join(parts)}")

    return _in_each(experiments, check)


def _scores_at_equal_steps(data: LearningData, game: str, agents: Sequence[str]) -> tuple[float, list[float]]:
    """Return how many steps every run of these agents has made, and the agents' training scores there."""
    curves = {agent: [score_curve(record, "steps") for record in data.runs[game, agent]] for agent in agents}
    if any(not len(x) for seeds in curves.values() for x, _ in seeds):
        raise NotEnoughRuns(f"no training episode was over in some runs of {game}")
    steps = min(x[-1] for seeds in curves.values() for x, _ in seeds)
    return steps, [float(np.mean([np.interp(steps, x, y) for x, y in curves[agent]])) for agent in agents]


def _unstable_depth(experiments: LearningExperiments) -> list[ConventionVerdict]:
    """Test whether the seeds of depth 3 differ most in Tutankham."""

    def check(data: LearningData) -> Finding:
        fixed = _fixed_depths(data)
        _games(data, fixed, [UNSTABLE_GAME])
        spreads = {agent: statistics.mean_and_std(_training_scores(data, UNSTABLE_GAME, agent)) for agent in fixed}
        largest = max(spreads, key=lambda agent: spreads[agent][1])
        numbers = ", ".join(
            f"{data.styles[agent].title} {mean:.3g} ± {deviation:.3g}" for agent, (mean, deviation) in spreads.items()
        )
        return verdicts.grade([largest == UNSTABLE]), numbers

    return _in_each({name: data for name, data in experiments.items() if name == "atari"}, check)


def _training_scores(data: LearningData, game: str, agent: str) -> FloatArray:
    scores = data.training_scores(game, agent)
    if len(scores) < SEEDS:
        raise NotEnoughRuns(f"fewer than {SEEDS} runs of {agent} have training episodes that were over")
    return scores


# ---- heads


def _one_head(experiments: LearningExperiments) -> list[ConventionVerdict]:
    """Test whether QL-DQN with one head for all depths ends no better than random play."""

    def check(data: LearningData) -> Finding:
        passed, parts, left_out = list[bool](), list[str](), list[str]()
        for agent in _adaptive_agents(data, _has_one_head):
            games = _games(data, [agent, BASELINE])
            left_out += [game for game in games.left_out if game not in left_out]
            for game in games.counted:
                random, mean = data.random_score(game), data.scores(game, agent).mean()
                if random is None:
                    raise NotEnoughRuns(f"no random play of {game}")
                passed.append(bool(mean <= random))
                parts.append(f"{data.styles[agent].title}, {game} {mean:.4g} against {random:.3g}")
        if not passed:
            raise NotEnoughRuns("no such runs")
        return ComparedGames([], left_out).qualify(verdicts.grade(passed), "; ".join(parts))

    return _in_each(experiments, check)


QL_SECTION = "QL-DQN and Atari Experiments"
PICKED = "The best fixed depth is picked in hindsight, which favours it."
EACH_GAME_TEST = (
    f"Mean score of final evaluations at least that of the best of depths 0 to 3, game by game, {SEEDS} seeds or more. "
    f"{PICKED}"
)
TOGETHER_TEST = (
    "Interquartile mean of normalised final scores less the best fixed depth's: its 95% interval is at least 0 (in "
    f"part: the difference is, its interval is not). {PICKED}"
)

CLAIMS = (
    Claim(
        "learning-each-game-paper",
        f"{QL_SECTION}, Figure 6",
        "At equal training time the paper's QL-DQN is at least on par with the best fixed depth in every game.",
        EACH_GAME_TEST,
        LEARNING,
        _each_game(PAPERS),
    ),
    Claim(
        "learning-each-game",
        "this project",
        "At equal training time our QL-DQN is at least on par with the best fixed depth in every game.",
        EACH_GAME_TEST,
        LEARNING,
        _each_game(OURS),
    ),
    Claim(
        "learning-together-paper",
        f"{QL_SECTION}, Figure 6",
        "Over all games together the paper's QL-DQN is at least on par with the best fixed depth.",
        TOGETHER_TEST,
        LEARNING,
        _together(PAPERS),
    ),
    Claim(
        "learning-together",
        "this project",
        "Over all games together our QL-DQN is at least on par with the best fixed depth.",
        TOGETHER_TEST,
        LEARNING,
        _together(OURS),
    ),
    Claim(
        "learning-deeper-by-steps",
        "Additional Plots, Figure 7",
        "By steps of the environment, the larger the depth, the better the score.",
        "Training score of each depth at least that of the one before, after as many steps as the slowest made, in "
        "every game.",
        LEARNING,
        _deeper_by_steps,
    ),
    Claim(
        "learning-unstable-depth",
        "Additional Plots, Figure 7",
        "Depth 3 is unstable in Tutankham.",
        "Of depths 0 to 3 it has the largest standard deviation over seeds of the last training episodes' mean score.",
        ("atari",),
        _unstable_depth,
    ),
    Claim(
        "learning-heads",
        QL_SECTION,
        "Depths need a head each: one that learns from targets of all depths diverges.",
        "QL-DQN on exhaustive trees with one head for all depths ends no better than random play, in every game.",
        LEARNING,
        _one_head,
        "In a deterministic environment the targets of all depths have the same fixed point Q*.",
    ),
    Claim(
        "learning-short-prior",
        QL_SECTION,
        "As Ṽ* a DQN suffices that was trained for a short time.",
        "QL-DQN with such a Ṽ*, its training counted: normalised interquartile mean less the best fixed depth's, 95% "
        "interval at least 0 (in part: the difference is, its interval is not).",
        LEARNING,
        _short_prior,
    ),
)
