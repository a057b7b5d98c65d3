"""Gymnasium environments: copied faithfully, or refused."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils import EzPickle

from adalook.errors import ArgumentError, FileError, SimulatorError
from adalook.simulators.gym.simulator import GymSimulator


class Counter(gymnasium.Env[Any, Any]):
    """Counts what it is told; keeps the count in whatever `part` is."""

    observation_space = spaces.Box(0, 1e9, (1,), np.float64)
    action_space = spaces.Discrete(2, start=5)

    def __init__(self, part: Any) -> None:
        self.part = part

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.part.count = 0
        return np.zeros(1), {}

    def step(self, action: Any) -> Any:
        self.part.count += action - 4
        return np.array([self.part.count], float), 1.0, False, False, {}


class Part:
    count = 0


class PartMadeAnew(EzPickle):
    """A part whose copies begin anew."""

    def __init__(self) -> None:
        EzPickle.__init__(self)
        self.count = 0


class PartThatCannotBeCopied:
    count = 0

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("it lives in C++")


def test_live_steps_are_those_of_the_environment() -> None:
    for name in ("CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Blackjack-v1"):
        sim, env = GymSimulator(name), gymnasium.make(name)
        seen, _ = env.reset(seed=5)
        assert np.array_equal(sim.reset(seed=5).ravel(), np.ravel(seen))
        for action in np.random.default_rng(0).integers(sim.num_actions, size=200):
            transition = sim.step(int(action))
            seen, reward, terminated, truncated, _ = env.step(action)
            assert np.array_equal(transition.observation.ravel(), np.ravel(seen))
            assert (transition.reward, transition.terminated, transition.episode_over) == (
                reward,
                terminated,
                terminated or truncated,
            )
            if transition.episode_over:
                seen, _ = env.reset()
                assert np.array_equal(sim.reset().ravel(), np.ravel(seen))


def test_the_time_limit_is_the_live_envs() -> None:
    sim = GymSimulator("MountainCar-v0")  # 200 steps
    sim.reset(seed=0)
    for _ in range(199):
        assert not sim.step(1).episode_over
    root = sim.save()
    last = sim.step(1)
    assert (last.episode_over, last.terminated) == (True, False)
    assert sim.expand([root], [1]).terminated.tolist() == [False]


def test_an_environment_is_copied_and_left_alone() -> None:
    env = Counter(Part())
    sim = GymSimulator(env)
    env.reset()
    sim.reset(seed=0)
    sim.step(1)
    assert env.part.count == 0
    assert sim.step(0).observation.tolist() == [3.0]  # actions begin at 5, so they are worth 2 and 1


def test_parts_that_copying_makes_anew_are_found_out() -> None:
    with pytest.raises(
        SimulatorError, match=r"a copy of its state does not go on.*'part' \(PartMadeAnew\), which EzPickle"
    ):
        GymSimulator(Counter(PartMadeAnew()))


def test_parts_that_cannot_be_copied_are_named() -> None:
    with pytest.raises(
        SimulatorError, match="Counter cannot be simulated: it cannot be copied: got TypeError: it lives"
    ):
        GymSimulator(Counter(PartThatCannotBeCopied()))


def test_states_with_functions_cannot_be_packed_and_do_not_merge() -> None:
    part = Part()
    part.chooses = min
    sim = GymSimulator(Counter(part))
    sim.reset(seed=0)
    with pytest.raises(ArgumentError, match=r"cannot be packed.*part'\)\]\.chooses cannot be written down"):
        sim.pack(sim.save())
    children = sim.expand([sim.save()] * 2, [0, 0])
    assert len(set(children.keys)) == 2
    assert np.array_equal(children.observations[0], children.observations[1])


def test_bumping_into_walls_merges() -> None:
    sim = GymSimulator("FrozenLake-v1", is_slippery=False)
    sim.reset(seed=0)
    children = sim.expand([sim.reseed(sim.save(), 0)] * 4, range(4))  # left and up leave the corner where it is
    assert children.keys[0] == children.keys[3]
    assert len(set(children.keys)) == 3


def test_trees_of_a_slippery_lake_follow_its_chances() -> None:
    sim = GymSimulator("FrozenLake-v1")
    sim.reset(seed=0)
    children = sim.expand([sim.reseed(sim.save(), seed) for seed in range(600)], [2] * 600)
    shares = np.bincount(children.observations.ravel(), minlength=5)[[0, 1, 4]] / 600
    assert np.abs(shares - 1 / 3).max() < 4 * 0.48 / np.sqrt(600)


def test_continuous_actions_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Pendulum-v1 cannot be searched: expected finitely many actions"):
        GymSimulator("Pendulum-v1")


def test_observations_must_be_arrays() -> None:
    class Nested(Counter):
        observation_space = spaces.Dict({"a": spaces.Discrete(2)})  # type: ignore[assignment]

    with pytest.raises(ArgumentError, match=r"are not arrays.*FlattenObservation"):
        GymSimulator(Nested(Part()))


def test_wrong_makings() -> None:
    with pytest.raises(ArgumentError, match="CartPole-v1 cannot be made: got TypeError"):
        GymSimulator("CartPole-v1", colour="red")
    with pytest.raises(ArgumentError, match="takes no options: got colour"):
        GymSimulator(Counter(Part()), colour="red")


def test_damaged_states_are_refused() -> None:
    sim = GymSimulator("CartPole-v1")
    sim.reset(seed=0)
    for data in (b"", b"N", sim.pack(sim.save())[:-1]):
        with pytest.raises(FileError, match="damaged"):
            sim.unpack(data)
