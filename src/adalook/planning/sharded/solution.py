"""The answer of a sharded solve: values and policy shard by shard, in memory or in files that are mapped, not read.

A directory holds `sharded.json`, with everything but the arrays, and `values-k.npy` and `policy-k.npy` of each shard k.
The JSON is written last: a directory without it is not finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import as_array
from adalook.errors import ArgumentError, FileError
from adalook.planning.sharded.shard import ShardState
from adalook.planning.solution import Status
from adalook.storage.documents import check_document, parse_json, with_digest
from adalook.storage.files import atomic_write, make_directory, open_to_read, read_file

FORMAT = "adalook sharded solution"
FORMAT_VERSION = 2
FILE = "sharded.json"
MAX_FILE_BYTES = 64 * 2**20


class ShardRound(NamedTuple):
    """One round: every shard whose halo changed was improved, and what that changed on the boundary."""

    boundary_change: float
    """max|G(x) − x| over the boundary values x, see `boundary`."""
    policy_loss: float
    """About what is known of max(V* − V^π); the certificate has the last word."""
    tolerance: float
    """To which the shards were solved."""
    improved: int
    """Shards that were asked: those whose halo or tolerance had changed."""
    passes: int
    """The most passes that a shard made."""
    changed: int
    """Actions that changed."""
    sent_bytes: int
    """Boundary values that went to the shards."""
    received_bytes: int
    """Boundary values that came back."""
    exchanges: int
    """Exchanges of boundary values while every shard kept its policy, to find where the next round begins."""
    seconds: float
    """Since the solve began."""


class Found(NamedTuple):
    """Values, actions and certified bounds of some states."""

    values: FloatArray
    policy: IntArray
    lower: FloatArray
    """lower <= V*, certified."""
    upper: FloatArray
    """V* <= upper, certified."""


@dataclass(frozen=True, eq=False)
class ShardedSolution:
    """The answer to `ShardedMDP.solve`."""

    edges: tuple[int, ...]
    """Shard k has the states edges[k] to edges[k + 1] − 1."""
    parts: Sequence[ShardState] = field(repr=False)
    """Values and policy of each shard."""
    low: float
    """values + low <= V* …"""
    high: float
    """… <= values + high: certified, for float64 data read as exact rationals."""
    policy_loss: float
    """Certified bound on max(V* − V^policy)."""
    status: Status
    message: str
    """The status in a sentence."""
    tolerance: float
    trace: tuple[ShardRound, ...] = field(repr=False)
    restarts: int
    """Processes or actors that died and were replaced."""
    seconds: float
    build_seconds: float
    """How much of `seconds` went by until all shards were built."""
    directory: Path | None = None
    """Where the shards are, if they are on disk."""

    @property
    def num_states(self) -> int:
        """Number of states of the whole model."""
        return self.edges[-1]

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached and certified."""
        return self.status is Status.CONVERGED

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.trace)

    @property
    def values(self) -> FloatArray:
        """(S,) all values, put together each time they are asked for: only where they fit."""
        return np.concatenate([part.values for part in self.parts])

    @property
    def policy(self) -> IntArray:
        """(S,) all actions, likewise."""
        return np.concatenate([part.policy for part in self.parts])

    def lookup(self, states: Any) -> Found:
        """Return values, actions and certified bounds of some states; of files, only their pages are read.

        >>> import adalook as al
        >>> def walk(s):
        ...     left, right = np.maximum(s - 1, 0), np.minimum(s + 1, 99)
        ...     return np.stack([s == 0, s == 99], axis=1), np.stack([left, right], axis=1)
        >>> model = al.ShardedMDP.from_function(walk, 100, 2, discount=0.9, shards=2)
        >>> found = model.solve().lookup([0, 49, 50])
        >>> found.policy
        array([0, 0, 1], dtype=int32)
        """
        wanted = as_array("states", states)
        if wanted.dtype.kind not in "iu" and wanted.size:
            raise ArgumentError("states are wrong", expected="whole numbers", got=f"dtype {wanted.dtype}")
        wanted = wanted.astype(np.int64)
        if wanted.size and not (int(wanted.min()) >= 0 and int(wanted.max()) < self.num_states):
            outside = wanted[(wanted < 0) | (wanted >= self.num_states)]
            raise ArgumentError(
                "there is no such state", expected=f"0 to {self.num_states - 1}", got=int(outside.flat[0])
            )
        values, policy = np.empty(wanted.shape), np.empty(wanted.shape, np.int32)
        owner = np.searchsorted(self.edges, wanted, side="right") - 1
        for k in np.unique(owner):
            here = owner == k
            place = wanted[here] - self.edges[k]
            values[here], policy[here] = self.parts[k].values[place], self.parts[k].policy[place]
        return Found(values, policy, values + self.low, values + self.high)

    def save(self, directory: str | Path) -> list[Path]:
        """Write the shards into a directory, for `load`; return the files."""
        place = Path(directory)
        paths = [path for k, part in enumerate(self.parts) for path in write_part(place, k, part)]
        return [*paths, write_summary(self, place)]

    @classmethod
    def load(cls, directory: str | Path) -> ShardedSolution:
        """Map a solution that was saved: nothing but its summary is read before somebody asks."""
        return read_solution(Path(directory))

    def __repr__(self) -> str:
        return (
            f"ShardedSolution({self.num_states:,} states on {len(self.parts)} shards: {self.status.value} after "
            f"{self.rounds} rounds, policy_loss <= {self.policy_loss:.2g})"
        )


