"""`search`: look ahead from a state in every direction, level by level (decisions 7 to 12 of the design).

    v_h(s₀, a) = max over paths of h steps that begin with a of  Σ_{t<h} γ^t r_t + γ^h V_h(s_h)

A path that ends early counts with the rewards it has collected and no V. Breadth first, so that a rule can decide on
each level whether another is worth its price; equal nodes are merged, which changes no value (see `nodes`).

With a beam (`width`), at most that many nodes of a level are expanded, the most valuable ones: the cost is linear in
the depth, and the values of actions are lower bounds of those of the full tree.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from adalook.search.budget import Budget
from adalook.search.checks import check_kinds, check_numbers, check_roots, checked_seeds
from adalook.search.expander import Expander, InProcess
from adalook.search.forest import Forest
from adalook.search.result import SearchResult
from adalook.search.root import Root
from adalook.search.rule import DepthRule, ValueFunction
from adalook.simulators.base import Simulator


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
