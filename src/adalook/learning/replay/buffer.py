"""Replay buffer: transitions from a state to the best leaf of its search tree, or to the next state (QL-DQN step 6).

A transition is (s₀, a₀, R, leaf, head, steps, terminated). R = Σ_{t<steps} γᵗ rₜ is the return up to the leaf; `head`
is the head of the network to train; `terminated` says that nothing follows the leaf. A truncated episode has not
terminated, and its last state is bootstrapped from like any other. Observations are rows of frame numbers (`frames`),
so that a leaf's stack costs its new frames only.

Transitions are forgotten oldest first, and their distances with them. Nothing here draws random numbers of its own:
`sample` takes a generator.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adalook._arrays import BoolArray, IntArray
from adalook.errors import ArgumentError
from adalook.learning.config import DEEPEST
from adalook.learning.depth import DistanceRanks
from adalook.learning.replay.codecs import LZ4, Raw, fitting_codec, shows_stacked_frames
from adalook.learning.replay.frames import Codec, FrameStore
from adalook.simulators.base import Simulator
from adalook.storage.serializer import Segment

Observation = NDArray[Any]

SEGMENT_RECORDS = 4096
"""Records per segment: checkpoints write a segment once."""

MEMORY_SHARE = 0.9
"""Share of the free memory that a buffer may fill: the rest is for networks and everything else that comes later."""


class Experience(NamedTuple):
    """One transition to learn from."""

    observation: Observation
    """(*observation_shape) the state."""
    action: int
    """The action taken there."""
    return_to_leaf: float
    """Discounted rewards up to the leaf; kept as float32."""
    leaf: Observation
    """(*observation_shape) what the leaf, or the next state, shows."""
    head: int
    """The head of the network to train: the depth of the tree, 0 without one."""
    steps: int
    """Steps from the state to the leaf; its value is discounted by γ^steps."""
    terminated: bool
    """Nothing follows the leaf; False for truncation."""


@dataclass(frozen=True, eq=False)
class Batch:
    """n transitions, struct of arrays."""

    observations: NDArray[Any]
    """(n, *observation_shape)"""
    actions: IntArray
    """(n,) int64"""
    returns: NDArray[np.float32]
    """(n,) discounted rewards up to the leaf"""
    leaves: NDArray[Any]
    """(n, *observation_shape)"""
    heads: IntArray
    """(n,) int64: the head to train"""
    steps: IntArray
    """(n,) int64: steps to the leaf"""
    terminated: BoolArray
    """(n,) nothing follows the leaf"""


class Replay:
    """The last `capacity` transitions.

    >>> ranks = DistanceRanks(min_count=1)
    >>> replay = Replay(100, (4, 10, 10), np.dtype(bool), max_depth=2, ranks=ranks)
    >>> here, there = np.zeros((2, 4, 10, 10), bool)
    >>> replay.add(Experience(here, 1, 0.5, there, head=2, steps=2, terminated=False), distances={1: 0.25})
    >>> replay.sample(np.random.default_rng(0), 3).returns.tolist()
    [0.5, 0.5, 0.5]
    >>> ranks.count(1)
    1
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: tuple[int, ...],
        observation_dtype: np.dtype[Any],
        *,
        max_depth: int,
        ranks: DistanceRanks | None = None,
        stacked: bool = False,
        codec: Codec | None = None,
        memory_bytes: int | None = None,
        new_frames_per_transition: float | None = None,
    ) -> None:
        """Make an empty buffer; what cannot fit in memory is refused before it is allocated.

        Args:
            capacity: transitions to hold.
            observation_shape: of one state.
            observation_dtype: of one state.
            max_depth: of the trees.
            ranks: from now on holds the distances of this buffer's transitions, and no others; None: ranks of its own.
            stacked: the first axis of an observation is a stack of frames, which are stored one by one.
            codec: how frames are packed; None: what fits them.
            memory_bytes: what the buffer may take; None: what it is estimated to need, if the machine has that left.
            new_frames_per_transition: frames to make room for, per transition; None: one for the state and one for each
                step to the leaf. Should there be more, the oldest transitions are forgotten early, with a warning.
        """
        if capacity < 1 or max_depth < 0:
            raise ArgumentError("a replay buffer cannot be so small", got=f"capacity={capacity}, max_depth={max_depth}")
        self.capacity, self.max_depth = capacity, max_depth
        self.observation_shape, self.observation_dtype = tuple(observation_shape), np.dtype(observation_dtype)
        self.ranks = DistanceRanks(min_count=1) if ranks is None else ranks
        self.ranks.replace({})
        self._stack = observation_shape[0] if stacked else 1
        self._stacked = stacked
        frame_shape = self.observation_shape[1:] if stacked else self.observation_shape
        codec = fitting_codec(self.observation_dtype, stacked=stacked) if codec is None else codec
        if new_frames_per_transition is None:
            new_frames_per_transition = min(2 * self._stack, 1 + max(1, max_depth))
        max_frames = int(capacity * new_frames_per_transition) + 1
        frame_bytes = codec.bytes_needed(frame_shape, self.observation_dtype, max_frames)
        other_bytes = (
            Records.bytes_needed(capacity, self._stack, max_depth) + capacity * DistanceRanks.BYTES_EACH * max_depth
        )
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

    @classmethod
    def for_simulator(
        cls, sim: Simulator, capacity: int, *, max_depth: int, ranks: DistanceRanks, compression: str
    ) -> Replay:
        """Return an empty buffer in the format that the simulator's observations ask for.

        Args:
            compression: as in `Config`: "none", "lz4" or "auto".
        """
        stacked = shows_stacked_frames(sim)
        codecs = {
            "auto": lambda: fitting_codec(sim.observation_dtype, stacked=stacked, binary=sim.binary_observations),
            "none": Raw,
            "lz4": LZ4,
        }
        return cls(
            capacity,
            sim.observation_shape,
            sim.observation_dtype,
            max_depth=max_depth,
            ranks=ranks,
            stacked=stacked,
            codec=codecs[compression](),
        )

    def __len__(self) -> int:
        return len(self._records)

    @property
    def bytes_used(self) -> int:
        """Memory that what is held takes: frames, records and ranks."""
        per_record = self._records.bytes_each + DistanceRanks.BYTES_EACH * self.max_depth
        return self._frames.bytes_used + len(self) * per_record

    @property
    def frames_stored(self) -> int:
        """The number of frames that have ever been stored, for measuring how much is shared."""
        return self._frames.stored

    def add(self, experience: Experience, distances: Mapping[int, float] | None = None) -> None:
        """Store a transition, forgetting the oldest if need be.

        Several per environment step are fine (decision 11): frames are shared; give `distances` with one of them only.

        Args:
            experience: the transition.
            distances: {h: |Ṽ* − value after depth h|} for depths 1 to max_depth; recorded in the ranks.
        """
        self._check(experience)
        recorded = self._checked_distances(distances or {})
        self._make_room()
        horizon = self._frames.horizon
        root, leaf = self._put(experience.observation), self._put(experience.leaf)
        _, action, return_to_leaf, _, head, steps, terminated = experience
        self._records.append((root, leaf, horizon, recorded, return_to_leaf, action, head, steps, terminated))
        for depth, distance in enumerate(recorded, 1):
            if distance == distance:  # not NaN
                self.ranks.add(depth, distance)

    def sample(self, rng: np.random.Generator, n: int) -> Batch:
        """Draw n transitions uniformly, with replacement."""
        if not len(self):
            raise ArgumentError("nothing to sample from", got="an empty buffer")
        rows = self._records.rows(self._records.oldest + rng.integers(len(self), size=n))
        observations, leaves = self._read(rows["root"], rows["leaf"])
        return Batch(
            observations,
            rows["action"].astype(np.int64),
            rows["return"].copy(),
            leaves,
            rows["head"].astype(np.int64),
            rows["steps"].astype(np.int64),
            rows["terminated"].copy(),
        )

    def state(self) -> dict[str, Any]:
        """Return plain data, arrays and segments, for a checkpoint made before the next `add`."""
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
        rows = self._records.rows(self._records.numbers())
        for part in ("root", "leaf"):
            if len(rows) and not self._frames.holds(int(rows[part].min()), int(rows[part].max())):
                raise ValueError("records of frames that are not there")
        distances = rows["distances"]
        by_depth = dict(enumerate(distances.T, 1))
        self.ranks.replace({depth: column[~np.isnan(column)] for depth, column in by_depth.items()})

    def _put(self, observation: Observation) -> list[int]:
        frames = observation if self._stacked else observation[None]
        return [self._frames.put(frame) for frame in frames]

    def _read(self, root: IntArray, leaf: IntArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return observations (n, *observation_shape) of states and of leaves by their frame numbers (n, stack)."""
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
                    f"{bytes_in_words(self.bytes_limit)} with {len(self):,} transitions instead of {self.capacity:,}; "
                    f"give it more memory or lower buffer_transitions",
                    RuntimeWarning,
                    stacklevel=3,
                )
            self.forgotten_early += 1
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        row = self._records.forget_oldest()
        for depth, distance in enumerate(row["distances"].tolist(), 1):
            if distance == distance:  # not NaN
                self.ranks.remove(depth, distance)
        self._frames.release(self._records.oldest_horizon(default=self._frames.horizon))

    def _check(self, experience: Experience) -> None:
        for observation in (experience.observation, experience.leaf):
            if observation.shape != self.observation_shape or observation.dtype != self.observation_dtype:
                raise ArgumentError(
                    "observation does not match the replay buffer",
                    expected=f"{self.observation_dtype} {self.observation_shape}",
                    got=f"{observation.dtype} {observation.shape}",
                )
        if not 0 <= experience.head <= self.max_depth:
            raise ArgumentError(
                "head of a transition is out of range", expected=f"0 to {self.max_depth}", got=experience.head
            )
        if not 1 <= experience.steps <= DEEPEST:
            raise ArgumentError(
                "steps of a transition are out of range", expected=f"1 to {DEEPEST}", got=experience.steps
            )
        if not math.isfinite(experience.return_to_leaf):
            raise ArgumentError("return to the leaf is not finite", got=experience.return_to_leaf)

    def _checked_distances(self, distances: Mapping[int, float]) -> list[float]:
        recorded = [math.nan] * self.max_depth
        for depth, distance in distances.items():
            if not 1 <= depth <= self.max_depth:
                raise ArgumentError("depth of a distance is out of range", expected=f"1 to {self.max_depth}", got=depth)
            if not math.isfinite(distance):
                raise ArgumentError("a distance is not finite", got=distance)
            recorded[depth - 1] = float(distance)
        return recorded


def record_type(stack: int, max_depth: int) -> np.dtype[Any]:
    """Return the type of one record: frame numbers, the oldest frame it may hold, distances (NaN: none), the rest."""
    return np.dtype(
        [
            ("root", np.int64, (stack,)),
            ("leaf", np.int64, (stack,)),
            ("horizon", np.int64),
            ("distances", np.float64, (max_depth,)),
            ("return", np.float32),
            ("action", np.int32),
            ("head", np.int8),
            ("steps", np.int8),
            ("terminated", np.bool_),
        ]
    )


class Records:
    """A ring of the last records, oldest first, in which at least `capacity` fit.

    Records are numbered from 0 as they come; record `number` lives in slot `number % slots`.
    """

    def __init__(self, capacity: int, kind: np.dtype[Any]) -> None:
        self._kind = kind
        self._slots = _whole_segments(capacity)  # whole segments, so that none wraps around
        self._ring = np.zeros(self._slots, kind)
        self._sealed: dict[int, Segment] = {}
        self.oldest = 0
        self.next = 0

    @staticmethod
    def bytes_needed(capacity: int, stack: int, max_depth: int) -> int:
        """Return the memory of the ring."""
        return _whole_segments(capacity) * record_type(stack, max_depth).itemsize

    @property
    def bytes_each(self) -> int:
        """Memory of one record."""
        return self._kind.itemsize

    def __len__(self) -> int:
        return self.next - self.oldest

    def numbers(self) -> IntArray:
        """Return the numbers (n,) of all records that are held, ascending."""
        return np.arange(self.oldest, self.next)

    def append(self, record: tuple[Any, ...]) -> None:
        """Add a record."""
        self._ring[self.next % self._slots] = record
        self.next += 1

    def rows(self, numbers: IntArray) -> NDArray[Any]:
        """Return copies of records (n,) by their numbers."""
        return self._ring[numbers % self._slots]

    def forget_oldest(self) -> Any:
        """Forget the oldest record and return it; it is good until the next one is added."""
        row = self._ring[self.oldest % self._slots]
        self._sealed.pop(self.oldest // SEGMENT_RECORDS, None)
        self.oldest += 1
        return row

    def oldest_horizon(self, default: int) -> int:
        """Return a frame number below which no record holds frames."""
        return int(self._ring["horizon"][self.oldest % self._slots]) if len(self) else default

    def state(self) -> dict[str, Any]:
        """Return whole segments as such, and the records before and after them as arrays."""
        first = -(-self.oldest // SEGMENT_RECORDS)
        last = max(first, self.next // SEGMENT_RECORDS)
        for number in range(first, last):
            if number not in self._sealed:
                self._sealed[number] = Segment(self._segment_rows(number))
        before = np.arange(self.oldest, min(first * SEGMENT_RECORDS, self.next))
        after = np.arange(min(last * SEGMENT_RECORDS, self.next), self.next)
        return {
            "oldest": self.oldest,
            "next": self.next,
            "before": self.rows(before).view(np.uint8),
            "segments": [self._sealed[number] for number in range(first, last)],
            "after": self.rows(after).view(np.uint8),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` saw."""
        self.oldest, self.next = index(state["oldest"]), index(state["next"])
        self._sealed = {}
        parts = [state["before"], *(segment.payload for segment in state["segments"]), state["after"]]
        number = self.oldest
        for part in parts:
            rows = part.view(self._kind)
            self._ring[np.arange(number, number + len(rows)) % self._slots] = rows
            number += len(rows)
        if self.oldest < 0 or number != self.next:
            raise ValueError(f"records {self.oldest} to {self.next}, but {number - self.oldest} of them")
        first = -(-self.oldest // SEGMENT_RECORDS)
        for place, segment in enumerate(state["segments"], first):
            self._sealed[place] = Segment(self._segment_rows(place), segment.digest)

    def _segment_rows(self, number: int) -> NDArray[Any]:
        start = number * SEGMENT_RECORDS % self._slots
        return self._ring[start : start + SEGMENT_RECORDS]


def _whole_segments(capacity: int) -> int:
    return -(-capacity // SEGMENT_RECORDS) * SEGMENT_RECORDS


def refuse_unless_it_fits(what: str, estimate: int, allowed: int | None, remedy: str) -> None:
    """Raise, with the numbers, if `estimate` bytes are more than `allowed` (None: than what the machine has left)."""
    if allowed is None:
        free = available_bytes()
        if free is None:
            return
        allowed = int(free * MEMORY_SHARE)
        limit = f"{MEMORY_SHARE:.0%} of the {bytes_in_words(free)} at hand"
    else:
        limit = "the limit that was set"
    if estimate > allowed:
        raise ArgumentError(
            f"{what} does not fit in memory",
            expected=f"at most {bytes_in_words(allowed)} ({limit})",
            got=f"an estimate of {bytes_in_words(estimate)}",
            remedy=remedy,
        )


def bytes_in_words(count: int) -> str:
    """Return a number of bytes for people.

    >>> bytes_in_words(3 * 2**29), bytes_in_words(3 * 2**19)
    ('1.50 GiB', '1.50 MiB')
    """
    return f"{count / 2**30:,.2f} GiB" if count >= 2**30 else f"{count / 2**20:.2f} MiB"


def available_bytes() -> int | None:
    """Return the memory that this process can still take without swapping, within its limits; None: not known."""
    found = [_bytes_from_meminfo(), _bytes_from_control_group()]
    return min((bytes_free for bytes_free in found if bytes_free is not None), default=None)


def _bytes_from_meminfo() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    available = fields.get("MemAvailable", "").split()
    return int(available[0]) * 1024 if available else None


def _bytes_from_control_group() -> int | None:
    """Return what a container's limit leaves (control groups, version 2)."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)
