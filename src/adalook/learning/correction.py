"""The leaf correction: what the leaves of a tree are overrated by when the best of them is taken.

A maximum over n leaves whose values err by σ finds, on average, one that is overrated by about σ √(2 log n). Leaves
below the agent's own action err by σ_o, those below other actions, which it hardly ever took, by σ_e. So an action that
is not its own has to lead, d steps ahead, by

    γ^d (σ_e √(2 log n_e) − σ_o √(2 log n_o))

with n_o leaves below the agent's own action and n_e below all. In an exhaustive tree these are A^(d−1) and A^d, and the
lead is γ^d √(2 log A) (σ_e √d − σ_o √(d − 1)) (Dalal et al. 2021). σ_o and σ_e are the spreads of one-step errors
Q(s, a) − (r + γ max Q(s')), each without what all actions of a state share, which decides nothing.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from adalook._arrays import BoolArray, FloatArray
from adalook.simulators.base import Simulator


def optimism(own: float, others: float, *, discount: float, own_leaves: float, all_leaves: float) -> float:
    """Return the lead that an action which is not the agent's own must have.

    Args:
        own: σ_o.
        others: σ_e.
        discount: γ^d.
        own_leaves: n_o, at least 1.
        all_leaves: n_e, at least n_o.

    >>> round(optimism(0.5, 1.0, discount=1.0, own_leaves=4, all_leaves=16), 3)  # √(2 log 4) (√2 − 0.5)
    1.522
    """
    spread = others * math.sqrt(2.0 * math.log(all_leaves)) - own * math.sqrt(2.0 * math.log(own_leaves))
    return max(0.0, discount * spread)


class RunningSpread:
    """The spread of one-step errors, measured while an agent acts.

    Args:
        memory: decisions after which an error counts 1/e of a new one, as the network goes on learning.

    >>> spread = RunningSpread()
    >>> spread.update(np.array([1.0, 0.0, -1.0]), own=0)
    >>> round(spread.own, 3), round(spread.others, 3)
    (1.0, 0.707)
    """

    def __init__(self, memory: float = 1_000.0) -> None:
        self._decay = math.exp(-1.0 / memory)
        self._sums = np.zeros((2, 2))
        """(own, others) × (weight, weighted sum of squares)"""

    def update(self, errors: FloatArray, own: int) -> None:
        """Add the errors (A,) of one state's actions, -inf or NaN where one was not tried."""
        tried: BoolArray = np.isfinite(errors)
        if not tried[own] or tried.sum() < 2:
            return
        squares = (errors[tried] - errors[tried].mean()) ** 2
        mine = np.flatnonzero(tried) == own
        self._sums *= self._decay
        self._sums += [[1.0, squares[mine].sum()], [squares[~mine].size, squares[~mine].sum()]]

    @property
    def own(self) -> float:
        """σ_o, 0 before anything was measured."""
        return self._root(0)

    @property
    def others(self) -> float:
        """σ_e, 0 before anything was measured."""
        return self._root(1)

    def _root(self, kind: int) -> float:
        weight, squares = self._sums[kind].tolist()
        return math.sqrt(squares / weight) if weight else 0.0

    def state(self) -> list[Any]:
        """Return what it goes on from, as plain data."""
        return self._sums.tolist()

    def load_state(self, state: list[Any]) -> None:
        """Go on from what `state` gave."""
        self._sums = np.array(state, np.float64).reshape(2, 2)


class LeafCorrection:
    """The leaf correction of trees that grow in live environments, measured in each of them while it is played.

    Each environment has a spread of its own, so that results do not depend on which process holds which of them.
    """

    def __init__(self) -> None:
        self._spreads: WeakKeyDictionary[Simulator, RunningSpread] = WeakKeyDictionary()

    def corrected(
        self,
        env: Simulator,
        values: FloatArray,
        after_one_step: FloatArray,
        searched: FloatArray,
        *,
        discount: float,
        leaves: FloatArray,
    ) -> FloatArray:
        """Return the values of first actions, less the optimism of those that are not the agent's own.

        Args:
            env: the live environment.
            values: (A,) Q(s₀, ·), whose best is the agent's own action.
            after_one_step: (A,) r + γ max Q(s₁); -inf where an action was not tried.
            searched: (A,) the best leaf below each action, likewise.
            discount: γ^d, of the leaves.
            leaves: (A,) how many there are below each.
        """
        own = int(np.where(np.isfinite(searched), values, -np.inf).argmax())
        spread = self._of(env)
        spread.update(np.asarray(values - after_one_step, np.float64), own)
        lead = optimism(
            spread.own,
            spread.others,
            discount=discount,
            own_leaves=max(1.0, float(leaves[own])),
            all_leaves=max(1.0, float(leaves.sum())),
        )
        corrected = searched - lead
        corrected[own] = searched[own]
        return corrected

    def _of(self, env: Simulator) -> RunningSpread:
        return self._spreads.setdefault(env, RunningSpread())

    def state(self, env: Simulator) -> list[Any]:
        """Return the spread of an environment, as plain data."""
        return self._of(env).state()

    def load_state(self, env: Simulator, state: list[Any]) -> None:
        """Go on from what `state` gave for the same environment."""
        self._of(env).load_state(state)
