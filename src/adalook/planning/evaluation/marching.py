"""Marching: states in order of their distance from the best rewards, improved window by window along the way.

As fast marching does for shortest paths, values are found where the rewards are and carried on from there. States are
numbered anew by a breadth-first search against the moves, from the states of the largest reward. All values start from
below, from what no optimal policy is worse than, so that nothing that was not reached yet looks attractive. Then

    a window of a dozen levels is backed up in place, again and again, until it settles  ->  the next one, half ahead

A window that has settled depends on what is ahead of it by slips alone, and its states are not visited in vain while
news is still on its way: a plain sweep repairs a few levels and goes through all of them. A window fits into the cache,
and states of one level hardly lead to each other, so that none waits for the one before it. A policy that was found
like this is evaluated in the same way, from its own rows; what is slow within a window is extrapolated. One backup in
place of all states improves it, and so on until nothing changes.

Moves that may stay in place are solved for the state itself: from below that overtakes nothing. Where windows do not
settle, as there is no direction to go in, or rounds get nowhere, other solvers go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, Predecessors, is_deterministic, row_of
from adalook.planning.certificate import rounding_bound
from adalook.planning.evaluation.in_place import (
    LOCAL_ROW,
    MAX_PLACES,
    NO_ACTION,
    SAMPLE,
    WINDOW,
    MoveTable,
    PaddedRows,
    _best_move,
    _one_way_or_none,
    _pad_rows,
    _row_value,
    extrapolate,
)
from adalook.planning.lookahead.kernels import index

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "marching"

LEAST_STATES = 5_000
"""Smaller models are solved before an order is found."""
MOST_GROWTH = 16.0
"""Nor are models marched through whose neighbourhoods grow by more than this from one step to three, or whose moves
nearly all lead one way: their own order is as good …"""
WIDEST = 8
"""… nor those of which more than a share 1/WIDEST lies at one distance from the best rewards, such as trees."""
MOST_ROOTS = 4
"""There is no direction to go in where more than a share 1/MOST_ROOTS of the states have the largest reward."""
MAX_PARTS = 8
"""Parts of a model from which the best rewards cannot be reached that are ordered by what is best within them."""
LEVELS, LEAST_WINDOW, LARGEST_WINDOW = 12, 64, 6_000
"""A window holds so many levels of the search, but this many states at least and at most, about what a cache holds."""
SETTLED = 1e-3
"""A window has settled once values change by this share of what they changed by at first …"""
MAX_BACKUPS, MAX_SWEEPS = 24, 60
"""… which takes no more backups, or sweeps of a policy, than this …"""
CREDIT = 4
"""… but for sweeps that come to this many of all states: what lies at the root may take long, and is worth it."""
PLAIN_SWEEPS = 12
"""Sweeps of a window after which what is to come is extrapolated."""
TRIAL, MOST_UNSETTLED = 8, 3
"""After the work of so many backups, marching ends if more than a share 1/MOST_UNSETTLED of windows do not settle."""
MAX_ROUNDS = 24
MAX_WORK = 50_000_000
"""States swept and pairs backed up in one go, about a tenth of a second: Ctrl-C and the clock are looked at between."""
PREPARATION = 6
"""Backups that the order and the table cost as much as, about."""
LEAST_GAIN = 0.5
"""Rounds end when the largest change has not fallen to this share in two of them."""


class Order(NamedTuple):
    """An order of the states, from where rewards are best against the moves."""

    states: IntArray  # (S,) in this order
    window: int
    """States of a window."""
    lowest: float
    """What no state's optimal value is below: the least of what its best reward pays for ever."""


class Marched(NamedTuple):
    """The result of a march, and what it cost."""

    values: FloatArray  # (S,)
    policy: IntArray
    """(S,) the policy that the values are of, as far as they were swept."""
    rounds: int
    swept: int
    """States updated by sweeps."""
    backed_up: int
    """States backed up in place."""
    goes_on: bool
    """Whether further rounds are worth it."""


