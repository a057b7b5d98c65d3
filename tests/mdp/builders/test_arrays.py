"""Models from the forms of arrays that other libraries use."""

import numpy as np
import pytest
import scipy.sparse as sp

import adalook as al
from tests.exact import dense, random_mdp


def same(one: al.MDP, other: al.MDP) -> bool:
    return bool((one.rewards == other.rewards).all() and (dense(one) == dense(other)).all())


@pytest.fixture
def model() -> al.MDP:
    chances = np.random.default_rng(0).dirichlet(np.ones(4), (4, 3))
    return al.MDP(np.random.default_rng(1).normal(size=(4, 3)), chances, 0.9)


def test_action_by_action(model):
    by_action = np.moveaxis(dense(model), 1, 0)
    assert same(model, al.MDP(model.rewards, by_action, 0.9))
    assert same(model, al.MDP(model.rewards, list(by_action), 0.9))
    assert same(model, al.MDP(model.rewards, [sp.csr_array(part) for part in by_action], 0.9))
    objects = np.empty(3, object)
    objects[:] = [sp.csc_matrix(part) for part in by_action]
    assert same(model, al.MDP(model.rewards, objects, 0.9))


def test_as_many_actions_as_states_go_state_by_state():
    chances = np.random.default_rng(0).dirichlet(np.ones(3), (3, 3))
    assert (dense(al.MDP(np.zeros((3, 3)), chances, 0.9)) == chances).all()


def test_rewards_of_successors_are_averaged(model):
    chances = dense(model)
    paid = np.random.default_rng(2).normal(size=chances.shape)
    expected = (chances * paid).sum(axis=2)
    flat, flat_paid = sp.csr_array(chances.reshape(12, 4)), sp.csr_array(paid.reshape(12, 4))
    by_action, paid_by_action = np.moveaxis(chances, 1, 0), np.moveaxis(paid, 1, 0)
    forms = [
        (paid, chances),
        (paid, flat),
        (flat_paid, flat),
        (flat_paid, chances),
        (paid_by_action, by_action),
        ([sp.csr_array(part) for part in paid_by_action], [sp.csr_array(part) for part in by_action]),
    ]
    for rewards, transitions in forms:
        np.testing.assert_allclose(al.MDP(rewards, transitions, 0.9).rewards, expected, rtol=0, atol=1e-15)


def test_rewards_of_certain_moves_are_picked():
    paid = np.arange(12.0).reshape(2, 3, 2)
    mdp = al.MDP(paid, [[0, 1, 0], [1, 1, 0]], 0.9)
    assert mdp.rewards.tolist() == [[0.0, 3.0, 4.0], [7.0, 9.0, 10.0]]
    assert same(mdp, al.MDP(sp.csr_array(paid.reshape(6, 2)), [[0, 1, 0], [1, 1, 0]], 0.9))


def test_what_cannot_happen_may_pay_anything():
    chances = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    paid = np.array([[[1.0, np.nan]], [[np.inf, 2.0]]])
    assert al.MDP(paid, chances, 0.9).rewards.tolist() == [[1.0], [2.0]]


def test_rewards_of_masked_actions_are_ignored():
    mdp = random_mdp(np.random.default_rng(0), 3, 2, 0.9)
    mask = np.array([[True, False], [True, True], [True, True]])
    paid = np.ones((3, 2, 3))
    paid[0, 1] = np.nan
    assert al.MDP(paid, np.full((3, 2, 3), 1 / 3), 0.9, mask=mask).rewards[0, 1] == 0.0
    assert mdp.num_states == 3


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("number", [np.float64, np.longdouble, np.float32, np.int64])
def test_sparse_matrices_of_every_kind_are_the_same_model(kind, number):
    """A dok_array is a dictionary, too; SciPy has no loops for some numbers, and needs none here."""
    table = np.eye(3)[[0, 1, 1, 2, 2, 0]]
    plain = al.MDP(np.ones((3, 2)), table.reshape(3, 2, 3), 0.9)
    given = sp.csr_array(table.astype(number)).asformat(kind)
    for mdp in (
        al.MDP(np.ones((3, 2)), given, 0.9),
        al.MDP(sp.csr_array(np.ones((6, 3), number)).asformat(kind), table.reshape(3, 2, 3), 0.9),
    ):
        assert (mdp.codes == plain.codes).all()
        assert (mdp.rewards == plain.rewards).all()


def test_half_precision_and_foreign_byte_order_are_read():
    matrix = sp.csr_array(np.eye(3)[[0, 1, 1, 2, 2, 0]])
    plain = al.MDP(np.ones((3, 2)), matrix, 0.9)
    for kind in (np.float16, np.dtype(">f8")):
        matrix.data = matrix.data.astype(kind)
        assert (al.MDP(np.ones((3, 2)), matrix, 0.9).codes == plain.codes).all()


def test_nested_lists_go_action_by_action_too():
    moves = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]]
    by_action = [[[1.0, 2.0], [3.0, 4.0]]] * 3
    mdp = al.MDP(by_action, moves, 0.9)
    assert mdp.rewards.tolist() == [[1.0, 2.0, 1.5], [4.0, 3.0, 3.5]]
    assert mdp.transition_row(0, 1)[0].tolist() == [1]


def test_the_order_of_other_libraries_is_recognised():
    with pytest.raises(al.errors.ModelError, match="Rewards come first"):
        al.MDP(np.stack([np.eye(2)] * 3), np.zeros((2, 3)), 0.9)
