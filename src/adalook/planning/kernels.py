"""Compiled loops of planning: pure functions over arrays, S states and A actions.

Common arguments: rewards (S, A); codes (S, A) and the table of rows (indptr, indices, data) as in `mdp.rows`;
hub (hubs,) the expectation of each hub row; v (S,) values; policy (S,) actions; discount.
"""

from __future__ import annotations

import numpy as np

from adalook.mdp.kernels import compiled, inlined
from adalook.mdp.rows import LONG_ROW


@inlined
def expectation(indptr, indices, data, row, v):
    """Σ p v over one row; long rows are summed with compensation (Neumaier)."""
    start, stop = indptr[row], indptr[row + 1]
    total = 0.0
    lost = 0.0
    if stop - start <= LONG_ROW:
        for k in range(start, stop):
            total += data[k] * v[indices[k]]
    else:
        for k in range(start, stop):
            x = data[k] * v[indices[k]]
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
        result = v[code]
    elif -2 - code < len(hub):
        result = hub[-2 - code]
    else:
        result = expectation(indptr, indices, data, -2 - code, v)
    return result


@compiled
def backup(rewards, codes, indptr, indices, data, hub, v, policy, discount, best, action, first, last):
    """T v and a greedy policy into best, action of states first..last-1; the policy's own action wins ties.

    Returns (min, max) of T v − v, (min, max) of T_π v − v, and max|v|. Choices are written as selections, not
    branches: which action wins is unpredictable, and a processor that guesses wrong waits.
    """
    num_actions = codes.shape[1]
    low, high, own_low, own_high, size = np.inf, -np.inf, np.inf, -np.inf, 0.0
    for s in range(first, last):
        chosen = policy[s]
        top, own = -np.inf, -np.inf
        top_action = chosen
        for a in range(num_actions):
            code = codes[s, a]
            if code == -1:
                continue
            q = rewards[s, a] + discount * ahead(code, indptr, indices, data, hub, v)
            top_action = a if q > top else top_action
            top = q if q > top else top
            own = q if a == chosen else own
        best[s] = top
        action[s] = chosen if own == top else top_action
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
        size = 0
        mark = level + 1
        for i in range(num_changed):
            s = changed[i]
            for k in range(start[s], start[s + 1]):
                p = sources[k]
                if stamp[p] != mark:
                    stamp[p] = mark
                    front[size] = p
                    size += 1
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
            s = front[i]
            chosen = action[s]
            top, own = u[s], u[s]
            top_action = chosen
            for a in range(num_actions):
                code = codes[s, a]
                if code == -1:
                    continue
                pairs += 1
                q = rewards[s, a] + discount * ahead(code, indptr, indices, data, hub, u)
                top_action = a if q > top else top_action
                top = q if q > top else top
                own = q if a == chosen else own
            top_action = chosen if own == top else top_action
            if frozen:
                if top - u[s] > spread:
                    u[s] = top
                    action[s] = top_action
                    depth[s] = level
                    changed[num_changed] = s
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
    for s in range(first, last):
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


@compiled
def expand(codes, indptr, indices, num_hubs, member, out):
    """Mark in `out` every successor of a member state that is not reached through a hub."""
    num_states, num_actions = codes.shape
    for s in range(num_states):
        if member[s]:
            for a in range(num_actions):
                code = codes[s, a]
                if code >= 0:
                    out[code] = True
                elif code < -1 and -2 - code >= num_hubs:
                    row = -2 - code
                    for k in range(indptr[row], indptr[row + 1]):
                        out[indices[k]] = True


@compiled
def ball_pairs(codes, indptr, indices, num_hubs, offered, roots, depth, stamp, queue, out):
    """out[i] = distinct (state, action) pairs in the tree of `depth` levels below roots[i], hubs not expanded."""
    num_actions = codes.shape[1]
    for i in range(len(roots)):
        mark = i + 1
        stamp[roots[i]] = mark
        queue[0] = roots[i]
        head, tail = 0, 1
        total = 0
        for level in range(depth):
            end = tail
            while head < end:
                s = queue[head]
                head += 1
                total += offered[s]
                if level == depth - 1:
                    continue
                for a in range(num_actions):
                    code = codes[s, a]
                    if code >= 0:
                        if stamp[code] != mark:
                            stamp[code] = mark
                            queue[tail] = code
                            tail += 1
                    elif code < -1 and -2 - code >= num_hubs:
                        row = -2 - code
                        for k in range(indptr[row], indptr[row + 1]):
                            p = indices[k]
                            if stamp[p] != mark:
                                stamp[p] = mark
                                queue[tail] = p
                                tail += 1
        out[i] = total


@compiled
def tree_pairs(codes, indptr, indices, num_hubs, shallower, out):
    """out(s) = Σ_a (1 + Σ_s' shallower(s')): nodes of a tree one level deeper, hubs not expanded."""
    num_states, num_actions = codes.shape
    for s in range(num_states):
        total = 0
        for a in range(num_actions):
            code = codes[s, a]
            if code == -1:
                continue
            total += 1
            if code >= 0:
                total += shallower[code]
            elif -2 - code >= num_hubs:
                row = -2 - code
                for k in range(indptr[row], indptr[row + 1]):
                    total += shallower[indices[k]]
        out[s] = total


@compiled
def myopic_policy(rewards, codes, policy):
    """The offered action with the best immediate reward, the first one on ties."""
    for s in range(codes.shape[0]):
        top = -1
        for a in range(codes.shape[1]):
            if codes[s, a] != -1 and (top < 0 or rewards[s, a] > rewards[s, top]):
                top = a
        policy[s] = top


@compiled
def count_different(one, other):
    """How many entries differ."""
    count = 0
    for s in range(len(one)):
        count += one[s] != other[s]
    return count
