"""How kernels are compiled."""

from __future__ import annotations

from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy")
"""How every kernel of adalook is compiled: cached on disk, without Python's lock, without fast-math."""
inlined = njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)  # type: ignore[call-overload]
"""For helpers inside hot loops. Without `_nrt=False` each call counts references to its arrays, atomically: 15 times
slower on the maze, 4 times on random models (so they must not allocate)."""
