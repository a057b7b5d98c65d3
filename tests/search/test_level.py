"""One level: stores of observations, and merging over several batches."""

from __future__ import annotations

import numpy as np
import pytest

from adalook.search import FixedDepth, level, search
from adalook.search.level import DistinctObservations
from adalook.search.workers import base as workers_base
from tests.search.reference import assert_same, hashed_values, roots_along
from tests.search.sims import Graph


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (3,), (4, 2), (2, 3, 5)])
def test_rows_are_distinct_and_bring_everything_back(dtype, shape):
    rng = np.random.default_rng(0)
    store = DistinctObservations(shape, np.dtype(dtype))
    batches = [rng.integers(0, 2, (size, *shape)).astype(dtype) for size in (5, 0, 40, 1, 100)]
    rows = np.concatenate([store.add(batch) for batch in batches])
    np.testing.assert_array_equal(store.rows[rows], np.concatenate(batches))
    assert len({row.tobytes() for row in store.rows}) == len(store.rows)


def test_different_rows_with_one_fingerprint_stay_distinct(monkeypatch):
    monkeypatch.setattr(level, "_fingerprints", lambda words: np.zeros(len(words), np.uint64))
    store = DistinctObservations((2,), np.dtype(np.int32))
    assert store.add(np.array([[1, 2], [2, 1], [1, 2]], np.int32)).tolist() == [0, 1, 0]


def test_a_batch_may_bring_nothing_new(monkeypatch):
    sim = Graph(2, 4, terminal=0.0)
    (root,) = roots_along(sim, 1, 1)
    at_once = search(sim, root, hashed_values, FixedDepth(3), discount=0.9)
    monkeypatch.setattr(workers_base, "MAX_BATCH_SIZE", 1)
    assert_same(search(sim, root, hashed_values, FixedDepth(3), discount=0.9), at_once)
