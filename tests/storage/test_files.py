"""Files from anywhere: pipes, devices, links and torn JSON are refused; killed writers leave nothing for ever."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from adalook.errors import FileError
from adalook.storage.arrays import pack_arrays, unpack_arrays
from adalook.storage.documents import check_document, parse_json, with_digest
from adalook.storage.files import atomic_write, open_to_append, read_file, remove_temporary_files


def test_only_regular_files_are_read(tmp_path):
    """A pipe would block for ever, and /dev/zero has no end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero"), tmp_path, tmp_path / "none"):
        with pytest.raises(OSError):
            read_file(path)
    (tmp_path / "file").write_bytes(b"abc")
    assert read_file(tmp_path / "file") == b"abc"
    with pytest.raises(OSError, match="at most 2"):
        read_file(tmp_path / "file", 2)


def test_links_do_not_lead_elsewhere(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(precious)
    with pytest.raises(OSError):
        open_to_append(link)
    with atomic_write(link, follow_links=False) as file:
        file.write(b"theirs")
    assert precious.read_text() == "mine"
    assert not link.is_symlink()
    assert link.read_text() == "theirs"


def test_what_killed_writers_left_is_removed_in_the_end(tmp_path):
    old, new = tmp_path / ".adalook-0123.tmp", tmp_path / ".adalook-4567.tmp"
    for path in (old, new):
        path.touch()
    os.utime(old, (1, 1))
    with atomic_write(tmp_path / "file") as file:
        file.write(b"x")
    assert not old.exists()
    assert new.exists(), "its writer may be at work"
    remove_temporary_files(tmp_path, older_than=0.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 50_000, "1" * 1_000, "1" * 10_000, "{", b"\xff\xfe", "nul"])
def test_json_that_is_none_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_a_changed_document_is_noticed():
    document = with_digest({"discount": 0.9, "name": "\ud800"})
    assert check_document(json.loads(json.dumps(document)), Path("x")) == {"discount": 0.9, "name": "\ud800"}
    for changed in ({**document, "discount": 0.99}, {**document, "more": 1}, {"discount": 0.9}, [], None):
        with pytest.raises(FileError, match=r"changed|JSON object"):
            check_document(changed, Path("x"))


def test_an_archive_cannot_claim_more_than_it_can_hold():
    import zipfile
    from io import BytesIO

    import numpy as np

    whole = pack_arrays({"a": np.zeros(100_000)})
    assert unpack_arrays(whole, Path("x"))["a"].shape == (100_000,)
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.npy", bytes(2**20))
    with pytest.raises(FileError):
        unpack_arrays(buffer.getvalue(), Path("x"))
    for at in range(0, len(whole), 7):
        damaged = whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :]
        with contextlib.suppress(FileError):
            unpack_arrays(damaged, Path("x"))
