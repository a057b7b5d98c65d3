"""Strongly connected components: what is left for good is solved before what leads there.

A component is a set of states that can all reach each other. Between components moves lead one way, so that they are
solved one after the other, each given the values of those that it leads to (Gabow's algorithm finds them in that
order). Levels of a game, stages of a project, rooms with one-way doors are a chain of small problems then, each of
which sees news from the far end once, and not in as many rounds as there are components.

Each is solved as a march is: rounds of sweeps, extrapolated, and backups in place, until nothing changes. Within a
local model's component states are ordered by their distance from its exits and its best rewards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._jit import compiled, inlined
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, Predecessors, is_deterministic, row_of
from adalook.planning.evaluation import in_place
from adalook.planning.evaluation.ordered import marching
from adalook.planning.evaluation.ordered.marching import (
    LARGEST_WINDOW,
    LEAST_WINDOW,
    LEVELS,
    SOLVED,
    Marched,
    MarchLimits,
    Part,
    improve_range,
    improve_windows,
    rounds_of,
    scratch_of,
)
from adalook.planning.evaluation.padded import MoveTable
from adalook.planning.lookahead.kernels import index

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "components"

LEAST_STATES = 1_000
"""Smaller models are solved before components are found."""
LARGEST_SHARE = 0.25
"""Where one component holds more than this share of the states, the others are little help, and the search ends early:
after the work of 0.05 to 0.5 backups where one holds nearly all; to find all of them takes 1 to 2 within the caches."""
BACKUPS, FAR_BACKUPS, NEAR_ENTRIES = 10, 25, 2**18
"""Backups that finding components costs as much as, about, and that of models too large for the caches, which are gone
through in no order: 2 to 10 ns, and 10 to 32 ns, a move and a stored probability."""
FEW_UNSOLVED, MOST_UNSOLVED = 2, 4
"""The solver gives up when so many components are not solved, and more than a share 1/MOST_UNSOLVED of those tried."""
PATIENCE = 8
"""Rounds of a component that may gain too little: all that leads there depends on it."""
GROUP = 64
"""Components are gathered, in their order, until they hold so many states."""


class Components(NamedTuple):
    """The states of a model, component by component, those that are led to first."""

    states: IntArray  # (S,)
    ends: IntArray  # (groups,) where each group of components ends in them
    windows: IntArray  # (groups,) states of a window of each
    closed: BoolArray  # (groups,) whether no move leads out of it
    largest: int
    """States of the largest window that is swept, twice as large as one of backups."""
    lowest: float
    """What no state's optimal value is below."""


def cost_in_backups(mdp: MDP) -> int:
    """Return how many backups of all states take as long as finding the components of a model."""
    return BACKUPS if mdp.num_pairs + len(mdp.rows.indices) <= NEAR_ENTRIES else FAR_BACKUPS


def find(mdp: MDP, largest_share: float = LARGEST_SHARE) -> Components | None:
    """Return the components of a model, or None where one holds most states, or rows are too long or shared."""
    n = mdp.num_states
    if mdp.rows.num_shared or not in_place.applies(mdp):
        return None
    if not np.isfinite(2.0 * mdp.largest_reward / (1.0 - mdp.discount)):
        return None
    states, label = np.empty(n, mdp.codes.dtype), np.empty(n, mdp.codes.dtype)
    sizes = np.zeros(n, mdp.codes.dtype)
    count = _components(mdp.arrays, states, label, sizes, largest_share * n)
    if count == 0:
        return None
    ends = np.cumsum(sizes[:count])
    windows = np.minimum(sizes[:count], LARGEST_WINDOW)
    best, exits = np.empty(n), np.empty(n, np.bool_)
    in_place.best_rewards(mdp.arrays, best)
    _mark_exits(mdp.arrays, label, exits)
    closed = np.ones(count, np.bool_)
    closed[label[exits]] = False
    if mdp.growth <= marching.MOST_GROWTH:
        _order_within(best, exits, mdp.predecessors, label, states, ends, windows)
    lowest = float(best.min()) / (1.0 - mdp.discount)
    return _grouped(Components(states, ends, windows, closed, 0, lowest))


