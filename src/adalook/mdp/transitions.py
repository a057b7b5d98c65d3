"""The transition rows P(· | s, a) of a model, compressed into one integer each.

Most rows of real models are deterministic or repeated, so a model stores for every state and action one integer, its
*transition code*, in an array of shape (S, A):

    code >= 0             deterministic: the next state is `code`, with probability one
    code == NOT_OFFERED   the state does not offer the action
    code <= FIRST_ROW     stochastic: row number `row_of(code)` of a CSR table that holds each distinct row once

`is_deterministic`, `is_stochastic`, `row_of` and `code_of_row` are the one place that knows this encoding. They work on
integers, on NumPy arrays and inside compiled kernels.

The table starts with the *shared rows*: wide rows that several states use, such as "move to a random cell". The
expectation of a shared row is computed once per backup, and lookahead does not expand it state by state.
`Predecessors` lists who leads to whom, without the shared rows, for lookahead that moves backward from what changed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._jit import compiled, inlined, shared_with_python

NOT_OFFERED = -1
FIRST_ROW = -2

SHARED_ROW_MIN_WIDTH = 8
"""A shared row has at least this many successors …"""
SHARED_ROW_MIN_USERS = 2
"""… and at least this many (state, action) pairs use it."""

LONG_ROW = 16
"""Rows longer than this are summed with compensation, so that the rounding bound does not grow with their length."""

INT32_MAX = np.iinfo(np.int32).max


# ---- transition codes


@shared_with_python
def is_deterministic(code: Any) -> Any:
    """Return whether a transition code stands for one certain next state, which is then the code itself."""
    return code >= 0


@shared_with_python
def is_stochastic(code: Any) -> Any:
    """Return whether a transition code stands for a row of the table."""
    return code <= FIRST_ROW


@shared_with_python
def row_of(code: Any) -> Any:
    """Return the row number of a stochastic transition code (negative for a deterministic one).

    >>> row_of(-2), row_of(np.array([-3, -4])).tolist()
    (0, [1, 2])
    """
    return FIRST_ROW - code


@shared_with_python
def code_of_row(row: Any) -> Any:
    """Return the transition code of a row number: the inverse of `row_of`."""
    return FIRST_ROW - row


# ---- the table of stochastic rows


class Rows(NamedTuple):
    """A CSR table of distinct stochastic rows, shared ones first.

    Row r has the successors `indices[indptr[r]:indptr[r+1]]`.
    """

    indptr: IntArray  # (n + 1,)
    indices: IntArray  # (nnz,) successors, ascending within a row
    data: FloatArray  # (nnz,) probabilities, all > 0
    num_shared: int

    @property
    def num_rows(self) -> int:
        """Number of distinct stochastic rows."""
        return len(self.indptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the table's arrays."""
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes


class ModelArrays(NamedTuple):
    """The arrays of a model in the form in which kernels take them."""

    rewards: FloatArray  # (S, A)
    codes: IntArray  # (S, A) transition codes
    indptr: IntArray  # these four as in `Rows`
    indices: IntArray
    data: FloatArray
    num_shared: int
    discount: float


def no_rows(index_type: type[np.signedinteger] = np.int32) -> Rows:
    """Return the empty table of a deterministic model."""
    return Rows(np.zeros(1, index_type), np.zeros(0, index_type), np.zeros(0), 0)


def index_type(largest: int) -> type[np.signedinteger]:
    """Return int32 where it can hold `largest` and the codes made of it, int64 otherwise."""
    return np.int32 if largest + 2 < INT32_MAX else np.int64


def compress(indptr: IntArray, indices: IntArray, data: FloatArray, offered: BoolArray) -> tuple[IntArray, Rows]:
    """Turn S·A checked CSR rows (sorted, without zeros) into codes (S, A) and the table of distinct rows."""
    num_states, num_actions = offered.shape
    kind = index_type(max(num_states, len(indices), num_states * num_actions))
    row, representative = _distinct_rows(indptr, indices, data, offered.ravel())
    stochastic = row >= 0
    users = np.bincount(row[stochastic], minlength=len(representative))
    width = indptr[representative + 1] - indptr[representative]
    is_shared = (width >= SHARED_ROW_MIN_WIDTH) & (users >= SHARED_ROW_MIN_USERS)
    order = np.argsort(~is_shared, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))

    codes = np.full(num_states * num_actions, NOT_OFFERED, kind)
    codes[stochastic] = code_of_row(rank[row[stochastic]])
    deterministic = row == _DETERMINISTIC
    codes[deterministic] = indices[indptr[:-1][deterministic]]

    new_indptr = np.zeros(len(order) + 1, kind)
    np.cumsum(width[order], out=new_indptr[1:])
    new_indices = np.empty(new_indptr[-1], kind)
    new_data = np.empty(new_indptr[-1])
    _copy_rows(indptr, indices, data, representative[order], new_indptr, new_indices, new_data)
    return codes.reshape(num_states, num_actions), Rows(new_indptr, new_indices, new_data, int(is_shared.sum()))


