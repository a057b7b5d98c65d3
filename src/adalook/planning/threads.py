"""Large backups and sweeps are split over the cores.

Kernels run without Python's lock, so plain threads do. Every state's result is computed the same way whatever the
number of threads, and extremes do not depend on order: the answer is the same, bit for bit.
`ADALOOK_THREADS=1` in the environment turns it off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from adalook._validation import integer, parse_number

MIN_ENTRIES = 1_000_000
"""Below this many entries, starting threads costs more than it saves."""

MAX_THREADS = 64
thread_count = integer(1, MAX_THREADS)
"""Validator of ADALOOK_THREADS."""

_pool: ThreadPoolExecutor | None = None


def count() -> int:
    """Return the number of threads to use: ADALOOK_THREADS, or one per core that this process may use."""
    wish = os.environ.get("ADALOOK_THREADS", "")
    if wish:
        threads: int = thread_count.validate("ADALOOK_THREADS", parse_number(wish, int, "ADALOOK_THREADS"))
        return threads
    return min(available_cores(), MAX_THREADS)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split(kernel: Callable[..., Any], size: int, arguments: tuple[Any, ...]) -> list[Any]:
    """Call kernel(*arguments, first, last) on equal parts of range(size); returns what the parts returned."""
    global _pool
    parts = count()
    if parts == 1:
        return [kernel(*arguments, 0, size)]
    if _pool is None:
        _pool = ThreadPoolExecutor(parts, thread_name_prefix="adalook")
    edges = [size * i // parts for i in range(parts + 1)]
    calls = [_pool.submit(kernel, *arguments, first, last) for first, last in pairwise(edges)]
    return [call.result() for call in calls]


def _forget_pool() -> None:
    """Let a forked child, which has none of its parent's threads, start its own."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
