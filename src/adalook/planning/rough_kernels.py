"""Compiled loop of rough passes on local models: see `rough`. Arguments as in `kernels`."""

from __future__ import annotations

import numpy as np

from adalook.mdp.kernels import compiled
from adalook.planning.kernels import ahead, backup, gather_front, greedy, hub_expectations, index

FEW = 8
"""Sweeps visit only predecessors of what changed once fewer than a share 1/FEW of the states changed."""


@compiled
def sweep_active(
    reward, code, indptr, indices, data, hub, discount, start, sources, v, target, most, changed, front, stamp, mark
):
    """Sweep T_π in place until no state changes by more than `target`, or for the work of `most` full sweeps.

    Full sweeps go there and back in turn; without predecessors all sweeps are full. Returns (work in states, last mark
    used in `stamp`).
    """
    num_states = len(v)
    work, num_changed = 0, 0
    everywhere, forward = True, True
    while work < most * num_states:
        size = num_states
        if not everywhere:
            mark += 1
            size = gather_front(start, sources, changed, num_changed, stamp, mark, front)
        num_changed = 0
        for i in range(size):
            state = (i if forward else num_states - 1 - i) if everywhere else front[i]
            s = index(state)
            new = reward[s] + discount * ahead(code[s], indptr, indices, data, hub, v)
            if abs(new - v[s]) > target:
                changed[num_changed] = state
                num_changed += 1
            v[s] = new
        work += size
        forward = not forward
        if num_changed == 0:
            break
        everywhere = len(sources) == 0 or FEW * num_changed > num_states
    return work, mark


@compiled
def improve_in_place(rewards, codes, indptr, indices, data, hub, discount, v, policy, forward):
    """v <- T v in place, in ascending or descending order, and the policy with it; its own action wins ties."""
    num_states = len(v)
    for i in range(num_states):
        s = index(i if forward else num_states - 1 - i)
        v[s], policy[s], _, _ = greedy(rewards, codes, indptr, indices, data, hub, v, discount, s, policy[s])


@compiled
def rough_passes(
    rewards,
    codes,
    indptr,
    indices,
    data,
    num_hubs,
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
    rounding,
    share,
    sweeps,
    eager,
    most_sweeps,
    most_work,
    figures,
    all_values,
    all_policies,
):
    """Run passes (evaluate, back up, improve) until the span of T v − v is at most `enough` or lost in rounding.

    v, policy (S,) go in as the start and come out as the last evaluated values and the policy they belong to;
    best, action (S,) come out as T v and its greedy policy. Row p of figures gets (low, high, own low, own high,
    size, states changed, work of the evaluation) of pass p; all_values, all_policies, if not empty, its arrays.
    `rounding` (2,): a bound on the rounding of T v − v is rounding[0] + rounding[1] max|v|.
    Returns (passes made, coarse, sweeps) to go on from.
    """
    num_states = len(v)
    reward, code, hub = np.empty(num_states), np.empty(num_states, codes.dtype), np.empty(num_hubs)
    changed, front = np.empty(num_states, codes.dtype), np.empty(num_states, codes.dtype)
    stamp = np.zeros(num_states, np.int32)
    mark = 0
    spent = 0
    for p in range(len(figures)):
        for s in range(num_states):
            reward[s] = rewards[s, policy[s]]
            code[s] = codes[s, policy[s]]
        hub_expectations(indptr, indices, data, v, hub)
        target = max(fine, share * coarse)
        work, mark = sweep_active(
            reward,
            code,
            indptr,
            indices,
            data,
            hub,
            discount,
            start,
            sources,
            v,
            target,
            sweeps,
            changed,
            front,
            stamp,
            mark,
        )
        hub_expectations(indptr, indices, data, v, hub)
        low, high, own_low, own_high, size = backup(
            rewards, codes, indptr, indices, data, hub, v, policy, discount, best, action, 0, num_states
        )
        spent += num_states * codes.shape[1] * 3 + work
        if len(all_values) > 0:
            all_values[p] = v
        error = rounding[0] + rounding[1] * size
        last = high - low + 2.0 * error <= enough or high - low <= 4.0 * error
        last |= p + 1 == len(figures) or spent >= most_work
        different = 0
        if last:
            for s in range(num_states):
                different += action[s] != policy[s]
        else:
            before = policy.copy()
            # all changes of one sign: what is to come is at least γ/(1 − γ) times the least of them
            common = low if low > 0.0 else (high if high < 0.0 else 0.0)
            for s in range(num_states):
                v[s] = best[s] + discount / (1.0 - discount) * common
                policy[s] = action[s]
            improve_in_place(rewards, codes, indptr, indices, data, hub, discount, v, policy, False)
            improve_in_place(rewards, codes, indptr, indices, data, hub, discount, v, policy, True)
            for s in range(num_states):
                different += before[s] != policy[s]
        figures[p, 0], figures[p, 1], figures[p, 2], figures[p, 3] = low, high, own_low, own_high
        figures[p, 4], figures[p, 5], figures[p, 6] = size, different, work
        if len(all_policies) > 0:
            all_policies[p] = action if last else policy
        coarse = high - low
        sweeps = min(most_sweeps, max(1.0, eager * num_states / max(different, 1)))
        if last:
            return p + 1, coarse, sweeps
    return 0, coarse, sweeps
