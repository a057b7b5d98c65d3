"""One backup of every state, T v, with the greedy policy and what the certificate needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning import threads
from adalook.planning.lookahead import kernels

if TYPE_CHECKING:
    from adalook.mdp.model import MDP


class Residual(NamedTuple):
    """What one backup of v tells: extremes of T v − v and T_π v − v as computed, and max|v|."""

    low: float
    high: float
    own_low: float
    own_high: float
    size: float


class Backup(NamedTuple):
    """T v (S,), the action that attains it (S,), the hubs' expectations under v, and the residual."""

    values: FloatArray
    actions: IntArray
    hub: FloatArray
    residual: Residual


def backup(mdp: MDP, values: FloatArray, policy: IntArray) -> Backup:
    """Back up every state once; where the policy's own action is among the best, it is the one kept."""
    best = np.empty_like(values)
    action = np.empty_like(policy)
    hub = hub_expectations(mdp, values)
    arguments = (mdp.rewards, mdp.codes, *table(mdp), hub, values, policy, mdp.discount, best, action)
    n = mdp.num_states
    if threads.worthwhile(mdp.num_pairs + len(mdp.rows.indices)):
        low, high, own_low, own_high, size = zip(*threads.split(kernels.backup, n, arguments), strict=True)
        residual = Residual(min(low), max(high), min(own_low), max(own_high), max(size))
    else:
        residual = Residual(*kernels.backup(*arguments, 0, n))
    return Backup(best, action, hub, residual)


def hub_expectations(mdp: MDP, values: FloatArray) -> FloatArray:
    hub = np.empty(mdp.rows.num_shared)
    kernels.hub_expectations(*table(mdp), values, hub)
    return hub


def table(mdp: MDP) -> tuple[Any, Any, Any]:
    """The arrays of the row table, in the order that kernels take them."""
    return mdp.rows.indptr, mdp.rows.indices, mdp.rows.data
