"""Who leads to whom: predecessor lists, without the hubs, for lookahead that moves backward from what changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adalook.arrays import IntArray
from adalook.mdp import kernels
from adalook.mdp.rows import Rows


@dataclass(frozen=True)
class Predecessors:
    """States with a move to s': `sources[start[s']:start[s'+1]]`, possibly repeated; and those that can reach a hub."""

    start: IntArray  # (S + 1,)
    sources: IntArray  # (edges,)
    hub_users: IntArray  # (users,)

    @classmethod
    def of(cls, codes: IntArray, rows: Rows) -> Predecessors:
        num_states = codes.shape[0]
        counts = np.zeros(num_states + 1, np.int64)
        kernels.count_predecessors(codes, rows.indptr, rows.indices, rows.num_hubs, counts[1:])
        np.cumsum(counts, out=counts)
        kind = np.int32 if counts[-1] <= np.iinfo(np.int32).max else np.int64
        start: IntArray = counts.astype(kind)
        sources = np.empty(int(counts[-1]), codes.dtype)
        free = start[:-1].copy()
        del counts
        kernels.fill_predecessors(codes, rows.indptr, rows.indices, rows.num_hubs, free, sources)
        users = np.empty(num_states if rows.num_hubs else 0, codes.dtype)
        count = kernels.hub_users(codes, rows.num_hubs, users) if rows.num_hubs else 0
        return cls(start, sources, users[:count].copy())


def neighbourhood_growth(codes: IntArray, rows: Rows, sample: int = 16, most: int = 32) -> float:
    """Mean size of the neighbourhood three steps ahead over that of one step, from states spread evenly.

    Sizes beyond about `most` times are not told apart.
    """
    roots = np.arange(0, len(codes), max(1, len(codes) // sample))
    near, far = kernels.neighbourhoods(codes, rows.indptr, rows.indices, rows.num_hubs, roots, most)
    return float(far / near)
