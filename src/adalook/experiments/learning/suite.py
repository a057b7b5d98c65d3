"""Agents by name, suites of games, and the jobs of a learning experiment.

Every agent gets the same budget of *processor* time, tree search and prior included, so that a run does not depend on
what else the machine does. A suite is a family of games: see `minatar` and `atari`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adalook import _validation as validation
from adalook.errors import ArgumentError, did_you_mean
from adalook.experiments.engines.base import JobResult
from adalook.learning.agents.base import Agent
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.config import RETIRED, Config
from adalook.learning.effects import check_effects

JsonDict = dict[str, Any]

RANDOM = "random"
"""The name of random play among agents: measured once per game, to normalise by."""
QL_SETTINGS = {
    "shared_head",
    "learn_every_action",
    "nodes_per_step",
    "deepest_tree",
    "depth_shares",
    "depth_control",
    "ranked_transitions",
    "prior",
    "prior_steps",
    "train_shallow_heads",
    "head_balance",
    "search_shape",
    "stage_nodes",
    "rollout_steps",
    "rollout_repeat",
    "rollout_greedy",
    "learn_real_steps",
    "learn_tree_steps",
    "bootstrap",
    "leaf_correction",
    "leaf_trust",
    "beam_width",
}
"""Settings that mean nothing to an agent with one depth: tuning QL-DQN does not make runs of DQN out of date."""
LEARNING_SETTINGS = {
    "gradient_steps",
    "learning_rate",
    "target_period_steps",
    "n_steps",
    "value_scale",
    "prior",
    "leaf_trust",
}
"""Settings that mean nothing to a search alone, which neither learns nor asks a network."""


# ---- agents


@dataclass(frozen=True)
class LineStyle:
    """Colour and dashes of an agent's curves: colours of Okabe and Ito, dashes for those who see none."""

    colour: str
    dashes: tuple[float, ...] = ()
    """Lengths of dashes and gaps; empty for a whole line."""
    width: float = 1.4


@dataclass(frozen=True)
class AgentSpec:
    """An agent with its settings; `depth` None is QL-DQN, otherwise DQN with trees of that depth."""

    title: str
    style: LineStyle
    depth: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_default: bool = True
    """False: takes part only if it is named."""
    adalook_config: bool = False
    """Begins with the suite's settings for QL-DQN as this project has it, not with those of the paper's agents."""
    learns: bool = True
    """False: is judged untrained."""
    evaluation_nodes: int | None = None
    """Instead of the game's."""

    def config(self, suite: Suite) -> Config:
        """Return its settings for the games of a suite."""
        return dataclasses.replace(
            suite.adalook_config() if self.adalook_config else suite.paper_config(),
            **{**self.settings, **suite.settings},
        )

    def make(self, suite: Suite, game: Game, seed: int, **changes: Any) -> Agent:
        """Return the untrained agent for a game."""
        config = dataclasses.replace(self.config(suite), **changes)
        if self.depth is None:
            return QLDQN(game.env, config, seed=seed)
        return DQN(game.env, config, depth=self.depth, seed=seed)


ONE_SHARE: JsonDict = {"depth_control": "one_share"}
"""One share for all depths, under chance as well."""
PUBLISHED_OPTIMIZER: JsonDict = ONE_SHARE | {
    name: getattr(Config(), name)
    for name in ("optimizer", "learning_rate", "optimizer_epsilon", "second_moment_decay", "target_period_steps")
}
"""The same, with MinAtar's optimizer, which fixed depths and the paper's QL-DQN have there."""
PUBLISHED_RECIPE: JsonDict = {**PUBLISHED_OPTIMIZER, "exploration_repeat": 0.0}
"""The same, with random actions of one step."""
PRIOR: JsonDict = {"prior": "train", "prior_steps": 10_000}
"""A prior of its own, whose training is part of the budget: about a tenth of four minutes on MinAtar."""
PAPER: JsonDict = {"nodes_per_step": 0.0, "depth_shares": (0.3, 0.1), "shared_head": False, "learn_every_action": False}
"""Shares as they are given, a head for each depth, and learning from the action taken alone."""
FAST_TARGETS: JsonDict = {"n_steps": 20, "target_period_steps": 50, "learning_rate": 2e-4}
"""Atari's QL-DQN with targets that follow fast and look 20 real steps ahead."""
LEARNT_VALUES: JsonDict = {
    "prior": "network",
    "leaf_trust": 0.3,
    "value_scale": 20.0,
    "n_steps": 20,
    "gradient_steps": 4,
    "learning_rate": 1e-4,
    "target_period_steps": 500,
}
"""Values that twenty minutes suffice to learn, and that are believed in part."""
DASHES = ((1.0, 1.0), (4.0, 1.5), (5.0, 1.2, 1.0, 1.2), (7.0, 1.5))
"""By depth."""


