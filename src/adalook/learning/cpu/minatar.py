"""MinAtar's convolution, compiled: 3×3, stride 1, over pictures that are nearly all zeros.

A lit cell (c, y, x) of value v adds v·w[:, c, ky, kx] to the nine outputs (y − ky, x − kx) whose windows hold it. So
the work goes with the lit cells, 5 to 50 of 400 to 1,000, not with the cells. Outputs lie channels last with a margin
of two around them, where windows that stick out may write too; then the three outputs of one ky lie side by side, as do
their weights once kx runs backwards, and are summed as one run.

    observations  (n, C, H, W)            outputs  (n, H − 2, (W − 2)·K)           weight  (K, C·9), as nn.Linear has it
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

KERNELS = 16
"""K, a constant so that the compiler can unroll a run."""
_RUN = 3 * KERNELS
_MARGIN = 2


@njit(cache=True, nogil=True, fastmath={"contract"})
def convolve(observations: Any, weight: Any, bias: Any, outputs: Any) -> None:
    """ReLU of the convolution, written into `outputs`."""
    n, channels, height, width = observations.shape
    wide = width + _MARGIN
    taps = _in_runs(weight, channels)
    biases = np.empty((width - 2) * KERNELS, np.float32)
    for k in range(biases.size):
        biases[k] = bias[k % KERNELS]
    room = np.empty((height + _MARGIN) * wide * KERNELS, np.float32)
    for i in range(n):
        room[:] = 0
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    lit = np.float32(observations[i, c, y, x])
                    if lit != 0:
                        for ky in range(3):
                            there, tap = ((y + _MARGIN - ky) * wide + x) * KERNELS, (3 * c + ky) * _RUN
                            for k in range(_RUN):
                                room[there + k] += lit * taps[tap + k]
        for y in range(height - 2):
            here = ((y + _MARGIN) * wide + _MARGIN) * KERNELS
            for k in range(biases.size):
                value = room[here + k] + biases[k]
                outputs[i, y, k] = value if value > 0 else np.float32(0)


@njit(cache=True, nogil=True, fastmath={"contract"})
def convolution_gradients(observations: Any, outputs: Any, slopes: Any, weight: Any, bias: Any) -> None:
    """Gradients of `convolve`, written into `weight` and `bias`, from those of its outputs, `slopes`."""
    n, channels, height, width = observations.shape
    wide = width + _MARGIN
    taps = np.zeros(channels * 3 * _RUN, np.float32)
    sums = np.zeros((width - 2) * KERNELS, np.float32)
    room = np.zeros((height + _MARGIN) * wide * KERNELS, np.float32)
    for i in range(n):
        for y in range(height - 2):
            here = ((y + _MARGIN) * wide + _MARGIN) * KERNELS
            for k in range(sums.size):
                slope = slopes[i, y, k] if outputs[i, y, k] > 0 else np.float32(0)
                room[here + k] = slope
                sums[k] += slope
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    lit = np.float32(observations[i, c, y, x])
                    if lit != 0:
                        for ky in range(3):
                            there, tap = ((y + _MARGIN - ky) * wide + x) * KERNELS, (3 * c + ky) * _RUN
                            for k in range(_RUN):
                                taps[tap + k] += lit * room[there + k]
    _out_of_runs(taps, weight, channels)
    bias[:] = 0
    for k in range(sums.size):
        bias[k % KERNELS] += sums[k]


@njit(cache=True)
def _in_runs(weight: Any, channels: Any) -> Any:
    """Weights (K, C·9) as runs, one per channel and ky: kx backwards, and within it the K kernels."""
    taps = np.empty(channels * 9 * KERNELS, np.float32)
    for row in range(3 * channels):
        for kx in range(3):
            for k in range(KERNELS):
                taps[(3 * row + 2 - kx) * KERNELS + k] = weight[k, 3 * row + kx]
    return taps


@njit(cache=True)
def _out_of_runs(taps: Any, weight: Any, channels: Any) -> None:
    """The way back."""
    for row in range(3 * channels):
        for kx in range(3):
            for k in range(KERNELS):
                weight[k, 3 * row + kx] = taps[(3 * row + 2 - kx) * KERNELS + k]
