"""The sources of a shard's part of a model: a function of states, or a model file that is mapped, not read.

A `Block` holds the rewards and transitions of a contiguous range of states, with successors by their number in the
whole model. *Shared rows* that lead nearly everywhere, such as "move to a random cell", are not part of any block's
transitions: they are successors of their own, `num_states + r` for row r, whose value Σ p(s) v(s) is added up from what
every block knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.errors import ModelError
from adalook.mdp import checks
from adalook.mdp.builders.functions import read_states
from adalook.mdp.files.mapped import MappedModel, map_npz
from adalook.mdp.transitions import NOT_OFFERED, Rows, code_of_row, compress, index_type, is_stochastic, no_rows, row_of

MOST_SHARED_ROWS = 64
"""Shared rows of a file that are kept apart; a model with more has them among the rows of its blocks."""
WIDE_SHARE = 0.25
"""A row of a file that leads to so many of all states is kept apart."""


class Block(NamedTuple):
    """The rewards and transitions of n states that follow each other."""

    rewards: FloatArray  # (n, A)
    codes: IntArray  # (n, A) transition codes; next states are those of the whole model
    rows: Rows  # successors likewise
    shared: Rows  # (R rows) the part of each shared row that lies in this block, its states counted from 0


class BlockSource(Protocol):
    """Something that every shard's process can make its own block from, small enough to be sent to it."""

    @property
    def num_states(self) -> int:
        """Number of states of the whole model."""

    @property
    def num_actions(self) -> int:
        """Number of actions."""

    @property
    def discount(self) -> float:
        """The discount γ."""

    @property
    def num_shared(self) -> int:
        """Number R of shared rows that are kept apart."""

    def block(self, states: range) -> Block:
        """Return the part of a range of states."""


@dataclass(frozen=True)
class FunctionSource:
    """A model that is given by a function of states."""

    fn: Callable[[IntArray], tuple[Any, ...]]
    num_states: int
    num_actions: int
    discount: float
    mask: Callable[[IntArray], Any] | None
    shared_rows: Callable[[IntArray], Any] | None
    num_shared: int
    batch_size: int

    def block(self, states: range) -> Block:
        """Call the functions on these states, batch by batch."""
        successors = self.num_states + self.num_shared
        mask = None if self.mask is None else self._offered
        part = read_states(self.fn, states, successors, self.num_actions, mask, self.batch_size)
        if part.csr is None:
            codes, rows = part.next_states, no_rows(index_type(successors))
        else:
            everything = np.ones(part.rewards.shape, bool) if part.offered is None else part.offered
            codes, rows = compress(*part.csr, everything)
        return Block(part.rewards, codes, rows, self._shared(states))

    def _offered(self, states: IntArray) -> BoolArray:
        """Return which actions these states offer, checked."""
        assert self.mask is not None
        shape = (len(states), self.num_actions)
        offered = checks.checked_mask(self.mask(states), shape, int(states[0]))
        return np.ones(shape, bool) if offered is None else offered

    def _shared(self, states: range) -> Rows:
        """Return the part of every shared row that lies in these states."""
        if self.shared_rows is None:
            return Rows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), 0)
        found: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in range(self.num_shared)]
        for first in range(states.start, states.stop, self.batch_size):
            batch = np.arange(first, min(first + self.batch_size, states.stop))
            weights = shared_weights(self.shared_rows, batch, self.num_shared)
            for row, column in enumerate(weights.T):
                used = np.flatnonzero(column)
                found[row].append((used + (first - states.start), column[used]))
        lengths = [sum(len(indices) for indices, _ in parts) for parts in found]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        indices = np.concatenate([indices for parts in found for indices, _ in parts])
        data = np.concatenate([weights for parts in found for _, weights in parts])
        return Rows(indptr, indices.astype(index_type(len(states))), data, self.num_shared)


def shared_weights(fn: Callable[[IntArray], Any], states: IntArray, count: int | None = None) -> FloatArray:
    """Return (B, R) the probabilities with which each shared row leads to these states, checked."""
    given = checks.number_array(fn(states), "what shared_rows returned")
    if given.ndim != 2 or len(given) != len(states) or (count is not None and given.shape[1] != count):
        raise ModelError(
            "shared_rows returned the wrong shape",
            expected=f"(B, R) = ({len(states)}, {'R' if count is None else count})",
            got=given.shape,
        )
    weights = np.asarray(given, np.float64)
    wrong = ~((weights >= 0.0) & (weights <= 1.0))
    if wrong.any():
        s, row = np.argwhere(wrong)[0]
        raise ModelError(
            f"the probability with which shared row {row} leads to state {states[s]} is wrong",
            expected="a number in [0, 1]",
            got=weights[s, row],
        )
    return weights


