"""Hostile `.npz` files: whatever is inside, loading ends with an error of ours and without harm."""

from __future__ import annotations

import io
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.errors import FileError
from adalook.mdp import files
from adalook.mdp.transitions import code_of_row
from tests.mdp.files.helpers import assert_same, changed, forge, masked_model, npy, repack

# ---- forgeries: files with a correct digest and a wrong inside


def test_forging_itself_works(tmp_path: Path) -> None:
    assert_same(al.MDP.load(forge(tmp_path / "m.npz", {})), masked_model())


INSIDES: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "next state too large": (changed("codes", (4, 1), 10), "state 4, action 1 is out of range"),
    "row too large": (changed("codes", (4, 1), -100), "state 4, action 1 is out of range"),
    "row one too large": (changed("codes", (4, 1), code_of_row(masked_model().rows.num_rows)), "state 4, action 1"),
    "lowest int": (changed("codes", (4, 1), np.iinfo(np.int32).min), "state 4, action 1"),
    "no action": (changed("codes", 5, -1), "state 5 offers no action"),
    "successor too large": (changed("indices", 2, 10), "state 0, action 0 is out of range"),
    "successor negative": (changed("indices", 2, -1), "state 0, action 0 is out of range"),
    "successor twice": (changed("indices", 2, 1), "state 0, action 0 is not in its normal form"),
    "successors unsorted": (changed("indices", [1, 2], [2, 1]), "state 0, action 0 is not in its normal form"),
    "negative probability": (changed("data", [1, 2], [-0.1, 0.3]), "state 0, action 0.*negative"),
    "probability zero": (changed("data", [1, 2], [0.0, 0.2]), "state 0, action 0 is not in its normal form"),
    "probability NaN": (changed("data", 11, np.nan), "state 0, action 2.*not finite"),
    "sum": (changed("data", 11, 0.5), "state 0, action 2 do not sum to one"),
    "reward infinite": (changed("rewards", (2, 1), np.inf), "reward of state 2, action 1 is not finite"),
    "rewards too large": (changed("rewards", (2, 1), 1e305), "too large"),
    "indptr falls": (changed("indptr", 1, 100), "table of rows"),
    "indptr negative": (changed("indptr", 1, -5), "table of rows"),
    "indptr does not begin": (changed("indptr", 0, 1), "table of rows"),
    "indptr does not end": (changed("indptr", -1, 29), "table of rows"),
    "row empty": (changed("indptr", 1, 0), "do not sum to one"),
    "indptr empty": ({"indptr": np.zeros(0, np.int32)}, "table of rows"),
    "data shorter": ({"data": np.full(29, 0.1)}, "differ in length"),
    "no states": ({"rewards": np.zeros((0, 3)), "codes": np.zeros((0, 3), np.int32)}, "empty"),
    "no actions": ({"rewards": np.zeros((10, 0)), "codes": np.zeros((10, 0), np.int32)}, "empty"),
    "shapes differ": ({"rewards": np.zeros((10, 2))}, "differ in shape"),
    "cell off the grid": ({"cells": np.full((10, 2), 7)}, "cells"),
    "cell half off the grid": ({"cells": np.tile([-1, 0], (10, 1))}, "cells"),
    "cells too few": ({"cells": np.zeros((9, 2), np.int64)}, "cells"),
    "cells too wide": ({"cells": np.zeros((10, 3), np.int64)}, "cells"),
    "goal off the grid": ({"goals": np.array([[2, 0]])}, "goals"),
    "trap of three": ({"traps": np.zeros((1, 3), np.int64)}, "traps"),
    "wall that is no bool": ({"walls": np.full((2, 5), 2, np.uint8).view(bool)}, "walls"),
}


@pytest.mark.parametrize("inside", INSIDES, ids=lambda name: name.replace(" ", "-"))
def test_forged_arrays(inside: str, tmp_path: Path) -> None:
    changes, message = INSIDES[inside]
    with pytest.raises(al.AdalookError, match=message):
        al.MDP.load(forge(tmp_path / "m.npz", changes))


LAYOUT = {"moves": [], "start": None, "action_names": []}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "not a model file of adalook"),
        ({"version": 4}, "newer adalook"),
        ({"discount": (1.5).hex()}, "discount is out of range"),
        ({"discount": "nan"}, "discount is out of range"),
        ({"discount": 0.9}, "hexadecimal"),
        ({"discount": "0x1p99999"}, "hexadecimal"),
        ({"num_shared_rows": -1}, "num_shared_rows"),
        ({"num_shared_rows": 99}, "num_shared_rows"),
        ({"num_shared_rows": 1.0}, "num_shared_rows"),
        ({"arrays": {}}, "missing or too many"),
        ({"arrays": []}, "wrong fields"),
        ({"extra": 1}, "wrong fields"),
        ({"layout": None}, "missing or too many"),
        ({"layout": []}, "wrong fields"),
        ({"layout": LAYOUT | {"moves": [[0, 1]]}}, "moves"),
        ({"layout": LAYOUT | {"moves": [[0, 1], [0], [0, 0]]}}, "moves"),
        ({"layout": LAYOUT | {"moves": "abc"}}, "moves"),
        ({"layout": LAYOUT | {"start": [9, 9]}}, "start"),
        ({"layout": LAYOUT | {"start": [0, True]}}, "start"),
        ({"layout": LAYOUT | {"start": [0, 2**70]}}, "start"),
        ({"layout": LAYOUT | {"action_names": [1, 2, 3]}}, "action_names"),
    ],
)
def test_forged_header(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=message):
        al.MDP.load(forge(tmp_path / "m.npz", {}, changes))


