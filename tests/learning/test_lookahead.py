"""Lookahead for agents that exist already: any model, any environment, budgets, and the leaf correction."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import adalook as al
from adalook.errors import ArgumentError
from adalook.learning.lookahead import ErrorSpread, Lookahead, value_function
from adalook.simulators.tabular import TabularSimulator


def pole_angle(observations):
    return -np.abs(observations[:, 2])


def optimal_q(mdp):
    values = al.solve(mdp).values
    rows = [[mdp.transition_row(s, a) for a in range(mdp.num_actions)] for s in range(mdp.num_states)]
    return mdp.rewards + mdp.discount * np.array([[p @ values[ahead] for ahead, p in row] for row in rows])


def played(agent, env, episodes=3, steps=60):
    """Return the scores of an agent that is asked as one of Stable-Baselines3 is."""
    scores = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=episode)
        score = 0.0
        for _ in range(steps):
            action, state = agent.predict(observation, deterministic=True)
            assert state is None
            observation, reward, terminated, truncated, _ = env.step(int(action))
            score += float(reward)
            if terminated or truncated:
                break
        scores.append(score)
    return scores


def test_a_value_function_plays_cart_pole_and_the_env_is_left_alone():
    env = gymnasium.make("CartPole-v1")
    agent = Lookahead(pole_angle, env, depth=4, correction=False)
    observation, _ = env.reset(seed=0)
    before = (np.array(env.unwrapped.state), env.unwrapped.np_random.bit_generator.state)
    agent.predict(observation)
    np.testing.assert_array_equal(before[0], env.unwrapped.state)
    assert before[1] == env.unwrapped.np_random.bit_generator.state
    assert played(agent, env) == [60.0] * 3


def test_a_batch_of_one_gives_a_batch_of_one():
    env = gymnasium.make("CartPole-v1")
    agent = Lookahead(pole_angle, env, depth=2)
    observation, _ = env.reset(seed=0)
    action, _ = agent.predict(observation[None])
    assert action.shape == (1,)


def test_a_torch_module_is_asked_in_evaluation_mode():
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    network.train()
    function = value_function(network, al.make_simulator("CartPole-v1"))
    observations = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    np.testing.assert_array_equal(function(observations), function(observations))
    assert function(observations).shape == (5, 2)
    assert network.training


def test_an_agent_of_ours_is_improved_upon():
    agent = al.DQN(al.zoo.chain(n=6, discount=0.9))
    lookahead = Lookahead(agent, TabularSimulator(al.zoo.chain(n=6, discount=0.9), start=0), depth=8, correction=False)
    evaluation = lookahead.evaluate(episodes=2, max_episode_steps=8)
    assert set(evaluation.depths) <= set(range(1, 9))


@pytest.mark.parametrize("kind", ["DQN", "PPO"])
def test_models_of_stable_baselines(kind):
    library = pytest.importorskip("stable_baselines3")
    env = gymnasium.make("CartPole-v1")
    model = getattr(library, kind)("MlpPolicy", env, seed=0, device="cpu")
    agent = Lookahead(model, env, nodes=14)
    assert agent.discount == model.gamma
    observations = np.stack([env.reset(seed=seed)[0] for seed in range(3)])
    values = value_function(model, agent.sim)(observations)
    tensor, _ = model.policy.obs_to_tensor(observations)
    with torch.no_grad():
        expected = (model.q_net(tensor) if kind == "DQN" else model.policy.predict_values(tensor)[:, 0]).numpy()
    np.testing.assert_allclose(values, expected)
    assert len(played(agent, env, episodes=2)) == 2


def test_noisy_values_play_better_with_lookahead():
    mdp = al.zoo.maze(size=10, seed=1, discount=0.95)
    exact = optimal_q(mdp)
    noisy = exact + np.random.default_rng(0).normal(scale=0.2, size=exact.shape)

    def q(observations):
        return noisy[observations[:, 0]]

    sim = TabularSimulator(mdp, max_episode_steps=60)
    deep = Lookahead(q, sim, shape="tree", depth=5, adaptive=False, discount=0.95, correction=False)
    alone = np.mean([_alone(q, sim, seed) for seed in range(12)])
    assert deep.evaluate(episodes=12, num_envs=12).mean > alone


def _alone(q, sim, seed):
    observation, score, over = sim.reset(seed=seed), 0.0, False
    while not over:
        step = sim.step(int(q(observation[None])[0].argmax()))
        observation, score, over = step.observation, score + step.reward, step.episode_over
    return score


def test_exact_values_need_no_correction_and_noise_is_measured():
    mdp = al.zoo.maze(size=8, seed=1, discount=0.95)
    exact = optimal_q(mdp)
    sim = TabularSimulator(mdp)

    def q(observations, scale):
        noise = np.random.default_rng(5).normal(scale=scale, size=exact.shape)
        return (exact + noise)[observations[:, 0]]

    spreads = [
        Lookahead(lambda rows, scale=scale: q(rows, scale), sim, shape="tree", depth=1, discount=0.95).spread
        for scale in (0.0, 0.1, 1.0)
    ]
    assert spreads[0].others < spreads[1].others < spreads[2].others


def test_the_correction_keeps_the_agents_own_action_unless_another_leads_by_more():
    rewards = np.array([[0.0, 1.0], [0.0, 0.0]])
    sim = TabularSimulator(al.MDP(rewards, [[1, 1], [1, 1]], 0.9), start=0)
    sim.reset(seed=0)

    def prefers_the_first(observations):
        return np.tile([0.5, 0.0], (len(observations), 1))

    def choice(spread):
        return Lookahead(prefers_the_first, sim, depth=1, discount=0.9, correction=spread).search(sim).action

    assert choice(ErrorSpread(0.0, 0.0)) == 1  # the tree sees that the second pays 1
    assert choice(ErrorSpread(0.1, 0.1)) == 1
    assert choice(ErrorSpread(5.0, 5.0)) == 0  # a lead of 1 is nothing among errors of 5


def test_penalties_grow_with_errors_and_vanish_without():
    assert ErrorSpread(0.0, 0.0).penalty(3, 0.99, 4) == 0.0
    assert ErrorSpread(0.1, 0.2).penalty(2, 0.99, 4) < ErrorSpread(0.1, 0.4).penalty(2, 0.99, 4)
    assert ErrorSpread(5.0, 0.1).penalty(4, 0.99, 4) == 0.0  # never a bonus


def test_budgets_and_clear_choices_limit_the_tree():
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    sim = al.make_simulator("CartPole-v1")
    sim.reset(seed=0)
    for nodes in (2, 30, 100):
        agent = Lookahead(pole_angle, sim, nodes=nodes, adaptive=False)
        assert agent.search(sim).nodes <= nodes
    clear = Lookahead(pole_angle, sim, depth=6, correction=ErrorSpread(0.0, 0.0))
    assert clear.search(sim).depth == 1  # values without errors: one level is enough


def test_stochastic_environments_are_searched_under_chance():
    env = gymnasium.make("FrozenLake-v1")
    values = al.solve(al.MDP.from_gymnasium(env, discount=0.99)).values
    agent = Lookahead(lambda rows: values[rows[:, 0]], env, depth=1, correction=False)
    env.reset(seed=0)
    agent.predict(0)
    assert np.isclose(agent.search(agent.sim).value, values[0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (3, "no model"),
        (lambda rows: np.zeros((len(rows), 7)), "does not value observations"),
        (lambda rows: np.zeros(len(rows) + 1), "does not value observations"),
    ],
)
def test_models_that_value_nothing_are_refused(model, message):
    with pytest.raises(ArgumentError, match=message):
        Lookahead(model, "CartPole-v1", depth=1).evaluate(episodes=1)


def test_an_observation_without_its_environment_is_refused():
    agent = Lookahead(pole_angle, "CartPole-v1", depth=1)
    with pytest.raises(ArgumentError, match=r"al\.Lookahead\(model, env\)"):
        agent.predict(np.zeros(4, np.float32))
