"""Atari frames as networks see them: the brighter of the last two screens, grey, 84×84 by area means.

Taking the maximum removes the console's flicker. The mean over an output pixel's area is exact, rounded to nearest with
halves up: weights are whole numbers, since in a common unit of length every input pixel is as long as the next.
OpenCV's INTER_AREA computes the same mean in float32 and may differ by one where the mean is a half.

Screens that follow each other in a search differ in a few lines. Each of the two slots keeps the last screen it held,
and only what changed is made grey and resized again, to the same bits.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adalook._arrays import BoolArray, IntArray
from adalook._jit import compiled_with_lock

SIDE = 84

Float32Array: TypeAlias = NDArray[np.float32]

_UNKNOWN = -1
"""In a table of greys: a colour not seen yet."""


class FrameConverter:
    """A converter of two screens, (height, width) palette colours in uint8, into one frame (84, 84) of uint8."""

    def __init__(self, height: int, width: int) -> None:
        self.screen = np.zeros((height, width), np.uint8)
        """Where a screen is written before `capture`."""
        self.frame = np.zeros((SIDE, SIDE), np.uint8)
        """The converted frame; the next `resize` overwrites it."""
        self._words = self.screen.view(np.uint64)
        self._kept = [np.zeros_like(self._words), np.zeros_like(self._words)]
        self._grey = np.zeros((2, height, width), np.uint8)
        self._changed = np.ones(height, np.bool_)
        self._greys = np.full(256, _UNKNOWN, np.int16)
        rows, row_weights = _overlaps(height)
        columns, column_weights = _overlaps(width)
        area = row_weights[0].sum() * column_weights[0].sum()
        self._tables = rows, row_weights, columns, column_weights, np.float32(1 / area), np.empty(width, np.float32)

    def capture(self, slot: int) -> bool:
        """Take `screen` into slot 0 or 1; return False if it has a colour of unknown grey: then call `learn_greys`."""
        known: bool = _update_grey(
            self._words, self.screen, self._kept[slot], self._grey[slot], self._greys, self._changed
        )
        return known

    def learn_greys(self, slot: int, grey: np.ndarray[Any, Any]) -> None:
        """Take `screen`, of which `grey` (height, width) is the grey image, into a slot, and learn its colours."""
        self._greys[self.screen] = grey
        self._grey[slot] = grey
        self._kept[slot][:] = self._words
        self._changed[:] = True

    def resize(self) -> None:
        """Make `frame` from the two slots."""
        _resize(self._grey, self._changed, *self._tables, self.frame)


def _overlaps(size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the first of `size` pixels that each of 84 cells touches (84,), and its weights (84, taps)."""
    shared = math.gcd(size, SIDE)
    cell, output = SIDE // shared, size // shared  # lengths in the largest unit that measures both
    taps = math.ceil(size / SIDE) + 1
    edges = np.arange(SIDE) * output
    first = np.minimum(edges // cell, size - taps)
    starts = (first[:, None] + np.arange(taps)) * cell
    covered = np.minimum(edges[:, None] + output, starts + cell) - np.maximum(edges[:, None], starts)
    return first.astype(np.uintp), np.maximum(covered, 0).astype(np.float32)


@compiled_with_lock
def _update_grey(
    words: IntArray, screen: IntArray, kept: IntArray, grey: IntArray, greys: IntArray, changed: BoolArray
) -> bool:
    """Make grey what differs from the screen kept, and return whether all greys were known.

    `words` (height, width / 8) views the memory of `screen`.
    """
    sign = np.int16(0)
    for y in range(words.shape[0]):
        for x in range(words.shape[1]):
            if words[y, x] != kept[y, x]:
                kept[y, x] = words[y, x]
                changed[y] = True
                for pixel in range(8 * x, 8 * x + 8):
                    value = greys[screen[y, pixel]]
                    sign |= value  # negative as soon as one is unknown
                    grey[y, pixel] = value
    return bool(sign >= 0)


@compiled_with_lock
def _resize(
    grey: IntArray,
    changed: BoolArray,
    rows: IntArray,
    row_weights: Float32Array,
    columns: IntArray,
    column_weights: Float32Array,
    scale: float,
    line: Float32Array,
    out: IntArray,
) -> None:
    """Sum with weights down the rows, where neighbours in memory are summed alike, then along each line.

    All sums are whole numbers below 2**24, so float32 holds them exactly. A quarter more than the sum puts halves
    safely above the rounding edge, and moves nothing else across one.
    """
    half, quarter = np.float32(0.5), np.float32(0.25)
    taps = row_weights.shape[1]
    for y in range(out.shape[0]):
        first = rows[y]
        stale = False
        for k in range(taps):
            stale |= changed[first + np.uintp(k)]
        if not stale:
            continue
        line[:] = 0
        for k in range(taps):
            weight = row_weights[y, k]
            if weight > 0:
                before, after = grey[0, first + np.uintp(k)], grey[1, first + np.uintp(k)]
                for x in range(line.shape[0]):
                    line[x] += weight * np.float32(max(before[x], after[x]))
        for x in range(out.shape[1]):
            # Three pixels wide at most, as screens have 160 columns: written out, it is twice as fast.
            left = columns[x]
            total = column_weights[x, 0] * line[left] + column_weights[x, 1] * line[left + np.uintp(1)]
            total += column_weights[x, 2] * line[left + np.uintp(2)]
            out[y, x] = np.uint8((total + quarter) * scale + half)
    changed[:] = False
