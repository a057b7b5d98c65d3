"""How much memory is at hand, so that what cannot fit is refused before anything is allocated."""

from __future__ import annotations

from pathlib import Path

from adalook.errors import ArgumentError

_SHARE_TO_FILL = 0.9
"""Of the memory at hand: the rest is for networks and everything else that comes later."""


def available_bytes() -> int | None:
    """Memory that can still be taken without swapping, within the limits set for this process; None: not known."""
    found = [_from_meminfo(), _from_control_group()]
    return min((bytes_free for bytes_free in found if bytes_free is not None), default=None)


def refuse_unless_it_fits(what: str, estimate: int, allowed: int | None, remedy: str) -> None:
    """Raise, with the numbers, if `estimate` bytes are more than `allowed` (None: than what the machine has left)."""
    if allowed is None:
        free = available_bytes()
        if free is None:
            return
        allowed, whose = int(free * _SHARE_TO_FILL), f"{_SHARE_TO_FILL:.0%} of the {in_words(free)} at hand"
    else:
        whose = "the limit that was set"
    if estimate > allowed:
        raise ArgumentError(
            f"{what} does not fit in memory",
            expected=f"at most {in_words(allowed)} ({whose})",
            got=f"an estimate of {in_words(estimate)}",
            remedy=remedy,
        )


def in_words(count: int) -> str:
    """A number of bytes for people.

    >>> in_words(3 * 2**29), in_words(3 * 2**19)
    ('1.50 GiB', '1.50 MiB')
    """
    return f"{count / 2**30:,.2f} GiB" if count >= 2**30 else f"{count / 2**20:.2f} MiB"


def _from_meminfo() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    available = fields.get("MemAvailable", "").split()
    return int(available[0]) * 1024 if available else None


def _from_control_group() -> int | None:
    """What a container's limit leaves (control groups, version 2)."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)
