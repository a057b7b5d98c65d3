"""Models on disk: what is saved comes back bit for bit, saving is all or nothing, accidents are noticed."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import adalook as al
from adalook.errors import ArgumentError, FileError, ModelError
from adalook.mdp import files
from adalook.storage import files as disk
from tests.mdp.files.helpers import assert_same, masked_model, models, parts, with_int64

# ---- round trips


@pytest.mark.parametrize(
    "mdp",
    [
        al.zoo.chain(n=5),
        al.zoo.maze(size=12, seed=3),
        al.zoo.garnet(40, 3, 4),
        al.zoo.gridworld(4, 5),
        al.MDP([[0.0]], [[0]], 0.0),
        masked_model(),
        with_int64(masked_model()),
        al.MDP(np.zeros((3, 2)), np.asfortranarray([[0, 1], [1, 2], [2, 0]]), 0.5),
    ],
    ids=["chain", "maze", "garnet", "gridworld", "smallest", "masked", "int64", "fortran"],
)
def test_round_trip_is_exact(mdp: al.MDP, tmp_path: Path) -> None:
    mdp.save(tmp_path / "m.npz")
    assert_same(al.MDP.load(tmp_path / "m.npz"), mdp)


@given(mdp=models())
@settings(deadline=None, max_examples=60)
def test_any_model_comes_back(mdp: al.MDP, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "m.npz"
    mdp.save(path)
    assert_same(al.MDP.load(path), mdp)


def test_same_model_makes_same_file(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        masked_model().save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_opens_it_without_pickle(tmp_path: Path) -> None:
    masked_model().save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as content:
        assert np.array_equal(content["rewards"], masked_model().rewards)


def test_loaded_model_can_be_solved(tmp_path: Path) -> None:
    masked_model().save(tmp_path / "m.npz")
    assert np.array_equal(al.solve(al.MDP.load(tmp_path / "m.npz")).values, al.solve(masked_model()).values)


def test_loaded_arrays_are_read_only(tmp_path: Path) -> None:
    masked_model().save(tmp_path / "m.npz")
    assert not any(array.flags.writeable for array in parts(al.MDP.load(tmp_path / "m.npz")).values())


def test_given_discount_replaces_the_stored_one(tmp_path: Path) -> None:
    masked_model().save(tmp_path / "m.npz")
    assert al.MDP.load(tmp_path / "m.npz", discount=0.5).discount == 0.5


def test_given_discount_is_checked(tmp_path: Path) -> None:
    masked_model().save(tmp_path / "m.npz")
    with pytest.raises(ModelError, match="discount is out of range"):
        al.MDP.load(tmp_path / "m.npz", discount=1.5)


def test_names_come_back(tmp_path: Path) -> None:
    mdp = al.MDP([[0.0, 1.0]], [[0, 0]], 0.5, state_names=["tür\n"], action_names=["a", "b"])
    mdp.save(tmp_path / "m.npz")
    assert al.MDP.load(tmp_path / "m.npz").names == mdp.names
    al.MDP([[0.0, 1.0]], [[0, 0]], 0.5, action_names=["a", "b"]).save(tmp_path / "m.npz")
    assert al.MDP.load(tmp_path / "m.npz").names == ((), ("a", "b"))


# ---- names and places


@pytest.mark.parametrize("name", ["m.pkl", "m", "m.npz.zip"])
def test_other_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"\.npz or \.umb"):
        masked_model().save(tmp_path / name)
    with pytest.raises(FileError, match=r"\.npz or \.umb"):
        al.MDP.load(tmp_path / name)


@pytest.mark.parametrize("suffix", [".npz", ".umb"])
def test_missing_file(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"No such file.*Check the name"):
        al.MDP.load(tmp_path / f"none{suffix}", discount=0.9)


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="make it first"):
        masked_model().save(tmp_path / "none" / "m.npz")
    with pytest.raises(FileError, match="make it first"):
        al.MDP.load(tmp_path / "none" / "m.npz")


@pytest.mark.parametrize("suffix", [".npz", ".umb"])
def test_directory_instead_of_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"d{suffix}"
    path.mkdir()
    with pytest.raises(FileError, match="directory"):
        al.MDP.load(path, discount=0.9)
    with pytest.raises(FileError, match="directory"):
        masked_model().save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.npz")
    with pytest.raises(FileError, match="device or pipe"):
        al.MDP.load(tmp_path / "p.npz")


def test_name_with_nul() -> None:
    with pytest.raises(FileError, match="null"):
        al.MDP.load("a\0.npz")
    with pytest.raises(FileError, match="NUL"):
        masked_model().save("a\0.npz")


def test_umb_needs_a_discount(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"discount=0\.99"):
        al.MDP.load(tmp_path / "m.umb")


# ---- saving is all or nothing


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    path = tmp_path / "m.npz"
    al.zoo.chain(n=3).save(path)
    return path


def assert_untouched(path: Path) -> None:
    assert_same(al.MDP.load(path), al.zoo.chain(n=3))
    assert list(path.parent.iterdir()) == [path], "a temporary file was left behind"


@pytest.mark.parametrize("suffix", [".npz", ".umb"])
def test_disk_full_while_writing(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(b"the old file")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # the operating system cuts our writes short
    try:
        with pytest.raises(FileError, match=r"cannot write .*m\.(npz|umb)"):
            al.zoo.garnet(200, 3, 4).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"the old file"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_failure_at_the_end(step: str, old_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(FileError, match=r"No space left.*Free some space"):
            masked_model().save(old_file)
    assert_untouched(old_file)


def test_interrupt_while_writing(old_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "write_array", interrupt)
        with pytest.raises(KeyboardInterrupt):
            masked_model().save(old_file)
    assert_untouched(old_file)


def test_no_permission(old_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "open", refuse, raising=False)
        with pytest.raises(FileError, match="Check the permissions"):
            masked_model().save(old_file)
    assert_untouched(old_file)


def test_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "m.npz"
    link.symlink_to(tmp_path / "real" / "m.npz")
    masked_model().save(link)
    assert link.is_symlink()
    assert_same(al.MDP.load(tmp_path / "real" / "m.npz"), masked_model())


def test_permissions_of_the_old_file_are_kept(old_file: Path) -> None:
    old_file.chmod(0o600)
    masked_model().save(old_file)
    assert old_file.stat().st_mode & 0o777 == 0o600


def test_too_large_a_model_is_not_written(old_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "MAX_BYTES", 100)
        with pytest.raises(FileError, match="too large"):
            masked_model().save(old_file)
    assert_untouched(old_file)


# ---- accidents: a file that is cut or flipped is refused, or means the same


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sample") / "m.npz"
    masked_model().save(path)
    return path.read_bytes()


def test_cut_short(sample: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    for length in [*range(0, len(sample), 29), len(sample) - 1]:
        path.write_bytes(sample[:length])
        with pytest.raises(FileError, match=r"m\.npz"):
            al.MDP.load(path)


def test_flipped_bits(sample: bytes, tmp_path: Path) -> None:
    path, rng = tmp_path / "m.npz", np.random.default_rng(1)
    refused = 0
    for position in range(0, len(sample), 7):
        damaged = bytearray(sample)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            loaded = al.MDP.load(path)
        except FileError:
            refused += 1
        else:
            assert_same(loaded, masked_model())
    assert refused > 0.5 * len(sample) / 7


@given(content=st.binary(max_size=300), prefix=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06"]))
@settings(deadline=None)
def test_nonsense(content: bytes, prefix: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("nonsense") / "m.npz"
    path.write_bytes(prefix + content)
    with pytest.raises(FileError, match=r"cannot load .*m\.npz"):
        al.MDP.load(path)
