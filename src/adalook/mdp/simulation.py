"""Trajectories of a policy in a model: states, actions, rewards and returns, drawn with one seed.

In every step one random number per episode chooses the action of a stochastic policy, and one the next state, by
inversion of the cumulative probabilities. Rewards are those of the model, r(s, a).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._jit import compiled
from adalook._validation import as_array, integer
from adalook.errors import ArgumentError
from adalook.mdp.names import action_numbers
from adalook.mdp.transitions import ModelArrays, is_deterministic, row_of

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

ROW_SUM_TOLERANCE = 1e-9
"""Allowed |Σ π(a | s) − 1| of a stochastic policy."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """The episodes of a simulation, a row each."""

    states: IntArray  # (episodes, steps + 1)
    actions: IntArray  # (episodes, steps)
    rewards: FloatArray  # (episodes, steps)
    returns: FloatArray  # (episodes,) discounted sums of rewards

    def __repr__(self) -> str:
        episodes, steps = self.actions.shape
        error = self.returns.std(ddof=1) / np.sqrt(episodes) if episodes > 1 else 0.0
        spread = f" ± {error:.2g}" if episodes > 1 else ""
        return f"Trajectories({episodes} episodes of {steps} steps, mean return {self.returns.mean():.6g}{spread})"


def checked_stochastic_policy(mdp: MDP, given: Any, name: str = "policy") -> FloatArray:
    """Return a copy (S, A) of a policy's probabilities: rows sum to one, and nothing that is not offered is taken."""
    table = np.array(given, np.float64)
    shape = (mdp.num_states, mdp.num_actions)
    if table.shape != shape:
        raise ArgumentError(f"{name} is wrong", expected=f"ints ({shape[0]},) or floats {shape}", got=table.shape)
    bad = ~(np.isfinite(table) & (table >= 0.0))
    if bad.any():
        s, a = np.argwhere(bad)[0]
        raise ArgumentError(
            f"{name}: the probability of state {mdp.state_label(s)}, action {mdp.action_label(a)} is wrong",
            expected="a number in [0, 1]",
            got=table[s, a],
        )
    taken = (table > 0.0) & ~mdp.offered
    if taken.any():
        s, a = np.argwhere(taken)[0]
        raise ArgumentError(
            f"{name}: state {mdp.state_label(s)} does not offer action {mdp.action_label(a)}",
            expected="probability 0",
            got=table[s, a],
        )
    off = np.abs(table.sum(axis=1) - 1.0) > ROW_SUM_TOLERANCE
    if off.any():
        s = int(np.argmax(off))
        raise ArgumentError(
            f"{name}: the probabilities of state {mdp.state_label(s)} do not sum to one", got=float(table[s].sum())
        )
    return table


def checked_action_table(mdp: MDP, given: np.ndarray, name: str = "policy") -> IntArray:
    """Return a copy (T, S) of actions, or of (S,) as (1, S), every one of which is on offer."""
    table = given.reshape(-1, mdp.num_states) if given.ndim == 1 and len(given) == mdp.num_states else given
    if table.ndim != 2 or table.shape[1] != mdp.num_states or table.dtype.kind not in "iu" or not len(table):
        raise ArgumentError(
            f"{name} is wrong",
            expected=f"ints ({mdp.num_states},), ints (T, {mdp.num_states}) or floats "
            f"({mdp.num_states}, {mdp.num_actions})",
            got=f"{given.dtype} {given.shape}",
        )
    inside = (table >= 0) & (table < mdp.num_actions)
    good = inside & mdp.offered[np.arange(mdp.num_states), np.where(inside, table, 0)]
    if not good.all():
        t, s = np.argwhere(~good)[0]
        raise ArgumentError(
            f"{name}: state {mdp.state_label(s)} does not offer its action",
            expected=f"one of {offered_actions(mdp, int(s))}",
            got=shown_action(mdp, int(table[t, s])),
        )
    return table.astype(np.int32)


def offered_actions(mdp: MDP, state: int) -> str:
    """Return what a state offers as text: "[0, 1]" or, where actions have names, "[0 (run), 1 (repair)]"."""
    return f"[{', '.join(shown_action(mdp, int(a)) for a in np.flatnonzero(mdp.offered[state]))}]"


def shown_action(mdp: MDP, action: int) -> str:
    """Return the number of an action, which need not exist, followed by its name if it has one."""
    named = mdp.action_names and 0 <= action < mdp.num_actions
    return f"{action} ({mdp.action_names[action]})" if named else str(action)


def simulate(mdp: MDP, policy: Any, steps: int, *, start: Any, episodes: int, seed: int) -> Trajectories:
    """Draw the trajectories of `MDP.simulate`."""
    from adalook.mdp.files import check_memory

    steps = integer(min=1).validate("steps", steps)
    episodes = integer(min=1).validate("episodes", episodes)
    check_memory(f"{episodes} episodes of {steps} steps", 16 * episodes * (steps + 1))
    rng = np.random.default_rng(integer(min=0).validate("seed", seed))
    given = action_numbers(as_array("policy", policy), mdp.action_names, mdp.num_actions)
    stochastic = given.dtype.kind == "f"
    if stochastic:
        cumulative = np.cumsum(checked_stochastic_policy(mdp, given), axis=1)
        cumulative /= cumulative[:, -1:]
    else:
        table = checked_action_table(mdp, given)
        if 1 < len(table) < steps:
            raise ArgumentError("policy ends too early", expected=f"at least {steps} rows", got=len(table))
    first = rng.integers(mdp.num_states, size=episodes) if start is None else mdp.state_index(start)
    states = np.empty((episodes, steps + 1), np.int32 if mdp.num_states < 2**31 else np.int64)
    actions, rewards = np.empty((episodes, steps), np.int32), np.empty((episodes, steps))
    states[:, 0] = first
    for t in range(steps):
        here = states[:, t]
        if stochastic:
            draws = rng.random(episodes)
            actions[:, t] = (cumulative[here] <= draws[:, None]).sum(axis=1)
        else:
            actions[:, t] = table[t if len(table) > 1 else 0, here]
        rewards[:, t] = mdp.rewards[here, actions[:, t]]
        _step(mdp.arrays, here, actions[:, t], rng.random(episodes), states[:, t + 1])
    returns = rewards @ mdp.discount ** np.arange(steps)
    return Trajectories(states, actions, rewards, returns)


@compiled
def _step(model: ModelArrays, states: IntArray, actions: IntArray, draws: FloatArray, out: IntArray) -> None:
    """Write the next state of each episode: the first successor whose cumulative probability passes the draw."""
    for i in range(len(states)):
        code = model.codes[states[i], actions[i]]
        if is_deterministic(code):
            out[i] = code
        else:
            row, total = row_of(code), 0.0
            last = model.indptr[row + 1] - 1
            out[i] = model.indices[last]
            for k in range(model.indptr[row], last):
                total += model.data[k]
                if draws[i] < total:
                    out[i] = model.indices[k]
                    break
