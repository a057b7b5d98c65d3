"""Evaluation: episodes played without learning, in environments of their own."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook import _validation as validation
from adalook._arrays import FloatArray
from adalook.errors import ArgumentError, shown
from adalook.learning.acting import NO_ACTION, Actor, Decision
from adalook.learning.training import idle_steps
from adalook.simulators.base import Simulator

Watcher = Callable[[int, np.ndarray[Any, Any], Decision], None]
"""A function that is called with (number of the episode, observation, decision) for every decision; one with a true
attribute `needs_env` gets the live simulator as well, as `env=`."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of the episodes of an evaluation."""

    scores: FloatArray
    """(episodes,) sums of rewards before clipping"""
    steps: FloatArray
    """(episodes,) agent steps"""
    depths: dict[int, int]
    """How many decisions looked how deep."""
    nodes: int = 0
    """Steps that the searches of all decisions simulated."""
    seconds: float = 0.0
    """Time that all decisions took, by the clock: the only part of an evaluation that is not the same each time."""
    stalled: int = 0
    """Episodes that were cut off since nothing happened any more."""
    cut: int = 0
    """Episodes that were cut off after `max_episode_steps`, or `max_nodes` of all of them together."""

    @property
    def decisions(self) -> int:
        """The number of decisions of all episodes."""
        return sum(self.depths.values())

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean score; NaN for a single episode."""
        count = len(self.scores)
        return float(self.scores.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")


@dataclass
class _Play:
    """An episode that is being played."""

    number: int
    env: Simulator
    rng: np.random.Generator
    observation: np.ndarray[Any, Any]
    score: float = 0.0
    steps: int = 0
    episode_over: bool = False
    idle: int = 0
    """Steps for which nothing has happened, see `idle_steps`."""


def evaluate(
    actor: Actor,
    sim: Simulator,
    *,
    episodes: int,
    num_envs: int,
    epsilon: float,
    max_episode_steps: int,
    stall_steps: int = 0,
    max_nodes: int | None = None,
    seed: int,
    watcher: Watcher | None = None,
) -> Evaluation:
    """Play `episodes` episodes, up to `num_envs` of them at a time; every one that begins is played to its end.

    Its end may be `max_episode_steps`, or `stall_steps` in which nothing happened (see `idle_steps`; 0: no such end).
    After `max_nodes` simulated steps of searches all end.
    Episode i draws all it needs from (seed, i), so that the others do not matter to it.
    """
    episodes = validation.integer(1).validate("the number of episodes", episodes)
    epsilon = validation.fraction.validate("the share of random actions (epsilon)", epsilon)
    seed = validation.integer(0).validate("the seed of the evaluation", seed)
    max_episode_steps = validation.integer(1).validate("max_episode_steps", max_episode_steps)
    max_nodes = validation.optional(validation.integer(1)).validate("max_nodes", max_nodes)
    if watcher is not None and not callable(watcher):
        raise ArgumentError("the watcher is no function", got=shown(watcher))
    waiting = iter(range(episodes))
    playing = [_begin(sim.clone(), number, seed) for number in itertools.islice(waiting, num_envs)]
    played: list[_Play] = []
    depths: Counter[int] = Counter()
    cut_off: Counter[str] = Counter()
    nodes, began = 0, time.perf_counter()
    while playing:
        decisions = _step(actor, playing, epsilon, watcher)
        depths.update(decision.depth for decision in decisions)
        nodes += sum(decision.nodes for decision in decisions)
        if max_nodes is not None and nodes >= max_nodes:
            max_episode_steps, waiting = 0, iter(())
        going_on = []
        for play in playing:
            stalled = 0 < stall_steps <= play.idle
            if not (play.episode_over or stalled or play.steps >= max_episode_steps):
                going_on.append(play)
                continue
            played.append(play)
            if not play.episode_over:
                cut_off["stalled" if stalled else "cut"] += 1
            number = next(waiting, None)
            if number is None:
                play.env.close()
            else:
                going_on.append(_begin(play.env, number, seed))
        playing = going_on
    played.sort(key=lambda play: play.number)
    return Evaluation(
        np.array([play.score for play in played]),
        np.array([play.steps for play in played], np.float64),
        dict(sorted(depths.items())),
        nodes,
        time.perf_counter() - began,
        **cut_off,
    )


def _begin(env: Simulator, number: int, seed: int) -> _Play:
    rng = np.random.default_rng([seed, 100 + number])
    return _Play(number, env, rng, env.reset(seed=int(rng.integers(0, 2**31))))


def _step(actor: Actor, playing: list[_Play], epsilon: float, watcher: Watcher | None) -> list[Decision]:
    """Make one step of every episode and return the decisions."""
    chance = [(play.rng.random(), play.rng.integers(0, play.env.num_actions)) for play in playing]
    random_actions = np.array([action if draw < epsilon else NO_ACTION for draw, action in chance], np.int64)
    seeds = np.array([play.rng.integers(0, 2**62) for play in playing])
    observations = np.stack([play.observation for play in playing])
    decisions = actor.decide([play.env for play in playing], observations, random_actions, seeds)
    for play, decision in zip(playing, decisions, strict=True):
        if watcher is not None:
            more = {"env": play.env} if getattr(watcher, "needs_env", False) else {}
            watcher(play.number, play.observation, decision, **more)
        transition = play.env.step(decision.action)
        play.idle = idle_steps(play.idle, play.observation, transition)
        play.observation, play.episode_over = transition.observation, transition.episode_over
        play.score += transition.raw_reward
        play.steps += 1
    return decisions
