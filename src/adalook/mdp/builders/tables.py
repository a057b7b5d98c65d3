"""Models from tables of outcomes, `table[state][action]`, the way people write them down.

States and actions are whole numbers from 0, or names. The outcomes of a state and an action are a list of

    (probability, next state, reward)   or   (probability, next state, reward, terminated)

as in Gymnasium's `env.P`; or a mapping {next state: probability}, with rewards given apart: `rewards[state]`,
`rewards[state][action]` or `rewards[state][action][next state]`. What is `terminated` leads
to a sink, an extra last state that pays nothing, even where the entered state has moves of its own in the table. A
state with no actions ends the episode, too: it stays where it is and pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from adalook.errors import ModelError, did_you_mean, shown
from adalook.mdp import checks
from adalook.mdp.layout import Layout
from adalook.mdp.model import MDP

SINK = "(end)"
"""The name of the extra state that ended episodes lead to."""


def from_table(table: Any, discount: float, *, rewards: Any = None, layout: Layout | None = None) -> MDP:
    """Build the model of `MDP.from_table`."""
    from scipy.sparse import coo_array

    gamma = checks.checked_discount(discount)
    states = _keys(table, "the table", "states")
    number = {state: s for s, state in enumerate(states)}
    actions = _actions(table, states)
    action_number = {action: a for a, action in enumerate(actions)}
    num_states, num_actions = len(states), len(actions)
    if hasattr(rewards, "__len__") and not isinstance(rewards, Mapping) and len(rewards) != num_states:
        raise ModelError("rewards do not fit the table", expected=f"{num_states} states", got=len(rewards))
    mask = np.zeros((num_states + 1, num_actions), bool)
    paid = np.zeros((num_states + 1, num_actions))
    entries: list[tuple[int, int, float]] = []
    sink, ends = num_states, False
    for state in states:
        s = number[state]
        offered = _items(table[state])
        if not offered:
            mask[s, 0] = True
            entries.append((s * num_actions, s, 1.0))
        for action, outcomes in offered:
            a = action_number[action]
            where = f"state {shown(state)}, action {shown(action)}"
            mask[s, a] = True
            if rewards is None and isinstance(outcomes, Mapping):
                raise ModelError(
                    f"nothing tells what {where} pays",
                    expected="rewards= beside a table of {next state: probability}",
                    remedy="pass rewards=, or outcomes (probability, next state, reward)",
                )
            likely = _outcomes(outcomes, where)
            for chance, ahead, reward, terminated in likely:
                ends |= terminated
                successor = _find(ahead, number, where)
                entries.append((s * num_actions + a, sink if terminated else successor, chance))
                paid[s, a] += chance * reward
            if rewards is not None:
                paid[s, a] += _reward(rewards, state, action, likely, where)
    size = num_states + ends
    if ends:
        mask[sink] = True
        entries += [(sink * num_actions + a, sink, 1.0) for a in range(num_actions)]
        if layout is not None and layout.num_states == num_states:
            layout = replace(layout, cells=np.vstack([layout.cells, [[-1, -1]]]))
    pairs, successors, chances = (np.array(column) for column in zip(*entries, strict=True))
    transitions = coo_array((chances.astype(float), (pairs, successors)), shape=(size * num_actions, size))
    named = any(isinstance(state, str) or not _is_index(state) for state in states)
    return MDP(
        paid[:size],
        transitions,
        gamma,
        mask=mask[:size],
        layout=layout,
        state_names=[*map(str, states), *([SINK] if ends else [])] if named else None,
        action_names=actions if any(not _is_index(action) for action in actions) else None,
    )


def _is_index(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _keys(table: Any, what: str, kind: str) -> list[Any]:
    """Return the keys of a mapping, or the places of a sequence; keys that are numbers count from 0."""
    if isinstance(table, Mapping):
        keys = list(table)
        if keys and all(_is_index(key) for key in keys):
            if sorted(keys) != list(range(len(keys))):
                raise ModelError(f"{what}: {kind} are wrong", expected=f"0 to {len(keys) - 1}, each once, or names")
            keys = sorted(keys)
    elif isinstance(table, list | tuple):
        keys = list(range(len(table)))
    else:
        raise ModelError(
            f"{what} is no table", expected="table[state][action], dictionaries or lists", got=type(table).__name__
        )
    if not keys:
        raise ModelError("the model is empty", expected="at least one state and one action")
    return keys


def _items(actions: Any) -> list[tuple[Any, Any]]:
    """Return what a state offers as pairs (action, outcomes)."""
    if isinstance(actions, Mapping):
        return list(actions.items())
    if isinstance(actions, list | tuple):
        return list(enumerate(actions))
    raise ModelError("the actions of a state are no table", expected="{action: outcomes}", got=shown(actions))


def _actions(table: Any, states: list[Any]) -> list[Any]:
    """Return every action of the table once: numbers from 0 to the largest, names in the order of their appearance."""
    found = dict.fromkeys(action for state in states for action, _ in _items(table[state]))
    if all(_is_index(action) for action in found):
        if any(action < 0 for action in found):
            raise ModelError("the table's actions are wrong", expected="whole numbers from 0, or names")
        return list(range(1 + max(found, default=0)))
    return list(found)


def _outcomes(outcomes: Any, where: str) -> list[tuple[float, Any, float, bool]]:
    """Return outcomes as (probability, next state, reward, terminated)."""
    if isinstance(outcomes, Mapping):
        outcomes = [(chance, ahead, 0.0) for ahead, chance in outcomes.items()]
    if not isinstance(outcomes, list | tuple) or not outcomes:
        raise ModelError(
            f"the table entry of {where} is wrong",
            expected="a list of outcomes (probability, next state, reward), or {next state: probability}",
            got=shown(outcomes),
        )
    result = []
    for outcome in outcomes:
        try:
            chance, ahead, reward, *rest = outcome
            (terminated,) = rest or (False,)
            if not isinstance(terminated, int | float | np.bool_ | np.number) or terminated not in (0, 1):
                raise ValueError  # such as "False", which is true
            result.append((float(chance), ahead, float(reward), bool(terminated)))
        except Exception:  # objects that are no numbers raise what they like
            raise ModelError(
                f"an outcome of {where} is wrong",
                expected="(probability, next state, reward) or (probability, next state, reward, terminated)",
                got=shown(outcome),
            ) from None
    return result


def _find(ahead: Any, number: dict[Any, int], where: str) -> int:
    """Return the number of a next state, or raise if the table has no such state."""
    found = None
    with suppress(Exception):  # what cannot be hashed or compared is no state
        found = number.get(ahead)
    if found is None:
        with suppress(Exception):  # arrays have an __index__, too, and raise
            found = number.get(ahead.__index__())
    if found is None:
        given = " ".join(shown(ahead).split())
        raise ModelError(
            f"an outcome of {where} leads to a state that the table does not have",
            expected=f"0 to {len(number) - 1}" if all(_is_index(state) for state in number) else "a state of the table",
            got=given,
            remedy=did_you_mean(given.strip("'"), map(str, number)) or f"if the episode ends there, add {given}: {{}}",
        )
    return found


def _reward(rewards: Any, state: Any, action: Any, outcomes: list[tuple[float, Any, float, bool]], where: str) -> float:
    """Return rewards[state][action], or rewards[state] if that is a number; of those of next states the expectation."""
    try:
        paid = rewards[state]
        paid = paid if isinstance(paid, int | float | np.number) else paid[action]
        if isinstance(paid, Mapping):
            return float(sum(chance * float(paid[ahead]) for chance, ahead, _, _ in outcomes))
        return float(paid)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        raise ModelError(
            f"rewards has no number for {where}",
            expected="rewards[state], rewards[state][action] or rewards[state][action][next state]",
        ) from None