@pytest.mark.parametrize("text", [b"", b"nonsense", b"[1]", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000])
def test_header_that_is_no_json(text: bytes, tmp_path: Path) -> None:
    path = repack(tmp_path / "m.npz", {"header.npy": npy(np.frombuffer(text, np.uint8))})
    with pytest.raises(FileError, match=r"not JSON|not a model file of adalook"):
        al.MDP.load(path)


def test_wrong_digest(tmp_path: Path) -> None:
    path = repack(tmp_path / "m.npz", {"rewards.npy": npy(np.zeros((10, 3)))})
    with pytest.raises(FileError, match="digest does not match"):
        al.MDP.load(path)


# ---- hostile containers


class Trap:
    """Unpickling this creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    objects = np.array([[Trap(trap)]], dtype=object)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.exists(), "the trap must work, or this test proves nothing"
    trap.unlink()
    for name in ("rewards", "header", "cells"):
        path = repack(tmp_path / "m.npz", {f"{name}.npy": npy(objects)})
        with pytest.raises(FileError, match="wrong type"):
            al.MDP.load(path)
        assert not trap.exists()


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("rewards", np.zeros((10, 3), np.float16)),
        ("rewards", np.zeros((10, 3), ">f8")),
        ("rewards", np.asfortranarray(np.zeros((10, 3)))),
        ("rewards", np.zeros(30)),
        ("rewards", np.zeros((10, 3), [("a", "<f8")])),
        ("codes", np.zeros((10, 3))),
        ("codes", np.zeros((10, 3), np.uint32)),
        ("codes", np.zeros((10, 3), ">i4")),
        ("indptr", np.array(0)),
        ("walls", np.zeros((2, 5), np.uint8)),
        ("data", np.zeros(30, "M8[s]")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.dtype}{value.shape}",
)
def test_wrong_types(name: str, array: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=f"the member {name} has the wrong type"):
        al.MDP.load(forge(tmp_path / "m.npz", {name: array}))


@pytest.mark.parametrize("name", ["extra.npy", "../evil.npy", "/evil.npy", "codes", "codes.npy/", "a\\b.npy"])
def test_extra_members(name: str, tmp_path: Path) -> None:
    path = repack(tmp_path / "m.npz", {name: npy(np.zeros(3))})
    with pytest.raises(FileError, match=r"does not belong|occurs twice"):
        al.MDP.load(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


@pytest.mark.parametrize("name", ["header", "rewards", "indptr", "walls"])
def test_missing_members(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="missing"):
        al.MDP.load(repack(tmp_path / "m.npz", {f"{name}.npy": None}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members(tmp_path: Path) -> None:
    masked_model().save(tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "m.npz", "a") as archive:
        archive.writestr("rewards.npy", npy(np.ones((10, 3))))
    with pytest.raises(FileError, match="occurs twice"):
        al.MDP.load(tmp_path / "m.npz")


def assert_refused_cheaply(path: Path, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=message):
            al.MDP.load(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_zip_bomb(tmp_path: Path) -> None:
    bomb = npy(np.zeros((100, 100)))[:-80_000] + bytes(200_000_000)
    path = repack(tmp_path / "m.npz", {"rewards.npy": bomb}, zipfile.ZIP_DEFLATED)
    del bomb
    assert path.stat().st_size < 1e6
    assert_refused_cheaply(path, "compressed")


@pytest.mark.parametrize("shape", [(2**40, 4), (2**62, 4), (2**63, 2**63), (-1, 3), (10, 3, 1)])
def test_npy_header_that_lies_about_its_size(shape: tuple[int, ...], tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    path = repack(tmp_path / "m.npz", {"rewards.npy": stream.getvalue() + bytes(240)})
    assert_refused_cheaply(path, "the member rewards|the size of the member rewards")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff" + b" " * 65535,
        b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{}",
        b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16,
        b"\x93NUMPY\x01\x00\x40\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (10L, 3L), }".ljust(64),
        b"\x93NUMPY\x01\x00\x28\x00" + b"__import__('os').system('touch evil')   ",
    ],
    ids=["empty", "cut", "long", "version-2", "parentheses", "python-2", "code"],
)
def test_damaged_npy_header(raw: bytes, tmp_path: Path) -> None:
    path = repack(tmp_path / "m.npz", {"rewards.npy": raw})
    assert_refused_cheaply(path, "the member rewards")


def test_large_directory(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for k in range(20_000):
            archive.writestr(f"{k}.npy", b"")
    assert_refused_cheaply(path, "directory is too large")


def test_file_larger_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    with path.open("wb") as file:
        file.truncate(files.MAX_BYTES + 1)  # sparse: takes no room
    assert_refused_cheaply(path, "too large")


def test_encrypted_member(tmp_path: Path) -> None:
    masked_model().save(tmp_path / "m.npz")
    raw = bytearray((tmp_path / "m.npz").read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
    (tmp_path / "m.npz").write_bytes(raw)
    with pytest.raises(FileError, match="encrypted"):
        al.MDP.load(tmp_path / "m.npz")
