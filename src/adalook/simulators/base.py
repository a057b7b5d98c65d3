"""The simulator interface: environments that can be saved, restored and stepped in batches.

A simulator has one *live env*, which `reset` and `step` change, and can look ahead from saved states: `expand` steps
many of them at once and leaves the live env as it was, bit for bit.

    observation = sim.reset(seed=0)
    root = sim.reseed(sim.save(), seed=1)             # the tree draws its own randomness, never the live env's
    children = sim.expand([root] * sim.num_actions, range(sim.num_actions))
    children.rewards, children.terminated, children.observations, children.keys, children.states

To add a simulator, subclass `Simulator` and write seven methods: see docs/simulators.md. `al.check_simulator` tells
whether it is faithful.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.errors import SimulatorError, shown
from adalook.simulators.arguments import CHECKED, checking

State = Any
"""A saved state: opaque, never changed once made, valid for as long as somebody holds it."""

Observations = np.ndarray[Any, Any]
"""(n, *observation_shape) of observation_dtype."""


@dataclass(frozen=True)
class Transition:
    """The result of one step of the live env."""

    observation: np.ndarray[Any, Any]
    """(*observation_shape)"""
    reward: float
    """As training sees it: clipped if the simulator clips."""
    raw_reward: float
    """The same before clipping: what episode returns add up."""
    terminated: bool
    """Nothing that follows counts towards this state's value: the end, or a lost life where the rules say so."""
    episode_over: bool
    """The episode is over and `reset` comes next. Over but not terminated is a truncation."""


@dataclass(frozen=True, eq=False)
class Children:
    """The results of n expansions, as a struct of arrays."""

    states: list[State]
    """(n,) or none, see `Simulator.expand_leaves`"""
    observations: Observations
    """(n, *observation_shape)"""
    rewards: FloatArray
    """(n,) as training sees them"""
    terminated: BoolArray
    """(n,) such states are never expanded. Time limits bind the live env: a look ahead goes past them if it can."""
    keys: list[bytes]
    """(n,) or none; children with equal keys, equally many steps from one root, have equal observations and futures"""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """All that n (state, action) pairs can lead to: m successors, those of one pair after those of another."""

    pairs: IntArray
    """(m,) which pair each belongs to, ascending"""
    probabilities: FloatArray
    """(m,) all positive; those of one pair sum to one"""
    children: Children
    """Of length m; keys leave randomness out."""


