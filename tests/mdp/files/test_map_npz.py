"""Model files as memory maps: the same numbers as `MDP.load` has, and damage that is named."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import adalook as al
from adalook.errors import FileError
from adalook.mdp.files.mapped import map_npz


@pytest.mark.parametrize(
    "mdp", [al.zoo.maze(12), al.zoo.garnet(30, 3, 4), al.zoo.chain(9)], ids=["maze", "garnet", "chain"]
)
def test_maps_have_the_numbers_of_the_model(mdp: al.MDP, tmp_path: Path) -> None:
    mdp.save(tmp_path / "model.npz")
    mapped = map_npz(tmp_path / "model.npz")
    assert isinstance(mapped.codes.base, np.memmap)
    for ours, theirs in zip(mapped, (mdp.rewards, mdp.codes, *mdp.rows, mdp.discount), strict=True):
        assert np.array_equal(ours, theirs)
    with pytest.raises(ValueError, match="read-only"):
        mapped.rewards[0, 0] = 1.0


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    al.zoo.garnet(30, 3, 4).save(path)
    content = path.read_bytes()
    for cut in (10, len(content) // 2, len(content) - 10):
        path.write_bytes(content[:cut])
        with pytest.raises(FileError, match="cannot map"):
            map_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", b"")
    with pytest.raises(FileError, match="members are missing"):
        map_npz(path)
    with pytest.raises(FileError, match="cannot read"):
        map_npz(tmp_path / "nowhere.npz")


def test_compressed_members_are_refused(tmp_path: Path) -> None:
    al.zoo.chain(9).save(tmp_path / "model.npz")
    with (
        zipfile.ZipFile(tmp_path / "model.npz") as archive,
        zipfile.ZipFile(tmp_path / "small.npz", "w", zipfile.ZIP_DEFLATED) as small,
    ):
        for name in archive.namelist():
            small.writestr(name, archive.read(name))
    with pytest.raises(FileError, match="compressed"):
        map_npz(tmp_path / "small.npz")


@pytest.mark.parametrize(
    ("array", "message"), [("codes", "out of range"), ("rewards", "not finite"), ("data", "state 0, action 1")]
)
def test_numbers_are_checked_by_whoever_reads_a_part(array: str, message: str, tmp_path: Path) -> None:
    path, mdp = tmp_path / "model.npz", al.zoo.garnet(30, 3, 4)
    forged = np.array(mdp.rows.data if array == "data" else getattr(mdp, array))
    forged.flat[5] = 10**6 if array == "codes" else np.inf
    if array == "data":
        object.__setattr__(mdp, "rows", mdp.rows._replace(data=forged))
    else:
        object.__setattr__(mdp, array, forged)
    mdp.save(path)
    with pytest.raises(al.AdalookError, match=message):
        al.ShardedMDP.load(path, shards=2).solve()
