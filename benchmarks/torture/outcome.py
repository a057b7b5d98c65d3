"""Outcomes of attempts: what a single one ended in, and a row of the page for many."""

from __future__ import annotations

import resource
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from adalook.errors import AdalookError

REFUSED, EQUAL, DIFFERENT, FOREIGN, HANG, MEMORY = "refused", "equal", "different", "foreign", "hang", "memory"
MAX_EXAMPLES = 5
MAX_SECONDS = 300.0
"""An attempt that takes longer hangs; a busy machine may take minutes to compile kernels."""
MAX_MEGABYTES = 700
"""An attempt may not raise the process's peak memory by more."""


@dataclass
class Scale:
    """How much is tried: 1 is the full torture, of some hours; 0.001 the slice in the tests."""

    factor: float = 1.0
    seed: int = 0

    def count(self, full: int, least: int = 1) -> int:
        """Return how many attempts are made where the full torture makes `full`."""
        return max(least, round(full * self.factor))


@dataclass
class Row:
    """One line of the page: attempts of one kind, their outcomes, and which of those are bad."""

    area: str
    kind: str
    bad_outcomes: frozenset[str]
    note: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, outcome: str, example: str = "") -> None:
        """Count an attempt; the first bad ones are kept as examples."""
        self.outcomes[outcome] += 1
        if outcome in self.bad_outcomes and len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{outcome}: {example}"[:400])

    @property
    def tried(self) -> int:
        """Number of attempts."""
        return sum(self.outcomes.values())

    @property
    def bad(self) -> int:
        """Number of bad ones."""
        return sum(count for outcome, count in self.outcomes.items() if outcome in self.bad_outcomes)


class _Hangs(BaseException):
    """Raised by the alarm; no `except Exception` catches it."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise _Hangs


def attempt(action: Callable[[], Any], same: Callable[[Any], bool] | None = None) -> tuple[str, str]:
    """Do something that may fail, within limits; returns (outcome, what happened).

    Args:
        action: what to do.
        same: whether what it returns is as it should be; None: it must be refused.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        result = action()
        outcome, what = (EQUAL, "") if same is not None and same(result) else (DIFFERENT, repr(result))
    except AdalookError as error:
        outcome, what = REFUSED, str(error)
    except _Hangs:
        outcome, what = HANG, f"more than {MAX_SECONDS:g} s"
    except MemoryError as error:
        outcome, what = MEMORY, repr(error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        outcome, what = FOREIGN, f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return (MEMORY, f"{grown:.0f} MB more") if grown > MAX_MEGABYTES else (outcome, what)
