"""Episodes without a discount: `solve` for models with γ = 1 in which every policy ends from everywhere.

A state is *terminal* if all its actions stay there and pay nothing. Every policy ends from everywhere exactly if no set
of other states can be kept for ever: the largest X in which some action of each state leads only into X is empty. If
it is not, the model is refused, with a state that shows it.

Let w be (about) the longest expected duration, with w − max_a P w >= m > 0 outside terminal states, checked on the
model's own numbers. Then P̃(s' | s, a) = P(s' | s, a) w(s') / (β w(s)) with β = 1 − m / max w is a substochastic row,
and with rewards r / w and discount β the values are V / w (Veinott's transformation): the total reward is a discounted
one, which every method solves. The answer is certified on the original model. With d = T v − v, l <= d <= u,

    v − max(−l, 0) / m · w  <=  V*  <=  v + max(u, 0) / m · w

because T(v + c w) <= v + u + c (w − m) <= v + c w for c = u / m; in the same way below, and for one policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._jit import compiled
from adalook.errors import ArgumentError, ModelError
from adalook.mdp.aggregation import entries
from adalook.mdp.model import MDP
from adalook.mdp.transitions import NOT_OFFERED, ModelArrays, is_deterministic, row_of
from adalook.planning.certificate import Certificate, rounding_bound
from adalook.planning.checks import checked_state_values
from adalook.planning.lookahead.levels import action_values, backup
from adalook.planning.rules.base import Method
from adalook.planning.solution import Answer, Iteration, Solution, Status
from adalook.planning.solve import published, solve

NEARLY_ONE = (1e-3, 1e-6, 1e-9, 1e-11)
"""Distances from 1 of the discounts under which durations are computed, until one is near enough."""
ENOUGH = 0.25
"""A margin m of at least this much is taken."""


class Durations(NamedTuple):
    """Weights w (S,), zero in terminal states, with w − max_a P w >= margin elsewhere."""

    weights: FloatArray
    margin: float
    terminal: BoolArray


def terminal_states(mdp: MDP) -> BoolArray:
    """Return which states (S,) end an episode: all their actions stay there and pay nothing."""
    own = np.arange(mdp.num_states)[:, None]
    stays = ((mdp.codes == own) & (mdp.rewards == 0.0)) | (mdp.codes == NOT_OFFERED)
    every: BoolArray = np.all(stays, axis=1)
    return every


def durations(mdp: MDP) -> Durations:
    """Return weights for a model in which every policy ends from everywhere, or raise `ModelError` with the reason."""
    terminal = terminal_states(mdp)
    kept = ~terminal
    _largest_kept_set(mdp.arrays, kept)
    if kept.any():
        s = int(np.argmax(kept))
        wanted, reason = "a model in which every policy ends", "this one has no terminal state"
        if mdp.num_actions == 1:  # of a model, or of the one policy that is evaluated, whose action has lost its number
            wanted = "a policy that ends from everywhere"
        if terminal.any() and mdp.num_actions == 1:
            reason = f"from state {mdp.state_label(s)} no terminal one is ever reached"
        elif terminal.any():
            action = mdp.action_label(_keeping_action(mdp, s, kept))
            reason = f"from state {mdp.state_label(s)}, action {action} need never lead to a terminal one"
        raise ModelError(
            f"discount 1 needs {wanted}, and {reason}",
            remedy="pass horizon= for a number of steps, or give the model a discount below 1; "
            "a terminal state has only actions that stay there and pay 0",
        )
    weights = np.zeros(mdp.num_states)
    if terminal.all():
        return Durations(weights, 1.0, terminal)
    paid = np.where(terminal[:, None] | ~mdp.offered, 0.0, 1.0)
    for distance in NEARLY_ONE:
        counting = MDP._adopt(paid, mdp.codes, mdp.rows, 1.0 - distance)
        weights = np.where(terminal, 0.0, solve(counting, tolerance=ENOUGH, keep_states=False).values)
        margin = _margin(mdp, mdp.arrays._replace(rewards=paid, discount=1.0), weights)
        if margin >= ENOUGH:
            return Durations(weights, margin, terminal)
    raise ModelError(
        "episodes can take too long for discount 1",
        expected="an expected duration below some 10^10 steps",
        remedy="pass horizon= for a number of steps, or give the model a discount below 1",
    )


def _margin(mdp: MDP, model: ModelArrays, weights: FloatArray) -> float:
    """Return m such that w − max_a P w >= m outside terminal states; `model` pays 1 there for every step."""
    best = action_values(mdp, weights, model).max(axis=1)
    size = float(weights.max())
    error = (mdp.rounding_terms + 3) * 2.0**-53 * (1.0 + (1.0 + mdp.row_sums[1]) * size) * 1.000001
    return 1.0 - float((best - weights).max()) - error


@compiled
def _largest_kept_set(model: ModelArrays, kept: BoolArray) -> None:
    """Remove states all of whose actions can lead out of the set, there and back, until none is left to remove."""
    num_states, num_actions = model.codes.shape
    changed = True
    while changed:
        changed = False
        for i in range(2 * num_states):
            s = i if i < num_states else 2 * num_states - 1 - i
            if not kept[s]:
                continue
            stays = False
            for a in range(num_actions):
                code = model.codes[s, a]
                if code == NOT_OFFERED:
                    continue
                inside = True
                if is_deterministic(code):
                    inside = kept[code]
                else:
                    row = row_of(code)
                    for k in range(model.indptr[row], model.indptr[row + 1]):
                        if not kept[model.indices[k]]:
                            inside = False
                            break
                if inside:
                    stays = True
                    break
            if not stays:
                kept[s] = False
                changed = True


def _keeping_action(mdp: MDP, state: int, kept: BoolArray) -> int:
    """Return an action of a state that leads only into a set."""
    for a in range(mdp.num_actions):
        successors, _ = mdp.transition_row(state, a)
        if len(successors) and kept[successors].all():
            return a
    raise AssertionError("every state of a kept set has such an action")


def _discounted(mdp: MDP, found: Durations) -> MDP:
    """Return the discounted model whose values are those of `mdp` over the weights."""
    from scipy.sparse import coo_array

    weights, margin, terminal = found
    scale = np.where(terminal, 1.0, weights)
    beta = 1.0 - margin / float(scale.max())
    state, action, successor, chance = entries(mdp)
    moving = ~terminal[successor] & ~terminal[state]
    state, action, successor, chance = state[moving], action[moving], successor[moving], chance[moving]
    pair = state * mdp.num_actions + action
    moved = chance * scale[successor] / (beta * scale[state])
    pairs = mdp.num_states * mdp.num_actions
    rest = np.where(mdp.offered.ravel(), 1.0 - np.bincount(pair, weights=moved, minlength=pairs), 0.0)
    over = rest < 0.0  # by rounding
    moved = moved / np.where(over, 1.0 - rest, 1.0)[pair]
    ending = np.flatnonzero(rest > 0.0)
    sink = int(np.argmax(terminal))
    transitions = coo_array(
        (
            np.concatenate([moved, rest[ending]]),
            (np.concatenate([pair, ending]), np.concatenate([successor, np.full(len(ending), sink)])),
        ),
        shape=(pairs, mdp.num_states),
    )
    return MDP(mdp.rewards / scale[:, None], transitions, beta, mask=mdp.offered)


def solve_total_reward(
    mdp: MDP,
    method: Method,
    *,
    tolerance: float,
    initial_values: Any,
    on_iteration: Callable[[Iteration], None] | None,
    **limits: Any,
) -> Solution:
    """Solve a model with discount 1 in which every policy ends; arguments as of `solve`."""
    if hasattr(method, "prior"):
        raise ArgumentError(
            f"{method.name} has a prior, which models with discount 1 do not take", remedy="use al.Auto() or al.WLPI()"
        )
    found = durations(mdp)
    scale = np.where(found.terminal, 1.0, found.weights)
    if initial_values is not None:
        initial_values = checked_state_values(mdp, initial_values, "initial_values") / scale
    answer = Answer()

    def rescaled(item: Iteration) -> Iteration:
        """Return a pass with its values and its loss in the model's own rewards, which is what users know."""
        values = None if item.values is None else published(item.values * scale)
        return replace(item, values=values, policy_loss=item.policy_loss * float(scale.max()), answer=answer)

    inner = solve(
        _discounted(mdp, found),
        method,
        tolerance=tolerance / float(scale.max()) / 2.0,
        initial_values=initial_values,
        on_iteration=None if on_iteration is None else lambda item: on_iteration(rescaled(item)),
        **limits,
    )
    values = np.where(found.terminal, 0.0, inner.values * scale)
    certificate = _certify(mdp, found, values, inner.policy)
    answer.values = values
    status, message = inner.status, inner.message
    if status in (Status.CONVERGED, Status.ROUNDING_LIMIT):
        status, message = Status.CONVERGED, f"policy loss certified below {tolerance:g}"
        if certificate.policy_loss > tolerance:
            status = Status.ROUNDING_LIMIT
            message = f"not certified: a loss below {tolerance:g} is more than float64 can certify here"
    return replace(
        inner,
        mdp=mdp,
        values=published(values),
        certificate=certificate,
        status=status,
        message=message,
        tolerance=tolerance,
        trace=tuple(rescaled(item) for item in inner.trace),
    )


