"""Where a search begins.

How much a search may cost. A search that runs out of it answers with its last complete level.

Complaints about arguments that no search can work with, before anything is simulated.

`search`: look ahead from a state in every direction, level by level (decisions 7 to 12 of the design).

    v_h(s₀, a) = max over paths of h steps that begin with a of  Σ_{t<h} γ^t r_t + γ^h V_h(s_h)

A path that ends early counts with the rewards it has collected and no V. Breadth first, so that a rule can decide on
each level whether another is worth its price; equal nodes are merged, which changes no value (see `nodes`).

With a beam (`width`), at most that many nodes of a level are expanded, the most valuable ones: the cost is linear in
the depth, and the values of actions are lower bounds of those of the full tree.
"""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.errors import ArgumentError
from adalook.search.forest import Forest
from adalook.search.result import SearchResult
from adalook.search.rules.base import DepthRule, ValueFunction, is_number, is_whole
from adalook.search.workers.expander import Expander, InProcess
from adalook.simulators.base import Simulator, State


@dataclass(frozen=True, eq=False)
class Root:
    """A saved state and what the world shows there.

    The two come together because some worlds cannot show a state right after it was restored (Atari's screen is stale
    until the next step).

    The episode must not be over there. A state alone does not tell, so no search can complain: it would look ahead into
    whatever the world does when it is stepped after its end.
    """

    state: State
    observation: np.ndarray[Any, Any]
    """(*observation_shape)"""

    @classmethod
    def of(cls, sim: Simulator) -> Root:
        """The live world as it is now."""
        return cls(sim.save(), sim.observe())


@dataclass(frozen=True)
class Budget:
    """Limits of one search. The first level is always completed, since without it there is no answer.

    >>> Budget(nodes=500, seconds=0.05)
    Budget(nodes=500, seconds=0.05)
    """

    nodes: int | None = None
    """Steps that may be simulated for one root. A level that would go beyond is not begun."""
    seconds: float | None = None
    """Time for the whole call. A level that is not complete by then is given up; value functions are waited for."""

    def __post_init__(self) -> None:
        for name, limit in (("nodes", self.nodes), ("seconds", self.seconds)):
            if limit is not None and not (is_number(limit) and limit > 0):
                raise ArgumentError(f"the budget of {name} is wrong", expected="a number > 0, or None", got=repr(limit))


def check_kinds(value_fn: Any, rule: Any, budget: Any, expander: Any) -> None:
    """Complain about what is not of the kind that `search` asks for."""
    if not callable(value_fn):
        raise ArgumentError(
            "the value function is wrong",
            expected="a function of (observations, depth) that returns values",
            got=repr(value_fn),
        )
    if not isinstance(rule, DepthRule):
        raise ArgumentError("the rule is wrong", expected="a DepthRule, such as FixedDepth(3)", got=repr(rule))
    if budget is not None and not isinstance(budget, Budget):
        raise ArgumentError(
            "the budget is wrong", expected="a Budget, such as Budget(nodes=500), or None", got=repr(budget)
        )
    if expander is not None and not callable(getattr(expander, "expand", None)):
        raise ArgumentError(
            "the expander is wrong", expected="an Expander, such as Workers(sim, 2), or None", got=repr(expander)
        )


def check_numbers(discount: Any, width: Any) -> None:
    """Complain about a discount or a width out of its range."""
    if not is_number(discount) or not 0.0 < discount <= 1.0:
        raise ArgumentError("the discount is wrong", expected="a number in (0, 1]", got=repr(discount))
    # An infinite beam is no whole number, but everybody knows what is meant.
    if width is not None and width != math.inf and not (is_whole(width) and width >= 1):
        raise ArgumentError("the width is wrong", expected="a whole number >= 1, or None", got=repr(width))


