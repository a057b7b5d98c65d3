"""What DQN, plain or on trees of fixed depth, and QL-DQN have in common: everything but how deep they look.

depth 0     Q_0, no tree                           ValueActor                                            dqn.py
depth h     Q_h at the leaves of a tree of h       TreeActor(FixedDepth(h))                              dqn.py
QL-DQN      Q_1 … Q_H, depth by rank of distance   TreeActor(QuantileLookahead(θ, ranks, Ṽ*))          qldqn.py

agent = al.QLDQN("MinAtar/Breakout-v1")
agent.learn(seconds=60)
agent.evaluate(episodes=10).mean
action, _ = agent.predict(observation)
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from adalook import _validation as validation
from adalook._interrupts import SignalGuard
from adalook.errors import ArgumentError, FileError
from adalook.learning.acting import NO_ACTION, Actor
from adalook.learning.config import Config, config_for
from adalook.learning.cpu.optimizers import make_optimizer
from adalook.learning.depth import BufferRanks
from adalook.learning.env_pool import EnvPool
from adalook.learning.evaluation import Evaluation, Watcher, evaluate
from adalook.learning.factory import device_of, network_of, replay_of, world_of
from adalook.learning.learner import Learner
from adalook.learning.networks import Evaluator
from adalook.learning.observations import as_batch, refuse_unknown_states
from adalook.learning.runs.directory import (
    CONFIG_FILE,
    CONFIG_FORMAT,
    Checkpoint,
    RunDirectory,
    load_newest,
    read_run_config,
    write_run_config,
)
from adalook.learning.training import Round, Trainer
from adalook.simulators.base import Simulator

Callback = Callable[[Round], None]


class Agent(ABC):
    """What all agents share. Made by its subclasses.

    Args:
        env: the name of a world, an al.MDP, a Gymnasium environment that can be copied, or a simulator.
        config: None takes the preset of the world's family.
        depths: the depths that the network has heads for.
        seed: one seed, one run, to the bit.
    """

    kind: ClassVar[str]

    def __init__(self, env: Any, config: Config | None, *, depths: Iterable[int], seed: int) -> None:
        self.env, self.config = env, config_for(env) if config is None else config
        self.seed: int = validation.integer(0).validate("the seed", seed)
        torch.set_num_threads(self.config.threads)
        self.depths = tuple(depths)
        self.sim = world_of(env, self.config)
        self.device = device_of(self.config)
        self.network = network_of(env, self.sim, self.config, self.depths, seed=self.seed, device=self.device)
        self.evaluator = Evaluator(self.network, self.device)
        self.ranks = BufferRanks({}, self.config.ranked_transitions)
        """Of the distances in the replay memory, once there is one; depth rules may go by them."""
        self._predictions = np.random.default_rng([self.seed, 0])
        self._trainer: Trainer | None = None

    @property
    @abstractmethod
    def actor(self) -> Actor:
        """How it chooses."""

    @property
    def trainer(self) -> Trainer:
        """All that changes while it learns; made when first needed, since a replay memory may be large."""
        if self._trainer is None:
            config = self.config
            student, target = (
                network_of(self.env, self.sim, config, self.depths, seed=self.seed, device=self.device)
                for _ in range(2)
            )
            learner = Learner(
                student,
                target,
                make_optimizer(student, config, self.device),
                discount=config.discount,
                head_balance=config.head_balance,
                device=self.device,
                helper=self._helper("gradients"),
            )
            worlds = EnvPool(self.sim, config.num_envs, seed=self.seed, max_episode_steps=config.max_episode_steps)
            replay = replay_of(self.sim, config, max(self.depths))
            self._trainer = Trainer(
                config,
                worlds,
                self.actor,
                self.network,
                learner,
                replay,
                seed=self.seed,
                helper=self._helper("learning"),
            )
            self.ranks.recorded = replay.ranks
        return self._trainer

    def _helper(self, name: str) -> ThreadPoolExecutor | None:
        """A thread, if there may be one. Each has a number of cores of its own that its operations take: here, ours."""
        if not self.config.overlap:
            return None
        return ThreadPoolExecutor(1, f"adalook-{name}", torch.set_num_threads, (self.config.threads,))

    def forget_training(self) -> None:
        """Let go of the replay memory, the worlds and the threads: the network stays as it is."""
        if self._trainer is not None:
            self._trainer.close()
            self._trainer = None

    @property
    def step(self) -> int:
        """Agent steps taken so far."""
        return 0 if self._trainer is None else self._trainer.step

    def rounds(self) -> Iterator[Round]:
        """Train, one round for each that is asked for, without end."""
        return self.trainer.rounds()

    def learn(
        self, *, steps: int | None = None, seconds: float | None = None, callbacks: Iterable[Callback] = ()
    ) -> Self:
        """Train for so many more agent steps, or so many more seconds of training, whichever is over first.

        Args:
            steps: rounds are never cut, so there may be up to `config.num_envs` − 1 more.
            seconds: time that callbacks take is not counted.
            callbacks: called with each round; see `adalook.learning.runs.callbacks`.

        Ctrl-C ends the round first, so that the agent can go on, and be saved, afterwards; a second one does not wait.
        """
        if steps is None and seconds is None:
            raise ArgumentError("learn needs an end", expected="steps= or seconds=")
        if steps is not None:
            steps = validation.integer(0).validate("steps", steps)
        if seconds is not None:
            seconds = validation.non_negative.validate("seconds", seconds)
        callbacks = list(callbacks)
        last_step = np.inf if steps is None else self.step + steps
        last_second = np.inf if seconds is None else self.trainer.seconds + seconds
        with SignalGuard() as stopped, contextlib.closing(self.rounds()) as rounds:  # type: ignore[type-var]
            while self.step < last_step and self.trainer.seconds < last_second and not stopped:
                done = next(rounds)
                for callback in callbacks:
                    callback(done)
        stopped.raise_received()
        return self

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, None]:
        """The action for an observation, or for the live state of a simulator.

        An observation alone cannot be searched: the network's shallowest head, which has seen the most states, decides.
        Given a simulator the tree does.

        Args:
            observation: (*observation_shape), a batch of them, or a simulator.
            state: ignored, there for code that was written for Stable-Baselines3.
            episode_start: ignored, likewise.
            deterministic: never random; otherwise a share `evaluation_epsilon` of actions is.

        Returns:
            The action, or (n,) of them for a batch; and None.
        """
        del state, episode_start
        if isinstance(observation, Simulator):
            return self._decide_live(observation, deterministic), None
        refuse_unknown_states(observation, self.network)
        rows, single = as_batch(observation, self.sim)
        actions = self.evaluator.action_values(rows, self.depths[0]).argmax(axis=1)
        chosen = np.where(self._no_random_actions(len(rows), deterministic), actions, self._random_actions(len(rows)))
        return (int(chosen[0]) if single else chosen), None

    def _decide_live(self, world: Simulator, deterministic: bool) -> int:
        random_action = self._random_actions(1)
        random_action[self._no_random_actions(1, deterministic)] = NO_ACTION
        seeds = self._predictions.integers(0, 2**62, 1)
        return self.actor.decide([world], world.observe()[None], random_action, seeds)[0].action

    def _random_actions(self, count: int) -> np.ndarray[Any, Any]:
        return self._predictions.integers(0, self.sim.num_actions, count)

    def _no_random_actions(self, count: int, deterministic: bool) -> np.ndarray[Any, Any]:
        draws: np.ndarray[Any, Any] = self._predictions.random(count)
        return draws >= (0.0 if deterministic else self.config.evaluation_epsilon)

    def evaluate(
        self, episodes: int = 10, *, seed: int = 0, epsilon: float | None = None, watcher: Watcher | None = None
    ) -> Evaluation:
        """Play so many episodes in worlds of their own and add up the scores, before clipping.

        Args:
            episodes: each begins with its own seed, drawn from `seed`.
            seed: the same gives the same episodes.
            epsilon: share of random actions; None takes the config's.
            watcher: is shown every decision; see `adalook.learning.runs.episode_gif`.
        """
        torch.set_num_threads(self.config.threads)
        return evaluate(
            self.actor,
            self.sim,
            episodes=episodes,
            worlds=self.config.num_envs,
            epsilon=self.config.evaluation_epsilon if epsilon is None else epsilon,
            max_episode_steps=self.config.max_episode_steps,
            seed=seed,
            watcher=watcher,
        )

    @classmethod
    @abstractmethod
    def from_run_config(cls, run_config: dict[str, Any], env: Any = None) -> Self:
        """The agent that `describe` described, untrained. `env` is needed if the world has no name."""

    def run_config(self) -> dict[str, Any]:
        """What it takes to make the same agent again, as JSON can hold it."""
        return {
            "format": CONFIG_FORMAT,
            "agent": self.kind,
            "env": self.env if isinstance(self.env, str) else None,
            "seed": self.seed,
            "config": self.config.to_plain(),
        }

    def state(self) -> dict[str, Any]:
        """All that training goes on from, as plain data and arrays."""
        return {
            "kind": self.kind,
            "trainer": self.trainer.state(),
            "predictions": self._predictions.bit_generator.state,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self._predictions.bit_generator.state = state["predictions"]
        self.trainer.load_state(state["trainer"])
        self.ranks.recorded = self.trainer.replay.ranks

    def policy_state(self) -> dict[str, Any]:
        """What it chooses by, without what it learns from: enough to predict and evaluate."""
        return {"kind": self.kind, "network": self.network.weights()}

    def load_policy(self, state: dict[str, Any]) -> None:
        """Choose as the agent did that gave `state`."""
        self.network.load_weights(state["network"])

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, or only choose by it, if that is all it holds."""
        only_policy = "policy" in checkpoint.state
        state = checkpoint.state["policy" if only_policy else "agent"]
        if state["kind"] != self.kind:
            raise FileError(
                f"{checkpoint.path} is of another agent than {CONFIG_FILE} says",
                expected=self.kind,
                got=state["kind"],
                remedy=f"put the {CONFIG_FILE} of this run back",
            )
        (self.load_policy if only_policy else self.load_state)(state)

    def save(self, directory: Path | str) -> None:
        """Write everything into a run directory; `load` goes on from there. Another agent's run is refused."""
        directory = Path(directory)
        with RunDirectory(directory) as run:
            if not (directory / CONFIG_FILE).exists():
                write_run_config(directory, self.run_config())
            elif read_run_config(directory) != self.run_config():
                raise FileError(f"{directory} holds the run of another agent", remedy="choose another directory")
            run.save(self.step, {"agent": self.state()})

    @classmethod
    def load(cls, directory: Path | str, env: Any = None) -> Self:
        """The agent of a run, as its newest checkpoint has it.

        Args:
            directory: of the run.
            env: needed if the world has no name, such as an al.MDP.
        """
        run_config = read_run_config(Path(directory))
        if run_config["agent"] != cls.kind:
            raise ArgumentError(f"{directory} holds another agent", expected=cls.kind, got=run_config["agent"])
        agent = cls.from_run_config(run_config, env)
        newest = load_newest(Path(directory))
        if newest is None:
            raise FileError(f"{directory} has no checkpoint yet", remedy="train for longer, or look at another run")
        agent.restore(newest)
        return agent
