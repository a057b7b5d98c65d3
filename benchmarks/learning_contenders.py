"""What the learning benchmark compares: games, agents, and the settings that they share. To tune one, edit it here."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import adalook as al
from adalook.learning.agents.base import Agent
from adalook.learning.config import Config
from adalook.learning.presets import minatar

Record = dict[str, Any]

SHARED: Record = {
    # Runs of four minutes have about 100,000 steps: the published 100,000 steps of annealing and 5,000 without learning
    # would leave most of a run, and more of a slow agent's than of a fast one's, to chance.
    "epsilon_anneal_steps": 20_000,
    "learning_starts_steps": 1_000,
    # As long as Freeway's own episodes. A greedy player may bounce the ball for ever without hitting a brick.
    "max_episode_steps": 2_500,
}
"""What all contenders change of the MinAtar preset."""

QL_SETTINGS = {
    "shared_head",
    "learn_every_action",
    "nodes_per_step",
    "deepest_tree",
    "depth_shares",
    "ranked_transitions",
    "prior",
    "prior_steps",
    "train_shallow_heads",
    "head_balance",
}
"""Settings that mean nothing to an agent with one depth: tuning QL-DQN does not make runs of DQN out of date."""

RANDOM = "random"
"""The name of random play among agents: measured once per game, to normalise by."""


@dataclass(frozen=True)
class Game:
    """A game, and how many episodes it takes to judge a player."""

    name: str
    interim_episodes: int = 5
    final_episodes: int = 30
    random_episodes: int = 100

    @property
    def env(self) -> str:
        return f"MinAtar/{self.name}-v1"


@dataclass(frozen=True)
class Contender:
    """An agent with its settings; `depth` None is QL-DQN, else DQN with trees of that depth."""

    title: str
    depth: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    asked_for: bool = False
    """Takes part only if it is named."""

    @property
    def config(self) -> Config:
        return dataclasses.replace(minatar(), **{**SHARED, **self.settings})

    def make(self, env: str, seed: int, **changes: Any) -> Agent:
        config = dataclasses.replace(self.config, **changes)
        if self.depth is None:
            return al.QLDQN(env, config, seed=seed)
        return al.DQN(env, config, depth=self.depth, seed=seed)

    def describe(self) -> Record:
        """What its results depend on, as JSON can hold it."""
        return {"depth": self.depth, "config": self.config.to_plain()}


GAMES = {
    game.name: game
    for game in (
        Game("Breakout", interim_episodes=3, final_episodes=20),
        Game("Asterix", interim_episodes=2, final_episodes=10),
        Game("Freeway", interim_episodes=1, final_episodes=4, random_episodes=10),  # 2,500 steps each, whoever plays
        Game("SpaceInvaders"),
        Game("Seaquest"),
    )
}
PRIOR: Record = {"prior": "train", "prior_steps": 10_000}
"""A prior of its own, whose training is part of the budget: about a tenth of four minutes."""
PAPER: Record = {"nodes_per_step": 0.0, "depth_shares": (0.3, 0.1), "shared_head": False, "learn_every_action": False}
"""Shares as they are given, a head for each depth, and learning from the action taken alone."""

CONTENDERS = {
    "depth0": Contender("DQN", 0),
    "depth1": Contender("depth 1", 1),
    "depth2": Contender("depth 2", 2),
    "depth3": Contender("depth 3", 3),
    "ql": Contender("QL-DQN", None),
    "ql-prior": Contender("QL-DQN, prior", None, PRIOR),
    "ql-paper": Contender("QL-DQN, paper's", None, {**PRIOR, **PAPER}),
    # What of QL-DQN's lead is due to adaptive depth, and what to learning about every action?
    **{
        f"every{depth}": Contender(
            f"depth {depth}, every action",
            None,
            {"nodes_per_step": 0.0, "depth_shares": (1.0,) * (depth - 1)},
            asked_for=True,
        )
        for depth in (1, 2, 3)
    },
}
USUAL = [name for name, contender in CONTENDERS.items() if not contender.asked_for]
FIXED = [name for name, contender in CONTENDERS.items() if contender.depth is not None]


@dataclass(frozen=True)
class Job:
    """One run: a game, an agent and a seed."""

    game: str
    agent: str
    seed: int
    seconds: float
    """Of processor time, for training."""

    @property
    def name(self) -> str:
        return f"{self.game}--{self.agent}--{self.seed}"

    def definition(self) -> Record:
        """What its result depends on, but for the code."""
        game = GAMES[self.game]
        if self.agent == RANDOM:
            return {"episodes": game.random_episodes, "config": Contender("", 0).config.to_plain()}
        return {
            "seconds": self.seconds,
            "episodes": [game.interim_episodes, game.final_episodes],
            **CONTENDERS[self.agent].describe(),
        }

    def is_result(self, record: Record) -> bool:
        """Whether a record is of this very job, as it is defined today.

        A setting that the record does not know was added since, and is taken to have had no effect at its default.
        Where that is wrong, delete the runs of the agents that it changes.
        """
        return _relevant(record.get("definition", {})) == _relevant(self.definition())


def _relevant(definition: Record) -> Record:
    """A definition as it is compared, in a run's file or not."""
    plain: Record = json.loads(json.dumps(definition))
    ignored = QL_SETTINGS if plain.get("depth", 0) is not None else set()
    config = Config().to_plain() | plain.get("config", {})
    return plain | {"config": {name: value for name, value in config.items() if name not in ignored}}
