"""TLPI, threshold-based lookahead (the paper, algorithm 1): aim at contraction κ, deepen where one step falls short.

    states with  |Ṽ*(s) − T V^π(s)| > κ ‖Ṽ* − V^π‖∞ − β   look  h(κ) = min {h : γ^h <= κ}  steps ahead, others one

β = ε(κ + 1) makes up for a prior that is off by at most ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._validation import non_negative, open_fraction, parse_number
from adalook.errors import ArgumentError
from adalook.mdp.model import MDP
from adalook.planning.lookahead.levels import MAX_LEVELS, LookaheadLevels
from adalook.planning.queries import LookaheadRoots
from adalook.planning.rules.base import PriorMethod, Step
from adalook.planning.rules.spec import MethodGroup, MethodSpec, ObservedRun, TheoryBound, tree_nodes


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
        object.__setattr__(self, "kappa", open_fraction.validate("TLPI: kappa", kappa))
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "beta", non_negative.validate("TLPI: beta", beta))

    @property
    def name(self) -> str:
        return f"TLPI({self.kappa:.4g})"

    def depth(self, discount: float) -> int:
        """Return h(κ), the least h with γ^h <= κ; guarded so that κ = γ^h gives h and not h + 1."""
        if discount == 0.0:
            return 1
        depth = max(1, math.ceil(math.log(self.kappa) / math.log(discount) - 1e-9))
        if depth > MAX_LEVELS:
            raise ArgumentError(
                f"TLPI: kappa {self.kappa:g} takes {depth} steps at discount {discount:g}",
                expected=f"at most {MAX_LEVELS}",
                remedy=f"take kappa >= {discount**MAX_LEVELS:.2g}",
            )
        return depth

    def improve(self, look: LookaheadLevels) -> Step:
        prior = self.prior_values
        # On the chain, distances equal the threshold but for rounding: rounding must not decide.
        threshold = self.kappa * np.abs(prior - look.start).max() - self.beta + look.switch_tol
        deep = np.flatnonzero(np.abs(prior - look.values) > threshold)
        h = self.depth(look.mdp.discount)
        if h == 1 or not len(deep):
            return Step(look.values, look.actions)
        values, actions = look.values.copy(), look.actions.copy()
        look.wave(h - 1)
        values[deep], actions[deep] = look.values[deep], look.actions[deep]
        depth = np.ones(len(values), np.uint16)
        depth[deep] = h
        roots = (LookaheadRoots(1), LookaheadRoots(h, deep))
        return Step(values, actions, depth, roots, "threshold")


def _parse(setting: str, mdp: MDP, prior: Any) -> TLPI:
    """Read κ: a number, or g^h for the discount to the power of h, which is the contraction of h steps."""
    if not setting.startswith("g^"):
        return TLPI(parse_number(setting, float, f"tlpi:{setting}: kappa"), prior)
    power = parse_number(setting.removeprefix("g^"), int, f"tlpi:{setting}: the power of g")
    if not 1 <= power <= MAX_LEVELS:
        raise ArgumentError(
            "tlpi: the power of g is wrong", expected=f"a whole number 1..{MAX_LEVELS}", got=setting[:40]
        )
    return TLPI(mdp.discount**power, prior)


def _label(setting: str) -> str:
    return f"TLPI γ^{setting.removeprefix('g^')}" if setting.startswith("g^") else f"TLPI {setting}"


def _bound(method: TLPI, mdp: MDP, run: ObservedRun) -> TheoryBound:
    """Return theorem 1's bound: as fast as (h − 1)-PI, at S (c(1) + θ(κ) c(h)) an iteration; table 1 says h-PI."""
    depth = method.depth(mdp.discount)
    one, deep = (tree_nodes(mdp.num_actions, h) for h in (1, depth))
    return TheoryBound(
        contraction=mdp.discount ** (depth - 1) if depth > 1 else None,
        table_contraction=mdp.discount**depth,
        cost_per_iteration=mdp.num_states * one + run.most_deep_states * deep,
        measured={"theta_kappa": run.most_deep_states / mdp.num_states},
    )


SPEC = MethodSpec(
    name="tlpi",
    method_class=TLPI,
    group=MethodGroup("tlpi", "TLPI", "TLPI, exact prior", "#0072b2", "s", in_paper=True),
    examples=("tlpi:0.94", "tlpi:g^3"),
    parse=_parse,
    label=_label,
    bound=_bound,
    compared=("tlpi:g^3",),
)
