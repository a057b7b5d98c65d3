"""Compiled loops of lookahead: pure functions over arrays, for S states and A actions.

`model` is a model's `ModelArrays`; v (S,) values; policy (S,) actions; shared (rows,) the expectation of each shared
row under v. Where only the rows of one policy are needed, its `PolicyRows` do as `model`: the fields have one name.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled, inlined
from adalook.mdp.transitions import LONG_ROW, NOT_OFFERED, is_deterministic, row_of

index = np.uintp
"""Indices are made unsigned in hot loops: a signed one is checked for Python's "from the end" at every access, which
doubles the time of a sweep."""


BLOCK = 4 * (LONG_ROW - 4)
"""Products per block of a long row: each of at least four sums gets at most `LONG_ROW` of them, remainder included."""


@inlined
def expectation(model, row, v):
    """Return Σ p v over one row; long rows are summed in blocks, and the blocks with compensation (Neumaier).

    A block is eight sums of at most `LONG_ROW` products each, side by side, which a processor adds up at once. Of a row
    whose successors follow each other, the index is not read.
    """
    start, stop = index(model.indptr[index(row)]), index(model.indptr[index(row + 1)])
    total = 0.0
    lost = 0.0
    k = start
    if stop - start <= index(LONG_ROW):
        while k < stop:  # where `range` is unrolled by eight, which rows of two or three are too short for
            total += model.data[k] * v[index(model.indices[k])]
            k += index(1)
    else:
        first = index(model.indices[start])
        dense = index(model.indices[stop - index(1)]) - first == stop - start - index(1)
        shift = first - start  # wraps around below zero, as it does back
        while k < stop:
            end = k + index(BLOCK) if k + index(BLOCK) < stop else stop
            a = b = c = d = e = f = g = h = 0.0
            if dense:
                while k + index(7) < end:
                    a += model.data[k] * v[k + shift]
                    b += model.data[k + index(1)] * v[k + shift + index(1)]
                    c += model.data[k + index(2)] * v[k + shift + index(2)]
                    d += model.data[k + index(3)] * v[k + shift + index(3)]
                    e += model.data[k + index(4)] * v[k + shift + index(4)]
                    f += model.data[k + index(5)] * v[k + shift + index(5)]
                    g += model.data[k + index(6)] * v[k + shift + index(6)]
                    h += model.data[k + index(7)] * v[k + shift + index(7)]
                    k += index(8)
            else:
                while k + index(3) < end:
                    a += model.data[k] * v[index(model.indices[k])]
                    b += model.data[k + index(1)] * v[index(model.indices[k + index(1)])]
                    c += model.data[k + index(2)] * v[index(model.indices[k + index(2)])]
                    d += model.data[k + index(3)] * v[index(model.indices[k + index(3)])]
                    k += index(4)
            while k < end:
                a += model.data[k] * v[index(model.indices[k])]
                k += index(1)
            x = ((a + b) + (c + d)) + ((e + f) + (g + h))
            t = total + x
            lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
            total = t
    return total + lost


@compiled
def shared_expectations(model, v, shared):
    """Fill shared (rows,) with the expectation of each shared row under v."""
    for row in range(len(shared)):
        shared[row] = expectation(model, row, v)


@inlined
def next_value(model, code, shared, v):
    """Return the expected value of the state that a transition code leads to."""
    if is_deterministic(code):
        result = v[index(code)]
    elif row_of(code) < len(shared):
        result = shared[index(row_of(code))]
    else:
        result = expectation(model, row_of(code), v)
    return result


@inlined
def greedy(model, shared, v, s, chosen):
    """Return the best one-step return in state s: (value, action, value of the chosen action, actions on offer).

    The chosen action wins ties. Choices are written as selections, not branches: which action wins is unpredictable,
    and a processor that guesses wrong waits.
    """
    top, own = -np.inf, -np.inf
    top_action = chosen
    count = 0
    for a in range(model.codes.shape[1]):
        code = model.codes[s, index(a)]
        if code == NOT_OFFERED:
            continue
        count += 1
        q = model.rewards[s, index(a)] + model.discount * next_value(model, code, shared, v)
        top_action = a if q > top else top_action
        top = q if q > top else top
        own = q if a == chosen else own
    return top, chosen if own == top else top_action, own, count


@compiled
def backup_range(model, shared, v, policy, best, action, first, last):
    """Write T v and a greedy policy into best, action of states first..last-1; the policy's own action wins ties.

    Returns (min, max) of T v − v, (min, max) of T_π v − v, and max|v|.
    """
    low, high, own_low, own_high, size = np.inf, -np.inf, np.inf, -np.inf, 0.0
    for s in range(index(first), index(last)):
        top, top_action, own, _ = greedy(model, shared, v, s, policy[s])
        best[s] = top
        action[s] = top_action
        gain, drift, magnitude = top - v[s], own - v[s], abs(v[s])
        low = gain if gain < low else low
        high = gain if gain > high else high
        own_low = drift if drift < own_low else own_low
        own_high = drift if drift > own_high else own_high
        size = magnitude if magnitude > size else size
    return low, high, own_low, own_high, size


@compiled
def action_values(model, shared, v, out):
    """Write r(s, a) + γ Σ p v into out (S, A); −inf where an action is not offered."""
    for s in range(index(model.codes.shape[0])):
        for a in range(model.codes.shape[1]):
            code = model.codes[s, index(a)]
            if code == NOT_OFFERED:
                out[s, index(a)] = -np.inf
            else:
                out[s, index(a)] = model.rewards[s, index(a)] + model.discount * next_value(model, code, shared, v)


@compiled
def keep_gains(v, policy, switch_tol, raise_tol, best, action, raised):
    """Undo every gain of at most `switch_tol`; list the states whose gain exceeds `raise_tol` in `raised`.

    Returns (how many states switched, how many are listed).
    """
    switched = listed = 0
    for s in range(len(v)):
        gain = best[s] - v[s]
        if gain > switch_tol:
            switched += 1
            if gain > raise_tol:
                raised[listed] = s
                listed += 1
        else:
            best[s] = v[s]
            action[s] = policy[s]
    return switched, listed


@inlined
def gather_front(predecessors, raised, num_raised, stamp, mark, front):
    """List in `front`, once each, the predecessors of raised[:num_raised], stamped with `mark`; returns how many."""
    size = 0
    for i in range(num_raised):
        s = raised[i]
        for k in range(predecessors.start[s], predecessors.start[s + 1]):
            p = predecessors.sources[k]
            if stamp[p] != mark:
                stamp[p] = mark
                front[size] = p
                size += 1
    return size


class WaveLimits(NamedTuple):
    """The limits of a wavefront: what it must exceed to go on, and how far it may go."""

    raise_tol: float
    """A state's value is raised only by more than this."""
    freeze_shared: bool
    """Whether shared rows keep their expectation; otherwise they follow the values and wake their users."""
    levels: int
    budget: int
    """(state, action) pairs of all levels."""
    max_front: int
    """States of one level."""


