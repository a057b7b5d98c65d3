"""The solvers that Auto chooses from: each solves what it is meant for, and the choice is the cheap one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.errors import ArgumentError
from adalook.planning import threads
from adalook.planning.evaluation import aggregation, elimination, extrapolation, functional, in_place, padded, sweeps
from adalook.planning.evaluation.base import PassOutcome
from adalook.planning.evaluation.chooser import SOLVERS, AdaptiveEvaluation
from adalook.planning.evaluation.contest import Contest, Costs
from adalook.planning.evaluation.linear import banded, lu
from adalook.planning.evaluation.ordered import acyclic
from adalook.planning.evaluation.sweeps import PolicyRows
from adalook.planning.lookahead.levels import backup
from tests.exact import naive_values, random_mdp
from tests.planning.evaluation.test_evaluation import random_policy

discounts = st.sampled_from([0.0, 0.5, 0.99, 0.99999])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), discounts)
def test_eliminating_backups_are_backups(seed, num_states, discount):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, num_states, 4, discount)
    eliminating, values = elimination.EliminatingBackups(mdp), rng.standard_normal(num_states)
    for _ in range(6):
        policy = random_policy(mdp, int(rng.integers(100)))
        plain, lazy = backup(mdp, values, policy), eliminating.backup(values, policy)
        assert (plain.values == lazy.values).all()
        assert plain.residual == lazy.residual
        assert mdp.num_states <= eliminating.pairs <= mdp.num_pairs
        values = plain.values + rng.choice([0.0, 10.0]) + 1e-3 * rng.standard_normal(num_states)


def test_actions_that_cannot_be_the_best_are_not_looked_at():
    mdp = al.zoo.garnet(500, 20, 5, seed=1, discount=0.9)
    values = np.array(al.solve(mdp, tolerance=1e-3).values)
    eliminating = elimination.EliminatingBackups(mdp)
    first = eliminating.backup(values, np.zeros(500, np.int32))
    after = eliminating.pairs
    again = eliminating.backup(values + 5.0, first.actions)  # all values move together
    assert eliminating.pairs <= 1.05 * mdp.num_states < 0.5 * after
    np.testing.assert_allclose(again.values, first.values + 4.5, atol=1e-12)


def test_a_band_is_looked_at_until_it_is_too_wide():
    mdp = al.zoo.gridworld(20, 20, seed=0)
    whole = banded.widest_bandwidths(mdp, np.inf)
    assert max(whole) >= 20
    assert 3 < sum(banded.widest_bandwidths(mdp, 3.0)) <= sum(whole)


def test_the_core_of_a_small_model_is_not_solved_apart():
    """Two states on a cycle that 40 others lead to: making a model of them takes longer than sweeping all."""
    ahead = np.minimum(np.arange(42)[:, None] + [1, 2], 41)
    ahead[40:] = [[41, 40], [40, 41]]
    stochastic = np.zeros((42, 2, 42))
    for a in range(2):
        stochastic[np.arange(42), a, ahead[:, a]] += 0.5
        stochastic[np.arange(42), a, np.minimum(ahead[:, 0] + 3 * (ahead[:, 0] < 39), 41)] += 0.5
    mdp = al.MDP(np.random.default_rng(0).standard_normal((42, 2)), stochastic, 0.95)
    peeled = acyclic.peel(mdp)
    assert peeled is not None
    assert len(peeled.core)
    sol = al.solve(mdp, tolerance=1e-8)
    assert acyclic.NAME not in sol.solvers
    forced = al.solve(mdp, al.Auto(acyclic.NAME), tolerance=1e-8)
    assert forced.solvers[0] == acyclic.NAME
    np.testing.assert_allclose(sol.values, forced.values, atol=2e-8)


def test_layers_are_solved_by_one_backward_pass():
    mdp = al.zoo.layered(layers=30, width=40, seed=2)
    sol = al.solve(mdp, tolerance=1e-6)
    assert (sol.solvers[0], len(sol.trace), sol.certified) == (acyclic.NAME, 1, True)
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.PolicyIteration()).values, atol=1e-6)


def test_a_core_that_float64_cannot_certify_is_left_when_nothing_changes(monkeypatch):
    evaluations = []
    evaluate = AdaptiveEvaluation.evaluate
    monkeypatch.setattr(
        AdaptiveEvaluation, "evaluate", lambda *given: evaluations.append(given[0].mdp.num_states) or evaluate(*given)
    )
    sol = al.solve(al.zoo.layered(layers=10, width=40, seed=2, discount=0.99999), al.Auto(acyclic.NAME), tolerance=1e-6)
    assert sol.converged
    assert 1 <= evaluations.count(40) < 20


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8))
def test_no_cycle_leads_to_what_is_peeled(seed, num_states):
    mdp = random_mdp(np.random.default_rng(seed), num_states, 2, 0.9)
    edges = {
        (s, int(t)) for s in range(num_states) for a in range(2) for t in mdp.transition_row(s, a)[0] if int(t) != s
    }
    peeled = acyclic.peel(mdp, max_core=1.0)
    if peeled is None:
        assert {t for _, t in edges} == set(range(num_states))
        return
    place = {int(s): i for i, s in enumerate(peeled.order)}
    assert sorted([*place, *peeled.core.tolist()]) == list(range(num_states))
    for s, t in edges:
        assert t not in place or place.get(s, num_states) < place[t]


def test_states_that_lead_to_themselves_are_no_cycle():
    stay = np.array([[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], [[0.0, 0.9, 0.1], [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]] * 2])
    mdp = al.MDP([[1.0, 2.0], [1.0, 0.0], [0.0, 0.0]], stay, 0.9)
    assert acyclic.peel(mdp).order.tolist() == [0, 1, 2]
    sol = al.solve(mdp, al.Auto(acyclic.NAME))
    assert sol.solvers[0] == acyclic.NAME
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.PolicyIteration()).values, atol=1e-8)


def test_the_core_is_a_model_of_its_own():
    mdp = al.zoo.layered(layers=4, width=10, seed=0)
    core = acyclic.core_model(mdp, acyclic.peel(mdp).core)
    assert core.num_states == 10
    for s in range(10):
        for a in range(4):
            inside, whole = core.transition_row(s, a), mdp.transition_row(30 + s, a)
            assert (inside[0] + 30).tolist() == whole[0].tolist()
            assert (inside[1] == whole[1]).all()


def closed_classes(num_classes=10, size=80, discount=0.9999, stay=0.0):
    """Random models that know nothing of each other, each with a reward level of its own; moves may stay in place."""
    rng = np.random.default_rng(0)
    n = num_classes * size
    level = np.arange(n) // size
    successors = level[:, None, None] * size + rng.integers(size, size=(n, 3, 4))
    successors[..., 0] = np.where(stay > 0.0, np.arange(n)[:, None], successors[..., 0])
    chances = rng.dirichlet(np.ones(3), size=(n, 3)) * (1.0 - max(stay, 0.25))
    chances = np.concatenate([np.full((n, 3, 1), max(stay, 0.25)), chances], axis=2)
    rewards = rng.standard_normal((n, 3)) + level[:, None]
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), n, 3, discount)


@pytest.mark.parametrize("stay", [0.0, 0.9])
def test_closed_classes_are_moved_as_groups(stay):
    """No constant shift suits several closed classes at once: sweeps alone go by γ, some 200,000 of them."""
    mdp = closed_classes(stay=stay)
    sol, swept = (al.solve(mdp, method, tolerance=1e-3) for method in (al.Auto(), al.Auto(sweeps.NAME)))
    assert any(aggregation.NAME in name for name in swept.solvers)
    for each in (sol, swept):
        assert each.certified
        assert sum(item.sweeps for item in each.trace) < 3_000
    np.testing.assert_allclose(sol.values, al.solve(mdp, al.PolicyIteration()).values, rtol=0, atol=1e-3)


def test_a_correction_removes_the_average_change_of_every_group():
    mdp = closed_classes(num_classes=3)
    policy = np.zeros(mdp.num_states, np.int32)
    rows = PolicyRows.of(mdp, policy)
    swept = sweeps.sweep(rows, np.zeros(mdp.num_states), 60, 0.0, 1_000, extrapolating=False).values
    corrected = aggregation.correct(rows, swept)
    np.testing.assert_allclose(corrected, naive_values(mdp, policy), rtol=1e-6)
    assert abs(swept - corrected).max() > 1_000.0
    assert (aggregation.correct(rows, corrected) - corrected).max() < 1e-6


def test_sweeps_are_extrapolated_where_they_are_slow():
    """With 95 of 100 moves staying in place sweeps are slow, in few directions: the same values in a tenth of them."""
    mdp = closed_classes(num_classes=1, size=300, discount=0.999, stay=0.95)
    rows = PolicyRows.of(mdp, np.zeros(300, np.int32))
    plain = sweeps.sweep(rows, np.zeros(300), 10_000, 1e-9, 1_000, extrapolating=False)
    swept = sweeps.sweep(rows, np.zeros(300), 10_000, 1e-9, 1_000)
    assert 5 * swept.sweeps < plain.sweeps
    assert swept.rate < 0.9 < plain.rate
    np.testing.assert_allclose(swept.values, plain.values, atol=1e-4)


def test_threads_sweep_as_one_does():
    mdp = closed_classes(num_classes=1, size=300, discount=0.999, stay=0.95)
    rows = PolicyRows.of(mdp, np.zeros(300, np.int32))
    one, many = (sweeps.sweep(rows, np.zeros(300), 200, 1e-9, entries) for entries in (1_000, 10**9))
    assert one.sweeps == many.sweeps
    assert one.rate == many.rate
    np.testing.assert_array_equal(one.values, many.values)


def test_extrapolations_that_make_things_worse_are_taken_back():
    """Several closed classes: the changes keep both signs, and one combination of iterates does not suit them all."""
    mdp = al.MDP([[1.0], [-1.0], [0.0]], [[[1.0, 0.0, 0.0]], [[0.0, 0.9, 0.1]], [[0.4, 0.2, 0.4]]], 0.999)
    rows = PolicyRows.of(mdp, np.zeros(3, np.int32))
    swept = sweeps.sweep(rows, np.zeros(3), 5_000, 1e-9, 10)
    np.testing.assert_allclose(swept.values, naive_values(mdp, np.zeros(3, int)), rtol=1e-6)
    steps, values = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([5.0, 7.0])
    history = extrapolation.History(steps, values.copy(), np.array([0.0, 0.0, 0.0, -1.0, 1.0, 0.9]))
    bad = np.array([50.0, 70.0])
    assert extrapolation.keep_change(history, np.zeros(2), bad, 0.0, 3.0, 2.5, True) == (-1.0, 1.0)
    np.testing.assert_array_equal(bad, values)


def test_the_pace_of_sweeps_is_that_of_two_cycles():
    pace = extrapolation.START
    for count in range(1, 60):
        pace = extrapolation.pace_after(pace, 0.9 ** (count - 1), count)
        assert pace.rate == (0.0 if count == 1 else pytest.approx(0.9))


def test_a_queue_is_factorised_at_once():
    sol = al.solve(al.zoo.queue(3000, discount=0.9999), tolerance=1e-6)
    assert sol.certified
    assert {item.evaluation for item in sol.trace} == {banded.NAME}
    assert all(item.forecast.seconds > 0.0 and item.evaluation_seconds > 0.0 for item in sol.trace)
    assert "a factorisation costs as much as" in sol.trace[0].forecast.reason


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "model", [al.zoo.gridworld(15, 15, discount=0.99), al.zoo.garnet(300, 3, 4), al.zoo.queue(200)]
)
def test_every_solver_agrees_with_every_other(solver, model):
    sol = al.solve(model, al.Auto(solver), tolerance=1e-7)
    assert sol.certified
    np.testing.assert_allclose(sol.values, al.solve(model, al.PolicyIteration()).values, atol=1e-6)


def test_unknown_solvers_are_refused():
    with pytest.raises(ArgumentError, match="knows no solver 'magic'"):
        al.Auto("magic")


def outcome(loss):
    residual = backup(al.zoo.chain(3), np.zeros(5), np.zeros(5, np.int32)).residual
    return PassOutcome(residual, 5, loss)


def contest_on_a_grid():
    mdp = al.zoo.gridworld(100, 100, discount=0.99)
    contest = Contest(mdp, 1e-6, Costs(mdp))
    return contest, Costs(mdp).backup


def contest_begun_in_place():
    contest, cost = contest_on_a_grid()
    contest.direct = 1e9 * cost
    contest.first(in_place=True)
    contest.paid("in place", 10.0 * cost)
    return contest, cost


def test_what_falls_behind_gives_way():
    """In place is dropped when its measured rate says that factorisations end sooner, and taken up again likewise."""
    contest, cost = contest_on_a_grid()
    contest.direct = 100.0 * cost
    assert contest.first(in_place=True)[0] == "in place"
    contest.paid("in place", 10.0 * cost)
    contest.judge(outcome(1e-3))
    assert contest.choose(5_000)[0] == "in place"
    contest.paid("in place", 1e4 * cost)
    contest.judge(outcome(0.9e-3))
    name, reason = contest.choose(5_000)
    assert name == "direct"
    assert "iteration in place would take" in reason


def test_a_policy_that_has_settled_needs_one_factorisation():
    for unsettled, winner in ((0, "direct"), (5_000, "sweeps")):
        contest, cost = contest_on_a_grid()
        contest.direct = 100.0 * cost
        contest.first(in_place=False)
        for loss in (1e-3, 0.5e-3):
            contest.paid("sweeps", 60.0 * cost)
            contest.judge(outcome(loss))
        contest.left["sweeps"] = 300.0 * cost
        assert contest.choose(unsettled)[0] == winner


@pytest.mark.parametrize(
    ("jacobi", "shown", "winner"),
    [(20.0, 200.0, "sweeps"), (40.0, 200.0, "in place"), (60.0, np.inf, "sweeps"), (20.0, 70.0, "in place")],
)
def test_sweeps_that_are_clearly_faster_take_over_from_iteration_in_place(jacobi, shown, winner):
    """Clearly faster than was predicted of it and than it has shown; simply faster, once it gets nowhere."""
    contest, cost = contest_on_a_grid()
    contest.direct = 1e9 * cost
    contest.first(in_place=True)
    contest.paid("in place", 20.0 * cost)
    assert not contest.comparison_due(0), "that would cost as much as all before it"
    contest.paid("in place", 40.0 * cost)
    contest.left["in place"] = 0.1 * cost
    assert not contest.comparison_due(0), "it is about to end"
    contest.left["in place"] = shown * cost
    assert not contest.comparison_due(5_000), "half of the actions change"
    assert contest.comparison_due(0)
    contest.compared(jacobi * cost, 100.0 * cost, 5.0 * cost)
    assert contest.choose(5_000)[0] == winner
    assert not contest.comparison_due(0), "not before costs have doubled"


@pytest.mark.parametrize(
    ("loss", "kept", "winner"), [(50.0, True, "in place"), (190.0, True, "sweeps"), (190.0, False, "sweeps")]
)
def test_iteration_in_place_that_hardly_gets_on_gives_way(loss, kept, winner):
    """By how far the loss fell, at first from that of any policy; sweeps begin anew unless values are worth keeping."""
    contest, cost = contest_begun_in_place()
    contest.worth_keeping = kept
    contest.judge(outcome(loss * contest._loss / 200.0))
    name, reason = contest.choose(5_000)
    assert name == winner
    assert contest.begins_anew == (not kept)
    if winner == "sweeps":
        assert reason.endswith("sweeps are tried")
        contest.paid("sweeps", 100.0 * cost)
        assert not contest.comparison_due(0), "what was given up is not asked again soon"


@pytest.mark.parametrize(
    ("unsettled", "on_its_way", "winner"),
    [(5_000, False, "sweeps"), (1_000, False, "in place"), (5_000, True, "in place")],
)
def test_iteration_in_place_goes_on_where_few_actions_change_or_news_is_on_its_way(unsettled, on_its_way, winner):
    contest, _ = contest_begun_in_place()
    contest.on_its_way = on_its_way
    contest.judge(outcome(2.0 * contest._loss))
    assert contest.choose(unsettled)[0] == winner


def test_where_neither_gets_anywhere_both_have_their_turns():
    contest, cost = contest_on_a_grid()
    contest.direct = 1e9 * cost
    loss = contest._loss

    def plays(name, work):
        contest.paid(name, work * cost)
        contest.judge(outcome(2.0 * loss))
        return contest.choose(5_000)

    assert contest.first(in_place=True)[0] == "in place"
    assert plays("in place", 80.0)[0] == "sweeps", "untried, for once"
    assert plays("sweeps", 150.0)[0] == "sweeps", "it has not cost twice as much yet"
    name, reason = plays("sweeps", 50.0)
    assert name == "in place"
    assert reason == "sweeps got nowhere, it is the turn of iteration in place"
    assert plays("in place", 300.0)[0] == "in place"
    assert plays("in place", 100.0)[0] == "sweeps"


@pytest.mark.parametrize(("part", "winner"), [(0.1, "in place"), (0.2, "sweeps")])
def test_iteration_in_place_that_came_down_to_a_small_part_is_not_given_up(part, winner):
    contest, cost = contest_on_a_grid()
    contest.direct = 1e9 * cost
    contest.first(in_place=True)
    contest.paid("in place", 60.0 * cost)
    contest.judge(outcome(part * contest._loss))
    assert contest.remaining > contest.most_left * cost
    assert contest.choose(5_000)[0] == winner


def chain_with_a_last_state(last_reward):
    """Three states in a row, of which the last stays and pays most, or leads back to the first if it pays 1."""
    moves = np.array([[1, 0], [2, 0], [2 if last_reward > 1.0 else 0, 1]], np.int32)
    return al.MDP(np.array([[0.0, 0.5], [0.0, 0.5], [last_reward, 0.0]]), moves, 0.999)


def test_the_best_reward_is_kept_where_a_move_that_has_it_stays_among_its_like():
    assert in_place.kept_reward(chain_with_a_last_state(2.0)) == 2.0
    assert in_place.kept_reward(chain_with_a_last_state(1.0)) is None


@pytest.mark.parametrize(("kept", "winner"), [(0.0, "in place"), (None, "sweeps")])
def test_iteration_in_place_is_not_given_up_where_the_best_reward_can_be_kept(monkeypatch, kept, winner):
    monkeypatch.setattr(Contest, "kept_reward", kept)
    contest, cost = contest_on_a_grid()
    contest.direct = 1e9 * cost
    contest.first(in_place=True)
    contest.paid("in place", 60.0 * cost)
    contest.judge(outcome(0.9 * contest._loss))
    assert contest.choose(5_000)[0] == winner


@pytest.mark.parametrize(
    ("num_actions", "discount", "backups"), [(4, 0.9, 6.0), (4, 0.999, 40.0), (8, 0.999, 20.0), (40, 0.999, 6.0)]
)
def test_a_factorisation_is_cheap_by_the_sweeps_that_it_saves(num_actions, discount, backups):
    mdp = al.zoo.garnet(50, num_actions, 3, discount=discount)
    costs = Costs(mdp)
    assert Contest(mdp, 1e-6, costs).cheap_direct == pytest.approx(backups * costs.backup)


def test_a_cheap_factorisation_is_tried_where_iteration_in_place_is_given_up():
    contest, cost = contest_on_a_grid()
    contest.direct = 40.0 * cost
    contest.current = "in place"
    contest.paid("in place", 10.0 * cost)
    contest.judge(outcome(0.9 * contest._loss))
    assert contest.choose(99)[0] == "direct"


def test_rounds_in_place_end_early_where_they_hardly_get_on():
    mdp = al.zoo.gridworld(30, 30, slip=0.3, discount=0.99)
    table, zeros = padded.move_table(mdp), np.zeros(mdp.num_states)
    policy = np.zeros(mdp.num_states, np.int32)
    runs = [
        in_place.iterate_in_place(mdp, table, zeros, policy, 1e-6, mdp.largest_reward, most_left=most)
        for most in (0.0, np.inf)
    ]
    spans = [run.last_backup.residual.span for run in runs]
    assert runs[0].backups < runs[1].backups
    assert spans[0] > 1e-3 > 1e-8 > spans[1]


@pytest.mark.parametrize("solver", [banded.NAME, lu.NAME])
def test_a_policy_improved_before_it_is_evaluated_must_settle(solver):
    """A step that leads back to the policy which a pass began with does not make the one evaluated optimal."""
    rng = np.random.default_rng(8)
    n = 12
    successors = np.stack([(np.arange(n)[:, None] + rng.integers(-3, 4, size=(n, 3))) % n for _ in range(3)], 1)
    rewards, chances = rng.standard_normal((n, 3)), np.full((n, 3, 3), 1.0 / 3.0)
    mdp = al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), n, 3, 0.9)
    sol = al.solve(mdp, al.Auto(solver), tolerance=1e-6)
    assert sol.trace[-1].policy_loss <= 1e-6, "it went on to double-doubles with a loss of 12.7"


def test_shared_rows_are_not_swept_in_place():
    """What is expected of them stands still during a sweep."""
    assert in_place.applies(al.zoo.gridworld(20, 20))
    rows = np.tile(np.random.default_rng(0).dirichlet(np.ones(20), size=20), (10, 1))
    mdp = al.MDP(np.zeros((200, 2)), np.stack([np.pad(rows, ((0, 0), (0, 180)))] * 2, 1), 0.9)
    assert mdp.rows.num_shared
    assert not in_place.applies(mdp)


def test_waves_follow_pointers():
    """Where evaluations are as cheap as backups, who leads to whom is found out only if moves are deterministic."""
    assert functional.waves_pay(al.zoo.maze())
    assert functional.waves_pay(al.zoo.queue(500)), "a factorisation is worth saving"
    inventory = al.zoo.inventory(capacity=20)
    assert not functional.waves_pay(inventory)
    assert {item.improvement for item in al.solve(inventory, tolerance=1e-6).trace} == {"one step"}


def test_a_solver_that_was_faster_takes_over_again():
    contest, cost = contest_on_a_grid()
    contest.direct = 1e9 * cost
    contest.first(in_place=False)
    contest.judge(outcome(1.0))
    contest.paid("sweeps", 10.0 * cost)
    contest.judge(outcome(1e-2))
    contest.compared(100.0 * cost, 1.0 * cost, 5.0 * cost)
    assert contest.choose(0)[0] == "in place"
    contest.paid("in place", 100.0 * cost)
    contest.judge(outcome(1e-3))
    assert contest.choose(0)[0] == "sweeps"


def test_rows_that_no_cache_holds_are_swept_side_by_side_in_comparisons_too(monkeypatch):
    mdp = al.zoo.garnet(60, 3, 12, discount=0.99, seed=0)
    evaluator, policy = AdaptiveEvaluation(mdp, 1e-6), np.ones(mdp.num_states, np.int32)
    evaluator._pads = False
    read = []
    usual = evaluator._sweep
    monkeypatch.setattr(evaluator, "_sweep", lambda *args, **more: read.append(args[1]) or usual(*args, **more))
    for least, rows in ((10**9, mdp.num_pairs), (0, mdp.num_states)):
        monkeypatch.setattr(threads, "MIN_ENTRIES", least)
        evaluator._compare_sweeps(policy, np.zeros(mdp.num_states))
        assert len(read.pop().indptr) == rows + 1


def test_a_state_that_is_never_left_asks_for_iteration_in_place():
    rng = np.random.default_rng(0)
    successors, chances = rng.integers(500, size=(500, 2, 3)), np.full((500, 2, 3), 1.0 / 3.0)
    for first in (successors[0], np.zeros((2, 3), int)):
        successors[0] = first
        mdp = al.MDP.from_function(
            lambda s, successors=successors: (np.ones((len(s), 2)), successors[s], chances[s]), 500, 2, 0.9
        )
        assert in_place.suits(mdp) == (not first.any())


def test_moves_that_lead_ahead_are_swept_against_their_direction():
    """A project that goes ahead by random jumps: in place, one sweep from its end carries news to the beginning."""
    rng = np.random.default_rng(0)
    n = 400
    ahead = np.minimum(np.arange(n)[:, None, None] + rng.integers(1, 40, size=(n, 2, 3)), n - 1)
    chances = np.full((n, 2, 3), 1.0 / 3.0)
    rewards = rng.standard_normal((n, 2))
    for order in (np.arange(n), np.arange(n)[::-1]):  # numbered from the beginning, or from the end
        successors = order[ahead[order]]
        mdp = al.MDP.from_function(
            lambda s, successors=successors, order=order: (rewards[order[s]], successors[s], chances[s]), n, 2, 0.999
        )
        assert in_place.suits(mdp)
        policy, values = np.zeros(n, np.int32), np.zeros(n)
        swept = in_place.sweep_in_place(mdp, padded.move_table(mdp), policy, values, 1)
        np.testing.assert_allclose(swept, naive_values(mdp, policy), rtol=1e-9)


def test_changes_that_shrink_by_one_factor_are_extrapolated():
    """Once round a cycle of 50 states each sweep takes off γ^50: 200 sweeps and more without extrapolation."""
    n, discount = 50, 0.999
    ring = (np.arange(n) + 1) % n
    successors = np.stack([ring, (ring + 1) % n], axis=1)[:, None, :]
    chances = np.broadcast_to([0.9, 0.1], (n, 1, 2))
    rewards = np.random.default_rng(0).standard_normal((n, 1))
    mdp = al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), n, 1, discount)
    policy = np.zeros(n, np.int32)
    swept = in_place.sweep_in_place(mdp, padded.move_table(mdp), policy, np.zeros(n), 18)
    np.testing.assert_allclose(swept, naive_values(mdp, policy), rtol=0, atol=1e-6)


def test_extrapolation_finds_the_limit_of_a_few_modes():
    """As many modes as there are changes less one: nothing is left of them but what rounding leaves of squares."""
    rng = np.random.default_rng(0)
    fading = np.array([0.99, 0.9, 0.7, -0.5, 0.3])
    modes, limit = rng.standard_normal((100, len(fading))), rng.standard_normal(100)
    iterates = [limit + modes @ fading**k for k in range(in_place.WINDOW + 1)]
    assert len(fading) == in_place.WINDOW - 1
    found = iterates[-1].copy()
    assert extrapolation.extrapolate(found, np.diff(iterates, axis=0))
    assert np.abs(found - limit).max() < 1e-3 * np.abs(iterates[-1] - limit).max()


def test_states_that_all_lead_to_are_ordered_apart():
    """Arms around a centre are narrow but for it; where all lead to one state, even ordering would take for ever."""
    arms, length = 80, 30
    centre = arms * length
    s = np.arange(centre)
    ahead = np.where(s % length == length - 1, centre, s + 1)
    for back, width in ((np.maximum(s - 1, 0), 2), (np.full(centre, centre), centre + 1)):
        successors = np.stack([np.append(ahead, 0), np.append(back, 0)], axis=1)[:, None, :]
        chances, rewards = np.broadcast_to([0.5, 0.5], successors.shape), np.zeros((centre + 1, 1))
        mdp = al.MDP.from_function(lambda k, r=rewards, t=successors, c=chances: (r[k], t[k], c[k]), centre + 1, 1, 0.9)
        assert lu.separator_size(PolicyRows.of(mdp, np.zeros(centre + 1, np.int32))) == width


def test_large_models_are_extrapolated_too():
    """A tree whose leaves lead back to its root: each time round takes off γ^13 of the loss, for ever at γ = 0.9999."""
    n = 2**14 - 1
    assert n >= in_place.ACTIVE_SET_STATES
    s = np.arange(n)
    below = np.where((2 * s + 1 < n)[:, None], 2 * s[:, None] + [1, 2], 0)
    rewards = np.where(2 * s + 1 < n, 0.0, np.random.default_rng(0).random(n))
    successors, chances = np.stack([below, below[:, ::-1]], axis=1), np.broadcast_to([0.75, 0.25], (n, 2, 2))
    mdp = al.MDP.from_function(lambda k: (np.repeat(rewards[k, None], 2, 1), successors[k], chances[k]), n, 2, 0.9999)
    sol = al.solve(mdp, al.Auto(in_place.NAME), tolerance=1e-6)
    assert sol.solvers == (in_place.NAME,)
    assert sum(item.sweeps for item in sol.trace) < 100


def test_moves_that_mostly_stay_are_solved_in_place():
    """What a move leaves in place is solved for there, wherever the others lead."""
    rng = np.random.default_rng(0)
    n = 2_000
    others = rng.integers(n, size=(n, 2, 3))
    successors = np.concatenate([np.broadcast_to(np.arange(n)[:, None, None], (n, 2, 1)), others], axis=2)
    for stay, suits in ((0.9, True), (0.3, False)):
        chances = np.broadcast_to([stay, *[(1.0 - stay) / 3.0] * 3], (n, 2, 4))
        rewards = rng.standard_normal((n, 2))
        mdp = al.MDP.from_function(lambda s, c=chances, r=rewards: (r[s], successors[s], c[s]), n, 2, 0.99)
        assert in_place.suits(mdp) == suits


def test_states_in_order_of_time_are_peeled_in_that_order():
    """All but the last layer lead ahead; with a way back from there to the first state, nothing can be peeled so."""
    mdp = al.zoo.layered(layers=30, width=40)
    peeled = acyclic.peel(mdp)
    assert peeled.order.tolist() == list(range(29 * 40))
    assert peeled.core.tolist() == list(range(29 * 40, 30 * 40))
    codes = np.array(mdp.codes)
    codes[-1, 0] = 0
    assert acyclic._lead_ahead(mdp.arrays) == 29 * 40
    assert acyclic._lead_ahead(al.MDP._adopt(mdp.rewards, codes, mdp.rows, mdp.discount).arrays) == 0


def test_grids_are_known_to_have_cycles_from_a_sample():
    grid = al.zoo.gridworld(30, 30, slip=0.2)
    assert acyclic.peel(grid) is None
    assert acyclic._mostly_cyclic(grid.arrays)
    assert not acyclic._mostly_cyclic(al.zoo.layered(layers=30, width=40).arrays)


def test_sweeps_are_chosen_where_they_are_faster_than_iteration_in_place():
    """Costs of cells at random and no goal that all flows to: a constant shift gains more than sweeping in place."""
    rng = np.random.default_rng(0)
    grid = al.zoo.gridworld(30, 30, slip=0.5, holes=0.0, discount=0.99)
    mdp = al.MDP._adopt(np.repeat(rng.random((900, 1)), 4, 1), grid.codes, grid.rows, 0.99)
    sol = al.solve(mdp, tolerance=1e-6)
    forced = [al.solve(mdp, al.Auto(name), tolerance=1e-6) for name in ("sweeps", "in-place MPI")]
    costs = [sum(item.sweeps + 4 * (item.backups + 1) for item in each.trace) for each in (sol, *forced)]
    assert costs[0] <= 1.5 * min(costs[1:])


def test_many_stochastic_actions_are_eliminated_rather_than_followed():
    assert functional.suits(al.zoo.maze())
    assert functional.suits(al.zoo.inventory(capacity=20))
    assert not functional.suits(al.zoo.inventory(capacity=60))
    certain = al.MDP(np.zeros((5, 40)), np.zeros((5, 40), int), 0.9)
    assert functional.suits(certain)


def test_a_solution_explains_itself():
    lines = al.solve(al.zoo.queue(500), tolerance=1e-6).explain().splitlines()
    assert lines[0].startswith("Auto on 500 states: converged")
    assert banded.NAME in lines[1]
    assert "predicted" in lines[1]
    assert len(al.solve(al.zoo.maze()).explain().splitlines()) == 3


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 20])
def test_a_table_of_moves_backs_up_as_the_model_does(width):
    """Rows of every length, deterministic and shared ones, moves that stay, actions that are not offered."""
    n, rng = 60, np.random.default_rng(width)
    moves = np.zeros((n, 3, n))
    for s in range(n):
        for a in range(3):
            moves[s, a, rng.choice(n, width, replace=False)] = rng.dirichlet(np.ones(width))
    moves[::5, 1] = np.eye(n)[::5]
    moves[::7, 2] = 1.0 / n
    offered = rng.random((n, 3)) < 0.8
    offered[:, 0] = True
    mdp = al.MDP(rng.standard_normal((n, 3)), moves, 0.9, mask=offered)
    assert mdp.rows.num_shared
    values, policy = rng.standard_normal(n), np.zeros(n, np.int32)
    known = backup(mdp, values, policy)
    best, action, shared = np.empty(n), np.empty_like(policy), np.empty(mdp.rows.num_shared)
    state = in_place.IterationState(values, policy, best, action, shared)
    residual = in_place.back_up(mdp.arrays, padded.move_table(mdp), state)
    assert np.abs(best - known.values).max() < 1e-14
    assert (action == known.actions).all()
    assert np.abs(np.array(residual) - known.residual).max() < 1e-14


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 16])
@pytest.mark.parametrize("entries", [1_000, 10**9])
def test_padded_rows_are_swept_as_those_of_the_model_are(width, entries):
    """Rows of all lengths up to a width, deterministic ones among them, and of a policy that changes in some states."""
    n, rng = 80, np.random.default_rng(width)
    moves = np.zeros((n, 3, n))
    for s in range(n):
        for a in range(3):
            length = rng.integers(1, width + 1)
            moves[s, a, rng.choice(n, length, replace=False)] = rng.dirichlet(np.ones(length))
    mdp = al.MDP(rng.standard_normal((n, 3)), moves, 0.9)
    copies = padded.PaddedRows.empty(mdp)
    policy = rng.integers(3, size=n).astype(np.int32)
    for _ in range(3):
        rows = PolicyRows.of(mdp, policy)
        padded.copy_rows(mdp.arrays, policy, copies)
        plain = sweeps.sweep(rows, np.zeros(n), 20, 0.0, entries)
        swept = sweeps.sweep(rows, np.zeros(n), 20, 0.0, entries, padded=copies)
        assert plain.sweeps == swept.sweeps
        np.testing.assert_allclose(swept.values, plain.values, rtol=1e-12, atol=1e-12)
        policy[rng.choice(n, 10)] = rng.integers(3)


def test_rows_are_padded_where_they_are_short_and_about_as_long_as_each_other():
    assert padded.suits(al.zoo.garnet(200, 4, 5))
    assert not padded.suits(al.zoo.garnet(200, 4, 40))
    assert not padded.suits(al.zoo.maze(size=12))  # whose relocation is a shared row


def test_the_table_of_a_small_model_is_kept_unless_solvers_write_to_it():
    mdp = al.zoo.gridworld(20, 20, slip=0.3, discount=0.99)
    kept = padded.move_table(mdp)
    before = [array.copy() for array in (kept.reward, kept.successor, kept.weight)]
    first, second = al.solve(mdp, al.Auto("in-place MPI")), al.solve(mdp, al.Auto("in-place MPI"))
    assert padded.move_table(mdp) is kept
    assert all((one == other).all() for one, other in zip(before, kept, strict=False))
    assert (first.values == second.values).all()
    shared = al.zoo.maze(size=12)
    assert shared.rows.num_shared
    assert padded.move_table(shared) is not padded.move_table(shared)
