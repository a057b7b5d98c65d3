"""Any Gymnasium environment with discrete actions whose state can be copied: classic control, toy text, and your own.

A state is a copy of the attributes of the environment and of its wrappers: immutable ones as they are, arrays and
everything else copied, generators by their state. Not copied are spaces, specs and the transition table `P` of toy
text, which no step changes. Environments that keep their state elsewhere, in C++ or behind a copy that begins anew, are
found when the simulator is made, and refused (see `validation`).

The time limit binds the live env only: it is taken off the environment, counted here, and trees look past it.

Steps that draw from a generator while the simulator is made declare it stochastic. Gymnasium's toy-text environments
carry their transition tables, so their outcomes can be listed.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adalook._validation import boolean
from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.arguments import check_actions, check_states, checked_action
from adalook.simulators.base import Children, Observations, Outcomes, Simulator, Transition
from adalook.simulators.gym import spaces, validation
from adalook.simulators.gym.objects import Classes
from adalook.simulators.gym.snapshot import (
    AttributeTypes,
    Snapshot,
    is_random,
    layers_of,
    read,
    render_only,
    toy_text_table,
    write,
)
from adalook.simulators.randomness import RandomStream, checked_seed
from adalook.storage.serializer import add_digest, check_digest, damaged_error, deserialize, serialize

PACKABLE = (
    "keep only plain data, arrays and simple objects in the environment's attributes; or play without saving: "
    "agent.learn(…) without out=, then agent.export(directory)"
)
"""What to do about states that cannot be bytes."""


class GymState(NamedTuple):
    """A saved state of an environment."""

    snapshot: Snapshot
    observation: np.ndarray[Any, Any]
    elapsed: int
    randomness: RandomStream | None
    """What steps draw from; None: the generators in the snapshot."""
    owner: str
    """The name of the environment."""


class _TableStates(Sequence[GymState]):
    """The successors that a transition table lists, each made when it is asked for: most merge with others."""

    def __init__(
        self,
        sim: GymSimulator,
        states: Sequence[GymState],
        actions: Sequence[int],
        pairs: Sequence[int],
        numbers: Sequence[int],
    ) -> None:
        self._sim, self._states, self._actions, self._pairs, self._numbers = sim, states, actions, pairs, numbers

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: Any) -> Any:
        pair = self._pairs[index]
        return self._sim.moved(self._states[pair], self._actions[pair], self._numbers[index])


class GymSimulator(Simulator):
    """A simulator of a Gymnasium environment.

    Args:
        env: an environment, of which copies are used, or the id of one. The simulator begins in its current state.
        observation: what the environment shows there; without it the simulator must be reset before it can be searched.
        stochastic: whether steps depend on chance; None finds out from some steps.
        options: with an id, for `gymnasium.make`.

    Observations are what the environment returns; a whole number comes as an array of shape (1,).

    >>> sim = GymSimulator("CartPole-v1")
    >>> sim.reset(seed=0).shape, sim.num_actions
    ((4,), 2)
    >>> sim.expand([sim.save()] * 2, [0, 1]).rewards.tolist()
    [1.0, 1.0]
    """

    def __init__(self, env: Any, *, observation: Any = None, stochastic: bool | None = None, **options: Any) -> None:
        made, spare = spaces.two_instances(env, options)
        self._name = spaces.checked_spaces(made)
        self.first_action, self.num_actions = spaces.action_range(self._name, made.action_space)
        self.observation_shape, self.observation_dtype = spaces.observation_format(self._name, made.observation_space)
        self.observation_space = made.observation_space
        self._live, self._limit = spaces.without_time_limit(made)
        self._tree, _ = spaces.without_time_limit(spare)
        self._observation: np.ndarray[Any, Any] | None = None
        self._elapsed = 0
        self._randomness: RandomStream | None = None
        self._unique = itertools.count()
        self._rendered: Any = None
        self._not_in_key = render_only(self._live)
        self._attribute_types = AttributeTypes(self._live)
        self._classes = Classes(list(layers_of(self._live)))
        validation.check_functions(self._live if isinstance(env, str) else env, self._name)
        current = None if isinstance(env, str) else read(self._live, self._name)
        draws = validation.check_copies(self, self._live, self._attribute_types, self._name)
        self._table = toy_text_table(self._live)
        self.lists_outcomes = self._table is not None
        found = draws if self._table is None else is_random(self._table)
        self.stochastic = found if stochastic is None else boolean.validate("stochastic", stochastic)
        self._observation, self._elapsed, self._randomness = None, 0, None
        if current is not None:
            write(self._live, current)
            self._elapsed = spaces.elapsed_steps(made)
            if observation is not None:
                self._observation = self._array(observation)
        self._was_reset = not isinstance(env, str) and spaces.was_reset(made)

    def _array(self, observation: Any) -> np.ndarray[Any, Any]:
        return spaces.as_array(observation, self.observation_shape, self.observation_dtype, self._name)

    def _shown(self) -> np.ndarray[Any, Any]:
        """Return the observation of the live env, or raise if there is none."""
        if self._observation is None:
            raise SimulatorError(
                f"this simulator of {self._name} does not know what its environment shows",
                expected="the observation that came with the environment's current state"
                if self._was_reset
                else "an episode that has begun",
                remedy="pass it: make_simulator(env, observation=obs), or reset first: sim.reset()"
                if self._was_reset
                else "reset first: sim.reset(seed=0)",
            )
        return self._observation

    def load_env(self, env: Any, observation: Any) -> None:
        """Put the live env into the current state of `env`, an environment of the same make that is left alone.

        Args:
            env: such as the one that your own loop steps.
            observation: what it shows there, as its last `reset` or `step` returned it.

        >>> import gymnasium
        >>> env = gymnasium.make("CartPole-v1")
        >>> sim, (observation, _) = GymSimulator("CartPole-v1"), env.reset(seed=0)
        >>> sim.load_env(env, observation)
        >>> bool((sim.step(1).observation == env.step(1)[0]).all())
        True
        """
        inner, _ = spaces.without_time_limit(env)
        if not spaces.was_reset(env):
            raise SimulatorError(f"{self._name} has not begun an episode", remedy="reset first: env.reset(seed=0)")
        theirs, ours = ([type(layer).__name__ for layer in layers_of(each)] for each in (inner, self._live))
        if theirs != ours:
            raise ArgumentError(
                f"this is no environment like the simulator's {self._name}",
                expected=" around ".join(ours),
                got=" around ".join(theirs) or type(env).__name__,
                remedy="make the simulator from this environment: make_simulator(env)",
            )
        snapshot = read(inner, self._name)
        self.restore(GymState(snapshot, self._array(observation), spaces.elapsed_steps(env), None, self._name))

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        if seed is not None:
            self._randomness = None
        self._seed_generators(self._live)
        observation = spaces.checked_reset(self._live, self._name, None if seed is None else checked_seed(seed))
        self._observation, self._elapsed = self._array(observation), 0
        return self.observe()

    def step(self, action: int) -> Transition:
        if self._observation is None and not self._was_reset:
            self._shown()
        played = self.first_action + checked_action(action, self.num_actions)
        self._seed_generators(self._live)
        observation, reward, terminated, truncated = spaces.checked_step(self._live.step(played), self._name)
        self._observation = self._array(observation)
        self._elapsed += 1
        episode_over = terminated or truncated or (self._limit is not None and self._elapsed >= self._limit)
        return Transition(self.observe(), reward, reward, terminated=terminated, episode_over=episode_over)

    def _seed_generators(self, env: Any) -> None:
        """Seed the generators for the next step, if the live env was restored from a reseeded state."""
        if self._randomness is not None:
            write(env, read(env, self._name), self._randomness)
            self._randomness = self._randomness.next()

    def save(self) -> GymState:
        snapshot = read(self._live, self._name)
        return GymState(snapshot, self._shown(), self._elapsed, self._randomness, self._name)

    def restore(self, state: GymState) -> None:
        check_states([state], GymState, self._name)
        write(self._live, state.snapshot)
        _, self._observation, self._elapsed, self._randomness, _ = state

    def observe(self) -> np.ndarray[Any, Any]:
        return self._shown().copy()

    def reseed(self, state: GymState, seed: int) -> GymState:
        check_states([state], GymState, self._name)
        return state._replace(randomness=RandomStream.for_tree(seed))

    def expand(self, states: Sequence[GymState], actions: Sequence[int], out: Observations | None = None) -> Children:
        check_actions(actions, self.num_actions)
        check_states(states, GymState, self._name)
        n = len(states)
        observations = np.empty((n, *self.observation_shape), self.observation_dtype) if out is None else out
        rewards, terminated = np.empty(n), np.empty(n, bool)
        children, keys = [], []
        for i, (state, action) in enumerate(zip(states, actions, strict=True)):
            randomness = state.randomness
            write(self._tree, state.snapshot, randomness)
            answer = self._tree.step(self.first_action + int(action))
            observation, rewards[i], terminated[i], _ = spaces.checked_step(answer, self._name)
            observations[i] = array = self._array(observation)
            after = None if randomness is None else randomness.next()
            child = GymState(read(self._tree, self._name), array, state.elapsed + 1, after, self._name)
            children.append(child)
            keys.append(self.key(child))
        return Children(children, observations, rewards, terminated, keys)

    def render(self) -> np.ndarray[Any, Any] | None:
        """Return what the environment renders as "rgb_array", if it does; drawn by a copy, so that nothing changes."""
        if "rgb_array" not in (self._live.metadata or {}).get("render_modes", ()):
            return None
        if self._rendered is None:
            self._rendered = copy.deepcopy(self._tree)
            self._rendered.unwrapped.render_mode = "rgb_array"
        write(self._rendered, read(self._live, self._name))
        return spaces.rendered(self._rendered, self._name)

    def outcomes(self, states: Sequence[GymState], actions: Sequence[int]) -> Outcomes:
        """List all that `actions[i]` in `states[i]` can lead to, by the environment's own transition table."""
        assert self._table is not None
        check_actions(actions, self.num_actions)
        check_states(states, GymState, self._name)
        listed = [
            (i, *outcome)
            for i, (state, action) in enumerate(zip(states, actions, strict=True))
            for outcome in self._table[int(state.snapshot.layers[0]["s"])][self.first_action + int(action)]
        ]
        pairs, probabilities, numbers, rewards, terminated = zip(*listed, strict=True)
        successors = np.array(numbers, np.int64)
        return Outcomes(
            np.array(pairs, np.intp),
            np.array(probabilities, np.float64),
            Children(
                _TableStates(self, states, actions, pairs, numbers),  # type: ignore[arg-type]
                successors.astype(self.observation_dtype).reshape(-1, *self.observation_shape),
                np.array(rewards, np.float64),
                np.array(terminated, bool),
                [int(number).to_bytes(8, "little") for number in numbers],
            ),
        )

    def moved(self, state: GymState, action: int, number: int) -> GymState:
        """Return the state that an action leads to by one outcome of the transition table."""
        (attributes,) = state.snapshot.layers
        layers = ({**attributes, "s": number, "lastaction": self.first_action + int(action)},)
        array = self._array(number)
        return GymState(state.snapshot._replace(layers=layers), array, state.elapsed + 1, state.randomness, self._name)

    def key(self, state: GymState) -> bytes:
        """Return all attributes that steps can depend on; one that cannot be packed makes the key unlike any other."""
        try:
            attributes = serialize(
                state.snapshot.plain(self._classes, state.randomness is None, without=self._not_in_key)
            )
        except ArgumentError:
            return b"unique %d %d" % (os.getpid(), next(self._unique))
        # Observations belong to it: wrappers may see what the environment does not keep.
        return attributes + state.observation.tobytes() + repr(state.randomness).encode()

    def pack(self, state: GymState) -> bytes:
        check_states([state], GymState, self._name)
        randomness = None if state.randomness is None else tuple(state.randomness)
        try:
            content = serialize((state.snapshot.plain(self._classes), state.observation, state.elapsed, randomness))
        except ArgumentError as error:
            raise ArgumentError(f"a state of {self._name} cannot be packed", got=error, remedy=PACKABLE) from error
        return add_digest(content, self._name)

    def unpack(self, data: bytes) -> GymState:
        """Return the state that `pack` packed; the digest shows damage, names, types and shapes show forgeries."""
        content = check_digest(data, self._name)
        try:
            attributes, observation, elapsed, randomness = deserialize(content)
            snapshot = Snapshot.from_plain(attributes, self._classes)
            self._attribute_types.check(snapshot)
            if type(observation) is not np.ndarray or observation.dtype != self.observation_dtype:
                raise ValueError("an observation of another kind")
            if type(elapsed) is not int or elapsed < 0:
                raise ValueError("a number of steps expected")
            stream = None if randomness is None else RandomStream.checked(randomness)
            return GymState(snapshot, self._array(observation), elapsed, stream, self._name)
        except (TypeError, ValueError, LookupError) as error:
            raise damaged_error(f"state of {self._name}", "what pack made", str(error)) from error

    def close(self) -> None:
        self._live.close()
        self._tree.close()
        super().close()