def write_part(directory: Path, k: int, part: ShardState) -> list[Path]:
    """Write the values and the policy of shard k; return the files."""
    make_directory(directory)
    paths = []
    for name, array in zip(ShardState._fields, part, strict=True):
        paths.append(directory / f"{name}-{k}.npy")
        with atomic_write(paths[-1]) as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return paths


def map_parts(directory: Path, edges: Iterable[int]) -> list[ShardState]:
    """Map what `write_part` wrote; every array must have the type and the length that belong to its shard."""
    parts = []
    for k, (first, last) in enumerate(pairwise(edges)):
        arrays = []
        for name, kind in zip(ShardState._fields, ("<f8", "<i4"), strict=True):
            path = directory / f"{name}-{k}.npy"
            try:
                open_to_read(path).close()
                array = np.load(path, mmap_mode="r", allow_pickle=False)
            except Exception as error:  # numpy parses the header as Python, and lets all kinds of errors through
                raise FileError(f"cannot map {path}", got=error) from error
            if array.dtype.str != kind or array.shape != (last - first,):
                raise FileError(
                    f"{path} does not belong to this solution",
                    expected=f"{last - first} numbers of type {kind}",
                    got=f"{array.dtype.str} {array.shape}",
                )
            arrays.append(array)
        parts.append(ShardState(*arrays))
    return parts


def write_summary(solution: ShardedSolution, directory: Path) -> Path:
    """Write everything but the arrays, last of all."""
    about = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "edges": list(solution.edges),
        "bounds": [float(number).hex() for number in (solution.low, solution.high, solution.policy_loss)],
        "status": solution.status.value,
        "message": solution.message,
        "tolerance": solution.tolerance,
        "restarts": solution.restarts,
        "seconds": solution.seconds,
        "build_seconds": solution.build_seconds,
        "trace": [list(item) for item in solution.trace],
    }
    path = directory / FILE
    with atomic_write(path) as file:
        file.write(json.dumps(with_digest(about), indent=1).encode())
    return path


def read_solution(directory: Path) -> ShardedSolution:
    """Return the solution in a directory."""
    path = directory / FILE
    try:
        about = parse_json(read_file(path, MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"cannot read {path}", got=error, remedy="save one with solution.save(directory)") from error
    about = check_document(about, path)
    if about.get("format") != FORMAT or about.get("version") != FORMAT_VERSION:
        raise FileError(
            f"{path} is of another format",
            expected=f"{FORMAT}, version {FORMAT_VERSION}",
            got=f"{about.get('format')!r}, {about.get('version')!r}"[:80],
        )
    try:
        low, high, loss = (float.fromhex(text) for text in about["bounds"])
        edges = tuple(int(edge) for edge in about["edges"])
        if len(edges) < 2 or edges[0] != 0 or any(first > last for first, last in pairwise(edges)):
            raise ValueError("the edges of the shards are wrong")
        solution = ShardedSolution(
            edges,
            map_parts(directory, edges),
            low,
            high,
            loss,
            Status(about["status"]),
            str(about["message"]),
            float(about["tolerance"]),
            tuple(ShardRound(*item) for item in about["trace"]),
            int(about["restarts"]),
            float(about["seconds"]),
            float(about["build_seconds"]),
            directory,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is damaged", got=repr(error)) from error
    return solution
