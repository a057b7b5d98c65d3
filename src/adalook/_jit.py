"""The decorators that compile numerical kernels with numba, and a cache of what was compiled that never fails.

numba keeps compiled code beside the package, or in the user's cache directory where that is read-only. Without either
(a container, a service without a home) the code is kept in a private temporary directory or, failing that, compiled
again by every process. A disk that is full or a damaged file costs time, never an answer; a warning says so, once.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numba
from numba import njit
from numba.core.caching import FunctionCache
from numba.extending import register_jitable

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
_settings: Any = numba.config


class _ForgivingCache(FunctionCache):
    """A function's compiled code on disk, or nowhere if it cannot be read or written."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature, or None where there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file raises whatever pickle makes of it
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code of a signature, unless the disk is full or the directory gone."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            self._forget()
            self.disable()
            _warn_once(f"compiled code cannot be kept in {self.cache_path} ({error}): later starts compile it again")

    def _forget(self) -> None:
        """Remove the index of a damaged or half-written cache: what it named is compiled anew."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


def _enable_cache(dispatcher: Any) -> None:
    """Give a compiled function a cache where numba finds a place for one, otherwise in a private directory."""
    try:
        dispatcher._cache = _ForgivingCache(dispatcher.py_func)
    except (RuntimeError, OSError):  # numba: "no locator available"
        private = _private_directory()
        if private is None:
            _warn_once(
                "there is no place to keep compiled code: every start compiles it again. "
                "Set NUMBA_CACHE_DIR to a directory of your own that can be written"
            )
            return
        _warn_once(f"neither the package nor HOME can be written: compiled code is kept in {private}")
        previous, _settings.CACHE_DIR = _settings.CACHE_DIR, str(private)
        try:
            dispatcher._cache = _ForgivingCache(dispatcher.py_func)
        except (RuntimeError, OSError):
            return
        finally:
            _settings.CACHE_DIR = previous


def _private_directory() -> Path | None:
    """Return a temporary directory that this user alone can write, made if need be; None if there is none.

    Compiled code is loaded as code: a directory that anybody else could have made or can write to is not used.
    """
    if not hasattr(os, "getuid"):
        return None
    try:
        directory = Path(tempfile.gettempdir()) / f"adalook-compiled-{os.getuid()}"
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return directory if ours and os.access(directory, os.W_OK) else None


_warned: list[str] = []


def _warn_once(message: str) -> None:
    """Warn of the first trouble with the cache; others that follow have the same cause."""
    if not _warned:
        _warned.append(message)
        warnings.warn(f"adalook: {message}", RuntimeWarning, stacklevel=2)


def _cached(**options: Any) -> Decorator:
    """Return a decorator that compiles with these options of numba's, and keeps the code on disk."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher: Any = njit(**options)(function)
        if not _settings.DISABLE_JIT:
            _enable_cache(dispatcher)
        return dispatcher  # type: ignore[no-any-return]

    return decorate


compiled: Decorator = _cached(nogil=True, error_model="numpy")
"""Compiles a kernel: cached on disk, without Python's lock, without fast-math."""
compiled_with_lock: Decorator = _cached()
"""Compiles a kernel of microseconds, for which giving up Python's lock and taking it again would cost too much."""
inlined: Decorator = njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)  # type: ignore[call-overload]
"""Compiles a helper inside hot loops. Without `_nrt=False` each call counts references to its arrays, atomically: 15
times slower on the maze, 4 times on random models (so helpers must not allocate)."""
shared_with_python: Decorator = register_jitable(forceinline=True, _nrt=False)
"""Lets kernels call a small function, inlined, that Python and NumPy call too, uncompiled."""
