"""Mapped models: the same numbers, left in their file, and checked as closely as those that are read."""

from __future__ import annotations

import json
import pickle
import zipfile

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.mdp import checks
from adalook.mdp.files import npz

MODELS = {
    "maze": lambda: al.zoo.maze(size=12, seed=1),
    "chain": lambda: al.zoo.chain(n=9),
    "garnet": lambda: al.zoo.garnet(50, 3, 4),
    "masked": lambda: al.MDP([[1.0, 5.0], [2.0, 3.0]], [[0, 1], [1, 0]], 0.9, mask=[[True, False], [True, True]]),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_mapped_model_has_the_same_numbers(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "CHECKED_NUMBERS", 14)
    mdp, path = MODELS[kind](), tmp_path / "model.npz"
    mdp.save(path)
    mapped = al.MDP.load(path, mmap=True)
    assert mapped.mapped == path.resolve()
    assert mdp.mapped is None
    for one, other in zip(mdp.arrays, mapped.arrays, strict=True):
        assert np.array_equal(one, other)
    for array in (mapped.rewards, mapped.codes):
        assert isinstance(array.base, np.memmap)
        assert array.ctypes.data % npz.ALIGNMENT == 0
        assert not array.flags.writeable
    assert al.MDP.load(path, mmap=True, discount=0.5).discount == 0.5
    again = pickle.loads(pickle.dumps(mapped))
    assert again.mapped == mapped.mapped
    assert np.array_equal(again.codes, mdp.codes)
    mapped.save(path)  # over itself: the old file lives as long as it is mapped
    assert np.array_equal(mapped.codes, mdp.codes)


def test_narrow_rewards_come_back_narrow(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "LARGE_PAIRS", 0)
    mdp, path = al.zoo.maze(size=12, seed=1), tmp_path / "model.npz"
    mdp.save(path)
    assert mdp.rewards.dtype == np.int8
    assert al.MDP.load(path).rewards.dtype == np.int8
    assert al.MDP.load(path, mmap=True).rewards.dtype == np.int8
    monkeypatch.undo()
    assert al.MDP.load(path).rewards.dtype == np.float64
    assert np.array_equal(al.MDP.load(path).rewards, mdp.rewards)


def damaged(path, name, change):
    """Rewrite a model file with one array changed, and its digest made right again."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files if key != "header"}
    mdp = al.MDP.load(path)
    arrays[name] = arrays[name].copy()
    change(arrays[name])
    header = {
        "format": npz.FORMAT,
        "version": npz.VERSION,
        "discount": mdp.discount.hex(),
        "num_shared_rows": int(mdp.rows.num_shared),
        "arrays": {key: [array.dtype.str, list(array.shape)] for key, array in arrays.items()},
        "layout": None,
    }
    header["digest"] = npz._digest(header, arrays)
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with open(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        for key, array in {"header": text, **arrays}.items():
            info = zipfile.ZipInfo(f"{key}.npy")
            info.extra = npz._padding(file.tell() + 30 + len(info.filename) + 20)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0))


def put(place, value):
    return lambda array: array.__setitem__(place, value)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("codes", put((40, 1), 50), "state 40, action 1 is out of range"),
        ("codes", put((40, 1), -1000), "state 40, action 1 is out of range"),
        ("codes", put(45, -1), "state 45 offers no action"),
        ("rewards", put((41, 2), np.nan), "state 41, action 2 is not finite"),
        ("indices", put(580, 50), "out of range"),
        ("data", put(400, 0.9), "do not sum to one"),
        ("data", put(400, -0.1), "negative"),
    ],
)
def test_forged_numbers_are_refused(name, change, message, tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "CHECKED_NUMBERS", 48)
    path = tmp_path / "model.npz"
    al.zoo.garnet(50, 3, 4).save(path)
    damaged(path, name, change)
    for mmap in (False, True):
        with pytest.raises(FileError, match=message):
            al.MDP.load(path, mmap=mmap)


def test_damage_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    al.zoo.garnet(50, 3, 4).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        al.MDP.load(path, mmap=True)
    al.zoo.garnet(50, 3, 4).save(tmp_path / "model.umb")
    with pytest.raises(ArgumentError, match="cannot be mapped"):
        al.MDP.load(tmp_path / "model.umb", discount=0.9, mmap=True)


def test_files_of_before_are_saved_again_first(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    with monkeypatch.context() as patch:
        patch.setattr(npz, "_padding", lambda place: bytes(4 + (place + 1) % 2))
        al.zoo.garnet(50, 3, 4).save(path)
    with pytest.raises(FileError, match="save it again"):
        al.MDP.load(path, mmap=True)
    al.MDP.load(path).save(path)
    assert al.MDP.load(path, mmap=True).num_states == 50
