"""Chance is declared, detected and checked: who is stochastic, who lists outcomes, and whether both are true."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.errors import SimulatorError
from adalook.simulators.minatar import GAMES, MinAtarSimulator
from adalook.simulators.tabular import TabularSimulator
from tests.search.sims import Graph


class Slippery(gymnasium.Env):
    """A walk on ten cells that slips now and then; `rarely`: only after 60 steps."""

    observation_space = gymnasium.spaces.Discrete(10)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, rarely=False):
        self.rarely, self.cell, self.steps = rarely, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = 5, 0
        return self.cell, {}

    def step(self, action):
        self.steps += 1
        if not self.rarely or self.steps > 60:
            action = action if self.np_random.random() < 0.7 else 1 - action
        self.cell = int(np.clip(self.cell + 2 * action - 1, 0, 9))
        return self.cell, float(self.cell == 9), False, False, {}


@pytest.mark.parametrize(
    ("env", "stochastic", "lists"),
    [
        ("CartPole-v1", False, False),
        ("FrozenLake-v1", True, True),
        ("CliffWalking-v1", False, True),
        ("CliffWalkingSlippery-v1", True, True),
        ("Blackjack-v1", True, False),
    ],
)
def test_gymnasium_environments_are_found_out(env, stochastic, lists):
    sim = al.make_simulator(env)
    assert (sim.stochastic, sim.lists_outcomes) == (stochastic, lists)


def test_a_wrapped_table_is_not_taken_at_its_word():
    class Doubled(gymnasium.RewardWrapper):
        def reward(self, reward):
            return 2.0 * reward

    sim = al.make_simulator(Doubled(gymnasium.make("FrozenLake-v1")))
    assert sim.stochastic
    assert not sim.lists_outcomes


def test_environments_of_ones_own_are_found_out_or_declared():
    assert al.make_simulator(Slippery()).stochastic
    assert not al.make_simulator(Slippery(rarely=True)).stochastic
    assert al.make_simulator(Slippery(rarely=True), stochastic=True).stochastic


def test_games_of_minatar_are_stochastic_where_their_steps_draw():
    assert {game for game in GAMES if MinAtarSimulator(game).stochastic} == {"Asterix", "Freeway", "Seaquest"}
    assert all(MinAtarSimulator(game, sticky=0.1).stochastic for game in GAMES)


def test_a_class_that_reseeds_is_stochastic_unless_it_says_otherwise():
    class Reseeding(Graph):
        def reseed(self, state, seed):
            return state

    class Certain(Reseeding):
        stochastic = False

    assert not Graph.stochastic
    assert Reseeding.stochastic
    assert not Certain.stochastic


def test_the_checker_finds_chance_that_is_denied():
    sim = al.make_simulator(Slippery(), stochastic=False)
    with pytest.raises(SimulatorError, match="declared deterministic"):
        al.check_simulator(sim)
    al.check_simulator(al.make_simulator(Slippery()))


class WrongOutcomes(TabularSimulator):
    """Lists probabilities, successors or rewards that are not the model's."""

    fault = ""

    def outcomes(self, states, actions):
        listed = super().outcomes(states, actions)
        if self.fault == "probabilities":
            flat = np.zeros(len(listed.probabilities))
            flat[np.unique(listed.pairs, return_index=True)[1]] = 0.99
            return dataclasses.replace(listed, probabilities=flat + 0.01 / np.bincount(listed.pairs)[listed.pairs])
        if self.fault == "sum":
            return dataclasses.replace(listed, probabilities=listed.probabilities / 2)
        if self.fault == "rewards":
            children = dataclasses.replace(listed.children, rewards=listed.children.rewards + 1.0)
            return dataclasses.replace(listed, children=children)
        if self.fault == "terminated":
            children = dataclasses.replace(listed.children, terminated=~listed.children.terminated)
            return dataclasses.replace(listed, children=children)
        return listed


@pytest.mark.parametrize("fault", ["probabilities", "sum", "rewards", "terminated"])
def test_the_checker_finds_outcomes_that_do_not_occur(fault):
    sim = WrongOutcomes(al.zoo.garnet(12, 3, 3, seed=0))
    al.check_simulator(sim)
    sim.fault = fault
    with pytest.raises(SimulatorError, match="outcomes"):
        al.check_simulator(sim)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalkingSlippery-v1"])
def test_listed_outcomes_of_gymnasium_pass_the_checker(name):
    al.check_simulator(al.make_simulator(name))
