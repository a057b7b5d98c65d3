"""The model format `.umb`, the "unified Markov binary" that Storm, PRISM and others share.

A UMB file maps states to choices, choices to branches, and branches to target states and probabilities. Here

    states     are states, under the same numbers
    choices    are actions. Choices with the same action label are the same action; where a state has several choices
               with one label, or the file has no labels, their position in the state tells them apart
    rewards    r(s, a) = reward of the state + reward of the choice + expected reward of its branches
    deadlocks  are states without choices: they get action 0, which stays there and pays nothing

Markov chains become models with one action. Continuous time, games, observations and intervals are refused.
UMB has neither a discount nor a layout, and names of actions only: those of states are not written.

The container is a tar archive of a JSON index and flat arrays, read here without trusting its sizes. Of the package
umbi only the index is used: its reader of whole files makes a Python object of every number, allocates what the index
claims and (in 0.2.5) keeps only the last of several rewards.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import lzma
import sys
import tarfile
import zlib
from collections.abc import Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook._extras import import_extra
from adalook.errors import FileError, ModelError, shown
from adalook.mdp import files
from adalook.mdp.model import MDP
from adalook.mdp.transitions import is_stochastic, row_of
from adalook.storage import files as disk

FORMAT_VERSION, FORMAT_REVISION = 1, 0
REWARD_NAME = "reward"
MIN_PAIRS, MAX_PAIRS_PER_CHOICE = 1_000_000, 64
"""Tables with more pairs than a million are refused if fewer than one in 64 has a choice."""
BYTES_PER_PAIR = 64
"""About what a (state, action) pair needs while the model is built."""
READABLE_VERSIONS = (0, 1)
"""Version 0 is what umbi writes when it is installed as a package and does not find its own version."""

MIN_UNPACKED_BYTES, MAX_GROWTH = 64 * 2**20, 100
"""An archive may grow to this many times its size when it is unpacked, or to 64 MiB; models shrink to a tenth or so."""
MAX_MEMBERS = 10_000
MAX_INDEX_BYTES = 16 * 2**20

DEFAULT_BITS = {
    "bool": 1,
    "int-interval": 128,
    "uint-interval": 128,
    "double-interval": 128,
    "rational": 128,
    "rational-interval": 256,
}
"""Sizes of types that do not name one; those not listed have 64 bits."""


# ---- writing


def save_umb(mdp: MDP, path: Path) -> None:
    """Write the model as an MDP with choice rewards named "reward"; the initial state is the layout's start, or 0."""
    umbi = _load_umbi()
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
    _write_archive(path, members)


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
    """Return the model's action names if they are distinct, else numbers."""
    names = list(mdp.action_names)
    return names if len(set(names)) == mdp.num_actions else _numbers(mdp.num_actions)


def _numbers(count: int) -> list[str]:
    """Return the names of actions that have none."""
    return [str(a) for a in range(count)]


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
        return _read(_Archive(path), discount, rewards, by_label)
    except (FileError, ModelError) as error:
        raise FileError(f"cannot load {path}: {error}") from error
    except MemoryError as error:
        raise FileError(f"there is not enough memory to load {path}") from error
    except (PermissionError, FileNotFoundError) as error:
        raise disk.file_error("read", path, error) from error
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        remedy = "the file is damaged or is not UMB: export or copy it again"
        raise FileError(f"cannot load {path}: {error}", remedy=remedy) from error


def _read(archive: _Archive, discount: float, rewards: str | None, by_label: bool) -> MDP:
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
    num_labels, names = 1, None
    if by_label and system.num_choice_actions > 0:
        num_labels = system.num_choice_actions
        if "actions/choices/values.bin" in archive:  # when left out, all have label 0
            label = archive.integers("actions/choices/values.bin", len(reward), "<u4", num_labels)
        _check_table_size(len(choices) - 1, num_labels, len(reward))
        names = archive.strings("actions/choices", num_labels)
    return _model(choices, branches, target, probability, reward, label, num_labels, discount, names)


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
    archive: _Archive, wanted: str | None, choices: IntArray, branches: IntArray, probability: FloatArray
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
        raise FileError("the wanted rewards are not in the file", expected=f"one of {names}", got=shown(wanted))
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
    names: list[str] | None,
) -> MDP:
    """Put choices into the columns of an (S, A) table and make a checked model of it."""
    from scipy.sparse import csr_array

    num_states = len(choices) - 1
    state = np.repeat(np.arange(num_states), np.diff(choices))
    column, num_actions = _columns(state, label, num_labels)
    _check_table_size(num_states, num_actions, len(reward))

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
    named = names is not None and len(set(names)) == num_actions and names != _numbers(num_actions)
    return MDP(
        table.reshape(shape), transitions, discount, mask=mask.reshape(shape), action_names=names if named else None
    )


