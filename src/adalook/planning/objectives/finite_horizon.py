"""Finite horizons: `solve(mdp, horizon=T)`, by backward induction.

With t steps to go, V_t(s) = max_a r(s, a) + γ Σ P(s' | s, a) V_{t-1}(s'), from given terminal values V_0. The answer
depends on time: `policy[k]` is what to do in step k, when T − k steps are to go. γ = 1 is welcome, for every model.

A computed backup is off by at most δ (see `certificate`), so |v_t − V_t| <= e_t with e_t = γρ e_{t-1} + δ_t, e_0 = 0;
v_t is also the computed backup of the policy's own action, so the policy's values are as near, and its loss is at most
2 e_t. Both are rounded upward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._validation import integer
from adalook.mdp.files import check_memory
from adalook.mdp.model import MDP
from adalook.planning.certificate import rounding_bound
from adalook.planning.checks import checked_state_values
from adalook.planning.lookahead.levels import action_values, backup

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class FiniteHorizonSolution:
    """The answer of `solve(mdp, horizon=T)`: a policy for each of T steps.

    >>> import adalook as al
    >>> sol = al.solve(al.zoo.chain(n=9), horizon=5)
    >>> sol.policy.shape, sol.values.shape
    ((5, 11), (6, 11))
    """

    mdp: MDP
    values: FloatArray
    """(T + 1, S) `values[k]` is the expected return from step k on; the last row holds the terminal values."""
    policy: IntArray
    """(T, S) the action of each state in step k."""
    errors: FloatArray
    """(T + 1,) certified: |values[k] − V_k| <= errors[k], for the optimal values and for the policy's own."""
    seconds: float

    @property
    def horizon(self) -> int:
        """Number of steps T."""
        return len(self.policy)

    @property
    def lower(self) -> FloatArray:
        """(T + 1, S) certified: lower <= the optimal values, and the policy's."""
        return np.nextafter(self.values - self.errors[:, None], -math.inf)

    @property
    def upper(self) -> FloatArray:
        """(T + 1, S) certified: upper >= the optimal values, and the policy's."""
        return np.nextafter(self.values + self.errors[:, None], math.inf)

    @property
    def policy_loss(self) -> float:
        """Certified bound on how much the policy can lose against the best one, from step 0 on."""
        return float(2.0 * self.errors[0])

    def action_values(self, step: int) -> FloatArray:
        """Return (S, A) the expected return of each action in a step; −inf where an action is not offered."""
        step = integer(min=0, max=self.horizon - 1).validate("step", step)
        return action_values(self.mdp, self.values[step + 1])

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas table, a row per step and state."""
        from adalook.planning.tables import horizon_frame

        return horizon_frame(self)

    def __str__(self) -> str:
        from adalook.planning.tables import horizon_text

        return f"{self!r}\n{horizon_text(self.mdp, self.policy)}"

    def __repr__(self) -> str:
        return (
            f"FiniteHorizonSolution({self.horizon} steps, {self.mdp.num_states:,} states; values of step 0 from "
            f"{self.values[0].min():.6g} to {self.values[0].max():.6g}, policy_loss <= {self.policy_loss:.2g})"
        )


def solve_finite_horizon(mdp: MDP, horizon: int, terminal_values: Any = None) -> FiniteHorizonSolution:
    """Solve by backward induction: T backups of every state."""
    began = perf_counter()
    steps = integer(min=1).validate("horizon", horizon)
    check_memory(f"horizon {steps}, every step kept,", (steps + 1) * mdp.num_states * 12)
    values = np.zeros((steps + 1, mdp.num_states))
    policy = np.zeros((steps, mdp.num_states), np.int32)
    if terminal_values is not None:
        values[-1] = checked_state_values(mdp, terminal_values, "terminal_values")
    errors = np.zeros(steps + 1)
    actions: IntArray = np.zeros(mdp.num_states, np.int32)
    grow, room = mdp.discount * mdp.row_sums[1], 1.0 + 2.0**-50
    for k in range(steps - 1, -1, -1):
        step = backup(mdp, values[k + 1], actions)
        values[k], policy[k] = step.values, step.actions
        actions = step.actions
        errors[k] = (grow * errors[k + 1] + rounding_bound(mdp, step.residual.size)) * room
    for array in (values, policy, errors):
        array.flags.writeable = False
    return FiniteHorizonSolution(mdp, values, policy, errors, perf_counter() - began)
