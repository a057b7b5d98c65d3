"""Observations, each kept once: equal ones are recognised as they come in.

A fingerprint finds the candidates and a comparison of all bytes decides, so two different observations are never taken
for one. Fingerprints are weighted sums: reading 28 KB once is ten times faster than hashing them.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

import numpy as np

from adalook._arrays import IntArray
from adalook.simulators.base import Observations

FEWEST_ROWS = 32


class ObservationPool(Protocol):
    """A place to keep observations in."""

    @property
    def rows(self) -> Observations:
        """(m, *observation_shape)"""

    def add(self, observations: Observations) -> IntArray:
        """Take in n observations (n, *observation_shape); returns the row (n,) that each is kept in."""


class EveryObservation:
    """Keeps all of them: for levels whose leaves nobody evaluates, where looking for equal ones would be wasted."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._parts = [np.empty((0, *shape), dtype)]
        self._count = 0

    @property
    def rows(self) -> Observations:
        return self._parts[-1] if len(self._parts) == 2 else np.concatenate(self._parts)

    def add(self, observations: Observations) -> IntArray:
        self._parts.append(observations.copy())
        self._count += len(observations)
        return np.arange(self._count - len(observations), self._count)


class DistinctObservations:
    """A growing array of observations no two of which are equal.

    >>> pool = DistinctObservations((2,), np.dtype(np.int16))
    >>> pool.add(np.array([[1, 2], [3, 4], [1, 2]], np.int16))
    array([0, 1, 0])
    >>> pool.rows
    array([[1, 2],
           [3, 4]], dtype=int16)
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._buffer = np.empty((FEWEST_ROWS, *shape), dtype)
        self._count = 0
        self._by_fingerprint: dict[int, list[int]] = {}

    @property
    def rows(self) -> Observations:
        """(m, *observation_shape)"""
        return self._buffer[: self._count]

    def add(self, observations: Observations) -> IntArray:
        """Take in n observations (n, *observation_shape); returns the row (n,) that each is kept in."""
        if not len(observations):
            return np.empty(0, np.intp)
        self._make_room(len(observations))
        incoming, kept = _as_words(observations), _as_words(self._buffer)
        places = np.empty(len(observations), np.intp)
        for i, fingerprint in enumerate(_fingerprints(incoming).tolist()):
            candidates = self._by_fingerprint.setdefault(fingerprint, [])
            for row in candidates:
                if (kept[row] == incoming[i]).all():
                    places[i] = row
                    break
            else:
                kept[self._count] = incoming[i]
                candidates.append(self._count)
                places[i] = self._count
                self._count += 1
        return places

    def _make_room(self, more: int) -> None:
        if self._count + more > len(self._buffer):
            # Twice as much each time. All at once for the worst case would be simpler, but memory that the system has
            # to clear first costs more than the copies.
            larger = np.empty((2 * len(self._buffer) + more, *self._buffer.shape[1:]), self._buffer.dtype)
            larger[: self._count] = self.rows
            self._buffer = larger


def _as_words(observations: Observations) -> np.ndarray[Any, Any]:
    """The same memory as (n, w) unsigned integers, the largest that fit."""
    flat = np.ascontiguousarray(observations).reshape(len(observations), -1).view(np.uint8)
    for word in (np.uint64, np.uint32, np.uint16):
        if flat.shape[1] and flat.shape[1] % np.dtype(word).itemsize == 0:
            return flat.view(word)
    return flat


def _fingerprints(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(n,) sums of words times random odd weights, modulo 2^64."""
    return np.asarray(words.astype(np.uint64, copy=False) @ _weights(words.shape[1]))


@functools.lru_cache(maxsize=8)
def _weights(count: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(count).integers(0, 2**64, count, np.uint64) | np.uint64(1)
