"""The training loop, a generator: whoever asks for the next round makes it go on.

    one round:  decide in every environment → step them  ∥  as many updates as are due  →  store

What acts and what learns are two networks, equal at the beginning of a round, and updates draw from what was stored
before it: acting and learning do not see each other, so they may overlap and the results are the same, to the bit.
For the same reason it does not matter where the environments are: in this process (`InProcessActing`), or in others, on
this machine or elsewhere (`adalook.learning.engines`).
Logging, evaluation and checkpoints are callbacks that are given the rounds; none of that is in here. Between two rounds
`state` is all there is: loaded into a new trainer, it goes on as if never interrupted, to the bit.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
import torch

from adalook._arrays import IntArray
from adalook._validation import finite
from adalook.errors import AdalookError, ArgumentError
from adalook.learning.acting import NO_ACTION, Actor, Decision
from adalook.learning.config import Config
from adalook.learning.learner import Learner, Update
from adalook.learning.networks import QNetwork
from adalook.learning.replay.buffer import Batch, Experience, Replay
from adalook.learning.replay.shifts import shifted
from adalook.simulators.base import Simulator, Transition

STREAMS = ("exploration", "search", "sampling")
"""What is drawn, each from a generator of its own, so that one does not shift another."""

_ENV_STREAM = 1
"""Tells the seeds of environments from other things that are drawn from the same seed."""


@dataclass(frozen=True)
class Episode:
    """An episode that is over."""

    score: float
    """Sum of rewards before clipping."""
    steps: int
    stalled: bool = False
    """Whether it was cut off since nothing happened any more (`Config.stall_steps`)."""


class Stretch(NamedTuple):
    """Updates with one target network, and what follows them."""

    updates: int
    renews_target: bool = False
    """Whether the target network becomes a copy of the one that learns."""
    reset_at: int | None = None
    """The agent step at which the network begins anew in part, if it does; its target with it."""


@dataclass(frozen=True, eq=False)
class Round:
    """The results of one round of training."""

    step: int
    """Agent steps so far, this round's included."""
    seconds: float
    """Time spent in the loop so far; the callbacks' time is not counted."""
    epsilon: float
    decisions: list[Decision]
    episodes: list[Episode]
    """Those that were over in this round."""
    updates: list[Update]
    phase: str = "agent"
    """'agent', or 'prior' while Ṽ* is trained."""
    last_of_phase: bool = False
    """The prior's training is over with this round."""
    staleness: int = 0
    """Updates that the network which acted was behind when the round began; 0 unless actors are asynchronous."""