_DETERMINISTIC = -1
"""In the answer of `_distinct_rows`: the row is one successor with probability one."""
_NOT_OFFERED = -2
"""In the answer of `_distinct_rows`: the action is not offered."""


@compiled
def _distinct_rows(
    indptr: IntArray, indices: IntArray, data: FloatArray, offered: BoolArray
) -> tuple[IntArray, IntArray]:
    """Number the distinct stochastic rows: (row of each input or a sentinel, one input that has each row)."""
    n = len(indptr) - 1
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int64)
    bits = data.view(np.uint64)
    row = np.empty(n, np.int64)
    representative = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        if not offered[i]:
            row[i] = _NOT_OFFERED
            continue
        start, length = indptr[i], indptr[i + 1] - indptr[i]
        if length == 1 and data[start] == 1.0:
            row[i] = _DETERMINISTIC
            continue
        mixed = np.uint64(length)
        for k in range(start, start + length):
            mixed = (mixed ^ np.uint64(indices[k])) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29)) ^ bits[k]) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(32)
        slot = np.int64(mixed & np.uint64(size - 1))
        while True:
            r = table[slot]
            if r < 0:
                table[slot] = count
                representative[count] = i
                row[i] = count
                count += 1
                break
            first = indptr[representative[r]]
            if indptr[representative[r] + 1] - first == length:
                k = 0
                while k < length and indices[first + k] == indices[start + k] and data[first + k] == data[start + k]:
                    k += 1
                if k == length:
                    row[i] = r
                    break
            slot = (slot + 1) & (size - 1)
    return row, representative[:count].copy()


@compiled
def _copy_rows(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    rows: IntArray,
    new_indptr: IntArray,
    new_indices: IntArray,
    new_data: FloatArray,
) -> None:
    """Write the given rows one after the other to `new_indices` and `new_data`."""
    for i in range(len(rows)):
        start, target = indptr[rows[i]], new_indptr[i]
        for k in range(new_indptr[i + 1] - target):
            new_indices[target + k] = indices[start + k]
            new_data[target + k] = data[start + k]


# ---- row sums


def row_sum_bounds(rows: Rows) -> tuple[float, float]:
    """Return floats (low, high) between which the exact sums of all rows lie; deterministic ones sum to exactly one."""
    if rows.num_rows == 0:
        return 1.0, 1.0
    low, high = _row_sum_range(rows.indptr, rows.data)
    slack = 4 * np.finfo(float).eps
    return min(1.0, low - slack), max(1.0, high + slack)