def _every_action(depth: int) -> AgentSpec:
    """Return a fixed depth that learns about every action, as QL-DQN does, to see what the lead of that is due to."""
    settings = {"nodes_per_step": 0.0, "depth_shares": (1.0,) * (depth - 1)}
    style = LineStyle("#009e73", DASHES[depth])
    return AgentSpec(f"depth {depth}, every action", style, None, settings, by_default=False)


def _same_recipe(depth: int) -> AgentSpec:
    """Return a fixed depth that also has QL-DQN's optimizer and exploration: all that is left then is the depth."""
    return dataclasses.replace(
        _every_action(depth),
        title=f"depth {depth}, QL-DQN's recipe",
        style=LineStyle("#f0e442", DASHES[depth]),
        adalook_config=True,
    )


def _ablation(title: str, **settings: Any) -> AgentSpec:
    """Return QL-DQN with something changed, to see what that is worth."""
    return AgentSpec(
        f"QL-DQN, {title}",
        LineStyle("#009e73", (3.0, 1.0)),
        None,
        settings,
        by_default=False,
        adalook_config=True,
    )


def _plain_dqn(title: str, dashes: tuple[float, ...], **settings: Any) -> AgentSpec:
    """Return DQN, as the paper compares with, with something changed."""
    return AgentSpec(f"DQN, {title}", LineStyle("#8a8a8a", dashes), 0, settings, by_default=False)


def _search_alone(nodes: int, evaluation_nodes: int | None = None) -> AgentSpec:
    """Return a search without a network, of so many simulated steps a decision."""
    return AgentSpec(
        f"search alone, {nodes} nodes",
        LineStyle("#0072b2", (1.0, 2.0)),
        None,
        {"bootstrap": False, "stage_nodes": nodes, "deepest_tree": 1},
        by_default=False,
        adalook_config=True,
        learns=False,
        evaluation_nodes=evaluation_nodes,
    )


AGENTS = {
    "depth0": AgentSpec("DQN", LineStyle("#8a8a8a", DASHES[0]), 0),
    "depth1": AgentSpec("depth 1", LineStyle("#56b4e9", DASHES[1]), 1),
    "depth2": AgentSpec("depth 2", LineStyle("#0072b2", DASHES[2]), 2),
    "depth3": AgentSpec("depth 3", LineStyle("#000000", DASHES[3]), 3),
    "ql": AgentSpec("QL-DQN", LineStyle("#d55e00", width=2.2), adalook_config=True),
    "ql-prior": AgentSpec(
        "QL-DQN, prior", LineStyle("#e69f00", width=1.8), None, {**PRIOR, **PUBLISHED_RECIPE}, adalook_config=True
    ),
    "ql-paper": AgentSpec("QL-DQN, paper's", LineStyle("#cc79a7"), None, {**PRIOR, **PAPER}),
    "one-head": AgentSpec(
        "QL-DQN, paper's, one head",
        LineStyle("#cc79a7", (3.0, 1.0)),
        None,
        {**PRIOR, **PAPER, "shared_head": True},
        by_default=False,
    ),
    "every1": _every_action(1),
    "every2": _every_action(2),
    "every3": _every_action(3),
    "recipe1": _same_recipe(1),
    "recipe2": _same_recipe(2),
    "recipe3": _same_recipe(3),
    "one-share": _ablation("one share for all depths", **ONE_SHARE),
    "published-optimizer": _ablation("one share, published optimizer", **PUBLISHED_OPTIMIZER),
    "published-recipe": _ablation("one share, published optimizer and exploration", **PUBLISHED_RECIPE),
    "search-alone": _search_alone(300, evaluation_nodes=2_000_000),  # three episodes of five minutes
    "search-60": _search_alone(60),  # as many nodes as QL-DQN has when it learns
    "fast-targets": _ablation("fast targets", **FAST_TARGETS),
    "part-trust": _ablation("leaves believed in part", leaf_trust=0.3),
    "slow-rate": _ablation("learning rate 1e-4", learning_rate=1e-4),
    "even": _ablation("the same budget everywhere", deepest_tree=1, stage_nodes=60),
    "network-prior": _ablation("distance from its own value", prior="network"),
    "values": _ablation("learnt values", **LEARNT_VALUES),
    "guided": _ablation("guided rollouts", rollout_greedy=0.3),
    "taken-action": _ablation("learning about the action taken", learn_every_action=False),
    "corrected": _ablation("leaf correction", leaf_correction=True),
    "beam": _ablation("beam of 8, 8 levels", search_shape="beam", deepest_tree=8),
    "tree-steps": _ablation("learning from the tree's steps", learn_tree_steps=8),
    "no-real-steps": _ablation("without real steps", learn_real_steps=False),
    "clipped": _ablation("clipped rewards, lives for free", reward_scale="clip", life_loss_penalty=0.0),
    "skip4": _ablation("four frames a step", frame_skip=4),
    "resets": _ablation("resets", reset_period_steps=4_000),
    "shifts": _ablation("random shifts", random_shift=4),
    "depth0-ours": AgentSpec(
        "DQN, frames and rewards of QL-DQN",
        LineStyle("#8a8a8a", (3.0, 1.0)),
        0,
        {"frame_skip": 8, "reward_scale": "log", "life_loss_penalty": 1.0},
        by_default=False,
    ),
    "depth0-resets": _plain_dqn("resets", (5.0, 1.5, 1.0, 1.5), reset_period_steps=40_000),
    "depth0-shifts": _plain_dqn("random shifts", (1.0, 1.0), random_shift=4),
}
"""Every agent that the learning experiments know."""


