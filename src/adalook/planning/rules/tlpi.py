"""TLPI, threshold-based lookahead (the paper, algorithm 1): aim at contraction κ, deepen where one step falls short.

    states with  |Ṽ*(s) − T V^π(s)| > κ ‖Ṽ* − V^π‖∞ − β   look  h(κ) = min {h : γ^h <= κ}  steps ahead, others one

β = ε(κ + 1) makes up for a prior that is off by at most ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adalook.errors import ArgumentError
from adalook.planning.lookahead.levels import LEVELS_AT_ONCE, Lookahead
from adalook.planning.queries import Search
from adalook.planning.rules.base import PriorMethod, Step


@dataclass(frozen=True, eq=False, init=False)
class TLPI(PriorMethod):
    """Threshold-based lookahead policy iteration.

    >>> import adalook as al
    >>> mdp = al.zoo.chain(n=59)
    >>> al.solve(mdp, al.TLPI(0.9**3, prior=al.priors.exact(mdp))).converged
    True
    """

    kappa: float
    beta: float = 0.0

    def __init__(self, kappa: float, prior: object, beta: float = 0.0) -> None:
        for name, value, good in (("kappa", kappa, _in_unit(kappa)), ("beta", beta, _finite(beta))):
            if not good:
                bounds = "0 < kappa < 1" if name == "kappa" else "a finite number >= 0"
                raise ArgumentError(f"TLPI: {name} is wrong", expected=bounds, got=repr(value))
        object.__setattr__(self, "kappa", float(kappa))
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "beta", float(beta))

    @property
    def name(self) -> str:
        return f"TLPI({self.kappa:.4g})"

    def depth(self, discount: float) -> int:
        """h(κ): the least h with γ^h <= κ; guarded so that κ = γ^h gives h and not h + 1."""
        if discount == 0.0:
            return 1
        depth = max(1, math.ceil(math.log(self.kappa) / math.log(discount) - 1e-9))
        if depth > LEVELS_AT_ONCE:
            raise ArgumentError(
                f"TLPI: kappa {self.kappa:g} takes {depth} steps at discount {discount:g}",
                expected=f"at most {LEVELS_AT_ONCE}",
                remedy=f"take kappa >= {discount**LEVELS_AT_ONCE:.2g}",
            )
        return depth

    def improve(self, look: Lookahead) -> Step:
        prior = self.prior_values
        # On the chain, distances equal the threshold but for rounding: dust must not decide.
        threshold = self.kappa * np.abs(prior - look.start).max() - self.beta + look.dust
        deep = np.flatnonzero(np.abs(prior - look.values) > threshold)
        h = self.depth(look.mdp.discount)
        if h == 1 or not len(deep):
            return Step(look.values, look.actions)
        values, actions = look.values.copy(), look.actions.copy()
        look.wave(h - 1)
        values[deep], actions[deep] = look.values[deep], look.actions[deep]
        depth = np.ones(len(values), np.uint16)
        depth[deep] = h
        return Step(values, actions, depth, (Search(1), Search(h, deep)))


def _in_unit(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and 0.0 < float(value) < 1.0


def _finite(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and 0.0 <= float(value) < math.inf