class WaveState(NamedTuple):
    """The arrays (S,) that a wavefront works on, in place."""

    values: FloatArray
    actions: IntArray
    depth: IntArray
    raised: IntArray
    """The first `num_raised` are the states that the last level raised."""
    shared: FloatArray
    """(rows,) expectations of the shared rows."""
    stamp: IntArray
    """The last level whose front each state was part of, 0 at first."""
    front: IntArray
    """Scratch."""


@compiled
def wave(model, predecessors, limits, state, level, num_raised):
    """Deepen values = T^level v, level by level, backing up only predecessors of what the last level raised.

    A level is begun only while the work of all levels and its own front stay within the limits.
    Returns (level, num_raised, pairs backed up, whether a limit stopped it).
    """
    num_states, num_actions = model.codes.shape
    values, actions, depth, raised, shared, stamp, front = state
    frozen = limits.freeze_shared
    previous = shared.copy()
    new_value = np.empty(0 if frozen else num_states)
    new_action = np.empty(0 if frozen else num_states, actions.dtype)
    spent = 0
    for _ in range(limits.levels):
        if num_raised == 0:
            break
        mark = level + 1
        size = gather_front(predecessors, raised, num_raised, stamp, mark, front)
        if not frozen:
            shared_expectations(model, values, shared)
            moved = False
            for row in range(len(shared)):
                moved |= shared[row] != previous[row]
                previous[row] = shared[row]
            if moved:
                for i in range(len(predecessors.shared_row_users)):
                    p = predecessors.shared_row_users[i]
                    if stamp[p] != mark:
                        stamp[p] = mark
                        front[size] = p
                        size += 1
        if size > limits.max_front or spent + size * num_actions > limits.budget:
            return level, num_raised, spent, True
        level += 1
        num_raised = 0
        for i in range(size):
            s = index(front[i])
            top, top_action, _, count = greedy(model, shared, values, s, actions[s])
            spent += count
            if frozen:
                if top - values[s] > limits.raise_tol:
                    values[s] = top
                    actions[s] = top_action
                    depth[s] = level
                    raised[num_raised] = front[i]
                    num_raised += 1
            else:
                new_value[i] = top
                new_action[i] = top_action
        if frozen:
            continue
        for i in range(size):
            s = front[i]
            if new_value[i] - values[s] > limits.raise_tol:
                values[s] = new_value[i]
                actions[s] = new_action[i]
                depth[s] = level
                raised[num_raised] = s
                num_raised += 1
    return level, num_raised, spent, False


@compiled
def myopic_policy(rewards, codes, policy):
    """Write the offered action with the best immediate reward, the first one on ties."""
    for s in range(index(codes.shape[0])):
        best, top = -np.inf, 0
        for a in range(codes.shape[1]):
            reward = rewards[s, index(a)] if codes[s, index(a)] != NOT_OFFERED else -np.inf
            top = a if reward > best else top
            best = reward if reward > best else best
        policy[s] = top


@compiled
def count_different(one, other):
    """Return how many entries differ."""
    count = 0
    for s in range(len(one)):
        count += one[s] != other[s]
    return count


@compiled
def eliminate(system: FloatArray, right: FloatArray) -> None:
    """Solve a linear system in place without pivots, if it is diagonally dominant or positive definite."""
    n = len(right)
    for p in range(n):
        for s in range(p + 1, n):
            factor = system[s, p] / system[p, p]
            if factor != 0.0:
                for k in range(p + 1, n):
                    system[s, k] -= factor * system[p, k]
                right[s] -= factor * right[p]
    for s in range(n - 1, -1, -1):
        total = right[s]
        for k in range(s + 1, n):
            total -= system[s, k] * right[k]
        right[s] = total / system[s, s]
