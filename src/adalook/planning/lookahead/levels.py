"""Lookahead from one evaluated policy: W_k = T^k V^π, level by level.

A level raises a state's value, and replaces its action, only when the gain exceeds a tolerance; the action that a state
ends with is therefore one that attains T^k V^π there, and the one it had before whenever that attains it too.
This is what ends policy iteration on ties. Let e bound |v − V^π| and δ the rounding of one backup.

* Level one: a gain above `switch_tol` = 2e + δ is a true advantage Q^π(s, a) − V^π(s) > 0.
* Deeper levels: with c = `raise_tol` = (δ + 2e)/(1 − γ), Y = V^π + max(0, U − v − c) satisfies T_π' Y >= Y for the new
  policy π' as long as deeper gains exceed c. Hence V^π' >= Y >= V^π, and strictly so wherever a level raised the value.

So the values of successive policies rise and no policy comes back. (With depths that differ between neighbours, as
in TLPI and QLPI, the second point fails: see `solve`.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning import threads
from adalook.planning.lookahead import kernels
from adalook.planning.lookahead.kernels import WaveLimits, WaveState

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

MAX_LEVELS = 60_000
"""No lookahead goes deeper: depths are kept in 16 bits."""
UNLIMITED = 2**62


class Residual(NamedTuple):
    """What one backup of v tells: extremes of T v − v and of T_π v − v as computed, and max|v|."""

    low: float
    high: float
    own_low: float
    own_high: float
    size: float

    @property
    def span(self) -> float:
        """Largest less smallest entry of T v − v."""
        return self.high - self.low


class Backup(NamedTuple):
    """One backup of every state: T v, the actions that attain it, and the residual."""

    values: FloatArray  # (S,)
    actions: IntArray  # (S,)
    shared: FloatArray  # (rows,) expectation of each shared row under v
    residual: Residual


def backup(mdp: MDP, values: FloatArray, policy: IntArray) -> Backup:
    """Back up every state once; where the policy's own action is among the best, it is the one kept."""
    best, action, shared = np.empty_like(values), np.empty_like(policy), np.empty(mdp.rows.num_shared)
    model, n = mdp.arrays, mdp.num_states
    if len(shared):
        kernels.shared_expectations(model, values, shared)
    arguments = (model, shared, values, policy, best, action)
    if mdp.num_pairs + len(model.indices) < threads.MIN_ENTRIES:
        residual = Residual(*kernels.backup_range(*arguments, 0, n))
    else:
        low, high, own_low, own_high, size = zip(*threads.split(kernels.backup_range, n, arguments), strict=True)
        residual = Residual(min(low), max(high), min(own_low), max(own_high), max(size))
    return Backup(best, action, shared, residual)


class Lookahead:
    """T^level V^π and the actions that attain it; starts at level 1, goes on by `deepen` or `wave`.

    Args:
        mdp: the model.
        values: (S,) the evaluated policy's values v; kept, not changed.
        policy: (S,) its actions; kept, not changed.
        first: the backup of v; its arrays become this object's own.
        switch_tol: gains of level one must exceed this …
        raise_tol: … and gains of deeper levels this, or switch_tol if that is larger.
        price: (state, action) queries of a new iteration, one full backup plus one evaluation.
    """

    def __init__(
        self,
        mdp: MDP,
        values: FloatArray,
        policy: IntArray,
        first: Backup,
        *,
        switch_tol: float,
        raise_tol: float,
        price: int,
    ) -> None:
        self.mdp, self.start, self.policy, self.price = mdp, values, policy, price
        self.switch_tol, self.raise_tol = switch_tol, max(switch_tol, raise_tol)
        self.values, self.actions = first.values, first.actions
        self.level = 1
        self.wave_pairs = 0
        """(state, action) pairs that wavefronts backed up."""
        self._shared = first.shared
        self._raised = np.empty(mdp.num_states, mdp.codes.dtype)
        self.switched, self._num_raised = kernels.keep_gains(
            values, policy, switch_tol, self.raise_tol, self.values, self.actions, self._raised
        )
        self._depth: IntArray | None = None
        self._stamp: IntArray | None = None

    @property
    def raised_share(self) -> float:
        """Share of the states that the last level raised."""
        return float(self._num_raised / self.mdp.num_states)

    @property
    def depth(self) -> IntArray:
        """(S,) the last level that raised each state's value, at least 1."""
        if self._depth is None:
            self._depth = np.ones(self.mdp.num_states, np.uint16)
        return self._depth

    def deepen(self, levels: int) -> None:
        """Go `levels` deeper by backing up every state, as h-PI does."""
        for _ in range(levels):
            self.level += 1
            if self._num_raised == 0:
                continue
            deeper = backup(self.mdp, self.values, self.actions)
            _, self._num_raised = kernels.keep_gains(
                self.values, self.actions, self.raise_tol, self.raise_tol, deeper.values, deeper.actions, self._raised
            )
            self.values, self.actions = deeper.values, deeper.actions

    def wave(
        self,
        levels: int = MAX_LEVELS,
        *,
        freeze_shared: bool = False,
        budget: int = UNLIMITED,
        max_front: float = 1.0,
    ) -> bool:
        """Go deeper by backing up only predecessors of what changed: the same values, level by level.

        Stops early where nothing changes any more, where the levels' work would pass `budget` pairs or a level's
        front the share `max_front` of the states. With `freeze_shared` the shared rows keep their expectation under v:
        still a lower bound of T^k v that only rises. Returns True if a limit stopped it.
        """
        if self._num_raised == 0 or levels <= 0:
            return False
        mdp = self.mdp
        limits = WaveLimits(self.raise_tol, freeze_shared, levels, budget, int(max_front * mdp.num_states))
        if self._stamp is None:
            self._stamp, self._front = np.zeros(mdp.num_states, np.int32), np.empty_like(self._raised)
        state = WaveState(self.values, self.actions, self.depth, self._raised, self._shared, self._stamp, self._front)
        self.level, self._num_raised, pairs, limited = kernels.wave(
            mdp.arrays, mdp.predecessors, limits, state, self.level, self._num_raised
        )
        self.wave_pairs += pairs
        return bool(limited)
