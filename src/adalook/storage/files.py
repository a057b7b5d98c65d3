"""Files and directories without accidents: nothing is replaced before the new one is safe on disk."""

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
            sync_directory(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except FileError:
        raise
    except OSError as error:
        raise failure("write", path, error) from error


def sync_directory(directory: Path) -> None:
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
    in_the_way = _in_the_way(path) if code in (errno.ENOTDIR, errno.EEXIST) else None
    if in_the_way is not None:
        remedy = f"choose another place: {in_the_way} is there already, and is no directory"
    elif code in (errno.ENOENT, errno.ENOTDIR):
        missing = not path.parent.is_dir()
        remedy = f"there is no directory {path.parent}: make it first" if missing else "check the name"
    else:
        remedy = {
            errno.EACCES: "check the permissions of the file and its directory",
            errno.EPERM: "check the permissions of the file and its directory",
            errno.EROFS: "save to a place that is not read-only",
            errno.ENOSPC: "free some space on that disk, or save elsewhere",
            errno.EDQUOT: "free some space on that disk, or save elsewhere",
            errno.EFBIG: "files may not grow that large here: raise the limit (ulimit -f), or save elsewhere",
            errno.EISDIR: "this is a directory: add a file name",
        }.get(code or 0, "")
    return FileError(f"cannot {verb} {path}", got=getattr(error, "strerror", None) or error, remedy=remedy)


def _in_the_way(path: Path) -> Path | None:
    """What should be a directory, the path itself or one above it, and is something else."""
    return next((place for place in (path, *path.parents) if os.path.lexists(place) and not place.is_dir()), None)


def make_directory(directory: Path) -> None:
    """Make a directory for results unless it is there: worth doing before long work."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise failure("make directory", directory, error) from error
