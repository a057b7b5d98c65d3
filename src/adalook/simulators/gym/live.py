"""Gymnasium environments that can be played but not copied: enough for plain DQN, which never looks ahead."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.arguments import checked_action
from adalook.simulators.base import Simulator, State, Transition
from adalook.simulators.gym import spaces
from adalook.simulators.gym.snapshot import gymnasium_package
from adalook.simulators.randomness import checked_seed


class LiveGymSimulator(Simulator):
    """An environment with a live env only: it is reset and stepped, and has no states that could be saved.

    Args:
        env: an environment; its id; or a function that makes one. Clones are made anew, so an environment
            without a spec, which `gymnasium.make` gives, can have none.
        options: with an id, for `gymnasium.make`.

    >>> sim = LiveGymSimulator("CartPole-v1")
    >>> sim.reset(seed=0).shape, sim.saves
    ((4,), False)
    """

    saves = False
    stochastic = True

    def __init__(self, env: Any, **options: Any) -> None:
        self._env = _maker(env, options)()
        self._name = getattr(getattr(self._env, "spec", None), "id", None) or type(self._env.unwrapped).__name__
        self._first_action, self.num_actions = spaces.action_range(self._name, self._env.action_space)
        self.observation_space = self._env.observation_space
        self.observation_shape, self.observation_dtype = spaces.observation_format(self._name, self.observation_space)
        self._observation: np.ndarray[Any, Any] | None = None

    def _array(self, observation: Any) -> np.ndarray[Any, Any]:
        return np.array(observation, self.observation_dtype).reshape(self.observation_shape)

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        observation, _ = self._env.reset(seed=None if seed is None else checked_seed(seed))
        self._observation = self._array(observation)
        return self.observe()

    def step(self, action: int) -> Transition:
        played = self._first_action + checked_action(action, self.num_actions)
        observation, reward, terminated, truncated, _ = self._env.step(played)
        self._observation = self._array(observation)
        return Transition(
            self.observe(),
            float(reward),
            float(reward),
            terminated=bool(terminated),
            episode_over=bool(terminated or truncated),
        )

    def observe(self) -> np.ndarray[Any, Any]:
        if self._observation is None:
            raise SimulatorError(f"{self._name} has not begun an episode", remedy="reset first: sim.reset(seed=0)")
        return self._observation.copy()

    def save(self) -> State:
        raise self._unsaved()

    def restore(self, state: State) -> None:
        raise self._unsaved()

    def pack(self, state: State) -> bytes:
        raise self._unsaved()

    def unpack(self, data: bytes) -> State:
        raise self._unsaved()

    def _unsaved(self) -> SimulatorError:
        return SimulatorError(
            f"{self._name} can be played but not saved, so that no tree can be grown from its state",
            remedy=f"learn without lookahead (al.DQN(env, depth=0)), or {spaces.WRITE_YOUR_OWN}",
        )

    def close(self) -> None:
        self._env.close()
        super().close()


def _maker(env: Any, options: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that makes an environment, a new one each time."""
    gymnasium = gymnasium_package()

    def made(what: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about newer versions; whatever is fatal comes as an error too
            return gymnasium.make(what, **options)

    if isinstance(env, str):
        return lambda: made(env)
    if isinstance(env, gymnasium.Env):
        spec = env.spec
        if spec is None:
            raise SimulatorError(
                f"{type(env.unwrapped).__name__} can be neither copied nor made again",
                remedy="pass what makes it instead: al.DQN(lambda: MyEnv(size=5))",
            )
        return lambda: made(spec)
    if callable(env):
        return env  # type: ignore[no-any-return]
    raise ArgumentError("env is wrong", expected="a Gymnasium environment, id or function", got=type(env).__name__)
