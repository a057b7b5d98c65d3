"""The learning experiment on MinAtar: QL-DQN against DQN with trees of depth 0 to 3, four processor minutes each."""

from __future__ import annotations

import dataclasses

from adalook.experiments.learning.suite import AGENTS, Game, Suite
from adalook.learning.config import Config
from adalook.learning.presets import minatar, minatar_ql

GAMES = {
    name: Game(name, f"MinAtar/{name}-v1", *episodes)
    for name, episodes in {
        "Breakout": (3, 20),
        "Asterix": (2, 10),
        "Freeway": (1, 4, 10),  # 2,500 steps each, whoever plays
        "SpaceInvaders": (),
        "Seaquest": (),
    }.items()
}


def paper_config() -> Config:
    """Return the settings of the paper's agents: the preset, with what four minutes ask for.

    Such runs have about 100,000 steps: the published 100,000 steps of annealing and 5,000 without learning would leave
    most of a run, and more of a slow agent's than of a fast one's, to chance. Episodes are cut off where Freeway's end:
    a greedy player may bounce the ball for ever without hitting a brick.
    """
    return _for_minutes(minatar())


def adalook_config() -> Config:
    """Return the settings of QL-DQN as this project has it: its preset, with what four minutes ask for."""
    return _for_minutes(minatar_ql())


def _for_minutes(preset: Config) -> Config:
    return dataclasses.replace(
        preset, epsilon_anneal_steps=20_000, learning_starts_steps=1_000, max_episode_steps=2_500
    )


SUITE = Suite(
    name="minatar",
    games=GAMES,
    paper_config=paper_config,
    adalook_config=adalook_config,
    usual_games=tuple(GAMES),
    usual_agents=tuple(name for name, agent in AGENTS.items() if agent.by_default),
    usual_seeds=5,
    usual_seconds=240.0,
)
