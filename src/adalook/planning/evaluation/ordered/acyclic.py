"""Acyclic models: states that no cycle leads to are solved by one backward pass, in topological order.

States without predecessors are taken away, then those that have become such, and so on (Kahn). What is left, the core,
holds every cycle and all that follows one; no move leads out of it, so it is a model of its own and is solved first.
The states taken away then need one backup each, last taken first. A state may lead back to itself: its value is the
best of (r + γ Σ_{s' ≠ s} p v) / (1 − γ p_ss), in closed form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled, inlined
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, Rows, code_of_row, is_deterministic, is_stochastic, row_of
from adalook.planning.lookahead.kernels import index

if TYPE_CHECKING:
    from adalook.mdp.model import MDP
    from adalook.planning.evaluation.sweeps import PolicyRows

NAME = "backward pass"
MAX_CORE = 0.5
"""Share of the states beyond which the core is no smaller problem."""


LONG_ROWS = 64
"""Models with more entries than this per (state, action) are not looked at: so dense a graph is hardly acyclic."""


SAMPLE, CLEARLY_MOST = 16, 12
"""States that are asked whether a neighbour leads back to them, and how many must say so for the core to be large."""
FEW_MOVES = 3
"""Actions, and successors of each, that are followed to find out."""


class Peeled(NamedTuple):
    """A model split into the states that no cycle leads to, and the rest."""

    order: IntArray  # (peeled,) in topological order: every move of a state leads to later ones, or to the core
    core: IntArray  # (S − peeled,) ascending


@kept_with_model
def acyclic_part(mdp: MDP) -> Peeled | None:
    """Return what `peel` finds, which is kept with the model: nobody may write to it."""
    return peel(mdp)


def peel(mdp: MDP, max_core: float = MAX_CORE) -> Peeled | None:
    """Return the acyclic part of a model, or None where the core is more than a share `max_core` of the states."""
    n = mdp.num_states
    if len(mdp.rows.indices) > LONG_ROWS * mdp.num_pairs:
        return None
    ahead, cyclic = first_look(mdp)
    if ahead >= (1.0 - MAX_CORE) * n:
        return Peeled(np.arange(ahead, dtype=mdp.codes.dtype), np.arange(ahead, n))
    if max_core <= MAX_CORE and cyclic:
        return None
    if _all_reached(mdp.arrays, np.zeros(n, np.int32)):
        return None
    arrivals = np.zeros(n, np.int32)
    used = np.zeros(mdp.rows.num_rows, np.int32)
    count_arrivals(mdp.arrays, used, arrivals)
    if arrivals.all():
        return None
    order = np.empty(n, mdp.codes.dtype)
    size = take_away(mdp.arrays, used, used.copy(), arrivals, order, 0, list_sources(arrivals, order))
    if n - size > max_core * n:
        return None
    in_core = np.ones(n, bool)
    in_core[order[:size]] = False
    return Peeled(order[:size], np.flatnonzero(in_core))


@kept_with_model
def first_look(mdp: MDP) -> tuple[int, bool]:
    """Return how many states lead ahead and, if that is less than half, whether most are certainly on short cycles."""
    ahead, cyclic = _first_look(mdp.arrays)
    return ahead, cyclic


def core_model(mdp: MDP, core: IntArray) -> MDP:
    """Return the model of the core's states, which no move leaves."""
    from adalook.mdp.model import MDP

    rows, codes = mdp.rows, np.empty((len(core), mdp.num_actions), mdp.codes.dtype)
    number = np.empty(mdp.num_states, mdp.codes.dtype)
    kept: IntArray = np.zeros(rows.num_rows, mdp.codes.dtype)
    shared, num_rows, num_entries = _number_rows(mdp.arrays, core, number, kept)
    indptr = np.empty(num_rows + 1, rows.indptr.dtype)
    indices, data = np.empty(num_entries, rows.indices.dtype), np.empty(num_entries)
    table = Rows(indptr, indices, data, shared)
    _copy_core(mdp.arrays, core, number, kept, codes, table)
    return MDP._adopt(mdp.rewards[core], codes, table, mdp.discount)


def back_up_in_order(mdp: MDP, order: IntArray, values: FloatArray, policy: IntArray) -> None:
    """Write the values of the acyclic states and actions that attain them, given those of the core."""
    _back_up_in_order(mdp.arrays, order, values, policy)


def evaluate_in_order(rows: PolicyRows, order: IntArray, values: FloatArray) -> None:
    """Write a policy's values of the acyclic states, given those of the core."""
    _evaluate_in_order(rows, order, values)


@compiled
def _number_rows(model: ModelArrays, core: IntArray, number: IntArray, kept: IntArray) -> tuple[int, int, int]:
    """Number the states of the core, and from 1 on the rows of their moves in kept (rows,), zeros at first.

    Returns (shared rows, rows, entries) that these are.
    """
    for i in range(len(core)):
        number[core[i]] = i
        for a in range(model.codes.shape[1]):
            if is_stochastic(model.codes[core[i], a]):
                kept[row_of(model.codes[core[i], a])] = 1
    shared = count = entries = 0
    for row in range(len(kept)):
        if kept[row]:
            count += 1
            kept[row] = count
            shared += row < model.num_shared
            entries += model.indptr[row + 1] - model.indptr[row]
    return shared, count, entries