class Trainer:
    """Everything that changes while an agent learns.

    Args:
        config: the settings of the run.
        acting: the live environments and what acts in them, by `network`.
        network: the network that acts; after each round it gets the weights of the learner's network.
        learner: its network begins as a copy of `network`.
        replay: an empty replay buffer.
        seed: seeds exploration, searches and the sampling of batches.
        executor: runs the updates while this thread acts; None: one after the other.
    """

    def __init__(
        self,
        config: Config,
        acting: Acting,
        network: QNetwork,
        learner: Learner,
        replay: Replay,
        *,
        seed: int,
        executor: Executor | None = None,
    ) -> None:
        self.config, self.acting, self.network = config, acting, network
        self._executor = executor or InlineExecutor()
        learner.network.load_state_dict(network.state_dict())
        learner.copy_to_target()
        self.learner, self.replay = learner, replay
        self._seed = seed
        self._returns = NStepReturns(config.num_envs, config.n_steps, config.discount, head=min(network.names))
        self.step, self.seconds = 0, 0.0
        self._updates = 0  # since this trainer was made: what staleness is counted in
        self._between_rounds = True
        self._rngs = {name: np.random.default_rng([seed, 2 + i]) for i, name in enumerate(STREAMS)}
        self._explored: IntArray = np.full(config.num_envs, NO_ACTION)
        """(n,) the last random action of each environment, or NO_ACTION where its last action was not random."""

    def rounds(self) -> Iterator[Round]:
        """Train, one round for each that is asked for, without end."""
        while True:
            self._check_between_rounds()
            self.acting.start()
            started = time.perf_counter()
            torch.set_num_threads(self.config.threads)  # torch has one number for all agents of a thread
            epsilon = annealed_epsilon(self.config, self.step)
            self._between_rounds = False
            with short_switch_interval() if self.config.overlap else nullcontext():
                acted, updates = self._round(epsilon)
            self.step += len(acted.decisions)
            self.seconds += time.perf_counter() - started
            self._between_rounds = True
            staleness = self._updates - acted.updates
            self._updates += len(updates)
            yield Round(self.step, self.seconds, epsilon, acted.decisions, acted.episodes, updates, staleness=staleness)

    def _round(self, epsilon: float) -> tuple[Acted, list[Update]]:
        acting = self.acting.begin(lambda envs: self._draw(envs, epsilon), self._updates)
        learning = self._executor.submit(self._learn, self.step, self.step + len(acting.envs))
        try:
            acted = acting.finish()
        finally:  # no update goes on after whatever stopped this
            wait([learning])
        updates = learning.result()
        for env, observation, decision, transition in zip(
            acting.envs, acted.observations, acted.decisions, acted.transitions, strict=True
        ):
            self._store(env, observation, decision, transition)
        self.network.load_state_dict(self.learner.network.state_dict())
        return acted, updates

    def _draw(self, envs: range, epsilon: float) -> Draws:
        """Return the random numbers of one decision in each of these environments, always equally many."""
        exploration, count, repeat = self._rngs["exploration"], len(envs), self.config.exploration_repeat
        random_actions = exploration.integers(0, self.acting.num_actions, count)
        random_actions[exploration.random(count) >= share_of_beginnings(epsilon, repeat)] = NO_ACTION
        if repeat > 0.0:
            last = self._explored[envs.start : envs.stop]
            goes_on = (last != NO_ACTION) & (exploration.random(count) < repeat)
            random_actions = self._explored[envs.start : envs.stop] = np.where(goes_on, last, random_actions)
        return Draws(random_actions, self._rngs["search"].integers(0, 2**62, count))

    def _store(self, env: int, observation: np.ndarray[Any, Any], decision: Decision, transition: Transition) -> None:
        """Store what a decision is to be learnt from; plain DQN's are the steps that the environment made."""
        experiences = decision.experiences
        if decision.learn_real_step:
            experiences = (*experiences, *self._returns.add(env, observation, decision.action, transition))
        distances = decision.distances or None  # they belong to the state: recorded once, with its first leaf
        for experience in experiences:
            self.replay.add(experience, distances)
            distances = None

    def _learn(self, before: int, after: int) -> list[Update]:
        """Make the updates that fall due between two steps. Nobody stores meanwhile."""
        updates: list[Update] = []
        for stretch in self._due(before, after):
            updates += self.learner.update(self._batches(stretch.updates))
            if stretch.reset_at is not None:
                self.learner.reset(self._seed, stretch.reset_at)
            elif stretch.renews_target:
                self.learner.copy_to_target()
        return updates

    def _due(self, before: int, after: int) -> list[Stretch]:
        """Return the updates to make, in stretches after which the target network is renewed or all begins anew.

        Learning starts once the buffer fills a batch.
        """
        config, stretches, updates = self.config, [], 0
        for step in range(before + 1, after + 1):
            if step <= config.learning_starts_steps or len(self.replay) < config.batch_transitions:
                continue
            if step % config.update_period_steps == 0:
                updates += config.gradient_steps
            resets = config.reset_period_steps > 0 and step % config.reset_period_steps == 0
            if resets or step % config.target_period_steps == 0:
                stretches.append(Stretch(updates, True, step if resets else None))
                updates = 0
        return [*stretches, Stretch(updates)]

    def _batches(self, count: int) -> Iterator[Batch]:
        sampling, shift = self._rngs["sampling"], self.config.random_shift
        for _ in range(count):
            batch = self.replay.sample(sampling, self.config.batch_transitions)
            yield shifted(batch, shift, sampling) if shift else batch

    def _check_between_rounds(self) -> None:
        if not self._between_rounds:
            raise AdalookError(
                "training was stopped in the middle of a round, and what was learnt does not fit together",
                remedy="load the last checkpoint, or begin anew; the agent can still predict and evaluate",
            )

    def state(self) -> dict[str, Any]:
        """Return all that later rounds depend on, as plain data and arrays."""
        self._check_between_rounds()
        return {
            "step": self.step,
            "seconds": self.seconds,
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs.items()},
            "learner": self.learner.state(),
            "explored": self._explored.tolist(),
            "returns": self._returns.state(),
            **self.acting.state(),
            "replay": self.replay.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.step, self.seconds = index(state["step"]), finite.validate("seconds", state["seconds"])
        for name, rng in self._rngs.items():
            rng.bit_generator.state = state["rngs"][name]
        self.learner.load_state(state["learner"])
        self.network.load_state_dict(self.learner.network.state_dict())
        self._returns.load_state(state["returns"])
        self.acting.load_state({name: state[name] for name in ("envs", "actor")})
        if "explored" in state:  # older checkpoints have none, and no actions to repeat
            self._explored[:] = state["explored"]
        self.replay.load_state(state["replay"])
        self._between_rounds = True

    def close(self) -> None:
        """Close the environments, wherever they are, and end the threads."""
        self.acting.close()
        self._executor.shutdown()
        self.learner.close()


