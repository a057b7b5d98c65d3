"""What watches a running solve: the clock, Ctrl-C, and the person who asked for progress."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adalook.planning.solution import Iteration


class Watch:
    """Context of a solve: elapsed seconds, whether Ctrl-C was pressed, and progress under a title, if there is one.

    Once `listen` was called, the first Ctrl-C asks the loop to stop after the step at hand, so that the answer so far
    can be certified and returned; the second one interrupts at once, as usual. Outside the main thread Ctrl-C is left
    alone. Listening costs microseconds, which solves that end in the first of many quick passes need not pay.
    """

    def __init__(self, title: str | None) -> None:
        self.interrupted = False
        self.reported = False
        self._progress = _Progress(title) if title else None
        self._previous: Any = None
        self._listening = False

    def __enter__(self) -> Watch:
        self._began = time.perf_counter()
        if self._progress:
            self._progress.start()
        return self

    def listen(self) -> None:
        """From now on Ctrl-C is answered with the best policy so far."""
        if not self._listening and threading.current_thread() is threading.main_thread():
            self._previous = signal.getsignal(signal.SIGINT)
            if self._previous is not None:
                signal.signal(signal.SIGINT, self._on_interrupt)
        self._listening = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if self._progress:
            self._progress.stop()
        if self.interrupted and not self.reported and kind is None and self._previous is not None:
            signal.raise_signal(signal.SIGINT)  # it came too late to stop this solve, but must not get lost

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def show(self, count: int, iteration: Iteration) -> None:
        if self._progress:
            self._progress.show(count, iteration)


class _Progress:
    """One live line on the terminal."""

    def __init__(self, title: str) -> None:
        from rich.console import Console

        self._status = Console(stderr=True).status(f"{title} …")
        self._title = title

    def start(self) -> None:
        self._status.start()

    def stop(self) -> None:
        self._status.stop()

    def show(self, count: int, iteration: Iteration) -> None:
        self._status.update(
            f"{self._title}: pass {count}, {iteration.changed:,} actions changed, depth up to {iteration.max_depth}, "
            f"policy loss <= {iteration.policy_loss:.2g}, {iteration.seconds:.1f} s"
        )
