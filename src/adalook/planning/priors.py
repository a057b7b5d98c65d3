"""Priors: approximations Ṽ* of the optimal values, good enough to tell which states need depth.

Each one is a `Prior`: an array that also knows what it cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook._validation import integer
from adalook.mdp.aggregation import aggregate
from adalook.mdp.model import MDP
from adalook.planning.queries import Queries
from adalook.planning.rules.pi import PolicyIteration
from adalook.planning.rules.wlpi import WLPI
from adalook.planning.solution import Solution, Status
from adalook.planning.solve import solve


@dataclass(frozen=True, eq=False)
class Prior:
    """Approximate optimal values (S,) and the queries spent on them.

    `model_reads` counts (state, action) rows of the full model that were read to build a smaller one.
    """

    values: FloatArray
    queries: Queries
    model_reads: int = 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)


def exact(mdp: MDP) -> Prior:
    """Return V* itself: for experiments that ask what a perfect prior is worth.

    >>> import adalook as al
    >>> al.priors.exact(al.zoo.chain(n=3)).values.round(3)
    array([0.729, 0.81 , 0.9  , 1.   , 0.   ])
    """
    solution = _finished(solve(mdp, WLPI(), tolerance=0.0))
    return Prior(solution.values, solution.queries)


def few_iterations(mdp: MDP, n: int, *, initial_policy: Any = None) -> Prior:
    """Return the values after n iterations of PI."""
    n = integer(1).validate("few_iterations: n", n)
    solution = _finished(solve(mdp, PolicyIteration(), initial_policy=initial_policy, tolerance=0.0, max_iterations=n))
    return Prior(solution.values, solution.queries)


def aggregation(mdp: MDP, groups: Any) -> Prior:
    """Return the optimal values of the aggregated model, lifted (see `al.aggregate`); PI solves it, as in the paper."""
    small, lift = aggregate(mdp, groups)
    solution = _finished(solve(small, PolicyIteration(), tolerance=0.0))
    return Prior(lift(solution.values), solution.queries, model_reads=mdp.num_pairs)


def _finished(solution: Solution) -> Solution:
    """Raise KeyboardInterrupt if Ctrl-C stopped the solve: half a prior would pass for a whole one."""
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
