"""Randomness that fits in two integers, so that a saved state can carry it and a tree can have its own.

Step t of the stream `seed` always draws the same numbers, however the world came to its state. Nodes at one depth of a
tree share them (common random numbers), so two nodes with equal worlds have equal futures and can be merged. The
numbers come from SplitMix64, a counter put through a mixing function: a step that draws nothing costs nothing.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from adalook.errors import ArgumentError

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_BRANCH = 0x5851F42D4C957F2D


def _mix(x: int) -> int:
    """SplitMix64's finaliser: a bijection of 64-bit words in which every input bit moves every output bit."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Randomness(NamedTuple):
    """Where a world stands in a stream of random steps.

    >>> a, b = Randomness.live(7), Randomness.live(7)
    >>> a.draws().random() == b.draws().random() != a.next().draws().random()
    True
    """

    stream: int
    step: int

    @classmethod
    def live(cls, seed: int | None) -> Randomness:
        """The stream of a live world; None takes one from the operating system."""
        return cls(_mix(secrets.randbits(64) if seed is None else checked_seed(seed) ^ _GOLDEN), 0)

    @classmethod
    def reseed(cls, seed: int) -> Randomness:
        """The stream of a tree: no live world's, whatever their seeds."""
        return cls(_mix(_mix(checked_seed(seed) ^ _GOLDEN) ^ _BRANCH), 0)

    @classmethod
    def checked(cls, numbers: Any) -> Randomness:
        """From the two numbers in a file; raises ValueError or TypeError if they are something else."""
        stream, step = numbers
        if type(stream) is not int or type(step) is not int or not (0 <= stream <= _MASK and 0 <= step <= _MASK):
            raise ValueError("two whole numbers expected")
        return cls(stream, step)

    def next(self) -> Randomness:
        """The same stream one step later."""
        return Randomness(self.stream, self.step + 1)

    def draws(self) -> Draws:
        """The numbers of this step, from the first."""
        return Draws(_mix(self.stream ^ _mix(self.step + 1)))


class Draws:
    """Random numbers with the two methods of `numpy.random.RandomState` that MinAtar's games call."""

    __slots__ = ("_counter",)

    def __init__(self, counter: int) -> None:
        self._counter = counter

    def _word(self) -> int:
        self._counter = (self._counter + _GOLDEN) & _MASK
        return _mix(self._counter)

    def random(self) -> float:
        """Uniform in [0, 1)."""
        return (self._word() >> 11) * 2.0**-53

    def rand(self, *shape: int) -> Any:
        """Uniform in [0, 1): a float, or an array of `shape`."""
        if not shape:
            return self.random()
        return np.array([self.random() for _ in range(int(np.prod(shape)))]).reshape(shape)

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        """Uniform whole numbers in [low, high), or [0, low) without `high`."""
        first, stop = (0, low) if high is None else (low, high)
        if size is None:
            return first + int(self.random() * (stop - first))
        return np.array([first + int(self.random() * (stop - first)) for _ in range(size)])


def checked_seed(seed: int) -> int:
    """`seed` as an int that every generator here takes."""
    try:
        value = int(seed)
    except (TypeError, ValueError):
        value = -1
    if isinstance(seed, float | str) or not 0 <= value < 2**64:
        raise ArgumentError("the seed is wrong", expected="a whole number from 0 to 2**64 - 1, or None", got=repr(seed))
    return value
