"""Search under chance: with V at the leaves a tree of depth h is T^h V, exactly or in the limit of many samples."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adalook as al
from adalook.errors import ArgumentError
from adalook.search import Budget, FixedDepth, GapDepth, Root, Sampling, SearchStatus, WorkerPool, search, search_many
from adalook.simulators.minatar import MinAtarSimulator
from adalook.simulators.tabular import TabularSimulator
from tests.search.reference import assert_same, hashed_values, roots_along

DISCOUNT = 0.95


def backed_up(mdp, values, depth):
    """Return q (S, A) of T^depth V, by the definition: a loop over states, actions and successors."""
    for _ in range(depth):
        q = np.full((mdp.num_states, mdp.num_actions), -np.inf)
        for state in range(mdp.num_states):
            for action in np.flatnonzero(mdp.offered[state]):
                successors, probabilities = mdp.transition_row(state, action)
                q[state, action] = mdp.rewards[state, action] + mdp.discount * probabilities @ values[successors]
        values = q.max(axis=1)
    return q


def values_by_number(values):
    return lambda observations, depth: values[observations[:, 0]]


def terminal(mdp):
    """Return which states (S,) only lead to themselves and pay nothing."""
    stay = [
        all(mdp.transition_row(s, a)[0].tolist() == [s] and mdp.rewards[s, a] == 0 for a in range(mdp.num_actions))
        for s in range(mdp.num_states)
    ]
    return np.array(stay)


def gym_model(name, **options):
    env = gymnasium.make(name, **options)
    return env, al.MDP.from_gymnasium(env, discount=DISCOUNT)


TABLES = [
    ("FrozenLake-v1", {}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("CliffWalkingSlippery-v1", {}),
    ("Taxi-v4", {"is_rainy": True}),
]


@pytest.mark.parametrize(("name", "options"), TABLES)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_model_of_gymnasium_is_backed_up_exactly(name, options, depth):
    env, mdp = gym_model(name, **options)
    values = np.random.default_rng(0).normal(size=mdp.num_states)
    values[terminal(mdp)] = 0.0
    expected = backed_up(mdp, values, depth)
    for sim in (TabularSimulator(mdp), al.make_simulator(env)):
        roots = roots_along(sim, 4, 3, seed=1)
        results = search_many(sim, roots, values_by_number(values), FixedDepth(depth), discount=DISCOUNT)
        for root, result in zip(roots, results, strict=True):
            state = int(root.observation[0])
            np.testing.assert_allclose(result.action_values, expected[state], rtol=1e-12, atol=1e-12)
            assert not result.close


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_the_mazes_relocations_are_expectations(depth):
    mdp = al.zoo.maze(size=10, seed=2, discount=DISCOUNT)
    values = np.random.default_rng(0).normal(size=mdp.num_states)
    expected = backed_up(mdp, values, depth)
    sim = TabularSimulator(mdp)
    for root in roots_along(sim, 6, 5):
        result = search(sim, root, values_by_number(values), FixedDepth(depth), discount=DISCOUNT)
        np.testing.assert_allclose(result.action_values, expected[root.observation[0]], rtol=1e-12, atol=1e-12)
        assert result.nodes <= result.tree_nodes


def test_steps_count_actions_not_their_outcomes():
    """FrozenLake lists three outcomes of each of its four actions: that is one step of the simulator each."""
    _, mdp = gym_model("FrozenLake-v1")
    sim = TabularSimulator(mdp)
    root = roots_along(sim, 1, 1, seed=1)[0]
    outcomes = [mdp.transition_row(int(root.observation[0]), action)[0] for action in range(4)]
    alive = [state for row in outcomes for state in row.tolist() if not terminal(mdp)[state]]
    assert len(set(alive)) < len(alive)
    first, second = (search(sim, root, hashed_values, FixedDepth(depth), discount=DISCOUNT) for depth in (1, 2))
    assert (first.nodes, first.tree_nodes) == (4, 4)
    assert (second.nodes, second.tree_nodes) == (4 + 4 * len(set(alive)), 4 + 4 * len(alive))


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 4), masked=st.booleans())
@settings(max_examples=60, deadline=None)
def test_random_models(seed, depth, masked):
    rng = np.random.default_rng(seed)
    states, actions = 8, 3
    transitions = rng.dirichlet(np.full(3, 0.5), (states, actions))
    rows = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            rows[s, a, rng.choice(states, 3, replace=False)] = transitions[s, a]
    mask = rng.random((states, actions)) < 0.6
    mask[np.arange(states), rng.integers(0, actions, states)] = True
    mdp = al.MDP(rng.normal(size=(states, actions)), rows, 0.9, mask=mask if masked else None)
    values = rng.normal(size=states)
    sim = TabularSimulator(mdp)
    (root,) = roots_along(sim, 1, 2, seed)
    result = search(sim, root, values_by_number(values), FixedDepth(depth), discount=0.9)
    expected = backed_up(mdp, values, depth)[root.observation[0]]
    np.testing.assert_allclose(result.action_values, expected, rtol=1e-10, atol=1e-10)
    assert mdp.offered[root.observation[0], result.action]


def test_samples_approach_the_expectation_and_their_error_is_known():
    env, mdp = gym_model("FrozenLake-v1")
    values = np.random.default_rng(0).normal(size=mdp.num_states)
    values[terminal(mdp)] = 0.0
    sim = al.make_simulator(env)
    (root,) = roots_along(sim, 1, 2)
    expected = backed_up(mdp, values, 2)[root.observation[0]]
    errors = []
    for count in (4, 32, 256):
        result = search(
            sim, root, values_by_number(values), FixedDepth(2), discount=DISCOUNT, samples=Sampling(count, count)
        )
        errors.append(np.abs(result.action_values - expected).max())
        best = result.action
        lead = expected[best] - expected
        assert (
            np.abs((result.value - result.action_values) - lead) <= 6 * result.levels[-1].standard_errors + 0.1
        ).all()
    assert errors[2] < errors[0]
    assert errors[2] < 0.1


def test_more_futures_are_drawn_where_the_choice_is_close():
    """Two actions that are equally good, one future apart: nobody can tell; two that are not need no more."""
    coin = [[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
    transitions = np.array([coin, [[0.0, 1.0, 0.0]] * 2, [[0.0, 0.0, 1.0]] * 2])
    values = np.array([0.0, 1.0, -1.0])
    for lead, most in ((0.0, 16), (10.0, 4)):
        sim = TabularSimulator(al.MDP([[0.0, lead], [1, 1], [1, 1]], transitions, 0.9), start=0)

        def drawn(observations, depth):
            return values[observations[:, 0]]

        result = search(sim, Root.of(sim), drawn, FixedDepth(1), discount=0.9, samples=Sampling(4, 16), seed=3)
        assert result.levels[-1].samples.shape == (2, 4 if lead else most) or not result.close
        np.testing.assert_allclose(result.action_values, result.levels[-1].samples.mean(axis=1))
        assert result.nodes == 2 * result.levels[-1].samples.shape[1]


def test_common_random_numbers_cancel_what_actions_share():
    """Both actions move by the same row: in every drawn future they arrive in the same state."""
    rows = np.tile([0.25, 0.25, 0.25, 0.25], (4, 2, 1))
    sim = TabularSimulator(al.MDP(np.tile([0.0, 0.1], (4, 1)), rows, 0.9), start=0)
    result = search(sim, Root.of(sim), hashed_values, FixedDepth(1), discount=0.9, samples=4)
    np.testing.assert_allclose(result.action_values[1] - result.action_values[0], 0.1)
    assert result.levels[-1].standard_errors.max() < 1e-12
    assert not result.close


def test_the_drawn_leaf_is_an_unbiased_sample_of_the_value():
    env, mdp = gym_model("FrozenLake-v1")
    values = np.random.default_rng(1).normal(size=mdp.num_states)
    values[terminal(mdp)] = 0.0
    sim = al.make_simulator(env)
    sim.reset(seed=0)
    root, draws = Root.of(sim), []
    for seed in range(2000):
        result = search(sim, root, values_by_number(values), FixedDepth(3), discount=DISCOUNT, seed=seed)
        leaves = [result.leaf(action) for action in range(4)]
        draws.append(
            [
                leaf.return_to_leaf + (0.0 if leaf.terminated else DISCOUNT**leaf.depth * values[leaf.observation[0]])
                for leaf in leaves
            ]
        )
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(mean - result.action_values) < 5 * error + 1e-9).all()


@pytest.mark.parametrize("game", ["Asterix", "Seaquest"])
@pytest.mark.parametrize("depth", [1, 2])
def test_minatar_equals_plain_recursion_over_the_same_futures(game, depth):
    from adalook.simulators.randomness import draw_seeds

    sim = MinAtarSimulator(game, sticky=0.2)
    count, seed, discount = 3, 5, 0.9

    def value(state, height):
        """Return q (A,) of a node by recursion that merges nothing."""
        q = np.zeros(sim.num_actions)
        for future in draw_seeds(seed, height, count):
            children = sim.expand([sim.reseed(state, future)] * sim.num_actions, range(sim.num_actions))
            for action in range(sim.num_actions):
                after = 0.0
                if not children.terminated[action]:
                    if height == depth:
                        after = float(hashed_values(children.observations[action : action + 1], depth)[0])
                    else:
                        after = value(children.states[action], height + 1).max()
                q[action] += (children.rewards[action] + discount * after) / count
        return q

    for root in roots_along(sim, 3, 9):
        result = search(
            sim, root, hashed_values, FixedDepth(depth), discount=discount, seed=seed, samples=Sampling(count, count)
        )
        np.testing.assert_allclose(result.action_values, value(root.state, 1), rtol=1e-12, atol=1e-12)


def test_many_roots_at_once_are_each_root_alone():
    sim = MinAtarSimulator("Asterix", sticky=0.1)
    roots = roots_along(sim, 4, 9)
    rule = GapDepth(0.2, max_depth=3)
    together = search_many(sim, roots, hashed_values, rule, discount=0.9, seed=range(4), samples=2)
    for i, (root, result) in enumerate(zip(roots, together, strict=True)):
        assert_same(result, search(sim, root, hashed_values, rule, discount=0.9, seed=i, samples=2))


def test_workers_give_the_same_answers():
    sim = MinAtarSimulator("Seaquest", sticky=0.1)
    roots = roots_along(sim, 3, 9)
    alone = search_many(sim, roots, hashed_values, FixedDepth(2), discount=0.9, samples=2)
    with WorkerPool(sim, 2) as pool:
        for one, other in zip(
            alone,
            search_many(sim, roots, hashed_values, FixedDepth(2), discount=0.9, samples=2, expander=pool),
            strict=True,
        ):
            assert_same(one, other)


def test_one_sample_is_the_best_path_of_one_future_and_deterministic_simulators_draw_nothing():
    sim = MinAtarSimulator("Breakout")
    (root,) = roots_along(sim, 1, 9)
    results = [
        search(sim, root, hashed_values, FixedDepth(3), discount=0.9, samples=samples) for samples in (None, 1, 4)
    ]
    for result in results[1:]:
        assert_same(results[0], result)
    assert not sim.stochastic
    assert results[0].levels[-1].samples is None


def test_a_beam_expands_the_likeliest_nodes_and_a_wide_one_all():
    mdp = al.zoo.maze(size=10, seed=2, discount=DISCOUNT)
    sim, values = TabularSimulator(mdp), np.random.default_rng(0).normal(size=al.zoo.maze(size=10, seed=2).num_states)
    for root in roots_along(sim, 4, 5):
        arguments = (sim, root, values_by_number(values), FixedDepth(4))
        full = search(*arguments, discount=DISCOUNT)
        wide = search(*arguments, discount=DISCOUNT, width=10_000)
        narrow = search(*arguments, discount=DISCOUNT, width=3)
        np.testing.assert_allclose(full.action_values, wide.action_values)
        assert narrow.nodes <= 4 + 3 * 3 * 4
        assert narrow.depth == 4


def test_budgets_bind():
    sim = MinAtarSimulator("Asterix")
    (root,) = roots_along(sim, 1, 9)
    for samples in (Sampling(4, 4), Sampling(4, 400)):
        result = search(
            sim, root, hashed_values, FixedDepth(6), discount=0.9, samples=samples, budget=Budget(nodes=500)
        )
        assert result.status is SearchStatus.NODE_LIMIT
        assert result.nodes <= 500
    result = search(sim, root, hashed_values, FixedDepth(30), discount=0.9, budget=Budget(seconds=0.1), samples=4)
    assert result.status is SearchStatus.TIME_LIMIT
    assert 1 <= result.depth < 30


def test_one_seed_gives_one_answer_and_another_another():
    sim = MinAtarSimulator("Seaquest", sticky=0.5)
    (root,) = roots_along(sim, 1, 20)
    answers = [
        search(sim, root, hashed_values, FixedDepth(2), discount=0.9, samples=2, seed=seed) for seed in (0, 0, 1, 2, 3)
    ]
    assert_same(answers[0], answers[1])
    assert len({tuple(answer.action_values) for answer in answers}) > 1


@pytest.mark.parametrize("samples", [0, -1, 1.5, "two"])
def test_wrong_numbers_of_samples_are_refused(samples):
    sim = MinAtarSimulator("Asterix")
    with pytest.raises(ArgumentError, match="samples"):
        search(sim, Root.of(sim), hashed_values, FixedDepth(1), discount=0.9, samples=samples)


def test_exact_values_at_the_leaves_play_frozen_lake_as_well_as_the_optimal_policy():
    """What a tree that follows one drawn future gets wrong: 5 % success where the optimal policy has 74 %."""
    env = gymnasium.make("FrozenLake-v1")
    values = al.solve(al.MDP.from_gymnasium(env, discount=0.99)).values
    sim, arrived, episodes = al.make_simulator(env), 0, 100
    for episode in range(episodes):
        sim.reset(seed=episode)
        over = False
        while not over:
            result = search(sim, Root.of(sim), values_by_number(values), FixedDepth(1), discount=0.99, seed=episode)
            step = sim.step(result.action)
            arrived, over = arrived + int(step.reward), step.episode_over
    assert arrived / episodes > 0.6
