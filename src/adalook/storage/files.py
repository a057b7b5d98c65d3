"""Atomic writes: a file is replaced only when the new one is complete and on disk."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from adalook.errors import FileError


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file that replaces `path` when the block ends without an error.

    The temporary file lies beside `path` and is synchronised before it is renamed; when anything fails it is removed
    and the old file stays as it was.
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
            fsync_directory(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except FileError:
        raise
    except OSError as error:
        raise file_error("write", path, error) from error


def fsync_directory(directory: Path) -> None:
    """Make renames and new files in a directory durable, where the system can synchronise directories."""
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


def make_directory(directory: Path) -> None:
    """Make a directory and its parents unless they exist; worth doing before long work."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise file_error("make directory", directory, error) from error


def file_error(verb: str, path: Path, error: Exception) -> FileError:
    """Return the `FileError` for an error of the operating system, with what to do about it.

    Args:
        verb: what failed, such as "write".
        path: what it failed on.
        error: what the system raised.
    """
    code = getattr(error, "errno", None)
    obstacle = _obstacle(path) if code in (errno.ENOTDIR, errno.EEXIST) else None
    if obstacle is not None:
        remedy = f"choose another place: {obstacle} exists and is not a directory"
    elif code in (errno.ENOENT, errno.ENOTDIR):
        missing = not path.parent.is_dir()
        remedy = f"there is no directory {path.parent}: make it first" if missing else "check the name"
    else:
        remedy = _REMEDIES.get(code or 0, "")
    return FileError(f"cannot {verb} {path}", got=getattr(error, "strerror", None) or error, remedy=remedy)


_REMEDIES = {
    errno.EACCES: "check the permissions of the file and its directory",
    errno.EPERM: "check the permissions of the file and its directory",
    errno.EROFS: "save to a place that is not read-only",
    errno.ENOSPC: "free some space on that disk, or save elsewhere",
    errno.EDQUOT: "free some space on that disk, or save elsewhere",
    errno.EFBIG: "files may not grow that large here: raise the limit (ulimit -f), or save elsewhere",
    errno.EISDIR: "this is a directory: add a file name",
}


def _obstacle(path: Path) -> Path | None:
    """Return the path itself or the first parent that exists and is not a directory."""
    return next((place for place in (path, *path.parents) if os.path.lexists(place) and not place.is_dir()), None)
