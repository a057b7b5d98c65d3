"""A search leaves the live env unchanged: what follows is bit-equal to a clone that never searched."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.search import FixedDepth, Root, WorkerPool, search
from adalook.simulators.make import make_simulator
from tests.search.reference import hashed_values

ENVS = {
    "maze": lambda: make_simulator(al.zoo.maze(size=12, seed=0)),
    "garnet": lambda: make_simulator(al.zoo.garnet(20, 3, 3, seed=0)),
    "Breakout": lambda: make_simulator("MinAtar/Breakout-v1"),
    "Seaquest": lambda: make_simulator("MinAtar/Seaquest-v1", sticky=0.1),
    "Atari": lambda: make_simulator("ALE/Pong-v5"),
    "Atari, a start of few lives": lambda: make_simulator("ALE/Breakout-v5", life_loss_ends=True),
    "CartPole": lambda: make_simulator("CartPole-v1"),
    "FrozenLake": lambda: make_simulator("FrozenLake-v1"),
}


def play(sim, rng, steps):
    """Take random steps; returns everything that they show."""
    seen = []
    for _ in range(steps):
        transition = sim.step(int(rng.integers(sim.num_actions)))
        seen.append(
            (transition.observation.tobytes(), transition.reward, transition.terminated, transition.episode_over)
        )
        if transition.episode_over:
            seen.append(sim.reset().tobytes())
    return seen


@pytest.mark.parametrize("env", ENVS)
def test_fifty_searches_change_nothing(env):
    sim, clone = ENVS[env](), ENVS[env]()
    np.testing.assert_array_equal(sim.reset(seed=5), clone.reset(seed=5))
    rng, other_rng = np.random.default_rng(0), np.random.default_rng(0)
    depth = 1 if env.startswith("Atari") else 2
    for i in range(50):
        assert play(sim, rng, 3) == play(clone, other_rng, 3)
        search(sim, Root.of(sim), hashed_values, FixedDepth(depth), discount=0.99, seed=i)
    assert play(sim, rng, 200) == play(clone, other_rng, 200)


def test_searches_by_workers_change_nothing():
    sim, clone = make_simulator("MinAtar/Asterix-v1"), make_simulator("MinAtar/Asterix-v1")
    rng, other_rng = np.random.default_rng(0), np.random.default_rng(0)
    sim.reset(seed=5), clone.reset(seed=5)
    with WorkerPool(sim, 2) as workers:
        for i in range(50):
            search(sim, Root.of(sim), hashed_values, FixedDepth(2), discount=0.99, seed=i, expander=workers)
            assert play(sim, rng, 3) == play(clone, other_rng, 3)
    assert play(sim, rng, 200) == play(clone, other_rng, 200)


class Dice(gymnasium.Env):
    """An env that throws a die of twenty sides with a generator of its own, which Gymnasium does not know."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 19, (1,), np.int64)

    def __init__(self):
        self.dice = np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.dice = np.random.default_rng(seed)
        return np.zeros(1, np.int64), {}

    def step(self, action):
        return self.dice.integers(20, size=1), 0.0, False, False, {}


@pytest.mark.parametrize("env", [lambda: al.zoo.garnet(200, 2, 20, seed=0), Dice], ids=["garnet", "gym"])
def test_the_tree_does_not_foresee_what_the_live_env_draws(env):
    """A tree draws its own randomness, so it predicts the live env's draw only as often as chance does."""
    sim = make_simulator(env())
    hits = 0
    for i in range(200):
        sim.reset(seed=i)
        foreseen = sim.expand([sim.reseed(sim.save(), seed=i)], [0]).observations[0, 0]
        hits += int(sim.step(0).observation[0] == foreseen)
    assert 0 < hits < 40
