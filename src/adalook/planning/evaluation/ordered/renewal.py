"""Models that begin anew: no cycle is left once the moves into a few states, the renewals, are cut.

A machine is replaced by a new one, a season ends, an episode starts again. Given the values x of the K renewals, one
backward pass in topological order finds the others' best values, and y(x), what the renewals' own moves are worth then.
V* has y(x) = x, and Newton's method finds it, which is policy iteration:

    x ← x + (I − D)⁻¹ (y(x) − x)        D = ∂y/∂x, the discounted chances of going from one renewal to another

Renewals are looked for among the states that far more moves lead to than to others. The model's own order is tried
first; else states that nothing leads to are taken away (Kahn), and where there is none the most popular one is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, is_deterministic, row_of
from adalook.planning.evaluation.ordered import acyclic
from adalook.planning.evaluation.sweeps import PolicyRows
from adalook.planning.lookahead.kernels import index

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "renewals"
MOST_RENEWALS, MOST_FIRST = 8, 4
"""Renewals at most, and those of them after which half of the states must be free of cycles."""
POPULAR, LEAST_MOVES = 6, 8
"""A renewal is led to by so many times as many moves as the average state, and by so many of those that are asked …"""
ASKED_STATES, ASKED_MOVES = 512, 6_000
"""… which are those of so many states, or until so many moves are seen."""
MOST_PASSES, USUAL_PASSES = 40, 4
ENOUGH = 0.25
"""The renewals' values are good enough when their error takes up this share of the tolerance."""
CUT = 2**30
"""Stands in for the number of moves into a renewal, which never become none."""


class Renewals(NamedTuple):
    """A model in topological order but for the moves into its renewals."""

    order: IntArray  # (S − K,) every move of a state leads to later ones, to itself or to a renewal
    states: IntArray  # (K,) the renewals