# ---- games


@dataclass(frozen=True)
class Game:
    """A game, and how many episodes it takes to judge a player; 0: it is not judged by playing greedily."""

    name: str
    env: str
    interim_episodes: int = 5
    final_episodes: int = 30
    random_episodes: int = 100
    evaluation_nodes: int | None = None
    """Evaluations end after so many simulated steps: episodes that are not over then count as they are."""


def _no_other_game(name: str) -> Game | None:
    """Return no game: those that a suite names are all there are."""
    del name
    return None


def _no_other_names() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Suite:
    """A family of games that are trained on with the same settings."""

    name: str
    games: Mapping[str, Game]
    paper_config: Callable[[], Config]
    """Settings of the paper's agents: fixed depths, and QL-DQN as the paper has it."""
    adalook_config: Callable[[], Config]
    """Settings of QL-DQN as this project has it."""
    usual_games: tuple[str, ...]
    usual_agents: tuple[str, ...]
    usual_seeds: int
    usual_seconds: float
    other_game: Callable[[str], Game | None] = _no_other_game
    """A game by its name that is not among `games`; None if there is none."""
    other_games: Callable[[], Sequence[str]] = _no_other_names
    """The names that `other_game` knows."""
    usual_steps: int | None = None
    """Runs have a budget of so many agent steps, instead of processor time."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of all its agents, whatever they say themselves."""

    def game(self, name: str) -> Game | None:
        """Return a game by its name; None if there is none."""
        return self.games.get(name) or self.other_game(name)


# ---- the experiment


@dataclass(frozen=True)
class TrainingJob:
    """One training run: a game, an agent and a seed."""

    suite: Suite
    game: Game
    agent: str
    seed: int
    seconds: float
    """Of processor time, for training."""
    steps: int | None = None
    """Agent steps of training, instead of seconds."""
    folder: Path | None = None
    """Where it keeps checkpoints while it trains; None: it begins anew when it is killed."""
    agent_folder: Path | None = None
    """Where the trained agent is exported to; None: nowhere."""

    @property
    def name(self) -> str:
        """Its name among the runs of a suite."""
        return f"{self.game.name}--{self.agent}--{self.seed}"

    @property
    def resources(self) -> dict[str, float]:
        """Resources that a cluster sets aside for it: a core for each thread that computes."""
        if self.agent == RANDOM:
            return {"num_cpus": 1}
        config = AGENTS[self.agent].config(self.suite)
        return {"num_cpus": config.threads + config.overlap}

    def run(self) -> JobResult:
        """Train, judge, and write down what happened."""
        from adalook.experiments.learning.training import run_training_job

        return JobResult(run_training_job(self))

    def share_spent(self, seconds: float, steps: int) -> float:
        """Return the share of its budget that is spent after so much processor time and so many steps."""
        return seconds / self.seconds if self.steps is None else steps / self.steps

    @property
    def evaluation_nodes(self) -> int | None:
        """Simulated steps after which its evaluations end."""
        spec = AGENTS.get(self.agent)
        return self.game.evaluation_nodes if spec is None else spec.evaluation_nodes or self.game.evaluation_nodes

    def definition(self) -> JsonDict:
        """Return what its result depends on, but for the code, as JSON can hold it."""
        if self.agent == RANDOM:
            config = AGENTS["depth0"].config(self.suite).to_plain()
            return {"episodes": self.game.random_episodes, "config": config}
        agent = AGENTS[self.agent]
        capped = {} if self.evaluation_nodes is None else {"evaluation_nodes": self.evaluation_nodes}
        budget = {} if self.steps is None else {"steps": self.steps}
        return capped | {
            "seconds": self.seconds if agent.learns else 0.0,
            **budget,
            "episodes": [self.game.interim_episodes, self.game.final_episodes],
            "depth": agent.depth,
            "config": agent.config(self.suite).to_plain(),
        }

    def is_result(self, record: JsonDict) -> bool:
        """Return whether a record is of this very job, as it is defined today.

        A setting that the record does not know was added since, and is taken to have had no effect at its default.
        Where that is wrong, delete the runs of the agents that it changes.
        """
        return _relevant(record.get("definition", {})) == _relevant(self.definition())


