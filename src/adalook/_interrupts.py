"""Ctrl-C and SIGTERM wait for the end of a round, so that what was learnt fits together."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def stop_signals() -> Iterator[list[int]]:
    """A list that is empty until Ctrl-C or SIGTERM asks to stop. A second one does what it always does."""
    received: list[int] = []
    before: dict[int, Any] = {}

    def remember(received_now: int, frame: Any) -> None:
        received.append(received_now)
        signal.signal(received_now, before[received_now])

    with contextlib.suppress(ValueError):  # not the main thread: someone else looks after signals
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, remember)
    try:
        yield received
    finally:
        for restored, handler in before.items():
            signal.signal(restored, handler)
