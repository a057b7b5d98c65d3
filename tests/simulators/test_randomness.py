"""Randomness in two integers: uniform, repeatable, and no tree's the live world's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adalook.errors import ArgumentError
from adalook.simulators.randomness import Randomness


def test_numbers_are_uniform_within_a_step_and_across_steps_and_seeds() -> None:
    within = Randomness.live(0).draws().rand(5000)
    across = [Randomness(1, step).draws().random() for step in range(5000)]
    seeds = [Randomness.reseed(seed).draws().random() for seed in range(5000)]
    for numbers in (within, across, seeds):
        assert stats.kstest(numbers, "uniform").pvalue > 1e-3


def test_whole_numbers_cover_their_range_evenly() -> None:
    draws = Randomness.live(3).draws()
    assert stats.chisquare(np.bincount(draws.randint(1, 6, 5000), minlength=6)[1:]).pvalue > 1e-3
    assert {draws.randint(3) for _ in range(100)} == {0, 1, 2}
    assert {draws.randint(low=1, high=3) for _ in range(100)} == {1, 2}


def test_steps_and_streams_differ() -> None:
    live, tree = Randomness.live(0), Randomness.reseed(0)
    firsts = {r.draws().random() for r in (live, tree, live.next(), tree.next(), Randomness.live(1))}
    assert len(firsts) == 5
    assert live.draws().random() == Randomness.live(0).draws().random()


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "one", [1]])
def test_wrong_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="the seed is wrong"):
        Randomness.live(seed)


def test_without_a_seed_streams_are_new() -> None:
    assert Randomness.live(None) != Randomness.live(None)
