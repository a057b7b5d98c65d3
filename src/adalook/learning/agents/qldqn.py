"""QL-DQN: the paper's seven steps (section "QL-DQN and Atari Experiments"), in reading order.

step 1   a Q-function per depth, heads 1 … H on a shared trunk         networks.QNetwork
step 2   a replay buffer sorted by the distance to Ṽ*                  depth.DistanceRanks; Ṽ* here: `prior_agent`
step 3   shares θ_2 … θ_H of the buffer                                depth.CostControlledShares, Config.depth_shares
step 4   the tree grows while the distance ranks in the top θ          depth.QuantileDepth
step 5   the first action of the best leaf                             acting.TreeActor
step 6   store (state, action, return to leaf, leaf, depth)            acting.TreeActor, replay.buffer.Replay
step 7   targets: return to the leaf + γ^h max_a Q_h(leaf, a)          learner.Learner
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np

from adalook import _validation as validation
from adalook._arrays import FloatArray
from adalook.engines.base import Engine
from adalook.errors import ArgumentError, FileError
from adalook.learning.acting import Actor, RolloutActor, TreeActor
from adalook.learning.agents.base import Agent, checked_config, read_run_or_export
from adalook.learning.agents.dqn import DQN
from adalook.learning.config import Config
from adalook.learning.correction import LeafCorrection
from adalook.learning.depth import (
    CostControlledShares,
    QuantileDepth,
    Ranks,
    RankThresholds,
    least_depth,
    shares_by_depth,
)
from adalook.learning.networks import MIN_ROWS, QFunction
from adalook.learning.runs.directory import env_and_config
from adalook.learning.training import Round
from adalook.search.rollouts import Rollouts

OWN_PRIORS = ("self", "network")
"""Settings of `prior` that need no other agent: distances are from the search's last level, or from the own network."""


