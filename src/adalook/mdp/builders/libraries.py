"""Models of other libraries: QuantEcon's `DiscreteDP` and stormpy's sparse models. Neither library is imported here."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook.errors import ModelError, shown
from adalook.mdp.model import MDP

LABELS_PER_CHOICE = 16
"""Labels are taken for actions as long as a table of all states and labels has at most so many places a choice."""


def from_quantecon(ddp: Any) -> MDP:
    """Build the model of `MDP.from_quantecon`."""
    from scipy.sparse import csr_array

    if not all(hasattr(ddp, name) for name in ("R", "Q", "beta")):
        raise ModelError("this is no DiscreteDP", expected="quantecon.markov.DiscreteDP", got=type(ddp).__name__)
    rewards, rows = np.asarray(ddp.R, float), ddp.Q
    if getattr(ddp, "s_indices", None) is None:  # product form: (S, A), (S, A, S), −inf where not offered
        feasible = np.isfinite(rewards) | (rewards != -np.inf)
        return MDP(np.where(feasible, rewards, 0.0), rows, float(ddp.beta), mask=feasible)
    states, actions = np.asarray(ddp.s_indices), np.asarray(ddp.a_indices)
    num_states, num_actions = int(rows.shape[1]), int(actions.max()) + 1
    pair = states * num_actions + actions
    table = np.zeros((num_states, num_actions))
    mask = np.zeros((num_states, num_actions), bool)
    table[states, actions] = rewards
    mask[states, actions] = rewards != -np.inf
    csr: Any = csr_array(rows)
    source = np.repeat(pair, np.diff(csr.indptr))
    order = np.argsort(source, kind="stable")
    counts = np.bincount(source, minlength=num_states * num_actions)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    shape = (num_states * num_actions, num_states)
    transitions = csr_array((csr.data[order], csr.indices[order], indptr), shape=shape)
    return MDP(np.where(mask, table, 0.0), transitions, float(ddp.beta), mask=mask)


def from_stormpy(model: Any, discount: float, reward_model: str | None = None) -> MDP:
    """Build the model of `MDP.from_stormpy`."""
    from scipy.sparse import csr_array

    matrix = getattr(model, "transition_matrix", None)
    if matrix is None or not hasattr(matrix, "get_row_group_start"):
        raise ModelError("this is no sparse model of stormpy", expected="stormpy.SparseMdp", got=type(model).__name__)
    if str(getattr(model, "model_type", "")).rpartition(".")[2] not in ("MDP", "DTMC"):
        raise ModelError("this kind of model has no policy to find", expected="an MDP or DTMC", got=model.model_type)
    paid = _storm_rewards(model, matrix, reward_model)
    num_states = int(model.nr_states)
    first = [int(matrix.get_row_group_start(s)) for s in range(num_states)]
    last = [int(matrix.get_row_group_end(s)) for s in range(num_states)]
    columns, labels = _storm_columns(model, first, last)
    num_actions = max(columns) + 1
    rewards, mask = np.zeros((num_states, num_actions)), np.zeros((num_states, num_actions), bool)
    indices: list[int] = []
    data: list[float] = []
    counts = np.zeros(num_states * num_actions, np.int64)
    for s in range(num_states):
        for row in sorted(range(first[s], last[s]), key=columns.__getitem__):
            a = columns[row]
            entries = [(int(entry.column), _value(entry)) for entry in matrix.get_row(row)]
            indices += [column for column, _ in entries]
            data += [value for _, value in entries]
            counts[s * num_actions + a] = len(entries)
            rewards[s, a] = paid[row]
            mask[s, a] = True
    indptr = np.concatenate([[0], np.cumsum(counts)])
    transitions = csr_array((np.array(data), np.array(indices), indptr), shape=(num_states * num_actions, num_states))
    names = _storm_states(model, num_states)
    return MDP(rewards, transitions, discount, mask=mask, state_names=names, action_names=labels)


def _storm_columns(model: Any, first: list[int], last: list[int]) -> tuple[list[int], list[str] | None]:
    """Return the action of every choice, and the actions' names.

    Choices with one label are one action. Where labels are missing, or do not tell the choices of a state apart, or are
    so many that most states would offer next to none of them, actions go by their position and have no names.
    """
    places = [a for start, end in zip(first, last, strict=True) for a in range(end - start)]
    if not model.has_choice_labeling():
        return places, None
    given = [sorted(model.choice_labeling.get_labels_of_choice(row)) for row in range(len(places))]
    number = {label: a for a, label in enumerate(dict.fromkeys(label for labels in given for label in labels))}
    single = all(len(labels) == 1 for labels in given) and len(number) * len(first) <= LABELS_PER_CHOICE * len(places)
    columns = [number[labels[0]] for labels in given] if single else places
    apart = all(len(set(columns[start:end])) == end - start for start, end in zip(first, last, strict=True))
    return (columns, list(number)) if single and apart else (places, None)


def _storm_states(model: Any, num_states: int) -> list[str] | None:
    """Return the valuations of the states as their names, such as "[x=1]"; none where the model has none."""
    if not model.has_state_valuations():
        return None
    valuations = model.state_valuations
    tell = getattr(valuations, "to_string", None) or valuations.get_string  # the latter up to stormpy 1
    names = [str(tell(s)) for s in range(num_states)]
    return names if len(set(names)) == num_states else None


def _value(entry: Any) -> float:
    """Return the probability of an entry, which is a method up to stormpy 1 and an attribute since."""
    value = entry.value
    return float(value() if callable(value) else value)


def _storm_rewards(model: Any, matrix: Any, name: str | None) -> np.ndarray:
    """Return the reward of every row (choice) under one of the model's reward models."""
    known = list(model.reward_models)
    if not known:
        raise ModelError(
            "the model has no rewards",
            expected="a reward model",
            remedy='give the PRISM program a block rewards "name" … endrewards, and build it with its reward models',
        )
    if name is None:
        if len(known) != 1:
            raise ModelError(
                "the model has several rewards",
                expected=f"reward_model= one of {', '.join(map(repr, known))}",
                got="none",
            )
        name = known[0]
    if name not in known:
        raise ModelError("there is no such reward model", expected=", ".join(map(repr, known)), got=shown(name))
    given = model.reward_models[name]
    if given.has_transition_rewards:
        raise ModelError("rewards on transitions are not read", expected="rewards of states and choices")
    paid = np.zeros(int(matrix.nr_rows))
    if given.has_state_action_rewards:
        paid += np.asarray(given.state_action_rewards, float)
    if given.has_state_rewards:
        for s, reward in enumerate(given.state_rewards):
            paid[int(matrix.get_row_group_start(s)) : int(matrix.get_row_group_end(s))] += float(reward)
    return paid
