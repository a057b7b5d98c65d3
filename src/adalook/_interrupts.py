"""A guard that turns Ctrl-C, SIGTERM and SIGHUP into a request to stop at the next safe point."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""Ctrl-C, the request to end, and the end of the terminal (not on Windows)."""


class SignalGuard:
    """A context in which the first stop signal is remembered, and the second acts as it would without the guard.

    With `raises`, every signal raises that exception at once instead, unless the program handles it in its own way.
    `received` is empty until a signal asks to stop; long work looks at it between two steps. Signals that were ignored
    before (a process started by `nohup … &`) stay ignored, and outside the main thread nothing is touched.

    Args:
        signals: the signals to remember.
        listen: install the handlers on entry; otherwise `listen()` does, later.
        raises: an exception such as `KeyboardInterrupt`, to let SIGTERM end work as Ctrl-C does.
    """

    def __init__(
        self,
        signals: Iterable[signal.Signals] = STOP_SIGNALS,
        *,
        listen: bool = True,
        raises: type[BaseException] | None = None,
    ) -> None:
        self.received: list[int] = []
        self._signals, self._listen_on_entry, self._raises = tuple(signals), listen, raises
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> SignalGuard:
        if self._listen_on_entry:
            self.listen()
        return self

    def listen(self) -> None:
        """Install the signal handlers; a second call does nothing."""
        if self._previous or threading.current_thread() is not threading.main_thread():
            return
        for number in self._signals:
            handler = signal.getsignal(number)
            if self._raises is not None and handler is not signal.SIG_DFL:
                continue
            if handler not in (None, signal.SIG_IGN):  # None: installed by C code, which is not ours to replace
                self._previous[number] = signal.signal(number, self._remember)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.received.append(number)
        if self._raises is not None:
            raise self._raises
        signal.signal(number, self._previous[number])

    def __bool__(self) -> bool:
        """Return whether a signal has asked to stop."""
        return bool(self.received)

    def raise_received(self) -> None:
        """Raise the remembered signals again; to be called after the context, when their own handlers are back."""
        for number in self.received:
            signal.raise_signal(number)
