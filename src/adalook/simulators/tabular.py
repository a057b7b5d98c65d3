"""An `al.MDP` as a simulator, so that search can be checked against planning.

An observation is the number of the state, shape (1,). A state that only leads to itself and pays nothing is terminal:
its value is 0 whatever follows, so entering it ends the episode. An action that a state does not offer acts as the
first that it offers; `action_masks` tells them apart. Stochastic moves draw from the state's own randomness (see
`randomness`), and `outcomes` lists all of them, so that searches take exact expectations.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import BoolArray
from adalook._validation import integer
from adalook.errors import ArgumentError
from adalook.mdp.model import MDP
from adalook.mdp.transitions import is_stochastic, row_of
from adalook.simulators.arguments import check_actions, checked_action, wrong_state_error
from adalook.simulators.base import Children, Observations, Outcomes, Simulator, Transition
from adalook.simulators.randomness import RandomStream
from adalook.storage.serializer import add_digest, check_digest, damaged_error

OWNER = "an MDP"
"""Of packed states, for their digest."""
_FORMAT = struct.Struct("<qQQq")
_KEY = struct.Struct("<qQQ")


class TabularState(NamedTuple):
    """The number of a state, what its next steps draw from, and the steps since the episode began."""

    number: int
    randomness: RandomStream
    elapsed: int = 0


class TabularSimulator(Simulator):
    """A simulator of a finite MDP.

    Args:
        mdp: the model.
        start: the state that episodes begin in; None draws one uniformly at each reset, among those that do not end it.
        max_episode_steps: the live env's episodes are truncated here; None: never.

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

    def __init__(self, mdp: MDP, start: int | None = None, max_episode_steps: int | None = None) -> None:
        if not isinstance(mdp, MDP):
            raise ArgumentError("the model is wrong", expected="an al.MDP", got=type(mdp).__name__)
        if start is not None:
            start = integer(min=0, max=mdp.num_states - 1).validate("start", start)
        if max_episode_steps is not None:
            max_episode_steps = integer(min=1).validate("max_episode_steps", max_episode_steps)
        self.num_actions, self.discount = mdp.num_actions, mdp.discount
        self.num_states = mdp.num_states
        self.action_names = mdp.action_names
        self.stochastic, self.lists_outcomes = not mdp.deterministic, True
        self._mdp = mdp
        self._max_episode_steps = max_episode_steps
        self.masked = mdp.num_pairs < mdp.num_states * mdp.num_actions
        self._codes, self._rewards = mdp.codes, mdp.rewards
        if self.masked:
            acts_as = np.where(mdp.offered, np.arange(mdp.num_actions), mdp.offered.argmax(axis=1)[:, None])
            self._codes = np.take_along_axis(mdp.codes, acts_as, axis=1)
            self._rewards = np.take_along_axis(mdp.rewards, acts_as, axis=1)
        self._terminal = ((self._codes == np.arange(self.num_states)[:, None]) & (self._rewards == 0.0)).all(axis=1)
        self._starts = np.flatnonzero(~self._terminal) if start is None else np.array([start])
        if not len(self._starts):
            self._starts = np.arange(self.num_states)
        self._cumulative = np.cumsum(mdp.rows.data)
        self._state = TabularState(0, RandomStream.for_live(None))
        self._begin()

    def _begin(self) -> None:
        randomness = self._state.randomness
        index = 0 if len(self._starts) == 1 else int(randomness.draws().random() * len(self._starts))
        self._state = TabularState(int(self._starts[index]), randomness.next())

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        if seed is not None:
            self._state = TabularState(0, RandomStream.for_live(seed))
        self._begin()
        return self.observe()

    def step(self, action: int) -> Transition:
        action = checked_action(action, self.num_actions)
        reward = float(self._rewards[self._state.number, action])
        self._state = self._follow(self._state, action)
        terminated = bool(self._terminal[self._state.number])
        over = terminated or (self._max_episode_steps is not None and self._state.elapsed >= self._max_episode_steps)
        return Transition(self.observe(), reward, reward, terminated=terminated, episode_over=over)

    def _follow(self, state: TabularState, action: int) -> TabularState:
        code = int(self._codes[state.number, action])
        if self._mdp.deterministic:
            return TabularState(code, state.randomness, state.elapsed + 1)
        if is_stochastic(code):
            code = self._draw(row_of(code), state.randomness.draws().random())
        return TabularState(code, state.randomness.next(), state.elapsed + 1)

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
        return state if self._mdp.deterministic else state._replace(randomness=RandomStream.for_tree(seed))

    def action_masks(self, observations: Observations) -> BoolArray:
        return np.asarray(self._mdp.offered[observations[:, 0]])

    def expand(
        self, states: Sequence[TabularState], actions: Sequence[int], out: Observations | None = None
    ) -> Children:
        check_actions(actions, self.num_actions)
        self._check(states)
        n = len(states)
        observations = np.empty((n, 1), np.int32) if out is None else out
        children = [self._follow(state, int(action)) for state, action in zip(states, actions, strict=True)]
        observations[:, 0] = [child.number for child in children]
        numbers = [child.number for child in children]
        rewards = self._rewards[[state.number for state in states], [int(action) for action in actions]]
        keys = [self.key(child) for child in children]
        return Children(children, observations, rewards, self._terminal[numbers], keys)

    def outcomes(self, states: Sequence[TabularState], actions: Sequence[int]) -> Outcomes:
        """List all that `actions[i]` in `states[i]` can lead to, with probabilities, for every i."""
        check_actions(actions, self.num_actions)
        self._check(states)
        numbers, chosen = np.array([state.number for state in states], np.intp), np.asarray(actions, np.intp)
        codes, rows = self._codes[numbers, chosen], self._mdp.rows
        random = is_stochastic(codes)
        table_rows = row_of(codes[random])
        counts = np.ones(len(codes), np.intp)
        counts[random] = rows.indptr[table_rows + 1] - rows.indptr[table_rows]
        pairs = np.repeat(np.arange(len(codes)), counts)
        entries = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        successors, probabilities = codes[pairs].astype(np.intp), np.ones(len(pairs))
        drawn = random[pairs]
        places = rows.indptr[row_of(codes[pairs[drawn]])] + entries[drawn]
        successors[drawn], probabilities[drawn] = rows.indices[places], rows.data[places]
        children = [
            TabularState(number, states[pair].randomness, states[pair].elapsed + 1)
            for number, pair in zip(successors.tolist(), pairs.tolist(), strict=True)
        ]
        observations = successors.astype(np.int32)[:, None]
        keys = [number.to_bytes(8, "little") for number in successors.tolist()]
        rewards = self._rewards[numbers, chosen][pairs]
        return Outcomes(
            pairs, probabilities, Children(children, observations, rewards, self._terminal[successors], keys)
        )

    def render(self) -> np.ndarray[Any, Any] | None:
        """Return the grid with walls, goals, traps and the agent, for a model that has a layout."""
        layout = self._mdp.layout
        if layout is None:
            return None
        pixels = np.full((*layout.walls.shape, 3), 245, np.uint8)
        pixels[layout.walls] = (70, 70, 70)
        for cells, colour in ((layout.goals, (0, 158, 115)), (layout.traps, (213, 94, 0))):
            for row, column in cells:
                pixels[row, column] = colour
        row, column = layout.cells[self._state.number].tolist()
        if row >= 0:
            pixels[row, column] = (0, 114, 178)
        return pixels

    def key(self, state: TabularState) -> bytes:
        """Return what a state's future depends on: its number, and what it draws from if anything is drawn."""
        if self._mdp.deterministic:
            return state.number.to_bytes(8, "little")
        return _KEY.pack(state.number, *state.randomness)

    def _check(self, states: Sequence[TabularState]) -> None:
        for state in states:
            if type(state) is not TabularState or not 0 <= state.number < self.num_states:
                raise wrong_state_error(state, f"an MDP of {self.num_states} states")

    def pack(self, state: TabularState) -> bytes:
        self._check([state])
        return add_digest(_FORMAT.pack(state.number, *state.randomness, state.elapsed), OWNER)

    def unpack(self, data: bytes) -> TabularState:
        content = check_digest(data, OWNER)
        if len(content) != _FORMAT.size:
            raise damaged_error("tabular state", f"{_FORMAT.size} bytes", f"{len(content)} bytes")
        index, stream, step, elapsed = _FORMAT.unpack(content)
        if not 0 <= index < self._mdp.num_states:
            raise damaged_error("tabular state", f"a state 0..{self._mdp.num_states - 1}", str(index))
        if elapsed < 0:
            raise damaged_error("tabular state", "a number of steps", str(elapsed))
        return TabularState(index, RandomStream(stream, step), elapsed)
