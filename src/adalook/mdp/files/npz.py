"""The model format `.npz`: a model comes back bit for bit.

The file holds the model's arrays as they are in memory, one uncompressed `.npy` member each (`numpy.load` opens it
too), at places that are multiples of 64 bytes, so that a model need not be read: it can be mapped (`mmap=True`), and
the system brings in what is looked at. The member `header` is JSON: format and version, the discount as a hexadecimal
float, the type and shape of every array, the small parts of the layout, names of states and actions as JSON lists, and
a BLAKE2b digest of all the rest.

Nothing in a file is trusted. There is no pickle; sizes are compared with the file itself before memory is allocated;
and since a digest keeps out accidents but no forger, every index and number is checked before a model is made of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from adalook.errors import FileError, ModelError, shown
from adalook.mdp import checks, files
from adalook.mdp.layout import Layout
from adalook.mdp.model import MDP
from adalook.mdp.names import Names, checked_names
from adalook.mdp.transitions import NOT_OFFERED, Rows, code_of_row
from adalook.storage import files as disk
from adalook.storage.documents import parse_json

FORMAT = "adalook-mdp"
VERSION = 1
VERSION_WITH_NAMES = 2
"""The version of files with names of states or actions, which readers of the first version do not know."""
VERSION_WITH_NARROW_REWARDS = 3
"""The version of large models whose rewards are int8 or float32."""
VERSIONS = (VERSION, VERSION_WITH_NAMES, VERSION_WITH_NARROW_REWARDS)
ALIGNMENT = 64
PADDING_FIELD = struct.Struct("<HH")
"""An extra field of a zip member that means nothing: its number (that of Android's zipalign) and its length."""
PADDING_ID = 0xD935
LOCAL_HEADER_BYTES = 30
"""Of a zip member, name and extra fields aside, whose lengths are the last four of these bytes."""
ZIP64_FIELD_BYTES = 20
"""Of the extra field with a large member's sizes."""
CHECKED_NUMBERS = 2**20
"""Pairs of a mapped model that are checked at a time and, about, successors of its rows."""

MAX_HEADER_BYTES = 16 * 2**20
CHUNK_BYTES = 2**20

DAMAGED_REMEDY = "the file is damaged or was not made by adalook: save or copy it again"


class MemberFormat(NamedTuple):
    """The dtypes and the number of dimensions that an array in the file may have."""

    types: tuple[str, ...]
    ndim: int


FLOATS, INTS, BOOLS = ("<f8",), ("<i4", "<i8"), ("|b1",)
MODEL_ARRAYS = {
    "rewards": MemberFormat(("<f8", "<f4", "|i1"), 2),
    "codes": MemberFormat(INTS, 2),
    "indptr": MemberFormat(INTS, 1),
    "indices": MemberFormat(INTS, 1),
    "data": MemberFormat(FLOATS, 1),
}
LAYOUT_ARRAYS = {
    "cells": MemberFormat(INTS, 2),
    "walls": MemberFormat(BOOLS, 2),
    "goals": MemberFormat(INTS, 2),
    "traps": MemberFormat(INTS, 2),
}
NAME_ARRAYS = {"state_names": MemberFormat(("|u1",), 1), "action_names": MemberFormat(("|u1",), 1)}
"""Names are a JSON list each, as bytes; a file has only those that the model has."""
HEADER_FIELDS = {"format", "version", "discount", "num_shared_rows", "arrays", "layout", "digest"}
LAYOUT_FIELDS = {"moves", "start", "action_names"}

Arrays = dict[str, np.ndarray]


# ---- writing


def save_npz(mdp: MDP, path: Path) -> None:
    """Write a model; the same model makes the same file."""
    arrays: Arrays = {
        "rewards": mdp.rewards,
        "codes": mdp.codes,
        "indptr": mdp.rows.indptr,
        "indices": mdp.rows.indices,
        "data": mdp.rows.data,
    }
    fields: dict[str, Any] | None = None
    if mdp.layout is not None:
        fields = _add_layout(mdp.layout, arrays, mdp.rewards.shape)
    for kind, names in zip(NAME_ARRAYS, mdp.names, strict=True):
        if names:
            arrays[kind] = np.frombuffer(json.dumps(names, ensure_ascii=False).encode(), np.uint8)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    version = VERSION_WITH_NAMES if any(mdp.names) else VERSION
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": version if mdp.rewards.dtype == np.float64 else VERSION_WITH_NARROW_REWARDS,
        "discount": mdp.discount.hex(),
        "num_shared_rows": int(mdp.rows.num_shared),
        "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()},
        "layout": fields,
    }
    header["digest"] = _digest(header, arrays)
    text = json.dumps(header).encode()
    size = sum(array.nbytes for array in arrays.values())
    if size > files.MAX_BYTES or len(text) > MAX_HEADER_BYTES:
        raise FileError(f"the model is too large for {path}", expected=f"at most {files.MAX_BYTES} bytes", got=size)
    with disk.atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in {"header": np.frombuffer(text, np.uint8), **arrays}.items():
            info = zipfile.ZipInfo(f"{name}.npy")  # has a fixed date
            info.extra = _padding(file.tell() + LOCAL_HEADER_BYTES + len(info.filename) + ZIP64_FIELD_BYTES)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def _padding(place: int) -> bytes:
    """Return an extra field for a member that, without it, would begin at this place; with it, at a multiple of 64."""
    rest = -(place + PADDING_FIELD.size) % ALIGNMENT
    return PADDING_FIELD.pack(PADDING_ID, rest) + bytes(rest)


