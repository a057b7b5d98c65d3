"""Checks of the actions and states that a simulator is given."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from adalook.errors import ArgumentError, shown


def checked_action(action: Any, num_actions: int) -> int:
    """Return `action` as an int from 0 to num_actions - 1: negative ones would count from the end."""
    try:
        number = operator.index(action)
    except TypeError:
        number = -1
    if not 0 <= number < num_actions:
        raise _wrong_action_error(action, num_actions)
    return number


def check_actions(actions: Sequence[int], num_actions: int) -> None:
    """Check a batch of actions at once, which takes a microsecond or so."""
    if len(actions) == 0:
        return
    try:
        least, most = min(actions), max(actions)
        fits = least >= 0 and most < num_actions
    except TypeError as error:
        raise ArgumentError("an action is wrong", expected=f"whole numbers 0..{num_actions - 1}", got=error) from error
    if not fits:
        raise _wrong_action_error(least if least < 0 else most, num_actions)


def check_states(states: Sequence[Any], kind: type[Any], owner: str) -> None:
    """Raise unless all states are of type `kind` and belong to `owner`: others may crash an emulator."""
    for state in states:
        if type(state) is not kind or state.owner != owner:
            raise wrong_state_error(state, owner)


def wrong_state_error(state: Any, owner: str) -> ArgumentError:
    """Return the error about something that is not a state of `owner`."""
    actual = getattr(state, "owner", None)
    return ArgumentError(
        "this state belongs to another simulator",
        expected=f"a state of {owner}",
        got=f"a state of {actual}" if isinstance(actual, str) else repr(state)[:60],
        remedy="give states to the simulator that made them, or to a clone of it",
    )


def _wrong_action_error(action: Any, num_actions: int) -> ArgumentError:
    return ArgumentError("there is no such action", expected=f"a whole number 0..{num_actions - 1}", got=shown(action))