def _relevant(definition: JsonDict) -> JsonDict:
    """Return the part of a definition that decides whether two runs are of the same job."""
    plain: JsonDict = json.loads(json.dumps(definition))
    ignored = set(RETIRED) | (QL_SETTINGS if plain.get("depth", 0) is not None else set())
    config = Config().to_plain() | plain.get("config", {})
    if not config["bootstrap"]:
        ignored |= LEARNING_SETTINGS
    return plain | {"config": {name: value for name, value in config.items() if name not in ignored}}


@dataclass(frozen=True)
class LearningExperiment:
    """Games × agents × seeds of a suite, each with the same budget of processor time."""

    suite: Suite
    games: tuple[str, ...]
    agents: tuple[str, ...]
    seeds: int
    seconds: float
    steps: int | None = None
    """Agent steps of each run, instead of seconds of processor time, which are then 0."""

    @property
    def name(self) -> str:
        """The name of the suite."""
        return self.suite.name

    @property
    def chosen_games(self) -> list[Game]:
        """The games that it is about."""
        return [game for name in self.games if (game := self.suite.game(name)) is not None]

    def jobs(self) -> list[TrainingJob]:
        """Return random play, then the runs by seed, game and agent: whatever part is finished is a fair comparison."""
        games = self.chosen_games
        return [
            *(self._job(game, RANDOM, 0) for game in games if game.random_episodes),
            *(self._job(game, agent, seed) for seed in range(self.seeds) for game in games for agent in self.agents),
        ]

    def job(self, name: str) -> TrainingJob | None:
        """Return the job of a name such as `Breakout--ql--0`, with this budget; None if the suite has no such job."""
        game_name, _, rest = name.partition("--")
        agent, _, seed = rest.partition("--")
        game = self.suite.game(game_name)
        if game is None or agent not in {*AGENTS, RANDOM} or not seed.isdecimal():
            return None
        return self._job(game, agent, int(seed))

    def _job(self, game: Game, agent: str, seed: int) -> TrainingJob:
        return TrainingJob(self.suite, game, agent, seed, self.seconds, self.steps)


def learning_experiment(
    suite: Suite,
    games: tuple[str, ...] = (),
    agents: tuple[str, ...] = (),
    seeds: int | None = None,
    seconds: float | None = None,
) -> LearningExperiment:
    """Return an experiment on some games and agents of a suite; what is not given is the suite's own choice."""
    steps = suite.usual_steps if seconds is None else None
    if steps is None:
        seconds = validation.positive.validate("seconds", suite.usual_seconds if seconds is None else seconds)
    choices = (
        ("game", games, suite.games, suite.game),
        ("agent", agents, AGENTS, AGENTS.get),
    )
    for what, chosen, known, find in choices:
        for name in chosen:
            if find(name) is None:
                others = suite.other_games() if what == "game" else ()
                raise ArgumentError(
                    f"there is no such {what} in {suite.name}",
                    expected=", ".join(known) + (f", or one of {len(others)} others" if others else ""),
                    got=repr(name),
                    remedy=did_you_mean(name, [*known, *others]),
                )
    games = games or suite.usual_games
    for name in agents:
        _check_agent(name, suite, games[0])
    return LearningExperiment(
        suite,
        games,
        agents or suite.usual_agents,
        validation.integer(1).validate("seeds", suite.usual_seeds if seeds is None else seeds),
        0.0
        if steps is not None
        else validation.positive.validate("seconds", suite.usual_seconds if seconds is None else seconds),
        steps,
    )


def _check_agent(name: str, suite: Suite, game: str) -> None:
    """Raise unless every setting of an agent has an effect in a suite: some ablations are of Atari's search alone."""
    spec, found = AGENTS[name], suite.game(game)
    assert found is not None
    try:
        check_effects("qldqn" if spec.depth is None else "dqn", found.env, spec.config(suite), spec.settings)
    except ArgumentError as error:
        reason = str(error).partition(". ")[0]
        raise ArgumentError(
            f"agent {name} would not be in {suite.name} what its name says: {reason}",
            remedy="leave it out, or reproduce atari",
        ) from error
