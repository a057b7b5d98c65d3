"""Atari screens as networks see them: the brighter of the last two frames, grey, 84×84 by area.

The console's flicker goes with the maximum. The mean over an output pixel's area is exact, rounded to nearest with
halves up: weights are whole numbers, since in a common unit of length every input pixel is as long as the next.
OpenCV's INTER_AREA computes the same mean in float32 and may differ by one where the mean is a half.

Screens that follow each other in a search differ in a few lines. Each of the two slots keeps the last screen it held,
and only what changed is made grey and shrunk anew, to the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

SIDE = 84

_UNKNOWN = -1
"""In a table of greys: a colour not seen yet."""


class Lens:
    """Turns two screens of (height, width) palette codes, uint8, into one frame (84, 84) of uint8."""

    def __init__(self, height: int, width: int) -> None:
        self.incoming = np.zeros((height, width), np.uint8)
        """Where a screen is written before `look`."""
        self.frame = np.zeros((SIDE, SIDE), np.uint8)
        """What was seen; the next `shrink` writes over it."""
        self._words = self.incoming.view(np.uint64)
        self._kept = [np.zeros_like(self._words), np.zeros_like(self._words)]
        self._grey = np.zeros((2, height, width), np.uint8)
        self._changed = np.ones(height, np.bool_)
        self._greys = np.full(256, _UNKNOWN, np.int16)
        rows, row_weights = _overlaps(height)
        columns, column_weights = _overlaps(width)
        area = row_weights[0].sum() * column_weights[0].sum()
        self._tables = rows, row_weights, columns, column_weights, np.float32(1 / area), np.empty(width, np.float32)

    def look(self, slot: int) -> bool:
        """Take `incoming` into slot 0 or 1. False if it has a colour of unknown grey: then call `learn`."""
        known: bool = _look(self._words, self.incoming, self._kept[slot], self._grey[slot], self._greys, self._changed)
        return known

    def learn(self, slot: int, grey: np.ndarray[Any, Any]) -> None:
        """Take `incoming` into a slot, and from its picture in `grey` (height, width) the greys of its colours."""
        self._greys[self.incoming] = grey
        self._grey[slot] = grey
        self._kept[slot][:] = self._words
        self._changed[:] = True

    def shrink(self) -> None:
        """Make `frame` from the two slots."""
        _shrink(self._grey, self._changed, *self._tables, self.frame)


def _overlaps(size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """How 84 equal cells lie on `size`: the first that each touches (84,), how much of it and the next (84, taps)."""
    shared = math.gcd(size, SIDE)
    cell, output = SIDE // shared, size // shared  # lengths in the largest unit that measures both
    taps = math.ceil(size / SIDE) + 1
    edges = np.arange(SIDE) * output
    first = np.minimum(edges // cell, size - taps)
    starts = (first[:, None] + np.arange(taps)) * cell
    covered = np.minimum(edges[:, None] + output, starts + cell) - np.maximum(edges[:, None], starts)
    return first.astype(np.uintp), np.maximum(covered, 0).astype(np.float32)


@numba.njit(cache=True)
def _look(words, codes, kept, grey, greys, changed):  # type: ignore[no-untyped-def]
    """Make grey what differs from the screen kept; `words` (height, width / 8) is the memory of `codes`."""
    seen = np.int16(0)
    for y in range(words.shape[0]):
        for x in range(words.shape[1]):
            if words[y, x] != kept[y, x]:
                kept[y, x] = words[y, x]
                changed[y] = True
                for pixel in range(8 * x, 8 * x + 8):
                    value = greys[codes[y, pixel]]
                    seen |= value  # negative as soon as one is unknown
                    grey[y, pixel] = value
    return seen >= 0


@numba.njit(cache=True)
def _shrink(grey, changed, rows, row_weights, columns, column_weights, scale, line, out):  # type: ignore[no-untyped-def]
    """Weighted sums down the rows first, where neighbours in memory are summed alike, then along each line.

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
            left = columns[
                x
            ]  # three pixels wide at most, as screens have 160 columns: written out, it is twice as fast
            total = column_weights[x, 0] * line[left] + column_weights[x, 1] * line[left + np.uintp(1)]
            total += column_weights[x, 2] * line[left + np.uintp(2)]
            out[y, x] = np.uint8((total + quarter) * scale + half)
    changed[:] = False