@compiled
def _copy_core(
    model: ModelArrays, core: IntArray, number: IntArray, kept: IntArray, codes: IntArray, table: Rows
) -> None:
    """Write the codes of the core's moves, and the rows that are kept, by new numbers."""
    for i in range(len(core)):
        for a in range(codes.shape[1]):
            code = model.codes[core[i], a]
            if is_deterministic(code):
                codes[i, a] = number[code]
            else:
                codes[i, a] = code_of_row(kept[row_of(code)] - 1) if is_stochastic(code) else NOT_OFFERED
    end = 0
    for row in range(len(kept)):
        if kept[row]:
            table.indptr[kept[row] - 1] = end
            for k in range(model.indptr[row], model.indptr[row + 1]):
                table.indices[end] = number[model.indices[k]]
                table.data[end] = model.data[k]
                end += 1
    table.indptr[len(table.indptr) - 1] = end


@compiled
def _evaluate_in_order(rows: PolicyRows, order: IntArray, v: FloatArray) -> None:
    """Set v(s) to the policy's return in closed form, from the last state of the order to the first."""
    for i in range(len(order) - 1, -1, -1):
        s = index(order[i])
        v[s] = move_return(rows, rows.code[s], rows.reward[s], s, v)


@inlined
def move_return(rows: PolicyRows | ModelArrays, code: int, reward: float, s: int, v: FloatArray) -> float:
    """Return what state s is worth by one of its moves, made until it leaves the state."""
    total, stay = 0.0, 0.0
    if is_deterministic(code):
        if index(code) == s:
            stay = 1.0
        else:
            total = v[index(code)]
    else:
        row = index(row_of(code))
        for k in range(index(rows.indptr[row]), index(rows.indptr[row + index(1)])):
            if index(rows.indices[k]) == s:
                stay = rows.data[k]
            else:
                total += rows.data[k] * v[index(rows.indices[k])]
    result: float = reward + rows.discount * total
    return result / (1.0 - rows.discount * stay) if stay else result


@compiled
def _first_look(model: ModelArrays) -> tuple[int, bool]:
    """Return how many states lead ahead and, if that is less than half, whether most are certainly on cycles."""
    ahead = _lead_ahead(model)
    return ahead, ahead == 0 and model.codes.shape[0] >= SAMPLE and _mostly_cyclic(model)


@compiled
def _lead_ahead(model: ModelArrays) -> int:
    """Return how many states at the beginning lead to themselves and to larger numbers only, as states in time do.

    Those that a later state leads back to, and all after them, do not count. Only the first successor of each row is
    looked at, the least.
    """
    num_states = model.codes.shape[0]
    count = 0
    while count < num_states and _least_successor(model, count) >= count:
        count += 1
    for s in range(count, num_states):
        count = min(count, _least_successor(model, s))
        if 2 * count < num_states:
            return 0
    return count


@inlined
def _least_successor(model: ModelArrays, s: int) -> int:
    """Return the smallest number among the states that a state's moves lead to; successors ascend within a row."""
    least: int = model.codes.shape[0]
    for a in range(index(model.codes.shape[1])):
        code = model.codes[index(s), a]
        if code != NOT_OFFERED:
            first = code if is_deterministic(code) else model.indices[index(model.indptr[index(row_of(code))])]
            least = min(least, first)
    return least


