"""Intervals against what is known: exact cases, coverage, pairing, and the same answer every time."""

from __future__ import annotations

import numpy as np
import pytest

from adalook.errors import ArgumentError
from adalook.report.data.statistics import FEWEST_SAMPLES, difference, geometric_mean, mean, mean_and_std, ratio


def test_mean_and_deviation_are_those_of_a_sample() -> None:
    assert mean_and_std([2.0, 4.0, 6.0]) == (4.0, 2.0)
    assert mean_and_std([7.0]) == (7.0, 0.0)


def test_an_interval_of_equal_numbers_is_a_point() -> None:
    estimate = mean([3.0] * 5)
    assert estimate.low == pytest.approx(3.0, rel=1e-12)
    assert estimate.high == pytest.approx(3.0, rel=1e-12)


def test_two_samples_have_the_interval_that_can_be_counted() -> None:
    """Means of two draws from {0, 1}: 0 and 1 with probability 1/4 each, so a 40% interval is the point 1/2."""
    assert mean([0.0, 1.0], confidence=0.40) == mean([1.0, 0.0], confidence=0.40)
    assert (mean([0.0, 1.0], 0.40).low, mean([0.0, 1.0], 0.40).high) == (0.5, 0.5)
    assert (mean([0.0, 1.0], 0.60).low, mean([0.0, 1.0], 0.60).high) == (0.0, 1.0)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    generator = np.random.default_rng(1)
    estimates = [mean(generator.normal(5.0, 2.0, 30)) for _ in range(400)]
    covered = np.mean([estimate.low <= 5.0 <= estimate.high for estimate in estimates])
    assert 0.90 <= covered <= 0.97


def test_more_confidence_gives_a_wider_interval() -> None:
    samples = np.random.default_rng(2).normal(size=12)
    narrow, wide = mean(samples, 0.90), mean(samples, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_differences_are_paired() -> None:
    """Seeds differ by a lot, methods by one on every seed: paired, there is no doubt."""
    hard = np.array([10.0, 1000.0, 200.0, 5000.0])
    gap = difference(hard, hard + 1.0)
    assert (gap.value, gap.low, gap.high) == pytest.approx((-1.0, -1.0, -1.0))
    assert gap.below_zero
    assert not gap.above_zero


def test_ratios_are_paired() -> None:
    hard = np.array([10.0, 1000.0, 200.0, 5000.0])
    gap = ratio(1.5 * hard, hard)
    assert (gap.value, gap.low, gap.high) == pytest.approx((1.5, 1.5, 1.5))


def test_a_ratio_is_that_of_the_means() -> None:
    assert ratio([1.0, 5.0], [1.0, 2.0]).value == 2.0


def test_the_same_data_give_the_same_interval() -> None:
    samples = [3.0, 1.0, 4.0, 1.0, 5.0]
    assert mean(samples) == mean(list(samples))


@pytest.mark.parametrize("samples", [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]])])
def test_samples_that_cannot_be_compared_are_refused(samples: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ArgumentError, match="cannot be compared"):
        ratio(*samples)


def test_a_ratio_over_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match="positive"):
        ratio([1.0, 2.0], [0.0, 1.0])


def test_an_estimate_knows_whether_it_rests_on_enough() -> None:
    few, enough = [1.0] * (FEWEST_SAMPLES - 1), [1.0] * FEWEST_SAMPLES
    for estimate in (mean, geometric_mean, lambda samples: ratio(samples, samples)):
        assert not estimate(few).enough
        assert estimate(enough).enough


def test_a_geometric_mean_is_that_of_the_logarithms() -> None:
    ratios = np.array([0.5, 0.9, 1.4, 3.0, 0.7, 1.1])
    estimate = geometric_mean(ratios)
    assert estimate.value == pytest.approx(np.prod(ratios) ** (1 / 6))
    upside_down = geometric_mean(1.0 / ratios)
    assert (upside_down.low, upside_down.high) == pytest.approx((1.0 / estimate.high, 1.0 / estimate.low), rel=0.02)
    with pytest.raises(ArgumentError, match="positive"):
        geometric_mean([1.0, 0.0])
