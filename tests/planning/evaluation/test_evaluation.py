"""Every way to evaluate a policy gives the values of a dense solve, and each model gets the way that suits it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.planning import threads
from adalook.planning.evaluation import chooser, functional, in_place, sweeps
from adalook.planning.evaluation.base import PassOutcome
from adalook.planning.evaluation.linear import krylov, lu
from adalook.planning.lookahead.levels import backup
from tests.exact import naive_values, random_mdp


def random_policy(mdp: al.MDP, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(np.flatnonzero(mdp.offered[s])) for s in range(mdp.num_states)], np.int32)


def evaluate(mdp: al.MDP, policy: np.ndarray, tolerance: float = 0.0):
    return chooser.ExactEvaluation(mdp, tolerance).evaluate(policy, np.zeros(mdp.num_states), None)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.0, 0.3, 0.9, 0.999, 0.999999]))
def test_functional_graphs_with_leaves(seed, num_states, discount):
    mdp = random_mdp(np.random.default_rng(seed), num_states, 3, discount)
    policy = random_policy(mdp, seed)
    result = evaluate(mdp, policy)
    assert result.solver == functional.NAME
    scale = max(1.0, mdp.largest_reward) / (1.0 - discount)
    np.testing.assert_allclose(result.values, naive_values(mdp, policy), rtol=0, atol=1e-9 * scale)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.5, 0.99]))
def test_pointers_cycles_and_tails(seed, num_states, discount):
    rng = np.random.default_rng(seed)
    ahead = rng.integers(num_states, size=(num_states, 1))
    mdp = al.MDP(rng.standard_normal((num_states, 1)), ahead, discount)
    policy = np.zeros(num_states, np.int32)
    np.testing.assert_allclose(evaluate(mdp, policy).values, naive_values(mdp, policy), atol=1e-10)


@pytest.fixture
def no_leaves(monkeypatch):
    """Make every stochastic row too many, so that small models are evaluated as large ones are."""
    monkeypatch.setattr(functional, "MAX_LEAVES", 0)


def test_random_graphs_are_swept(no_leaves):
    mdp = al.zoo.garnet(1500, 3, 5, seed=1, discount=0.99)
    policy = random_policy(mdp)
    result = evaluate(mdp, policy)
    assert result.solver == sweeps.NAME
    assert result.swept < 300 * mdp.num_states, "a constant shift must spare the slow direction"
    np.testing.assert_allclose(result.values, naive_values(mdp, policy), atol=1e-9)


def random_walk(num_states: int, discount: float) -> al.MDP:
    """A walk on a line that mixes slowly: sweeps take for ever, a banded factorisation no time."""
    rng = np.random.default_rng(0)
    reward = rng.standard_normal((num_states, 1))

    def fn(s):
        ends = np.stack([np.maximum(s - 1, 0), np.minimum(s + 1, num_states - 1)], axis=1)
        return reward[s], ends[:, None, :], np.full((len(s), 1, 2), 0.5)

    return al.MDP.from_function(fn, num_states, 1, discount)


def test_slow_narrow_graphs_are_factorised():
    mdp = random_walk(1000, 0.99999)
    policy = np.zeros(mdp.num_states, np.int32)
    evaluation = chooser.ExactEvaluation(mdp, 0.0)
    result = evaluation.evaluate(policy, np.zeros(mdp.num_states), None)
    assert result.solver.startswith("sweeps, then ")
    assert result.solver.endswith("sparse LU")
    assert evaluation.evaluate(policy, result.values, None).solver == lu.NAME
    np.testing.assert_allclose(result.values, naive_values(mdp, policy), atol=1e-7)


def test_slow_wide_graphs_go_to_krylov(monkeypatch):
    monkeypatch.setattr(chooser, "LU_MAX_ENTRIES", 0)
    mdp = random_walk(1000, 0.9999)
    policy = np.zeros(mdp.num_states, np.int32)
    result = evaluate(mdp, policy)
    assert result.solver.endswith("then BiCGSTAB")
    np.testing.assert_allclose(result.values, naive_values(mdp, policy), atol=1e-6)


def test_rounding_ends_partial_evaluation_where_pointers_are_not_followed():
    mdp = random_walk(100, 0.9)
    evaluation = chooser.AdaptiveEvaluation(mdp, 1e-6, solver=functional.NAME)
    values, policy = naive_values(mdp, np.zeros(100, np.int32)), np.zeros(100, np.int32)
    evaluation.evaluate(policy, values, PassOutcome(backup(mdp, values, policy).residual, 0, 2e-6))
    assert not evaluation._partial


def test_a_solver_that_broke_down_is_not_named(no_leaves, monkeypatch):
    monkeypatch.setattr(chooser, "LU_MAX_ENTRIES", 0)
    monkeypatch.setattr(krylov, "solve_by_bicgstab", lambda *_: (None, 7))
    mdp = random_walk(100, 0.999)
    monkeypatch.setattr(chooser, "SLOW_SWEEPS", 10)
    result = evaluate(mdp, np.zeros(mdp.num_states, np.int32))
    assert result.solver == sweeps.NAME


def test_shared_rows_are_swept_too(no_leaves):
    mdp = al.zoo.maze(size=12, seed=0)
    policy = random_policy(mdp)
    result = evaluate(mdp, policy)
    assert result.solver != functional.NAME
    np.testing.assert_allclose(result.values, naive_values(mdp, policy), atol=1e-9)


def test_the_trace_says_what_was_done():
    maze = al.solve(al.zoo.maze(size=30))
    assert {item.evaluation for item in maze.trace} == {functional.NAME}
    assert {item.sweeps for item in maze.trace} == {1.0}
    assert maze.trace[0].improvement == "wavefront"
    assert maze.solvers == (functional.NAME, "wavefront")
    assert all(item.exact for item in maze.trace)
    garnet = al.solve(al.zoo.garnet(2000, 4, 5))
    assert {(item.evaluation, item.improvement) for item in garnet.trace} == {("partial sweeps", "at once")}
    assert not any(item.exact for item in garnet.trace)
    assert {item.evaluation for item in al.solve(al.zoo.garnet(2000, 4, 5), al.PolicyIteration()).trace} == {"sweeps"}
    assert al.solve(al.zoo.forest(), al.ModifiedPolicyIteration(7)).solvers == ("7 sweeps", "one step")
    assert al.solve(al.zoo.forest(), al.ValueIteration()).solvers == ("one step",)


def test_backups_in_place_are_no_depth():
    grid = al.solve(al.zoo.gridworld(30, 30, discount=0.99), al.Auto(in_place.NAME))
    first = grid.trace[0]
    assert (first.evaluation, first.improvement, first.exact) == (in_place.NAME, "in place", False)
    assert first.max_depth == first.mean_depth == first.depth.max() == 1
    assert first.backups > 1
    assert first.queries.improvement["shared"] == (1 + first.backups) * 900 * 4
    assert repr(grid).startswith(
        f"Solution(Auto({in_place.NAME}): {in_place.NAME}, {sum(i.backups for i in grid.trace)} backups in place; "
    )


@pytest.mark.parametrize("model", [al.zoo.garnet(700, 3, 4), al.zoo.gridworld(20, 20, slip=0.3)])
def test_wlpi_evaluates_exactly_whatever_the_model(model):
    sol = al.solve(model, al.WLPI())
    assert all(item.exact for item in sol.trace)
    policy = al.solve(model, max_iterations=1).trace[0].policy
    first = al.solve(model, al.WLPI(), initial_policy=policy, max_iterations=1).trace[0]
    np.testing.assert_allclose(first.values, naive_values(model, policy), atol=1e-6)


@pytest.mark.parametrize("method", [al.WLPI(), al.PolicyIteration(), al.HPI(2)], ids=lambda method: method.name)
@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_exact_is_exact_whatever_the_tolerance(method, scale, no_leaves):
    base = al.zoo.garnet(400, 3, 4, seed=1)
    model = al.MDP._adopt(base.rewards * scale, base.codes, base.rows, base.discount)
    policy = random_policy(model)
    loose, tight = (
        al.solve(model, method, initial_policy=policy, tolerance=tolerance, max_iterations=1).trace[0]
        for tolerance in (10.0, 1e-8)
    )
    assert loose.exact
    assert (loose.values == tight.values).all()
    np.testing.assert_allclose(loose.values, naive_values(model, policy), atol=1e-6 * scale)


@pytest.mark.parametrize("model", [al.zoo.garnet(300, 3, 5, seed=3), al.zoo.maze(size=14, seed=1)])
def test_rows_side_by_side_change_nothing(model, no_leaves, monkeypatch):
    policy = random_policy(model)
    plain = evaluate(model, policy)
    monkeypatch.setattr(threads, "MIN_ENTRIES", 1)
    split = evaluate(model, policy)
    assert plain.swept == split.swept
    assert (plain.values == split.values).all()


def test_a_fixed_number_of_sweeps_is_just_that():
    mdp = al.zoo.garnet(50, 3, 3, seed=2)
    policy = random_policy(mdp)
    values = sweeps.FixedSweeps(mdp, 1e-8, count=3).evaluate(policy, np.zeros(50), None).values
    expected = np.zeros(50)
    for _ in range(3):
        expected = np.array(
            [
                mdp.rewards[s, policy[s]] + mdp.discount * (p @ expected[t])
                for s in range(50)
                for t, p in [mdp.transition_row(s, int(policy[s]))]
            ]
        )
    np.testing.assert_allclose(values, expected, rtol=1e-13)


@pytest.mark.parametrize(("num_states", "few"), [(functional.MAX_LEAVES, True), (functional.MAX_LEAVES + 1, False)])
def test_a_functional_graph_may_have_so_many_leaves(num_states, few):
    mdp = al.zoo.garnet(num_states, 1, 3, seed=0)
    solver, policy = functional.FunctionalGraph(mdp), np.zeros(num_states, np.int32)
    assert mdp.rows.num_rows == num_states
    answers = [solver.solve(policy) for _ in range(2)]
    assert [answer is not None for answer in answers] == [few, few]
    assert (evaluate(mdp, policy).solver == functional.NAME) == few
