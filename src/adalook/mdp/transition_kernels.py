"""Compiled loops over transition rows: pure functions of arrays, called by `rows` and `graph`."""

from __future__ import annotations

import numpy as np

from adalook._jit import compiled, inlined

CERTAIN = -1
"""`distinct_rows`: the row is one successor with probability one."""
ABSENT = -2
"""`distinct_rows`: the action is not offered."""


@inlined
def compensated_sum(data, start, stop):
    """Neumaier's sum of data[start:stop]: off by at most about two units in the last place of Σ|data|."""
    total = 0.0
    lost = 0.0
    for k in range(start, stop):
        x = data[k]
        t = total + x
        lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
        total = t
    return total + lost


@compiled
def row_sum_range(indptr, data):
    low, high = np.inf, -np.inf
    for r in range(len(indptr) - 1):
        total = compensated_sum(data, indptr[r], indptr[r + 1])
        low, high = min(low, total), max(high, total)
    return low, high


@compiled
def distinct_rows(indptr, indices, data, offered):
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
            row[i] = ABSENT
            continue
        start, length = indptr[i], indptr[i + 1] - indptr[i]
        if length == 1 and data[start] == 1.0:
            row[i] = CERTAIN
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
def gather_rows(indptr, indices, data, rows, new_indptr, new_indices, new_data):
    for i in range(len(rows)):
        start, target = indptr[rows[i]], new_indptr[i]
        for k in range(new_indptr[i + 1] - target):
            new_indices[target + k] = indices[start + k]
            new_data[target + k] = data[start + k]


@compiled
def count_predecessors(codes, indptr, indices, num_hubs, counts):
    """Add to counts[s'] the edges s -> s' that are not part of a hub."""
    num_states, num_actions = codes.shape
    for s in range(num_states):
        for a in range(num_actions):
            code = codes[s, a]
            if code >= 0:
                counts[code] += 1
            elif code < -1:
                row = -2 - code
                if row >= num_hubs:
                    for k in range(indptr[row], indptr[row + 1]):
                        counts[indices[k]] += 1


@compiled
def fill_predecessors(codes, indptr, indices, num_hubs, free, sources):
    """Write each edge's source at sources[free[s']], moving `free` on (it ends as the starts of the next states)."""
    num_states, num_actions = codes.shape
    for s in range(num_states):
        for a in range(num_actions):
            code = codes[s, a]
            if code >= 0:
                sources[free[code]] = s
                free[code] += 1
            elif code < -1:
                row = -2 - code
                if row >= num_hubs:
                    for k in range(indptr[row], indptr[row + 1]):
                        sources[free[indices[k]]] = s
                        free[indices[k]] += 1


@compiled
def hub_users(codes, num_hubs, states):
    """Write the states that can reach a hub, once each, to `states`; return how many there are."""
    num_states, num_actions = codes.shape
    count = 0
    for s in range(num_states):
        for a in range(num_actions):
            if codes[s, a] < -1 and -2 - codes[s, a] < num_hubs:
                states[count] = s
                count += 1
                break
    return count


@compiled
def worst_row_sum(indptr, data, offered, per_entry, most):
    """The first offered row whose sum is off by more than `per_entry` a successor or `most`: (row, sum) or (-1, 1)."""
    for r in range(len(indptr) - 1):
        if offered[r]:
            total = compensated_sum(data, indptr[r], indptr[r + 1])
            if not abs(total - 1.0) <= min(most, per_entry * max(1, indptr[r + 1] - indptr[r])):
                return r, total
    return -1, 1.0


@compiled
def normalise_rows(indptr, data):
    """Divide every row by its sum, in place."""
    for r in range(len(indptr) - 1):
        total = compensated_sum(data, indptr[r], indptr[r + 1])
        if total > 0.0:
            for k in range(indptr[r], indptr[r + 1]):
                data[k] /= total


@compiled
def neighbourhoods(codes, indptr, indices, num_hubs, roots, most):
    """Number of states within one and within three steps of each root, hubs not followed: (sum, sum).

    The second is not counted beyond `most` times the first, which bounds the work on random graphs.
    """
    stamp = np.zeros(codes.shape[0], np.int64)
    queue = np.empty(codes.shape[0], np.int64)
    near = far = 0
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
                    row = -2 - code
                    if code >= 0:
                        if stamp[code] != i + 1:
                            stamp[code] = i + 1
                            queue[tail] = code
                            tail += 1
                    elif num_hubs <= row:
                        for k in range(indptr[row], indptr[row + 1]):
                            if stamp[indices[k]] != i + 1:
                                stamp[indices[k]] = i + 1
                                queue[tail] = indices[k]
                                tail += 1
            if step == 0:
                first = tail
                near += tail
        far += tail
    return near, far
