"""Lookahead from one evaluated policy: W_k = T^k V^π, level by level.

A level raises a state's value, and replaces its action, only when the gain exceeds a tolerance; the action that a state
ends with is therefore one that attains T^k V^π there, and the one it had before whenever that attains it too.
This is what ends policy iteration on ties. Let e bound |v − V^π| and δ the rounding of one backup.

* Level one: a gain above `switch_tol` = 2e + δ is a true advantage Q^π(s, a) − V^π(s) > 0.
* Deeper levels: with c = `raise_tol` = (δ + 2e)/(1 − γ), Y = V^π + max(0, U − v − c) satisfies T_π' Y >= Y for the new
  policy π' as long as deeper gains exceed c. Hence V^π' >= Y >= V^π, and strictly so wherever a level raised the value.

So the values of successive policies rise and no policy comes back. (With depths that differ between neighbours, as
in TLPI and QLPI, the second point fails: see `solve`.)

Values of a policy that was evaluated in part are no V^π to gain on. They are backed up as value iteration does: a level
is T^k v whole, with neither tolerance nor policy to keep.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning import threads
from adalook.planning.lookahead import kernels
from adalook.planning.lookahead.kernels import WaveLimits, WaveState
from adalook.planning.queries import LookaheadRoots

if TYPE_CHECKING:
    from adalook.mdp.model import MDP
    from adalook.mdp.transitions import ModelArrays

MAX_LEVELS = 60_000
"""No lookahead goes deeper: depths are kept in 16 bits."""
UNLIMITED = 2**62
NOBODY: IntArray = np.empty(0, np.int32)


class Residual(NamedTuple):
    """The residual of one backup of v: extremes of T v − v and of T_π v − v as computed, and max|v|."""

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


def action_values(mdp: MDP, values: FloatArray, model: ModelArrays | None = None) -> FloatArray:
    """Return (S, A) r(s, a) + γ Σ P(s' | s, a) v(s'); −inf where an action is not offered.

    `model` may replace the rewards and the discount.
    """
    model = mdp.arrays if model is None else model
    shared = np.empty(mdp.rows.num_shared)
    result = np.empty(mdp.codes.shape)
    kernels.shared_expectations(model, values, shared)
    kernels.action_values(model, shared, values, result)
    return result


class Searched(NamedTuple):
    """The work of a lookahead: the depth that each state looked to, and what that took."""

    depth: IntArray  # (S,)
    max_depth: int
    mean_depth: float
    roots: tuple[LookaheadRoots, ...]
    """The searches, for counting queries."""
    backed_up: int = 0
    """(state, action) pairs of one-step backups beyond these searches."""

    @classmethod
    def of(cls, depth: IntArray | int, num_states: int, roots: tuple[LookaheadRoots, ...] | None = None) -> Searched:
        """Return searches to a depth per state (S,), or to one for all; this gives the roots unless they are known."""
        per_state = np.broadcast_to(np.asarray(depth, np.uint16), num_states)
        distinct = per_state if per_state.strides[0] else per_state[:1]
        searches = _roots_of(distinct) if roots is None else roots
        return cls(per_state, int(distinct.max()), float(distinct.mean()), searches)


def _roots_of(depth: IntArray) -> tuple[LookaheadRoots, ...]:
    """Return the searches of states that look to these depths: every state one step, then some of them deeper."""
    depths = np.unique(depth).tolist()
    if len(depths) == 1:
        return (LookaheadRoots(depths[0]),)
    return (LookaheadRoots(1), *(LookaheadRoots(h, np.flatnonzero(depth == h)) for h in depths if h > 1))


@lru_cache
def _search_everywhere(depth: int, num_states: int) -> Searched:
    """Return the search of every state to one depth, without memory per state; nobody can write to it."""
    per_state: IntArray = np.ndarray(num_states, np.uint16, np.array([depth], np.uint16), strides=(0,))
    per_state.flags.writeable = False
    return Searched(per_state, depth, float(depth), (LookaheadRoots(depth),))


class LookaheadLevels:
    """T^level v and the actions that attain it; starts at level 1, goes on by `deepen` or `wave`.

    Args:
        mdp: the model.
        values: (S,) the evaluated policy's values v; kept, not changed.
        policy: (S,) its actions; kept, not changed.
        first: the backup of v; its arrays become this object's own, but for those of partly evaluated values.
        exact: whether v is the policy's value, so that gains can be told from errors.
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
        exact: bool,
        switch_tol: float,
        raise_tol: float,
        price: int,
    ) -> None:
        self.mdp, self.start, self.policy, self.exact, self.price = mdp, values, policy, exact, price
        self.switch_tol, self.raise_tol = switch_tol, max(switch_tol, raise_tol)
        self.values, self.actions = first.values, first.actions
        self.level = 1
        self.wave_pairs = 0
        """(state, action) pairs that wavefronts backed up."""
        self.switched = 0
        """States with a better action than the policy's; only where values are exact."""
        self._shared = first.shared
        self._raised: IntArray = NOBODY
        self._num_raised = 0
        if exact:
            self._raised = np.empty(mdp.num_states, mdp.codes.dtype)
            self.switched, self._num_raised = kernels.keep_gains(
                values, policy, switch_tol, self.raise_tol, self.values, self.actions, self._raised
            )
        self._before: FloatArray | None = None if exact else values
        """(S,) of partly evaluated values, those of the level before, until a wave asks who was raised."""
        self._searched_levels = 1
        self._deepened_pairs = 0
        self._depth: IntArray | None = None
        self._stamp: IntArray | None = None

    @property
    def raised_share(self) -> float:
        """Share of the states that the last level raised."""
        self._list_raised()
        return float(self._num_raised / self.mdp.num_states)

    @property
    def depth(self) -> IntArray:
        """(S,) how deep each state looked: to the last level, or the last one of a wave that raised its value."""
        if self._depth is None:
            return _search_everywhere(self.level, self.mdp.num_states).depth
        return self._depth

    @property
    def searched(self) -> Searched:
        """The work that was done so far."""
        pairs = self.wave_pairs + self._deepened_pairs
        if self._depth is None or self.level == 1:
            searched = _search_everywhere(self.level, self.mdp.num_states)
            return searched._replace(backed_up=pairs) if pairs else searched
        roots = (LookaheadRoots(self._searched_levels),)
        return Searched(self._depth, int(self._depth.max()), float(self._depth.mean()), roots, pairs)

    @property
    def improvement(self) -> str:
        """The name of what was done so far, for the trace."""
        if self.level == 1:
            return "one step"
        return f"{self.level} steps" if self._depth is None else "wavefront"

    def deepen(self, levels: int) -> None:
        """Go `levels` deeper by backing up every state, as h-PI does."""
        for _ in range(levels):
            self.level += 1
            if self._depth is None:
                self._searched_levels = self.level
            else:  # on the values of a wave, which are stored: one-step backups
                self._depth[:] = self.level
                self._deepened_pairs += self.mdp.num_pairs
            if self.exact and self._num_raised == 0:
                continue
            deeper = backup(self.mdp, self.values, self.actions)
            if self.exact:
                _, self._num_raised = kernels.keep_gains(
                    self.values,
                    self.actions,
                    self.raise_tol,
                    self.raise_tol,
                    deeper.values,
                    deeper.actions,
                    self._raised,
                )
            else:
                self._before = self.values
            self.values, self.actions = deeper.values, deeper.actions

    def _list_raised(self) -> None:
        """List who was raised by the last level of partly evaluated values, if that is not known yet."""
        if self._before is None:
            return
        raised = np.flatnonzero(self.values - self._before > self.raise_tol)
        self._raised = np.empty(self.mdp.num_states, self.mdp.codes.dtype)
        self._raised[: len(raised)] = raised
        self._num_raised, self._before = len(raised), None

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
        still a lower bound of T^k v that only rises. Partly evaluated values only rise, too, where T^k v might fall.
        Returns True if a limit stopped it.
        """
        self._list_raised()
        if self._num_raised == 0 or levels <= 0:
            return False
        mdp, predecessors = self.mdp, self.mdp.predecessors  # before the arrays below: making them takes room
        if not self.exact:
            self.values, self.actions = self.values.copy(), self.actions.copy()
        if self._depth is None:
            self._depth = np.full(mdp.num_states, self.level, np.uint16)
        limits = WaveLimits(self.raise_tol, freeze_shared, levels, budget, int(max_front * mdp.num_states))
        if self._stamp is None:
            self._stamp, self._front = np.zeros(mdp.num_states, np.int32), np.empty_like(self._raised)
        state = WaveState(self.values, self.actions, self._depth, self._raised, self._shared, self._stamp, self._front)
        self.level, self._num_raised, pairs, limited = kernels.wave(
            mdp.arrays, predecessors, limits, state, self.level, self._num_raised
        )
        self.wave_pairs += pairs
        return bool(limited)
