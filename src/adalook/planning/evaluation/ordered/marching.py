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
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, Predecessors, is_deterministic, row_of
from adalook.planning.evaluation.extrapolation import WINDOW, extrapolate
from adalook.planning.evaluation.in_place import LOCAL_ROW, MAX_PLACES, SAMPLE, _one_way_or_none, best_rewards
from adalook.planning.evaluation.linear.band import cost_per_state, eliminate, substitute
from adalook.planning.evaluation.padded import MoveTable, PaddedRows, best_move, room_for_rows, row_value
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
LEVELS, LEAST_WINDOW, LARGEST_WINDOW = 12, 256, 6_000
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
ROUNDING = 2.0**-51
"""Changes of this share of the largest value are rounding."""
MAX_ROUNDS = 32
MAX_WORK = 50_000_000
"""States swept and pairs backed up in one go, about a tenth of a second: Ctrl-C and the clock are looked at between."""
LAST_RESORT = 8.0
"""An elimination may cost so many times what sweeps of a part have cost, where rounds would end without an answer."""
PLACE_COST = 1.0
"""Nanoseconds of a sweep per place of a row, about: an elimination is measured by it."""
MAX_BAND = 5_000_000
"""Stored numbers of a part's band: more are not worth it."""
PREPARATION = 6
"""Backups that the order and the table cost as much as, about."""
LEAST_GAIN, PATIENCE = 0.5, 4
"""Rounds end when the largest change has not fallen to this share of the least so far in so many of them."""


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


