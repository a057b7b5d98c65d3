"""Damaged and hostile UMB files: loading ends with an error of ours, without harm and without much memory."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.errors import FileError
from adalook.mdp import files
from tests.mdp.files.helpers import assert_same_model, masked_model

pytest.importorskip("umbi")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sample") / "m.umb"
    masked_model().save(path)
    return path.read_bytes()


def contents(sample: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(sample)) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}  # type: ignore[union-attr]


def tar(members: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def changed(sample: bytes, name: str, value: bytes | None) -> bytes:
    members = contents(sample) | {name: value}
    return tar([(key, content) for key, content in members.items() if content is not None])


def with_index(sample: bytes, path: list[str], value: Any) -> bytes:
    """The sample with one entry of its index changed."""
    index = json.loads(contents(sample)["index.json"])
    part = index
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return changed(sample, "index.json", json.dumps(index).encode())


def load_bytes(content: bytes, tmp_path: Path) -> al.MDP:
    (tmp_path / "m.umb").write_bytes(content)
    return al.MDP.load(tmp_path / "m.umb", discount=0.9)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
def test_every_compression_of_the_standard_is_read(sample: bytes, pack: Callable, tmp_path: Path) -> None:
    plain = tar([(f"./{name}", content) for name, content in contents(sample).items()])
    assert_same_model(load_bytes(pack(plain), tmp_path), masked_model())


def test_cut_short(sample: bytes, tmp_path: Path) -> None:
    for length in [*range(0, len(sample), 11), len(sample) - 1]:
        with pytest.raises(FileError, match=r"m\.umb"):
            load_bytes(sample[:length], tmp_path)


def test_cut_short_without_compression(sample: bytes, tmp_path: Path) -> None:
    plain = gzip.decompress(sample)
    end = len(plain.rstrip(b"\0"))
    for length in range(0, end, 97):
        with pytest.raises(FileError, match=r"m\.umb"):
            load_bytes(plain[:length], tmp_path)


def test_flipped_bits(sample: bytes, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    refused = 0
    for position in range(0, len(sample), 5):
        damaged = bytearray(sample)
        damaged[position] ^= 1 << int(rng.integers(8))
        try:
            loaded = load_bytes(bytes(damaged), tmp_path)
        except FileError:
            refused += 1
        else:
            assert_same_model(loaded, masked_model())
    assert refused > 0.9 * len(sample) / 5


def test_damaged_tar_header_does_not_hide_members(sample: bytes, tmp_path: Path) -> None:
    plain = bytearray(gzip.decompress(sample))
    plain[plain.index(b"actions/choices/values.bin") + 148] ^= 1  # its checksum
    with pytest.raises(FileError, match="damaged or cut short"):
        load_bytes(bytes(plain), tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("index.json", None, "index.json is missing"),
        ("index.json", b"{", "index.json is damaged"),
        ("index.json", b"[]", "index.json is damaged"),
        ("index.json", b"[" * 100_000, "index.json is damaged"),
        ("branch-to-target.bin", None, "branch-to-target.bin is missing"),
        ("branch-to-target.bin", b"abc", "branch-to-target.bin has the wrong size"),
        ("branch-to-probability.bin", None, "branch-to-probability.bin is missing"),
        ("state-to-choices.bin", None, "state-to-choices.bin is missing"),
        ("choice-to-branches.bin", None, "choice-to-branches.bin is missing"),
        ("annotations/rewards/reward/choices/values.bin", None, "values.bin is missing"),
        ("annotations/rewards/reward/choices/values.bin", bytes(8), "values.bin has the wrong size"),
    ],
)
def test_wrong_members(sample: bytes, name: str, value: bytes | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=message):
        load_bytes(changed(sample, name, value), tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "where", "value", "message"),
    [
        ("branch-to-target.bin", "<u8", 4, 10, "branch-to-target.bin is out of range"),
        ("branch-to-target.bin", "<u8", 4, 2**64 - 1, "branch-to-target.bin is out of range"),
        ("state-to-choices.bin", "<u8", 0, 1, "state-to-choices.bin is damaged"),
        ("state-to-choices.bin", "<u8", 2, 20, "state-to-choices.bin is damaged"),
        ("state-to-choices.bin", "<u8", 2, 2**63, "state-to-choices.bin is out of range"),
        ("choice-to-branches.bin", "<u8", 1, 0, "choice 0 has no branches"),
        ("actions/choices/values.bin", "<u4", 0, 3, "values.bin is out of range"),
        ("branch-to-probability.bin", "<f8", 0, -0.1, "state 0, action jump.*negative"),
        ("branch-to-probability.bin", "<f8", 0, np.nan, "entry 0 of branch-to-probability.bin is not finite"),
    ],
)
def test_wrong_numbers(
    sample: bytes, name: str, kind: str, where: int, value: float, message: str, tmp_path: Path
) -> None:
    array = np.frombuffer(contents(sample)[name], kind).copy()
    array[where] = value
    with pytest.raises(FileError, match=message):
        load_bytes(changed(sample, name, array.tobytes()), tmp_path)


SYSTEM = "transition-system"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format-version"], 7, "version of UMB"),
        ([SYSTEM, "#states"], 2**60, "state-to-choices.bin has the wrong size"),
        ([SYSTEM, "#choices"], 2**60, "choice-to-branches.bin has the wrong size"),
        ([SYSTEM, "#branches"], 2**60, "branch-to-target.bin has the wrong size"),
        ([SYSTEM, "#choice-actions"], 2**32 - 1, "would be all but empty"),
        ([SYSTEM, "#states"], -1, "index.json is damaged"),
        ([SYSTEM, "#states"], "many", "index.json is damaged"),
        ([SYSTEM, "branch-probability-type"], {"type": "double", "size": 2**31}, "index.json is damaged"),
        ([SYSTEM, "branch-probability-type"], {"type": "rational", "size": 12}, "type rational"),
        (["annotations", "rewards", "reward", "type"], {"type": "string", "size": 64}, "type string"),
        (["annotations", "rewards", "reward", "type"], {"type": "rational", "size": 2**30}, "wrong size"),
        (["annotations", "rewards", "reward", "probability-type"], {"type": "double", "size": 64}, "random"),
        (["annotations"], {"rewards": {}}, "no rewards"),
    ],
)
def test_lying_index(sample: bytes, path: list[str], value: Any, message: str, tmp_path: Path) -> None:
    content = with_index(sample, path, value)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=message):
            load_bytes(content, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_type_may_leave_out_its_size(sample: bytes, tmp_path: Path) -> None:
    content = with_index(sample, [SYSTEM, "branch-probability-type"], {"type": "double"})
    assert_same_model(load_bytes(content, tmp_path), masked_model())


def test_rational_with_denominator_zero(sample: bytes, tmp_path: Path) -> None:
    branches = len(contents(sample)["branch-to-target.bin"]) // 8
    rational = with_index(sample, [SYSTEM, "branch-probability-type"], {"type": "rational", "size": 128})
    content = changed(rational, "branch-to-probability.bin", bytes(16 * branches))
    with pytest.raises(FileError, match="not a number"):
        load_bytes(content, tmp_path)


def test_duplicate_members(sample: bytes, tmp_path: Path) -> None:
    members = [*contents(sample).items(), ("branch-to-target.bin", b"")]
    with pytest.raises(FileError, match="occurs twice"):
        load_bytes(tar(members), tmp_path)


def test_members_with_paths_are_ignored_and_not_extracted(sample: bytes, tmp_path: Path) -> None:
    members = [*contents(sample).items(), ("../evil", b"x"), ("/evil", b"x")]
    assert_same_model(load_bytes(tar(members), tmp_path), masked_model())
    assert [p.name for p in tmp_path.iterdir()] == ["m.umb"]


def test_too_many_members(sample: bytes, tmp_path: Path) -> None:
    members = [*contents(sample).items(), *((str(k), b"") for k in range(10_001))]
    with pytest.raises(FileError, match="too many members"):
        load_bytes(gzip.compress(tar(members), 1), tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_bomb(pack: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 4 * 10**6)
    with pytest.raises(FileError, match="archive is too large"):
        load_bytes(pack(bytes(50_000_000)), tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"\xfd7zXZ\x00", b"nonsense" * 200, bytes(10240)])
def test_nonsense(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot load .*m\.umb"):
        load_bytes(content, tmp_path)
