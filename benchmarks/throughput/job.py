"""What a contender is told, and the watch that times it; with the standard library only, as CleanRL's Python has it.

Contenders live side by side and take turns: while one is timed for a stretch of steps, the others wait. A machine that
slows down for a minute slows all of them down. A watch is shown the number of agent steps after every move; the first
turn comes when learning has gone on for a while, so imports, compiling and filling the memory are not in it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

FAR_AWAY = 10_000_000
"""Steps that a peer is asked for: its schedules do not end before the watch stops."""


@dataclass(frozen=True)
class Job:
    """One run of one contender. Steps are agent steps."""

    contender: str
    env: str
    num_envs: int
    threads: int
    batch_transitions: int
    buffer_transitions: int
    update_period_steps: int
    target_period_steps: int
    learning_rate: float
    learning_starts_steps: int
    warm_up_steps: int
    """Steps with learning before the first turn."""
    turn_steps: int
    fast: bool = False
    """The small network and the settings of Atari's fast preset, instead of the Nature network's."""
    discount: float = 0.99
    epsilon: float = 0.05
    """Share of random actions from the first step to the last: nearly every step asks the network."""
    seed: int = 0

    @property
    def first_step(self) -> int:
        """Where the first turn begins."""
        return self.learning_starts_steps + self.warm_up_steps

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def told() -> Job:
    """The job, from the first line of the input; every line after it is a turn."""
    return Job(**json.loads(sys.stdin.readline()))


def say(record: dict[str, Any]) -> None:
    """A line for whoever gives the turns."""
    print(json.dumps(record), flush=True)


class Watch:
    """Wall and processor time of every turn."""

    def __init__(self, job: Job) -> None:
        self._turn_steps = job.turn_steps
        self._until = job.first_step
        self._began: tuple[int, float, float] | None = None

    def stops_at(self, step: int) -> bool:
        """Look at the time; after a turn say how long it took, wait for the next. True: there is none."""
        if step < self._until:
            return False
        if self._began is None:
            say({"ready": step})
        else:
            first, seconds, processor_seconds = self._began
            say(
                {
                    "steps": step - first,
                    "seconds": time.perf_counter() - seconds,
                    "processor_seconds": _processor_seconds() - processor_seconds,
                }
            )
        over = not sys.stdin.readline()
        self._until = step + self._turn_steps
        self._began = step, time.perf_counter(), _processor_seconds()
        return over


def _processor_seconds() -> float:
    """Of this process, all its threads, the system's work for it included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
