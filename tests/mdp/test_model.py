"""How models are stored: identical rows once, certain moves without a matrix, nothing changed."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import INT32_MAX, index_type
from tests.exact import dense, random_mdp


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 4))
def test_all_forms_store_the_same_rows(seed, num_states, num_actions):
    rng = np.random.default_rng(seed)
    model = random_mdp(rng, num_states, num_actions, 0.9)
    table = dense(model)
    flat = sp.csr_array(table.reshape(-1, num_states))
    again = al.MDP(model.rewards, flat, 0.9, mask=model.offered)
    assert (dense(again) == table).all()
    assert (again.codes == model.codes).all()


def test_certain_moves_have_no_matrix():
    mdp = al.MDP(np.zeros((3, 2)), [[0, 1], [1, 2], [2, 0]], 0.9)
    assert mdp.deterministic
    assert mdp.rows.nbytes <= 8
    also = al.MDP(np.zeros((3, 2)), dense(mdp), 0.9)
    assert also.deterministic
    assert (also.codes == mdp.codes).all()


def test_identical_rows_are_stored_once():
    row = np.array([0.25, 0.25, 0.5])
    mdp = al.MDP(np.zeros((3, 4)), np.broadcast_to(row, (3, 4, 3)), 0.9)
    assert mdp.rows.num_rows == 1
    assert (dense(mdp) == row).all()


def test_rows_that_differ_in_one_bit_are_two():
    table = np.full((2, 1, 2), 0.5)
    table[1, 0] = [0.5, np.nextafter(0.5, 1)]
    assert al.MDP(np.zeros((2, 1)), table, 0.9).rows.num_rows == 2


def test_a_wide_row_of_several_states_is_a_shared_row():
    assert al.zoo.maze(size=12).rows.num_shared == 1
    wide = np.full((10, 2, 10), 0.1)
    wide[:, 1] = np.eye(10)
    mdp = al.MDP(np.zeros((10, 2)), wide, 0.9)
    assert mdp.rows.num_shared == 1
    assert al.MDP(np.zeros((10, 1)), np.random.default_rng(0).dirichlet(np.ones(10), (10, 1)), 0.9).rows.num_shared == 0


def test_repeated_successors_are_summed():
    transitions = sp.coo_array(([0.25, 0.25, 0.5], ([0, 0, 0], [0, 0, 1])), shape=(1, 2))
    table = sp.vstack([transitions, sp.coo_array([[0.0, 1.0]])])
    successors, chances = al.MDP(np.zeros((2, 1)), table, 0.9).transition_row(0, 0)
    assert successors.tolist() == [0, 1]
    assert chances.tolist() == [0.5, 0.5]


def test_float32_rows_are_normalised():
    mdp = al.MDP(np.zeros((3, 1)), np.full((3, 1, 3), 1 / 3, np.float32), 1 - 1e-9)
    assert abs(mdp.transition_row(0, 0)[1].sum() - 1.0) < 1e-15


def test_float64_rows_are_kept_to_the_bit():
    row = np.random.default_rng(0).dirichlet(np.ones(50), (50, 2))
    assert (dense(al.MDP(np.zeros((50, 2)), row, 0.9)) == row).all()


def test_the_tolerance_of_row_sums_grows_with_their_length():
    n = 1000
    row = np.full((n, 1, n), 1 / n)
    row[0, 0, 0] += 5e-10
    al.MDP(np.zeros((n, 1)), row, 0.9)
    short = np.full((2, 1, 2), 0.5)
    short[0, 0, 0] += 5e-10
    with pytest.raises(al.AdalookError, match="sum to one"):
        al.MDP(np.zeros((2, 1)), short, 0.9)


def test_what_was_given_can_be_changed_without_harm():
    rewards, ahead = np.ones((2, 1)), np.zeros((2, 1), int)
    mdp = al.MDP(rewards, ahead, 0.5)
    rewards[:] = 7
    ahead[:] = 1
    assert al.solve(mdp).values.tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        mdp.rewards[0, 0] = 3.0


def test_a_model_never_changes():
    import copy
    import pickle

    mdp = al.zoo.maze(size=12)
    with pytest.raises(AttributeError, match="never changes"):
        mdp.discount = 0.5
    for clone in (copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp))):
        assert not clone.codes.flags.writeable
        assert (al.solve(clone).values == al.solve(mdp).values).all()


def test_indices_are_as_small_as_they_may_be():
    assert al.zoo.maze(size=12).codes.dtype == np.int32
    assert index_type(INT32_MAX - 10) is np.int32
    assert index_type(INT32_MAX) is np.int64
    assert index_type(2**40) is np.int64


def test_models_with_long_indices_solve_alike():
    """The kernels take 64-bit indices too; a model that needs them would not fit here."""
    from adalook.mdp.model import MDP
    from adalook.mdp.transitions import Rows

    maze = al.zoo.maze(size=12)
    rows = Rows(maze.rows.indptr.astype(np.int64), maze.rows.indices.astype(np.int64), maze.rows.data.copy(), 1)
    wide = MDP._adopt(maze.rewards.copy(), maze.codes.astype(np.int64), rows, maze.discount)
    for method in (al.WLPI(), al.HPI(2), al.ValueIteration()):
        assert (al.solve(wide, method).values == al.solve(maze, method).values).all()


def test_predecessors_are_the_transposed_edges():
    mdp = random_mdp(np.random.default_rng(3), 7, 3, 0.9)
    edges = {(int(t), s) for s in range(7) for a in range(3) for t in mdp.transition_row(s, a)[0]}
    graph = mdp.predecessors
    found = {(t, int(p)) for t in range(7) for p in graph.sources[graph.start[t] : graph.start[t + 1]]}
    assert found == edges


def test_the_share_of_deterministic_moves_is_that_of_a_sample():
    assert al.zoo.garnet(500, 4, 5).deterministic_share == 0.0
    assert al.MDP(np.zeros((5, 2)), np.zeros((5, 2), int), 0.9).deterministic_share == 1.0


def test_growth_tells_grids_from_random_graphs():
    assert al.zoo.maze(size=60).growth < 6
    assert al.zoo.gridworld(20, 20).growth < 6
    assert al.zoo.garnet(500, 4, 5).growth > 20


@pytest.mark.parametrize(
    ("rewards", "transitions", "mask", "text"),
    [
        ([[0.0, np.nan], [0.0, 0.0]], [[0, 1], [0, 1]], None, "state low, action buy"),
        ([[0.0, 0.0], [0.0, 0.0]], [[0, 1], [7, 1]], None, "state high, action sell"),
        ([[0.0, 0.0], [0.0, 0.0]], [[0, 1], [0, 1]], [[True, True], [False, False]], "state high offers no action"),
        ([[0.0, 0.0], [0.0, 0.0]], np.full((2, 2, 2), 0.4), None, "state low, action sell do not sum"),
        ([[0.0], [0.0]], np.array([[[0.5, 0.5]], [[1.5, -0.5]]]), None, "state high, action sell, successor high"),
    ],
)
def test_errors_call_states_and_actions_by_their_names(rewards, transitions, mask, text):
    names = ["sell", "buy"][: len(rewards[0])]
    with pytest.raises(al.errors.ModelError, match=text):
        al.MDP(rewards, transitions, 0.9, mask=mask, state_names=["low", "high"], action_names=names)


def test_policies_go_by_names():
    mdp = al.MDP([[0.0, 1.0], [2.0, 0.0]], [[0, 1], [1, 0]], 0.9, action_names=["stay", "move"])
    assert mdp.simulate(["move", "stay"], 2, start=0).actions.tolist() == [[1, 0]]
    assert mdp.simulate(al.solve(mdp).to_frame()["action"], 2, start=0).actions.tolist() == [[1, 0]]
    assert al.solve(mdp, initial_policy=["move", "stay"]).iterations == 0
    with pytest.raises(al.errors.ArgumentError, match=r"there is no action 'mov'.*Did you mean 'move'"):
        al.evaluate(mdp, ["mov", "stay"])
    with pytest.raises(al.errors.ArgumentError, match=r"expected one of \[0 \(stay\), 1 \(move\)\], got 2"):
        al.evaluate(mdp, [2, 0])
    with pytest.raises(al.errors.ArgumentError, match="expected 0 to 1"):
        al.evaluate(al.zoo.chain(n=1), ["move"] * 3)


def test_mmap_is_true_or_false(tmp_path):
    al.zoo.chain(n=1).save(tmp_path / "m.npz")
    with pytest.raises(al.errors.ArgumentError, match="mmap"):
        al.MDP.load(tmp_path / "m.npz", mmap="r")


@pytest.mark.parametrize(("given", "missing"), [(({0: {0: [(1.0, 0, 1.0)]}}, 0.9), "a discount"), (("x",), "transit")])
def test_a_table_in_the_wrong_place_is_told_where_it_belongs(given, missing):
    with pytest.raises(al.errors.ModelError, match=rf"needs {missing}.*from_table"):
        al.MDP(*given)


def test_what_is_asked_of_a_model_is_found_out_once_and_anew_for_other_rewards():
    asked = []

    @kept_with_model
    def best_reward(mdp: al.MDP) -> float:
        asked.append(mdp)
        return float(mdp.rewards.max())

    mdp = al.MDP([[0.0, 1.0], [1.0, 0.0]], [[0, 1], [1, 0]], 0.9)
    assert best_reward(mdp) == best_reward(mdp) == 1.0
    assert asked == [mdp]
    assert best_reward(mdp._with_rewards(mdp.rewards - 2.0, 2.0)) == -1.0