def _check_table_size(num_states: int, num_actions: int, num_choices: int) -> None:
    """Raise if a table of all states and actions would not fit into memory, or would be all but empty."""
    pairs = num_states * num_actions
    if pairs > max(MIN_PAIRS, MAX_PAIRS_PER_CHOICE * (num_choices + num_states)):
        raise FileError(
            "a table of all states and actions would be all but empty",
            expected=f"at most {MAX_PAIRS_PER_CHOICE} actions for each choice and state",
            got=f"{num_states} states, {num_actions} actions, {num_choices} choices",
            remedy="if that is for many action labels: adalook.mdp.files.umb.load_umb(path, discount, by_label=False)",
        )
    if pairs * BYTES_PER_PAIR > files.memory_limit():
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


# ---- the archive


def _load_umbi() -> Any:
    """Return the package umbi, or raise an error that says how to install it."""
    for module in ("umbi.binary", "umbi.umb.index"):
        import_extra(module, extra="umb", purpose="reading and writing UMB files")
    umbi = sys.modules["umbi"]
    # umbi logs what we turn into errors; without any handler that would go to the screen.
    logger = logging.getLogger("umbi")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return umbi


def _write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a compressed archive, with neither names nor dates outside the members: the same model, the same file."""
    with (
        disk.atomic_write(path) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


class _Archive:
    """An opened UMB file: its index, and its arrays, each as long as the index says."""

    def __init__(self, path: Path) -> None:
        self._umbi = _load_umbi()
        self._members = _members(_unpacked(path))
        self.index = self._read_index()

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def _read_index(self) -> Any:
        """Return the index as umbi's object, or raise if it is damaged or of an unknown version."""
        text = self._members.get("index.json")
        if text is None or len(text) > MAX_INDEX_BYTES:
            raise FileError("index.json is missing or too large", remedy="this is not a UMB file")
        try:
            raw = json.loads(bytes(text))
            # We do not need valuations, and umbi refuses some that the standard allows.
            needed = {key: _with_sizes(part) for key, part in raw.items() if key != "valuations"}
            index = self._umbi.umb.index.UmbIndex.from_json(needed)
        except Exception as error:  # umbi answers bad input with errors of many kinds
            raise FileError("index.json is damaged", got=f"{type(error).__name__}: {error}"[:200]) from error
        if index.format_version not in READABLE_VERSIONS:
            raise FileError("the version of UMB is not known", expected=READABLE_VERSIONS, got=index.format_version)
        return index

    def _raw(self, name: str, count: int, item_bytes: int) -> memoryview:
        """Return the bytes of a member, or raise unless it has `count` items."""
        raw = self._members.get(name)
        if raw is None:
            raise FileError(f"{name[:80]} is missing")
        if len(raw) != count * item_bytes:
            raise FileError(f"{name[:80]} has the wrong size", expected=f"{count * item_bytes} bytes", got=len(raw))
        return raw

    def integers(self, name: str, count: int, kind: str, bound: int) -> IntArray:
        """Return an array of unsigned numbers below `bound`."""
        values = np.frombuffer(self._raw(name, count, np.dtype(kind).itemsize), kind)
        if len(values) and int(values.max()) >= bound:
            raise FileError(f"a number in {name} is out of range", expected=f"below {bound}", got=int(values.max()))
        return values.astype(np.int64)

    def offsets(self, name: str, count: int, total: int) -> IntArray:
        """Return where each entry's part of `total` items begins (count + 1,); a missing member means one item each."""
        if name not in self:
            if count != total:
                raise FileError(f"{name} is missing")
            return np.arange(count + 1)
        values = self.integers(name, count + 1, "<u8", total + 1)
        if values[0] != 0 or values[-1] != total or (np.diff(values) < 0).any():
            raise FileError(f"{name} is damaged", expected=f"numbers that rise from 0 to {total}")
        return values

    def strings(self, folder: str, count: int) -> list[str] | None:
        """Return `count` texts of a folder, or None if it has none."""
        name = f"{folder}/strings.bin"
        if name not in self or f"{folder}/string-mapping.bin" not in self:
            return None
        raw = bytes(self._members[name])
        begin = self.offsets(f"{folder}/string-mapping.bin", count, len(raw)).tolist()
        try:
            return [raw[first:last].decode() for first, last in pairwise(begin)]
        except UnicodeDecodeError as error:
            raise FileError(f"{name} is damaged", expected="texts in UTF-8", got=error) from error

    def floats(self, name: str, count: int, sized: Any) -> FloatArray:
        """Return an array of finite numbers of a UMB type, rationals rounded to the nearest float."""
        kind = str(getattr(sized.type, "value", sized.type))
        if kind not in ("double", "rational", "int", "uint") or sized.size_bits % 8:
            raise FileError(
                f"{name[:80]} holds numbers of the type {kind}",
                expected="double or rational",
                remedy="a model with intervals is a set of models: export it with plain numbers",
            )
        raw = self._raw(name, count, sized.size_bytes)
        if kind == "double":
            values = np.frombuffer(raw, "<f8").astype(np.float64)
        else:
            try:
                values = np.array([float(x) for x in self._umbi.binary.bytes_to_vector(bytes(raw), sized)], np.float64)
            except (ArithmeticError, ValueError, AssertionError) as error:
                raise FileError(f"{name[:80]} holds something that is not a number", got=repr(error)) from error
        finite = np.isfinite(values)
        if not finite.all():
            where = int(np.argmin(finite))
            raise FileError(f"entry {where} of {name[:80]} is not finite", got=values[where])
        return values


