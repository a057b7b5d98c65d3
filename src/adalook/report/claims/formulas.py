"""The paper's bounds on iterations and queries: Table 1 and Theorems 1 and 2, in its symbols.

    c(h) = A + A² + … + A^h                                 queries of one lookahead of h steps by a full A-ary tree
    iterations ≤ ⌈ S (A−1) log(1/(1−γ)) / log(1/κ) ⌉        for a method that contracts by κ in every iteration

h-PI has κ = γ^h, TLPI κ (Theorem 1 states γ^(h(κ)−1), which is weaker), QLPI the contraction its budgets induce.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from adalook.report.data.records import Record

NEVER = math.inf
"""The bound of a method that does not contract at all."""


def tree_queries(num_actions: int, depth: int) -> int:
    """Return c(h), the number of nodes of a full tree (the example of the paper's Definition 2.1).

    >>> [tree_queries(2, h) for h in (1, 2, 3)]
    [2, 6, 14]
    """
    return sum(num_actions**level for level in range(1, depth + 1))


def iteration_bound(num_states: int, num_actions: int, discount: float, contraction: float) -> float:
    """Return the most iterations that a method with this contraction per iteration can need.

    >>> iteration_bound(num_states=10, num_actions=2, discount=0.5, contraction=0.25)
    5
    """
    if contraction >= 1.0:
        return NEVER
    if contraction <= 0.0:
        return 1
    exact = num_states * (num_actions - 1) * math.log(1.0 / (1.0 - discount)) / math.log(1.0 / contraction)
    return math.ceil(exact - 1e-9)


def fixed_iteration_cost(num_states: int, num_actions: int, depth: int) -> int:
    """Return S · c(h), the queries of one iteration of h-PI."""
    return num_states * tree_queries(num_actions, depth)


def threshold_iteration_cost(num_states: int, num_actions: int, depth: int, deep_states: int) -> int:
    """Return S · (c(1) + θ c(h)) with θ S deep states, the queries of one iteration of TLPI (Theorem 1)."""
    return num_states * tree_queries(num_actions, 1) + deep_states * tree_queries(num_actions, depth)


def quantile_iteration_cost(num_states: int, num_actions: int, budgets: Mapping[int, float]) -> int:
    """Return S · Σ θ_h c(h), θ_1 = 1, budgets rounded up to whole states: one iteration of QLPI (Theorem 2)."""
    deep = sum(
        math.ceil(share * num_states - 1e-9) * tree_queries(num_actions, depth)
        for depth, share in budgets.items()
        if depth > 1
    )
    return num_states * tree_queries(num_actions, 1) + deep


def iteration_cost(record: Record, deep_states: int) -> int:
    """Return the paper's cost of one iteration for the method of a record; `deep_states` is TLPI's θ S."""
    states, actions, depth = record.num_states, record.num_actions, record.lookahead
    if record.group == "tlpi":
        return threshold_iteration_cost(states, actions, depth, deep_states)
    if record.group == "qlpi":
        return quantile_iteration_cost(states, actions, record.budgets)
    return fixed_iteration_cost(states, actions, depth)
