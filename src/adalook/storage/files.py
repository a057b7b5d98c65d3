"""Atomic writes: a file is replaced only when the new one is complete and on disk."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from adalook.errors import ArgumentError, FileError, shown

TEMPORARY_PREFIX, TEMPORARY_SUFFIX = ".adalook-", ".tmp"
STALE_SECONDS = 24 * 3600.0
"""Temporary files of writers that were killed are removed when they are older than this, or at once under a lock."""
MAX_READ_BYTES = 16 * 2**30
"""Larger files are not read whole."""


def checked_path(value: Any, name: str = "path") -> Path:
    """Return a path, or raise `ArgumentError`."""
    try:
        return Path(value)
    except Exception:  # a path of others may raise what it likes
        raise ArgumentError(f"{name} is wrong", expected="a str or pathlib.Path", got=shown(value)) from None


def open_to_read(path: Path) -> IO[bytes]:
    """Open a regular file; raise OSError for pipes and devices, which might never end."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")


def read_file(path: Path, max_bytes: int = MAX_READ_BYTES) -> bytes:
    """Return the content of a regular file; raise OSError for anything else, and for what is too large."""
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise OSError(errno.EFBIG, f"it has {size} bytes, and at most {max_bytes} are read")
        return file.read(max_bytes)


def open_to_append(path: Path, *, buffering: int = -1) -> IO[bytes]:
    """Open a file to append to it; a symbolic link, a pipe or a device in its place is refused."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return open(descriptor, "ab", buffering=buffering)


def remove_temporary_files(directory: Path, older_than: float = STALE_SECONDS) -> None:
    """Remove what writers that were killed have left in a directory; what cannot be removed stays."""
    with suppress(OSError):
        for path in directory.glob(f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"):
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime >= older_than:
                    path.unlink()


@contextmanager
def atomic_write(path: Path, *, follow_links: bool = True) -> Iterator[IO[bytes]]:
    """Yield a temporary file that replaces `path` when the block ends without an error.

    The temporary file lies beside `path` and is synchronised before it is renamed; when anything fails it is removed
    and the old file stays as it was. Temporary files that killed writers left there long ago are removed.

    Args:
        path: what to write; where a directory may come from others, a symbolic link in it must not lead elsewhere.
        follow_links: write to where a symbolic link leads; otherwise the link itself is replaced.
    """
    if "\0" in str(path):
        raise FileError(f"cannot write {str(path)!r}", expected="a name without NUL characters")
    target = Path(os.path.realpath(path)) if follow_links else path
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
    try:
        try:
            with open(temporary, "xb") as file:
                if target.exists() and not target.is_symlink():
                    os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
            fsync_directory(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
        remove_temporary_files(target.parent)
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