@kept_with_model
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
    if not np.isfinite(2.0 * mdp.largest_reward / (1.0 - mdp.discount)):
        return None
    best = np.empty(mdp.num_states)
    best_rewards(mdp.arrays, best)
    if MOST_ROOTS * int(np.count_nonzero(best == best.max())) > mdp.num_states:
        return None
    states = np.empty(mdp.num_states, mdp.codes.dtype)
    levels, widest = _order_by_distance(best, mdp.predecessors, states)
    if WIDEST * widest > mdp.num_states >= LEAST_STATES:
        return None
    window = int(min(LARGEST_WINDOW, max(LEAST_WINDOW, LEVELS * mdp.num_states // levels)))
    return Order(states, window, float(best.min()) / (1.0 - mdp.discount))


def rank_of(states: IntArray) -> IntArray:
    """Return the place of each state in an order of the states (S,)."""
    rank = np.empty_like(states)
    rank[states] = np.arange(len(states), dtype=states.dtype)
    return rank


def limits_of(mdp: MDP, tolerance: float, window: int, patience: int = PATIENCE) -> MarchLimits:
    """Return the changes that are small enough for a tolerance on the policy's loss."""
    span = tolerance * (1.0 - mdp.discount * mdp.row_sums[1])
    return MarchLimits(0.1 * span, 0.5 * span, window, patience)


class March:
    """A march through a model, which goes on pass by pass."""

    def __init__(self, mdp: MDP, order: Order, tolerance: float) -> None:
        self._order = order
        self._table = MoveTable.empty(mdp)
        write_table(mdp.arrays, rank_of(order.states), self._table)
        self._limits = limits_of(mdp, tolerance, order.window)

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
    patience: int
    """Rounds that may gain too little."""


LOST, GOES_ON, STALLED, SOLVED = 0, 1, 2, 3
"""Outcomes of a march: windows do not settle; there is more to gain; rounds gain too little; nothing changes."""


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
def write_table(model: ModelArrays, rank: IntArray, table: MoveTable) -> None:
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


class MarchScratch(NamedTuple):
    """Arrays that a march works with beside values and policy."""

    padded: PaddedRows
    steps: FloatArray
    """(W, at least two windows) changes of the last sweeps of a window."""
    saved: FloatArray
    """(at least two windows) values of a window before they were extrapolated."""


@compiled
def scratch_of(table: MoveTable, largest: int) -> MarchScratch:
    """Return scratch arrays for windows of up to `largest` states."""
    return MarchScratch(room_for_rows(table), np.empty((WINDOW, largest)), np.empty(largest))


@compiled
def _march(
    table: MoveTable, v: FloatArray, policy: IntArray, limits: MarchLimits, from_below: bool
) -> tuple[int, int, int, int]:
    """Improve window by window if the march begins, then evaluate and improve in rounds; see the module.

    Returns (rounds, states swept, states backed up, outcome).
    """
    num_states, num_actions = table.reward.shape
    part = Part(0, num_states, limits.window, False)
    scratch = scratch_of(table, min(2 * limits.window, num_states))
    backed_up = 0
    if from_below:
        backed_up, lost = improve_windows(table, v, policy, limits.least_change, part, True)
        if lost:
            return 0, 0, backed_up, LOST
    rounds, swept, more, outcome = rounds_of(
        table, v, policy, limits, part, scratch, MAX_WORK - backed_up * num_actions
    )
    return rounds, swept, backed_up + more, outcome


class Part(NamedTuple):
    """A range of states in the order of a march."""

    first: int
    end: int
    window: int
    """States of a window of it."""
    closed: bool
    """Whether it is a component that no move leaves: its values may all be off by one amount, which is solved for."""


@compiled
def rounds_of(
    table: MoveTable,
    v: FloatArray,
    policy: IntArray,
    limits: MarchLimits,
    part: Part,
    scratch: MarchScratch,
    max_work: int,
) -> tuple[int, int, int, int]:
    """Evaluate and improve the policy of a part in rounds: (rounds, states swept, states backed up, outcome).

    Sweeps that do not settle, or after which rounds gain too little, give way to an elimination once they have cost as
    much, or before rounds end without an answer.
    """
    num_actions, size = table.reward.shape[1], part.end - part.first
    rounds, swept, backed_up = 0, 0, 0
    least, since = np.inf, 0
    eliminating = False
    while rounds < MAX_ROUNDS:
        if rounds > 0 and swept + backed_up * num_actions >= max_work:
            return rounds, swept, backed_up, GOES_ON
        rounds += 1
        _copy_rows(table, policy, scratch, part)
        rounding = ROUNDING * max(v[part.first : part.end].max(), -v[part.first : part.end].min())
        settled = True
        if eliminating:
            swept += size * eliminate_part(scratch.padded, v, part)
        else:
            work, settled = _evaluate_windows(scratch.padded, v, max(limits.least_change, rounding), part, scratch)
            swept += work
        low, high = improve_range(table, v, policy, part.first, part.end)
        change = max(high, -low)
        backed_up += size
        if eliminating:  # what is better from here on may begin at either end
            improve_back(table, v, policy, part.first, part.end)
            backed_up += size
        elif not settled or change > LEAST_GAIN * least:
            worth = LAST_RESORT if rounds - since >= limits.patience else 1.0
            eliminating = worth * swept >= size * elimination_in_sweeps(scratch.padded, part)
            least = np.inf if eliminating else least
        if change <= LEAST_GAIN * least:
            least, since = change, rounds
        if change <= max(limits.target, 2.0 * rounding):
            return rounds, swept, backed_up, SOLVED
        if rounds - since >= limits.patience:
            return rounds, swept, backed_up, STALLED
    return rounds, swept, backed_up, STALLED


@compiled
def _copy_rows(table: MoveTable, policy: IntArray, scratch: MarchScratch, part: Part) -> None:
    """Copy the rows of a policy in a part, but for those that are there already."""
    padded = scratch.padded
    num_actions = index(table.reward.shape[1])
    for s in range(index(part.first), index(part.end)):
        if policy[s] != padded.action[s]:
            padded.action[s] = policy[s]
            row = s * num_actions + index(policy[s])
            padded.reward[s] = table.reward[s, index(policy[s])]
            for k in range(index(padded.successor.shape[1])):
                padded.successor[s, k] = table.successor[row, k]
                padded.weight[s, k] = table.weight[row, k]


@compiled
def improve_windows(
    table: MoveTable, v: FloatArray, policy: IntArray, least_change: float, part: Part, may_be_lost: bool
) -> tuple[int, bool]:
    """Back up windows in place until they settle, one after the other: (states backed up, whether too few settle)."""
    size = part.end - part.first
    work, first, windows, unsettled = 0, part.first, 0, 0
    while True:
        end = min(part.end, first + part.window)
        at_first, settled = 0.0, False
        for count in range(MAX_BACKUPS):
            low, high = improve_range(table, v, policy, first, end)
            change = max(high, -low)
            work += end - first
            at_first = change if count == 0 else at_first
            settled = change <= max(SETTLED * at_first, least_change)
            if settled:
                break
        windows += 1
        unsettled += not settled
        if may_be_lost and work >= TRIAL * size and MOST_UNSETTLED * unsettled > windows:
            return work, True
        if end == part.end:
            return work, False
        first += part.window // 2


@compiled
def improve_range(table: MoveTable, v: FloatArray, policy: IntArray, first: int, end: int) -> tuple[float, float]:
    """Set v <- T v in place in the states first..end-1, and the policy with it: (least, largest) change."""
    low, high = np.inf, -np.inf
    for s in range(index(first), index(end)):
        new, action, _ = best_move(table, v, policy[s], s)
        change = new - v[s]
        low = change if change < low else low
        high = change if change > high else high
        v[s] = new
        policy[s] = action
    return low, high


@compiled
def improve_back(table: MoveTable, v: FloatArray, policy: IntArray, first: int, end: int) -> None:
    """Set v <- T v in place from state end-1 back to state `first`, and the policy with it."""
    last = index(end - 1)
    for i in range(index(end - first)):
        s = last - i
        v[s], policy[s], _ = best_move(table, v, policy[s], s)


@compiled
def _evaluate_windows(
    padded: PaddedRows, v: FloatArray, least_change: float, part: Part, scratch: MarchScratch
) -> tuple[int, bool]:
    """Sweep T_π in windows until they settle, one after the other: (states updated, whether all have settled)."""
    work, first, credit = 0, part.first, CREDIT * (part.end - part.first)
    all_settled = True
    while True:
        end = min(part.end, first + 2 * part.window)
        most = MAX_SWEEPS + credit // (end - first)
        alone = end - first == part.end - part.first
        count, settled = _settle(
            padded, v, Part(first, end, end - first, part.closed and alone), least_change, most, scratch
        )
        all_settled = all_settled and settled
        work += count * (end - first)
        credit -= max(0, count - MAX_SWEEPS) * (end - first)
        if end == part.end:
            return work, all_settled
        first += part.window


@compiled
def _settle(
    padded: PaddedRows, v: FloatArray, window: Part, least_change: float, most: int, scratch: MarchScratch
) -> tuple[int, bool]:
    """Sweep one window until it settles, or so many times: (how often, whether it has settled).

    What is slow is extrapolated, and in a closed part what all values have in common is solved for. Where a sweep
    changes more after such a guess than before, it is taken back.
    """
    steps, saved = scratch.steps, scratch.saved
    size = window.end - window.first
    at_first, before, count, kept = 0.0, 0.0, 0, 0
    guessed = False
    while count < most:
        change = _sweep_range(padded, v, window.first, window.end, steps[index(kept)])
        count += 1
        if guessed and change > before:
            v[window.first : window.end] = saved[:size]
            guessed = False
            continue
        guessed, before = False, change
        at_first = change if count == 1 else at_first
        if change <= max(SETTLED * at_first, least_change):
            return count, True
        kept += count > PLAIN_SWEEPS
        common = window.closed and (count == PLAIN_SWEEPS // 2 or count == PLAIN_SWEEPS)
        if common or kept == len(steps):
            saved[:size] = v[window.first : window.end]
            guessed = True
            if common:
                _shift(padded, v, window)
            else:
                steps[:, size:] = 0.0
                extrapolate(v[window.first : window.end], steps)
        kept = 0 if kept == len(steps) else kept
    return count, False


@compiled
def _bandwidths(padded: PaddedRows, part: Part) -> tuple[int, int]:
    """Return how far moves within a part lead to earlier and to later states of it."""
    lower, upper = 0, 0
    for s in range(index(part.first), index(part.end)):
        for k in range(index(padded.successor.shape[1])):
            successor = padded.successor[s, k]
            if padded.weight[s, k] > 0.0 and part.first <= successor < part.end:
                lower, upper = max(lower, s - successor), max(upper, successor - s)
    return lower, upper


@compiled
def elimination_in_sweeps(padded: PaddedRows, part: Part) -> float:
    """Return how many sweeps of a part cost as much as an elimination within its band; infinite if that is too wide."""
    lower, upper = _bandwidths(padded, part)
    if (part.end - part.first) * (lower + upper + 1) > MAX_BAND:
        return np.inf
    sweeps: float = cost_per_state(lower, upper, 1.0) / (PLACE_COST * padded.successor.shape[1])
    return sweeps


@compiled
def eliminate_part(padded: PaddedRows, v: FloatArray, part: Part) -> int:
    """Set the values of a part to those of the policy, given all others; returns the sweeps that cost as much.

    Rows are dominated by their diagonal, so that no pivots are looked for (see `linear.band`).
    """
    lower, upper = _bandwidths(padded, part)
    size = part.end - part.first
    band, right = np.zeros((size, lower + upper + 1)), np.empty(size)
    for i in range(index(size)):
        s = i + index(part.first)
        right[i], band[i, index(lower)] = padded.reward[s], 1.0
        for k in range(index(padded.successor.shape[1])):
            successor, weight = index(padded.successor[s, k]), padded.weight[s, k]
            if weight > 0.0 and part.first <= successor < part.end:
                band[i, successor - s + index(lower)] -= weight
            else:
                right[i] += weight * v[successor]
    eliminate(band, lower, upper)
    substitute(band, lower, upper, right)
    v[part.first : part.end] = right
    return int(cost_per_state(lower, upper, 1.0) / (PLACE_COST * padded.successor.shape[1]))


@compiled
def _shift(padded: PaddedRows, v: FloatArray, part: Part) -> None:
    """Move all values of a closed part by one amount, so that T_π v − v is as far above zero as below.

    Its rows sum to γ before they are solved for the state itself, and to some w after: (T_π v − v)/(1 − w) is then what
    a state calls for, whatever its w.
    """
    low, high = np.inf, -np.inf
    for s in range(index(part.first), index(part.end)):
        left = 1.0
        for k in range(index(padded.weight.shape[1])):
            left -= padded.weight[s, k]
        wanted = (row_value(padded.reward[s], padded, s, v) - v[s]) / left
        low, high = min(low, wanted), max(high, wanted)
    shift = 0.5 * (low + high)
    if np.isfinite(shift):
        for s in range(index(part.first), index(part.end)):
            v[s] += shift


@compiled
def _sweep_range(padded: PaddedRows, v: FloatArray, first: int, end: int, step: FloatArray) -> float:
    """Set v <- T_π v in place in the states first..end-1; writes changes to step, and returns the largest."""
    largest = 0.0
    start = index(first)
    for s in range(start, index(end)):
        new = row_value(padded.reward[s], padded, s, v)
        change = new - v[s]
        step[s - start] = change
        change = abs(change)
        largest = change if change > largest else largest
        v[s] = new
    return largest
