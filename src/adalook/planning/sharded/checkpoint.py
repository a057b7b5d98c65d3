"""Checkpoints of a sharded solve: a directory that a solve which was killed goes on from, to the same bits.

    state-N/          values and policy of every shard after N rounds, as `solution` writes them
    checkpoint.npz    what the process that runs the rounds knew then; written last

Shards are fetched and written one at a time, by the process that runs the rounds: machines need no disk in common.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from adalook.errors import FileError
from adalook.planning.sharded.shard import LocalAnswer
from adalook.planning.sharded.solution import ShardRound, map_parts, write_part
from adalook.planning.solution import Status
from adalook.storage.arrays import UNPACKED, pack_arrays, unpack_arrays
from adalook.storage.files import atomic_write, make_directory, read_file

if TYPE_CHECKING:
    from adalook.planning.sharded.rounds import Rounds

FILE = "checkpoint.npz"
VERSION = 2
INTERVAL_SECONDS = 60.0
SHARE = 0.05
"""Writing may take at most this share of the time, unless it is asked for after every round."""
STATUSES = tuple(Status)
NUMBERS = ("stage", "begun", "refinements", "change", "last", "finest", "reduction")
"""Of the rounds, in the order in which they are saved."""


class RoundsCheckpoint:
    """The checkpoint directory of one solve: read once at its start, written now and then.

    Args:
        directory: made if need be.
        interval: least seconds between two writings.
        digest: of the model, its shards and the tolerance; a checkpoint of others is refused.
        edges: of the shards.
    """

    def __init__(self, directory: Path, interval: float, digest: str, edges: tuple[int, ...]) -> None:
        make_directory(directory)
        self._directory, self._interval, self._digest, self._edges = directory, interval, digest, edges
        self._last = perf_counter()
        self._cost = 0.0

    def due(self) -> bool:
        """Return whether it is time to write."""
        pause = max(self._interval, self._cost / SHARE) if self._interval else 0.0
        return perf_counter() - self._last >= pause

    def write(self, rounds: Rounds) -> None:
        """Write the shards, then what belongs to them; then forget what is older."""
        began = perf_counter()
        number = len(rounds.trace)
        place = self._directory / f"state-{number}"
        for k in range(len(self._edges) - 1):
            write_part(place, k, rounds.state(k))
        arrays = {
            "version": np.array([VERSION]),
            "digest": np.frombuffer(self._digest.encode(), np.uint8),
            "x": rounds.x,
            "g": rounds.g,
            "before": rounds.before,
            "numbers": np.array([getattr(rounds, name) for name in NUMBERS]),
            "trace": np.array(rounds.trace, np.float64).reshape(number, len(ShardRound._fields)),
        }
        for k, answer in rounds.answers.items():
            halo, reached = rounds.halo[k]
            arrays |= {f"boundary-{k}": answer.boundary, f"shared-{k}": answer.shared, f"halo-{k}": halo}
            status = STATUSES.index(answer.status)
            arrays[f"answer-{k}"] = np.array([answer.low, answer.high, answer.passes, answer.changed, status, reached])
        with atomic_write(self._directory / FILE) as file:
            file.write(pack_arrays(arrays, compress=False))
        for other in self._directory.glob("state-*"):
            if other != place:
                shutil.rmtree(other, ignore_errors=True)
        rounds.log.snapshot = dict(enumerate(map_parts(place, self._edges)))
        rounds.log.told.clear()
        self._last = perf_counter()
        self._cost = self._last - began

    def read(self, rounds: Rounds) -> bool:
        """Bring rounds that have not begun to where the checkpoint was written; False if there is none."""
        path = self._directory / FILE
        if not path.exists():
            return False
        try:
            arrays = unpack_arrays(read_file(path), path, max_growth=UNPACKED)
            if arrays["version"].tolist() != [VERSION] or arrays["digest"].tobytes().decode() != self._digest:
                raise FileError(
                    f"{path} belongs to another solve",
                    expected="the same model, shards and tolerance",
                    remedy="choose another directory, or remove this one",
                )
            trace = [_round(item) for item in arrays["trace"].tolist()]
            place = self._directory / f"state-{len(trace)}"
            rounds.log.snapshot = dict(enumerate(map_parts(place, self._edges)))
            for name in ("x", "g", "before"):
                found, known = arrays[name], getattr(rounds, name)
                if (found.shape, found.dtype) != (known.shape, known.dtype):
                    raise ValueError(f"{name} is {found.dtype} of shape {found.shape}")
            rounds.x, rounds.g, rounds.before, rounds.trace = arrays["x"], arrays["g"], arrays["before"], trace
            stage, begun, refinements, *others = arrays["numbers"].tolist()
            rounds.enter(int(stage), int(begun))
            rounds.refinements = int(refinements)
            rounds.change, rounds.last, rounds.finest, rounds.reduction = others
            for k in [k for k in range(len(self._edges) - 1) if f"answer-{k}" in arrays]:
                low, high, passes, changed, status, reached = arrays[f"answer-{k}"].tolist()
                boundary, shared = arrays[f"boundary-{k}"], arrays[f"shared-{k}"]
                rounds.answers[k] = LocalAnswer(
                    boundary, shared, low, high, int(passes), int(changed), STATUSES[int(status)]
                )
                rounds.halo[k] = arrays[f"halo-{k}"], reached
                rounds.parts[k] = rounds.answers[k]
        except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{path} is damaged", got=repr(error), remedy="remove it to begin anew") from error
        rounds.restore()
        return True

    def remove(self) -> None:
        """Remove the checkpoint of a solve that is done."""
        (self._directory / FILE).unlink(missing_ok=True)
        for place in self._directory.glob("state-*"):
            shutil.rmtree(place, ignore_errors=True)


def _round(numbers: list[float]) -> ShardRound:
    """Return a round from numbers, with the types that they had."""
    change, loss, tolerance, *counts, seconds = numbers
    improved, passes, changed, sent, received, exchanges = map(int, counts)
    return ShardRound(change, loss, tolerance, improved, passes, changed, sent, received, exchanges, seconds)