class QLDQN(Agent):
    """Quantile-based lookahead DQN (the paper, section "QL-DQN and Atari Experiments").

    `config.prior` says what Ṽ* is: "self" needs none; "network" is the agent's own network; "train" trains a DQN of
    depth 0 first; else it is a run or an export of one.

    Settings are fields of `al.Config`, changed by name on top of the env's preset, or of a config that is given.

    >>> import adalook as al
    >>> QLDQN(al.zoo.chain(n=4, discount=0.9), learning_rate=0.01).learn(steps=64, progress=False).step
    64
    """

    kind = "qldqn"

    def __init__(
        self,
        env: Any,
        config: Config | None = None,
        *,
        seed: int = 0,
        prior: str | None = None,
        engine: Engine | None = None,
        **settings: Any,
    ) -> None:
        if prior is not None:
            settings["prior"] = str(prior) if isinstance(prior, os.PathLike) else prior
        config = checked_config(env, config, self.kind, settings)
        super().__init__(env, config, heads=range(1, config.max_depth + 1), seed=seed, engine=engine)  # step 1

        self._prior_agent: DQN | None = None  # step 2
        self._prior_is_ready = config.prior in OWN_PRIORS

        self.shares: Mapping[int, float] = shares_by_depth(config.depth_shares)  # step 3
        """θ by depth, as it is now."""
        self._controlled: CostControlledShares | None = None
        if config.nodes_per_step:
            self.shares = self._controlled = CostControlledShares(
                config.max_depth, config.nodes_per_step, one_level=self._one_level
            )

        self._thresholds: RankThresholds | None = None
        self.actor = self._make_actor(self.ranks)  # steps 5 and 6; step 7 is the learner's

    @property
    def _one_level(self) -> bool:
        """Whether trees differ by at most one level (QL-DQN step 3)."""
        control, shape = self.config.depth_control, self.config.search_shape
        draws_futures = self.sim.stochastic and not self.sim.lists_outcomes
        return control == "one_level" or (control == "auto" and draws_futures and shape != "rollouts")

    def _make_actor(self, ranks: Ranks, stage_nodes: int | None = None) -> Actor:
        """Return what chooses actions by trees as deep as the ranks of distances say (QL-DQN steps 4 to 6)."""
        config = self.config
        prior = {"self": None, "network": self._own_values}.get(config.prior, self._prior_values)
        rule = QuantileDepth(self.shares, ranks, prior=prior)  # step 4
        correction = LeafCorrection() if config.leaf_correction else None
        if config.search_shape == "rollouts":
            if self.node_engine is not None:
                raise ArgumentError("rollouts are not split by nodes", expected="split='envs'", got=repr(self.engine))
            return RolloutActor(
                self.leaf_values,
                rule,
                self.sim,
                Rollouts(
                    stage_nodes or config.stage_nodes,
                    config.rollout_steps,
                    config.rollout_repeat,
                    config.rollout_greedy,
                ),
                discount=config.discount,
                every_action=config.learn_every_action,
                real_steps=config.learn_real_steps,
                tree_steps=config.learn_tree_steps,
                correction=correction,
                leaf_trust=config.leaf_trust,
                bootstrap=config.bootstrap,
                policy=self.q_function,
            )
        return TreeActor(
            self.leaf_values,
            rule,
            discount=config.discount,
            least_depth=least_depth(self.shares),
            store_shallow=config.train_shallow_heads,
            every_action=config.learn_every_action,
            samples=config.samples,
            width=config.beam_width if config.search_shape == "beam" else None,
            correction=correction,
            engine=self.node_engine,
        )

    def _actor_with(self, stage_nodes: int) -> Actor:
        if self.config.search_shape != "rollouts":
            return super()._actor_with(stage_nodes)
        return self._make_actor(self.ranks, validation.integer(1).validate("stage_nodes", stage_nodes))

    def _at_play(self) -> AbstractContextManager[None]:
        return nullcontext() if self._controlled is None else self._controlled.at_play()

    def _own_values(self, observations: np.ndarray[Any, Any]) -> FloatArray:
        """Return max_a Q_1(s, a) of the network that acts, as it is now: Ṽ* of the prior "network" (QL-DQN step 2)."""
        return self.leaf_values.values(observations, min(self.network.names))

    def _prior_values(self, observations: np.ndarray[Any, Any]) -> FloatArray:
        """Return Ṽ*(s) = max_a Q_0(s, a) of the frozen prior (QL-DQN step 2): (n, *shape) -> (n,)."""
        prior = self.prior_agent
        assert prior is not None
        return QFunction(prior.network, prior.device, MIN_ROWS).values(observations, 0)

    @property
    def prior_agent(self) -> DQN | None:
        """The DQN of depth 0 whose values are Ṽ*, trained or in training; None if the search is its own prior."""
        if self._prior_agent is None and self.config.prior not in OWN_PRIORS:
            if self.config.prior == "train":
                self._prior_agent = DQN(self.env, self.config, seed=self.seed, engine=self.engine)
            else:
                self._prior_agent = self._load_prior(Path(self.config.prior))
                self._prior_is_ready = True
        return self._prior_agent

    @property
    def prior_steps(self) -> int:
        return 0 if self.prior_agent is None else self.prior_agent.step

    def prepare(self) -> None:
        """Make all that training needs, the prior included."""
        _ = self.prior_agent
        super().prepare()

    def _load_prior(self, directory: Path) -> DQN:
        """Return the agent of a run as prior, or raise unless it values the same things as this agent."""
        try:
            its, mine = read_run_or_export(directory)[0], self.run_config()
        except FileError as error:
            raise FileError(
                "config: prior is wrong",
                expected="'self', 'network', 'train' or the directory of a run or export of al.DQN",
                got=error,
            ) from error
        for what, expected, got in (
            ("agent", DQN.kind, its["agent"]),
            ("depth", 0, its.get("depth")),
            ("env", mine["env"], its["env"]),
            *((name, mine["config"][name], its["config"].get(name)) for name in ("discount", "life_loss_ends")),
        ):
            if got != expected:
                raise ArgumentError(f"{directory} is no prior for this agent", expected=f"{what} {expected}", got=got)
        prior = DQN.load(directory, self.env)
        prior.forget_training()
        return prior

    def rounds(self) -> Iterator[Round]:
        """Train, the prior first if it is to be trained; one round for each that is asked for, without end."""
        prior = self.prior_agent
        if prior is not None and not self._prior_is_ready:
            prior.run_directory = self.run_directory
            rounds = prior.rounds()
            while prior.step < self.config.prior_steps:  # none, if it was stopped after the last
                done = next(rounds)
                yield dataclasses.replace(done, phase="prior", last_of_phase=prior.step >= self.config.prior_steps)
            self._prior_is_ready = True
            prior.forget_training()
        for done in super().rounds():
            if self._controlled is not None:
                self._controlled.update(sum(decision.nodes for decision in done.decisions) / len(done.decisions))
            yield done

    def state(self) -> dict[str, Any]:
        """Return all that training goes on from: the agent's own state, its prior and θ."""
        prior = self.prior_agent
        return super().state() | {
            "prior": None if prior is None else self._prior_state(prior),
            **({"share": None} if self._controlled is None else self._controlled.state()),
        }

    def _prior_state(self, prior: DQN) -> dict[str, Any]:
        known = {"config": prior.config.to_plain(), "ready": self._prior_is_ready}
        if self._prior_is_ready:
            return known | {"weights": prior.network.weights()}
        return known | {"training": prior.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        if state["prior"] is not None:
            stored = state["prior"]
            prior = self._prior_like(stored["config"])
            self._prior_is_ready = stored["ready"]
            if self._prior_is_ready:
                prior.network.load_weights(stored["weights"])
            else:
                prior.load_state(stored["training"])
        self._load_share(state)
        super().load_state(state)

    def _prior_like(self, config: dict[str, Any]) -> DQN:
        """Return the prior to load weights into, made from its config unless there is one."""
        if self._prior_agent is None:
            self._prior_agent = DQN(self.env, Config.from_plain(config), seed=self.seed, engine=self.engine)
        return self._prior_agent

    def _load_share(self, state: dict[str, Any]) -> None:
        if self._controlled is not None:
            self._controlled.load_state(state)

    def policy_state(self) -> dict[str, Any]:
        """Return what it acts by: its network, its prior, θ and the distances that ranks are taken among."""
        prior = self.prior_agent
        return super().policy_state() | {
            "recorded": self.ranks.recorded(),
            "prior": None if prior is None else {"config": prior.config.to_plain(), "weights": prior.network.weights()},
            "share": None if self._controlled is None else self._controlled.mean_share,
        }

    def load_policy(self, state: dict[str, Any]) -> None:
        """Act as the agent did that gave `state`."""
        super().load_policy(state)
        self._load_share(state)
        if state["prior"] is not None:
            self._prior_like(state["prior"]["config"]).network.load_weights(state["prior"]["weights"])
            self._prior_is_ready = True
        self.ranks.replace(state["recorded"])

    def round_state(self) -> dict[str, Any]:
        """Return θ, and from which distance on a state is in the top θ of each depth."""
        shares = dict(self.shares)
        thresholds = {
            depth - 1: self.ranks.threshold(depth - 1, share) for depth, share in shares.items() if 0.0 < share < 1.0
        }
        return {"thresholds": thresholds, "share": None if self._controlled is None else self._controlled.share}

    def follow(self, round_state: dict[str, Any]) -> None:
        """Decide as the agent does that gave `round_state`."""
        if self._thresholds is None:
            self._thresholds = RankThresholds()
            self.actor = self._make_actor(self._thresholds)
        self._thresholds.by_depth = round_state["thresholds"]
        self._load_share(round_state)

    @classmethod
    def from_run_config(cls, run_config: dict[str, Any], env: Any = None, engine: Engine | None = None) -> Self:
        """Return the agent that `run_config` describes, untrained."""
        env, config = env_and_config(run_config, env)
        return cls(env, config, seed=run_config["seed"], engine=engine)
