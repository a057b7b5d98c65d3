"""QL-DQN (the paper, section "QL-DQN and Atari Experiments"), put together. Its seven points, and where they are:

1  a Q-function per depth on a shared trunk        network.QNetwork
2  a replay memory sorted by distance to Ṽ*        ranks.RankedDistances, replay.Replay
3  shares θ of it                                  quantile.BufferRanks, Config.shares
4  the depth, level by level                       quantile.QuantileLookahead
5  the first action of the best leaf               acting.TreeActor
6  what is stored                                  loop.Trainer, replay.Replay
7  targets from the same head at the leaf          targets.bootstrap_targets
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from adalook.errors import ArgumentError
from adalook.learning.acting import Actor, TreeActor
from adalook.learning.agents.base import Agent
from adalook.learning.agents.dqn import DQN
from adalook.learning.config import Config, config_for
from adalook.learning.depth import (
    NetworkPrior,
    QuantileLookahead,
    RankedDistances,
    SharesThatFollowTheCost,
    least_depth,
    shares_by_depth,
)
from adalook.learning.runs.directory import env_and_config, read_run_config
from adalook.learning.training import Round


class QLDQN(Agent):
    """Quantile-based lookahead DQN (the paper, section "QL-DQN and Atari Experiments").

    `config.prior` says what Ṽ* is: "self" needs none; "train" trains a DQN of depth 0 first; else it is a run of one.
    """

    kind = "qldqn"

    def __init__(self, env: Any, config: Config | None = None, *, seed: int = 0, prior: str | None = None) -> None:
        config = config_for(env) if config is None else config
        if prior is not None:
            config = dataclasses.replace(config, prior=str(prior))
        super().__init__(env, config, depths=range(1, config.max_depth + 1), seed=seed)
        self._prior_agent: DQN | None = None
        self._prior_is_ready = config.prior == "self"
        self._actor: TreeActor | None = None
        self._following: SharesThatFollowTheCost | None = None
        if config.nodes_per_step:
            self._following = SharesThatFollowTheCost(config.max_depth, config.nodes_per_step)

    @property
    def shares(self) -> Mapping[int, float]:
        """θ by depth, as it is now."""
        return shares_by_depth(self.config.depth_shares) if self._following is None else self._following

    @property
    def actor(self) -> Actor:
        if self._actor is None:
            prior = self.prior_agent
            rule = QuantileLookahead(
                self.shares,
                self.ranks,
                None if prior is None else NetworkPrior(prior.evaluator),
            )
            self._actor = TreeActor(
                self.evaluator,
                rule,
                discount=self.config.discount,
                least_depth=least_depth(self.config.depth_shares) if self._following is None else 1,
                store_shallow=self.config.train_shallow_heads,
                every_action=self.config.learn_every_action,
                workers=self.config.search_workers,
            )
        return self._actor

    @property
    def prior_agent(self) -> DQN | None:
        """Whose values are Ṽ*: a DQN of depth 0, trained or in training; None if the search is its own prior."""
        if self._prior_agent is None and self.config.prior != "self":
            if self.config.prior == "train":
                self._prior_agent = DQN(self.env, self.config, seed=self.seed)
            else:
                self._prior_agent = self._load_prior(Path(self.config.prior))
                self._prior_is_ready = True
        return self._prior_agent

    def _load_prior(self, directory: Path) -> DQN:
        """A prior is of use only if it values the same things: the same world, a lost life and γ counted alike."""
        its, mine = read_run_config(directory), self.run_config()
        for what, expected, got in (
            ("agent", DQN.kind, its["agent"]),
            ("depth", 0, its.get("depth")),
            ("world", mine["env"], its["env"]),
            *((name, mine["config"][name], its["config"].get(name)) for name in ("discount", "life_loss_ends")),
        ):
            if got != expected:
                raise ArgumentError(f"{directory} is no prior for this agent", expected=f"{what} {expected}", got=got)
        prior = DQN.load(directory, self.env)
        prior.forget_training()
        return prior

    def rounds(self) -> Iterator[Round]:
        """Train; the prior first, if it is to be trained."""
        prior = self.prior_agent
        if prior is not None and not self._prior_is_ready:
            rounds = prior.rounds()
            while prior.step < self.config.prior_steps:  # none, if it was stopped after the last
                done = next(rounds)
                yield dataclasses.replace(done, phase="prior", last_of_phase=prior.step >= self.config.prior_steps)
            self._prior_is_ready = True
            prior.forget_training()
        for done in super().rounds():
            if self._following is not None:
                self._following.heed(sum(decision.nodes for decision in done.decisions) / len(done.decisions))
            yield done

    def state(self) -> dict[str, Any]:
        prior = self.prior_agent
        return super().state() | {
            "prior": None if prior is None else self._prior_state(prior),
            "share": None if self._following is None else self._following.share,
        }

    def _prior_state(self, prior: DQN) -> dict[str, Any]:
        known = {"config": prior.config.to_plain(), "ready": self._prior_is_ready}
        if self._prior_is_ready:
            return known | {"weights": prior.network.weights()}
        return known | {"training": prior.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        if state["prior"] is not None:
            stored = state["prior"]
            prior = self._prior_like(stored["config"])
            self._prior_is_ready = stored["ready"]
            if self._prior_is_ready:
                prior.network.load_weights(stored["weights"])
            else:
                prior.load_state(stored["training"])
        if self._following is not None:
            self._following.share = state["share"]
        super().load_state(state)

    def _prior_like(self, config: dict[str, Any]) -> DQN:
        """The prior to load weights into: the one that the actor asks already, if there is one."""
        if self._prior_agent is None:
            self._prior_agent = DQN(self.env, Config.from_plain(config), seed=self.seed)
        return self._prior_agent

    def policy_state(self) -> dict[str, Any]:
        prior = self.prior_agent
        recorded = {
            depth: np.array([ranks.distance_of(slot) for slot in range(ranks.capacity) if slot in ranks])
            for depth, ranks in self.ranks.recorded.items()
        }
        known = None if prior is None else {"config": prior.config.to_plain(), "weights": prior.network.weights()}
        share = None if self._following is None else self._following.share
        return super().policy_state() | {"recorded": recorded, "prior": known, "share": share}

    def load_policy(self, state: dict[str, Any]) -> None:
        super().load_policy(state)
        if self._following is not None:
            self._following.share = state["share"]
        if state["prior"] is not None:
            self._prior_like(state["prior"]["config"]).network.load_weights(state["prior"]["weights"])
            self._prior_is_ready = True
        self.ranks.recorded = {
            depth: RankedDistances.of(max(1, len(distances)), np.arange(len(distances)), distances)
            for depth, distances in state["recorded"].items()
        }

    @classmethod
    def from_run_config(cls, run_config: dict[str, Any], env: Any = None) -> Self:
        env, config = env_and_config(run_config, env)
        return cls(env, config, seed=run_config["seed"])
