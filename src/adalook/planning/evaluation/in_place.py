"""Rough passes on local models: what WLPI does where no policy has a cheap exact evaluation.

On a grid with slippery moves every policy needs a linear solve, and near the start none is worth it. A pass is then

    sweep T_π in place, only where values still move  ->  back up every state  ->  improve in place, there and back

as in modified policy iteration, with sweeps that grow as fewer actions change. In place, one sweep carries news across
the whole grid in the direction of the sweep; there and back covers both. The first pass improves and sweeps in rounds,
as long as many actions change or ever fewer; a policy that has settled is evaluated to the end. The full backup is what
the certificate and the choice of the next sweeps rest on. Random graphs, where news travels everywhere in a few steps
anyway, are left to plain sweeps with a constant shift (`evaluation`).

The passes are compiled as one loop: on small models a pass takes microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning.certificate import rounding_bound
from adalook.planning.evaluation import in_place_kernels as rough_kernels
from adalook.planning.lookahead.backups import Residual, table

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

LOCAL_GROWTH = 12.0
"""Models whose neighbourhoods grow more than this from one step to three are not local."""
FOLLOW_STATES = 4_000
"""Smaller models are swept whole: finding out who leads to what changed would take longer."""
MOST_PASSES = 16
IN_PLACE = 2
"""Improvements in place per round: there and back."""


class RoughPass(NamedTuple):
    """One pass: residual of its backup, states changed and swept, rounds of improvement in place, arrays if kept."""

    residual: Residual
    changed: int
    swept: int
    rounds: int
    values: FloatArray | None
    policy: IntArray | None


@dataclass
class RoughRun:
    """Passes in progress on one model."""

    mdp: MDP
    tolerance: float
    coarse: float = np.inf

    def advance(
        self, values: FloatArray, policy: IntArray, most: int, keep: bool
    ) -> tuple[list[RoughPass], FloatArray, FloatArray, IntArray]:
        """Up to `most` passes from values and policy (S,): (passes, last values, T of these, its greedy policy)."""
        mdp = self.mdp
        n, most = mdp.num_states, min(most, MOST_PASSES)
        values, policy = values.copy(), policy.copy()
        best, action = np.empty_like(values), np.empty_like(policy)
        figures = np.empty((most, 8))
        all_values, all_policies = np.empty((most if keep else 0, n)), np.empty((most if keep else 0, n), policy.dtype)
        span = self.tolerance * (1.0 - mdp.discount * mdp.row_sums[1])
        constant = rounding_bound(mdp, 0.0)
        if n >= FOLLOW_STATES:
            start, sources = mdp.predecessors.start, mdp.predecessors.sources
        else:
            start = sources = np.empty(0, mdp.codes.dtype)
        passes, self.coarse = rough_kernels.rough_passes(
            mdp.rewards,
            mdp.codes,
            *table(mdp),
            mdp.rows.num_shared,
            max(1, mdp.longest_row),
            start,
            sources,
            mdp.discount,
            values,
            policy,
            best,
            action,
            min(self.coarse, mdp.largest_reward),
            span / 3.0,  # a sweep that changes values by at most this leaves T_π v − v a span of at most 2γ times it
            span * 0.99,
            constant,
            rounding_bound(mdp, 1.0) - constant,
            figures,
            all_values,
            all_policies,
        )
        made = [
            RoughPass(
                Residual(*line[:5]),
                int(line[5]),
                int(line[6]),
                int(line[7]),
                all_values[p] if keep else None,
                all_policies[p] if keep else None,
            )
            for p, line in enumerate(figures[:passes].tolist())
        ]
        return made, values, best, action
