"""Rows of one length: the transitions of all moves, or of one policy, in places that are read without branches.

A row is padded with successors of no weight, and its length is part of a type, so that kernels are compiled with the
loop over a row unrolled. That takes half the time of rows of their own lengths, and pays wherever rows are short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled, inlined
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import LONG_ROW, NOT_OFFERED, ModelArrays, is_deterministic, is_stochastic, row_of
from adalook.planning.lookahead.kernels import index

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

WIDTHS = (3, 4, 5)
"""Row lengths for which kernels are compiled apart, with the loop over a row unrolled: it takes half the time."""
MOST_PADDING = 2.0
"""Rows are padded for sweeps at once if the longest has at most so many times the mean number of successors."""
KEPT_PLACES = 2**16
"""Tables of so many successors, a megabyte, are kept: writing one takes as long as a backup, and so does a round."""
NO_ACTION = -1


class MoveTable(NamedTuple):
    """The rows of all moves, all of one length: Q(s, a) = reward(s, a) + Σ weight(s·A + a, k) v(successor(s·A + a, k)).

    Reading one has neither branches nor lookups.
    """

    reward: FloatArray  # (S, A) takes in what is expected of shared rows; −inf where an action is not offered
    successor: IntArray  # (S·A, width)
    weight: FloatArray  # (S·A, width) γ times probabilities, zero in the padding
    places: tuple[int, ...]
    """As many as a row has, or none: the length of a tuple is part of its type, for which kernels are compiled."""

    @classmethod
    def empty(cls, mdp: MDP) -> MoveTable:
        """Return a table with room for the rows of a model, not written yet."""
        return cls(np.empty(mdp.codes.shape), *_places(mdp, mdp.codes.size))


def move_table(mdp: MDP) -> MoveTable:
    """Return the table of a model: a small one is kept with it, unless rewards are to take in shared rows."""
    small = mdp.codes.size * (mdp.longest_row + 1) <= KEPT_PLACES
    return _kept_table(mdp) if small and not mdp.rows.num_shared else _written_table(mdp)


def _written_table(mdp: MDP) -> MoveTable:
    table = MoveTable.empty(mdp)
    write_table(mdp.arrays, table)
    return table


_kept_table = kept_with_model(_written_table)


class PaddedRows(NamedTuple):
    """The rows of one policy, as in `MoveTable`, side by side in memory."""

    reward: FloatArray  # (S,)
    successor: IntArray  # (S, width)
    weight: FloatArray  # (S, width)
    places: tuple[int, ...]
    action: IntArray
    """(S,) the actions whose rows these are; NO_ACTION where none is written yet."""

    @classmethod
    def empty(cls, mdp: MDP) -> PaddedRows:
        """Return room for the rows of a policy, not written yet."""
        n = mdp.num_states
        return cls(np.empty(n), *_places(mdp, n), np.full(n, NO_ACTION, np.int32))


NO_MOVES = MoveTable(np.empty((0, 0)), np.empty((0, 0), np.int32), np.empty((0, 0)), ())
NO_ROWS = PaddedRows(np.empty(0), np.empty((0, 0), np.int32), np.empty((0, 0)), (), np.empty(0, np.int32))
"""Stand for rows that are not padded."""


@compiled
def room_for_rows(table: MoveTable) -> PaddedRows:
    """Return room for the rows of a policy, of the same length as those of a table."""
    num_states, width = table.reward.shape[0], table.successor.shape[1]
    return PaddedRows(
        np.empty(num_states),
        np.empty((num_states, width), table.successor.dtype),
        np.empty((num_states, width)),
        table.places,
        np.full(num_states, NO_ACTION, np.int32),
    )


def _places(mdp: MDP, num_rows: int) -> tuple[IntArray, FloatArray, tuple[int, ...]]:
    """Return room for the successors and weights of so many rows, and places by which kernels know their length."""
    width = next((width for width in WIDTHS if width >= mdp.longest_row), mdp.longest_row)
    places = (0,) * width if width in WIDTHS else ()
    return np.empty((num_rows, width), mdp.codes.dtype), np.empty((num_rows, width)), places


@kept_with_model
def suits(mdp: MDP) -> bool:
    """Return whether rows are short, about as long as each other, and none of them shared, so that padding pays."""
    longest, rows, pairs = mdp.longest_row, mdp.rows, mdp.codes.size
    certain = pairs - rows.num_rows
    mean = (certain + len(rows.indices)) / pairs
    return rows.num_shared == 0 and longest <= min(LONG_ROW, max(WIDTHS[0], MOST_PADDING * mean))


@compiled
def write_table(model: ModelArrays, table: MoveTable) -> None:
    """Write the rows of all moves; of shared ones, the reward alone."""
    num_states, num_actions = model.codes.shape
    reward, successor, weight, places = table
    width = len(places) if len(places) > 0 else successor.shape[1]  # where it is known, the loops are unrolled
    for s in range(index(num_states)):
        for a in range(index(num_actions)):
            code, place = model.codes[s, a], s * index(num_actions) + a
            reward[s, a] = model.rewards[s, a] if code != NOT_OFFERED else -np.inf
            if is_stochastic(code) and row_of(code) >= model.num_shared:
                first = index(model.indptr[index(row_of(code))])
                length = index(model.indptr[index(row_of(code)) + index(1)]) - first
                for k in range(width):  # to the end, whatever the length, which no processor can foretell
                    used = index(k) < length
                    entry = first + (index(k) if used else index(0))
                    successor[place, index(k)] = model.indices[entry] if used else s
                    weight[place, index(k)] = model.discount * model.data[entry] if used else 0.0
            else:
                certain = is_deterministic(code)
                successor[place, index(0)] = code if certain else s
                weight[place, index(0)] = model.discount if certain else 0.0
                for k in range(1, width):
                    successor[place, index(k)], weight[place, index(k)] = s, 0.0


@compiled
def copy_rows(model: ModelArrays, policy: IntArray, padded: PaddedRows) -> None:
    """Copy the rows of a policy that are not there yet, of a model without shared rows."""
    width = index(padded.successor.shape[1])
    for s in range(index(len(policy))):
        if policy[s] == padded.action[s]:
            continue
        padded.action[s] = policy[s]
        a = index(policy[s])
        code = model.codes[s, a]
        padded.reward[s] = model.rewards[s, a]
        length = index(1)
        if is_deterministic(code):
            padded.successor[s, index(0)], padded.weight[s, index(0)] = code, model.discount
        else:
            first = index(model.indptr[index(row_of(code))])
            length = index(model.indptr[index(row_of(code)) + index(1)]) - first
            for k in range(length):
                padded.successor[s, k] = model.indices[first + k]
                padded.weight[s, k] = model.discount * model.data[first + k]
        for k in range(length, width):
            padded.successor[s, k], padded.weight[s, k] = s, 0.0


@inlined
def row_value(reward: float, rows: MoveTable | PaddedRows, row: int, v: FloatArray) -> float:
    """Return reward + Σ weight v over one row of a `MoveTable` or of `PaddedRows`; short ones are unrolled.

    Two sums side by side: in place, one product waits for the state before, and the others should not wait for it.
    """
    total: float = reward + product(rows, row, 0, v)
    if len(rows.places) > 0:
        rest: float = product(rows, row, 1, v) + product(rows, row, 2, v)
        if len(rows.places) > 3:
            total += product(rows, row, 3, v)
        if len(rows.places) > 4:
            rest += product(rows, row, 4, v)
    else:
        rest = 0.0
        for k in range(1, rows.successor.shape[1]):
            rest += product(rows, row, k, v)
    return total + rest


@inlined
def product(rows: MoveTable | PaddedRows, row: int, k: int, v: FloatArray) -> Any:
    """Return weight times value at place k of a row."""
    return rows.weight[row, index(k)] * v[index(rows.successor[row, index(k)])]


@inlined
def best_move(table: MoveTable, v: FloatArray, chosen: int, s: int) -> tuple[float, int, float]:
    """Return (value of the best move of a state, its action, value of the chosen action), which wins ties."""
    num_actions = table.reward.shape[1]
    row = s * index(num_actions)
    top, own = -np.inf, -np.inf
    action = chosen
    for a in range(num_actions):
        q = row_value(table.reward[s, index(a)], table, row + index(a), v)
        action = a if q > top else action
        top = q if q > top else top
        own = q if a == chosen else own
    return top, chosen if own == top else action, own


@compiled
def back_up_table(
    table: MoveTable, v: FloatArray, policy: IntArray, best: FloatArray, action: IntArray
) -> tuple[float, float, float, float, float]:
    """Do as `kernels.backup_range` for all states, from a table in which what is expected of shared rows is known."""
    low, high, own_low, own_high, size = np.inf, -np.inf, np.inf, -np.inf, 0.0
    for s in range(index(len(v))):
        top, top_action, own = best_move(table, v, policy[s], s)
        best[s] = top
        action[s] = top_action
        gain, drift, magnitude = top - v[s], own - v[s], abs(v[s])
        low = gain if gain < low else low
        high = gain if gain > high else high
        own_low = drift if drift < own_low else own_low
        own_high = drift if drift > own_high else own_high
        size = magnitude if magnitude > size else size
    return low, high, own_low, own_high, size