def check_roots(roots: Any) -> None:
    """Complain about roots that are none: bare states, simulators, or one root where many are expected."""
    if isinstance(roots, Root) or not isinstance(roots, Sequence):
        raise ArgumentError("the roots are wrong", expected="a list of Root", got=f"one {type(roots).__name__}")
    for root in roots:
        if not isinstance(root, Root):
            raise ArgumentError(
                "the root is wrong", expected="a Root, such as Root.of(sim)", got=f"a {type(root).__name__}"
            )


def checked_seeds(seed: Any, count: int) -> list[int]:
    """One seed for each of `count` roots, of one for all or of one for each."""
    if is_whole(seed):
        return [int(seed)] * count
    if not isinstance(seed, Sequence | np.ndarray) or not all(isinstance(each, numbers.Integral) for each in seed):
        raise ArgumentError(
            "the seed is wrong", expected="a whole number, or one for each root of search_many", got=repr(seed)
        )
    if len(seed) != count:
        raise ArgumentError("there must be a seed for each root", expected=f"{count} seeds", got=len(seed))
    return [int(each) for each in seed]


def search(
    sim: Simulator,
    root: Root,
    value_fn: ValueFunction,
    rule: DepthRule,
    *,
    discount: float,
    seed: int = 0,
    width: int | None = None,
    budget: Budget | None = None,
    expander: Expander | None = None,
    every_level: bool = False,
) -> SearchResult:
    """Look ahead from one root; the live world of `sim` is left alone.

    Args:
        sim: the world.
        root: where to begin: a state whose episode is not over.
        value_fn: (observations (n, *observation_shape), depth) -> (n,) what leaves are worth. It is called once for
            each level that is looked at, with all its distinct observations, but for leaves that have ended.
        rule: how deep to look, such as FixedDepth(3).
        discount: γ in (0, 1], for each step.
        seed: of the tree's own randomness, if the world has any.
        width: expand at most so many nodes of a level; None: all.
        budget: of nodes and time; None: no limit.
        expander: who steps the nodes, such as Workers(sim, 2); None: this process.
        every_level: look at every level, also where neither the rule nor a beam or a budget needs to: for learners
            that store the best leaf of each depth.

    >>> import numpy as np
    >>> import adalook as al
    >>> from adalook.search import FixedDepth, Root, search
    >>> from adalook.simulators.tabular import TabularSimulator
    >>> sim = TabularSimulator(al.zoo.chain(n=5), start=0)
    >>> _ = sim.reset(seed=0)
    >>> result = search(sim, Root.of(sim), lambda leaves, depth: np.zeros(len(leaves)), FixedDepth(3), discount=0.9)
    >>> result.depth, result.nodes, result.tree_nodes
    (3, 10, 14)
    """
    return search_many(
        sim,
        [root],
        value_fn,
        rule,
        discount=discount,
        seed=seed,
        width=width,
        budget=budget,
        expander=expander,
        every_level=every_level,
    )[0]


def search_many(
    sim: Simulator,
    roots: Sequence[Root],
    value_fn: ValueFunction,
    rule: DepthRule,
    *,
    discount: float,
    seed: int | Sequence[int] = 0,
    width: int | None = None,
    budget: Budget | None = None,
    expander: Expander | None = None,
    every_level: bool = False,
) -> list[SearchResult]:
    """Look ahead from many roots at once: their leaves are evaluated together, their nodes expanded together.

    The answers are those of `search` for each root alone (up to what the value function makes of larger batches).
    `seed` is one for all or one for each; the other arguments are those of `search`. A budget of nodes is for each
    root, a budget of time for all of them.
    """
    check_kinds(value_fn, rule, budget, expander)
    check_numbers(discount, width)
    check_roots(roots)
    seeds = checked_seeds(seed, len(roots))
    if not roots:
        return []
    forest = Forest(sim, roots, value_fn, rule, discount, width, budget or Budget(), every_level)
    with contextlib.ExitStack() as stack:
        grower = InProcess(sim) if expander is None else expander
        stack.callback(grower.clear)
        forest.grow(grower, [sim.branch(root.state, each) for root, each in zip(roots, seeds, strict=True)])
    return [forest.result(index) for index in range(len(roots))]
