"""The decorator that compiles numerical kernels with numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from numba import njit
from numba.extending import register_jitable

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

compiled: Decorator = njit(cache=True, nogil=True, error_model="numpy")
"""Compiles a kernel: cached on disk, without Python's lock, without fast-math."""
compiled_with_lock: Decorator = njit(cache=True)
"""Compiles a kernel of microseconds, for which giving up Python's lock and taking it again would cost too much."""
inlined: Decorator = njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)  # type: ignore[call-overload]
"""Compiles a helper inside hot loops. Without `_nrt=False` each call counts references to its arrays, atomically: 15
times slower on the maze, 4 times on random models (so helpers must not allocate)."""
shared_with_python: Decorator = register_jitable(forceinline=True, _nrt=False)
"""Lets kernels call a small function, inlined, that Python and NumPy call too, uncompiled."""
