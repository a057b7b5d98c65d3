"""Does a call use pickle? Seen while it runs, so that no compression or other dress can hide it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def uses_pickle(call: Callable[[], Any]) -> tuple[Any, bool]:
    """(what `call` returns, whether it pickled or unpickled anything in this thread)."""
    used = False

    def watch(frame: FrameType, event: str, called: Any) -> None:
        nonlocal used
        if event == "c_call":
            owner = getattr(called, "__self__", None)
            used = used or "_pickle" in (getattr(called, "__module__", None), type(owner).__module__)
        elif event == "call":
            used = used or frame.f_code.co_filename == pickle.__file__

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = call()
        return result, used
    finally:
        sys.setprofile(before)
