"""Compiled loop of rough passes on local models: see `rough`. Arguments as in `kernels`."""

from __future__ import annotations

import numpy as np

from adalook._jit import compiled, inlined
from adalook.planning.lookahead.kernels import backup, count_different, gather_front, greedy, hub_expectations, index

FEW = 8
"""Sweeps visit only predecessors of what changed once fewer than a share 1/FEW of the states changed."""
SHARE = 0.01
"""A sweep is fine enough when it changes values by this share of what the last backup changed …"""
MOST_SWEEPS = 30.0
"""… or after as many sweeps as there are states per action that changed, but no more than this."""
MOST_ROUNDS = 8
"""Rounds of improvement and sweeps before the first backup, which go on as long as many actions change."""
MOST_WORK = 10_000_000
"""Pairs backed up in one go, about a tenth of a second: Ctrl-C and the clock are looked at in between."""
VERY_FEW = 32
"""On small models, whose sweeps are cheap, a policy has as good as settled once fewer than a share 1/VERY_FEW of the
states changed, and ever fewer."""
NOTHING = -1
"""No action."""


@compiled
def gather_rows(rewards, codes, indptr, indices, data, hub, discount, policy, gathered, reward, successor, weight):
    """The policy's rows side by side, all padded to one length: v(s) = reward(s) + Σ weight(s, k) v(successor(s, k)).

    reward (S,) takes in what is expected of hubs; weights (S, longest row) are γ times probabilities, zero in the
    padding. A sweep then has neither branches nor lookups. gathered (S,) remembers whose rows are in place already;
    what is expected of hubs changes with the values.
    """
    width = successor.shape[1]
    for s in range(len(policy)):
        a = index(policy[s])
        code = codes[s, a]
        to_hub = code < 0 and -2 - code < len(hub)
        if policy[s] == gathered[s] and not to_hub:
            continue
        gathered[s] = policy[s]
        reward[s] = rewards[s, a]
        used = 0
        if code >= 0:
            successor[s, 0], weight[s, 0], used = code, discount, 1
        elif to_hub:
            reward[s] += discount * hub[index(-2 - code)]
        else:
            for k in range(index(indptr[index(-2 - code)]), index(indptr[index(-1 - code)])):
                successor[s, index(used)], weight[s, index(used)] = indices[k], discount * data[k]
                used += 1
        for k in range(used, width):
            successor[s, index(k)], weight[s, index(k)] = s, 0.0


@inlined
def sweep_state(s, reward, successor, weight, v):
    """(T_π v)(s)."""
    total = reward[s]
    for k in range(index(successor.shape[1])):
        total += weight[s, k] * v[index(successor[s, k])]
    return total


@compiled
def sweep_whole(reward, successor, weight, v, target, most):
    """Sweep T_π in place, there and back in turn, until no state changes by more than `target`, or `most` times.

    Returns the work in states.
    """
    num_states = index(len(v))
    last = index(num_states - 1)
    work, largest = 0, np.inf
    forward = True
    while largest > target and work < most * len(v):
        largest = 0.0
        for i in range(num_states):
            s = i if forward else last - i
            new = sweep_state(s, reward, successor, weight, v)
            change = abs(new - v[s])
            largest = change if change > largest else largest
            v[s] = new
        work += len(v)
        forward = not forward
    return work


@compiled
def sweep_all(reward, successor, weight, v, target, forward, moved):
    """Sweep T_π once in place; mark who changed by more than `target` in moved (S,) and return how many."""
    num_states = index(len(v))
    last = index(num_states - 1)
    count = 0
    for i in range(num_states):
        s = i if forward else last - i
        new = sweep_state(s, reward, successor, weight, v)
        far = abs(new - v[s]) > target
        moved[s] = far
        count += far
        v[s] = new
    return count


@compiled
def sweep_some(reward, successor, weight, v, target, front, size, changed):
    """As `sweep_all` for the first `size` states of `front`; lists who changed in `changed`."""
    count = 0
    for i in range(index(size)):
        s = index(front[i])
        new = sweep_state(s, reward, successor, weight, v)
        changed[index(count)] = front[i]
        count += abs(new - v[s]) > target
        v[s] = new
    return count


@compiled
def sweep_active(reward, successor, weight, start, sources, v, target, most, moved, changed, front, stamp, mark):
    """As `sweep_whole`, but once few states change, only their predecessors are swept.

    Returns (work in states, last mark used in `stamp`).
    """
    num_states = len(v)
    work, count = 0, num_states
    forward = True
    while count > 0 and work < most * num_states:
        if FEW * count > num_states:
            count = sweep_all(reward, successor, weight, v, target, forward, moved)
            work += num_states
            forward = not forward
            if FEW * count <= num_states:
                list_moved(moved, changed)
        else:
            mark += 1
            size = gather_front(start, sources, changed, count, stamp, mark, front)
            count = sweep_some(reward, successor, weight, v, target, front, size, changed)
            work += size
    return work, mark


@compiled
def list_moved(moved, changed):
    """List the marked states in `changed`."""
    count = 0
    for s in range(len(moved)):
        if moved[s]:
            changed[count] = s
            count += 1


