"""Agents as a whole: what they learn on models that `al.solve` solves, and what they have in common."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.learning.agents.base import Agent
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.config import Config
from adalook.learning.presets import config_for
from adalook.simulators.tabular import TabularSimulator
from tests.learning.small import BREAKOUT, count_of, fingerprint, sample_of, small_config


def corridor() -> al.MDP:
    """Ten states in a ring, with a small reward nearby and a large one far away: deterministic, every action counts."""
    states = np.arange(10)
    successors = np.stack([(states + 1) % 10, (states - 1) % 10, states], axis=1)
    rewards = np.zeros((10, 3))
    rewards[2, 1], rewards[6, 0], rewards[0, 2] = 0.4, 1.0, 0.1
    return al.MDP(rewards, successors, 0.7)


def optimal_action_values(mdp: al.MDP) -> Any:
    """Q* (S, A) of a deterministic model."""
    values = al.solve(mdp).values
    return np.array(
        [
            [mdp.rewards[s, a] + mdp.discount * values[mdp.codes[s, a]] for a in range(mdp.num_actions)]
            for s in range(mdp.num_states)
        ]
    )


AGENTS: dict[str, Any] = {
    "dqn 0": lambda env, config: DQN(env, config, depth=0),
    "dqn 1": lambda env, config: DQN(env, config, depth=1),
    "dqn 2": lambda env, config: DQN(env, config, depth=2),
    "dqn 3": lambda env, config: DQN(env, config, depth=3),
    "qldqn": lambda env, config: QLDQN(env, config),
    "qldqn, few nodes": lambda env, config: QLDQN(env, dataclasses.replace(config, nodes_per_step=8.0)),
    "qldqn, one head": lambda env, config: QLDQN(env, of_the_paper(config, shared_head=True, **LASTING_DISTANCES)),
    "qldqn, every action": lambda env, config: QLDQN(
        env, of_the_paper(config, shared_head=True, learn_every_action=True, **LASTING_DISTANCES)
    ),
    "qldqn, rollouts": lambda env, config: QLDQN(env, dataclasses.replace(config, **ROLLOUTS)),
    "qldqn, every level": lambda env, config: QLDQN(
        env, of_the_paper(config, depth_shares=(1.0, 1.0), train_shallow_heads=True, buffer_transitions=3_000)
    ),
    "qldqn, shallow heads": lambda env, config: QLDQN(
        env, of_the_paper(config, train_shallow_heads=True, buffer_transitions=3_000, **LASTING_DISTANCES)
    ),
}
ROLLOUTS: dict[str, Any] = {
    "search_shape": "rollouts",
    "stage_nodes": 6,
    "rollout_steps": 4,
    "nodes_per_step": 10.0,
    "deepest_tree": 3,
    "learn_real_steps": True,
}
LASTING_DISTANCES: dict[str, Any] = {"depth_shares": (0.7, 0.7), "prior": "train", "prior_steps": 80}
"""A poor prior: by a good one, or by the search's own, all distances are soon about zero, and no state is deep."""


def of_the_paper(config: Config, **changes: Any) -> Config:
    """Shares as they are given, a head for each depth, and learning from the action taken alone."""
    paper = {"nodes_per_step": 0.0, "shared_head": False, "learn_every_action": False}
    return dataclasses.replace(config, **(paper | changes))


def fair_config(mdp: al.MDP) -> Config:
    """Every action is tried everywhere, and leaves that were best long ago are forgotten."""
    return dataclasses.replace(config_for(mdp), epsilon_end=1.0, max_episode_steps=10, buffer_transitions=1_000)