@kept_with_model
def find(mdp: MDP) -> Renewals | None:
    """Return the renewals of a model, or None where it has none, or no states that far more moves lead to."""
    n = mdp.num_states
    _, cyclic = acyclic.first_look(mdp)
    if cyclic or len(mdp.rows.indices) > acyclic.LONG_ROWS * mdp.num_pairs:
        return None
    popularity = np.zeros(n, np.int32)
    least = max(LEAST_MOVES, POPULAR * _count_moves(mdp.arrays, ASKED_STATES, ASKED_MOVES, popularity) // n)
    popular = popularity >= least
    if not 0 < np.count_nonzero(popular) <= MOST_RENEWALS:
        return None
    direction = _direction(mdp.arrays, popular)
    if direction:
        others = np.flatnonzero(~popular).astype(mdp.codes.dtype)
        return Renewals(others[::direction].copy(), np.flatnonzero(popular))
    return _cut(mdp, popularity)


def find_anyway(mdp: MDP) -> Renewals | None:
    """Return renewals, however few moves lead to them, or None where it takes too many states to cut all cycles."""
    popularity = np.zeros(mdp.num_states, np.int32)
    _count_moves(mdp.arrays, mdp.num_states, CUT, popularity)
    return _cut(mdp, popularity)


def _cut(mdp: MDP, popularity: IntArray) -> Renewals | None:
    """Return renewals found greedily, the most popular (S,) first; None where few states do not cut all cycles."""
    n = mdp.num_states
    arrivals, used = np.zeros(n, np.int32), np.zeros(mdp.rows.num_rows, np.int32)
    acyclic.count_arrivals(mdp.arrays, used, arrivals)
    order, states = np.empty(n, mdp.codes.dtype), np.empty(min(MOST_RENEWALS, n), np.int64)
    size, count = _cut_cycles(mdp.arrays, used, arrivals, popularity, order, states)
    return Renewals(order[:size], states[:count]) if size + count == n and count else None


def solve(mdp: MDP, renewals: Renewals, tolerance: float) -> tuple[FloatArray, IntArray, int] | None:
    """Return values and a policy that loses at most the tolerance, as far as floats allow, and the passes made.

    None where floats do not allow anything.
    """
    order, states = renewals
    values, policy = np.zeros(mdp.num_states), np.zeros(mdp.num_states, np.int32)
    x, before = np.zeros(len(states)), policy
    change = np.empty(len(states))
    enough = ENOUGH * tolerance * (1.0 - mdp.discount)
    for done in range(1, MOST_PASSES + 1):
        policy = policy.copy()
        values[states] = x
        acyclic.back_up_in_order(mdp, order, values, policy)
        _back_up_renewals(mdp.arrays, states, values, policy, change)
        same, before = done > 1 and bool((policy == before).all()), policy
        if same or np.abs(change).max() <= enough:
            break
        try:
            x = x + np.linalg.solve(np.eye(len(states)) - _between(mdp, renewals, policy), change)
        except np.linalg.LinAlgError:  # γ is one, as far as floats can tell
            return None
    return (values, policy, done) if np.isfinite(values).all() else None


def _between(mdp: MDP, renewals: Renewals, policy: IntArray) -> FloatArray:
    """Return D (K, K) under a policy: the values of its moves with a reward of one at a renewal alone."""
    order, states = renewals
    rows = PolicyRows.of(mdp, policy)._replace(reward=np.zeros(mdp.num_states))
    between = np.empty((len(states), len(states)))
    for j, state in enumerate(states.tolist()):
        values = np.zeros(mdp.num_states)
        values[state] = 1.0
        acyclic.evaluate_in_order(rows, order, values)
        _evaluate_renewals(rows, states, values, between[:, j])
    return between


@compiled
def _count_moves(model: ModelArrays, states: int, moves: int, count: IntArray) -> int:
    """Count the moves to each state from some states, or until there are so many; returns how many there are."""
    num_states, num_actions = model.codes.shape
    total = 0
    for i in range(min(num_states, states)):
        # Steps of the golden section: even ones would meet the same season again and again.
        s = int((i * 0.6180339887498949) % 1.0 * num_states) if num_states > states else i
        for a in range(num_actions):
            code = model.codes[s, a]
            if is_deterministic(code):
                if code != s:
                    count[code] += 1
                    total += 1
            elif code != NOT_OFFERED:
                row = row_of(code)
                for k in range(model.indptr[row], model.indptr[row + 1]):
                    if model.indices[k] != s:
                        count[model.indices[k]] += 1
                        total += 1
            if total > moves:
                return total
    return total


@compiled
def _direction(model: ModelArrays, cut: BoolArray) -> int:
    """Return 1 where all moves but those into cut states lead ahead or stay, −1 where they lead back, else 0."""
    num_states, num_actions = model.codes.shape
    ahead = back = True
    for s in range(num_states):
        if cut[s]:
            continue
        for a in range(num_actions):
            code = model.codes[s, a]
            if is_deterministic(code):
                if not cut[index(code)]:
                    ahead &= code >= s
                    back &= code <= s
            elif code != NOT_OFFERED:
                row = index(row_of(code))
                for k in range(index(model.indptr[row]), index(model.indptr[row + index(1)])):
                    t = model.indices[k]
                    if not cut[index(t)]:
                        ahead &= t >= s
                        back &= t <= s
        if not (ahead or back):
            return 0
    return 1 if ahead else -1


@compiled
def _cut_cycles(
    model: ModelArrays, used: IntArray, arrivals: IntArray, popularity: IntArray, order: IntArray, states: IntArray
) -> tuple[int, int]:
    """List states without arrivals and take their moves away, cutting renewals where none is left; returns (n, K)."""
    num_states = model.codes.shape[0]
    alone = used.copy()
    count = head = 0
    size = acyclic.list_sources(arrivals, order)
    while True:
        size = head = acyclic.take_away(model, used, alone, arrivals, order, head, size)
        if (
            size + count == num_states
            or count == len(states)
            or (count >= MOST_FIRST and 2 * (size + count) < num_states)
        ):
            return size, count
        most, chosen = -1, -1
        for s in range(num_states):
            if 0 < arrivals[s] < CUT // 2 and popularity[s] > most:
                most, chosen = popularity[s], s
        states[count] = chosen
        count += 1
        arrivals[chosen] = CUT
        size = acyclic.leave(model, chosen, used, alone, arrivals, order, size)


@compiled
def _back_up_renewals(
    model: ModelArrays, states: IntArray, v: FloatArray, policy: IntArray, change: FloatArray
) -> None:
    """Write y − x (K,) of the renewals, whose values x stay as they are, and their best actions."""
    for j in range(len(states)):
        s = index(states[j])
        policy[s], best = acyclic.best_move(model, s, v)
        change[j] = best - v[s]


@compiled
def _evaluate_renewals(rows: PolicyRows, states: IntArray, v: FloatArray, out: FloatArray) -> None:
    """Write what a policy's moves are worth in the renewals (K,)."""
    for j in range(len(states)):
        s = index(states[j])
        out[j] = acyclic.move_return(rows, rows.code[s], rows.reward[s], s, v)
