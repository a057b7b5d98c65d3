"""The signal guard remembers the first stop signal, lets the second through, and leaves everything as it was."""

from __future__ import annotations

import signal
import threading

import pytest

from adalook._interrupts import SignalGuard


def test_the_first_signal_is_remembered_and_the_second_acts_as_usual() -> None:
    with SignalGuard() as guard:
        assert not guard
        signal.raise_signal(signal.SIGINT)
        assert guard
        assert guard.received == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_handlers_are_put_back_and_remembered_signals_can_be_raised_again() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with SignalGuard() as guard:
        signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    with pytest.raises(KeyboardInterrupt):
        guard.raise_received()


def test_sigterm_is_remembered_too() -> None:
    with SignalGuard() as guard:
        signal.raise_signal(signal.SIGTERM)
    assert guard.received == [signal.SIGTERM]


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with SignalGuard() as guard:
            signal.raise_signal(signal.SIGINT)
        assert not guard
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_nothing_is_installed_before_listen() -> None:
    before = signal.getsignal(signal.SIGINT)
    with SignalGuard([signal.SIGINT], listen=False) as guard:
        assert signal.getsignal(signal.SIGINT) is before
        guard.listen()
        guard.listen()
        signal.raise_signal(signal.SIGINT)
        assert guard
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def guarded() -> None:
        with SignalGuard():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_raising_guard_raises_at_once_every_time_and_puts_the_default_back() -> None:
    with SignalGuard([signal.SIGTERM], raises=KeyboardInterrupt) as guard:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
    assert guard.received == [signal.SIGTERM, signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_raising_guard_leaves_the_programs_own_handler_alone() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with SignalGuard([signal.SIGTERM], raises=KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]
