"""Gymnasium environments that can be played but not copied: enough for plain DQN, which never looks ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators.arguments import checked_action
from adalook.simulators.base import Simulator, State, Transition
from adalook.simulators.gym import spaces
from adalook.simulators.gym.snapshot import REPLAY_IT, gymnasium_package
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
        self._env = make_env(env, options)
        self._name = spaces.checked_spaces(self._env)
        self.first_action, self.num_actions = spaces.action_range(self._name, self._env.action_space)
        self.observation_space = self._env.observation_space
        self.observation_shape, self.observation_dtype = spaces.observation_format(self._name, self.observation_space)
        self._observation: np.ndarray[Any, Any] | None = None

    def _array(self, observation: Any) -> np.ndarray[Any, Any]:
        return spaces.as_array(observation, self.observation_shape, self.observation_dtype, self._name)

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        observation = spaces.checked_reset(self._env, self._name, None if seed is None else checked_seed(seed))
        self._observation = self._array(observation)
        return self.observe()

    def step(self, action: int) -> Transition:
        played = self.first_action + checked_action(action, self.num_actions)
        observation, reward, terminated, truncated = spaces.checked_step(self._env.step(played), self._name)
        self._observation = self._array(observation)
        return Transition(self.observe(), reward, reward, terminated=terminated, episode_over=terminated or truncated)

    def observe(self) -> np.ndarray[Any, Any]:
        if self._observation is None:
            raise SimulatorError(f"{self._name} has not begun an episode", remedy="reset first: sim.reset(seed=0)")
        return self._observation.copy()

    def render(self) -> np.ndarray[Any, Any] | None:
        """Return what the environment renders as "rgb_array", if it does."""
        if "rgb_array" not in (self._env.metadata or {}).get("render_modes", ()) or self._observation is None:
            return None
        self._env.unwrapped.render_mode = "rgb_array"
        return spaces.rendered(self._env.unwrapped, self._name)

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
            remedy=f"learn without lookahead (al.DQN(env, depth=0)), or {REPLAY_IT}",
        )

    def close(self) -> None:
        self._env.close()
        super().close()


def make_env(env: Any, options: dict[str, Any]) -> Any:
    """Return a new environment like `env`: by its id, by its spec, or by the function that makes it."""
    gymnasium = gymnasium_package()
    if isinstance(env, str):
        return spaces.instance(env, options)
    if isinstance(env, gymnasium.Env):
        spec = env.spec
        if spec is None:
            raise SimulatorError(
                f"{type(env.unwrapped).__name__} can be neither copied nor made again",
                remedy="pass what makes it instead: al.DQN(lambda: MyEnv(size=5))",
            )
        return spaces.instance(spec, options)
    if callable(env):
        return env()
    raise spaces.not_an_environment(env)
