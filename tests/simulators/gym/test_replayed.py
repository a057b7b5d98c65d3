"""Environments that cannot be copied go back by playing their episodes again."""

from __future__ import annotations

import itertools

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError, SimulatorError
from adalook.search import FixedDepth, Root, search
from adalook.simulators.gym.replayed import ReplayedGymSimulator
from adalook.storage.serializer import add_digest, serialize


class Locked(gymnasium.Env):
    """A walk on a line with gusts, which holds what cannot be copied."""

    observation_space = gymnasium.spaces.Box(-50.0, 50.0, (2,))
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, gust=0.0):
        self.gust = gust
        self.handle = (number for number in range(3))  # generators cannot be copied

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = float(self.np_random.integers(5)), 0
        return self.observed(), {}

    def step(self, action):
        self.steps += 1
        self.place += float(action) - 1.0
        if self.gust and self.np_random.random() < self.gust:
            self.place -= 1.0
        return self.observed(), self.place, self.place < -3.0, self.steps == 12, {}

    def observed(self):
        return np.array([self.place, self.steps], np.float32)


def forgetful():
    """Return an environment whose episodes do not follow from their seed."""
    env, count = Locked(), itertools.count()
    env.observed = lambda: np.array([env.place, next(count)], np.float32)
    return env


class Global(Locked):
    """Draws from a generator that everybody shares."""

    def step(self, action):
        self.place += np.random.rand()  # noqa: NPY002 - the mistake
        return super().step(action)


@pytest.mark.parametrize("gust", [0.0, 0.3])
def test_replayed_states_are_faithful(gust):
    sim = al.make_simulator(lambda: Locked(gust), replay=True)
    assert isinstance(sim, ReplayedGymSimulator)
    assert sim.stochastic == (gust > 0.0)
    al.check_simulator(sim)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_search_finds_what_the_copied_environment_finds(depth):
    """CartPole can be simulated both ways."""
    found = []
    for sim in (al.make_simulator("CartPole-v1"), al.make_simulator("CartPole-v1?replay=true")):
        sim.reset(seed=3)
        for action in (0, 1, 1):
            sim.step(action)
        result = search(sim, Root.of(sim), lambda leaves, _: -np.abs(leaves[:, 2]), FixedDepth(depth), discount=0.9)
        found.append((result.action_values.tolist(), sim.step(0).observation.tolist()))
    assert found[0] == found[1]


def test_going_on_from_where_the_last_path_ended_replays_nothing(monkeypatch):
    sim = al.make_simulator(lambda: Locked(0.3), replay=True)
    sim.reset(seed=0)
    for _ in range(5):
        sim.step(2)
    state = sim.reseed(sim.save(), seed=1)
    path = [sim.expand([state], [2])]
    played = []
    begin = Locked.reset
    monkeypatch.setattr(Locked, "reset", lambda self, **given: (played.append(given), begin(self, **given))[1])
    for action in (0, 1, 2):
        path.append(sim.expand(path[-1].states, [action]))
    assert not played
    replayed = sim.expand(path[-2].states, [2])  # back: this one is
    assert len(played) == 1
    assert replayed.observations.tolist() == path[-1].observations.tolist()


def test_agents_look_ahead_there():
    agent = al.QLDQN("CartPole-v1?replay=true", seed=0)
    assert agent.learn(steps=16, progress=False).step == 16
    wrapped = al.Lookahead(lambda rows: rows[:, 0], al.make_simulator(lambda: Locked(), replay=True), depth=2)
    assert wrapped.evaluate(episodes=1).steps.tolist() == [12.0]


def test_lunar_lander_is_searched(tmp_path):
    pytest.importorskip("Box2D")
    with pytest.raises(SimulatorError, match=r"\?replay=true"):
        al.make_simulator("LunarLander-v3")
    sim = al.make_simulator("LunarLander-v3?replay=true")
    sim.reset(seed=0)
    for action in range(40):
        sim.step(action % 4)
    children = sim.expand([sim.save()] * 4, range(4))
    assert [sim.step(2).observation.tolist()] == [children.observations[2].tolist()]
    frame = sim.render()
    assert frame is None or frame.shape[2] == 3  # where pygame is


def test_what_does_not_repeat_itself_is_refused():
    with pytest.raises(SimulatorError, match="the same seed and actions led elsewhere"):
        al.make_simulator(forgetful, replay=True)
    with pytest.raises(SimulatorError, match=r"Draw from self\.np_random"):
        al.make_simulator(lambda: Global(), replay=True)


@pytest.mark.parametrize("name", ["zoo:chain", "MinAtar/Breakout-v1"])
def test_what_can_be_saved_is_not_replayed(name):
    with pytest.raises(ArgumentError, match="Leave replay out"):
        al.make_simulator(name, replay=True)


def test_an_instance_without_a_spec_says_what_to_pass():
    with pytest.raises(SimulatorError, match="Pass what makes it"):
        al.make_simulator(Locked(), replay=True)


@pytest.mark.parametrize(
    "content",
    [
        (0, [(9, None)], np.zeros(2, np.float32), None),
        (-1, [], np.zeros(2, np.float32), None),
        (0, [], np.zeros(2), None),
        (0, [], np.zeros(3, np.float32), None),
        (0, [(1, (0, -1))], np.zeros(2, np.float32), None),
        (0, 3, np.zeros(2, np.float32), None),
    ],
)
def test_forged_states_are_refused(content):
    sim = al.make_simulator(lambda: Locked(), replay=True)
    with pytest.raises((FileError, SimulatorError)):
        sim.unpack(add_digest(serialize(content), "Locked"))
