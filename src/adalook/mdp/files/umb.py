"""The model format `.umb`, the "unified Markov binary" that Storm, PRISM and others share.

A UMB file maps states to choices, choices to branches, and branches to target states and probabilities. Here

    states     are states, under the same numbers
    choices    are actions. Choices with the same action label are the same action; where a state has several choices
               with one label, or the file has no labels, their position in the state tells them apart
    rewards    r(s, a) = reward of the state + reward of the choice + expected reward of its branches
    deadlocks  are states without choices: they get action 0, which stays there and pays nothing

Markov chains become models with one action. Continuous time, games, observations and intervals are refused.
UMB has neither a discount nor a layout.
"""

from __future__ import annotations

import lzma
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import FileError, ModelError
from adalook.mdp import files
from adalook.mdp.files import umb_archive
from adalook.mdp.model import MDP
from adalook.mdp.transitions import is_stochastic, row_of
from adalook.storage import files as disk

FORMAT_VERSION, FORMAT_REVISION = 1, 0
REWARD_NAME = "reward"
BYTES_PER_PAIR = 64
"""About what a (state, action) pair needs while the model is built."""


# ---- writing


def save_umb(mdp: MDP, path: Path) -> None:
    """Write the model as an MDP with choice rewards named "reward"; the initial state is the layout's start, or 0."""
    umbi = umb_archive.load_umbi()
    target, probability, branches = _branches(mdp)
    double = {"type": "double", "size": 64}
    index = umbi.umb.index.UmbIndex.from_json(
        {
            "format-version": FORMAT_VERSION,
            "format-revision": FORMAT_REVISION,
            "file-data": {"tool": "adalook"},
            "transition-system": {
                "time": "discrete",
                "#players": 1,
                "#states": mdp.num_states,
                "#initial-states": 1,
                "#choices": mdp.num_pairs,
                "#choice-actions": mdp.num_actions,
                "#branches": len(target),
                "#branch-actions": 0,
                "#observations": 0,
                "branch-probability-type": double,
            },
            "annotations": {
                "rewards": {REWARD_NAME: {"alias": REWARD_NAME, "applies-to": ["choices"], "type": double}}
            },
        }
    )
    initial = np.zeros(-(-mdp.num_states // 64) * 64, bool)  # the standard asks for whole words of 64 bits
    initial[_initial_state(mdp)] = True
    choices = np.concatenate([[0], np.cumsum(mdp.offered.sum(axis=1))])
    names = [name.encode() for name in _action_names(mdp)]
    members = {
        "index.json": str(index).encode(),
        "state-is-initial.bin": np.packbits(initial, bitorder="little").tobytes(),
        "state-to-choices.bin": choices.astype("<u8").tobytes(),
        "choice-to-branches.bin": branches.astype("<u8").tobytes(),
        "branch-to-target.bin": target.astype("<u8").tobytes(),
        "branch-to-probability.bin": probability.astype("<f8").tobytes(),
        "actions/choices/values.bin": np.nonzero(mdp.offered)[1].astype("<u4").tobytes(),
        "actions/choices/strings.bin": b"".join(names),
        "actions/choices/string-mapping.bin": np.cumsum([0, *map(len, names)]).astype("<u8").tobytes(),
        f"annotations/rewards/{REWARD_NAME}/choices/values.bin": mdp.rewards[mdp.offered].astype("<f8").tobytes(),
    }
    umb_archive.write(path, members)


def _branches(mdp: MDP) -> tuple[IntArray, FloatArray, IntArray]:
    """Return targets and probabilities of all branches, and where those of each choice begin (choices + 1,)."""
    codes = mdp.codes[mdp.offered]
    stochastic = is_stochastic(codes)
    row = row_of(codes[stochastic])
    width = np.ones(len(codes), np.int64)
    width[stochastic] = np.diff(mdp.rows.indptr)[row]
    begin = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(width, out=begin[1:])
    target = np.empty(begin[-1], np.int64)
    probability = np.ones(begin[-1])
    target[begin[:-1][~stochastic]] = codes[~stochastic]
    source = _ranges(mdp.rows.indptr[row], width[stochastic])
    entry = _ranges(begin[:-1][stochastic], width[stochastic])
    target[entry] = mdp.rows.indices[source]
    probability[entry] = mdp.rows.data[source]
    return target, probability, begin


def _ranges(begin: IntArray, width: IntArray) -> IntArray:
    """Return the numbers begin[i] … begin[i] + width[i] − 1 of every i, one after the other."""
    shift = begin - (np.cumsum(width) - width)
    ranges: IntArray = np.repeat(shift, width) + np.arange(int(width.sum()))
    return ranges


def _action_names(mdp: MDP) -> list[str]:
    """Return the layout's action names if they are distinct, else numbers."""
    names = [] if mdp.layout is None else [str(name) for name in mdp.layout.action_names]
    fits = len(names) == mdp.num_actions and len(set(names)) == len(names)
    return names if fits else [str(a) for a in range(mdp.num_actions)]


def _initial_state(mdp: MDP) -> int:
    """Return the state of the layout's start, or 0."""
    if mdp.layout is None or mdp.layout.start is None:
        return 0
    return int(np.argmax(np.all(np.asarray(mdp.layout.cells) == mdp.layout.start, axis=1)))


# ---- reading


def load_umb(path: Path, discount: float, *, rewards: str | None = None, by_label: bool = True) -> MDP:
    """Read a model; `rewards` selects one of several, `by_label=False` tells actions apart by position only."""
    files.file_size(path)
    try:
        return _read(umb_archive.Archive(path), discount, rewards, by_label)
    except (FileError, ModelError) as error:
        raise FileError(f"cannot load {path}: {error}") from error
    except MemoryError as error:
        raise FileError(f"there is not enough memory to load {path}") from error
    except (PermissionError, FileNotFoundError) as error:
        raise disk.file_error("read", path, error) from error
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        remedy = "the file is damaged or is not UMB: export or copy it again"
        raise FileError(f"cannot load {path}: {error}", remedy=remedy) from error


def _read(archive: umb_archive.Archive, discount: float, rewards: str | None, by_label: bool) -> MDP:
    """Build the model that an archive describes."""
    system = archive.index.transition_system
    _check_kind(system)
    # In this order no array is larger than the files that are there, whatever the index claims.
    target = archive.integers("branch-to-target.bin", system.num_branches, "<u8", system.num_states)
    branches = archive.offsets("choice-to-branches.bin", system.num_choices, system.num_branches)
    choices = archive.offsets("state-to-choices.bin", system.num_states, system.num_choices)
    if (np.diff(branches) == 0).any():
        raise FileError(f"choice {int(np.argmin(np.diff(branches)))} has no branches", expected="at least one")
    probability = np.ones(len(target))
    if system.branch_probability_type is not None:
        probability = archive.floats("branch-to-probability.bin", len(target), system.branch_probability_type)
    reward = _choice_rewards(archive, rewards, choices, branches, probability)
    label: IntArray = np.zeros(len(reward), np.int64)
    num_labels = 1
    if by_label and system.num_choice_actions > 0:
        num_labels = system.num_choice_actions
        if "actions/choices/values.bin" in archive:  # when left out, all have label 0
            label = archive.integers("actions/choices/values.bin", len(reward), "<u4", num_labels)
    return _model(choices, branches, target, probability, reward, label, num_labels, discount)


def _check_kind(system: Any) -> None:
    """Raise unless the transition system is an MDP or a discrete-time Markov chain."""
    if system.time != "discrete":
        raise FileError("this is a model in continuous time", expected="an MDP or DTMC", got=f"time {system.time!r}")
    if system.num_players > 1:
        raise FileError("this is a game", expected="an MDP or DTMC", got=f"{system.num_players} players")
    if system.num_observations > 0:
        raise FileError("this model is partially observable", expected="an MDP or DTMC without observations")
    if system.num_players == 0 and system.num_choices > system.num_states:
        raise FileError("a Markov chain has choices", expected="at most one for each state", got=system.num_choices)


def _choice_rewards(
    archive: umb_archive.Archive, wanted: str | None, choices: IntArray, branches: IntArray, probability: FloatArray
) -> FloatArray:
    """Return the reward of each choice: the state's, its own and, in expectation, that of its branches."""
    offered = (archive.index.annotations or {}).get("rewards") or {}
    names = sorted(offered)
    if not names:
        raise FileError("the file has no rewards", remedy="export the model together with a reward structure")
    if wanted is None and len(names) > 1:
        raise FileError(
            "the file has several rewards",
            got=names,
            remedy="choose one: adalook.mdp.files.umb.load_umb(path, discount, rewards=name)",
        )
    matching = [name for name in names if wanted is None or wanted in (name, offered[name].alias)]
    if len(matching) != 1:
        raise FileError("the wanted rewards are not in the file", expected=f"one of {names}", got=repr(wanted))
    annotation = offered[matching[0]]
    if annotation.probability_type is not None or not annotation.applies_to:
        raise FileError(f"the rewards {matching[0]!r} are random or apply to nothing", expected="numbers")
    total = np.full(len(branches) - 1, -0.0)  # unlike 0.0 it leaves every reward as it is, even -0.0
    with np.errstate(over="ignore", invalid="ignore"):  # the model's own checks refuse what overflows
        for entity in sorted(set(annotation.applies_to)):
            count = {"states": len(choices) - 1, "choices": len(total), "branches": len(probability)}[entity]
            values = archive.floats(f"annotations/rewards/{matching[0]}/{entity}/values.bin", count, annotation.type)
            if entity == "states":
                total += np.repeat(values, np.diff(choices))
            elif entity == "choices":
                total += values
            elif count:
                total += np.add.reduceat(probability * values, branches[:-1])
    return total


def _model(
    choices: IntArray,
    branches: IntArray,
    target: IntArray,
    probability: FloatArray,
    reward: FloatArray,
    label: IntArray,
    num_labels: int,
    discount: float,
) -> MDP:
    """Put choices into the columns of an (S, A) table and make a checked model of it."""
    from scipy.sparse import csr_array

    num_states = len(choices) - 1
    state = np.repeat(np.arange(num_states), np.diff(choices))
    _check_table_size(num_states, num_labels)
    column, num_actions = _columns(state, label, num_labels)
    _check_table_size(num_states, num_actions)

    deadlock = np.flatnonzero(np.diff(choices) == 0)
    pair = np.concatenate([state * num_actions + column, deadlock * num_actions])
    width = np.concatenate([np.diff(branches), np.ones(len(deadlock), np.int64)])
    begin = np.concatenate([branches[:-1], branches[-1] + np.arange(len(deadlock))])
    target = np.concatenate([target, deadlock])
    probability = np.concatenate([probability, np.ones(len(deadlock))])

    order = np.argsort(pair, kind="stable")
    branch = _ranges(begin[order], width[order])
    num_pairs = num_states * num_actions
    indptr = np.zeros(num_pairs + 1, np.int64)
    indptr[pair + 1] = width
    np.cumsum(indptr, out=indptr)
    mask = np.zeros(num_pairs, bool)
    mask[pair] = True
    table = np.zeros(num_pairs)
    table[pair[: len(reward)]] = reward
    transitions = csr_array((probability[branch], target[branch], indptr), shape=(num_pairs, num_states))
    shape = (num_states, num_actions)
    return MDP(table.reshape(shape), transitions, discount, mask=mask.reshape(shape))


def _check_table_size(num_states: int, num_actions: int) -> None:
    """Raise if a table of all states and actions would not fit into memory."""
    if num_states * num_actions * BYTES_PER_PAIR > files.memory_limit():
        raise FileError(
            "a table of all states and actions would not fit into memory",
            got=f"{num_states} states, {num_actions} actions",
            remedy="if that is for many action labels: adalook.mdp.files.umb.load_umb(path, discount, by_label=False)",
        )


def _columns(state: IntArray, label: IntArray, num_labels: int) -> tuple[IntArray, int]:
    """Return the action of each choice and how many there are: one per label, more where a state repeats one."""
    order = np.lexsort((label, state))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(state[order]) != 0) | (np.diff(label[order]) != 0)
    begin = np.flatnonzero(first)
    repeat = np.empty(len(order), np.int64)
    repeat[order] = np.arange(len(order)) - np.repeat(begin, np.diff(np.append(begin, len(order))))
    columns = np.ones(num_labels, np.int64)
    np.maximum.at(columns, label, repeat + 1)
    return (np.cumsum(columns) - columns)[label] + repeat, int(columns.sum())
