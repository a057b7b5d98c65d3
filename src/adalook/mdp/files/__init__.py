"""Model files: which format a name stands for, and how large a file may be.

`.npz` is our own format, see `npz`; `.umb` is shared with other tools, see `umb`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from adalook.errors import ArgumentError, FileError, shown
from adalook.mdp import checks
from adalook.mdp.model import MDP
from adalook.storage.files import file_error

MAX_BYTES = 64 * 2**30
"""Larger files are neither written nor read; nor are files read that the machine's memory could not hold."""


def save(mdp: MDP, path: Path) -> None:
    """Write a model to the format that the name's suffix stands for: see `MDP.save`."""
    if _suffix(path) == ".npz":
        from adalook.mdp.files.npz import save_npz

        save_npz(mdp, path)
    else:
        from adalook.mdp.files.umb import save_umb

        save_umb(mdp, path)


def load(path: Path, discount: float | None, mmap: bool = False) -> MDP:
    """Read a model from the format that the name's suffix stands for: see `MDP.load`."""
    suffix = _suffix(path)
    gamma = None if discount is None else checks.checked_discount(discount)
    if suffix == ".npz":
        from adalook.mdp.files.npz import load_npz

        return load_npz(path, gamma, mmap)
    if mmap:
        raise ArgumentError(f"{path} cannot be mapped", expected="a file in .npz", remedy="load it and save it as .npz")
    if gamma is None:
        raise ArgumentError(
            f"{path} carries no discount: the UMB format has none",
            remedy=f"pass one, such as al.MDP.load({path.name!r}, discount=0.99)",
        )
    from adalook.mdp.files.umb import load_umb

    return load_umb(path, gamma)


def _suffix(path: Path) -> str:
    """Return .npz or .umb, or raise if the name has another suffix."""
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".umb"):
        inside = path / "model.npz"
        raise FileError(
            f"the format of {shown(str(path), 200)} is not known",
            expected="a name in .npz or .umb",
            got="a directory" if os.path.isdir(path) else shown(path.suffix),  # unlike Path's, False for any text
            remedy=f"name the model in it: {inside}" if os.path.isfile(inside) else "",
        )
    return suffix


def memory_limit() -> int:
    """Return the bytes that a file may ask for: MAX_BYTES, or the machine's memory where that is less and known."""
    try:
        return min(MAX_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return MAX_BYTES


def check_memory(what: str, num_bytes: int) -> None:
    """Raise `ArgumentError` if something of about so many bytes would not fit into this machine's memory."""
    limit = memory_limit()
    if num_bytes > limit:
        raise ArgumentError(f"{what} does not fit into memory", expected=f"at most {limit} bytes", got=num_bytes)


def file_size(path: Path, limit: int | None = None) -> int:
    """Return the size of a regular file that is small enough to load, or raise; never opens a device or a pipe."""
    limit = memory_limit() if limit is None else limit
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise file_error("read", path, error) from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a device or pipe"
        raise FileError(f"cannot read {path}", expected="a file", got=kind)
    if status.st_size > limit:
        remedy = "leave it in its file: al.MDP.load(…, mmap=True)" if limit < MAX_BYTES else ""
        raise FileError(f"{path} is too large", expected=f"at most {limit} bytes", got=status.st_size, remedy=remedy)
    return status.st_size
