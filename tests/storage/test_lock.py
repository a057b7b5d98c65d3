"""One process at a time writes to a directory, whatever happens to the files in it."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adalook.errors import FileError
from adalook.storage.lock import PID_FILE, DirectoryLock

TAKE = "import sys, pathlib; from adalook.storage.lock import DirectoryLock; DirectoryLock(pathlib.Path(sys.argv[1]))"


def take_elsewhere(directory: Path) -> subprocess.CompletedProcess[str]:
    """Try to take the lock in another process."""
    return subprocess.run([sys.executable, "-c", TAKE, str(directory)], capture_output=True, text=True, check=False)


def test_a_second_process_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path) as lock:
        refused = take_elsewhere(tmp_path)
        assert refused.returncode != 0
        assert f"is in use: expected one process at a time, got process {os.getpid()} writing to it" in refused.stderr
        assert lock.held
    assert not lock.held
    assert take_elsewhere(tmp_path).returncode == 0


def test_removing_the_pid_file_lets_nobody_in(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        (tmp_path / PID_FILE).unlink()
        with pytest.raises(FileError, match="process unknown writing to it"):
            DirectoryLock(tmp_path)


def test_nothing_is_left_in_the_directory(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.release()
    lock.release()
    assert not list(tmp_path.iterdir())


def test_a_process_that_ended_without_releasing_holds_nothing(tmp_path: Path) -> None:
    assert take_elsewhere(tmp_path).returncode == 0
    assert (tmp_path / PID_FILE).exists()  # it could not clean up
    with DirectoryLock(tmp_path):
        assert (tmp_path / PID_FILE).read_text() == f"{os.getpid()}\n"


def test_where_directories_cannot_be_locked_the_pid_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock

    def flock_files_only(descriptor: int, operation: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_files_only)
    with DirectoryLock(tmp_path), pytest.raises(FileError, match=f"process {os.getpid()} writing to it"):
        DirectoryLock(tmp_path)
    with DirectoryLock(tmp_path):  # released
        pass


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot lock .*nowhere"):
        DirectoryLock(tmp_path / "nowhere")
