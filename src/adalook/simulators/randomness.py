"""Random streams that fit in two integers, so that a saved state can carry one and a tree can have its own.

Step t of a stream always draws the same numbers, however the env came to its state. Nodes at one depth of a tree share
them (common random numbers), so two nodes with equal states have equal futures and can be merged. The numbers come from
SplitMix64, a counter put through a mixing function: a step that draws nothing costs nothing.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from adalook.errors import ArgumentError, shown

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_TREE = 0x5851F42D4C957F2D


def _mix(x: int) -> int:
    """Apply SplitMix64's finaliser: a bijection of 64-bit words in which every input bit moves every output bit."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class RandomStream(NamedTuple):
    """A position in a stream of random steps.

    >>> a, b = RandomStream.for_live(7), RandomStream.for_live(7)
    >>> a.draws().random() == b.draws().random() != a.next().draws().random()
    True
    """

    stream: int
    step: int

    @classmethod
    def for_live(cls, seed: int | None) -> RandomStream:
        """Return the stream of a live env; None takes a seed from the operating system."""
        return cls(_mix(secrets.randbits(64) if seed is None else checked_seed(seed) ^ _GOLDEN), 0)

    @classmethod
    def for_tree(cls, seed: int) -> RandomStream:
        """Return the stream of a tree, which is never that of a live env, whatever their seeds."""
        return cls(_mix(_mix(checked_seed(seed) ^ _GOLDEN) ^ _TREE), 0)

    @classmethod
    def checked(cls, numbers: Any) -> RandomStream:
        """Return the stream with two numbers from a file; raise ValueError or TypeError if they are something else."""
        stream, step = numbers
        if type(stream) is not int or type(step) is not int or not (0 <= stream <= _MASK and 0 <= step <= _MASK):
            raise ValueError("two whole numbers expected")
        return cls(stream, step)

    def next(self) -> RandomStream:
        """Return the same stream one step later."""
        return self.at(self.step + 1)

    def at(self, step: int) -> RandomStream:
        """Return the same stream at another step."""
        return RandomStream(self.stream, step)

    def draws(self) -> RandomDraws:
        """Return the numbers of this step, from the first."""
        return RandomDraws(_mix(self.stream ^ _mix(self.step + 1)))


def draw_seeds(seed: int, step: int, count: int) -> list[int]:
    """Return `count` seeds, the same for the same `seed` and `step`: those of the futures drawn at one depth of a tree.

    >>> draw_seeds(7, 1, 2) == draw_seeds(7, 1, 3)[:2] != draw_seeds(7, 2, 2)
    True
    """
    return RandomStream.for_tree(seed).at(step).draws().words(count)


class RandomDraws:
    """A source of random numbers with the two methods of `numpy.random.RandomState` that MinAtar's games call."""

    __slots__ = ("_counter",)

    def __init__(self, counter: int) -> None:
        self._counter = counter

    def _word(self) -> int:
        self._counter = (self._counter + _GOLDEN) & _MASK
        return _mix(self._counter)

    def words(self, count: int) -> list[int]:
        """Draw `count` words of 64 bits."""
        return [self._word() for _ in range(count)]

    def random(self) -> float:
        """Draw uniformly from [0, 1)."""
        return (self._word() >> 11) * 2.0**-53

    def rand(self, *shape: int) -> Any:
        """Draw uniformly from [0, 1): a float, or an array of `shape`."""
        if not shape:
            return self.random()
        return np.array([self.random() for _ in range(int(np.prod(shape)))]).reshape(shape)

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        """Draw whole numbers uniformly from [low, high), or from [0, low) without `high`."""
        first, stop = (0, low) if high is None else (low, high)
        if size is None:
            return first + int(self.random() * (stop - first))
        return np.array([first + int(self.random() * (stop - first)) for _ in range(size)])


def checked_seed(seed: int) -> int:
    """Return `seed` as an int from 0 to 2**64 - 1, or raise `ArgumentError`."""
    try:
        value = int(seed)
    except (TypeError, ValueError, OverflowError):
        value = -1
    if isinstance(seed, float | str) or not 0 <= value < 2**64:
        raise ArgumentError(
            "the seed is wrong", expected="a whole number from 0 to 2**64 - 1, or None", got=shown(seed)
        )
    return value
