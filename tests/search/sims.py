"""Small simulators for the tests: their states merge and terminate, and some are slow, raise or kill workers."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import numpy as np

from adalook.simulators.base import Simulator, Transition


class Graph(Simulator):
    """A random deterministic graph: paths merge often, a share of the states is terminal, rewards are any floats."""

    def __init__(self, num_states=12, num_actions=3, seed=0, terminal=0.2, rewards=1.0):
        rng = np.random.default_rng(seed)
        self.num_actions, self.observation_shape, self.observation_dtype = num_actions, (2,), np.dtype(np.int16)
        self._next = rng.integers(0, num_states, (num_states, num_actions))
        self._rewards = rewards * rng.normal(size=(num_states, num_actions))
        self._terminal = rng.random(num_states) < terminal
        self._state = 0

    def reset(self, seed=None):
        self._state = int(np.random.default_rng(seed).integers(len(self._next)))
        return self.observe()

    def step(self, action):
        reward = float(self._rewards[self._state, action])
        self._state = int(self._next[self._state, action])
        terminated = bool(self._terminal[self._state])
        return Transition(self.observe(), reward, reward, terminated, terminated)

    def save(self):
        return self._state

    def restore(self, state):
        self._state = state

    def observe(self):
        return np.array(
            [self._state // 2, 7], self.observation_dtype
        )  # two states look alike: equal leaves are not equal nodes

    def pack(self, state):
        return state.to_bytes(4, "little")

    def unpack(self, data):
        return int.from_bytes(data, "little")


class Wired(Graph):
    """A graph given by its tables (states, actions), (states, actions) and (states,), which begins in state 0."""

    def __init__(self, next_states, rewards, terminal):
        super().__init__(len(next_states), len(next_states[0]))
        self._next, self._rewards = np.array(next_states), np.array(rewards, float)
        self._terminal = np.array(terminal, bool)

    def reset(self, seed=None):
        self._state = 0
        return self.observe()

    def observe(self):
        return np.array([self._state, 7], np.int16)


class Slow(Graph):
    """A graph whose steps take time."""

    def __init__(self, *graph, seconds, **more):
        super().__init__(*graph, **more)
        self._seconds = seconds

    def step(self, action):
        time.sleep(self._seconds)
        return super().step(action)


class Counting(Slow):
    """A slow graph that counts the steps that searches take in this process."""

    taken = 0

    def expand(self, states, actions, out=None):
        self.taken += len(states)
        return super().expand(states, actions, out)


class Deadly(Graph):
    """A graph that kills the worker process which takes `action` in `state`; `deaths` times in all."""

    def __init__(self, folder, state, action, deaths, parent, **graph):
        super().__init__(**graph)
        self._trap, self._deaths, self._folder, self._parent = (state, action), deaths, Path(folder), parent

    def step(self, action):
        if (self._state, action) == self._trap and os.getpid() != self._parent:
            died = len(list(self._folder.iterdir()))
            if died < self._deaths:
                (self._folder / str(died)).touch()
                os._exit(9)
        return super().step(action)


class Raising(Graph):
    """A graph that raises for action 1."""

    def step(self, action):
        if action == 1:
            raise KeyError("no such thing")
        return super().step(action)


class SlowInOneProcess(Graph):
    """A graph that is slow in the first worker that takes a step, and records how many steps each process takes."""

    def __init__(self, folder, seconds, parent, **graph):
        super().__init__(**graph)
        self._folder, self._seconds, self._parent = Path(folder), seconds, parent

    def step(self, action):
        if os.getpid() != self._parent:
            mark = self._folder / "slow"
            with contextlib.suppress(FileExistsError), mark.open("x") as file:
                file.write(str(os.getpid()))
            with (self._folder / f"steps of {os.getpid()}").open("a") as file:
                file.write(".")
            if mark.read_text() == str(os.getpid()):
                time.sleep(self._seconds)
        return super().step(action)


class Hanging(Graph):
    """A graph whose steps hang for ever, in processes other than `parent`, from a number of steps on."""

    def __init__(self, parent, after=0, **about):
        super().__init__(**about)
        self._parent, self._left = parent, after

    def step(self, action):
        if os.getpid() != self._parent:
            self._left -= 1
            while self._left < 0:
                time.sleep(0.05)
        return super().step(action)


class WrongNumbers(Graph):
    """A graph that answers one of its steps with a reward or an observation that is no number."""

    def __init__(self, reward=None, observation=None, at=1, **about):
        super().__init__(**about)
        self.observation_dtype = np.dtype(np.float32)
        self._wrong, self._at = (reward, observation), at

    def step(self, action):
        transition = super().step(action)
        self._at -= 1
        if self._at != 0:
            return transition
        reward, observation = self._wrong
        shown = transition.observation.astype(np.float32)
        shown[0] = 1.0 if observation is None else observation
        return Transition(shown, transition.reward if reward is None else reward, 0.0, False, False)
