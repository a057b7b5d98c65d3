"""Interquartile means and who beats whom, with stratified bootstrap intervals (Agarwal et al. 2021).

Samples are strata: one array of scores over seeds for each game. A resample draws seeds within each game, so that every
game keeps its weight. The generator is seeded: the same data give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import trim_mean

from adalook._arrays import FloatArray
from adalook.report.data.statistics import RESAMPLES, SEED, Estimate

Strata = Sequence[FloatArray]
"""A score per seed (n,), for each game."""
CONFIDENCE = 0.95


def interquartile_mean(scores: FloatArray) -> FloatArray:
    """(R, n) -> (R,): the mean without the lowest and the highest quarter.

    >>> interquartile_mean(np.array([[0.0, 1.0, 2.0, 90.0]])).tolist()
    [1.5]
    """
    return np.asarray(trim_mean(scores, 0.25, axis=1), np.float64)


def mean_of_games(scores: FloatArray) -> FloatArray:
    """(R, n) -> (R,): the plain mean, for a single game."""
    return np.asarray(scores.mean(axis=1), np.float64)


def _resamples(strata: Strata, rng: np.random.Generator) -> list[FloatArray]:
    """(RESAMPLES, n) for each game."""
    return [scores[rng.integers(0, len(scores), (RESAMPLES, len(scores)))] for scores in strata]


def _estimate(value: float, resampled: FloatArray, samples: int) -> Estimate:
    tail = 50.0 * (1.0 - CONFIDENCE)
    low, high = np.percentile(resampled, (tail, 100.0 - tail))
    return Estimate(float(value), float(low), float(high), samples)


def _samples(*many: Strata) -> int:
    """What an interval rests on: scores of the agent that has the fewest; 1 if some game has one seed only."""
    if min(len(scores) for strata in many for scores in strata) == 1:
        return 1
    return min(sum(len(scores) for scores in strata) for strata in many)


def aggregate(strata: Strata, statistic: Callable[[FloatArray], FloatArray] = interquartile_mean) -> Estimate:
    """A statistic of all games and seeds together."""
    resampled = statistic(np.concatenate(_resamples(strata, np.random.default_rng(SEED)), axis=1))
    return _estimate(statistic(np.concatenate(strata)[None])[0], resampled, _samples(strata))


def difference(
    first: Strata, second: Strata, statistic: Callable[[FloatArray], FloatArray] = interquartile_mean
) -> Estimate:
    """The first's statistic less the second's. Seeds are not pairs: agents draw differently from the same one."""
    rng = np.random.default_rng(SEED)
    left, right = (statistic(np.concatenate(_resamples(strata, rng), axis=1)) for strata in (first, second))
    value = statistic(np.concatenate(first)[None])[0] - statistic(np.concatenate(second)[None])[0]
    return _estimate(value, left - right, _samples(first, second))


def probability_of_improvement(first: Strata, second: Strata) -> Estimate:
    """How probably a run of the first scores above a run of the second, mean over games; a tie counts half.

    >>> probability_of_improvement([np.array([1.0, 3.0])], [np.array([2.0, 2.0])]).value
    0.5
    """
    rng = np.random.default_rng(SEED)
    left, right = _resamples(first, rng), _resamples(second, rng)
    value = np.mean([_beats(x[None], y[None])[0] for x, y in zip(first, second, strict=True)])
    resampled = np.mean([_beats(x, y) for x, y in zip(left, right, strict=True)], axis=0)
    return _estimate(float(value), resampled, _samples(first, second))


def _beats(first: FloatArray, second: FloatArray) -> FloatArray:
    """(R, n), (R, m) -> (R,): the share of pairs that the first wins."""
    gap = first[:, :, None] - second[:, None, :]
    return np.asarray(((gap > 0.0) + 0.5 * (gap == 0.0)).mean(axis=(1, 2)), np.float64)
