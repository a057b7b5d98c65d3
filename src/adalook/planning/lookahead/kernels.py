"""Compiled loops of planning: pure functions over arrays, S states and A actions.

Common arguments: rewards (S, A); codes (S, A) and the table of rows (indptr, indices, data) as in `mdp.rows`;
hub (hubs,) the expectation of each hub row; v (S,) values; policy (S,) actions; discount.
"""

from __future__ import annotations

import numpy as np

from adalook._jit import compiled, inlined
from adalook.mdp.transitions import LONG_ROW

index = np.uintp
"""Indices are made unsigned in hot loops: a signed one is checked for Python's "from the end" at every access, which
doubles the time of a sweep."""


@inlined
def expectation(indptr, indices, data, row, v):
    """Σ p v over one row; long rows are summed with compensation (Neumaier)."""
    start, stop = index(indptr[index(row)]), index(indptr[index(row + 1)])
    total = 0.0
    lost = 0.0
    if stop - start <= index(LONG_ROW):
        k = start
        while k < stop:  # where `range` is unrolled by eight, which rows of two or three are too short for
            total += data[k] * v[index(indices[k])]
            k += index(1)
    else:
        for k in range(start, stop):
            x = data[k] * v[index(indices[k])]
            t = total + x
            lost += (total - t) + x if abs(total) >= abs(x) else (x - t) + total
            total = t
    return total + lost


@compiled
def hub_expectations(indptr, indices, data, v, hub):
    """Fill hub (hubs,) with the expectation of each hub row under v."""
    for row in range(len(hub)):
        hub[row] = expectation(indptr, indices, data, row, v)


@inlined
def ahead(code, indptr, indices, data, hub, v):
    """Expected value of the state that a transition code leads to."""
    if code >= 0:
        result = v[index(code)]
    elif -2 - code < len(hub):
        result = hub[index(-2 - code)]
    else:
        result = expectation(indptr, indices, data, -2 - code, v)
    return result


@inlined
def greedy(rewards, codes, indptr, indices, data, hub, v, discount, s, chosen):
    """Best one-step return in state s: (value, action, value of the chosen action, actions on offer).

    The chosen action wins ties. Choices are written as selections, not branches: which action wins is unpredictable,
    and a processor that guesses wrong waits.
    """
    top, own = -np.inf, -np.inf
    top_action = chosen
    count = 0
    for a in range(codes.shape[1]):
        code = codes[s, index(a)]
        if code == -1:
            continue
        count += 1
        q = rewards[s, index(a)] + discount * ahead(code, indptr, indices, data, hub, v)
        top_action = a if q > top else top_action
        top = q if q > top else top
        own = q if a == chosen else own
    return top, chosen if own == top else top_action, own, count


@compiled
def backup(rewards, codes, indptr, indices, data, hub, v, policy, discount, best, action, first, last):
    """T v and a greedy policy into best, action of states first..last-1; the policy's own action wins ties.

    Returns (min, max) of T v − v, (min, max) of T_π v − v, and max|v|.
    """
    low, high, own_low, own_high, size = np.inf, -np.inf, np.inf, -np.inf, 0.0
    for s in range(index(first), index(last)):
        top, top_action, own, _ = greedy(rewards, codes, indptr, indices, data, hub, v, discount, s, policy[s])
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
def keep_gains(v, policy, switch, spread, best, action, changed):
    """Undo every gain of at most `switch`; list the states whose gain exceeds `spread` in `changed`.

    Returns (how many states switched, how many are listed).
    """
    switched = listed = 0
    for s in range(len(v)):
        gain = best[s] - v[s]
        if gain > switch:
            switched += 1
            if gain > spread:
                changed[listed] = s
                listed += 1
        else:
            best[s] = v[s]
            action[s] = policy[s]
    return switched, listed


@inlined
def gather_front(start, sources, changed, num_changed, stamp, mark, front):
    """List in `front`, once each, the predecessors of changed[:num_changed], stamped with `mark`; returns how many."""
    size = 0
    for i in range(num_changed):
        s = changed[i]
        for k in range(start[s], start[s + 1]):
            p = sources[k]
            if stamp[p] != mark:
                stamp[p] = mark
                front[size] = p
                size += 1
    return size


@compiled
def wave(
    rewards,
    codes,
    indptr,
    indices,
    data,
    hub,
    start,
    sources,
    hub_users,
    discount,
    spread,
    frozen,
    levels,
    budget,
    widest,
    level,
    u,
    action,
    depth,
    changed,
    num_changed,
    stamp,
    front,
    new_value,
    new_action,
    work,
):
    """Deepen u = T^level v by up to `levels` levels, backing up only predecessors of what changed.

    `changed[:num_changed]` holds the states raised at the last level. A level is begun only while the work of
    all levels stays within `budget` (state, action) pairs and its front within `widest` states. `frozen` hubs
    keep their expectation; others follow u and wake their users. `work[level]` gets the pairs backed up.
    Returns (level, num_changed, whether a limit stopped it).
    """
    num_actions = codes.shape[1]
    old_hub = hub.copy()
    spent = 0
    while levels > 0 and num_changed > 0:
        mark = level + 1
        size = gather_front(start, sources, changed, num_changed, stamp, mark, front)
        if not frozen:
            hub_expectations(indptr, indices, data, u, hub)
            moved = False
            for row in range(len(hub)):
                moved |= hub[row] != old_hub[row]
                old_hub[row] = hub[row]
            if moved:
                for i in range(len(hub_users)):
                    p = hub_users[i]
                    if stamp[p] != mark:
                        stamp[p] = mark
                        front[size] = p
                        size += 1
        if size > widest or spent + size * num_actions > budget:
            return level, num_changed, True
        pairs = 0
        level += 1
        levels -= 1
        num_changed = 0
        for i in range(size):
            s = index(front[i])
            top, top_action, _, count = greedy(rewards, codes, indptr, indices, data, hub, u, discount, s, action[s])
            pairs += count
            if frozen:
                if top - u[s] > spread:
                    u[s] = top
                    action[s] = top_action
                    depth[s] = level
                    changed[num_changed] = front[i]
                    num_changed += 1
            else:
                new_value[i] = top
                new_action[i] = top_action
        spent += pairs
        work[level] = pairs
        if frozen:
            continue
        for i in range(size):
            s = front[i]
            if new_value[i] - u[s] > spread:
                u[s] = new_value[i]
                action[s] = new_action[i]
                depth[s] = level
                changed[num_changed] = s
                num_changed += 1
    return level, num_changed, False


@compiled
def myopic_policy(rewards, codes, policy):
    """The offered action with the best immediate reward, the first one on ties."""
    for s in range(index(codes.shape[0])):
        best, top = -np.inf, 0
        for a in range(codes.shape[1]):
            reward = rewards[s, index(a)] if codes[s, index(a)] != -1 else -np.inf
            top = a if reward > best else top
            best = reward if reward > best else best
        policy[s] = top


@compiled
def count_different(one, other):
    """How many entries differ."""
    count = 0
    for s in range(len(one)):
        count += one[s] != other[s]
    return count
