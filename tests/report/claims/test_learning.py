"""Verdicts on the claims about learning: data that are so and data that are not, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from adalook.report.claims.table import check_claims, check_learning_claims, claims_markdown
from adalook.report.claims.verdicts import CheckedClaim, Verdict
from adalook.report.data.learning import RANDOM, AgentStyle, LearningData

GAMES = ("VideoPinball", "Tutankham", "Solaris", "Berzerk")
DEPTHS = {f"depth{depth}": depth for depth in range(4)}
AGENTS = (*DEPTHS, "ql", "ql-paper", "one-head")
HOLDS, IN_PART, FAILS, NOT_TESTED = Verdict.HOLDS, Verdict.IN_PART, Verdict.FAILS, Verdict.NOT_TESTED
USUAL = {"depth0": 10.0, "depth1": 20.0, "depth2": 30.0, "depth3": 40.0, "ql": 80.0, "ql-paper": 60.0, "one-head": 0.5}
"""Mean scores by which everything that the paper says is so."""


def record(game: str, agent: str, seed: int, score: float) -> dict[str, Any]:
    """A run that scores the same all the time."""
    config = {"shared_head": agent != "ql-paper", "prior": "self" if agent == "ql" else "train"}
    config["search_shape"] = "rollouts" if agent == "ql" else "exhaustive"
    steps = [100] * 100
    return {
        "game": game,
        "agent": agent,
        "seed": seed,
        "definition": {"config": config, "seconds": 10.0},
        "final": {"score": score},
        "last_training_score": score,
        "timeline": {"steps": steps, "episodes": [1] * 100, "scores": [score] * 100},
    }


def experiment(
    means: Mapping[str, float] = USUAL, games: tuple[str, ...] = GAMES, seeds: int = 3, spread: float = 1.0
) -> LearningData:
    """An experiment whose agents have these means in every game; seeds of depth 3 differ most in Tutankham."""
    runs = {(game, RANDOM): [{"game": game, "agent": RANDOM, "final": {"score": 1.0}}] for game in games}
    for game in games:
        for agent, mean in means.items():
            wide = 5.0 * spread if (game, agent) == ("Tutankham", "depth3") else spread
            offsets = [wide * (2.0 * seed / max(1, seeds - 1) - 1.0) for seed in range(seeds)]
            runs[game, agent] = [record(game, agent, seed, mean + off) for seed, off in enumerate(offsets)]
    styles = {
        agent: AgentStyle(agent, DEPTHS.get(agent), "#000000", (), 1.0, usual=agent != "one-head") for agent in AGENTS
    }
    planned = tuple(f"{game}--{agent}--{seed}" for game in GAMES for agent in AGENTS for seed in range(3))
    return LearningData("atari", 10.0, {}, GAMES, dict.fromkeys(GAMES, 1), styles, runs, planned, missing=())


def checked(data: LearningData) -> dict[str, CheckedClaim]:
    return {claim.id: claim for claim in check_learning_claims({data.name: data})}


def test_all_claims_hold_on_data_that_are_as_the_paper_says() -> None:
    assert {claim.verdict for claim in checked(experiment()).values()} == {HOLDS}


@pytest.mark.parametrize(
    ("means", "claim", "verdict"),
    [
        ({"ql": 30.0}, "learning-each-game", FAILS),
        ({"ql": 30.0}, "learning-together", FAILS),
        ({"ql-paper": 30.0}, "learning-each-game-paper", FAILS),
        ({"ql-paper": 40.1}, "learning-together-paper", IN_PART),
        ({"ql-paper": 40.1}, "learning-each-game-paper", HOLDS),
        ({"ql-paper": 40.1}, "learning-short-prior", IN_PART),
        ({"depth3": 25.0}, "learning-deeper-by-steps", IN_PART),
        ({"depth3": 4.0, "depth2": 5.0}, "learning-deeper-by-steps", FAILS),
        ({"one-head": 50.0}, "learning-heads", FAILS),
    ],
)
def test_verdicts_follow_the_scores(means: dict[str, float], claim: str, verdict: Verdict) -> None:
    assert checked(experiment({**USUAL, **means}))[claim].verdict is verdict


def test_depth_three_is_stable_if_another_depth_varies_more() -> None:
    data = experiment()
    for run, score in zip(data.runs["Tutankham", "depth1"], (0.0, 20.0, 40.0), strict=True):
        run["last_training_score"] = score
    assert checked(data)["learning-unstable-depth"].verdict is FAILS


@pytest.mark.parametrize(
    "data",
    [
        experiment(seeds=2),
        experiment({name: USUAL[name] for name in ("depth0", "ql")}),
        experiment({}),
    ],
    ids=["two seeds", "depths missing", "nothing"],
)
def test_nothing_is_said_while_runs_are_missing_in_every_game(data: LearningData) -> None:
    claims = checked(data)
    tutankham = claims.pop("learning-unstable-depth")
    assert {claim.verdict for claim in claims.values()} == {NOT_TESTED}
    assert tutankham.verdict is (HOLDS if len(data.scores("Tutankham", "depth3")) == 3 else NOT_TESTED)
    assert all(each.numbers for claim in claims.values() for each in claim.verdicts), "it says what is missing"


def test_what_holds_in_some_games_holds_in_part_while_others_are_missing() -> None:
    claims = checked(experiment(games=GAMES[:3]))
    assert claims.pop("learning-unstable-depth").verdict is HOLDS, "it is about Tutankham alone"
    assert {claim.verdict for claim in claims.values()} == {IN_PART}
    assert all(GAMES[3] in each.numbers for claim in claims.values() for each in claim.verdicts), "it names the game"


def test_what_fails_in_some_games_fails_whatever_is_missing() -> None:
    claims = checked(experiment({**USUAL, "ql": 30.0}, games=GAMES[:3]))
    assert claims["learning-each-game"].verdict is FAILS


def test_agents_on_rollouts_say_nothing_about_heads() -> None:
    means = {agent: score for agent, score in USUAL.items() if agent != "one-head"}
    assert checked(experiment(means))["learning-heads"].verdict is NOT_TESTED


def test_runs_without_episodes_are_no_runs_by_steps() -> None:
    data = experiment()
    data.runs["Solaris", "depth2"][0]["timeline"]["episodes"] = [0] * 100
    claim = checked(data)["learning-deeper-by-steps"]
    assert claim.verdict is NOT_TESTED
    assert "Solaris" in claim.verdicts[0].numbers


def test_claims_about_learning_are_rows_of_the_one_table() -> None:
    text = claims_markdown(check_claims({}, {"atari": experiment()}))
    row = next(line for line in text.splitlines() if "Depth 3 is unstable" in line)
    assert row.count(f"{HOLDS.value}") == 2
    assert "| Experiment | Verdict | Passed | Numbers |" in text
    assert "| Atari | holds |" in text