def _grouped(found: Components) -> Components:
    """Gather small components that follow each other."""
    kept, first = [], 0
    for k, end in enumerate(found.ends.tolist()):
        if end - first >= GROUP or k == len(found.ends) - 1:
            kept.append(k)
            first = end
    ends = found.ends[kept]
    sizes = np.diff(ends, prepend=0)
    alone = np.diff(kept, prepend=-1) == 1
    windows = np.minimum(np.maximum(found.windows[kept], GROUP), sizes)
    largest = int(np.minimum(sizes, 2 * windows).max())
    return found._replace(ends=ends, windows=windows, closed=found.closed[kept] & alone, largest=largest)


class ComponentSolver:
    """Solves a model component by component, as often as asked."""

    def __init__(self, mdp: MDP, found: Components, tolerance: float) -> None:
        self._found = found
        self._table = MoveTable.empty(mdp)
        marching.write_table(mdp.arrays, marching.rank_of(found.states), self._table)
        self._limits = marching.limits_of(mdp, tolerance, 0, PATIENCE)
        self._local = mdp.growth <= marching.MOST_GROWTH

    def run(self, policy: IntArray, values: FloatArray) -> Marched | None:
        """Solve from values (S,), or from below where a model is local; None where components do not settle."""
        found, states = self._found, self._found.states
        v = np.full(len(states), found.lowest) if self._local else values[states]
        own = policy[states]
        rounds, swept, backed_up, lost = _solve_in_order(self._table, v, own, self._limits, found, self._local)
        if lost:
            return None
        values, policy = np.empty_like(v), np.empty_like(policy)
        values[states], policy[states] = v, own
        return Marched(values, policy, rounds, swept, backed_up, goes_on=False)


@compiled
def _solve_in_order(
    table: MoveTable, v: FloatArray, policy: IntArray, limits: MarchLimits, found: Components, from_below: bool
) -> tuple[int, int, int, bool]:
    """Solve one group of components after the other: (rounds, states swept, states backed up, whether it was given up).

    It is where, after the first few, one in `MOST_UNSOLVED` gets nowhere: what leads there is not solved, either.
    """
    scratch = scratch_of(table, found.largest)
    rounds, swept, backed_up, first, unsolved = 0, 0, 0, 0, 0
    for k in range(len(found.ends)):
        part = Part(first, int(found.ends[k]), int(found.windows[k]), found.closed[k])
        if from_below:
            work, _ = improve_windows(table, v, policy, limits.least_change, part, False)
        else:
            improve_range(table, v, policy, part.first, part.end)
            work = part.end - part.first
        backed_up += work
        made, updated, work, outcome = rounds_of(table, v, policy, limits, part, scratch, marching.MAX_WORK)
        rounds, swept, backed_up = max(rounds, made), swept + updated, backed_up + work
        unsolved += outcome != SOLVED
        if unsolved >= FEW_UNSOLVED and MOST_UNSOLVED * unsolved > k:
            return rounds, swept, backed_up, True
        first = part.end
    return rounds, swept, backed_up, False


class SearchFrames(NamedTuple):
    """The path of a depth-first search: each state on it, and the move and the successor to go on with."""

    state: IntArray  # (S,)
    action: IntArray  # (S,)
    entry: IntArray  # (S,)