def _add_layout(layout: Layout, arrays: Arrays, shape: tuple[int, ...]) -> dict[str, Any]:
    """Add the layout's arrays and return its small parts; raise if it could not be read back."""
    cells = checks.number_array(layout.cells, "layout.cells", kinds="iu")
    arrays["cells"] = cells if cells.dtype.str in INTS else cells.astype(np.int64)
    arrays["walls"] = np.asarray(layout.walls, np.bool_)
    try:
        arrays["goals"], arrays["traps"] = (np.array(c, np.int64).reshape(-1, 2) for c in (layout.goals, layout.traps))
        fields = {
            "moves": [[int(x) for x in move] for move in layout.moves],
            "start": None if layout.start is None else [int(x) for x in layout.start],
            "action_names": [str(name) for name in layout.action_names],
        }
    except (TypeError, ValueError) as error:
        raise ModelError(
            "the layout cannot be saved", expected="cells and moves as pairs of ints", got=error
        ) from error
    _checked_layout(fields, arrays, shape)
    return fields


def _digest(header: dict[str, Any], arrays: Arrays) -> str:
    """Return the BLAKE2b of the header without its digest, then of the arrays' bytes in the header's order."""
    rest = {key: value for key, value in header.items() if key != "digest"}
    state = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=32)
    for name in header["arrays"]:
        state.update(_bytes(arrays[name]).data)
    return state.hexdigest()


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


# ---- reading


def load_npz(path: Path, discount: float | None, mapped: bool = False) -> MDP:
    """Read a model; a discount that is given takes the place of the stored one.

    With `mapped` its arrays stay in the file, which must not be written to as long as the model is used; to replace it
    as `save` does is no harm.
    """
    size = files.file_size(path, files.MAX_BYTES if mapped else files.memory_limit())
    check = _checked_in_parts if mapped else _checked
    try:
        with _BoundedFile(path) as file, zipfile.ZipFile(file) as archive:
            header, arrays = _read(archive, size, path if mapped else None)
        stored = checks.checked_discount(_from_hex(header["discount"]))
        model = check(arrays, header["num_shared_rows"])
        layout = None
        if header["layout"] is not None:
            layout = _checked_layout(header["layout"], arrays, arrays["rewards"].shape)
        names = _checked_names(arrays, arrays["rewards"].shape)
    except (FileError, ModelError) as error:
        raise FileError(f"cannot load {path}: {error}") from error
    except (PermissionError, FileNotFoundError) as error:
        raise disk.file_error("read", path, error) from error
    except MemoryError as error:
        remedy = "" if mapped else "leave it in its file: al.MDP.load(…, mmap=True)"
        raise FileError(f"there is not enough memory to load {path}", got=f"{size} bytes", remedy=remedy) from error
    # What zipfile raises for archives that are cut short, encrypted, compressed in odd ways or plain nonsense.
    except (zipfile.BadZipFile, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError) as error:
        raise _damaged(f"cannot load {path}: {error}") from error
    place = path.resolve() if mapped else None
    return MDP._adopt(*model, stored if discount is None else discount, layout, names, mapped=place)


def _damaged(what: str, expected: object = None, got: object = None) -> FileError:
    return FileError(what, expected=expected, got=got, remedy=DAMAGED_REMEDY)


