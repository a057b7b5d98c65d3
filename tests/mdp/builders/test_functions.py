"""Models that a function describes, batch by batch."""

import numpy as np
import pytest

import adalook as al


def test_repeats_in_a_function_are_summed_and_zeros_dropped():
    ahead, chance = np.array([[[1, 0, 1, 1]], [[0, 0, 0, 1]]]), np.array([[[0.25, 0.5, 0.25, 0.0]], [[0.5, 0.5, 0, 0]]])
    mdp = al.MDP.from_function(lambda s: (np.zeros((len(s), 1)), ahead[s], chance[s]), 2, 1, 0.9)
    assert mdp.transition_row(0, 0)[1].tolist() == [0.5, 0.5]
    assert mdp.transition_row(1, 0)[0].tolist() == [0]
    assert mdp.codes[1, 0] == 0, "all of the probability on one state is a certain move"


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_functions_are_called_on_batches(batch_size):
    sizes = []

    def walk(s):
        sizes.append(len(s))
        return np.stack([s == 0, s == 9], axis=1), np.stack([np.maximum(s - 1, 0), np.minimum(s + 1, 9)], axis=1)

    mdp = al.MDP.from_function(walk, 10, 2, 0.9, batch_size=batch_size)
    assert sum(sizes) == 10
    assert max(sizes) == min(batch_size, 10)
    np.testing.assert_allclose(al.solve(mdp).values[[0, 9]], 10.0)


def test_a_function_may_change_its_argument():
    def halve(s):
        s //= 2
        return np.zeros((len(s), 1)), s[:, None]

    assert al.MDP.from_function(halve, 50, 1, 0.9).codes.ravel().tolist() == [s // 2 for s in range(50)]
