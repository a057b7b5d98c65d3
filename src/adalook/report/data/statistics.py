"""Means, spreads and bootstrap intervals over seeds.

Planning methods are compared on the same mazes, so their comparisons are paired: seeds are drawn with replacement, and
what is drawn is a seed with all that was measured on it. Learning agents draw differently from the same seed; there a
sample is a game, and seeds are drawn within each game, so that every game keeps its weight (Agarwal et al. 2021).

One function resamples for all: `bootstrap`. The generator is seeded, so the same data give the same interval, and draws
are kept: `scipy.stats.bootstrap`, which the tests compare it with, takes a hundred times as long for the thousands of
intervals of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import trim_mean

from adalook._arrays import FloatArray, IntArray
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


Strata = Sequence[FloatArray]
"""A score per seed (n,), for each game."""


@lru_cache(maxsize=64)
def _draws(sizes: tuple[int, ...]) -> tuple[IntArray, ...]:
    """Return what is drawn from samples of these sizes, (R, n) for each."""
    rng = np.random.default_rng(SEED)
    return tuple(rng.integers(0, size, size=(RESAMPLES, size)) for size in sizes)


def bootstrap(
    samples: Strata,
    statistic: Callable[..., FloatArray],
    *,
    paired: bool,
    confidence: float = 0.95,
    rests_on: int | None = None,
) -> Estimate:
    """Return a statistic of samples with its percentile interval over resamples.

    Args:
        samples: (n,) each.
        statistic: takes resamples, (R, n) of each sample, and returns (R,).
        paired: draw the same places from all samples, which then have one size; otherwise from each on its own.
        confidence: of the interval.
        rests_on: the number of samples that the estimate claims; None for the size of the first.
    """
    draws = _draws((len(samples[0]),)) * len(samples) if paired else _draws(tuple(map(len, samples)))
    resampled = statistic(*(sample.take(drawn) for sample, drawn in zip(samples, draws, strict=True)))
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(resampled, (tail, 100.0 - tail))
    value = statistic(*(sample[None] for sample in samples))[0]
    return Estimate(float(value), float(low), float(high), len(samples[0]) if rests_on is None else rests_on)


def row_means(samples: FloatArray) -> FloatArray:
    """Return the mean of each row, (R, n) -> (R,)."""
    return np.asarray(samples.mean(axis=1), np.float64)


def interquartile_mean(scores: FloatArray) -> FloatArray:
    """Return the mean of each row without its lowest and its highest quarter, (R, n) -> (R,).

    >>> interquartile_mean(np.array([[0.0, 1.0, 2.0, 90.0]])).tolist()
    [1.5]
    """
    return np.asarray(trim_mean(scores, 0.25, axis=1), np.float64)


# ---- paired: planning methods on the same seeds


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
    return bootstrap(_samples(samples), row_means, paired=True, confidence=confidence)


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
    return bootstrap([left, right], _ratio_of_means, paired=True, confidence=confidence)


def _ratio_of_means(first: FloatArray, second: FloatArray) -> FloatArray:
    return row_means(first) / row_means(second)


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


# ---- stratified: learning agents, a sample per game


def stratified(strata: Strata, statistic: Callable[[FloatArray], FloatArray] = interquartile_mean) -> Estimate:
    """Return a statistic of all games and seeds together."""

    def together(*games: FloatArray) -> FloatArray:
        return statistic(np.concatenate(games, axis=1))

    return bootstrap(strata, together, paired=False, rests_on=_fewest(strata))


def stratified_difference(
    first: Strata, second: Strata, statistic: Callable[[FloatArray], FloatArray] = interquartile_mean
) -> Estimate:
    """Return the first's statistic less the second's; seeds are no pairs, since agents draw differently from them."""

    def gap(*games: FloatArray) -> FloatArray:
        left, right = games[: len(first)], games[len(first) :]
        return statistic(np.concatenate(left, axis=1)) - statistic(np.concatenate(right, axis=1))

    return bootstrap([*first, *second], gap, paired=False, rests_on=_fewest(first, second))


def probability_of_improvement(first: Strata, second: Strata) -> Estimate:
    """Return how probably a run of the first scores above a run of the second, mean over games; a tie counts half.

    >>> probability_of_improvement([np.array([1.0, 3.0])], [np.array([2.0, 2.0])]).value
    0.5
    """

    def chance(*games: FloatArray) -> FloatArray:
        pairs = zip(games[: len(first)], games[len(first) :], strict=True)
        return np.asarray(np.mean([_beats(left, right) for left, right in pairs], axis=0), np.float64)

    return bootstrap([*first, *second], chance, paired=False, rests_on=_fewest(first, second))


def _beats(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the share of pairs that the first wins, (R, n), (R, m) -> (R,)."""
    gap = first[:, :, None] - second[:, None, :]
    return np.asarray(((gap > 0.0) + 0.5 * (gap == 0.0)).mean(axis=(1, 2)), np.float64)


def _fewest(*many: Strata) -> int:
    """Return what an interval rests on: scores of the agent that has the fewest; 1 if some game has one seed only."""
    if min(len(scores) for strata in many for scores in strata) == 1:
        return 1
    return min(sum(len(scores) for scores in strata) for strata in many)
