"""Bytes to floats, compiled: one pass where PyTorch needs three."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def scale(observations: Any, factor: Any, outputs: Any) -> None:
    """Observations (n, C, H, W) times a float32 factor, into (n, H, W, C) float32."""
    n, channels, height, width = observations.shape
    for i in range(n):
        for y in range(height):
            for c in range(channels):
                for x in range(width):
                    outputs[i, y, x, c] = np.float32(observations[i, c, y, x]) * factor
