"""Gymnasium environments that cannot be copied, simulated by replaying their episodes.

Physics engines such as Box2D (LunarLander) keep their state in C++, where no copy reaches it. But an environment that
is reset with the same seed and takes the same actions arrives in the same state. So a saved state is the seed of the
episode and the actions since, and looking ahead from it plays the episode again: exact, and slower the longer the
episode has lasted. A level of a tree costs one replay for each node; a path that goes on where the last one ended
costs none.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adalook._validation import boolean
from adalook.errors import SimulatorError
from adalook.simulators.arguments import check_actions, check_states
from adalook.simulators.base import Children, Observations, Transition
from adalook.simulators.checker.object_graph import global_states, moved
from adalook.simulators.gym import generators, spaces
from adalook.simulators.gym.live import LiveGymSimulator, make_env
from adalook.simulators.gym.validation import generators_of
from adalook.simulators.randomness import RandomStream, checked_seed, draw_seeds
from adalook.storage.serializer import add_digest, check_digest, damaged_error, deserialize, serialize

_CHECKED_STEPS = 20
"""Steps that are replayed when a simulator is made, to see whether the environment repeats itself."""


class ReplayedStep(NamedTuple):
    """An action of an episode, and what its randomness came from."""

    action: int
    randomness: RandomStream | None
    """None: the environment's own generator, as it went on from the reset."""


class ReplayedState(NamedTuple):
    """A state of an episode: how it began, and what was done since."""

    start: int
    """The seed that the environment was reset with."""
    steps: tuple[ReplayedStep, ...]
    observation: np.ndarray[Any, Any]
    randomness: RandomStream | None
    """What the next step draws from, as in `ReplayedStep`."""
    owner: str
    """The name of the environment."""


