"""The training loop, a generator: whoever asks for the next round makes it go on, and nobody else needs to know.

    one round:  decide in every world → move them  ∥  as many updates as are due  →  store

What acts and what learns are two networks, equal at the beginning of a round, and updates draw from what was stored
before it: acting and learning do not see each other, so they may overlap and the results are the same, to the bit.
Logging, evaluation and checkpoints consume rounds (see `callbacks`); none of that is in here. Between two rounds
`state` is all there is: loaded into a new trainer, it goes on as if never interrupted, to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Executor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from adalook._arrays import IntArray
from adalook.errors import AdalookError
from adalook.learning.acting import NO_ACTION, Actor, Decision
from adalook.learning.config import Config
from adalook.learning.cpu.executors import AtOnce, quick_turns
from adalook.learning.env_pool import EnvPool, Episode
from adalook.learning.learner import Learner, Update
from adalook.learning.networks import QNetwork
from adalook.learning.replay.buffer import Batch, Replay
from adalook.simulators.base import Transition

STREAMS = ("exploration", "search", "sampling")
"""What is drawn, each from a generator of its own, so that one does not shift another."""


@dataclass(frozen=True, eq=False)
class Round:
    """What one round brought."""

    step: int
    """Agent steps so far, this round's included."""
    seconds: float
    """Time spent in the loop so far; callbacks' time is not counted."""
    epsilon: float
    decisions: list[Decision]
    episodes: list[Episode]
    """Those that were over in this round."""
    updates: list[Update]
    phase: str = "agent"
    """'agent', or 'prior' while Ṽ* is trained."""
    last_of_phase: bool = False
    """The prior's training is over with this round."""


class Trainer:
    """Everything that changes while an agent learns.

    Args:
        config: of the run.
        worlds: live.
        actor: decides, by `acting`.
        acting: the network that acts; after each round it is what `learner` made of its own.
        learner: its network becomes a copy of `acting`.
        replay: empty, or as `load_state` left it.
        seed: of everything that is drawn here.
        helper: learns while this thread acts; None: one after the other. Not the learner's own: they would wait for
            each other.
    """

    def __init__(
        self,
        config: Config,
        worlds: EnvPool,
        actor: Actor,
        acting: QNetwork,
        learner: Learner,
        replay: Replay,
        *,
        seed: int,
        helper: Executor | None = None,
    ) -> None:
        self.config, self.worlds, self.actor, self.acting = config, worlds, actor, acting
        self._helper = helper or AtOnce()
        learner.network.load_state_dict(acting.state_dict())
        learner.copy_to_target()
        self.learner, self.replay = learner, replay
        self.step, self.seconds = 0, 0.0
        self._whole = True
        """Between two rounds."""
        self._rngs = {name: np.random.default_rng([seed, 2 + i]) for i, name in enumerate(STREAMS)}

    def rounds(self) -> Iterator[Round]:
        """Rounds without end: stop asking to stop."""
        while True:
            self._refuse_halves()
            started = time.perf_counter()
            torch.set_num_threads(self.config.threads)  # torch has one number for all agents of a thread
            epsilon = self.config.epsilon(self.step)
            self._whole = False
            with quick_turns() if self.config.overlap else nullcontext():
                decisions, episodes, updates = self._round(epsilon)
            self.step += len(decisions)
            self.seconds += time.perf_counter() - started
            self._whole = True
            yield Round(self.step, self.seconds, epsilon, decisions, episodes, updates)

    def _round(self, epsilon: float) -> tuple[list[Decision], list[Episode], list[Update]]:
        observations = self.worlds.observations
        learning = self._helper.submit(self._learn, self.step, self.step + len(self.worlds))
        try:
            decisions = self._decide(epsilon)
            transitions, episodes = self.worlds.step([decision.action for decision in decisions])
        finally:  # nobody learns on behind the back of whoever stopped this
            wait([learning])
        updates = learning.result()
        for observation, decision, transition in zip(observations, decisions, transitions, strict=True):
            self._store(observation, decision, transition)
        self.acting.load_state_dict(self.learner.network.state_dict())
        return decisions, episodes, updates

    def _refuse_halves(self) -> None:
        if not self._whole:
            raise AdalookError(
                "training was stopped in the middle of a round, and what was learnt does not fit together",
                remedy="load the last checkpoint, or begin anew; the agent can still predict and evaluate",
            )

    def _decide(self, epsilon: float) -> list[Decision]:
        """One decision per world. Each round draws as much as any other, whatever comes of it."""
        count = len(self.worlds)
        exploration = self._rngs["exploration"]
        random_actions = exploration.integers(0, self.worlds.live[0].num_actions, count)
        random_actions[exploration.random(count) >= epsilon] = NO_ACTION
        seeds: IntArray = self._rngs["search"].integers(0, 2**62, count)
        return self.actor.decide(self.worlds.live, self.worlds.observations, random_actions, seeds)

    def _store(self, observation: np.ndarray[Any, Any], decision: Decision, transition: Transition) -> None:
        """(state, action, return to leaf, leaf, depth, ended); plain DQN's leaf is where the world went."""
        if not decision.leaves:
            self.replay.add(
                observation,
                decision.action,
                transition.reward,
                transition.observation,
                decision.depth,
                transition.terminated,
            )
        distances = decision.distances or None  # they belong to the state: recorded once, with its first leaf
        for leaf in decision.leaves:
            self.replay.add(
                observation,
                leaf.action,
                leaf.return_to_leaf,
                leaf.observation,
                leaf.depth,
                leaf.terminated,
                distances=distances,
            )
            distances = None

    def _learn(self, before: int, after: int) -> list[Update]:
        """The updates that fall due between two steps. Nobody stores meanwhile."""
        first, *others = self._due(before, after)
        updates = self.learner.update(self._batches(first))
        for count in others:
            self.learner.copy_to_target()
            updates += self.learner.update(self._batches(count))
        return updates

    def _due(self, before: int, after: int) -> list[int]:
        """How many updates there are to make, in stretches: between two of them the target network is renewed.

        Learning starts once the memory fills a batch.
        """
        config = self.config
        stretches = [0]
        for step in range(before + 1, after + 1):
            if step <= config.learning_starts_steps or len(self.replay) < config.batch_transitions:
                continue
            if step % config.update_period_steps == 0:
                stretches[-1] += 1
            if step % config.target_period_steps == 0:
                stretches.append(0)
        return stretches

    def _batches(self, count: int) -> Iterator[Batch]:
        for _ in range(count):
            yield self.replay.sample(self._rngs["sampling"], self.config.batch_transitions)

    def state(self) -> dict[str, Any]:
        """All that later rounds depend on, as plain data and arrays."""
        self._refuse_halves()
        return {
            "step": self.step,
            "seconds": self.seconds,
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs.items()},
            "learner": self.learner.state(),
            "worlds": self.worlds.state(),
            "replay": self.replay.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.step, self.seconds = state["step"], state["seconds"]
        for name, rng in self._rngs.items():
            rng.bit_generator.state = state["rngs"][name]
        self.learner.load_state(state["learner"])
        self.acting.load_state_dict(self.learner.network.state_dict())
        self.worlds.load_state(state["worlds"])
        self.replay.load_state(state["replay"])
        self._whole = True

    def close(self) -> None:
        """Let go of worlds and threads."""
        self.worlds.close()
        self.learner.close()
        self._helper.shutdown()
