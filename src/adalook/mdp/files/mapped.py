"""Model files as memory maps: the arrays of an `.npz` without reading them, for those who need only a part.

Members are stored uncompressed, so each is a stretch of the file. Shapes, types and sizes are checked as `npz` does;
the digest is not, since that would read the whole file, nor is any number: whoever uses a part checks it.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import NamedTuple

from adalook._arrays import FloatArray, IntArray
from adalook.errors import FileError
from adalook.mdp import checks
from adalook.mdp.files import npz
from adalook.storage import files as disk


class MappedModel(NamedTuple):
    """The arrays of a model file, mapped read-only, as `MDP` has them; nothing in them is checked."""

    rewards: FloatArray  # (S, A)
    codes: IntArray  # (S, A)
    indptr: IntArray
    indices: IntArray
    data: FloatArray
    num_shared: int
    discount: float


def map_npz(path: Path) -> MappedModel:
    """Map the arrays of a model file."""
    try:
        with disk.open_to_read(path) as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if not {"header", *npz.MODEL_ARRAYS} <= set(members):
                raise npz._damaged("members are missing", expected=sorted(npz.MODEL_ARRAYS), got=sorted(members)[:20])
            if members["header"].file_size > npz.MAX_HEADER_BYTES:
                raise npz._damaged("the header is too large")
            if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
                raise npz._damaged("there are compressed members", expected="plain members")
            with archive.open(members["header"]) as member:
                kind = npz.MemberFormat(("|u1",), 1)
                header = npz._parse(npz._read_array(member, members["header"].file_size, "header", kind).tobytes())
            arrays = []
            for name, kind in npz.MODEL_ARRAYS.items():
                with archive.open(members[name]) as member:
                    arrays.append(npz._map_array(member, members[name], kind, path))
    except FileError as error:
        raise FileError(f"cannot map {path}: {error}") from error
    except (PermissionError, FileNotFoundError, IsADirectoryError) as error:
        raise disk.file_error("read", path, error) from error
    except (zipfile.BadZipFile, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError) as error:
        raise npz._damaged(f"cannot map {path}: {error}") from error
    rewards, codes, indptr, indices, data = arrays
    shared = header["num_shared_rows"]
    sound = codes.shape == rewards.shape and 0 not in codes.shape and len(indptr) > 0 and len(indices) == len(data)
    if not sound or type(shared) is not int or not 0 <= shared < len(indptr):
        raise npz._damaged(f"the arrays of {path} do not fit together")
    discount = checks.checked_discount(npz._from_hex(header["discount"]))
    return MappedModel(rewards, codes, indptr, indices, data, shared, discount)