def annealed_epsilon(config: Config, step: int) -> float:
    """Return the share of random actions at an agent step."""
    done = min(1.0, step / config.epsilon_anneal_steps)
    return config.epsilon_start + done * (config.epsilon_end - config.epsilon_start)


def share_of_beginnings(epsilon: float, repeat: float) -> float:
    """Return how often random actions must begin so that a share ε of all actions is random, repeated ones included.

    A step is random after a random one with probability ρ + (1 − ρ) s and after another with probability s: the share
    of random steps is then s / (s + (1 − ρ)(1 − s)).

    >>> share_of_beginnings(0.1, 0.0), share_of_beginnings(1.0, 0.9)
    (0.1, 1.0)
    """
    return epsilon * (1.0 - repeat) / (1.0 - epsilon * repeat)


SWITCH_SECONDS = 2e-4
"""After so long a thread hands Python's interpreter over to one that waits for it."""
_switch_lock = threading.Lock()
_switch_intervals: list[float] = []
"""What the interval was, once for each that is inside `short_switch_interval`."""


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let the threads of this process take shorter turns with Python's interpreter.

    Learning needs it for a moment between two operations of a millisecond each, and acting hardly ever lets go of it:
    with Python's usual 5 ms a core would idle. Whoever leaves last restores the interval.
    """
    with _switch_lock:
        _switch_intervals.append(sys.getswitchinterval())
        sys.setswitchinterval(min(_switch_intervals[0], SWITCH_SECONDS))
    try:
        yield
    finally:
        with _switch_lock:
            before = _switch_intervals[0]
            _switch_intervals.pop()
            if not _switch_intervals:
                sys.setswitchinterval(before)


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class InlineExecutor(Executor):
    """An executor without threads: `submit` does the work before it returns, and raises what goes wrong there.

    >>> InlineExecutor().submit(pow, 2, 5).result()
    32
    """

    def submit(
        self, fn: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        """Call the function and return a future that is done."""
        done: Future[Result] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class NStepReturns:
    """Makes transitions of n steps from those that live environments make: R = Σ_{t<n} γ^t r_t.

    Where an episode is over, or a life that counts as one, the steps before it make shorter ones.

    Args:
        num_envs: how many environments.
        n_steps: n.
        discount: γ.
        head: the head that learns from them.
    """

    def __init__(self, num_envs: int, n_steps: int, discount: float, head: int = 0) -> None:
        self._n_steps, self._discount, self._head = n_steps, discount, head
        self._pending: list[list[tuple[np.ndarray[Any, Any], int, float]]] = [[] for _ in range(num_envs)]
        """(observation, action, reward) of the last steps of each environment, fewer than n"""

    def add(
        self, env: int, observation: np.ndarray[Any, Any], action: int, transition: Transition
    ) -> Sequence[Experience]:
        """Return the transitions that are complete with a step of an environment."""
        pending = self._pending[env]
        pending.append((observation, action, transition.reward))
        over = transition.terminated or transition.episode_over
        complete = []
        while pending and (over or len(pending) == self._n_steps):
            first_observation, first_action, _ = pending[0]
            complete.append(
                Experience(
                    first_observation,
                    first_action,
                    sum(self._discount**t * reward for t, (_, _, reward) in enumerate(pending)),
                    transition.observation,
                    head=self._head,
                    steps=len(pending),
                    terminated=transition.terminated,
                )
            )
            del pending[0]
        return complete

    def state(self) -> list[Any]:
        """Return the steps that are not complete yet, by environment, as plain data and arrays."""
        return [[list(step) for step in pending] for pending in self._pending]

    def load_state(self, state: list[Any]) -> None:
        """Go on from what `state` gave."""
        self._pending = [
            [
                (np.asarray(observation), index(action), finite.validate("reward", reward))
                for observation, action, reward in pending
            ]
            for pending in state
        ]


STILL_PICTURE = 10
"""So many steps without a point is a step counted for that does not even change the picture."""


def idle_steps(before: int, observation: np.ndarray[Any, Any], transition: Transition) -> int:
    """Return for how many steps nothing has happened after one more; `observation` was shown before it.

    Args:
        before: the same, before this step.
    """
    if transition.raw_reward != 0.0:
        return 0
    return before + (STILL_PICTURE if np.array_equal(observation, transition.observation) else 1)


class EnvPool:
    """Live environments of one kind that are stepped together, each begun with a seed of its own.

    Args:
        sim: what they are cloned from; it is left alone.
        count: how many.
        max_episode_steps: episodes are truncated here.
        stall_steps: and here, if nothing happens for so long (see `idle_steps`); 0: not for that.
    """

    def __init__(self, sim: Simulator, count: int, *, seed: int, max_episode_steps: int, stall_steps: int = 0) -> None:
        self.live: list[Simulator] = [sim.clone() for _ in range(count)]
        seeds = np.random.default_rng([seed, _ENV_STREAM]).integers(0, 2**31, count)
        self.observations = np.stack([env.reset(seed=int(each)) for env, each in zip(self.live, seeds, strict=True)])
        """(count, *observation_shape), not to be changed"""
        self._max_steps, self._stall_steps = max_episode_steps, stall_steps
        self._scores, self._steps, self._idle = [0.0] * count, [0] * count, [0] * count

    def __len__(self) -> int:
        return len(self.live)

    def step(self, actions: Sequence[int]) -> tuple[list[Transition], list[Episode]]:
        """Step every environment. Those whose episode is over are reset, which `observations` then shows.

        Returns:
            A transition for each, marked as over where the episode was truncated, and the episodes that are over.
        """
        transitions, episodes = [], []
        shown = []
        for i, (env, action) in enumerate(zip(self.live, actions, strict=True)):
            transition = env.step(action)
            self._scores[i] += transition.raw_reward
            self._steps[i] += 1
            stalled = self._has_stalled(i, transition) and not transition.episode_over
            if stalled or self._steps[i] >= self._max_steps:
                transition = dataclasses.replace(transition, episode_over=True)
            transitions.append(transition)
            if transition.episode_over:
                episodes.append(Episode(self._scores[i], self._steps[i], stalled))
                self._scores[i], self._steps[i], self._idle[i] = 0.0, 0, 0
                shown.append(env.reset())
            else:
                shown.append(transition.observation)
        self.observations = np.stack(shown)  # a new array: the old one is still in use
        return transitions, episodes

    def _has_stalled(self, i: int, transition: Transition) -> bool:
        """Return whether nothing has happened in environment i for too long."""
        if self._stall_steps:
            self._idle[i] = idle_steps(self._idle[i], self.observations[i], transition)
        return 0 < self._stall_steps <= self._idle[i]

    def state(self) -> dict[str, Any]:
        """Return everything as plain data and arrays."""
        return {
            "saved": [env.pack(env.save()) if env.saves else b"" for env in self.live],
            "observations": self.observations,
            "scores": list(self._scores),
            "steps": list(self._steps),
            "idle": list(self._idle),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        if len(state["saved"]) != len(self.live):
            raise ArgumentError(
                "the run was saved with another number of environments",
                expected=f"num_envs = {len(state['saved'])}",
                got=f"num_envs = {len(self.live)}",
                remedy="go on with as many as it was begun with",
            )
        if not self.live[0].saves:  # episodes that were under way begin anew
            return
        for env, packed in zip(self.live, state["saved"], strict=True):
            env.restore(env.unpack(packed))
        observations = np.asarray(state["observations"])
        self._scores = [finite.validate("score", score) for score in state["scores"]]
        self._steps, self._idle = ([index(count) for count in state[name]] for name in ("steps", "idle"))
        if observations.shape != self.observations.shape or observations.dtype != self.observations.dtype:
            raise ValueError(f"observations {observations.dtype} {observations.shape}")
        if not len(self._scores) == len(self._steps) == len(self._idle) == len(self.live):
            raise ValueError("counts of another number of environments")
        self.observations = observations

    def close(self) -> None:
        """Close every environment."""
        for env in self.live:
            env.close()


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of one decision in each of n environments."""

    random_actions: IntArray
    """(n,) actions to take instead of the best, or NO_ACTION"""
    seeds: IntArray
    """(n,) of the searches' own randomness"""