def suits(mdp: MDP) -> bool:
    """Return whether a model is large and local, and its own order is no good."""
    return (
        mdp.num_states >= LEAST_STATES
        and mdp.growth <= MOST_GROWTH
        and not _one_way_or_none(mdp.arrays, max(1, mdp.num_states // SAMPLE))
    )


def order_of(mdp: MDP) -> Order | None:
    """Return the order to march in, or None where a model has no direction, or rows that are too long or shared."""
    width = mdp.longest_row
    if mdp.rows.num_shared or width > LOCAL_ROW or mdp.codes.size * width > MAX_PLACES:
        return None
    best = np.empty(mdp.num_states)
    _best_rewards(mdp.arrays, best)
    if MOST_ROOTS * int(np.count_nonzero(best == best.max())) > mdp.num_states:
        return None
    lowest = float(best.min()) / (1.0 - mdp.discount)
    if not np.isfinite(2.0 * mdp.largest_reward / (1.0 - mdp.discount)):
        return None
    states = np.empty(mdp.num_states, mdp.codes.dtype)
    levels, widest = _order_by_distance(best, mdp.predecessors, states)
    if WIDEST * widest > mdp.num_states >= LEAST_STATES:
        return None
    window = int(min(LARGEST_WINDOW, max(LEAST_WINDOW, LEVELS * mdp.num_states // levels)))
    return Order(states, window, lowest)


class March:
    """A march through a model, which goes on pass by pass."""

    def __init__(self, mdp: MDP, order: Order, tolerance: float) -> None:
        self._order = order
        rank = np.empty_like(order.states)
        rank[order.states] = np.arange(mdp.num_states, dtype=rank.dtype)
        self._table = MoveTable.empty(mdp)
        _write_table(mdp.arrays, rank, self._table)
        span = tolerance * (1.0 - mdp.discount * mdp.row_sums[1])
        rounding = rounding_bound(mdp, mdp.largest_reward / (1.0 - mdp.discount))
        self._limits = MarchLimits(max(0.1 * span, rounding), max(0.5 * span, 2.0 * rounding), order.window)

    def run(self, policy: IntArray, values: FloatArray | None = None) -> Marched | None:
        """March from below, or go on from values (S,), for about a tenth of a second; None if windows do not settle."""
        states = self._order.states
        v = np.full(len(states), self._order.lowest) if values is None else values[states]
        own = policy[states]
        rounds, swept, backed_up, outcome = _march(self._table, v, own, self._limits, values is None)
        if outcome == LOST:
            return None
        values, policy = np.empty_like(v), np.empty_like(policy)
        values[states], policy[states] = v, own
        return Marched(values, policy, rounds, swept, backed_up, outcome == GOES_ON)


class MarchLimits(NamedTuple):
    """Changes at which windows, and a march as a whole, may stop."""

    least_change: float
    """Windows settle at such a change at the latest."""
    target: float
    """Enough is a backup in place that changes no value by more than this."""
    window: int
    """States of a window of backups; those of sweeps are twice as large."""


LOST, GOES_ON, ENDED = 0, 1, 2
"""Outcomes of a march: windows do not settle; there is more to gain; nothing changes any more, or too slowly."""


@compiled
def _best_rewards(model: ModelArrays, best: FloatArray) -> None:
    """Write the largest reward of each state (S,)."""
    for s in range(index(model.codes.shape[0])):
        top = -np.inf
        for a in range(index(model.codes.shape[1])):
            if model.codes[s, a] != NOT_OFFERED:
                top = max(top, model.rewards[s, a])
        best[s] = top


@compiled
def _order_by_distance(best: FloatArray, predecessors: Predecessors, order: IntArray) -> tuple[int, int]:
    """List the states by their distance to those of the largest reward: (levels, states of the widest).

    States that cannot reach these lead to their like only, and come first: in parts, each ordered in the same way.
    """
    num_states = len(order)
    seen = np.zeros(num_states, np.bool_)
    found = np.empty_like(order)
    free, levels, widest, parts = num_states, 0, 0, 0
    while free > 0:
        top = -np.inf
        for s in range(index(num_states)):
            if not seen[s] and best[s] > top:
                top = best[s]
        parts += 1
        size = 0
        for s in range(index(num_states)):
            if not seen[s] and (best[s] == top or parts > MAX_PARTS):
                seen[s] = True
                found[size] = s
                size += 1
        size, deep, wide = _search_back(predecessors, seen, found, size)
        levels += deep
        widest = max(widest, wide)
        free -= size
        order[free : free + size] = found[:size]
    return levels, widest


@compiled
def _search_back(predecessors: Predecessors, seen: BoolArray, found: IntArray, size: int) -> tuple[int, int, int]:
    """Go on from the first `size` states found to those that lead to them: (states found, levels, widest level)."""
    head, levels, widest = index(0), 0, 0
    while head < index(size):
        end = index(size)
        levels += 1
        while head < end:
            s = index(found[head])
            head += index(1)
            for k in range(index(predecessors.start[s]), index(predecessors.start[s + index(1)])):
                source = predecessors.sources[k]
                if not seen[index(source)]:
                    seen[index(source)] = True
                    found[index(size)] = source
                    size += 1
        widest = max(widest, size - int(end))
    return size, levels, widest


@compiled
def _write_table(model: ModelArrays, rank: IntArray, table: MoveTable) -> None:
    """Write the rows of all moves by the new numbers, each solved for the state itself.

    In the old order: a processor need not wait for what it writes here and there, but for what it reads.
    """
    num_actions = index(model.codes.shape[1])
    reward, successor, weight, _ = table
    width = index(successor.shape[1])
    for s in range(index(len(rank))):
        i = index(rank[s])
        for a in range(num_actions):
            code, place = model.codes[s, a], i * num_actions + a
            stay, used = 0.0, index(0)
            if is_deterministic(code):
                if index(code) == s:
                    stay = model.discount
                else:
                    successor[place, used], weight[place, used] = rank[index(code)], model.discount
                    used += index(1)
            elif code != NOT_OFFERED:
                row = index(row_of(code))
                for k in range(index(model.indptr[row]), index(model.indptr[row + index(1)])):
                    target = index(model.indices[k])
                    if target == s:
                        stay = model.discount * model.data[k]
                    else:
                        successor[place, used], weight[place, used] = rank[target], model.discount * model.data[k]
                        used += index(1)
            for k in range(used, width):
                successor[place, k], weight[place, k] = i, 0.0
            reward[i, a] = model.rewards[s, a] if code != NOT_OFFERED else -np.inf
            if stay > 0.0:
                reward[i, a] /= 1.0 - stay
                for k in range(used):
                    weight[place, k] /= 1.0 - stay


@compiled
def _march(
    table: MoveTable, v: FloatArray, policy: IntArray, limits: MarchLimits, from_below: bool
) -> tuple[int, int, int, int]:
    """Improve window by window if the march begins, then evaluate and improve in rounds; see the module.

    Returns (rounds, states swept, states backed up, outcome).
    """
    num_states, num_actions = table.reward.shape
    width = table.successor.shape[1]
    padded = PaddedRows(
        np.empty(num_states),
        np.empty((num_states, width), table.successor.dtype),
        np.empty((num_states, width)),
        table.places,
    )
    in_place = np.full_like(policy, NO_ACTION)
    steps = np.empty((WINDOW, min(2 * limits.window, num_states)))
    rounds, swept, backed_up = 0, 0, 0
    if from_below:
        backed_up, lost = _improve_windows(table, v, policy, limits)
        if lost:
            return rounds, swept, backed_up, LOST
    before = last = np.inf
    while rounds < MAX_ROUNDS:
        if rounds > 0 and swept + backed_up * num_actions >= MAX_WORK:
            return rounds, swept, backed_up, GOES_ON
        rounds += 1
        _pad_rows(table, policy, in_place, False, padded)
        swept += _evaluate_windows(padded, v, limits, steps)
        change = _improve_all(table, v, policy)
        backed_up += num_states
        if change <= limits.target or change > LEAST_GAIN * before:
            return rounds, swept, backed_up, ENDED
        before, last = last, change
    return rounds, swept, backed_up, ENDED


@compiled
def _improve_windows(table: MoveTable, v: FloatArray, policy: IntArray, limits: MarchLimits) -> tuple[int, bool]:
    """Back up windows in place until they settle, one after the other: (states backed up, whether too few settle)."""
    num_states = len(v)
    work, first_state, windows, unsettled = 0, 0, 0, 0
    while True:
        end = min(num_states, first_state + limits.window)
        at_first, settled = 0.0, False
        for count in range(MAX_BACKUPS):
            change = _improve_range(table, v, policy, first_state, end)
            work += end - first_state
            at_first = change if count == 0 else at_first
            settled = change <= max(SETTLED * at_first, limits.least_change)
            if settled:
                break
        windows += 1
        unsettled += not settled
        if work >= TRIAL * num_states and MOST_UNSETTLED * unsettled > windows:
            return work, True
        if end == num_states:
            return work, False
        first_state += limits.window // 2


@compiled
def _improve_range(table: MoveTable, v: FloatArray, policy: IntArray, first: int, end: int) -> float:
    """Set v <- T v in place in the states first..end-1, and the policy with it; returns the largest change."""
    largest = 0.0
    for s in range(index(first), index(end)):
        new, action, _ = _best_move(table, v, policy[s], s)
        change = abs(new - v[s])
        largest = change if change > largest else largest
        v[s] = new
        policy[s] = action
    return largest


@compiled
def _improve_all(table: MoveTable, v: FloatArray, policy: IntArray) -> float:
    """Back up all states once in place; returns the largest change."""
    largest: float = _improve_range(table, v, policy, 0, len(v))
    return largest


@compiled
def _evaluate_windows(padded: PaddedRows, v: FloatArray, limits: MarchLimits, steps: FloatArray) -> int:
    """Sweep T_π in windows until they settle, one after the other; returns how many states were updated."""
    num_states, window = len(v), steps.shape[1]
    work, first_state, credit = 0, 0, CREDIT * num_states
    while True:
        end = min(num_states, first_state + window)
        at_first, count, kept = 0.0, 0, 0
        steps[:, end - first_state :] = 0.0
        while count < MAX_SWEEPS or credit > 0:
            change = _sweep_range(padded, v, first_state, end, steps[index(kept)])
            work += end - first_state
            at_first = change if count == 0 else at_first
            count += 1
            if change <= max(SETTLED * at_first, limits.least_change):
                break
            if count > PLAIN_SWEEPS:
                kept += 1
            if count > MAX_SWEEPS:
                credit -= end - first_state
            if kept == len(steps):
                kept = 0
                extrapolate(v[first_state:end], steps)
        if end == num_states:
            return work
        first_state += limits.window


@compiled
def _sweep_range(padded: PaddedRows, v: FloatArray, first: int, end: int, step: FloatArray) -> float:
    """Set v <- T_π v in place in the states first..end-1; writes changes to step, and returns the largest."""
    largest = 0.0
    start = index(first)
    for s in range(start, index(end)):
        new = _row_value(padded.reward[s], padded, s, v)
        change = new - v[s]
        step[s - start] = change
        change = abs(change)
        largest = change if change > largest else largest
        v[s] = new
    return largest
