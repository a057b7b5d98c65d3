"""Any Gymnasium environment with discrete actions whose state can be copied: classic control, toy text, and your own.

A state is a copy of the attributes of the environment and of its wrappers: immutable ones as they are, arrays and
everything else copied, generators by their state. Not copied are spaces, specs and the transition table `P` of toy
text, which no step changes. Environments that keep their state elsewhere, in C++ or behind a copy that begins anew, are
found out when the simulator is made, and refused.

The time limit binds the live world only: it is taken off the environment, counted here, and trees look past it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators import gym_spaces
from adalook.simulators.attributes import Snapshot, layers_of, read, seeded, write
from adalook.simulators.base import Children, Observations, Simulator, Transition
from adalook.simulators.packing import damaged, pack_plain, unpack_plain
from adalook.simulators.randomness import Randomness, checked_seed


class GymState(NamedTuple):
    """One moment of an environment."""

    snapshot: Snapshot
    observation: np.ndarray[Any, Any]
    elapsed: int
    randomness: Randomness | None
    """None: the generators in the snapshot are the live ones"""


class GymSimulator(Simulator):
    """A Gymnasium environment.

    Args:
        env: an environment, of which copies are used, or the id of one.
        options: with an id, for `gymnasium.make`.

    Observations are what the environment returns; a whole number comes as an array of shape (1,).

    >>> sim = GymSimulator("CartPole-v1")
    >>> sim.reset(seed=0).shape, sim.num_actions
    ((4,), 2)
    >>> sim.expand([sim.save()] * 2, [0, 1]).rewards.tolist()
    [1.0, 1.0]
    """

    def __init__(self, env: Any, **options: Any) -> None:
        made, spare = gym_spaces.two_of(env, options)
        self._name = getattr(getattr(made, "spec", None), "id", None) or type(made.unwrapped).__name__
        self._first_action, self.num_actions = gym_spaces.actions(self._name, made.action_space)
        self.observation_shape, self.observation_dtype = gym_spaces.observations(self._name, made.observation_space)
        self._live, self._limit = gym_spaces.without_limit(made)
        self._tree, _ = gym_spaces.without_limit(spare)
        self._observation = np.zeros(self.observation_shape, self.observation_dtype)
        self._elapsed = 0
        self._randomness: Randomness | None = None
        self._unique = itertools.count()
        self._refuse_unfaithful_copies()

    def _array(self, observation: Any) -> np.ndarray[Any, Any]:
        return np.array(observation, self.observation_dtype).reshape(self.observation_shape)

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        if seed is not None:
            self._randomness = None
        self._draw_from(self._live)
        observation, _ = self._live.reset(seed=None if seed is None else checked_seed(seed))
        self._observation, self._elapsed = self._array(observation), 0
        return self.observe()

    def step(self, action: int) -> Transition:
        self._draw_from(self._live)
        observation, reward, ended, truncated, _ = self._live.step(self._first_action + int(action))
        self._observation = self._array(observation)
        self._elapsed += 1
        over = bool(ended or truncated or (self._limit is not None and self._elapsed >= self._limit))
        return Transition(self.observe(), float(reward), float(reward), ended=bool(ended), over=over)

    def _draw_from(self, env: Any) -> None:
        """Give a branched live world the randomness of its next step."""
        if self._randomness is not None:
            write(env, seeded(read(env, self._name), self._randomness))
            self._randomness = self._randomness.next()

    def save(self) -> GymState:
        return GymState(read(self._live, self._name), self._observation, self._elapsed, self._randomness)

    def restore(self, state: GymState) -> None:
        write(self._live, state.snapshot)
        _, self._observation, self._elapsed, self._randomness = state

    def observe(self) -> np.ndarray[Any, Any]:
        return self._observation.copy()

    def branch(self, state: GymState, seed: int) -> GymState:
        return state._replace(randomness=Randomness.branch(seed))

    def expand(self, states: Sequence[GymState], actions: Sequence[int], out: Observations | None = None) -> Children:
        n = len(states)
        observations = np.empty((n, *self.observation_shape), self.observation_dtype) if out is None else out
        rewards, ended = np.empty(n), np.empty(n, bool)
        children, keys = [], []
        for i, (state, action) in enumerate(zip(states, actions, strict=True)):
            randomness = state.randomness
            write(self._tree, state.snapshot if randomness is None else seeded(state.snapshot, randomness))
            observation, rewards[i], ended[i], _, _ = self._tree.step(self._first_action + int(action))
            observations[i] = seen = self._array(observation)
            after = None if randomness is None else randomness.next()
            child = GymState(read(self._tree, self._name), seen, state.elapsed + 1, after)
            children.append(child)
            keys.append(self.key(child))
        return Children(children, observations, rewards, ended, keys)

    def key(self, state: GymState) -> bytes:
        """All attributes that steps can depend on; one that cannot be packed makes the key unlike any other."""
        try:
            attributes = pack_plain(state.snapshot.plain(with_generators=state.randomness is None, for_key=True))
        except ArgumentError:
            return b"unique %d %d" % (os.getpid(), next(self._unique))
        # Observations belong to it: wrappers may see what the environment does not keep.
        return attributes + state.observation.tobytes() + repr(state.randomness).encode()

    def pack(self, state: GymState) -> bytes:
        randomness = None if state.randomness is None else tuple(state.randomness)
        try:
            return pack_plain((state.snapshot.plain(), state.observation, state.elapsed, randomness))
        except ArgumentError as error:
            raise ArgumentError(f"a state of {self._name} cannot be packed", got=error) from error

    def unpack(self, data: bytes) -> GymState:
        try:
            attributes, observation, elapsed, randomness = unpack_plain(data)
            snapshot = Snapshot.from_plain(attributes)
            if len(snapshot.layers) != len(list(layers_of(self._live))):
                raise ValueError("as many wrappers as the environment has expected")
            stream = None if randomness is None else Randomness(*randomness)
            return GymState(snapshot, self._array(observation), int(elapsed), stream)
        except (TypeError, ValueError, KeyError) as error:
            raise damaged(f"state of {self._name}", "what pack made", str(error)) from error

    def close(self) -> None:
        self._live.close()
        self._tree.close()
        super().close()

    def _refuse_unfaithful_copies(self) -> None:
        """Play a little, and see whether the other copy, put into a saved state, goes on in the same way."""
        self.reset(seed=0)
        actions = np.random.default_rng(0).integers(self.num_actions, size=30)
        for i, action in enumerate(actions[:-1]):
            state = self.save()
            expanded = self.expand([state], [int(actions[i])])
            live = self.step(int(action))
            same = np.array_equal(
                expanded.observations[0], live.observation, equal_nan=live.observation.dtype.kind == "f"
            )
            if not same or expanded.rewards[0] != live.reward or expanded.ended[0] != live.ended:
                raise SimulatorError(
                    f"{self._name} cannot be simulated: a copy of its state does not go on as the original does",
                    remedy=f"it keeps state that copying loses{gym_spaces.suspects(self._live)}; "
                    "write a Simulator with `save` and `restore` of its own, see docs/simulators.md",
                )
            if live.ended:
                self.reset()