@dataclass(frozen=True)
class FileSource:
    """A model file that every process maps, and of which it reads only its own states.

    Make one with `of`.
    """

    path: Path
    num_states: int
    num_actions: int
    discount: float
    wide_rows: tuple[int, ...]
    """Rows that are kept apart."""

    @classmethod
    def of(cls, path: Path, discount: float | None) -> FileSource:
        """Look at a model file."""
        model = map_npz(path)
        widths = np.diff(model.indptr[: model.num_shared + 1])
        wide = np.flatnonzero(widths >= WIDE_SHARE * len(model.codes))
        rows = tuple(wide.tolist()) if len(wide) <= MOST_SHARED_ROWS else ()
        gamma = model.discount if discount is None else checks.checked_discount(discount)
        num_states, num_actions = model.codes.shape
        return cls(path.resolve(), num_states, num_actions, gamma, rows)

    @property
    def num_shared(self) -> int:
        """Number of rows that are kept apart."""
        return len(self.wide_rows)

    def block(self, states: range) -> Block:
        """Read these states, and check them."""
        model = map_npz(self.path)
        if model.codes.shape != (self.num_states, self.num_actions):
            raise ModelError(
                f"{self.path} has changed", expected=(self.num_states, self.num_actions), got=model.codes.shape
            )
        here = slice(states.start, states.stop)
        kind = np.promote_types(model.codes.dtype, index_type(self.num_states + self.num_shared))
        given: IntArray = np.array(model.codes[here], kind)
        num_rows, first = len(model.indptr) - 1, states.start
        offered = given != NOT_OFFERED
        rewards = checks.checked_rewards(model.rewards[here], offered, first).astype(np.float64, copy=False)
        checks.checked_mask(offered, offered.shape, first)
        wrong = (given >= self.num_states) | (given <= code_of_row(num_rows))
        if wrong.any():
            s, a = np.argwhere(wrong)[0]
            raise ModelError(f"the code of state {first + s}, action {a} is out of range", got=int(given[s, a]))
        codes = given.copy()
        for number, row in enumerate(self.wide_rows):
            codes[given == code_of_row(row)] = self.num_states + number
        stochastic = is_stochastic(codes)
        kept, place = np.unique(row_of(codes[stochastic]), return_inverse=True)
        codes[stochastic] = code_of_row(place)

        def owner(row: int) -> str:
            s, a = np.argwhere(codes == code_of_row(row))[0]
            return f"state {first + s}, action {a}"

        rows = _some_rows(model, kept, self.num_states, owner)
        return Block(rewards, codes, rows, self._shared(model, states))

    def _shared(self, model: MappedModel, states: range) -> Rows:
        """Return the part of every wide row that lies in these states."""
        indices, data = [], []
        for row in self.wide_rows:
            start, stop = int(model.indptr[row]), int(model.indptr[row + 1])
            successors = model.indices[start:stop]
            begin, end = np.searchsorted(successors, (states.start, states.stop))
            own, weights = np.array(successors[begin:end], np.int64), np.array(model.data[start + begin : start + end])
            inside = (own >= states.start) & (own < states.stop) & (np.diff(own, prepend=-1) > 0)
            if not (inside.all() and np.isfinite(weights).all() and (weights > 0.0).all()):
                raise ModelError(f"row {row} is damaged", expected="ascending successors, probabilities above 0")
            indices.append(own - states.start)
            data.append(weights)
        indptr = np.concatenate([[0], np.cumsum([len(part) for part in indices])]).astype(np.int64)
        everything = np.concatenate([*indices, np.zeros(0, np.int64)])
        return Rows(indptr, everything, np.concatenate([*data, np.zeros(0)]), len(indices))


def _some_rows(model: MappedModel, kept: IntArray, num_states: int, owner: Callable[[int], str]) -> Rows:
    """Return some rows of a file, ascending, checked as `npz` does."""
    start = np.array(model.indptr[kept], np.int64)
    length = np.array(model.indptr[kept + 1], np.int64) - start
    end = start + length
    if len(kept) and not ((length > 0).all() and int(start.min()) >= 0 and int(end.max()) <= len(model.data)):
        raise ModelError("the table of rows is damaged", expected="indptr from 0 to nnz, never falling")
    indptr = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(length, out=indptr[1:])
    entry = np.repeat(start - indptr[:-1], length) + np.arange(indptr[-1])
    indices, data = np.array(model.indices[entry], np.int64), np.array(model.data[entry], np.float64)
    data = checks.checked_row_table(indptr, indices, data, np.ones(len(kept), bool), num_states, owner)
    inside = np.ones(max(len(indices) - 1, 0), bool)
    inside[indptr[1:-1] - 1] = False
    if (inside & (indices[1:] <= indices[:-1])).any() or (data <= 0.0).any():
        raise ModelError(
            "a row is not in its normal form",
            expected="successors in ascending order, none twice, none with probability 0",
        )
    return Rows(indptr, indices, data, int(np.count_nonzero(kept < model.num_shared)))


def localised(block: Block, states: range) -> tuple[IntArray, IntArray, Rows]:
    """Return (halo, codes, rows) of a block in local numbers.

    The *halo* are the successors outside the block, ascending. Local numbers ascend with those of the whole model: the
    part of the halo that lies before the block, the block, the part that lies behind it. So rows stay sorted.
    """
    codes, rows = block.codes, block.rows
    first, last = states.start, states.stop
    outside = [codes[(codes >= last) | ((codes >= 0) & (codes < first))]]
    outside.append(rows.indices[(rows.indices < first) | (rows.indices >= last)])
    halo = np.unique(np.concatenate(outside)).astype(np.int64)
    before = int(np.searchsorted(halo, first))
    kind = index_type(max(len(states) + len(halo), len(rows.indices), codes.size))

    def local(numbers: IntArray) -> IntArray:
        result: IntArray = numbers - (first - before)
        outside = np.flatnonzero((numbers < first) | (numbers >= last))
        others = numbers[outside]
        result[outside] = np.searchsorted(halo, others) + np.where(others >= last, len(states), 0)
        return result.astype(kind, copy=False)

    new = codes.astype(kind)
    is_next = new >= 0
    new[is_next] = local(codes[is_next])
    return halo, new, Rows(rows.indptr.astype(kind), local(rows.indices), rows.data, rows.num_shared)