class Simulator(ABC):
    """An environment that can look ahead from saved states.

    Subclasses set `num_actions`, `observation_shape` and `observation_dtype`, call nothing of this class in their
    `__init__`, and draw all randomness from a generator that `save` saves.
    """

    num_actions: int
    first_action: int = 0
    """What the environment itself calls action 0: simulators count from 0, a `Discrete` space may begin elsewhere."""
    action_names: tuple[str, ...] = ()
    """For people; without them actions are shown by their numbers."""
    observation_shape: tuple[int, ...]
    observation_dtype: np.dtype[Any]
    binary_observations: bool = False
    """Observations hold only zeros and ones, so that a replay buffer can keep them as bits."""
    stochastic: bool = False
    """Whether steps depend on chance. A class that overrides `reseed` is stochastic unless it says otherwise; searches
    take expectations there, and `check_simulator` checks it."""
    saves: bool = True
    """Whether states can be saved. Those that cannot are for agents that never look ahead."""
    masked: bool = False
    """Whether some states do not offer every action. One that is not offered acts like one that is, and is never
    chosen by a search: see `action_masks`."""
    lists_outcomes: bool = False
    """Whether `outcomes` lists all successors, so that expectations are exact."""
    discount: float | None = None
    """The problem's own discount factor, where it has one, as an `al.MDP` does."""

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]
    _scratch: Simulator | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "reseed" in cls.__dict__ and "stochastic" not in cls.__dict__:
            cls.stochastic = True
        for name in CHECKED:
            if name in cls.__dict__:
                setattr(cls, name, checking(name, cls.__dict__[name]))

    def __new__(cls, *args: Any, **kwargs: Any) -> Simulator:
        self = super().__new__(cls)
        self._made_with = (args, kwargs)
        return self

    def __repr__(self) -> str:
        args, _ = self._made_with
        chance = "stochastic" if self.stochastic else "deterministic"
        about = f"{self.num_actions} actions, observations {self.observation_shape}, {chance}"
        return f"{type(self).__name__}({', '.join([*map(repr, args), about])})"

    @abstractmethod
    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        """Begin an episode and return its first observation; None goes on with the generator as it is."""

    @abstractmethod
    def step(self, action: int) -> Transition:
        """Take an action in the live env."""

    @abstractmethod
    def save(self) -> State:
        """Return all of the live env's state, its randomness and what `observe` shows included."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Put the live env into a saved state."""

    @abstractmethod
    def observe(self) -> np.ndarray[Any, Any]:
        """Return the current observation (*observation_shape), an array that later steps do not change."""

    @abstractmethod
    def pack(self, state: State) -> bytes:
        """Return a state as bytes, for checkpoints and other processes; equal states give equal bytes. Never pickle."""

    @abstractmethod
    def unpack(self, data: bytes) -> State:
        """Return the state that `pack` packed."""

    def reseed(self, state: State, seed: int) -> State:
        """Return the same state with randomness of its own, drawn from `seed`; deterministic envs return it as it is.

        Searches begin here, so that they cannot foresee what the live env will draw. Nodes at one depth of a tree
        share their randomness, so that equal nodes have equal futures.
        """
        del seed
        return state

    def expand(self, states: Sequence[State], actions: Sequence[int], out: Observations | None = None) -> Children:
        """Take `actions[i]` in `states[i]`, for every i, and leave the live env alone.

        Args:
            states: n states that have not terminated.
            actions: (n,) ints.
            out: (n, *observation_shape) where to write the observations; made if None.

        This one restores, steps and saves a clone, one after the other. Simulators that can do better override it.
        """
        if self._scratch is None:
            self._scratch = self.clone()
        env = self._scratch
        n = len(states)
        observations = np.empty((n, *self.observation_shape), self.observation_dtype) if out is None else out
        children, keys = [], []
        rewards, terminated = np.empty(n), np.empty(n, bool)
        for i, (state, action) in enumerate(zip(states, actions, strict=True)):
            env.restore(state)
            try:
                transition = env.step(int(action))
            except SimulatorError as error:
                raise SimulatorError(f"action {action} in state {shown(state, longest=80)}: {error}") from error
            child = env.save()
            children.append(child)
            keys.append(env.pack(child))
            observations[i] = transition.observation
            rewards[i], terminated[i] = transition.reward, transition.terminated or transition.episode_over
        return Children(children, observations, rewards, terminated, keys)

    def expand_leaves(
        self, states: Sequence[State], actions: Sequence[int], out: Observations | None = None
    ) -> Children:
        """Do as `expand` for children that will never be expanded: their states and keys may be left out.

        Most nodes of a tree are leaves, so simulators where saving and keys cost something override it.
        """
        return self.expand(states, actions, out)

    def render(self) -> np.ndarray[Any, Any] | None:
        """Return a picture (height, width, 3) uint8 of the live env; None if there is none but what it observes."""
        return None

    def action_masks(self, observations: Observations) -> BoolArray:
        """Return which actions (n, A) are offered where these are observed; for simulators that are `masked`."""
        return np.ones((len(observations), self.num_actions), bool)

    def outcomes(self, states: Sequence[State], actions: Sequence[int]) -> Outcomes:
        """List all that `actions[i]` in `states[i]` can lead to, with probabilities, for every i.

        For simulators with `lists_outcomes`, such as those of tabular models; the live env is left alone.
        """
        raise SimulatorError(
            f"{type(self).__name__} does not list the outcomes of an action",
            expected="outcomes(states, actions), since lists_outcomes is set",
            remedy="write that method, or leave lists_outcomes False: the search then draws futures",
        )

    def key(self, state: State) -> bytes:
        """Return bytes that are equal only for states with equal observations and futures; `pack`'s are."""
        return self.pack(state)

    def clone(self) -> Simulator:
        """Return another simulator made in the same way, sharing nothing with this one."""
        args, kwargs = self._made_with
        return type(self)(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send worker processes a clone: the state of the live env does not travel."""
        args, kwargs = self._made_with
        return _make, (type(self), args, kwargs)

    def close(self) -> None:
        """Release whatever the simulator holds."""
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None


def _make(kind: type[Simulator], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Simulator:
    return kind(*args, **kwargs)
