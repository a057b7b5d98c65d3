"""Replay memory: transitions from a state to the best leaf of its search tree (paper, section 6.6; decisions 7, 9, 11).

A transition is (s₀, a₀, R, leaf, h, ended): R = Σ_{t<h} γᵗ rₜ up to the leaf, h steps away (one step for h = 0, plain
DQN). `terminated` says that nothing follows the leaf; a truncated episode is not, and its leaf is bootstrapped from
like any other. States are rows of frame numbers (`frames`), so a leaf's stack costs its new frames only.

Transitions are forgotten oldest first, and their distances with them (`ranks`). Nothing here draws random numbers of
its own: `sample` takes a generator.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adalook._arrays import BoolArray, IntArray
from adalook.errors import ArgumentError
from adalook.learning.depth import BYTES_PER_SLOT, RankedDistances
from adalook.learning.replay.codecs import Codec, fitting_codec
from adalook.learning.replay.frames import FrameStore
from adalook.learning.replay.memory import in_words, refuse_unless_it_fits
from adalook.learning.replay.records import NO_DISTANCE, DepthIndex, Records, record_type

Observation = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """n transitions, struct of arrays."""

    observations: NDArray[Any]
    """(n, *observation_shape)"""
    actions: IntArray
    """(n,) int64"""
    returns: NDArray[np.float32]
    """(n,) discounted reward up to the leaf"""
    leaves: NDArray[Any]
    """(n, *observation_shape)"""
    depths: IntArray
    """(n,) int64: the head to train"""
    terminated: BoolArray
    """(n,) nothing follows the leaf"""


class Replay:
    """The last `capacity` transitions.

    >>> replay = Replay(100, (4, 10, 10), np.dtype(bool), max_depth=2)
    >>> here, there = np.zeros((2, 4, 10, 10), bool)
    >>> replay.add(here, 1, reward_to_leaf=0.5, leaf_observation=there, depth=2, ended=False, distances={1: 0.25})
    >>> replay.sample(np.random.default_rng(0), 3).returns.tolist()
    [0.5, 0.5, 0.5]
    >>> replay.ranks[1].count_above(0.1)
    1
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: tuple[int, ...],
        observation_dtype: np.dtype[Any],
        *,
        max_depth: int,
        stacked: bool = False,
        codec: Codec | None = None,
        memory_bytes: int | None = None,
        new_frames_per_transition: float | None = None,
    ) -> None:
        """Refuses, before it allocates, what cannot fit in memory.

        Args:
            capacity: transitions to hold.
            observation_shape: of one state.
            observation_dtype: of one state.
            max_depth: of the trees.
            stacked: the first axis of an observation is a stack of frames, which are stored one by one.
            codec: how frames are kept; None: bits for booleans, LZ4 for stacks of byte images, else as they are.
            memory_bytes: what the buffer may take; None: what it is estimated to need, if the machine has that left.
            new_frames_per_transition: frames to make room for, per transition; None: one for the state and one for each
                step to the leaf. Should there be more, the oldest transitions are forgotten early, with a warning.
        """
        if capacity < 1 or max_depth < 0:
            raise ArgumentError("a replay buffer cannot be so small", got=f"capacity={capacity}, max_depth={max_depth}")
        self.capacity, self.max_depth = capacity, max_depth
        self.observation_shape, self.observation_dtype = tuple(observation_shape), np.dtype(observation_dtype)
        self._stack = observation_shape[0] if stacked else 1
        self._stacked = stacked
        frame_shape = self.observation_shape[1:] if stacked else self.observation_shape
        codec = fitting_codec(self.observation_dtype, stacked=stacked) if codec is None else codec
        if new_frames_per_transition is None:
            new_frames_per_transition = min(2 * self._stack, 1 + max(1, max_depth))
        max_frames = int(capacity * new_frames_per_transition) + 1
        frame_bytes = codec.bytes_needed(frame_shape, self.observation_dtype, max_frames)
        other_bytes = Records.bytes_needed(capacity, self._stack, max_depth) + capacity * BYTES_PER_SLOT * max_depth
        refuse_unless_it_fits(
            f"a replay buffer of {capacity:,} transitions ({(frame_bytes + other_bytes) / capacity:,.0f} bytes each)",
            frame_bytes + other_bytes,
            memory_bytes,
            "lower buffer_transitions, or compress frames",
        )
        self.bytes_limit = max(frame_bytes + other_bytes, memory_bytes or 0)
        self._frames = FrameStore(
            frame_shape,
            self.observation_dtype,
            codec,
            max_frames=max_frames,
            max_bytes=self.bytes_limit - other_bytes,
        )
        self._records = Records(capacity, record_type(self._stack, max_depth))
        self._by_depth = [DepthIndex(self._records.slots) for _ in range(max_depth + 1)]
        self.ranks = {depth: RankedDistances(self._records.slots) for depth in range(1, max_depth + 1)}
        self.forgotten_early = 0
        self._settings = {
            "capacity": capacity,
            "observation_shape": list(self.observation_shape),
            "observation_dtype": self.observation_dtype.str,
            "max_depth": max_depth,
            "stacked": stacked,
            "codec": codec.name,
            "bytes_limit": self.bytes_limit,
        }

    def __len__(self) -> int:
        return len(self._records)

    def count(self, depth: int) -> int:
        """Transitions of one depth."""
        return len(self._by_depth[depth])

    @property
    def bytes_used(self) -> int:
        """Memory that what is held takes: frames, records and ranks."""
        per_record = self._records.bytes_each + 8 + BYTES_PER_SLOT * self.max_depth
        return self._frames.bytes_used + len(self) * per_record

    @property
    def frames_stored(self) -> int:
        """How many frames have ever been stored, for measuring how much is shared."""
        return self._frames.stored

    def add(
        self,
        observation: Observation,
        action: int,
        reward_to_leaf: float,
        leaf_observation: Observation,
        depth: int,
        terminated: bool,
        distances: Mapping[int, float] | None = None,
    ) -> None:
        """Store a transition, forgetting the oldest if need be.

        Several per environment step are fine (decision 11): frames are shared; give `distances` with one of them only.

        Args:
            observation: (*observation_shape) the state.
            action: taken there.
            reward_to_leaf: discounted up to the leaf; kept as float32.
            leaf_observation: (*observation_shape) the leaf.
            depth: 0 to max_depth, the head to train.
            ended: nothing follows the leaf; False for truncation.
            distances: {h: |Ṽ* − value after depth h|} for depths 1 to max_depth; recorded in `ranks`.
        """
        self._check_observation(observation)
        self._check_observation(leaf_observation)
        if not 0 <= depth <= self.max_depth:
            raise ArgumentError("depth of a transition is out of range", expected=f"0 to {self.max_depth}", got=depth)
        if not np.isfinite(reward_to_leaf):
            raise ArgumentError("reward to the leaf is not finite", got=reward_to_leaf)
        recorded = self._checked_distances(distances or {})
        self._make_room()
        horizon = self._frames.horizon
        root, leaf = self._put(observation), self._put(leaf_observation)
        number = self._records.append((root, leaf, horizon, recorded, reward_to_leaf, action, depth, terminated))
        self._by_depth[depth].append(number)
        slot = self._records.slot(number)
        for level, distance in enumerate(recorded, 1):
            if distance == distance:
                self.ranks[level].insert(slot, distance)

    def sample(self, rng: np.random.Generator, n: int, depth: int | None = None) -> Batch:
        """Draw n transitions uniformly, with replacement: among all, or among those of one depth."""
        population = len(self) if depth is None else self.count(depth)
        if not population:
            raise ArgumentError(
                "nothing to sample from", got=f"an empty buffer{'' if depth is None else f' at depth {depth}'}"
            )
        drawn = rng.integers(population, size=n)
        numbers = self._records.oldest + drawn if depth is None else self._by_depth[depth].numbers(drawn)
        rows = self._records.rows(numbers)
        observations, leaves = self._read(rows["root"], rows["leaf"])
        return Batch(
            observations,
            rows["action"].astype(np.int64),
            rows["return"].copy(),
            leaves,
            rows["depth"].astype(np.int64),
            rows["terminated"].copy(),
        )

    def state(self) -> dict[str, Any]:
        """Plain data, arrays and segments, for a checkpoint made before the next `add`."""
        return {
            "settings": self._settings,
            "forgotten_early": self.forgotten_early,
            "records": self._records.state(),
            "frames": self._frames.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` saw: from here on, equal calls give equal answers, bit for bit."""
        if state["settings"] != self._settings:
            raise ArgumentError(
                "the replay buffer was saved with other settings",
                expected=self._settings,
                got=state["settings"],
                remedy="resume with the configuration of the run",
            )
        self.forgotten_early = state["forgotten_early"]
        self._records.load_state(state["records"])
        self._frames.load_state(state["frames"])
        numbers = self._records.numbers()
        rows = self._records.rows(numbers)
        for depth, index in enumerate(self._by_depth):
            index.refill(numbers[rows["depth"] == depth])
        for depth in self.ranks:
            distances = rows["distances"][:, depth - 1]
            there = ~np.isnan(distances)
            slots = numbers[there] % self._records.slots
            self.ranks[depth] = RankedDistances.of(self._records.slots, slots, distances[there])

    def _put(self, observation: Observation) -> list[int]:
        frames = observation if self._stacked else observation[None]
        return [self._frames.put(frame) for frame in frames]

    def _read(self, root: IntArray, leaf: IntArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Observations (n, *observation_shape) of the rows of frame numbers (n, stack), of states and of leaves."""
        n, ids = len(root), np.concatenate((root, leaf))
        if self._stacked:
            distinct, places = np.unique(ids, return_inverse=True)
            both = self._frames.read(distinct)[places.reshape(ids.shape)]
        else:
            both = self._frames.read(ids[:, 0])
        return both[:n], both[n:]

    def _make_room(self) -> None:
        if len(self) == self.capacity:
            self._forget_oldest()
        while not self._frames.has_room(2 * self._stack):
            if not self.forgotten_early:
                warnings.warn(
                    f"frames share or compress less than assumed: the replay buffer holds its limit of "
                    f"{in_words(self.bytes_limit)} with {len(self):,} transitions instead of {self.capacity:,}; "
                    f"give it more memory or lower buffer_transitions",
                    RuntimeWarning,
                    stacklevel=3,
                )
            self.forgotten_early += 1
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        slot = self._records.slot(self._records.oldest)
        row = self._records.forget_oldest()
        self._by_depth[row["depth"]].forget_oldest()
        for ranks in self.ranks.values():
            if slot in ranks:
                ranks.remove(slot)
        self._frames.release(self._records.oldest_horizon(default=self._frames.horizon))

    def _checked_distances(self, distances: Mapping[int, float]) -> list[float]:
        recorded = [NO_DISTANCE] * self.max_depth
        for depth, distance in distances.items():
            if not 1 <= depth <= self.max_depth:
                raise ArgumentError("depth of a distance is out of range", expected=f"1 to {self.max_depth}", got=depth)
            if not np.isfinite(distance):
                raise ArgumentError("a distance is not finite", got=distance)
            recorded[depth - 1] = float(distance)
        return recorded

    def _check_observation(self, observation: Observation) -> None:
        if observation.shape != self.observation_shape or observation.dtype != self.observation_dtype:
            raise ArgumentError(
                "observation does not match the replay buffer",
                expected=f"{self.observation_dtype} {self.observation_shape}",
                got=f"{observation.dtype} {observation.shape}",
            )
