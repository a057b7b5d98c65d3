"""Arrays in one `.npz` file that comes out the same, bit for bit, whenever it is written.

`numpy.savez_compressed` stamps the members with the time; this does not.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from adalook.errors import FileError
from adalook.storage.files import atomic_write, file_error

DAWN = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip file can tell."""


def save_arrays(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Write arrays by name, in the order of their names; `numpy.load` opens the file."""
    with atomic_write(path) as file:
        file.write(packed(arrays))


def packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of such a file.

    >>> one = packed({"a": np.arange(3)})
    >>> one == packed({"a": np.arange(3)}), np.load(io.BytesIO(one))["a"]
    (True, array([0, 1, 2]))
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(arrays):
            member = zipfile.ZipInfo(f"{name}.npy", DAWN)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # as on Unix, wherever it is written
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(arrays[name]), version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue(), compresslevel=9)
    return buffer.getvalue()


def unpacked(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """Arrays by name, from the content of the file at `path`."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise FileError(f"cannot read {path}", got=error) from error


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise file_error("read", path, error) from error
