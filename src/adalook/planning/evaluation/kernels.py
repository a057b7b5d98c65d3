"""Compiled loops of policy evaluation: gathering rows, sweeping, following pointers. Arguments as in `kernels`."""

from __future__ import annotations

import numpy as np

from adalook._jit import compiled
from adalook.planning.lookahead.kernels import ahead, hub_expectations, index


@compiled
def policy_rows(rewards, codes, policy, reward, code):
    """Gather r_π and the policy's transition codes (S,); returns how many rows are stochastic."""
    stochastic = 0
    for s in range(len(policy)):
        reward[s] = rewards[s, policy[s]]
        code[s] = codes[s, policy[s]]
        stochastic += code[s] < 0
    return stochastic


@compiled
def own_lengths(code, indptr, num_hubs, ends):
    """ends[1:] = length of each state's own row (S,), zero where the move is certain or leads to a hub."""
    for s in range(len(code)):
        row = -2 - code[s]
        ends[s + 1] = indptr[row + 1] - indptr[row] if row >= num_hubs else 0


@compiled
def gather_own(code, indptr, indices, data, hubs, new_indptr, new_indices, new_data, new_code):
    """Copy each state's own row behind the hubs' rows, state after state, and renumber the codes accordingly."""
    for s in range(len(code)):
        row = -2 - code[s]
        new_code[s] = -2 - hubs - s if row >= hubs else code[s]
        if row >= hubs:
            start, target = indptr[row], new_indptr[hubs + s]
            for k in range(indptr[row + 1] - start):
                new_indices[target + k] = indices[start + k]
                new_data[target + k] = data[start + k]


@compiled
def sweep(reward, code, indptr, indices, data, hub, discount, v, out, first, last):
    """out = T_π v for states first..last-1, given the hubs' expectations; returns (min, max) of out − v."""
    low, high = np.inf, -np.inf
    for s in range(index(first), index(last)):
        new = reward[s] + discount * ahead(code[s], indptr, indices, data, hub, v)
        out[s] = new
        change = new - v[s]
        low = change if change < low else low
        high = change if change > high else high
    return low, high


@compiled
def sweeps(reward, code, indptr, indices, data, hub, discount, v, spare, most, target):
    """Repeat T_π from v until the span of a change is at most `target`, or `most` times.

    The answer ends in v (even count) or spare (odd count). Returns (count, min, max, span before the last).
    """
    low, high, before = -np.inf, np.inf, np.inf
    count = 0
    while count < most:
        before = high - low
        old, new = (v, spare) if count % 2 == 0 else (spare, v)
        hub_expectations(indptr, indices, data, old, hub)
        low, high = sweep(reward, code, indptr, indices, data, hub, discount, old, new, 0, len(v))
        count += 1
        if high - low <= target:
            break
    return count, low, high, before


UNSEEN = -1
NO_EXIT = -2
ON_PATH = -3


@compiled
def follow(reward, code, label, discount, value, weight, exit_, path):
    """Solve a policy whose stochastic rows are leaves: v(s) = value(s) + weight(s) · m(exit(s)).

    Follow the pointers to a cycle, a leaf or a finished state; close the cycle; propagate back. O(S).
    `label` numbers the stochastic rows in use; exit_ must hold UNSEEN and ends as that number or NO_EXIT.
    """
    log_discount = np.log(discount) if discount > 0.0 else -np.inf
    for root in range(len(code)):
        if exit_[root] != UNSEEN:
            continue
        length = 0
        s = root
        while True:
            if code[s] < 0:
                value[s] = reward[s]
                weight[s] = discount
                exit_[s] = label[-2 - code[s]]
                break
            exit_[s] = ON_PATH
            path[length] = s
            length += 1
            s = code[s]
            if exit_[s] >= 0 or exit_[s] == NO_EXIT:
                break
            if exit_[s] == ON_PATH:
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
                value[s] = total / -np.expm1(lap * log_discount)
                weight[s] = 0.0
                exit_[s] = NO_EXIT
                break
        for k in range(length - 1, -1, -1):
            p = path[k]
            value[p] = reward[p] + discount * value[s]
            weight[p] = discount * weight[s]
            exit_[p] = exit_[s]
            s = p


@compiled
def number_rows(code, label, used, most):
    """Number the distinct stochastic rows among `code` in order of appearance; stop after `most` + 1 of them.

    `label` must hold -1 for every row; used[:count] lists the rows, so that the caller can wipe their labels.
    """
    count = 0
    for s in range(len(code)):
        if code[s] < 0 and label[-2 - code[s]] < 0:
            if count == most:
                return most + 1
            label[-2 - code[s]] = count
            used[count] = -2 - code[s]
            count += 1
    return count


@compiled
def few_rows(codes, policy, label, used, most):
    """Whether a policy has at most `most` distinct stochastic rows; `label` and `used` as in `number_rows`, wiped."""
    code = np.empty(len(policy), codes.dtype)
    for s in range(index(len(policy))):
        code[s] = codes[s, index(policy[s])]
    count = number_rows(code, label, used, most)
    for i in range(min(count, most)):
        label[used[i]] = -1
    return count <= most


@compiled
def close_leaves(indptr, indices, data, used, value, weight, exit_, matrix, constant):
    """For each row in use: m(row) = constant(row) + Σ matrix(row, row') m(row'), from v = value + weight · m(exit)."""
    for i in range(len(used)):
        total = 0.0
        lost = 0.0
        for k in range(indptr[used[i]], indptr[used[i] + 1]):
            s = indices[k]
            x = data[k] * value[s]
            t = total + x
            lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
            total = t
            if exit_[s] >= 0:
                matrix[i, exit_[s]] += data[k] * weight[s]
        constant[i] = total + lost


@compiled
def add_leaves(value, weight, exit_, m):
    """value += weight · m(exit), in place."""
    for s in range(len(value)):
        if exit_[s] >= 0:
            value[s] += weight[s] * m[exit_[s]]
