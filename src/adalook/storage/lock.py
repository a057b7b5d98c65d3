"""A lock on a directory: one process writes to it at a time."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from adalook.errors import FileError
from adalook.storage.files import file_error, read_file

PID_FILE = "lock"
"""File in a locked directory that holds the number of the process, for the error message of those who come later."""
_NO_DIRECTORY_LOCKS = (errno.EBADF, errno.EINVAL, errno.ENOTSUP, errno.EISDIR)
"""What file systems answer that cannot lock directories: NFS, for one."""


class DirectoryLock:
    """An exclusive lock on a directory, held from construction until `release` or the end of the process.

    The operating system locks the directory itself: removing a file from it lets nobody in, and a killed process leaves
    no lock behind. On file systems that cannot lock directories the PID file is locked; where the operating system has
    no such locks (it is not POSIX), nothing is.

    Use it in a `with` statement, or call `release`.

    Raises:
        FileError: another process holds the lock; the message names it.
    """

    def __init__(self, directory: Path) -> None:
        self._pid_file = directory / PID_FILE
        self._locks_pid_file = False
        self._descriptor: int | None = None
        try:
            self._descriptor = self._open_locked(directory)
            self._write_pid()
        except BlockingIOError:
            raise FileError(
                f"the directory {directory} is in use",
                expected="one process at a time",
                got=f"process {self._read_pid() or 'unknown'} writing to it",
                remedy="wait for it, stop it, or choose another directory",
            ) from None
        except OSError as error:
            self._close()
            raise file_error("lock", directory, error) from error

    def _open_locked(self, directory: Path) -> int:
        """Open and lock the directory or, if that cannot be, the PID file; return the descriptor."""
        try:
            import fcntl
        except ImportError:  # not POSIX
            return os.open(self._pid_file, os.O_RDWR | os.O_CREAT, 0o666)
        for path, flags in ((directory, os.O_RDONLY), (self._pid_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)):
            descriptor = os.open(path, flags, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if path != directory or error.errno not in _NO_DIRECTORY_LOCKS:
                    raise
                self._locks_pid_file = True
            else:
                break
        return descriptor

    def _write_pid(self) -> None:
        """Write this process's number; a symbolic link in the file's place must not lead elsewhere."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(self._pid_file, flags, 0o666), "w") as file:
            file.write(f"{os.getpid()}\n")

    def _read_pid(self) -> str:
        try:
            return read_file(self._pid_file, 4096).decode(errors="replace")[:64].strip()
        except OSError:
            return ""

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def held(self) -> bool:
        """Whether the lock has not been released yet."""
        return self._descriptor is not None

    def release(self) -> None:
        """Let other processes have the directory; a second call does nothing."""
        if self.held and not self._locks_pid_file:  # removing a locked file would let two others in
            with suppress(OSError):
                self._pid_file.unlink()
        self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
