"""Policies whose moves are all but deterministic: the equations are solved in O(S) by following pointers.

Where a policy's moves are deterministic, v(s) = r(s) + γ v(next(s)) is solved by following pointers to a cycle and
propagating back. Up to `MAX_LEAVES` distinct stochastic rows are leaves of that graph: v = a + w · m(leaf), and the
leaves' expectations m solve a small linear system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import ModelArrays, is_deterministic, row_of
from adalook.planning.lookahead.kernels import index

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "functional graph"
MAX_LEAVES = 256
"""Distinct stochastic rows of a policy, beyond which it is left to others."""
MAX_BLAS_LEAVES = 64
"""Larger systems are not left to BLAS, which would split them over the cores and round differently on each number."""


SMALL_MODEL = 200
"""Entries of a model that is solved in no time, whatever its rows."""


MANY_ACTIONS = 32
"""Where states offer more actions than this, moves must be deterministic for the most part."""


FEW_POINTERS = 0.125
"""Share of the moves that must be deterministic for waves to be cheap."""


@kept_with_model
def suits(mdp: MDP) -> bool:
    """Return whether nearly all that a backup does is to follow pointers, so that wavefronts are cheap as well."""
    entries = len(mdp.rows.indices)
    if mdp.num_actions > MANY_ACTIONS and 2 * np.count_nonzero(is_deterministic(mdp.codes)) < mdp.num_pairs:
        return False  # backups that eliminate actions gain more
    return mdp.rows.num_shared == mdp.rows.num_rows <= MAX_LEAVES or entries <= max(SMALL_MODEL, mdp.num_pairs)


@kept_with_model
def waves_pay(mdp: MDP) -> bool:
    """Return whether a wavefront after an exact evaluation may save more than it costs.

    Following pointers takes no longer than a backup. A wave needs to know who leads to whom, and finding that out takes
    as long as two backups where moves are random.
    """
    return mdp.deterministic_share >= FEW_POINTERS or not suits(mdp)


class FunctionalGraph:
    """Solves the policies of one model that use few distinct stochastic rows."""

    def __init__(self, mdp: MDP) -> None:
        self._mdp = mdp
        self._leaf: IntArray = np.zeros(mdp.rows.num_rows, np.int32)
        self._used: IntArray = np.empty(MAX_LEAVES, np.int64)

    def solve(self, policy: IntArray, rewards: FloatArray | None = None) -> FloatArray | None:
        """Return the policy's values (S,), or None if it uses too many distinct stochastic rows.

        With `rewards` (S,), these are paid instead of the model's.
        """
        mdp, n = self._mdp, self._mdp.num_states
        leaf, used = self._leaf, self._used
        reward, code = np.empty(n), np.empty(n, mdp.codes.dtype)
        leaves = _gather(mdp.arrays, policy, leaf, used, reward, code)
        try:
            if leaves > MAX_LEAVES:
                return None
            value, reward = (reward, reward) if rewards is None else (reward, rewards)
            weight = np.empty(n if leaves else 0)
            exits, path = np.empty(n, np.int32), np.empty_like(code)
            _propagate(reward, code, leaf, mdp.discount, value, weight, exits, path)
        finally:
            leaf[used[:leaves]] = 0
        if leaves:
            matrix: FloatArray = np.zeros((leaves, leaves))
            constant: FloatArray = np.zeros(leaves)
            _close_leaves(mdp.arrays, used[:leaves], value, weight, exits, matrix, constant)
            system = np.eye(leaves) - matrix
            if leaves > MAX_BLAS_LEAVES:
                solve_by_elimination(system, constant)
            else:
                constant = np.asarray(np.linalg.solve(system, constant), np.float64)
            _add_leaves(value, weight, exits, constant)
        return value


_UNSEEN, _NO_EXIT, _ON_PATH = -1, -2, -3


@compiled
def _gather(
    model: ModelArrays, policy: IntArray, leaf: IntArray, used: IntArray, reward: FloatArray, code: IntArray
) -> int:
    """Write the policy's rewards and transition codes (S,) and number its distinct stochastic rows.

    used[:count] lists these rows in order of appearance, and leaf (rows,) says where each stands there, counted from 1;
    0 elsewhere. Returns count, or one more than `used` has room for, and then nothing else.
    """
    rewards, codes = model.rewards, model.codes
    count = 0
    for s in range(index(len(policy))):
        reward[s] = rewards[s, index(policy[s])]
        code[s] = codes[s, index(policy[s])]
        if not is_deterministic(code[s]):
            row = row_of(code[s])
            if leaf[row] == 0:
                if count == len(used):
                    return count + 1
                used[count] = row
                count += 1
                leaf[row] = count
    return count


@compiled
def _propagate(
    reward: FloatArray,
    code: IntArray,
    leaf: IntArray,
    discount: float,
    value: FloatArray,
    weight: FloatArray,
    exits: IntArray,
    path: IntArray,
) -> None:
    """Solve a policy up to its stochastic rows: v(s) = value(s) + weight(s) · m(exit(s)).

    Follow the pointers to a cycle, a stochastic row or a finished state; close the cycle; propagate back.
    exits (S,) ends as the position of a stochastic row in that list, or negative; path (S,) is scratch. `value` may be
    `reward` itself, which is overwritten; weight is (S,), or empty where there is no stochastic row.
    """
    log_discount = np.log(discount) if discount > 0.0 else -np.inf
    weighted = len(weight) > 0
    exits[:] = _UNSEEN
    for root in range(len(code)):
        if exits[root] != _UNSEEN:
            continue
        length = 0
        s = root
        ahead, share = 0.0, 0.0
        while True:
            if not is_deterministic(code[s]):
                value[s] = reward[s]
                weight[s] = discount
                exits[s] = leaf[row_of(code[s])] - 1
                ahead, share = value[s], discount
                break
            exits[s] = _ON_PATH
            path[length] = s
            length += 1
            s = code[s]
            if exits[s] >= 0 or exits[s] == _NO_EXIT:
                ahead = value[s]
                if weighted:
                    share = weight[s]
                break
            if exits[s] == _ON_PATH:
                total, factor, lap = 0.0, 1.0, 0
                position = length
                while True:
                    position -= 1
                    lap += 1
                    if path[position] == s:
                        break
                for k in range(position, length):
                    total += factor * reward[path[k]]
                    factor *= discount
                ahead = total / -np.expm1(lap * log_discount)
                exits[s] = _NO_EXIT
                break
        leads_to = exits[s]
        for k in range(length - 1, -1, -1):
            p = path[k]
            ahead = reward[p] + discount * ahead
            share = discount * share
            value[p] = ahead
            if weighted:
                weight[p] = share
            exits[p] = leads_to


@compiled
def _close_leaves(
    model: ModelArrays,
    used: IntArray,
    value: FloatArray,
    weight: FloatArray,
    exits: IntArray,
    matrix: FloatArray,
    constant: FloatArray,
) -> None:
    """Write the leaves' equations m(row) = constant(row) + Σ matrix(row, row') m(row') from v = value + weight · m."""
    indptr, indices, data = model.indptr, model.indices, model.data
    for i in range(len(used)):
        total = 0.0
        lost = 0.0
        for k in range(indptr[used[i]], indptr[used[i] + 1]):
            s = indices[k]
            x = data[k] * value[s]
            t = total + x
            lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
            total = t
            if exits[s] >= 0:
                matrix[i, exits[s]] += data[k] * weight[s]
        constant[i] = total + lost


@compiled
def _add_leaves(value: FloatArray, weight: FloatArray, exits: IntArray, m: FloatArray) -> None:
    """Add weight · m(exit) to the values, in place."""
    for s in range(len(value)):
        if exits[s] >= 0:
            value[s] += weight[s] * m[exits[s]]


@compiled
def solve_by_elimination(matrix: FloatArray, b: FloatArray) -> None:
    """Solve matrix · x = b by Gauss's elimination with partial pivoting; b ends as x, the matrix is overwritten.

    One order of operations, whatever the number of cores.
    """
    n = len(b)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(k, n):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= factor * matrix[k, j]
                b[i] -= factor * b[k]
    for k in range(n - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, n):
            total -= matrix[k, j] * b[j]
        b[k] = total / matrix[k, k]