def _certify(mdp: MDP, found: Durations, values: FloatArray, policy: IntArray) -> Certificate:
    """Return bounds on V* and on the policy's loss, from one backup of the model itself."""
    residual = backup(mdp, values, policy).residual
    error = rounding_bound(mdp, residual.size)
    return _weighted(found, values, residual.low - error, residual.high + error, residual.own_low - error)


def certify_mixed(mdp: MDP, chances: FloatArray, values: FloatArray) -> Certificate:
    """Return bounds on the total reward of a stochastic policy that ends from everywhere."""
    from adalook.planning.objectives.policy_values import _mixed, policy_residual

    mixed = _mixed(mdp, chances)
    found = durations(mixed)
    paid = np.where(found.terminal[:, None] | ~mdp.offered, 0.0, 1.0)
    counted, error = policy_residual(mdp.arrays._replace(rewards=paid, discount=1.0), mdp, chances, found.weights)
    margin = 1.0 - counted.high - error
    if not margin > 0.0:
        return Certificate(values, -math.inf, math.inf, math.inf)
    residual, error = policy_residual(mdp.arrays, mdp, chances, values)
    low, high = residual.low - error, residual.high + error
    return _weighted(found._replace(margin=margin), values, low, high, low)


def _weighted(found: Durations, values: FloatArray, low: float, high: float, own_low: float) -> Certificate:
    """Return bounds from low <= T v − v <= high and own_low <= T_π v − v, widened by some units of rounding."""
    room = 1.0 + 2.0**-40
    up, down, own = (max(float(change), 0.0) / found.margin * room for change in (high, -low, -own_low))
    slack = np.abs(values) * 2.0**-50 + 1e-300
    return Certificate(
        values=published(values),
        low=-(down * found.weights * room + slack),
        high=up * found.weights * room + slack,
        policy_loss=(up + own) * float(found.weights.max()) * room,
    )
