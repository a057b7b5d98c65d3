"""Strongly connected components: they are found, in the right order, and solved one after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.planning.evaluation.ordered import components
from tests.exact import random_mdp


def stages(count, size, discount, leave=0.01, seed=0):
    """Random parts that are each left for the next one now and then, and never come back to; numbered at random."""
    rng = np.random.default_rng(seed)
    n = count * size
    stage = np.arange(n) // size
    within = stage[:, None, None] * size + rng.integers(size, size=(n, 3, 3))
    later = np.minimum(stage + 1, count - 1)[:, None, None] * size + rng.integers(size, size=(n, 3, 1))
    chances = np.broadcast_to([0.5 - leave, 0.3, 0.2, leave], (n, 3, 4))
    rewards = rng.standard_normal((n, 3)) + 0.1 * stage[:, None]
    place = rng.permutation(n)
    rank = np.argsort(place)
    successors = place[np.concatenate([within, later], axis=2)[rank]]
    return al.MDP.from_function(lambda s: (rewards[rank][s], successors[s], chances[s]), n, 3, discount)


def reachable(mdp):
    """(S, S) bools: whether one state can get to another."""
    n = mdp.num_states
    paths = np.eye(n, dtype=bool)
    for s in range(n):
        for a in np.flatnonzero(mdp.offered[s]):
            paths[s, np.asarray(mdp.transition_row(s, a)[0], int)] = True
    for k in range(n):
        paths |= paths[:, [k]] & paths[[k]]
    return paths


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_components_are_those_of_mutual_reachability(seed, num_states):
    mdp = random_mdp(np.random.default_rng(seed), num_states, 2, 0.9)
    states, label, sizes = (np.zeros(num_states, np.int32) for _ in range(3))
    count = components._components(mdp.arrays, states, label, sizes, num_states)
    paths = reachable(mdp)
    np.testing.assert_array_equal(label[:, None] == label, paths & paths.T)
    assert sorted(states) == list(range(num_states))
    assert (np.diff(label[states]) >= 0).all()
    np.testing.assert_array_equal(np.bincount(label, minlength=count), sizes[:count])
    sources, targets = np.nonzero(paths)
    assert (label[targets] <= label[sources]).all()  # what is led to comes first
    for most in range(num_states):
        ended_early = components._components(mdp.arrays, *(np.zeros(num_states, np.int32) for _ in range(3)), most) == 0
        assert ended_early == (sizes.max() > most)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.0, 0.5, 0.99]))
def test_asked_for_it_solves_any_model(seed, num_states, discount):
    mdp = random_mdp(np.random.default_rng(seed), num_states, 3, discount)
    sol = al.solve(mdp, al.Auto(components.NAME), tolerance=1e-6)
    assert sol.converged
    exact = al.solve(mdp, al.PolicyIteration())
    np.testing.assert_allclose(sol.values, exact.values, atol=1e-6 * max(1.0, mdp.largest_reward))


@pytest.mark.parametrize("discount", [0.99, 0.9999])
def test_stages_are_solved_from_the_last_to_the_first(discount):
    mdp = stages(20, 100, discount)
    sol = al.solve(mdp, tolerance=1e-5)
    assert components.NAME in sol.solvers
    assert sol.certified
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.Auto("sparse LU"), tolerance=1e-5).values, atol=2e-5)


def test_rooms_with_one_way_doors_are_ordered_by_their_exits():
    """A chain of corridors, each left at its end: the states nearest to the end come first."""
    length, count = 300, 4
    s = np.arange(count * length)
    end = s % length == length - 1
    ahead = np.where(end & (s < length * (count - 1)), s + 1, np.where(end, s, s + 1))
    back = np.where(s % length == 0, s, s - 1)
    successors = np.stack([ahead, back], axis=1)[:, None, :]
    chances, rewards = np.broadcast_to([0.8, 0.2], successors.shape), -np.ones((len(s), 1))
    mdp = al.MDP.from_function(lambda k: (rewards[k], successors[k], chances[k]), len(s), 1, 0.999)
    found = components.find(mdp)
    assert found.ends.tolist() == [300, 600, 900, 1200]
    assert found.closed.tolist() == [True, False, False, False]
    np.testing.assert_array_equal(found.states[300:600], np.arange(899, 599, -1))


def star(arms, length, discount):
    """A centre and arms that are walked along either way, one of them from there, with a prize at each end."""
    n = 1 + arms * length
    s = np.arange(n)
    out, back = np.where(s % length == 0, 0, s + 1), np.where((s - 1) % length == 0, 0, s - 1)
    out[0] = back[0] = 1
    successors = np.stack([np.stack([out, back], 1), np.stack([back, out], 1)], axis=1)
    rewards = np.zeros((n, 2))
    rewards[length::length, 0] = np.random.default_rng(0).exponential(10.0, size=arms)
    return al.MDP.from_function(
        lambda k: (rewards[k], successors[k], np.broadcast_to([0.9, 0.1], (len(k), 2, 2))), n, 2, discount
    )


def test_narrow_components_that_sweeps_do_not_settle_are_eliminated():
    """Where it pays to walk along an arm changes state by state from round to round, unless its values are exact."""
    mdp = star(30, 200, 0.9999)
    sol = al.solve(mdp, al.Auto(components.NAME), tolerance=1e-6)
    assert sol.certified
    assert sol.solvers == (components.NAME,)
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.PolicyIteration()).values, atol=1e-6)


def test_one_large_component_is_left_to_others():
    assert components.find(al.zoo.garnet(500, 3, 4, seed=0, discount=0.9)) is None


def test_local_models_that_fall_apart_are_solved_so_at_once():
    sol = al.solve(star(30, 50, 0.999), tolerance=1e-6)
    assert sol.certified
    assert sol.solvers == (components.NAME,)


def test_factorisations_that_only_move_a_front_on_give_way():
    """A river to swim up for a prize at its end: from where it pays to swim there moves by a few states a pass."""
    n = 1_000
    s = np.arange(n)
    down, up = np.maximum(s - 1, 0), np.minimum(s + 1, n - 1)
    successors = np.stack([np.stack([down, s, up], 1)] * 2, axis=1)
    chances = np.broadcast_to([[1.0, 0.0, 0.0], [0.05, 0.6, 0.35]], successors.shape)
    rewards = np.zeros((n, 2))
    rewards[0, 0], rewards[-1, 1] = 0.005, 1.0
    mdp = al.MDP.from_function(lambda k: (rewards[k], successors[k], chances[k]), n, 2, 0.9999)
    sol = al.solve(mdp, tolerance=1e-6)
    assert sol.certified
    assert [each.evaluation for each in sol.trace][-1] == components.NAME
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.PolicyIteration()).values, atol=2e-6)
