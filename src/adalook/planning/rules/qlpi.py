"""QLPI, quantile-based lookahead (the paper, algorithm 2): a budget of states for each depth.

    for each depth h with θ_h > 0, ascending:
        the ⌈θ_h S⌉ + m states farthest from Ṽ*, by |Ṽ*(s) − U(s)| as it stands then, look h steps ahead

Depth 1 is done for every state first. States are taken by rank, ties by their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._validation import fraction, integer, parse_number
from adalook.errors import ArgumentError, shown
from adalook.mdp.model import MDP
from adalook.planning.lookahead.levels import LookaheadLevels
from adalook.planning.queries import LookaheadRoots
from adalook.planning.rules.base import PriorMethod, Step, lookahead_depth
from adalook.planning.rules.spec import MethodGroup, MethodSpec, ObservedRun, TheoryBound, tree_nodes


@dataclass(frozen=True, eq=False, init=False)
class QLPI(PriorMethod):
    """Quantile-based lookahead policy iteration.

    Args:
        budgets: {depth: share of the states}, such as {2: 0.1, 4: 0.05, 8: 0.02}.
        prior: Ṽ* (S,).
        slack: m, extra states per depth for a prior that preserves order only up to m ranks.

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
                "QLPI: budgets are wrong", expected="{depth: share}, such as {2: 0.1, 4: 0.05}", got=shown(budgets)
            )
        shares = {
            lookahead_depth.validate("QLPI: depth", depth): fraction.validate(
                f"QLPI: the budget of depth {depth}", share
            )
            for depth, share in budgets.items()
        }
        object.__setattr__(self, "budgets", dict(sorted(shares.items())))
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "slack", integer(0).validate("QLPI: slack", slack))

    @property
    def name(self) -> str:
        return f"QLPI({', '.join(f'{h}: {share:g}' for h, share in self.budgets.items())})"

    def num_deep(self, share: float, num_states: int) -> int:
        """Return how many states a share buys; guarded so that a share of k/S buys k."""
        return min(num_states, math.ceil(share * num_states - 1e-9) + self.slack)

    def improve(self, look: LookaheadLevels) -> Step:
        prior = self.prior_values
        values, actions = look.values.copy(), look.actions.copy()
        depth = np.ones(len(values), np.uint16)
        roots = [LookaheadRoots(1)]
        for h, share in self.budgets.items():
            if h == 1 or share == 0.0:
                continue
            farthest = np.argsort(-np.abs(prior - values), kind="stable")[: self.num_deep(share, len(values))]
            look.wave(h - look.level)
            values[farthest], actions[farthest] = look.values[farthest], look.actions[farthest]
            depth[farthest] = h
            roots.append(LookaheadRoots(h, farthest))
        return Step(values, actions, depth, tuple(roots), "quantiles")


def _parse(setting: str, mdp: MDP, prior: Any) -> QLPI:
    """Read DEPTH=SHARE,DEPTH=SHARE,…; a share is a number, or k/S for k states."""
    budgets: dict[int, float] = {}
    for part in setting.split(","):
        depth, equals, share = part.partition("=")
        if not equals:
            raise ArgumentError(f"qlpi:{setting} is wrong", expected="DEPTH=SHARE,DEPTH=SHARE,…", got=shown(part))
        level = parse_number(depth, int, f"qlpi:{setting}: a depth")
        if level in budgets:
            raise ArgumentError(f"qlpi:{setting} gives depth {level} more than once")
        what = f"qlpi:{setting}: the share of depth {level}"
        if share.endswith("/S"):
            budgets[level] = parse_number(share.removesuffix("/S"), int, what) / mdp.num_states
        else:
            budgets[level] = parse_number(share, float, what)
    return QLPI(budgets, prior)


def _label(setting: str) -> str:
    return f"QLPI ({', '.join(part.partition('=')[2] for part in setting.split(','))})"


def _bound(method: QLPI, mdp: MDP, run: ObservedRun) -> TheoryBound:
    """Return theorem 2's bound: contraction κ(θ), at S c(1) + Σ ⌈θ_h S⌉ c(h) an iteration."""
    states, actions = mdp.num_states, mdp.num_actions
    deep = sum(method.num_deep(share, states) * tree_nodes(actions, h) for h, share in method.budgets.items())
    kappa = run.induced_contraction
    return TheoryBound(kappa, kappa, states * tree_nodes(actions, 1) + deep, {"kappa_theta": kappa})


SPEC = MethodSpec(
    name="qlpi",
    method_class=QLPI,
    group=MethodGroup("qlpi", "QLPI", "QLPI, exact prior", "#d55e00", "D", in_paper=True),
    examples=("qlpi:2=0.1,4=0.05,8=0.02",),
    parse=_parse,
    label=_label,
    bound=_bound,
    compared=("qlpi:2=0.1,4=0.05,8=0.02",),
)
