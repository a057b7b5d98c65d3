"""What a contender is told, and the watch that times it; with the standard library only, as CleanRL's Python has it.

A watch is shown the number of agent steps after every move. It starts when learning has gone on for a while and stops
after as many steps as are measured, so imports, compiling and filling the memory are not in what it says.
"""

from __future__ import annotations

import resource
import time
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """One run of one contender. Steps are agent steps."""

    contender: str
    env: str
    envs: int
    threads: int
    batch_transitions: int
    buffer_transitions: int
    update_period_steps: int
    target_period_steps: int
    learning_rate: float
    learning_starts_steps: int
    warm_up_steps: int
    """Steps with learning before the watch starts."""
    measured_steps: int
    discount: float = 0.99
    epsilon: float = 0.05
    """Share of random actions from the first step to the last: nearly every step asks the network."""
    seed: int = 0

    @property
    def first_step(self) -> int:
        """Where the watch starts."""
        return self.learning_starts_steps + self.warm_up_steps

    @property
    def last_step(self) -> int:
        """Where it stops."""
        return self.first_step + self.measured_steps

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


class Watch:
    """Wall and processor time between two steps."""

    def __init__(self, first_step: int, last_step: int) -> None:
        self._first_step, self._last_step = first_step, last_step
        self._began: tuple[int, float, float] | None = None
        self.record: dict[str, Any] | None = None
        """Steps, seconds and processor seconds, once it has stopped."""

    def stops_at(self, step: int) -> bool:
        """Look at the time; True when there is nothing more to measure."""
        if self._began is None and step >= self._first_step:
            self._began = step, time.perf_counter(), _processor_seconds()
        elif self._began is not None and self.record is None and step >= self._last_step:
            first, seconds, processor_seconds = self._began
            self.record = {
                "steps": step - first,
                "seconds": time.perf_counter() - seconds,
                "processor_seconds": _processor_seconds() - processor_seconds,
            }
        return self.record is not None


def _processor_seconds() -> float:
    """Of this process, all its threads, the system's work for it included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
