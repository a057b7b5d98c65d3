"""Means, spreads and bootstrap intervals over seeds.

Methods are compared on the same mazes, so comparisons are paired: seeds are drawn with replacement, and what is drawn
is a seed with all that was measured on it. The generator is seeded: the same data give the same interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from adalook._arrays import FloatArray
from adalook.errors import ArgumentError

RESAMPLES = 10_000
SEED = 20_230_207
"""Any number; fixed, so that figures and verdicts do not depend on the day."""
FEWEST_SAMPLES = 5
"""Below this a bootstrap interval is far too narrow (that of one sample is a point), so it decides nothing."""


@dataclass(frozen=True)
class Estimate:
    """A number with its bootstrap interval, and how many samples it rests on."""

    value: float
    low: float
    high: float
    samples: int

    @property
    def enough(self) -> bool:
        """Whether there are samples enough for the interval to mean something."""
        return self.samples >= FEWEST_SAMPLES

    @property
    def above_zero(self) -> bool:
        return self.low > 0.0

    @property
    def below_zero(self) -> bool:
        return self.high < 0.0


@cache
def _weights(count: int) -> FloatArray:
    """(R, n): how often each seed was drawn in each resample, over n; times samples (n,) it gives the R means."""
    draws = np.random.default_rng(SEED).integers(0, count, size=(RESAMPLES, count))
    drawn = np.zeros((RESAMPLES, count))
    np.add.at(drawn, (np.arange(RESAMPLES)[:, None], draws), 1.0)
    return drawn / count


def _interval(resampled: FloatArray, confidence: float) -> tuple[float, float]:
    """The percentile interval of a statistic (R,) of resampled seeds."""
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(resampled, (tail, 100.0 - tail))
    return float(low), float(high)


def _samples(*samples: object) -> list[FloatArray]:
    arrays = [np.asarray(sample, np.float64) for sample in samples]
    if arrays[0].ndim != 1 or not len(arrays[0]) or any(array.shape != arrays[0].shape for array in arrays):
        raise ArgumentError(
            "samples cannot be compared", expected="as many numbers in each", got=[array.shape for array in arrays]
        )
    return arrays


def mean_and_std(samples: object) -> tuple[float, float]:
    """Mean and standard deviation (of a sample: n − 1) over seeds; one sample has no spread.

    >>> mean_and_std([1.0, 2.0, 3.0])
    (2.0, 1.0)
    """
    (numbers,) = _samples(samples)
    return float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0


def mean(samples: object, confidence: float = 0.95) -> Estimate:
    """The mean with its interval.

    >>> estimate = mean([1.0, 2.0, 3.0, 4.0])
    >>> estimate.low < estimate.value == 2.5 < estimate.high
    True
    """
    (numbers,) = _samples(samples)
    interval = _interval(_weights(len(numbers)) @ numbers, confidence)
    return Estimate(float(numbers.mean()), *interval, samples=len(numbers))


def difference(first: object, second: object, confidence: float = 0.95) -> Estimate:
    """Mean of first − second, seed by seed."""
    left, right = _samples(first, second)
    return mean(left - right, confidence)


def ratio(first: object, second: object, confidence: float = 0.95) -> Estimate:
    """Mean of the first over mean of the second, over the same seeds; below 1 the first is cheaper.

    >>> ratio([1.0, 2.0], [2.0, 4.0])
    Estimate(value=0.5, low=0.5, high=0.5, samples=2)
    """
    left, right = _samples(first, second)
    if right.min() <= 0.0:
        raise ArgumentError("a ratio cannot be taken", expected="positive numbers below", got=float(right.min()))
    weights = _weights(len(left))
    interval = _interval((weights @ left) / (weights @ right), confidence)
    return Estimate(float(left.mean() / right.mean()), *interval, samples=len(left))


def geometric_mean(ratios: object, confidence: float = 0.95) -> Estimate:
    """The mean of ratios that weighs half as much and twice as much alike.

    >>> round(geometric_mean([0.5, 2.0, 0.5, 2.0]).value, 9)
    1.0
    """
    (numbers,) = _samples(ratios)
    if numbers.min() <= 0.0:
        raise ArgumentError("a geometric mean cannot be taken", expected="positive numbers", got=float(numbers.min()))
    logs = mean(np.log(numbers), confidence)
    value, low, high = (float(np.exp(number)) for number in (logs.value, logs.low, logs.high))
    return Estimate(value, low, high, logs.samples)
