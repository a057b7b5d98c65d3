"""An `al.MDP` as a simulator, so that search can be checked against planning.

An observation is the number of the state, shape (1,). Discounted models have no end, so nothing is ever `terminated`: a
sink goes on paying zero for ever. Stochastic moves draw from the state's own randomness; see `randomness`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adalook._validation import integer
from adalook.errors import ArgumentError
from adalook.mdp.model import MDP
from adalook.mdp.transitions import is_stochastic, row_of
from adalook.simulators.arguments import check_actions, checked_action, wrong_state_error
from adalook.simulators.base import Children, Observations, Simulator, Transition
from adalook.simulators.randomness import RandomStream
from adalook.storage.serializer import damaged_error

_FORMAT = struct.Struct("<qQQ")


class TabularState(NamedTuple):
    """The number of a state, and what its next steps draw from."""

    number: int
    randomness: RandomStream


class TabularSimulator(Simulator):
    """A simulator of a finite MDP.

    Args:
        mdp: every state must offer every action.
        start: the state that episodes begin in; None draws one uniformly at each reset.

    >>> import adalook as al
    >>> sim = TabularSimulator(al.zoo.chain(n=5), start=2)
    >>> sim.reset(seed=0)
    array([2], dtype=int32)
    >>> children = sim.expand([sim.save()] * 2, [0, 1])
    >>> children.observations.ravel().tolist(), children.rewards.tolist()
    ([3, 6], [0.0, 0.0])
    """

    observation_shape = (1,)
    observation_dtype = np.dtype(np.int32)

    def __init__(self, mdp: MDP, start: int | None = None) -> None:
        if not isinstance(mdp, MDP):
            raise ArgumentError("the model is wrong", expected="an al.MDP", got=type(mdp).__name__)
        if mdp.num_pairs != mdp.num_states * mdp.num_actions:
            state, action = np.argwhere(~mdp.offered)[0]
            raise ArgumentError(
                "a simulator offers every action everywhere",
                got=f"an MDP whose state {state} does not offer action {action}",
                remedy="give the missing actions a move of their own, such as staying for a low reward",
            )
        if start is not None:
            start = integer(min=0, max=mdp.num_states - 1).validate("start", start)
        self.num_actions = mdp.num_actions
        self.num_states = mdp.num_states
        self._mdp = mdp
        self._start = start
        self._cumulative = np.cumsum(mdp.rows.data)
        self._state = TabularState(0, RandomStream.for_live(None))
        self._begin()

    def _begin(self) -> None:
        randomness = self._state.randomness
        index = self._start
        if index is None:
            index = int(randomness.draws().random() * self._mdp.num_states)
        self._state = TabularState(int(index), randomness.next())

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        if seed is not None:
            self._state = TabularState(0, RandomStream.for_live(seed))
        self._begin()
        return self.observe()

    def step(self, action: int) -> Transition:
        action = checked_action(action, self.num_actions)
        reward = float(self._mdp.rewards[self._state.number, action])
        self._state = self._follow(self._state, action)
        return Transition(self.observe(), reward, reward, terminated=False, episode_over=False)

    def _follow(self, state: TabularState, action: int) -> TabularState:
        code = int(self._mdp.codes[state.number, action])
        if self._mdp.deterministic:
            return TabularState(code, state.randomness)
        if is_stochastic(code):
            code = self._draw(row_of(code), state.randomness.draws().random())
        return TabularState(code, state.randomness.next())

    def _draw(self, row: int, uniform: float) -> int:
        """Return the successor at quantile `uniform` of a stochastic row."""
        rows = self._mdp.rows
        first, stop = int(rows.indptr[row]), int(rows.indptr[row + 1])
        before = self._cumulative[first - 1] if first else 0.0
        wanted = before + uniform * (self._cumulative[stop - 1] - before)
        entry = first + int(np.searchsorted(self._cumulative[first:stop], wanted, side="right"))
        return int(rows.indices[min(entry, stop - 1)])  # rounding may lead past the last one

    def save(self) -> TabularState:
        return self._state

    def restore(self, state: TabularState) -> None:
        self._check([state])
        self._state = state

    def observe(self) -> np.ndarray[Any, Any]:
        return np.array([self._state.number], np.int32)

    def reseed(self, state: TabularState, seed: int) -> TabularState:
        self._check([state])
        return state if self._mdp.deterministic else TabularState(state.number, RandomStream.for_tree(seed))

    def expand(
        self, states: Sequence[TabularState], actions: Sequence[int], out: Observations | None = None
    ) -> Children:
        check_actions(actions, self.num_actions)
        self._check(states)
        n = len(states)
        observations = np.empty((n, 1), np.int32) if out is None else out
        children = [self._follow(state, int(action)) for state, action in zip(states, actions, strict=True)]
        observations[:, 0] = [child.number for child in children]
        rewards = self._mdp.rewards[[state.number for state in states], [int(action) for action in actions]]
        return Children(children, observations, rewards, np.zeros(n, bool), [self.key(child) for child in children])

    def key(self, state: TabularState) -> bytes:
        """Return what a state's future depends on: its number, and what it draws from if anything is drawn."""
        return state.number.to_bytes(8, "little") if self._mdp.deterministic else self.pack(state)

    def _check(self, states: Sequence[TabularState]) -> None:
        for state in states:
            if type(state) is not TabularState or not 0 <= state.number < self.num_states:
                raise wrong_state_error(state, f"an MDP of {self.num_states} states")

    def pack(self, state: TabularState) -> bytes:
        self._check([state])
        return _FORMAT.pack(state.number, *state.randomness)

    def unpack(self, data: bytes) -> TabularState:
        if not isinstance(data, bytes) or len(data) != _FORMAT.size:
            got = f"{len(data)} bytes" if isinstance(data, bytes) else f"a {type(data).__name__}"
            raise damaged_error("tabular state", f"{_FORMAT.size} bytes", got)
        index, stream, step = _FORMAT.unpack(data)
        if not 0 <= index < self._mdp.num_states:
            raise damaged_error("tabular state", f"a state 0..{self._mdp.num_states - 1}", str(index))
        return TabularState(index, RandomStream(stream, step))