class ReplayedGymSimulator(LiveGymSimulator):
    """A simulator of a Gymnasium environment that goes back by playing the episode again.

    Args:
        env: the id of an environment, one that `gymnasium.make` made, or a function that makes one.
        stochastic: whether steps depend on chance; None finds out from some steps.
        options: with an id, for `gymnasium.make`.

    >>> sim = ReplayedGymSimulator("CartPole-v1")
    >>> observation = sim.reset(seed=0)
    >>> state = sim.save()
    >>> first = sim.step(1).observation
    >>> sim.restore(state)
    >>> bool((sim.step(1).observation == first).all())
    True
    """

    saves = True

    def __init__(self, env: Any, *, stochastic: bool | None = None, **options: Any) -> None:
        super().__init__(env, **options)
        self._tree, _ = spaces.without_time_limit(make_env(env, options))
        self._tree_at: tuple[int, tuple[ReplayedStep, ...]] | None = None
        self._start = 0
        self._steps: tuple[ReplayedStep, ...] = ()
        self._randomness: RandomStream | None = None
        found = self._check_replays()
        self.stochastic = found if stochastic is None else boolean.validate("stochastic", stochastic)
        self._observation = None

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        if seed is not None:
            start = checked_seed(seed)
        elif self._observation is None:
            start = secrets.randbits(63)
        else:  # the next episode follows from this one, so that it is the same again after `restore`
            before = self._start if self._randomness is None else self._randomness.draws().words(1)[0]
            (start,) = draw_seeds(before, 0, 1)
        self._start, self._steps, self._randomness = start, (), None
        return super().reset(start)

    def step(self, action: int) -> Transition:
        _seed_generator(self._env, self._randomness)
        transition = super().step(action)
        self._steps = (*self._steps, ReplayedStep(int(action), self._randomness))
        self._randomness = None if self._randomness is None else self._randomness.next()
        return transition

    def save(self) -> ReplayedState:
        return ReplayedState(self._start, self._steps, self.observe(), self._randomness, self._name)

    def restore(self, state: ReplayedState) -> None:
        check_states([state], ReplayedState, self._name)
        self._play(self._env, state.start, state.steps)
        self._start, self._steps, self._observation, self._randomness, _ = state

    def reseed(self, state: ReplayedState, seed: int) -> ReplayedState:
        check_states([state], ReplayedState, self._name)
        return state._replace(randomness=RandomStream.for_tree(seed))

    def expand(
        self, states: Sequence[ReplayedState], actions: Sequence[int], out: Observations | None = None
    ) -> Children:
        check_actions(actions, self.num_actions)
        check_states(states, ReplayedState, self._name)
        n = len(states)
        observations = np.empty((n, *self.observation_shape), self.observation_dtype) if out is None else out
        rewards, terminated = np.empty(n), np.empty(n, bool)
        children = []
        for i, (state, action) in enumerate(zip(states, actions, strict=True)):
            self._go_to(state)
            _seed_generator(self._tree, state.randomness)
            answer = self._tree.step(self.first_action + int(action))
            observation, rewards[i], terminated[i], _ = spaces.checked_step(answer, self._name)
            steps = (*state.steps, ReplayedStep(int(action), state.randomness))
            self._tree_at = (state.start, steps)
            observations[i] = array = self._array(observation)
            after = None if state.randomness is None else state.randomness.next()
            children.append(ReplayedState(state.start, steps, array, after, self._name))
        return Children(children, observations, rewards, terminated, [self.pack(child) for child in children])

    def _go_to(self, state: ReplayedState) -> None:
        """Bring the tree's environment into a state; from where it is, if the state's episode leads through there."""
        done = 0
        if self._tree_at is not None and self._tree_at[0] == state.start:
            behind = self._tree_at[1]
            done = len(behind) if behind and state.steps[: len(behind)] == behind else 0
        self._tree_at = None  # should a step raise
        self._play(self._tree, state.start, state.steps[done:], begin=not done)

    def _play(self, env: Any, start: int, steps: Sequence[ReplayedStep], begin: bool = True) -> None:
        if begin:
            env.reset(seed=start)
        for action, randomness in steps:
            _seed_generator(env, randomness)
            env.step(self.first_action + action)

    def _check_replays(self) -> bool:
        """Raise if replayed episodes do not go as the first time; return whether steps draw random numbers."""
        rng = np.random.default_rng(0)
        draws = False
        self.reset(seed=0)
        for action in map(int, rng.integers(self.num_actions, size=_CHECKED_STEPS)):
            state, shared, before = self.save(), global_states(), generators_of(self._env)
            transition = self.step(action)
            drawn = moved(before, generators_of(self._env))
            draws = draws or bool(drawn)
            hidden = [path for path in drawn if not path.endswith("np_random")] + moved(shared, global_states())
            if hidden:
                raise SimulatorError(
                    f"{self._name} cannot be replayed: its steps draw from {' and '.join(hidden)}",
                    got="randomness that trees would take from the live env",
                    remedy="draw from self.np_random",
                )
            detour = self.expand([state], [int(rng.integers(self.num_actions))])
            again = self.expand([state], [action])
            del detour
            if not (
                np.array_equal(again.observations[0], transition.observation)
                and again.rewards[0] == transition.reward
                and again.terminated[0] == transition.terminated
            ):
                raise SimulatorError(
                    f"{self._name} cannot be replayed: the same seed and actions led elsewhere",
                    remedy="let all that an episode depends on follow from reset(seed=…), and draw from self.np_random",
                )
            if transition.episode_over:
                self.reset()
        return draws

    def pack(self, state: ReplayedState) -> bytes:
        check_states([state], ReplayedState, self._name)
        steps = [(action, None if stream is None else tuple(stream)) for action, stream in state.steps]
        randomness = None if state.randomness is None else tuple(state.randomness)
        return add_digest(serialize((state.start, steps, state.observation, randomness)), self._name)

    def unpack(self, data: bytes) -> ReplayedState:
        """Return the state that `pack` packed; the digest shows damage, types and shapes show forgeries."""
        content = check_digest(data, self._name)
        try:
            start, steps, observation, randomness = deserialize(content)
            if type(observation) is not np.ndarray or observation.dtype != self.observation_dtype:
                raise ValueError("an observation of another kind")
            if type(start) is not int or not 0 <= start < 2**64:
                raise ValueError("a seed expected")
            if any(type(action) is not int or not 0 <= action < self.num_actions for action, _ in steps):
                raise ValueError("actions expected")
            played = tuple(ReplayedStep(action, _stream(stream)) for action, stream in steps)
            return ReplayedState(start, played, self._array(observation), _stream(randomness), self._name)
        except (TypeError, ValueError) as error:
            raise damaged_error(f"state of {self._name}", "what pack made", str(error)) from error

    def close(self) -> None:
        self._tree.close()
        super().close()


def _stream(numbers: Any) -> RandomStream | None:
    return None if numbers is None else RandomStream.checked(numbers)


def _seed_generator(env: Any, randomness: RandomStream | None) -> None:
    """Seed what the next step draws from; None leaves it as it is."""
    if randomness is not None:
        generators.reseed([env.unwrapped.np_random], randomness.draws())
