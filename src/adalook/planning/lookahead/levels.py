"""Lookahead from one evaluated policy: W_k = T^k V^π, level by level.

A level raises a state's value, and replaces its action, only when the gain exceeds `spread`; the action that a state
ends with is therefore one that attains T^k V^π there, and the one it had before whenever that attains it too.
This is what ends policy iteration on ties. Let e bound |v − V^π| and δ the rounding of one backup.

* Level one: a gain above 2e + δ is a true advantage Q^π(s, a) − V^π(s) > 0.
* Deeper levels: with c = (δ + 2e)/(1 − γ), Y = V^π + max(0, U − v − c) satisfies T_π' Y >= Y for the new policy π'
  as long as deeper gains exceed c. Hence V^π' >= Y >= V^π, and strictly so wherever a level raised the value.

So the values of successive policies rise and no policy comes back. (With depths that differ between neighbours, as
in TLPI and QLPI, the second point fails: see `solve`.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning.lookahead import kernels
from adalook.planning.lookahead.backups import Backup, backup, table

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

UNLIMITED = 2**62


class Lookahead:
    """T^level V^π and the actions that attain it; starts at level 1, moves on by `deepen` or `wave`.

    Args:
        mdp: the model.
        values: (S,) the evaluated policy's values v; kept, not changed.
        policy: (S,) its actions; kept, not changed.
        first: the backup of v; its arrays become this object's own.
        switch: gains of level one must exceed this …
        spread: … and gains of deeper levels this.
        price: (state, action) queries of a new iteration, one full backup plus one evaluation.
    """

    def __init__(
        self,
        mdp: MDP,
        values: FloatArray,
        policy: IntArray,
        first: Backup,
        switch: float,
        spread: float,
        price: int,
    ) -> None:
        self.mdp, self.start, self.policy, self.price = mdp, values, policy, price
        self.dust, self.spread = switch, max(switch, spread)
        self.values, self.actions = first.values, first.actions
        self.level = 1
        self.wave_pairs = 0
        self._hub = first.hub
        self._changed = np.empty(mdp.num_states, mdp.codes.dtype)
        self.switched, self._num_changed = kernels.keep_gains(
            values, policy, switch, self.spread, self.values, self.actions, self._changed
        )
        self._depth: IntArray | None = None
        self._stamp: IntArray | None = None

    @property
    def quiet(self) -> bool:
        """True when the last level raised nothing that could raise more."""
        return bool(self._num_changed == 0)

    @property
    def front_share(self) -> float:
        """Share of the states that the last level raised."""
        return float(self._num_changed / self.mdp.num_states)

    @property
    def depth(self) -> IntArray:
        """(S,) the last level that raised each state's value, at least 1."""
        if self._depth is None:
            self._depth = np.ones(self.mdp.num_states, np.uint16)
        return self._depth

    def deepen(self, levels: int) -> None:
        """Go `levels` deeper by backing up every state: h-PI's way."""
        for _ in range(levels):
            if self.quiet:
                self.level += 1
                continue
            deeper = backup(self.mdp, self.values, self.actions)
            _, self._num_changed = kernels.keep_gains(
                self.values, self.actions, self.spread, self.spread, deeper.values, deeper.actions, self._changed
            )
            self.values, self.actions = deeper.values, deeper.actions
            self.level += 1

    def wave(
        self,
        levels: int = UNLIMITED,
        *,
        frozen_hubs: bool = False,
        budget: int = UNLIMITED,
        widest: float = 1.0,
    ) -> bool:
        """Go deeper by backing up only predecessors of what changed: the same values, level by level.

        Stops early where nothing changes any more, where the levels' work would pass `budget` pairs or a level's
        front the share `widest` of the states. With `frozen_hubs` the hubs keep their expectation under v:
        still a lower bound of T^k v that only rises. Returns True if a limit stopped it.
        """
        if self.quiet or levels <= 0:
            return False
        mdp, n = self.mdp, self.mdp.num_states
        if self._stamp is None:
            self._stamp = np.zeros(n, np.int32)
            self._front = np.empty(n, mdp.codes.dtype)
            self._new_value = np.empty(n)
            self._new_action = np.empty(n, self.actions.dtype)
        most = min(levels, LEVELS_AT_ONCE)
        work = np.zeros(self.level + most + 1, np.int64)
        before = self.level
        graph = mdp.predecessors
        self.level, self._num_changed, limited = kernels.wave(
            mdp.rewards,
            mdp.codes,
            *table(mdp),
            self._hub,
            graph.start,
            graph.sources,
            graph.shared_row_users,
            mdp.discount,
            self.spread,
            frozen_hubs,
            most,
            budget,
            int(widest * n),
            self.level,
            self.values,
            self.actions,
            self.depth,
            self._changed,
            self._num_changed,
            self._stamp,
            self._front,
            self._new_value,
            self._new_action,
            work,
        )
        self.wave_pairs += int(work[before + 1 :].sum())
        return bool(limited)


LEVELS_AT_ONCE = 60_000
"""No single wave goes deeper: depths are kept in 16 bits."""
