"""Extrapolation of boundary values: faster than plain rounds where those are slow, and never much slower."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adalook.planning.sharded.boundary import Extrapolation


def rounds_until(g: Callable[[np.ndarray], np.ndarray], n: int, extrapolate: bool, limit: int = 2000) -> int:
    """Rounds until x <- G(x) stands still."""
    x, extrapolation = np.zeros(n), Extrapolation()
    for count in range(limit):
        image = g(x)
        if np.abs(image - x).max() < 1e-9:
            return count
        x = extrapolation.next_point(x, image) if extrapolate else image
    return limit


def test_slow_rounds_are_extrapolated() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((30, 30))
    matrix *= 0.99 / matrix.sum(axis=1, keepdims=True)
    plain, faster = (rounds_until(lambda x: matrix @ x + 1.0, 30, extrapolate) for extrapolate in (False, True))
    assert plain > 1000
    assert faster < 30


def test_fast_rounds_are_left_alone() -> None:
    assert rounds_until(lambda x: 0.1 * x + 1.0, 5, True) == rounds_until(lambda x: 0.1 * x + 1.0, 5, False)


@pytest.mark.parametrize("seed", range(10))
def test_bounded_cost_on_maps_with_kinks(seed: int) -> None:
    """The maximum of several contractions, which no linear extrapolation can foresee."""
    rng = np.random.default_rng(seed)
    matrices = rng.random((4, 12, 12)) ** 4
    matrices *= 0.9 / matrices.sum(axis=2, keepdims=True)
    constants = rng.standard_normal((4, 12))

    def g(x: np.ndarray) -> np.ndarray:
        return (matrices @ x + constants).max(axis=0)

    plain, extrapolated = rounds_until(g, 12, False), rounds_until(g, 12, True)
    assert extrapolated <= 3 * plain + 60


def test_memory_survives_a_checkpoint() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.random((9, 9))
    matrix *= 0.95 / matrix.sum(axis=1, keepdims=True)
    one, x = Extrapolation(), np.zeros(9)
    for _ in range(5):
        x = one.next_point(x, matrix @ x + 1.0)
    other = Extrapolation.from_arrays(one.to_arrays())
    for _ in range(5):
        g = matrix @ x + 1.0
        expected = one.next_point(x, g)
        assert np.array_equal(other.next_point(x, g), expected)
        x = expected