@dataclass(frozen=True, eq=False)
class Acted:
    """One step of n environments."""

    observations: np.ndarray[Any, Any]
    """(n, *observation_shape) what they showed before"""
    decisions: list[Decision]
    transitions: list[Transition]
    episodes: list[Episode]
    """Those that are over."""
    updates: int
    """How often the network that decided had been updated."""


class PendingStep(ABC):
    """A step of some environments that was begun."""

    envs: Sequence[int]
    """The numbers of the environments, ascending."""

    @abstractmethod
    def finish(self) -> Acted:
        """Return the step, once it is made."""


class Acting(ABC):
    """Live environments and what acts in them, wherever they are.

    Between two rounds `state` is all there is; whoever made the state, any other can go on from it.
    """

    num_actions: int

    def start(self) -> None:  # noqa: B027  (nothing to do where all is in this process)
        """Start what acts, unless it runs: that is not time of training."""

    @abstractmethod
    def begin(self, draw: Callable[[range], Draws], updates: int) -> PendingStep:
        """Begin the step of one round, of all environments or, where they are asynchronous, of those that are free.

        Args:
            draw: returns the random numbers for so many environments.
            updates: how often the network that acts has been updated.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the environments ("envs") and what is kept of them ("actor"), as plain data and arrays."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""

    @abstractmethod
    def close(self) -> None:
        """Close the environments and end what they ran in."""


class InProcessActing(Acting):
    """Environments in this process; the step is made when it is asked for, so that learning may overlap.

    Args:
        envs: the live environments.
        actor: chooses their actions.
    """

    def __init__(self, envs: EnvPool, actor: Actor) -> None:
        self.pool, self._actor = envs, actor
        self.num_actions = envs.live[0].num_actions

    def begin(self, draw: Callable[[range], Draws], updates: int) -> PendingStep:
        """Return the step of all environments, not made yet."""
        return _StepInProcess(self, draw(range(len(self.pool))), updates)

    def step(self, draws: Draws, updates: int = 0) -> Acted:
        """Decide in every environment and step it."""
        observations = self.pool.observations
        decisions = self._actor.decide(self.pool.live, observations, draws.random_actions, draws.seeds)
        transitions, episodes = self.pool.step([decision.action for decision in decisions])
        return Acted(observations, decisions, transitions, episodes, updates)

    def state(self) -> dict[str, Any]:
        """Return the environments and what is kept of them, as plain data and arrays."""
        return {"envs": self.pool.state(), "actor": self._actor.state(self.pool.live)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.pool.load_state(state["envs"])
        self._actor.load_state(self.pool.live, state["actor"])

    def close(self) -> None:
        """Close every environment."""
        self.pool.close()


class _StepInProcess(PendingStep):
    def __init__(self, acting: InProcessActing, draws: Draws, updates: int) -> None:
        self.envs = range(len(draws.seeds))
        self._acting, self._draws, self._updates = acting, draws, updates

    def finish(self) -> Acted:
        """Make the step."""
        return self._acting.step(self._draws, self._updates)