@compiled
def _components(model: ModelArrays, states: IntArray, label: IntArray, sizes: IntArray, most: float) -> int:
    """Write the states component by component, their labels, and the sizes; returns how many there are (Gabow 2000).

    States found wait until their component is complete, when the search leaves its first state; all that it leads to
    were before. A move back to one that waits makes one part of all found since, and ends the search, at 0, if these
    are more than `most`: where one component holds most states, few moves have been looked at by then.
    """
    num_states = model.codes.shape[0]
    number = np.zeros(num_states, np.int32)  # place among those that wait, from 1; label is −1 until it is known
    waiting = np.empty(num_states, model.codes.dtype)
    part = np.empty(num_states, np.int32)  # number of the first state of each part of the path
    path = SearchFrames(np.empty(num_states, np.int32), np.empty(num_states, np.int32), np.empty(num_states, np.int64))
    label[:] = -1
    count, num_waiting, written = 0, 0, 0
    for root in range(num_states):
        if number[root] > 0:
            continue
        depth, parts, new = 0, 0, root
        while True:
            if new >= 0:
                path.state[depth], path.action[depth], path.entry[depth] = new, 0, 0
                depth += 1
                waiting[num_waiting] = new
                num_waiting += 1
                number[new] = num_waiting
                part[parts] = num_waiting
                parts += 1
            new, parts = _next_unseen(model, path, depth - 1, number, label, part, parts)
            if num_waiting - part[parts - 1] + 1 > most:
                return 0
            if new >= 0:
                continue
            depth -= 1
            if part[parts - 1] == number[path.state[depth]]:
                parts -= 1
                sizes[count] = num_waiting - number[path.state[depth]] + 1
                for _ in range(sizes[count]):
                    num_waiting -= 1
                    label[waiting[num_waiting]] = count
                    states[written] = waiting[num_waiting]
                    written += 1
                count += 1
            if depth == 0:
                break
    return count


@inlined
def _next_unseen(
    model: ModelArrays,
    path: SearchFrames,
    frame: int,
    number: IntArray,
    label: IntArray,
    part: IntArray,
    parts: int,
) -> tuple[int, int]:
    """Return the next successor of a state on the path that was not seen yet, or −1, and how many parts are left."""
    s, a, k = index(path.state[frame]), path.action[frame], path.entry[frame]
    while a < model.codes.shape[1]:
        code = model.codes[s, index(a)]
        start, stop = 0, 1
        if code == NOT_OFFERED:
            stop = 0
        elif not is_deterministic(code):
            row = index(row_of(code))
            start, stop = model.indptr[row], model.indptr[row + index(1)]
        while start + k < stop:
            target = code if is_deterministic(code) else model.indices[index(start + k)]
            k += 1
            if number[index(target)] == 0:
                path.action[frame], path.entry[frame] = a, k
                return int(target), parts
            if label[index(target)] < 0:
                while part[parts - 1] > number[index(target)]:
                    parts -= 1
        a, k = a + 1, 0
    path.action[frame] = a
    return -1, parts


@compiled
def _mark_exits(model: ModelArrays, label: IntArray, exits: BoolArray) -> None:
    """Mark the states of which some move leaves the component."""
    for s in range(index(model.codes.shape[0])):
        exits[s] = False
        for a in range(index(model.codes.shape[1])):
            code = model.codes[s, a]
            if is_deterministic(code):
                exits[s] |= label[index(code)] != label[s]
            elif code != NOT_OFFERED:
                row = index(row_of(code))
                for k in range(index(model.indptr[row]), index(model.indptr[row + index(1)])):
                    exits[s] |= label[index(model.indices[k])] != label[s]


@compiled
def _order_within(
    best: FloatArray,
    exits: BoolArray,
    predecessors: Predecessors,
    label: IntArray,
    states: IntArray,
    ends: IntArray,
    windows: IntArray,
) -> None:
    """Order the states of each component by their distance from its exits and best rewards, and size its windows."""
    seen = np.zeros(len(states), np.bool_)
    found = np.empty_like(states)
    first = 0
    for c in range(len(ends)):
        end = ends[c]
        if end - first > LEAST_WINDOW:
            top, size = -np.inf, 0
            for i in range(first, end):
                top = max(top, best[states[i]])
            for i in range(first, end):
                s = states[i]
                if exits[s] or best[s] == top:
                    seen[s] = True
                    found[size] = s
                    size += 1
            head, levels = 0, 0
            while head < size:
                stop = size
                levels += 1
                while head < stop:
                    s = found[head]
                    head += 1
                    for k in range(predecessors.start[s], predecessors.start[s + 1]):
                        source = predecessors.sources[k]
                        if label[source] == c and not seen[source]:
                            seen[source] = True
                            found[size] = source
                            size += 1
            states[first:end] = found[:size]
            windows[c] = min(windows[c], max(LEAST_WINDOW, LEVELS * size // levels))
        first = end
