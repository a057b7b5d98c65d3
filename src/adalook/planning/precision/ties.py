"""Actions that are exactly as good as the policy's, although no rounding error can show it.

Two states have the same value under a policy when it pays the same rewards from both, step by step, and moves with the
same probabilities to states that are alike in turn: when they are bisimilar under it. Such ties are common on grids,
where two ways around a corner are equally long, and no interval around a value tells a tie from a small loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import IntArray
from adalook.mdp.transitions import is_deterministic, row_of

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

MAX_STATES = 300_000
"""Models up to this size are looked through, in about a second."""
MAX_WORK = 10_000_000
"""States and probabilities that the search for a partition reads, some seconds."""


def certain_ties(mdp: MDP, policy: IntArray, pairs: IntArray) -> bool:
    """Return whether every (state, action) of pairs (K, 2) is certainly worth exactly what the policy's action is.

    >>> import adalook as al, numpy as np
    >>> mdp = al.MDP([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]], [[1, 2], [0, 0], [0, 0]], 0.9)
    >>> certain_ties(mdp, np.zeros(3, np.int32), np.array([[0, 1]]))
    True
    """
    if mdp.num_states > MAX_STATES:
        return False
    return any(_are_ties(mdp, policy, pairs, alike(mdp, policy)) for alike in (futures, bisimilar))


def _are_ties(mdp: MDP, policy: IntArray, pairs: IntArray, alike: Sequence[int]) -> bool:
    """Return whether all pairs (K, 2) pay what the policy's action pays, and lead to the same numbers in `alike`."""
    rewards, codes = mdp.rewards, mdp.codes
    signatures: dict[int, tuple[tuple[int, float], ...]] = {}

    def successors(code: int) -> tuple[tuple[int, float], ...]:
        if code not in signatures:
            signatures[code] = _signature(mdp, code, alike)
        return signatures[code]

    for s, a in pairs.tolist():
        own = policy[s]
        mine, other = int(codes[s, own]), int(codes[s, a])
        if rewards[s, a] != rewards[s, own] or (mine != other and successors(mine) != successors(other)):
            return False
    return True


def _signature(mdp: MDP, code: int, alike: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """Return the numbers that a transition leads to, each with its probability, in order."""
    if is_deterministic(code):
        return ((alike[code], 1.0),)
    row = row_of(code)
    part = slice(mdp.rows.indptr[row], mdp.rows.indptr[row + 1])
    numbers = [alike[t] for t in mdp.rows.indices[part].tolist()]
    return tuple(sorted(zip(numbers, mdp.rows.data[part].tolist(), strict=True)))


def bisimilar(mdp: MDP, policy: IntArray) -> list[int]:
    """Number the states (S,) by the coarsest partition under which the policy's moves are alike within each part.

    Parts are split by rewards and by the parts that moves lead to, until no split is left; all states get numbers of
    their own where that would take too long.
    """
    n = mdp.num_states
    every = np.arange(n)
    codes = mdp.codes[every, policy]
    rows = np.unique(codes[codes < 0])
    _, part = np.unique(mdp.rewards[every, policy], return_inverse=True)
    rewards, count = part.copy(), int(part.max()) + 1
    work = n + sum(int(mdp.rows.indptr[row_of(code) + 1] - mdp.rows.indptr[row_of(code)]) for code in rows.tolist())
    for _ in range(max(1, MAX_WORK // work)):
        alike = part.tolist()
        numbers: dict[tuple[tuple[int, float], ...], int] = {}
        ends = np.array([numbers.setdefault(_signature(mdp, code, alike), len(numbers)) for code in rows.tolist()], int)
        leads = np.where(codes >= 0, part[np.maximum(codes, 0)], 0)
        if len(rows):
            leads = np.where(codes < 0, n + ends[np.searchsorted(rows, np.minimum(codes, rows[-1]))], leads)
        _, part = np.unique(np.stack([rewards, leads], axis=1), axis=0, return_inverse=True)
        part = part.reshape(-1)
        if int(part.max()) + 1 == count:
            return [int(number) for number in part]
        count = int(part.max()) + 1
    return list(range(n))


def futures(mdp: MDP, policy: IntArray) -> list[int]:
    """Number the states (S,) so that two with one number have exactly the same value under the policy."""
    n = mdp.num_states
    every = range(n)
    reward = mdp.rewards[every, policy].tolist()
    code = mdp.codes[every, policy].tolist()
    unknown, on_path = -1, -2
    future = [unknown] * n
    numbers: dict[tuple[float, int, bool], int] = {}
    for root in every:
        path = []
        s = root
        while future[s] == unknown:
            path.append(s)
            future[s] = on_path
            if code[s] < 0:
                future[s] = numbers.setdefault((reward[s], code[s], False), len(numbers))
                path.pop()
                break
            s = code[s]
        if future[s] == on_path:  # a cycle, entered here: its value is its own
            future[s] = numbers.setdefault((0.0, s, True), len(numbers))
        for p in reversed(path):
            if future[p] == on_path:
                future[p] = numbers.setdefault((reward[p], future[code[p]], False), len(numbers))
    return future