@compiled
def improve_in_place(rewards, codes, indptr, indices, data, hub, discount, v, policy):
    """v <- T v in place, back and forth over the states, and the policy with it; its own action wins ties."""
    last = index(len(v) - 1)
    for i in range(index(len(v))):
        s = last - i
        v[s], policy[s], _, _ = greedy(rewards, codes, indptr, indices, data, hub, v, discount, s, policy[s])
    for s in range(index(len(v))):
        v[s], policy[s], _, _ = greedy(rewards, codes, indptr, indices, data, hub, v, discount, s, policy[s])


@inlined
def next_sweeps(different, num_states, coarse, fine):
    """(most sweeps, change that no longer matters) after so many actions changed.

    The fewer, the better the values are worth knowing; a policy that has settled is evaluated to the end.
    """
    sweeps = min(MOST_SWEEPS, num_states / max(different, 1))
    return sweeps, fine if different == 0 else max(fine, SHARE * coarse)


@compiled
def rough_passes(
    rewards,
    codes,
    indptr,
    indices,
    data,
    num_hubs,
    longest_row,
    start,
    sources,
    discount,
    v,
    policy,
    best,
    action,
    coarse,
    fine,
    enough,
    least_error,
    error_per_size,
    figures,
    all_values,
    all_policies,
):
    """Run passes (evaluate, back up, improve) until the span of T v − v is at most `enough` or lost in rounding.

    v, policy (S,) go in as the start and come out as the last evaluated values and the policy they belong to;
    best, action (S,) come out as T v and its greedy policy. Row p of figures gets (low, high, own low, own high,
    size, states changed, work of the evaluation, rounds of improvement in place) of pass p; all_values, all_policies,
    if not empty, its arrays.
    The rounding of T v − v is at most least_error + error_per_size max|v|.
    Returns (passes made, coarse) to go on from.
    """
    num_states = len(v)
    hub, reward = np.empty(num_hubs), np.empty(num_states)
    successor, weight = np.empty((num_states, longest_row), codes.dtype), np.empty((num_states, longest_row))
    changed, front = np.empty(num_states + 1, codes.dtype), np.empty(num_states, codes.dtype)
    stamp, moved = np.zeros(num_states, np.int32), np.empty(num_states, np.bool_)
    first, before, gathered = np.empty_like(policy), np.empty_like(policy), np.full_like(policy, NOTHING)
    mark, spent = 0, 0
    different = num_states
    hub_expectations(indptr, indices, data, v, hub)
    for p in range(len(figures)):
        first[:] = policy
        work, rounds = 0, 0
        settling = p == 0
        while True:
            if settling:
                # Before the first backup: improve as long as many actions change, or ever fewer.
                before[:] = policy
                improve_in_place(rewards, codes, indptr, indices, data, hub, discount, v, policy)
                previous, different = different, count_different(before, policy)
                rounds += 1
                fading = 2 * different < previous
                settled = fading and VERY_FEW * different <= num_states and len(sources) == 0
                settling = rounds < MOST_ROUNDS and not settled and (fading or FEW * different > num_states)
                left = 0 if settled else different  # what fades so fast will be gone by the next round
                sweeps, target = next_sweeps(left, num_states, coarse, fine)
            hub_expectations(indptr, indices, data, v, hub)
            gather_rows(
                rewards, codes, indptr, indices, data, hub, discount, policy, gathered, reward, successor, weight
            )
            if len(sources) == 0:
                work += sweep_whole(reward, successor, weight, v, target, sweeps)
            else:
                swept, mark = sweep_active(
                    reward, successor, weight, start, sources, v, target, sweeps, moved, changed, front, stamp, mark
                )
                work += swept
            if not settling:
                break
        hub_expectations(indptr, indices, data, v, hub)
        low, high, own_low, own_high, size = backup(
            rewards, codes, indptr, indices, data, hub, v, policy, discount, best, action, 0, num_states
        )
        if len(all_values) > 0:
            all_values[p] = v
        error = least_error + error_per_size * size
        last = high - low + 2.0 * error <= enough or high - low <= 4.0 * error
        last |= p + 1 == len(figures) or spent >= MOST_WORK
        coarse = high - low
        if not last:
            # all changes of one sign: what is to come is at least γ/(1 − γ) times the least of them
            common = low if low > 0.0 else (high if high < 0.0 else 0.0)
            before[:] = policy
            for s in range(num_states):
                v[s] = best[s] + discount / (1.0 - discount) * common
                policy[s] = action[s]
            if count_different(before, policy) > 0:
                improve_in_place(rewards, codes, indptr, indices, data, hub, discount, v, policy)
                rounds += 1
            different = count_different(before, policy)
            sweeps, target = next_sweeps(different, num_states, coarse, fine)
        spent += num_states * codes.shape[1] * (1 + 2 * rounds) + work
        figures[p, 0], figures[p, 1], figures[p, 2], figures[p, 3] = low, high, own_low, own_high
        figures[p, 4], figures[p, 5] = size, count_different(first, action if last else policy)
        figures[p, 6], figures[p, 7] = work, rounds
        if len(all_policies) > 0:
            all_policies[p] = action if last else policy
        if last:
            return p + 1, coarse
    return 0, coarse
