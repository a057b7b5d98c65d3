"""Bytes that never change again: checkpoints write them once and then only name them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class Segment:
    """A sealed piece of storage, named by the SHA-256 of its bytes.

    >>> Segment(np.zeros(3, np.uint8)).digest[:8]
    '709e80c8'
    """

    def __init__(self, payload: NDArray[Any], digest: str | None = None) -> None:
        """Seal `payload` (a contiguous array); a `digest` is believed, so give one only if it was checked."""
        self.payload: Bytes = payload.reshape(-1).view(np.uint8)
        self.payload.flags.writeable = False
        self._digest = digest

    @property
    def digest(self) -> str:
        """Computed when first asked for, then kept: hashing is most of what a segment costs in later checkpoints."""
        if self._digest is None:
            self._digest = hashlib.sha256(self.payload.data).hexdigest()
        return self._digest
