"""Fifty rounds of looking ahead leave the live env as it was."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.base import Simulator
from tests.simulators.cases import SIMULATORS, make


def look_ahead(sim: Simulator, rounds: int) -> None:
    actions = list(range(sim.num_actions))
    for seed in range(rounds):
        root = sim.save() if seed % 2 else sim.reseed(sim.save(), seed)
        children = sim.expand([root] * len(actions), actions)
        alive = [
            child for child, terminated in zip(children.states, children.terminated, strict=True) if not terminated
        ][:1]
        sim.expand(alive, actions[: len(alive)])


def next_steps(sim: Simulator, actions: list[int]) -> list[tuple[bytes, float, float, bool, bool]]:
    seen = []
    for action in actions:
        t = sim.step(action)
        seen.append((t.observation.tobytes(), t.reward, t.raw_reward, t.terminated, t.episode_over))
        if t.episode_over:
            seen.append((sim.reset().tobytes(), 0.0, 0.0, False, False))
    return seen


@pytest.mark.parametrize("name", SIMULATORS)
def test_next_200_steps_are_those_of_a_clone_that_never_looked_ahead(name: str) -> None:
    sim, clone = make(name), make(name)
    rng = np.random.default_rng(4)
    warm_up, after = ([int(a) for a in rng.integers(sim.num_actions, size=n)] for n in (25, 200))
    for env in (sim, clone):
        env.reset(seed=9)
        next_steps(env, warm_up)
    look_ahead(sim, rounds=50)
    assert next_steps(sim, after) == next_steps(clone, after)
    assert sim.pack(sim.save()) == clone.pack(clone.save())


def test_a_simulator_begins_in_the_current_state_of_the_environment_it_is_made_from():
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=3)
    for action in (0, 1, 1, 0):
        observation = env.step(action)[0]
    sim = al.make_simulator(env, observation=observation)
    np.testing.assert_array_equal(sim.observe(), observation)
    for action in (1, 0, 1):
        np.testing.assert_array_equal(sim.step(action).observation, env.step(action)[0])


def test_the_time_limit_goes_on_counting():
    env = gymnasium.make("CartPole-v1", max_episode_steps=6)
    env.reset(seed=3)
    for action in (0, 1, 1, 0):
        observation = env.step(action)[0]
    sim = al.make_simulator(env, observation=observation)
    assert [sim.step(action).episode_over for action in (1, 0)] == [False, True]


def test_a_simulator_follows_an_environment_that_is_stepped_elsewhere():
    env = gymnasium.make("FrozenLake-v1")
    sim = al.make_simulator(env)
    observation, _ = env.reset(seed=0)
    for _ in range(5):
        sim.load_env(env, observation)
        ahead = sim.step(2)
        before = env.unwrapped.np_random.bit_generator.state
        observation, _, terminated, *_ = env.step(2)
        assert (ahead.observation.tolist(), ahead.terminated) == ([observation], terminated)
        assert env.unwrapped.np_random.bit_generator.state != before
        if terminated:
            observation, _ = env.reset()


def test_a_simulator_without_a_state_says_so():
    for sim in (al.make_simulator("CartPole-v1"), al.make_simulator(gymnasium.make("CartPole-v1"))):
        for use in (sim.observe, sim.save, lambda sim=sim: sim.step(0)):
            with pytest.raises(SimulatorError, match="Reset first"):
                use()
        sim.reset(seed=0)
        sim.step(0)


def test_a_simulator_without_the_observation_asks_for_it():
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    with pytest.raises(SimulatorError, match="observation=obs"):
        al.make_simulator(env).observe()


def test_another_environment_is_refused():
    sim = al.make_simulator("CartPole-v1")
    env = gymnasium.make("MountainCar-v0")
    observation, _ = env.reset(seed=0)
    with pytest.raises(ArgumentError, match="Make the simulator from this environment"):
        sim.load_env(env, observation)
