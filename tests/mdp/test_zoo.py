"""The models of the zoo are what they say."""

import numpy as np
import pytest

import adalook as al


def test_chain():
    mdp = al.zoo.chain(n=4, discount=0.9)
    assert mdp.codes.tolist() == [[1, 5], [2, 5], [3, 5], [4, 5], [4, 5], [5, 5]]
    assert mdp.rewards[4, 0] == 1 - 0.9
    assert np.count_nonzero(mdp.rewards) == 1


@pytest.mark.parametrize("seed", range(5))
def test_maze(seed):
    mdp = al.zoo.maze(size=30, seed=seed)
    layout = mdp.layout
    assert mdp.num_states == 28 * 28 - 51 - 4
    assert layout.start == (1, 1)
    assert len(set(layout.goals)) == 4
    cells = {tuple(int(x) for x in cell): s for s, cell in enumerate(layout.cells)}
    assert not set(layout.goals) & set(cells)
    assert layout.traps[0] in cells
    for goal in layout.goals:
        assert not layout.walls[goal]
    middle = 15
    assert {(7, middle), (22, middle), (middle, 7), (middle, 22)} <= set(
        map(tuple, np.argwhere(~layout.walls).tolist())
    )
    assert layout.walls[middle].sum() == layout.walls[:, middle].sum() == 28
    for (row, column), s in cells.items():
        for a, (down, right) in enumerate(layout.moves):
            ahead = (row + down, column + right)
            successors, chances = mdp.transition_row(s, a)
            if ahead in layout.goals:
                assert mdp.rewards[s, a] == 1.0
                expected = set(range(mdp.num_states)) - {cells[layout.traps[0]]}
                assert set(successors.tolist()) == expected
                assert np.ptp(chances) == 0.0
            else:
                assert successors.tolist() == [s if layout.walls[ahead] else cells[ahead]]
                assert mdp.rewards[s, a] == (-1.0 if ahead == layout.traps[0] else 0.0)


def test_seeds_draw_goals():
    assert al.zoo.maze(seed=0).layout.goals == al.zoo.maze(seed=0).layout.goals
    assert al.zoo.maze(seed=0).layout.goals != al.zoo.maze(seed=1).layout.goals


@pytest.mark.parametrize("size", [5, 6, 7, 8, 31])
def test_every_size_of_maze_can_be_walked(size):
    mdp = al.zoo.maze(size=size, seed=1)
    assert al.solve(mdp).values.min() > 0


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_squares_are_connected_and_never_cross_a_wall(k):
    mdp = al.zoo.maze(size=30, seed=0)
    groups = mdp.layout.squares(k)
    cells = mdp.layout.cells
    for group in range(groups.max() + 1):
        members = {tuple(c) for c in cells[groups == group].tolist()}
        assert len({(r // k, c // k) for r, c in members}) == 1
        reached, fresh = set(), {next(iter(members))}
        while fresh:
            reached |= fresh
            fresh = {(r + dr, c + dc) for r, c in fresh for dr, dc in mdp.layout.moves} & members - reached
        assert reached == members


def test_forest_and_grid_have_their_textbook_answers():
    """Puterman's forest: left alone for ever with the default prices."""
    mdp = al.zoo.forest(3, fire=0.1, wait_reward=4.0, cut_reward=2.0, discount=0.9)
    v = np.linalg.solve(
        np.eye(3) - 0.9 * np.array([[0.1, 0.9, 0], [0.1, 0, 0.9], [0.1, 0, 0.9]]), np.array([0.0, 0.0, 4.0])
    )
    np.testing.assert_allclose(al.solve(mdp).values, v, atol=1e-8)
    straight = al.zoo.gridworld(1, 5, slip=0.0, holes=0.0, discount=0.5)
    np.testing.assert_allclose(al.solve(straight).values, [0.125, 0.25, 0.5, 1.0, 0.0], atol=1e-9)


def test_a_queue_moves_by_one_customer():
    mdp = al.zoo.queue(6, 3, discount=0.9)
    assert mdp.transition_row(2, 0)[0].tolist() == [1, 2, 3]
    np.testing.assert_allclose(mdp.transition_row(2, 2)[1], [0.5, 0.2, 0.3])
    np.testing.assert_allclose(mdp.transition_row(5, 0)[1], [0.1, 0.9])
    np.testing.assert_allclose(mdp.rewards[3], [-0.5 - 0.001, -0.5 - 0.009, -0.5 - 0.025])


def test_a_stock_sells_what_is_asked_for():
    mdp = al.zoo.inventory(capacity=2, demand=1.0, discount=0.9)
    none, one = np.exp(-1.0), np.exp(-1.0)
    assert mdp.offered.tolist() == [[True, True, True], [True, True, False], [True, False, False]]
    np.testing.assert_allclose(mdp.transition_row(0, 2)[1], [1 - none - one, one, none])
    np.testing.assert_allclose(mdp.transition_row(1, 0)[1], [1 - none, none])
    assert mdp.rewards[0, 0] == 0.0
    np.testing.assert_allclose(mdp.rewards[1, 0], 5 * (1 - none) - 0.1 * none)


def test_layers_lead_on():
    mdp = al.zoo.layered(layers=5, width=7, num_actions=2, seed=3)
    for s in range(mdp.num_states):
        for a in range(2):
            assert set(mdp.transition_row(s, a)[0] // 7) == {min(s // 7 + 1, 4)}


def test_blocks_are_left_rarely():
    mdp = al.zoo.blocks(4, 10, coupling=0.01, seed=2)
    for s in range(mdp.num_states):
        successors, chances = mdp.transition_row(s, 1)
        assert chances[successors // 10 == s // 10].sum() >= 0.99 - 1e-12