class _BoundedFile(io.FileIO):
    """A file that returns little at a time: zipfile would read a directory of any size, and make objects of it."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = CHUNK_BYTES
        if size > CHUNK_BYTES:
            raise zipfile.BadZipFile("the archive's directory is too large")
        return super().read(size) or b""


def _read(archive: zipfile.ZipFile, size: int, mapped: Path | None) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays, as many and as large as the header says, with the right digest.

    With the path of the archive, the arrays of the model itself are mapped.
    """
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise _damaged("a member occurs twice")
    known = {"header", *MODEL_ARRAYS, *LAYOUT_ARRAYS, *NAME_ARRAYS}
    for name, info in members.items():
        if name not in known or info.filename != f"{name}.npy":
            raise _damaged("there is a member that does not belong here", got=shown(info.filename[:80]))
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise _damaged(f"the member {name} is compressed", expected="plain members")
    if sum(info.file_size for info in members.values()) > size:
        raise _damaged("the members are larger than the file")
    if "header" not in members or members["header"].file_size > MAX_HEADER_BYTES:
        raise _damaged("the header is missing or too large")
    with archive.open(members["header"]) as member:
        header = _parse(_read_array(member, members["header"].file_size, "header", MemberFormat(("|u1",), 1)).tobytes())
    kinds = MODEL_ARRAYS if header["layout"] is None else {**MODEL_ARRAYS, **LAYOUT_ARRAYS}
    if header["version"] >= VERSION_WITH_NAMES:
        kinds = kinds | {name: kind for name, kind in NAME_ARRAYS.items() if name in members}
    if set(members) != {"header", *kinds} or set(header["arrays"]) != set(kinds):
        raise _damaged("members are missing or too many", expected=sorted(kinds), got=sorted(members))
    arrays: Arrays = {}
    for name, kind in kinds.items():
        with archive.open(members[name]) as member:
            if mapped is not None and name in MODEL_ARRAYS:
                arrays[name] = _map_array(member, members[name], kind, mapped)
            else:
                arrays[name] = _read_array(member, members[name].file_size, name, kind)
        if [arrays[name].dtype.str, list(arrays[name].shape)] != header["arrays"][name]:
            raise _damaged(f"the type or shape of {name} is not what the header says")
    if _digest(header, arrays) != header["digest"]:
        raise _damaged("the digest does not match the contents")
    return header, arrays


def _read_array(member: IO[bytes], size: int, name: str, kind: MemberFormat) -> np.ndarray:
    """Read one `.npy` member into memory."""
    array: np.ndarray = np.empty(*_shape_and_type(member, size, name, kind))
    flat = _bytes(array)
    for start in range(0, len(flat), CHUNK_BYTES):
        part = member.read(min(CHUNK_BYTES, len(flat) - start))
        if len(part) != min(CHUNK_BYTES, len(flat) - start):
            raise EOFError(f"the member {name} is cut short")
        flat[start : start + len(part)] = np.frombuffer(part, np.uint8)
    return array


def _map_array(member: IO[bytes], info: zipfile.ZipInfo, kind: MemberFormat, path: Path) -> np.ndarray:
    """Map one `.npy` member: an array that can only be read, and takes no memory of its own."""
    name = info.filename.removesuffix(".npy")
    shape, dtype = _shape_and_type(member, info.file_size, name, kind)
    if 0 in shape:
        return np.empty(shape, dtype)
    with disk.open_to_read(path) as file:
        file.seek(info.header_offset)
        lengths = struct.unpack("<HH", file.read(LOCAL_HEADER_BYTES)[-4:])
    place = info.header_offset + LOCAL_HEADER_BYTES + sum(lengths) + member.tell()
    if place % dtype.itemsize:
        raise FileError(
            f"the member {name} cannot be mapped: it lies at an odd place",
            remedy="this file was made by an older adalook: save it again, al.MDP.load(path).save(path)",
        )
    return np.asarray(np.memmap(path, dtype, "r", place, shape))