@compiled
def _mostly_cyclic(model: ModelArrays) -> bool:
    """Return whether most states of a sample are left and come back to in two steps: the core holds those at least.

    Grids and dense models are told so from acyclic ones at next to no cost. Where the first half of the sample hardly
    comes back, as in random graphs, it is no use to go on.
    """
    found = 0
    for i in range(SAMPLE):
        if 2 * i == SAMPLE and found == 0:
            return False
        found += _comes_back(model, i * model.codes.shape[0] // SAMPLE)
    return found >= CLEARLY_MOST


@compiled
def _comes_back(model: ModelArrays, s: int) -> bool:
    """Return whether one of the first moves of a state leads to a state with a move back to it."""
    for a in range(min(FEW_MOVES, model.codes.shape[1])):
        code = model.codes[s, a]
        if is_deterministic(code):
            if code != s and _leads_to(model, code, s):
                return True
        elif code != NOT_OFFERED:
            start, stop = model.indptr[row_of(code)], model.indptr[row_of(code) + 1]
            for k in range(start, min(start + FEW_MOVES, stop)):
                if model.indices[k] != s and _leads_to(model, model.indices[k], s):
                    return True
    return False


@compiled
def _leads_to(model: ModelArrays, source: int, target: int) -> bool:
    """Return whether one of a state's moves may lead to another state."""
    for a in range(model.codes.shape[1]):
        code = model.codes[source, a]
        if code == target:
            return True
        if is_stochastic(code):
            low, high = model.indptr[row_of(code)], model.indptr[row_of(code) + 1]
            last = high
            while low < high:  # successors ascend within a row
                middle = (low + high) // 2
                if model.indices[middle] < target:
                    low = middle + 1
                else:
                    high = middle
            if low < last and model.indices[low] == target:
                return True
    return False


@compiled
def _all_reached(model: ModelArrays, arrivals: IntArray) -> bool:
    """Return whether every state is certainly reached from another one, shared rows aside.

    Rows are counted as they lie in memory, each once; a state's own moves make up for at most one arrival per action,
    so that only states of few arrivals are looked at. On random graphs half of the rows are enough.
    """
    num_states, num_actions = model.codes.shape
    for s in range(num_states):
        for a in range(index(num_actions)):
            code = model.codes[index(s), a]
            if is_deterministic(code):
                arrivals[index(code)] += code != s
    start, last = int(model.indptr[model.num_shared]), len(model.indices)
    for stop in ((start + last) // 2, last):
        for k in range(index(start), index(stop)):
            arrivals[index(model.indices[k])] += 1
        start, reached = stop, True
        for s in range(num_states):
            if arrivals[s] <= num_actions and arrivals[s] <= _moves_that_may_stay(model, s):
                reached = False
                break
        if reached:
            return True
    return False


@compiled
def _moves_that_may_stay(model: ModelArrays, s: int) -> int:
    """Return how many stochastic moves of a state may lead back to it."""
    count = 0
    for a in range(model.codes.shape[1]):
        code = model.codes[s, a]
        if code != NOT_OFFERED and not is_deterministic(code):
            for k in range(model.indptr[row_of(code)], model.indptr[row_of(code) + 1]):
                count += model.indices[k] == s
    return count


@compiled
def count_arrivals(model: ModelArrays, used: IntArray, arrivals: IntArray) -> None:
    """Count the moves that lead to each state, and to each row of the table; rows count once, and not from within.

    A state's moves to itself do not count. A row that several states share is followed once all of them are gone.
    """
    num_states, num_actions = model.codes.shape
    for s in range(index(num_states)):
        for a in range(index(num_actions)):
            code = model.codes[s, a]
            if is_deterministic(code):
                if index(code) != s:
                    arrivals[index(code)] += 1
            elif code != NOT_OFFERED:
                used[index(row_of(code))] += 1
    for k in range(index(len(model.indices))):
        arrivals[index(model.indices[k])] += 1
    for s in range(index(num_states)):
        for a in range(index(num_actions)):
            code = model.codes[s, a]
            if is_stochastic(code) and used[index(row_of(code))] == 1:
                row = index(row_of(code))
                for entry in range(index(model.indptr[row]), index(model.indptr[row + index(1)])):
                    if index(model.indices[entry]) == s:
                        arrivals[s] -= 1


@compiled
def list_sources(arrivals: IntArray, order: IntArray) -> int:
    """List the states without arrivals; returns how many there are."""
    size = 0
    for s in range(len(arrivals)):
        if arrivals[s] == 0:
            order[size] = s
            size += 1
    return size


@compiled
def take_away(
    model: ModelArrays, used: IntArray, alone: IntArray, arrivals: IntArray, order: IntArray, head: int, size: int
) -> int:
    """Take away the moves of listed states from `head` on, and of those that this adds; returns how many are listed."""
    while head < size:
        size = leave(model, order[head], used, alone, arrivals, order, size)
        head += 1
    return size


@inlined
def leave(
    model: ModelArrays, s: int, used: IntArray, alone: IntArray, arrivals: IntArray, order: IntArray, size: int
) -> int:
    """Take the moves of a state away and list what nothing leads to any more; returns how many are listed then.

    `alone` has how many moves used each row at first, `used` how many still do.
    """
    for a in range(model.codes.shape[1]):
        code = model.codes[s, a]
        if is_deterministic(code):
            if code != s:
                arrivals[code] -= 1
                if arrivals[code] == 0:
                    order[size] = code
                    size += 1
        elif code != NOT_OFFERED:
            row = row_of(code)
            used[row] -= 1
            if used[row] == 0:
                for k in range(model.indptr[row], model.indptr[row + 1]):
                    t = model.indices[k]
                    if t == s and alone[row] == 1:
                        continue
                    arrivals[t] -= 1
                    if arrivals[t] == 0:
                        order[size] = t
                        size += 1
    return size


@compiled
def _back_up_in_order(model: ModelArrays, order: IntArray, v: FloatArray, policy: IntArray) -> None:
    """Set v(s) to the best return in closed form, from the last state of the order to the first."""
    for i in range(len(order) - 1, -1, -1):
        s = index(order[i])
        policy[s], v[s] = best_move(model, s, v)


@inlined
def best_move(model: ModelArrays, s: int, v: FloatArray) -> tuple[int, float]:
    """Return the best action of a state, and its return in closed form."""
    best, best_action = -np.inf, 0
    for a in range(model.codes.shape[1]):
        code = model.codes[s, index(a)]
        if code == NOT_OFFERED:
            continue
        q = move_return(model, code, model.rewards[s, index(a)], s, v)
        if q > best:
            best, best_action = q, a
    return best_action, best
