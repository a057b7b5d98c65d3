"""Models from a function of states, built in a file, part by part: they never have to fit into memory.

What the function says of some states goes to temporary files beside the target, which vanish with the process; in the
end they are copied into an `.npz` file, which is mapped. Equal stochastic rows are stored once per part.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.errors import ArgumentError
from adalook.mdp import checks
from adalook.mdp.builders.functions import read_states
from adalook.mdp.model import MDP, TransitionFunction
from adalook.mdp.transitions import Rows, code_of_row, compress, index_type, is_stochastic, no_rows, row_of
from adalook.storage.files import file_error

PART_PAIRS = 2**22
"""(state, action) pairs that are held in memory at a time."""


def stream_function(
    fn: TransitionFunction,
    shape: tuple[int, int],
    discount: float,
    offered: BoolArray | None,
    batch_size: int,
    path: Path,
) -> MDP:
    """Build the model of `MDP.from_function` in the file at `path`, and map it; arguments are checked before."""
    if path.suffix.lower() != ".npz":
        raise ArgumentError("a model is built in a file of our own format", expected="a path in .npz", got=str(path))
    try:
        with ExitStack() as files:
            arrays = _stream(fn, shape, offered, batch_size, lambda: _Column(path.parent, files))
    except OSError as error:
        raise file_error("write", path, error) from error
    MDP._adopt(*arrays, discount, mapped=path).save(path)
    return MDP.load(path, mmap=True)


def _stream(
    fn: TransitionFunction,
    shape: tuple[int, int],
    offered: BoolArray | None,
    batch_size: int,
    new_column: Callable[[], _Column],
) -> tuple[FloatArray, IntArray, Rows]:
    """Return rewards, codes and rows, mapped."""
    num_states, num_actions = shape
    mask = None if offered is None else offered.__getitem__
    rewards, codes, lengths, indices, data = (new_column() for _ in range(5))
    narrow, num_rows = 0, 0
    together = max(1, PART_PAIRS // num_actions)
    for first in range(0, num_states, together):
        states = range(first, min(first + together, num_states))
        part = read_states(fn, states, num_states, num_actions, mask, batch_size)
        narrow = max(narrow, _REWARD_TYPES.index(checks.narrowest_type(part.rewards)))
        rewards.append(part.rewards, np.float64)
        if part.csr is None:
            codes.append(part.next_states, np.int64)
            continue
        here = np.ones(part.rewards.shape, bool) if part.offered is None else part.offered
        own, rows = compress(*part.csr, here)
        codes.append(np.where(is_stochastic(own), code_of_row(row_of(own) + np.int64(num_rows)), own), np.int64)
        lengths.append(np.diff(rows.indptr), np.int64)
        indices.append(rows.indices, np.int64)
        data.append(rows.data, np.float64)
        num_rows += rows.num_rows
    kind = index_type(max(num_states, indices.size, num_states * num_actions if num_rows else 0))
    large = num_states * num_actions >= checks.LARGE_PAIRS
    reward_kind = _REWARD_TYPES[narrow] if large else np.float64
    table = no_rows(kind)
    if num_rows:
        indptr = np.zeros(num_rows + 1, kind)
        np.cumsum(lengths.mapped(np.int64), out=indptr[1:])
        table = Rows(indptr, indices.mapped(kind, new_column), data.mapped(np.float64), 0)
    paid, moves = rewards.mapped(reward_kind, new_column), codes.mapped(kind, new_column)
    return paid.reshape(shape), moves.reshape(shape), table


_REWARD_TYPES: tuple[type[np.generic], ...] = (*checks.NARROW_TYPES, np.float64)


class _Column:
    """A flat array in a temporary file without a name, written from its beginning to its end."""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        self._file: IO[bytes] = files.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
        self._type: type[np.generic] = np.float64
        self.size = 0

    def append(self, part: np.ndarray, kind: type[np.generic]) -> None:
        """Write the numbers of an array behind those that are there, all of one type."""
        self._type = kind
        np.ascontiguousarray(part, kind).tofile(self._file)
        self.size += part.size

    def mapped(self, kind: type[np.generic], new_column: Callable[[], _Column] | None = None) -> np.ndarray:
        """Return the whole array, mapped; of another type than it was written in, from a new column."""
        if self.size == 0:
            return np.empty(0, kind)
        self._file.flush()
        whole = np.asarray(np.memmap(self._file, self._type, "r", shape=(self.size,)))
        if kind is self._type or new_column is None:
            return whole
        copy = new_column()
        for first in range(0, self.size, checks.CHUNK):
            copy.append(whole[first : first + checks.CHUNK], kind)
        return copy.mapped(kind)
