"""Marching: the order of the states, the values it finds, and when it is given up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.planning.evaluation.ordered import marching
from adalook.planning.evaluation.padded import MoveTable
from adalook.planning.solve import starting_policy
from tests.exact import random_mdp


def grid(side, discount=0.99, seed=0):
    return al.zoo.gridworld(side, side, slip=0.2, seed=seed, discount=discount, holes=0.0)


def moves(mdp, s):
    return {int(t) for a in range(mdp.num_actions) if mdp.offered[s, a] for t in mdp.transition_row(s, a)[0]}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 12))
def test_states_come_after_those_that_are_nearer_to_the_best_reward(seed, num_states):
    mdp = random_mdp(np.random.default_rng(seed), num_states, 2, 0.9)
    order = marching.order_of(mdp)
    if order is None:
        return
    assert sorted(order.states) == list(range(num_states))
    best = np.where(mdp.offered, mdp.rewards, -np.inf).max(axis=1)
    distance = {int(s): 0 for s in np.flatnonzero(best == best.max())}
    for step in range(1, num_states):
        near = set(distance)
        distance.update({s: step for s in range(num_states) if s not in near and moves(mdp, s) & near})
    reached = [int(s) for s in order.states if int(s) in distance]
    assert [distance[s] for s in reached] == sorted(distance[s] for s in reached)
    assert list(order.states[num_states - len(reached) :]) == reached  # what cannot get there comes first


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.0, 0.5, 0.99]))
def test_asked_for_it_solves_any_model(seed, num_states, discount):
    mdp = random_mdp(np.random.default_rng(seed), num_states, 3, discount)
    sol = al.solve(mdp, al.Auto(marching.NAME), tolerance=1e-6)
    exact = al.solve(mdp, al.PolicyIteration())
    assert sol.converged
    np.testing.assert_allclose(sol.values, exact.values, atol=1e-6 * max(1.0, mdp.largest_reward))


@pytest.mark.parametrize("discount", [0.9, 0.999])
def test_large_grids_are_marched_through(discount):
    mdp = grid(90, discount)
    sol = al.solve(mdp, tolerance=1e-6)
    assert sol.solvers[0] == marching.NAME
    assert sol.certified
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.Auto("in-place MPI"), tolerance=1e-6).values, atol=1e-6)


def test_the_same_bits_every_time():
    mdp = grid(90)
    assert (al.solve(mdp, tolerance=1e-6).values == al.solve(mdp, tolerance=1e-6).values).all()


def test_values_that_are_given_are_not_thrown_away():
    mdp = grid(90)
    known = al.solve(mdp, tolerance=1e-8)
    again = al.solve(mdp, tolerance=1e-6, initial_values=known.values)
    assert marching.NAME not in again.solvers
    assert len(again.trace) == 1


def ring(num_states, discount):
    """A walk on a ring that drifts nowhere, with random rewards: there is no direction to march in."""
    rng = np.random.default_rng(0)
    s = np.arange(num_states)
    successors = np.stack([(s + 1) % num_states, (s - 1) % num_states], axis=1)
    successors = np.stack([successors, successors], axis=1)
    chances = np.broadcast_to([[0.5, 0.5], [0.45, 0.55]], successors.shape)
    rewards = rng.standard_normal((num_states, 2))
    return al.MDP.from_function(lambda i: (rewards[i], successors[i], chances[i]), num_states, 2, discount)


def test_windows_that_do_not_settle_end_a_march():
    mdp = ring(6_000, 0.9999)
    order = marching.order_of(mdp)
    assert marching.March(mdp, order, 1e-6).run(starting_policy(mdp)) is None
    assert marching.NAME not in al.solve(mdp, tolerance=1e-3).solvers


def test_no_direction_where_many_states_have_the_best_reward():
    mdp = grid(20)
    equal = al.MDP._adopt(np.ones_like(mdp.rewards), mdp.codes, mdp.rows, 0.9)
    assert marching.order_of(equal) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.sampled_from([0.5, 0.999]))
def test_a_part_is_eliminated_given_the_values_around_it(seed, num_states, discount):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, num_states, 1, discount)
    if mdp.rows.num_shared:
        return
    order = np.arange(num_states, dtype=mdp.codes.dtype)
    table = MoveTable.empty(mdp)
    marching.write_table(mdp.arrays, order, table)
    first, end = sorted(rng.choice(num_states + 1, size=2, replace=False).tolist())
    part = marching.Part(first, end, end - first, False)
    scratch, policy = marching.scratch_of(table, end - first), np.zeros(num_states, np.int32)
    marching._copy_rows(table, policy, scratch, part)
    values = rng.standard_normal(num_states)
    around = values.copy()
    marching.eliminate_part(scratch.padded, values, part)
    inside = np.arange(first, end)
    outside = np.setdiff1d(order, inside)
    np.testing.assert_array_equal(values[outside], around[outside])
    for s in inside:
        successors, chances = mdp.transition_row(int(s), 0)
        backed_up = mdp.rewards[s, 0] + discount * chances @ values[np.asarray(successors, int)]
        np.testing.assert_allclose(values[s], backed_up, atol=1e-9 * max(1.0, mdp.largest_reward))
