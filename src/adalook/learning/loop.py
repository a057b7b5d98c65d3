"""The training loop, a generator: whoever asks for the next round makes it go on, and nobody else needs to know.

    one round:  decide in every world → move them → store → as many updates as are due

Logging, evaluation and checkpoints consume rounds (see `consumers`); none of that is in here. Between two rounds
`state` is all there is: loaded into a new trainer, it goes on as if never interrupted, to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.arrays import IntArray
from adalook.learning.acting import NO_ACTION, Actor, Decision
from adalook.learning.config import Config
from adalook.learning.replay import Batch, Replay
from adalook.learning.targets import Learner, Update
from adalook.learning.worlds import Episode, Worlds
from adalook.simulators.base import Transition

STREAMS = ("exploration", "search", "sampling")
"""What is drawn, each from a generator of its own, so that one does not shift another."""


@dataclass(frozen=True, eq=False)
class Round:
    """What one round brought."""

    step: int
    """Agent steps so far, this round's included."""
    seconds: float
    """Time spent in the loop so far; consumers' time is not counted."""
    epsilon: float
    decisions: list[Decision]
    episodes: list[Episode]
    """Those that were over in this round."""
    updates: list[Update]
    phase: str = "agent"
    """'agent', or 'prior' while Ṽ* is trained."""


class Trainer:
    """Everything that changes while an agent learns.

    Args:
        config: of the run.
        worlds: live.
        actor: decides; it uses the learner's network.
        learner: holds the network.
        replay: empty, or as `load_state` left it.
        seed: of everything that is drawn here.
    """

    def __init__(
        self, config: Config, worlds: Worlds, actor: Actor, learner: Learner, replay: Replay, *, seed: int
    ) -> None:
        self.config, self.worlds, self.actor = config, worlds, actor
        self.learner, self.replay = learner, replay
        self.step, self.seconds = 0, 0.0
        self._rngs = {name: np.random.default_rng([seed, 2 + i]) for i, name in enumerate(STREAMS)}

    def rounds(self) -> Iterator[Round]:
        """Rounds without end: stop asking to stop."""
        while True:
            started = time.perf_counter()
            epsilon = self.config.epsilon(self.step)
            observations = self.worlds.observations
            decisions = self._decide(epsilon)
            transitions, episodes = self.worlds.step([decision.action for decision in decisions])
            for observation, decision, transition in zip(observations, decisions, transitions, strict=True):
                self._store(observation, decision, transition)
            updates = self._learn(self.step, self.step + len(decisions))
            self.step += len(decisions)
            self.seconds += time.perf_counter() - started
            yield Round(self.step, self.seconds, epsilon, decisions, episodes, updates)

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
                transition.ended,
            )
        distances = decision.distances or None  # they belong to the state: recorded once, with its first leaf
        for leaf in decision.leaves:
            self.replay.add(
                observation,
                decision.action,
                leaf.return_to_leaf,
                leaf.observation,
                leaf.depth,
                leaf.ended,
                distances=distances,
            )
            distances = None

    def _learn(self, before: int, after: int) -> list[Update]:
        """The updates that fall due between two steps. Learning starts once the memory fills a batch."""
        config, updates = self.config, []
        batches: list[Batch] = []
        for step in range(before + 1, after + 1):
            if step <= config.learning_starts_steps or len(self.replay) < config.batch_transitions:
                continue
            if step % config.update_period_steps == 0:
                batches.append(self.replay.sample(self._rngs["sampling"], config.batch_transitions))
            if step % config.target_period_steps == 0:
                updates += self.learner.update(batches)
                batches = []
                self.learner.copy_to_target()
        return updates + self.learner.update(batches)

    def state(self) -> dict[str, Any]:
        """All that later rounds depend on, as plain data and arrays."""
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
        self.worlds.load_state(state["worlds"])
        self.replay.load_state(state["replay"])
