"""Transition rows in their stored form.

For every state s and action a the model needs the row P(· | s, a). Most rows of real models are trivial or repeated,
so a row is one integer, its *code*, in an array of shape (S, A):

    code >= 0             the action leads to state `code` with probability one: no matrix at all
    code == NOT_OFFERED   the state does not offer the action
    code <= FIRST_ROW     a stochastic row, number `row_of(code)` in a CSR table that holds each distinct row once

The table starts with the *hubs*: wide rows that several states share, such as "move to a random cell". A hub's
expectation is computed once per backup, and lookahead does not expand it state by state.

Who leads to whom: predecessor lists, without the hubs, for lookahead that moves backward from what changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.mdp import transition_kernels as kernels

NOT_OFFERED = -1
FIRST_ROW = -2

HUB_WIDTH = 8
"""A hub has at least this many successors …"""
HUB_USERS = 2
"""… and at least this many (state, action) pairs use it."""

LONG_ROW = 16
"""Rows longer than this are summed with compensation, so that the rounding bound does not grow with their length."""

INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Rows:
    """Distinct stochastic rows, hubs first: row r has successors `indices[indptr[r]:indptr[r+1]]`."""

    indptr: IntArray  # (n + 1,)
    indices: IntArray  # (nnz,) successors, ascending within a row
    data: FloatArray  # (nnz,) probabilities, all > 0
    num_hubs: int

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def nbytes(self) -> int:
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes


def no_rows(index_type: type[np.signedinteger] = np.int32) -> Rows:
    """The empty table of a deterministic model."""
    return Rows(np.zeros(1, index_type), np.zeros(0, index_type), np.zeros(0), 0)


def index_type(largest: int) -> type[np.signedinteger]:
    """int32 where it can hold `largest` and the codes made of it, int64 otherwise."""
    return np.int32 if largest + 2 < INT32_MAX else np.int64


def compress(indptr: IntArray, indices: IntArray, data: FloatArray, offered: BoolArray) -> tuple[IntArray, Rows]:
    """Turn S·A checked CSR rows (sorted, without zeros) into codes (S, A) and the table of distinct rows."""
    num_states, num_actions = offered.shape
    kind = index_type(max(num_states, len(indices), num_states * num_actions))
    row, representative = kernels.distinct_rows(indptr, indices, data, offered.ravel())
    stochastic = row >= 0
    users = np.bincount(row[stochastic], minlength=len(representative))
    width = indptr[representative + 1] - indptr[representative]
    is_hub = (width >= HUB_WIDTH) & (users >= HUB_USERS)
    order = np.argsort(~is_hub, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))

    codes = np.full(num_states * num_actions, NOT_OFFERED, kind)
    codes[stochastic] = FIRST_ROW - rank[row[stochastic]]
    certain = row == kernels.CERTAIN
    codes[certain] = indices[indptr[:-1][certain]]

    new_indptr = np.zeros(len(order) + 1, kind)
    np.cumsum(width[order], out=new_indptr[1:])
    new_indices = np.empty(new_indptr[-1], kind)
    new_data = np.empty(new_indptr[-1])
    kernels.gather_rows(indptr, indices, data, representative[order], new_indptr, new_indices, new_data)
    return codes.reshape(num_states, num_actions), Rows(new_indptr, new_indices, new_data, int(is_hub.sum()))


def row_sum_bounds(rows: Rows) -> tuple[float, float]:
    """Floats (low, high) between which the exact sums of all rows lie; deterministic rows sum to exactly one."""
    if rows.num_rows == 0:
        return 1.0, 1.0
    low, high = kernels.row_sum_range(rows.indptr, rows.data)
    slack = 4 * np.finfo(float).eps
    return min(1.0, low - slack), max(1.0, high + slack)


@dataclass(frozen=True)
class Predecessors:
    """States with a move to s': `sources[start[s']:start[s'+1]]`, possibly repeated; and those that can reach a hub."""

    start: IntArray  # (S + 1,)
    sources: IntArray  # (edges,)
    hub_users: IntArray  # (users,)

    @classmethod
    def of(cls, codes: IntArray, rows: Rows) -> Predecessors:
        num_states = codes.shape[0]
        counts = np.zeros(num_states + 1, np.int64)
        kernels.count_predecessors(codes, rows.indptr, rows.indices, rows.num_hubs, counts[1:])
        np.cumsum(counts, out=counts)
        kind = np.int32 if counts[-1] <= np.iinfo(np.int32).max else np.int64
        start: IntArray = counts.astype(kind)
        sources = np.empty(int(counts[-1]), codes.dtype)
        free = start[:-1].copy()
        del counts
        kernels.fill_predecessors(codes, rows.indptr, rows.indices, rows.num_hubs, free, sources)
        users = np.empty(num_states if rows.num_hubs else 0, codes.dtype)
        count = kernels.hub_users(codes, rows.num_hubs, users) if rows.num_hubs else 0
        return cls(start, sources, users[:count].copy())


def neighbourhood_growth(codes: IntArray, rows: Rows, sample: int = 16, most: int = 32) -> float:
    """Mean size of the neighbourhood three steps ahead over that of one step, from states spread evenly.

    Sizes beyond about `most` times are not told apart.
    """
    roots = np.arange(0, len(codes), max(1, len(codes) // sample))
    near, far = kernels.neighbourhoods(codes, rows.indptr, rows.indices, rows.num_hubs, roots, most)
    return float(far / near)
