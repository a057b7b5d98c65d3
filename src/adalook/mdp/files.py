"""Models on disk: which format a name stands for, and how to read and replace files without accidents.

`.npz` is our own format, see `npz`; `.umb` is shared with other tools, see `umb`.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from adalook.errors import ArgumentError, FileError
from adalook.mdp import checks
from adalook.mdp.model import MDP

MAX_BYTES = 64 * 2**30
"""Larger files are neither written nor read; nor are files read that the machine's memory could not hold."""


def save(mdp: MDP, path: Path) -> None:
    """See `MDP.save`."""
    if _suffix(path) == ".npz":
        from adalook.mdp.npz import save_npz

        save_npz(mdp, path)
    else:
        from adalook.mdp.umb import save_umb

        save_umb(mdp, path)


def load(path: Path, discount: float | None) -> MDP:
    """See `MDP.load`."""
    suffix = _suffix(path)
    gamma = None if discount is None else checks.discount(discount)
    if suffix == ".npz":
        from adalook.mdp.npz import load_npz

        return load_npz(path, gamma)
    if gamma is None:
        raise ArgumentError(
            f"{path} carries no discount: the UMB format has none",
            remedy=f"pass one, such as al.MDP.load({path.name!r}, discount=0.99)",
        )
    from adalook.mdp.umb import load_umb

    return load_umb(path, gamma)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".umb"):
        raise FileError(f"the format of {path} is not known", expected="a name in .npz or .umb", got=repr(path.suffix))
    return suffix


def memory_limit() -> int:
    """Bytes that a file may ask for: MAX_BYTES, or the machine's memory where that is less and known."""
    try:
        return min(MAX_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return MAX_BYTES


def file_size(path: Path) -> int:
    """Size of a regular file that is small enough to load, or an error; never opens a device or a pipe."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise failure("read", path, error) from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a device or pipe"
        raise FileError(f"cannot read {path}", expected="a file", got=kind)
    if status.st_size > memory_limit():
        raise FileError(f"{path} is too large", expected=f"at most {memory_limit()} bytes", got=status.st_size)
    return status.st_size


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends and all of it is safe on disk, or never.

    It is written beside `path` under another name; when anything fails the old file stays as it was.
    """
    if "\0" in str(path):
        raise FileError(f"cannot write {str(path)!r}", expected="a name without NUL characters")
    target = Path(os.path.realpath(path))  # save through a symbolic link, do not replace the link
    temporary = target.with_name(f".adalook-{secrets.token_hex(8)}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                if target.exists():
                    os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
            _sync_directory(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except FileError:
        raise
    except OSError as error:
        raise failure("write", path, error) from error


def _sync_directory(directory: Path) -> None:
    """Make the renaming itself durable, where directories can be synchronised."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def failure(verb: str, path: Path, error: Exception) -> FileError:
    """What the operating system refused, in our words."""
    code = getattr(error, "errno", None)
    if code in (errno.ENOENT, errno.ENOTDIR):
        missing = not path.parent.is_dir()
        remedy = f"there is no directory {path.parent}: make it first" if missing else "check the name"
    else:
        remedy = {
            errno.EACCES: "check the permissions of the file and its directory",
            errno.EPERM: "check the permissions of the file and its directory",
            errno.EROFS: "save to a place that is not read-only",
            errno.ENOSPC: "free some space on that disk, or save elsewhere",
            errno.EDQUOT: "free some space on that disk, or save elsewhere",
            errno.EISDIR: "this is a directory: add a file name",
        }.get(code or 0, "")
    return FileError(f"cannot {verb} {path}", got=getattr(error, "strerror", None) or error, remedy=remedy)