IN_EVERY_RUN = ("dqn 0", "dqn 2", "qldqn", "qldqn, rollouts")
"""Agents that are tried whenever tests run; the others only with the slow tests."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.slow) for name in AGENTS]
)
def test_heads_approach_the_optimal_values_of_a_deterministic_model(name: str) -> None:
    mdp = corridor()
    agent: Agent = AGENTS[name](mdp, fair_config(mdp))
    agent.learn(steps=3_000)
    best = optimal_action_values(mdp)
    states = np.arange(10, dtype=np.int32)[:, None]
    everywhere = agent.kind == "dqn" or agent.config.shared_head or name == "qldqn, every level"
    for depth in agent.heads:
        trained = _trained_states(agent, depth)
        assert trained.sum() >= (10 if everywhere else 5), f"head {depth} was not tried on enough states"
        values = agent.q_function.action_values(states[trained], depth)
        if name == "qldqn, shallow heads":  # an entry that is rarely tried remembers a leaf that was best long ago
            assert (np.abs(values - best[trained]) > 0.05).mean() <= 0.05, f"head {depth}"
        else:
            np.testing.assert_allclose(values, best[trained], atol=0.05, err_msg=f"head {depth}")
    if agent.kind == "qldqn" and name != "qldqn, rollouts":  # whose stages all teach one head
        counts = [count_of(agent.trainer.replay, head) for head in agent.heads]
        assert sum(count >= 100 for count in counts) >= 2, f"one depth taught it all: {counts} transitions by depth"
    actions = [agent.predict(_at(mdp, state), deterministic=True)[0] for state in range(10)]
    chosen = best[np.arange(10), actions]
    np.testing.assert_allclose(chosen, best.max(axis=1), atol=1e-6)


def test_heads_of_the_paper_agree_with_their_own_targets() -> None:
    """Each head sees only the states that search chose for it, and bootstraps where its leaves lie, seen or not.

    What it makes of the others is anyone's guess, so its fixed point need not be Q*: Q_h(s, a) = R + γ^h max Q_h(leaf).
    """
    mdp = corridor()
    agent = QLDQN(mdp, of_the_paper(fair_config(mdp), buffer_transitions=3_000, **LASTING_DISTANCES))
    agent.learn(steps=3_000)
    states = np.arange(10, dtype=np.int32)[:, None]
    for depth in agent.heads:
        seen = _trained_states(agent, depth)
        assert seen.sum() >= 2, f"head {depth} was not tried on enough states"
        values = agent.q_function.action_values(states, depth)
        drawn = sample_of(agent.trainer.replay, depth)
        targets = drawn.returns + mdp.discount**depth * values[drawn.leaves[:, 0]].max(axis=1)
        pairs = 3 * drawn.observations[:, 0] + drawn.actions
        means = np.bincount(pairs, targets, minlength=30) / np.maximum(np.bincount(pairs, minlength=30), 1)
        np.testing.assert_allclose(values[seen], means.reshape(10, 3)[seen], atol=0.1, err_msg=f"head {depth}")


def _trained_states(agent: Agent, depth: int) -> Any:
    """(10,) whether the buffer has every action in a state, at least ten times, for a head."""
    replay = agent.trainer.replay
    head = None if agent.config.shared_head else depth
    count = count_of(replay, head)
    if not count:
        return np.zeros(10, bool)
    drawn = sample_of(replay, head)
    seen = np.bincount(3 * drawn.observations[:, 0] + drawn.actions, minlength=30)
    return seen.reshape(10, 3).min(axis=1) * count >= 10 * len(drawn.actions)


def _at(mdp: al.MDP, state: int) -> TabularSimulator:
    """An env in some state."""
    env = TabularSimulator(mdp, start=state)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize(("shares", "depth"), [((), 1), ((0.0, 0.0), 1), ((1.0, 0.0), 2), ((1.0, 1.0), 3)])
def test_all_weight_on_one_depth_is_the_fixed_depth_agent_to_the_bit(shares: tuple[float, ...], depth: int) -> None:
    adaptive = QLDQN(BREAKOUT, small_config(depth_shares=shares), seed=5)
    fixed = DQN(BREAKOUT, small_config(depth_shares=shares), depth=depth, seed=5)
    rounds = zip(adaptive.rounds(), fixed.rounds(), strict=False)
    for _ in range(120):
        mine, other = next(rounds)
        assert [decision.action for decision in mine.decisions] == [decision.action for decision in other.decisions]
        assert {decision.depth for decision in mine.decisions} == {depth}
        assert mine.updates == other.updates
        assert mine.episodes == other.episodes
    weights, expected = adaptive.network.weights(), fixed.network.weights()
    assert mine.updates
    for name, weight in expected.items():
        assert np.array_equal(weights[name], weight), name


@pytest.mark.parametrize("kind", ["dqn 0", "dqn 2", "qldqn"])
def test_same_seed_same_run_and_another_seed_another(kind: str) -> None:
    def run(seed: int) -> Any:
        config = small_config()
        agent: Agent = QLDQN(BREAKOUT, config, seed=seed)
        if kind != "qldqn":
            agent = DQN(BREAKOUT, config, depth=int(kind[-1]), seed=seed)
        return fingerprint(agent.learn(steps=240))

    first = run(1)
    assert first == run(1)
    assert first != run(2)


@pytest.mark.parametrize("depth", [0, 2])
def test_a_second_core_changes_nothing(depth: int) -> None:
    one, two = (
        DQN(BREAKOUT, small_config(overlap=overlap, target_period_steps=6), depth=depth, seed=4)
        for overlap in (False, True)
    )
    assert fingerprint(one.learn(steps=300)) == fingerprint(two.learn(steps=300))


def test_a_second_core_changes_nothing_on_atari() -> None:
    pong = "ALE/Pong-v5"
    one, two = (
        DQN(pong, small_config(pong, overlap=overlap, target_period_steps=20, learning_starts_steps=40), seed=4)
        for overlap in (False, True)
    )
    assert fingerprint(one.learn(steps=120)) == fingerprint(two.learn(steps=120))


def test_the_number_of_processes_that_step_nodes_changes_nothing() -> None:
    changes = {"nodes_per_step": 20.0, "shared_head": True}
    engines = [None, *(al.LocalProcesses(actors, split="nodes") for actors in (1, 2))]
    agents = [QLDQN(BREAKOUT, small_config(**changes), seed=6, engine=engine) for engine in engines]
    alone, *others = [fingerprint(agent.learn(steps=160)) for agent in agents]
    assert others == [alone, alone]


@pytest.mark.parametrize("nodes", [8.0, 30.0])
def test_shares_follow_the_cost_of_searches(nodes: float) -> None:
    agent = QLDQN(BREAKOUT, small_config(nodes_per_step=nodes, shared_head=True), seed=0)
    spent = []
    with contextlib.closing(agent.rounds()) as rounds:
        for _ in range(600):
            spent += [decision.nodes for decision in next(rounds).decisions]
    assert np.mean(spent[-1_200:]) == pytest.approx(nodes, rel=0.1)
    played = []
    for last in (0.0, 1.0):  # what θ was last does not matter to who plays
        agent.shares.share = last  # type: ignore[attr-defined]
        played.append(agent.evaluate(episodes=10))
    assert played[0].nodes == played[1].nodes
    assert played[0].nodes / played[0].decisions == pytest.approx(nodes, rel=0.5)


def test_more_envs_than_one_take_turns_in_one_round() -> None:
    agent = DQN(BREAKOUT, small_config(num_envs=3, update_period_steps=2, learning_starts_steps=12), seed=0)
    rounds = agent.rounds()
    updates = [len(next(rounds).updates) for _ in range(10)]
    assert agent.step == 30
    assert sum(updates) == 9  # at steps 14, 16, …, 30


def test_learn_needs_an_end_and_stops_at_it() -> None:
    agent = DQN(BREAKOUT, small_config(num_envs=4))
    with pytest.raises(ArgumentError, match="needs an end"):
        agent.learn()
    assert agent.learn(steps=10).step == 12
    before = agent.trainer.seconds
    agent.learn(seconds=0.3)
    assert agent.trainer.seconds >= before + 0.3


def test_predict_takes_batches_and_channels_in_either_place() -> None:
    agent = QLDQN(BREAKOUT, small_config(), seed=2)
    rng = np.random.default_rng(0)
    batch = rng.random((5, *agent.sim.observation_shape)) < 0.2
    actions, _ = agent.predict(batch, deterministic=True)
    assert actions.shape == (5,)
    one, _ = agent.predict(batch[3], deterministic=True)
    last, _ = agent.predict(np.moveaxis(batch[3], 0, -1), deterministic=True)
    assert one == last == actions[3]
    with pytest.raises(ArgumentError, match="does not fit"):
        agent.predict(np.zeros((2, 3)))


def test_predict_on_a_simulator_searches_and_leaves_it_alone() -> None:
    agent = DQN(BREAKOUT, small_config(), depth=2, seed=2)
    env = agent.sim.clone()
    env.reset(seed=1)
    before = env.pack(env.save())
    action, _ = agent.predict(env, deterministic=True)
    assert 0 <= action < env.num_actions
    assert env.pack(env.save()) == before


def test_random_predictions_come_as_often_as_the_config_says() -> None:
    agent = DQN(BREAKOUT, small_config(evaluation_epsilon=0.5), seed=2)
    still = np.zeros((4000, *agent.sim.observation_shape), bool)
    best, _ = agent.predict(still[0], deterministic=True)
    actions, _ = agent.predict(still)
    share = np.mean(actions != best)
    assert abs(share - 0.5 * (1 - 1 / agent.sim.num_actions)) < 0.03


def test_save_and_load_keep_everything(tmp_path: Any) -> None:
    agent = QLDQN(BREAKOUT, small_config(), seed=7)
    agent.learn(steps=200)
    agent.save(tmp_path / "run")
    again = QLDQN.load(tmp_path / "run")
    assert fingerprint(again) == fingerprint(agent)
    with pytest.raises(ArgumentError, match="another agent"):
        DQN.load(tmp_path / "run")
    with pytest.raises(FileError, match="another agent"):
        QLDQN(BREAKOUT, small_config(), seed=8).save(tmp_path / "run")
    assert fingerprint(QLDQN.load(tmp_path / "run")) == fingerprint(agent)


def test_an_env_without_a_name_must_be_given_again(tmp_path: Any) -> None:
    mdp = corridor()
    agent = DQN(mdp, depth=1)
    agent.learn(steps=80)
    agent.save(tmp_path / "run")
    with pytest.raises(ArgumentError, match="no name"):
        DQN.load(tmp_path / "run")
    assert fingerprint(DQN.load(tmp_path / "run", env=mdp)) == fingerprint(agent)


def test_a_run_can_be_the_prior_of_another(tmp_path: Any) -> None:
    prior = DQN(BREAKOUT, small_config(hidden_units=8), seed=9)
    prior.learn(steps=160)
    prior.save(tmp_path / "prior")
    agent = QLDQN(BREAKOUT, small_config(), prior=str(tmp_path / "prior"), seed=1)
    done = next(agent.rounds())
    assert done.phase == "agent"
    envs = agent.trainer.acting.pool
    assert agent.prior_agent is not None
    assert np.array_equal(
        agent.prior_agent.q_function.values(envs.observations, 0), prior.q_function.values(envs.observations, 0)
    )
    agent.save(tmp_path / "wrong")
    wrong = QLDQN(BREAKOUT, small_config(), prior=str(tmp_path / "wrong"))
    with pytest.raises(ArgumentError, match="expected agent dqn, got qldqn"):
        next(wrong.rounds())


@pytest.mark.parametrize("depth", [-1, 1.5, True])
def test_a_depth_that_is_none_is_refused(depth: Any) -> None:
    with pytest.raises(ArgumentError, match="depth is wrong"):
        DQN(BREAKOUT, small_config(), depth=depth)


@pytest.mark.parametrize("make", [QLDQN, lambda env, config: DQN(env, config, depth=2)])
def test_n_steps_are_refused_by_agents_with_a_tree(make: Any) -> None:
    with pytest.raises(ArgumentError, match="n_steps has no effect on an agent with a tree"):
        make(BREAKOUT, small_config(n_steps=3))


@pytest.mark.parametrize("kind", [DQN, QLDQN])
def test_a_config_is_no_dict(kind: Any) -> None:
    with pytest.raises(ArgumentError, match=r"Pass settings by name"):
        kind(BREAKOUT, {"num_envs": 2})


def test_actions_are_counted_as_the_environment_counts_them() -> None:
    """A Discrete space may begin at 1; a loop of one's own steps the environment, not the simulator."""

    class Rooms(gymnasium.Env):  # type: ignore[type-arg]
        observation_space = gymnasium.spaces.Discrete(5)
        action_space = gymnasium.spaces.Discrete(2, start=1)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.room = 2
            return self.room, {}

        def step(self, action: Any) -> Any:
            self.room += {1: -1, 2: 1}[int(action)]
            return self.room, float(self.room == 4), self.room in (0, 4), False, {}

    env = Rooms()
    agent = al.DQN(env, seed=0, learning_starts_steps=50).learn(600, progress=False)
    better = al.Lookahead(agent, env, nodes=8, correction=0.0)
    for player in (agent, better):
        observation, _ = env.reset(seed=0)
        over, score = False, 0.0
        while not over:
            action, _ = player.predict(observation, deterministic=True)
            assert env.action_space.contains(np.int64(action))
            observation, score, over, _, _ = env.step(action)
        assert score == 1.0
    assert set(agent.predict(np.array([[1], [2], [3]]))[0].tolist()) <= {1, 2}


@pytest.mark.parametrize(
    ("env", "control", "one_level"),
    [
        ("MinAtar/Seaquest-v1", "auto", True),  # draws futures
        ("MinAtar/Seaquest-v1", "one_share", False),
        ("MinAtar/Breakout-v1", "auto", False),  # leaves nothing to chance
        ("MinAtar/Breakout-v1", "one_level", True),
        ("FrozenLake-v1", "auto", False),  # lists its outcomes: trees take expectations
    ],
)
def test_trees_differ_by_at_most_one_level_where_futures_are_drawn(env: str, control: str, one_level: bool) -> None:
    shares = QLDQN(env, depth_control=control, deepest_tree=3).shares
    assert dict(shares) == ({2: 0.5, 3: 0.0} if one_level else {2: 0.5, 3: 0.5})
