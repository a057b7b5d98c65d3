"""Arrays as the content of an `.npz` file that depends on nothing but the arrays, and back."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adalook.errors import FileError

MAX_MEMBERS = 100_000
MAX_GROWTH, MIN_UNPACKED_BYTES = 1_100, 2**20
"""Members may claim this many times the size of the archive, the most that deflate can do, or a mebibyte …"""
UNPACKED, PICTURES = 1, 200
"""… or so many times, if it was written without compression, or holds pictures, which do not pack so well."""
DAWN = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip file can tell."""


def pack_arrays(arrays: Mapping[str, Any], *, compress: bool = True) -> bytes:
    """Return the content of an `.npz` file that is the same, bit for bit, whenever it is made.

    `numpy.savez` and `numpy.savez_compressed` stamp their members with the time; this does not.

    >>> one = pack_arrays({"a": np.arange(3)})
    >>> one == pack_arrays({"a": np.arange(3)}), np.load(io.BytesIO(one))["a"]
    (True, array([0, 1, 2]))
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(arrays):
            member = zipfile.ZipInfo(f"{name}.npy", DAWN)
            member.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            member.create_system = 3  # as on Unix, wherever it is written
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(arrays[name]), version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getbuffer(), compresslevel=9)
    return buffer.getvalue()


def unpack_arrays(content: bytes, path: Path, *, max_growth: int = MAX_GROWTH) -> dict[str, np.ndarray]:
    """Return the arrays by name, from the content of the `.npz` file at `path`, which errors name.

    Members that claim more than `max_growth` times the size of the file are refused before they are unpacked: a few
    bytes can hold a gigabyte of zeros.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
        size = sum(member.file_size for member in members)
        if len(members) > MAX_MEMBERS or size > max(max_growth * len(content), MIN_UNPACKED_BYTES):
            raise ValueError(f"{len(members)} members that claim {size} bytes")
        with warnings.catch_warnings():  # numpy warns when it has to guess; then it is not our file
            warnings.simplefilter("error")
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
        if not all(isinstance(array, np.ndarray) for array in found.values()):
            raise ValueError("a member that is no array")
        return found
    except MemoryError as error:
        raise FileError(f"there is not enough memory to read {path}", got=error) from error
    except Exception as error:  # numpy parses headers as Python, and zipfile trusts them: all kinds of errors come
        raise FileError(f"{path} is damaged", expected="an .npz archive of numbers", got=error) from error
