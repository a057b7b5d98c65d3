"""One shard: its own states as a model that `al.solve` solves, with the values of its neighbours held fixed.

States of other shards that this one leads to, its *halo*, become states that stay where they are and pay (1 − γ) h for
ever, so that their value is h: whatever solves an MDP solves a shard. A round sets h to what the neighbours said,
solves from where the last round ended, and answers with the values that others look at.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import ModelError
from adalook.mdp import checks
from adalook.mdp.model import MDP
from adalook.mdp.transitions import LONG_ROW, NOT_OFFERED, ModelArrays, Rows, index_type
from adalook.planning import threads
from adalook.planning.lookahead import kernels
from adalook.planning.lookahead.levels import Residual
from adalook.planning.objectives.policy_values import under_policy
from adalook.planning.sharded.blocks import BlockSource, localised
from adalook.planning.solution import Status
from adalook.planning.solve import solve


class ShardFacts(NamedTuple):
    """The numbers of a shard that others need: its halo, and its part of what the certificate rests on."""

    states: range
    halo: IntArray  # ascending numbers of the states, and then of the shared rows, that it leads to
    largest_reward: float
    row_sums: tuple[float, float]
    rounding_terms: int
    least_best_reward: float
    """min over states of the best immediate reward: V* is nowhere below the least of these over 1 − γ."""
    num_pairs: int
    shared_sums: FloatArray  # (R,) its part of each shared row's sum
    shared_widths: IntArray  # (R,) and of its successors
    nbytes: int


RESPONSE_TOLERANCE = 1e-9
"""To which responses to changes of size one are computed."""


class BoundaryPart(NamedTuple):
    """Numbers that one shard contributes to those on the boundary."""

    boundary: FloatArray  # of its states that others lead to
    shared: FloatArray  # (R,) its part of each shared row's expectation


class LocalAnswer(NamedTuple):
    """The answer of a shard to a round."""

    boundary: FloatArray  # values of its states that others lead to
    shared: FloatArray  # (R,) its part of each shared row's expectation
    low: float
    """The optimal values of this shard, for the halo that it was given, are its values plus at least this …"""
    high: float
    """… and at most this."""
    passes: int
    changed: int
    """Actions that changed, over all passes."""
    status: Status


class ShardState(NamedTuple):
    """The values and the policy that a shard has found so far."""

    values: FloatArray  # (n,)
    policy: IntArray  # (n,)


class Shard:
    """A contiguous range of states, in the process that built it."""

    def __init__(self, source: BlockSource, states: range) -> None:
        block = source.block(states)
        self.states, self.discount = states, source.discount
        halo, codes, rows = localised(block, states)
        n, outside = len(states), len(halo)
        self._before = int(np.searchsorted(halo, states.start))
        self._own = slice(self._before, self._before + n)
        self._halo_places = np.concatenate([np.arange(self._before), np.arange(self._before + n, n + outside)])
        all_codes = np.full((n + outside, source.num_actions), NOT_OFFERED, codes.dtype)
        all_codes[self._own] = codes
        all_codes[self._halo_places, 0] = self._halo_places
        self._rewards = np.zeros(all_codes.shape)
        self._rewards[self._own] = block.rewards
        rewards = self._rewards.view()  # the model's view is read-only, and changes with the halo all the same
        self._model = MDP._adopt(rewards, all_codes, rows, source.discount)
        self._shared = _as_model(block.shared, source.discount)
        self._values: FloatArray = np.zeros(n + outside)
        self._greedy: IntArray | None = None
        """The policy that was greedy when the values were last certified, unless they have changed since."""
        self._exports: IntArray = np.zeros(0, np.int64)
        self._under_policy: MDP | None = None
        """The model in which each state offers the action of the policy, once that was asked for."""
        offered = np.where(codes == NOT_OFFERED, -np.inf, block.rewards)
        best = offered.max(axis=1)
        self._first_policy: IntArray = offered.argmax(axis=1).astype(np.int32)
        self._policy = self._first_policy
        parts = np.empty(block.shared.num_rows)
        kernels.shared_expectations(self._shared, np.ones(n), parts)
        self.facts = ShardFacts(
            states,
            halo,
            float(np.abs(block.rewards).max()),
            self._model.row_sums,
            self._model.rounding_terms,
            float(best.min()),
            int(np.count_nonzero(codes != NOT_OFFERED)),
            parts,
            np.diff(block.shared.indptr),
            self._model.nbytes + block.shared.nbytes,
        )

    def export(self, states: IntArray, value: float) -> None:
        """Begin with this value everywhere; from now on answer with the values of these of its states."""
        self._exports = states - self.states.start
        self._values[:], self._policy = value, self._first_policy

    def improve(self, halo: FloatArray, tolerance: float) -> LocalAnswer:
        """Solve for these values of the halo, from where the last round ended."""
        self._set_halo(halo)
        self._greedy = self._under_policy = None
        model = self._model_with_halo(halo)
        solution = solve(
            model,
            initial_policy=self._whole_policy(self._policy),
            initial_values=self._values,
            tolerance=tolerance,
            keep_states=False,
        )
        self._values = solution.values.copy()
        self._set_halo(halo)
        self._policy = solution.policy[self._own].copy()
        own = self._values[self._own]
        return LocalAnswer(
            own[self._exports],
            self._shared_parts(own),
            float(solution.certificate.low),
            float(solution.certificate.high),
            solution.passes,
            sum(item.changed for item in solution.trace),
            solution.status,
        )

    def respond(self, change: FloatArray) -> BoundaryPart:
        """Return by how much its policy's values change on the boundary when the halo's do by so much."""
        size = float(np.abs(change).max(initial=0.0))
        own = np.zeros(len(self.states))
        if size > 0.0:
            if self._under_policy is None:
                self._under_policy = under_policy(self._model, self._whole_policy(self._policy))
            rewards = np.zeros((len(self._values), 1))
            rewards[self._halo_places, 0] = (1.0 - self.discount) * (change / size)
            model = self._under_policy._with_rewards(rewards, 1.0 - self.discount)
            own = size * solve(model, tolerance=RESPONSE_TOLERANCE, keep_states=False).values[self._own]
        return BoundaryPart(own[self._exports], self._shared_parts(own))

    def certify(self, halo: FloatArray, shift: float) -> Residual:
        """Return the extremes of T v − v over its states, for its values plus a constant and those of the halo."""
        self._set_halo(halo)
        values = self._values + shift
        values[self._halo_places] = halo
        policy, model = self._whole_policy(self._policy), self._model
        best, action, shared = np.empty_like(values), np.empty_like(policy), np.empty(model.rows.num_shared)
        kernels.shared_expectations(model.arrays, values, shared)
        arguments, first, n = (model.arrays, shared, values, policy, best, action), self._before, len(self.states)

        def part(*given: Any) -> Any:
            return kernels.backup_range(*given[:-2], first + given[-2], first + given[-1])

        if self.facts.num_pairs < threads.MIN_ENTRIES:
            parts = [part(*arguments, 0, n)]
        else:
            parts = threads.split(part, n, arguments)
        low, high, own_low, own_high, size = zip(*parts, strict=True)
        self._greedy = action[self._own].copy()
        return Residual(min(low), max(high), min(own_low), max(own_high), max(size))

    def shifted(self, shift: float) -> BoundaryPart:
        """Return the values that others look at, and its part of each shared row's expectation, plus a constant."""
        own = self._values[self._own] + shift
        return BoundaryPart(own[self._exports], self._shared_parts(own))

    def digest(self) -> str:
        """Return a digest of its rewards and transitions."""
        parts = (self._rewards[self._own], self._model.codes[self._own], *self._model.rows[:3], *self._shared[2:5])
        content = hashlib.blake2b(digest_size=32)
        for part in parts:
            content.update(np.ascontiguousarray(part).tobytes())
        return content.hexdigest()

    def result(self, halo: FloatArray, shift: float) -> ShardState:
        """Return its values plus a constant, and the policy that is greedy for them."""
        if self._greedy is None:  # another process was asked to certify
            self.certify(halo, shift)
        assert self._greedy is not None
        return ShardState(self._values[self._own] + shift, self._greedy)

    def state(self) -> ShardState:
        """Return what it has found so far."""
        return ShardState(self._values[self._own].copy(), self._policy)

    def restore(self, state: ShardState) -> None:
        """Take over what another process has found."""
        self._under_policy = None
        self._values[self._own] = state.values
        self._policy = np.array(state.policy, np.int32)

    def _set_halo(self, halo: FloatArray) -> None:
        """Write the values of the halo beside the shard's own."""
        if len(halo) != len(self._halo_places):
            raise ModelError("the halo is wrong", expected=f"{len(self._halo_places)} values", got=len(halo))
        self._values[self._halo_places] = halo

    def _model_with_halo(self, halo: FloatArray) -> MDP:
        """Return the model in which the states of the halo are worth so much."""
        paid = (1.0 - self.discount) * halo
        self._rewards[self._halo_places, 0] = paid
        largest = max(self.facts.largest_reward, float(np.abs(paid).max(initial=0.0)))
        checks.check_reward_size(largest, self.discount)
        self._model = self._model._with_rewards(self._rewards.view(), largest)
        return self._model

    def _whole_policy(self, policy: IntArray) -> IntArray:
        """Return a policy of own states with that of the halo, which has no choice."""
        whole: IntArray = np.zeros(len(self._values), np.int32)
        whole[self._own] = policy
        return whole

    def _shared_parts(self, own: FloatArray) -> FloatArray:
        """Return (R,) its part of each shared row's expectation."""
        parts = np.empty(len(self._shared.indptr) - 1)
        kernels.shared_expectations(self._shared, own, parts)
        return parts


def _as_model(rows: Rows, discount: float) -> ModelArrays:
    """Return rows in the form that kernels take, which are compiled for read-only arrays of one index type."""
    kind = index_type(len(rows.indices))
    nothing = np.empty((0, 0)), np.empty((0, 0), kind)
    arrays = (*nothing, rows.indptr.astype(kind), rows.indices.astype(kind), rows.data.copy())
    for array in arrays:
        array.flags.writeable = False
    return ModelArrays(*arrays, rows.num_shared, discount)


def shared_rounding_terms(width: int) -> int:
    """Return the rounding terms of a backup that reads a shared row's expectation, added up from all shards.

    Each part is summed as `kernels.expectation` does; adding up the parts rounds once more.
    """
    return min(width, LONG_ROW) + 5