def _shape_and_type(
    member: IO[bytes], size: int, name: str, kind: MemberFormat
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the header of an `.npy` member of so many bytes, which must claim exactly the bytes that follow."""
    try:
        with warnings.catch_warnings():  # numpy warns when it has to guess; then it is not our file
            warnings.simplefilter("error")
            if np.lib.format.read_magic(member) != (1, 0):
                raise _damaged(f"the member {name} has the wrong version of the npy format", expected="1.0")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member, max_header_size=1000)
    except (FileError, zipfile.BadZipFile):
        raise
    except Exception as error:  # numpy parses this header as Python and lets all kinds of errors through
        raise _damaged(f"the member {name} has a damaged npy header", got=repr(str(error)[:80])) from error
    if dtype.str not in kind.types or len(shape) != kind.ndim or fortran:
        raise _damaged(
            f"the member {name} has the wrong type",
            expected=f"{' or '.join(kind.types)}, {kind.ndim}-dimensional, C order",
            got=f"{dtype.str} {shape}{', Fortran order' if fortran else ''}",
        )
    if (
        not all(type(length) is int for length in shape)
        or min(shape) < 0
        or math.prod(shape) * dtype.itemsize != size - member.tell()
    ):
        raise _damaged(f"the size of the member {name} is wrong", expected=f"shape {shape} of {dtype.str}", got=size)
    return shape, dtype


def _parse(text: bytes) -> dict[str, Any]:
    """Return the header with all its fields; those not used before the digest is known are still unchecked."""
    try:
        header = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise _damaged("the header is not JSON") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _damaged("this is not a model file of adalook", expected=f"format {FORMAT!r}")
    if header.get("version") not in VERSIONS:
        raise FileError(
            "the version of the format is not known",
            expected=" or ".join(map(str, VERSIONS)),
            got=shown(header.get("version")),
            remedy="read it with a newer adalook",
        )
    layout = header.get("layout")
    whole = set(header) == HEADER_FIELDS and isinstance(header["arrays"], dict)
    if not whole or not (layout is None or (isinstance(layout, dict) and set(layout) == LAYOUT_FIELDS)):
        raise _damaged("the header has the wrong fields", expected=sorted(HEADER_FIELDS), got=sorted(header)[:20])
    return header


def _from_hex(text: Any) -> float:
    try:
        return float.fromhex(text)
    except (TypeError, ValueError, OverflowError):
        raise _damaged("the discount is damaged", expected="a hexadecimal float", got=shown(text)) from None


# ---- what a file says, checked like what a user says


def _checked(arrays: Arrays, num_shared_rows: Any) -> tuple[np.ndarray, np.ndarray, Rows]:
    """Return rewards, codes and rows; every number that is used as an index is in range from here on."""
    rows = _checked_structure(arrays, num_shared_rows)
    rewards = _checked_pairs(arrays, rows, slice(None))
    data = _checked_rows(arrays, rows, 0, rows.num_rows)
    return rewards, arrays["codes"], rows._replace(data=data)


def _checked_in_parts(arrays: Arrays, num_shared_rows: Any) -> tuple[np.ndarray, np.ndarray, Rows]:
    """Return what `_checked` does, looking at some states and some rows at a time and keeping no copy."""
    rows = _checked_structure(arrays, num_shared_rows)
    rewards, codes = arrays["rewards"], arrays["codes"]
    states = max(1, CHECKED_NUMBERS // codes.shape[1])
    for first in range(0, len(codes), states):
        part = slice(first, first + states)
        if not (rewards[part] == _checked_pairs(arrays, rows, part)).all():
            raise ModelError("there are rewards where no action is offered", expected="0 there")
    some = max(1, CHECKED_NUMBERS * rows.num_rows // max(1, len(rows.indices)))
    for first in range(0, rows.num_rows, some):
        _checked_rows(arrays, rows, first, min(first + some, rows.num_rows))
    return rewards, codes, rows


def _checked_structure(arrays: Arrays, num_shared_rows: Any) -> Rows:
    """Return the table of rows if the arrays fit together; what is in them is still unchecked."""
    codes, indptr, indices, data = (arrays[name] for name in ("codes", "indptr", "indices", "data"))
    num_rows = len(indptr) - 1
    if codes.shape != arrays["rewards"].shape:
        raise ModelError("codes and rewards differ in shape", expected=arrays["rewards"].shape, got=codes.shape)
    if num_rows < 0 or indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        raise ModelError("the table of rows is damaged", expected="indptr from 0 to nnz, never falling")
    if len(indices) != len(data):
        raise ModelError("indices and data differ in length", expected=len(indices), got=len(data))
    if type(num_shared_rows) is not int or not 0 <= num_shared_rows <= num_rows:
        raise ModelError("num_shared_rows is wrong", expected=f"0 to {num_rows}", got=shown(num_shared_rows))
    checks.reward_table(arrays["rewards"])
    return Rows(indptr, indices, data, num_shared_rows)


def _checked_pairs(arrays: Arrays, rows: Rows, states: slice) -> np.ndarray:
    """Check the codes of some states and return their rewards, zero where an action is not offered."""
    first, num_states, codes = states.start or 0, len(arrays["codes"]), arrays["codes"][states]
    offered = codes != NOT_OFFERED
    rewards = checks.checked_rewards(arrays["rewards"][states], offered, first)
    checks.checked_mask(offered, rewards.shape, first)
    wrong = (codes >= num_states) | (codes <= code_of_row(rows.num_rows))
    if wrong.any():
        s, a = np.argwhere(wrong)[0]
        raise ModelError(
            f"the code of state {first + s}, action {a} is out of range",
            expected=f"{code_of_row(rows.num_rows) + 1} to {num_states - 1}",
            got=int(codes[s, a]),
        )
    return rewards


def _checked_rows(arrays: Arrays, rows: Rows, first: int, last: int) -> np.ndarray:
    """Check rows first..last-1 of the table and return their probabilities."""
    codes, num_states = arrays["codes"], len(arrays["codes"])
    start, stop = int(rows.indptr[first]), int(rows.indptr[last])
    indptr, indices = rows.indptr[first : last + 1] - rows.indptr[first], rows.indices[start:stop]

    def owner(row: int) -> str:
        users = np.argwhere(codes == code_of_row(first + row))
        return "state {}, action {}".format(*users[0]) if len(users) else f"row {first + row}, which nobody uses"

    used = np.ones(last - first, bool)
    data = checks.checked_row_table(indptr, indices, rows.data[start:stop], used, num_states, owner)
    within = np.ones(max(len(indices) - 1, 0), bool)
    starts = indptr[(indptr > 0) & (indptr < len(indices))]
    within[starts - 1] = False
    unsorted = within & (indices[1:] <= indices[:-1])
    zero = data <= 0.0
    if unsorted.any() or zero.any():
        entry = int(np.argmax(unsorted)) if unsorted.any() else int(np.argmax(zero))
        row = int(np.searchsorted(indptr, entry, side="right")) - 1
        raise ModelError(
            f"the row of {owner(row)} is not in its normal form",
            expected="successors in ascending order, none twice, none with probability 0",
        )
    return data


def _checked_layout(fields: dict[str, Any], arrays: Arrays, shape: tuple[int, ...]) -> Layout:
    """Return the layout of a model of this (S, A), or raise unless all of it lies on the grid."""
    cells, walls = arrays["cells"], arrays["walls"]
    if (_bytes(walls) > 1).any() or walls.ndim != 2:
        raise ModelError("the layout's walls are damaged", expected="bools (rows, columns)")
    off = (cells == -1).all(axis=1) if cells.shape == (shape[0], 2) else np.zeros(0, bool)
    if len(off) != shape[0] or not (off | _inside(cells, walls)).all():
        raise ModelError("the layout's cells are wrong", expected="a cell, or (-1, -1), for every state")
    moves, start, names = (fields[key] for key in ("moves", "start", "action_names"))
    for part, name in ((moves, "moves"), (names, "action_names")):
        if not isinstance(part, list) or len(part) not in (0, shape[1]):
            raise ModelError(f"the layout's {name} are wrong", expected=f"none, or one for each of {shape[1]} actions")
    if not all(_is_pair(move) for move in moves) or not all(isinstance(name, str) for name in names):
        raise ModelError("the layout's moves or action_names are wrong", expected="pairs of ints, and strings")
    if start is not None and not _is_pair(start):
        raise ModelError("the layout's start is wrong", expected="a cell")
    start_cell = np.array([] if start is None else [start], np.int64).reshape(-1, 2)
    for some, name in ((arrays["goals"], "goals"), (arrays["traps"], "traps"), (start_cell, "start")):
        if some.shape[1:] != (2,) or not _inside(some, walls).all():
            raise ModelError(f"the layout's {name} is off the grid", expected=f"cells of a grid {walls.shape}")

    def pairs(table: Any) -> tuple[tuple[int, int], ...]:
        return tuple((row, column) for row, column in table)

    goals, traps = (pairs(arrays[name].tolist()) for name in ("goals", "traps"))
    return Layout(cells, walls, pairs(moves), None if start is None else pairs([start])[0], goals, traps, tuple(names))


def _checked_names(arrays: Arrays, shape: tuple[int, ...]) -> Names:
    """Return the names of a model of this (S, A); none where the file has none."""
    found: list[tuple[str, ...]] = []
    for member, count in zip(NAME_ARRAYS, shape, strict=True):
        if member not in arrays:
            found.append(())
            continue
        try:
            names = parse_json(arrays[member].tobytes())
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ModelError(f"{member} are damaged", expected="a JSON list of texts")
        found.append(checked_names(names, count, member.partition("_")[0]))
    return Names(*found)


def _inside(cells: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """Return which of the cells (n, 2) lie on the grid, as bools (n,)."""
    inside: np.ndarray = np.all((cells >= 0) & (cells < walls.shape), axis=1)
    return inside


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(x) is int and abs(x) < 2**31 for x in value)
