"""DQN (Mnih et al. 2015) and the paper's baselines: DQN that acts by a tree of one and the same depth everywhere."""

from __future__ import annotations

from typing import Any, Self

from adalook import _validation as validation
from adalook.engines.base import Engine
from adalook.learning.acting import TreeActor, ValueActor
from adalook.learning.agents.base import Agent, checked_config
from adalook.learning.config import DEEPEST, Config
from adalook.learning.runs.directory import env_and_config
from adalook.search.rules.fixed import FixedDepth


class DQN(Agent):
    """DQN; with `depth` > 0 it acts by a tree of that depth with its Q-function at the leaves.

    Settings are fields of `al.Config`, changed by name on top of the env's preset, or of a config that is given.

    >>> import adalook as al
    >>> agent = DQN(al.zoo.chain(n=4, discount=0.9), depth=1)
    >>> agent.learn(steps=64, progress=False)
    DQN(MDP(6 states, 2 actions, discount 0.9, deterministic), seed=0, step=64)
    """

    kind = "dqn"

    def __init__(
        self,
        env: Any,
        config: Config | None = None,
        *,
        depth: int = 0,
        seed: int = 0,
        engine: Engine | None = None,
        **settings: Any,
    ) -> None:
        self.depth: int = validation.integer(0, DEEPEST).validate("the depth", depth)
        config = checked_config(env, config, self.kind, settings)
        super().__init__(env, config, heads=(self.depth,), seed=seed, engine=engine)
        if self.depth == 0:
            self.actor = ValueActor(self.leaf_values)
        else:
            self.actor = TreeActor(
                self.leaf_values,
                FixedDepth(self.depth),
                discount=self.config.discount,
                least_depth=self.depth,
                samples=self.config.samples,
                engine=self.node_engine,
            )

    def run_config(self) -> dict[str, Any]:
        """Return what it takes to make the same agent again, as JSON can hold it."""
        return super().run_config() | {"depth": self.depth}

    @classmethod
    def from_run_config(cls, run_config: dict[str, Any], env: Any = None, engine: Engine | None = None) -> Self:
        """Return the agent that `run_config` describes, untrained."""
        env, config = env_and_config(run_config, env)
        return cls(env, config, depth=run_config["depth"], seed=run_config["seed"], engine=engine)
