"""Blocks: models that lie in a file, larger than memory perhaps, are gone through in the order of their states.

Values and policy are in memory, the model is not. A pass is

    improve, block after block, there and back  ->  evaluate the policy  ->  back up every state once

A block is as many states as `BLOCK_BYTES` of rewards and codes belong to. It is backed up in place, there and back,
until no action in it changes or `ROUNDS` times, before the next one is looked at: the file is read from one end to the
other and back, however many backups that makes. From the values of a policy, each of them can only raise values, so
that the improved policy is worth as much as they say. It is evaluated from its own rows, which are gathered in one
more pass over the file and kept in memory: by pointers, by sweeps or, where these are slow and moves lead to near
numbers, by elimination within the band. The last backup certifies, as everywhere.

Beside the model this takes some 50 bytes a state and, where moves are stochastic, the rows of one policy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook.mdp.transitions import ModelArrays
from adalook.planning.certificate import rounding_bound
from adalook.planning.evaluation.base import Forecast, PassOutcome, PolicyEvaluation
from adalook.planning.evaluation.functional import FunctionalGraph
from adalook.planning.evaluation.linear import banded
from adalook.planning.evaluation.sweeps import PolicyRows, sweep, sweep_entries
from adalook.planning.lookahead.kernels import greedy, index, shared_expectations
from adalook.planning.lookahead.levels import backup

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "blocks"
BLOCK_BYTES = 2**26
ROUNDS = 8
"""Most rounds, there and back, within a block before the next one."""
MAX_SWEEPS = 1_000
SWEPT_SHARE = 0.1
"""A policy is swept until the span of a change is this share of what the last backup changed."""
PATIENCE = 100
"""Passes that may fail to take a tenth off the loss before nothing more is expected of them."""


class BlockEvaluation:
    """Improves and evaluates policies of a model that is read block by block."""

    def __init__(self, mdp: MDP, tolerance: float) -> None:
        self._mdp, self._tolerance = mdp, tolerance
        self._pointers: FunctionalGraph | None = FunctionalGraph(mdp)
        """None once a policy used too many distinct rows."""
        row_bytes = mdp.rows.nbytes * mdp.num_actions // max(1, mdp.rows.num_rows)
        state_bytes = (mdp.rewards.nbytes + mdp.codes.nbytes) // mdp.num_states + row_bytes
        size = max(1, min(mdp.num_states, BLOCK_BYTES // max(1, state_bytes)))
        self._blocks = [(first, min(first + size, mdp.num_states)) for first in range(0, mdp.num_states, size)]
        self._milestone = (math.inf, 0)
        """The loss when it last fell by a tenth, and the pass that it did in."""
        self._passes = 0
        self._sweeps_are_slow = False

    def evaluate(self, policy: IntArray, values: FloatArray, last: PassOutcome | None) -> PolicyEvaluation:
        """Improve the policy block by block, evaluate it, and back up once."""
        mdp, self._passes = self._mdp, self._passes + 1
        values, policy = values.copy(), policy.copy()
        backups = self._improve(values, policy)
        values, swept, solver = self._values_of(policy, values, last)
        count = len(self._blocks)
        forecast = Forecast(0.0, f"the model is read in {count:,} blocks" if count > 1 else "the model is one block")
        return PolicyEvaluation(
            values,
            policy,
            solver,
            swept,
            exact=False,
            backups=backups,
            last_backup=backup(mdp, values, policy),
            forecast=forecast,
        )

    def finished(self, evaluation: PolicyEvaluation, outcome: PassOutcome) -> str:
        """Stop when a backup changes all values alike but for rounding, or the loss has not fallen for many passes."""
        loss, since = self._milestone
        if outcome.policy_loss < 0.9 * loss:
            self._milestone = (outcome.policy_loss, self._passes)
        elif self._passes - since > PATIENCE:
            return "the loss does not fall any more"
        still = outcome.residual.span <= 4.0 * rounding_bound(self._mdp, outcome.residual.size)
        return "values change by no more than rounding" if still else ""

    def _improve(self, values: FloatArray, policy: IntArray) -> int:
        """Improve values and policy in place, from the first block to the last and back; returns backups of all."""
        mdp, shared, states = self._mdp, np.empty(self._mdp.rows.num_shared), 0
        for order in (self._blocks, reversed(self._blocks)):
            shared_expectations(mdp.arrays, values, shared)
            for first, last in order:
                states += 2 * (last - first) * _improve_block(mdp.arrays, shared, values, policy, first, last, ROUNDS)
        return max(1, round(states / mdp.num_states))

    def _values_of(self, policy: IntArray, start: FloatArray, last: PassOutcome | None) -> tuple[FloatArray, int, str]:
        """Return the policy's values, how many states were swept for them, and by what they were found."""
        mdp = self._mdp
        if self._pointers is not None:
            solved = self._pointers.solve(policy)
            if solved is not None:
                return solved, mdp.num_states, NAME
            self._pointers = None
        rows = PolicyRows.of(mdp, policy).side_by_side()
        if self._sweeps_are_slow:
            lower, upper = banded.bandwidths(rows)
            if mdp.num_states * (lower + upper + 1) <= banded.MAX_ENTRIES:
                return banded.solve_banded(rows, lower, upper), mdp.num_states, f"{NAME}, {banded.NAME}"
        span = mdp.largest_reward if last is None else last.residual.span
        enough = max(SWEPT_SHARE * span, self._tolerance * (1.0 - mdp.discount) / 3.0)
        size = mdp.largest_reward + 2.0 * float(np.abs(start).max())
        enough = max(enough, mdp.rounding_terms * 2.0**-53 * size)
        swept = sweep(rows, start, MAX_SWEEPS, enough, sweep_entries(mdp))
        self._sweeps_are_slow = swept.span > enough
        return swept.values, swept.sweeps * mdp.num_states, NAME


@compiled
def _improve_block(
    model: ModelArrays, shared: FloatArray, v: FloatArray, policy: IntArray, first: int, last: int, rounds: int
) -> int:
    """Back up states first..last-1 in place, there and back, until no action changes; returns the rounds it took.

    The policy's own action wins ties.
    """
    start, stop = index(first), index(last)
    for done in range(rounds):
        changed = 0
        for i in range(stop - start):
            back = stop - index(1) - i
            top, action, _, _ = greedy(model, shared, v, back, policy[back])
            changed += action != policy[back]
            v[back], policy[back] = top, action
        for s in range(start, stop):
            top, action, _, _ = greedy(model, shared, v, s, policy[s])
            changed += action != policy[s]
            v[s], policy[s] = top, action
        if changed == 0:
            return done + 1
    return rounds
