"""The training loop: what a round stores, when it updates, how episodes are cut off."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.learning import training
from adalook.learning.acting import NO_ACTION
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.training import SWITCH_SECONDS, EnvPool, NStepReturns, annealed_epsilon, short_switch_interval
from adalook.simulators.base import Transition
from adalook.simulators.tabular import TabularSimulator
from tests.learning.small import BREAKOUT, fingerprint, small_config


def test_epsilon_falls_in_a_straight_line_and_stays() -> None:
    config = small_config(epsilon_start=1.0, epsilon_end=0.2, epsilon_anneal_steps=100)
    assert [round(annealed_epsilon(config, step), 6) for step in (0, 50, 100, 1000)] == [1.0, 0.6, 0.2, 0.2]


def test_a_truncated_episode_is_cut_off_but_not_ended() -> None:
    mdp = al.MDP(np.ones((2, 1)), np.array([[1], [0]]), 0.9)
    envs = EnvPool(TabularSimulator(mdp, start=0), 1, seed=0, max_episode_steps=3)
    seen = []
    for _ in range(6):
        (transition,), episodes = envs.step([0])
        seen.append((transition.terminated, transition.episode_over, [episode.steps for episode in episodes]))
    assert seen == [(False, False, []), (False, False, []), (False, True, [3])] * 2
    assert envs.observations.tolist() == [[0]]


def test_what_is_stored_is_what_was_decided() -> None:
    agent = QLDQN(BREAKOUT, small_config(train_shallow_heads=True, depth_shares=(1.0,)), seed=0)
    shown = agent.trainer.acting.state()["envs"]["observations"].copy()
    done = next(agent.rounds())
    replay = agent.trainer.replay
    ended_early = sum(len(decision.experiences) < 2 for decision in done.decisions)
    assert len(replay) == 2 * len(done.decisions) - ended_early
    assert agent.ranks.count(1) == len(done.decisions)  # once per state, not once per leaf
    drawn = replay.sample(np.random.default_rng(0), 64)
    assert all(any(np.array_equal(row, state) for state in shown) for row in drawn.observations)


def n_step(steps: list[tuple[float, bool, bool]], n: int, discount: float = 0.5) -> list[Any]:
    """(state, R, leaf, steps, terminated) of transitions made of (reward, terminated, episode_over) of each step."""
    returns = NStepReturns(1, n, discount)
    made = []
    for state, (reward, terminated, over) in enumerate(steps):
        transition = Transition(np.array([state + 1]), reward, reward, terminated, over)
        made += returns.add(0, np.array([state]), state % 3, transition)
    assert all(each.head == 0 and each.action == each.observation[0] % 3 for each in made)
    return [
        (int(each.observation[0]), each.return_to_leaf, int(each.leaf[0]), each.steps, each.terminated) for each in made
    ]


def test_one_step_is_the_transition_itself() -> None:
    steps = [(0.1, False, False), (0.7, True, False), (0.3, False, True)]
    assert n_step(steps, 1) == [(0, 0.1, 1, 1, False), (1, 0.7, 2, 1, True), (2, 0.3, 3, 1, False)]


def test_rewards_of_n_steps_are_discounted_up_to_the_leaf() -> None:
    steps = [(1.0, False, False), (2.0, False, False), (4.0, False, False), (8.0, False, False)]
    assert n_step(steps, 3) == [(0, 1.0 + 1.0 + 1.0, 3, 3, False), (1, 2.0 + 2.0 + 2.0, 4, 3, False)]


def test_termination_makes_shorter_ones_that_are_not_bootstrapped() -> None:
    steps = [(1.0, False, False), (2.0, True, True), (4.0, False, False)]
    assert n_step(steps, 3) == [(0, 2.0, 2, 2, True), (1, 2.0, 2, 1, True)]  # nothing reaches into the next episode


def test_a_lost_life_ends_them_though_the_episode_goes_on() -> None:
    steps = [(1.0, True, False), (2.0, False, False), (4.0, False, False)]
    assert n_step(steps, 2) == [(0, 1.0, 1, 1, True), (1, 4.0, 3, 2, False)]


def test_truncation_makes_shorter_ones_that_are_bootstrapped() -> None:
    steps = [(1.0, False, False), (2.0, False, True), (4.0, False, False)]
    assert n_step(steps, 3) == [(0, 2.0, 2, 2, False), (1, 2.0, 2, 1, False)]


def test_an_agent_of_n_steps_stores_them_and_resumes_to_the_bit(tmp_path: Path) -> None:
    config = small_config(n_steps=3, max_episode_steps=25, double=True)
    whole, parts = (DQN(BREAKOUT, config, seed=2) for _ in range(2))
    whole.learn(steps=200)
    parts.learn(steps=132).save(tmp_path / "run")  # 33 rounds: steps of each environment are pending
    again = DQN.load(tmp_path / "run")
    assert fingerprint(again.learn(steps=68)) == fingerprint(whole)
    drawn = whole.trainer.replay.sample(np.random.default_rng(0), 2_000)
    counts = np.bincount(drawn.steps, minlength=4) / len(drawn.steps)
    assert counts[0] == 0
    assert counts[3] > 0.5
    assert min(counts[1:3]) > 0.01  # episodes end, and are truncated
    assert set(drawn.heads.tolist()) == {0}


def test_random_actions_are_repeated_and_as_many_as_asked_for() -> None:
    config = small_config(exploration_repeat=0.8, epsilon_start=0.3, epsilon_end=0.3, num_envs=4)
    trainer = DQN(BREAKOUT, config, seed=0).trainer
    actions = np.array([trainer._draw(range(4), 0.3).random_actions for _ in range(5_000)])
    explores = actions != NO_ACTION
    assert abs(explores.mean() - 0.3) < 0.03
    again = (actions[1:] == actions[:-1])[explores[:-1]].mean()
    assert abs(again - 0.8) < 0.05  # and now and then by chance


def test_an_agent_that_repeats_random_actions_resumes_to_the_bit(tmp_path: Path) -> None:
    config = small_config(exploration_repeat=0.9, epsilon_start=0.5, epsilon_end=0.5)
    whole, parts = (QLDQN(BREAKOUT, config, seed=2) for _ in range(2))
    whole.learn(steps=120)
    parts.learn(steps=72).save(tmp_path / "run")
    assert fingerprint(QLDQN.load(tmp_path / "run").learn(steps=48)) == fingerprint(whole)


def test_updates_begin_after_the_start_and_targets_are_copied_on_time() -> None:
    agent = DQN(BREAKOUT, small_config(num_envs=1, learning_starts_steps=20, target_period_steps=25), seed=0)
    rounds, learner = agent.rounds(), agent.trainer.learner
    first = learner.target.weights()["trunk.conv.weight"].copy()
    for step in range(1, 26):
        assert len(next(rounds).updates) == (step > 20)
        copied = not np.array_equal(learner.target.weights()["trunk.conv.weight"], first)
        assert copied == (step == 25)


def test_the_network_begins_anew_on_time(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = DQN(BREAKOUT, small_config(reset_period_steps=150, target_period_steps=60), depth=0, seed=7)
    learner, resets = agent.trainer.learner, []
    monkeypatch.setattr(learner, "reset", lambda seed, step: resets.append((seed, step)))
    updates = sum(len(each.updates) for each, _ in zip(agent.rounds(), range(113), strict=False))
    assert resets == [(7, 150), (7, 300), (7, 450)]
    assert updates == 113 * 4 - 100, "no update is lost to them"


def test_threads_take_short_turns_while_acting_and_learning_overlap() -> None:
    before = sys.getswitchinterval()
    first, second = short_switch_interval(), short_switch_interval()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # not in the order of a stack: two agents in two threads
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(before)
    DQN(BREAKOUT, small_config(overlap=True), seed=0).learn(steps=8)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_starting_what_acts_is_no_time_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(training.time, "perf_counter", lambda: clock[0])
    agent = al.DQN(BREAKOUT, small_config(), seed=0)

    def start() -> None:
        clock[0] += 100.0

    monkeypatch.setattr(agent.trainer.acting, "start", start)
    assert next(agent.rounds()).seconds == 0.0
