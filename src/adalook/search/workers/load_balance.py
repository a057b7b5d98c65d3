"""Who of several workers does what."""

from __future__ import annotations

import numpy as np

from adalook._arrays import IntArray

UNEVEN = 0.05
"""A share may be larger than the others by this much if that saves moving a state."""


def fair_shares(holders: IntArray, count: int, num_actions: int) -> list[IntArray]:
    """Cut the positions of a level, n·A of them, into `count` shares.

    Args:
        holders: (n,) which worker has each node; `count` if none has.
        count: of workers.
        num_actions: A; the children of node i have the positions i·A … i·A + A − 1.

    Nodes are put in the order of their holders and the row is cut into equal parts, so that most of what a worker gets
    it has already. A cut falls between two holders if one is near.

    >>> [share.tolist() for share in fair_shares(np.array([1, 0, 1]), 2, 2)]
    [[2, 3, 0], [1, 4, 5]]
    """
    order = np.argsort(holders, kind="stable")
    positions = (order[:, None] * num_actions + np.arange(num_actions)).ravel()
    total = len(positions)
    borders = np.searchsorted(holders[order], np.arange(1, count)) * num_actions
    even = np.arange(1, count) * total / count
    near = np.abs(borders - even) <= UNEVEN * total / count
    cuts = np.where(near, borders, np.rint(even).astype(np.intp))
    return np.split(positions, np.maximum.accumulate(cuts))
