"""Random streams in two integers: uniform, repeatable, and never the same for a tree and a live env."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adalook.errors import ArgumentError
from adalook.simulators.randomness import RandomStream


def test_numbers_are_uniform_within_a_step_and_across_steps_and_seeds() -> None:
    within = RandomStream.for_live(0).draws().rand(5000)
    across = [RandomStream(1, step).draws().random() for step in range(5000)]
    seeds = [RandomStream.for_tree(seed).draws().random() for seed in range(5000)]
    for numbers in (within, across, seeds):
        assert stats.kstest(numbers, "uniform").pvalue > 1e-3


def test_whole_numbers_cover_their_range_evenly() -> None:
    draws = RandomStream.for_live(3).draws()
    assert stats.chisquare(np.bincount(draws.randint(1, 6, 5000), minlength=6)[1:]).pvalue > 1e-3
    assert {draws.randint(3) for _ in range(100)} == {0, 1, 2}
    assert {draws.randint(low=1, high=3) for _ in range(100)} == {1, 2}


def test_steps_and_streams_differ() -> None:
    live, tree = RandomStream.for_live(0), RandomStream.for_tree(0)
    firsts = {r.draws().random() for r in (live, tree, live.next(), tree.next(), RandomStream.for_live(1))}
    assert len(firsts) == 5
    assert live.draws().random() == RandomStream.for_live(0).draws().random()


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "one", [1]])
def test_wrong_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="the seed is wrong"):
        RandomStream.for_live(seed)


def test_without_a_seed_streams_are_new() -> None:
    assert RandomStream.for_live(None) != RandomStream.for_live(None)
