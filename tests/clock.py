"""A clock for tests of time limits, so that they do not depend on how busy the machine is."""

from __future__ import annotations

import time

import pytest


class FakeClock:
    """A clock that stands in for `time` and goes on only while something sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass at once."""
        self.now += seconds