@compiled
def _row_sum_range(indptr: IntArray, data: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest compensated row sum."""
    low, high = np.inf, -np.inf
    for r in range(len(indptr) - 1):
        total = compensated_sum(data, indptr[r], indptr[r + 1])
        low, high = min(low, total), max(high, total)
    return low, high


@inlined
def compensated_sum(data: FloatArray, start: int, stop: int) -> float:
    """Return Neumaier's sum of data[start:stop]: off by at most about two units in the last place of Σ|data|."""
    total = 0.0
    lost = 0.0
    for k in range(start, stop):
        x = data[k]
        t = total + x
        lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
        total = t
    return total + lost


# ---- the graph


class Predecessors(NamedTuple):
    """The states that lead to each state in one step, not counting shared rows."""

    start: IntArray  # (S + 1,): the predecessors of s' are sources[start[s']:start[s'+1]], possibly repeated
    sources: IntArray  # (edges,)
    shared_row_users: IntArray  # (users,) states of which some action has a shared row

    @classmethod
    def of(cls, codes: IntArray, rows: Rows) -> Predecessors:
        """Invert the transitions of a model."""
        num_states = codes.shape[0]
        longest = int(np.diff(rows.indptr[rows.num_shared :]).max(initial=1))
        start: IntArray = np.zeros(num_states + 1, np.int32 if codes.size * longest <= INT32_MAX else np.int64)
        nowhere = np.empty(0, codes.dtype)
        _place_sources(codes, rows.indptr, rows.indices, rows.num_shared, start[1:], nowhere)
        np.cumsum(start, out=start)
        if start[-1] <= INT32_MAX:
            start = start.astype(np.int32, copy=False)
        sources = np.empty(int(start[-1]), codes.dtype)
        free = start[:-1].copy()
        _place_sources(codes, rows.indptr, rows.indices, rows.num_shared, free, sources)
        users = np.empty(num_states if rows.num_shared else 0, codes.dtype)
        count = _shared_row_users(codes, rows.num_shared, users) if rows.num_shared else 0
        return cls(start, sources, users[:count].copy())


@compiled
def _place_sources(
    codes: IntArray, indptr: IntArray, indices: IntArray, num_shared: int, free: IntArray, sources: IntArray
) -> None:
    """Move free[s'] on by one for each edge s -> s' that is not part of a shared row, having written s there.

    Without room for any sources nothing is written: what `free` has moved by is then the number of edges.
    """
    writes = len(sources) > 0
    num_states, num_actions = codes.shape
    for s in range(num_states):
        for a in range(num_actions):
            code = codes[s, a]
            if is_deterministic(code):
                if writes:
                    sources[free[code]] = s
                free[code] += 1
            elif row_of(code) >= num_shared:
                row = row_of(code)
                for k in range(indptr[row], indptr[row + 1]):
                    if writes:
                        sources[free[indices[k]]] = s
                    free[indices[k]] += 1


@compiled
def _shared_row_users(codes: IntArray, num_shared: int, states: IntArray) -> int:
    """Write the states that have a shared row, once each, to `states`; return how many there are."""
    num_states, num_actions = codes.shape
    count = 0
    for s in range(num_states):
        for a in range(num_actions):
            if is_stochastic(codes[s, a]) and row_of(codes[s, a]) < num_shared:
                states[count] = s
                count += 1
                break
    return count


GOLDEN_RATIO = 0.5 * (math.sqrt(5.0) - 1.0)
LEAST_NEWS = 0.8
"""Share of the new states of the second step that the third one finds at least, unless few are left."""


def neighbourhood_growth(codes: IntArray, rows: Rows, sample: int = 16, most: int = 32) -> float:
    """Return the mean size of the three-step neighbourhood over that of one step, from states spread about.

    Sizes beyond about `most` times are not told apart. Infinite where the third step finds fewer new states than the
    second: there are hardly any left, as in a small part of a model that mixes at once.
    """
    # By the golden ratio: steps of one length would meet the states of a product of factors in one factor only.
    roots = np.unique((len(codes) * (GOLDEN_RATIO * np.arange(sample) % 1.0)).astype(np.int64))
    near, middle, far = _neighbourhoods(codes, rows.indptr, rows.indices, rows.num_shared, roots, most)
    return float(far / near) if far - middle >= LEAST_NEWS * (middle - near) else math.inf


@compiled
def _neighbourhoods(
    codes: IntArray, indptr: IntArray, indices: IntArray, num_shared: int, roots: IntArray, most: int
) -> tuple[int, int, int]:
    """Count the states within one, two and three steps of each root, shared rows not followed: sums of each.

    The latter are not counted beyond `most` times the first, which bounds the work on random graphs.
    """
    stamp = np.zeros(codes.shape[0], np.int64)
    queue = np.empty(codes.shape[0], np.int64)
    near = middle = far = 0
    for i in range(len(roots)):
        queue[0] = roots[i]
        stamp[roots[i]] = i + 1
        head, tail, first = 0, 1, codes.shape[0]
        for step in range(3):
            end = tail
            while head < end and tail <= most * first:
                s = queue[head]
                head += 1
                for a in range(codes.shape[1]):
                    code = codes[s, a]
                    if is_deterministic(code):
                        if stamp[code] != i + 1:
                            stamp[code] = i + 1
                            queue[tail] = code
                            tail += 1
                    elif row_of(code) >= num_shared:
                        row = row_of(code)
                        for k in range(indptr[row], indptr[row + 1]):
                            if stamp[indices[k]] != i + 1:
                                stamp[indices[k]] = i + 1
                                queue[tail] = indices[k]
                                tail += 1
            if step == 0:
                first = tail
                near += tail
            elif step == 1:
                middle += tail
        far += tail
    return near, middle, far
