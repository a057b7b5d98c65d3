"""One writer per run directory."""

from __future__ import annotations

import os
from pathlib import Path

from adalook.errors import FileError
from adalook.storage.files import failure


class DirectoryLock:
    """Held from the making of this object until `release`, or until the process ends, however it ends.

    A lock of the operating system on the file `lock`, so a killed process leaves none behind. Where the system has no
    such locks, nothing is locked.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "lock"
        try:
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise failure("write", path, error) from error
        try:
            import fcntl
        except ImportError:  # not a POSIX system
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 64).decode(errors="replace").strip()
            self.release()
            raise FileError(
                f"the run directory {directory} is in use",
                expected="one process at a time",
                got=f"process {holder or 'unknown'} at work in it",
                remedy="wait for it, stop it, or choose another directory",
            ) from None
        except OSError as error:
            self.release()
            raise failure("lock", path, error) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    @property
    def held(self) -> bool:
        """Not released yet."""
        return self._descriptor is not None

    def release(self) -> None:
        """Let others have the directory; a second time does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
