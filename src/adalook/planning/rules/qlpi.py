"""QLPI, quantile-based lookahead (the paper, algorithm 2): a budget of states for each depth.

    for each depth h with θ_h > 0, ascending:
        the ⌈θ_h S⌉ + m states farthest from Ṽ*, by |Ṽ*(s) − U(s)| as it stands then, look h steps ahead

Depth 1 is done for every state first. States are taken by rank, ties by their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adalook.errors import ArgumentError
from adalook.planning.lookahead.levels import Lookahead
from adalook.planning.queries import Search
from adalook.planning.rules.base import PriorMethod, Step, whole_depth


@dataclass(frozen=True, eq=False, init=False)
class QLPI(PriorMethod):
    """Quantile-based lookahead policy iteration.

    Args:
        budgets: {depth: share of the states}, such as {2: 0.1, 4: 0.05, 8: 0.02}.
        prior: Ṽ* (S,).
        slack: m, extra states per depth for a prior that preserves order only up to m places.

    >>> import adalook as al
    >>> mdp = al.zoo.chain(n=59)
    >>> al.solve(mdp, al.QLPI({2: 0.1, 4: 0.05}, prior=al.priors.exact(mdp))).converged
    True
    """

    budgets: Mapping[int, float]
    slack: int = 0

    def __init__(self, budgets: Mapping[int, float], prior: object, slack: int = 0) -> None:
        if not isinstance(budgets, Mapping):
            raise ArgumentError(
                "QLPI: budgets are wrong", expected="{depth: share}, such as {2: 0.1, 4: 0.05}", got=repr(budgets)
            )
        for depth, share in budgets.items():
            whole_depth(depth, "QLPI")
            number = isinstance(share, int | float | np.floating | np.integer) and not isinstance(share, bool)
            if not number or not 0.0 <= float(share) <= 1.0:
                raise ArgumentError(
                    f"QLPI: the budget of depth {depth} is wrong", expected="a share in [0, 1]", got=repr(share)
                )
        whole = isinstance(slack, int | np.integer) and not isinstance(slack, bool)
        if not whole or slack < 0:
            raise ArgumentError("QLPI: slack is wrong", expected="a whole number >= 0", got=repr(slack))
        object.__setattr__(self, "budgets", {int(h): float(budgets[h]) for h in sorted(budgets)})
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "slack", int(slack))

    @property
    def name(self) -> str:
        return f"QLPI({', '.join(f'{h}: {share:g}' for h, share in self.budgets.items())})"

    def places(self, share: float, num_states: int) -> int:
        """How many states a share buys; guarded so that a share of k/S buys k."""
        return min(num_states, math.ceil(share * num_states - 1e-9) + self.slack)

    def improve(self, look: Lookahead) -> Step:
        prior = self.prior_values
        values, actions = look.values.copy(), look.actions.copy()
        depth = np.ones(len(values), np.uint16)
        searches = [Search(1)]
        for h, share in self.budgets.items():
            if h == 1 or share == 0.0:
                continue
            farthest = np.argsort(-np.abs(prior - values), kind="stable")[: self.places(share, len(values))]
            look.wave(h - look.level)
            values[farthest], actions[farthest] = look.values[farthest], look.actions[farthest]
            depth[farthest] = h
            searches.append(Search(h, farthest))
        return Step(values, actions, depth, tuple(searches))