def _unpacked(path: Path) -> bytes:
    """Return the tar archive without its compression, if memory can hold the model that may be in it."""
    packed = files.file_size(path)
    limit = min(files.memory_limit() // 4, max(MIN_UNPACKED_BYTES, MAX_GROWTH * packed))
    parts = []
    size = 0
    with closing(_stream(path)) as stream:
        while part := stream.read(2**20):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise FileError("the archive is too large", expected=f"at most {limit} bytes when unpacked")
    return b"".join(parts)


def _stream(path: Path) -> Any:
    """Open a file, decompressing it if its first bytes say gzip or xz."""
    with disk.open_to_read(path) as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(path)
    return lzma.open(path) if magic == b"\xfd7zXZ\x00" else disk.open_to_read(path)


def _members(archive: bytes) -> dict[str, memoryview]:
    """Return the contents of each member by name; nothing is extracted to the file system."""
    members: dict[str, memoryview] = {}
    everything = memoryview(archive)
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        for count, info in enumerate(tar):
            if count >= MAX_MEMBERS:
                raise FileError("the archive has too many members", expected=f"at most {MAX_MEMBERS}")
            name = info.name.removeprefix("./")
            if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
                continue
            if name in members:
                raise FileError("a member occurs twice", got=shown(name[:80]))
            members[name] = everything[info.offset_data : info.offset_data + info.size]
        # tarfile takes a damaged header in the middle for the end, and optional members would go missing in silence.
        if archive[tar.offset : tar.offset + tarfile.BLOCKSIZE] != bytes(tarfile.BLOCKSIZE):
            raise FileError("the archive is damaged or cut short")
    return members


def _with_sizes(value: Any) -> Any:
    """Add its size to every type in the JSON: the standard lets it be left out, umbi 0.2.5 fails without it."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if isinstance(kind, str) and "size" not in value:
        return {**value, "size": DEFAULT_BITS.get(kind, 64)}
    return {key: _with_sizes(part) for key, part in value.items()}
