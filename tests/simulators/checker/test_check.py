"""The checker passes what is faithful, and finds the true fault in what is not."""

from __future__ import annotations

import pickle
import random
from typing import Any, ClassVar

import numpy as np
import pytest

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.base import Children
from adalook.simulators.checker.check import check_simulator
from adalook.storage.serializer import serialize
from tests.simulators.cases import SIMULATORS, WindyWalk, make


@pytest.mark.parametrize("name", SIMULATORS)
def test_our_simulators_are_faithful(name: str) -> None:
    check_simulator(make(name), steps=20 if "ALE" in str(SIMULATORS[name][0]) else 40)


def test_the_live_env_is_put_back() -> None:
    sim = make("Asterix")
    sim.reset(seed=3)
    for _ in range(20):
        sim.step(1)
    before = sim.pack(sim.save())
    check_simulator(sim)
    assert sim.pack(sim.save()) == before


def test_a_walk_must_have_steps() -> None:
    with pytest.raises(ArgumentError, match="a whole number >= 1, got 0"):
        check_simulator(make("chain"), steps=0)


class SavesByReference(WindyWalk):
    """Keeps its state in a list that it hands out."""

    def __init__(self) -> None:
        super().__init__()
        self.trail = [0] * 3

    def step(self, action: int) -> Any:
        self.trail[self.place % 3] += 1
        return super().step(action)

    def reset(self, seed: int | None = None) -> Any:
        self.trail = [0] * 3
        return super().reset(seed)

    def save(self) -> Any:
        return *super().save(), self.trail

    def restore(self, state: Any) -> None:
        super().restore(state[:3])
        self.trail = state[3]

    def reseed(self, state: Any, seed: int) -> Any:
        return *super().reseed(state[:3], seed), state[3]


class ForgetsSpeed(WindyWalk):
    def restore(self, state: Any) -> None:
        self.place, _, self.rng.bit_generator.state = state

    def observe(self) -> Any:
        return np.array([self.place, 0], np.float32)


class StopsWhenSaving(WindyWalk):
    """Restores the same state each time, but not the one that was saved."""

    def save(self) -> Any:
        place, _, randomness = super().save()
        return place, 0, randomness

    def observe(self) -> Any:
        return np.array([self.place, 0], np.float32)


class ForgetsRandomStream(WindyWalk):
    def restore(self, state: Any) -> None:
        self.place, self.speed, _ = state


class DrawsFromGlobal(WindyWalk):
    def step(self, action: int) -> Any:
        self.place += random.random() < 0.3
        return super().step(action)

    def reset(self, seed: int | None = None) -> Any:
        if seed is not None:
            random.seed(seed)
        return super().reset(seed)


class Sticky(WindyWalk):
    """Repeats its last action in one of four steps, as ALE does, and does not save it."""

    last = 1

    def reset(self, seed: int | None = None) -> Any:
        self.last = 1
        return super().reset(seed)

    def step(self, action: int) -> Any:
        self.last = self.last if self.rng.random() < 0.25 else action
        return super().step(self.last)


class ShowsOldScreen(WindyWalk):
    """Draws its screen in steps only, as emulators do."""

    screen = np.zeros(2, np.float32)

    def draw(self) -> Any:
        self.screen = super().observe()
        return self.screen.copy()

    def observe(self) -> Any:
        return self.screen.copy()

    def reset(self, seed: int | None = None) -> Any:
        super().reset(seed)
        return self.draw()

    def step(self, action: int) -> Any:
        transition = super().step(action)
        return type(transition)(
            self.draw(),
            transition.reward,
            transition.raw_reward,
            terminated=transition.terminated,
            episode_over=transition.episode_over,
        )


class ReusesItsBuffer(WindyWalk):
    def __init__(self) -> None:
        super().__init__()
        self.buffer = np.zeros(2, np.float32)

    def observe(self) -> Any:
        self.buffer[:] = self.place, self.speed
        return self.buffer


class ExpandsInTheLiveEnv(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        self._scratch = self
        return super().expand(states, actions, out)

    def close(self) -> None:
        self._scratch = None


class ExpandDrawsLiveNumbers(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        self.rng.random()
        return super().expand(states, actions, out)


class ExpandIsRandom(WindyWalk):
    """Its children draw from a generator that belongs to no state."""

    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        fresh = [self.reseed(state, seed=int(np.random.default_rng().integers(2**32))) for state in states]
        return super().expand(fresh, actions, out)


class KeyIsThePlace(WindyWalk):
    """As taking RAM for a key: what is not in it matters later."""

    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = super().expand(states, actions, out)
        keys = [bytes([child[0]]) for child in children.states]
        return Children(children.states, children.observations, children.rewards, children.terminated, keys)

    def observe(self) -> Any:
        return np.array([self.place, 0], np.float32)


class NeverReseeds(WindyWalk):
    def reseed(self, state: Any, seed: int) -> Any:
        return state


class ReseedForesees(WindyWalk):
    """Writes the seed down, and draws from the live generator all the same."""

    def save(self) -> Any:
        return *super().save(), 0

    def restore(self, state: Any) -> None:
        super().restore(state[:3])

    def reseed(self, state: Any, seed: int) -> Any:
        return *state[:3], seed + 1


class PacksAway(WindyWalk):
    """Its packed states have lost the speed."""

    def pack(self, state: Any) -> bytes:
        return serialize((state[0], 0, state[2]))


class Pickles(WindyWalk):
    def pack(self, state: Any) -> bytes:
        return pickle.dumps(state)

    def unpack(self, data: bytes) -> Any:
        return pickle.loads(data)


class StateInTheClass(WindyWalk):
    shared: ClassVar[dict[str, int]] = {"place": 0}

    @property
    def place(self) -> int:
        return self.shared["place"]

    @place.setter
    def place(self, value: int) -> None:
        self.shared["place"] = value


class SeedIsIgnored(WindyWalk):
    def reset(self, seed: int | None = None) -> Any:
        return super().reset()


class WrongType(WindyWalk):
    def observe(self) -> Any:
        return np.array([self.place, self.speed], np.float64)


class IgnoresOut(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        return super().expand(states, actions)


class StepAndExpandDisagree(WindyWalk):
    """Clips rewards in steps only."""

    def step(self, action: int) -> Any:
        transition = super().step(action)
        return type(transition)(
            transition.observation, 1.0, 1.0, terminated=transition.terminated, episode_over=transition.episode_over
        )

    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = super().expand(states, actions, out)
        return Children(
            children.states, children.observations, children.rewards - 2, children.terminated, children.keys
        )


class NotANumber(WindyWalk):
    def step(self, action: int) -> Any:
        transition = super().step(action)
        return type(transition)(
            transition.observation,
            float("nan"),
            0.0,
            terminated=transition.terminated,
            episode_over=transition.episode_over,
        )


class SeedCountsForNothing(WindyWalk):
    """The same episodes for all seeds."""

    def reset(self, seed: int | None = None) -> Any:
        return super().reset(None if seed is None else 3)


class BeginsTheSameAgain(WindyWalk):
    """The same episode after each reset."""

    def reset(self, seed: int | None = None) -> Any:
        return super().reset(3 if seed is None else seed)


class ReseedDrawsAsLive(WindyWalk):
    """A tree with the seed of the live env draws what that has drawn."""

    def reseed(self, state: Any, seed: int) -> Any:
        return *state[:2], np.random.default_rng(seed).bit_generator.state


class ReseedIgnoresItsSeed(WindyWalk):
    def reseed(self, state: Any, seed: int) -> Any:
        return *state[:2], np.random.default_rng(1234567).bit_generator.state


class CountsEpisodes(WindyWalk):
    """Each episode begins elsewhere, by a counter that is not saved."""

    episodes = 0

    def reset(self, seed: int | None = None) -> Any:
        self.episodes = 0 if seed is not None else self.episodes + 1
        super().reset(seed)
        self.place = (self.place + self.episodes) % 5
        return self.observe()


class BegunElsewhere(WindyWalk):
    """Episodes begin where the instance was made to begin, which no state says."""

    made: ClassVar[list[int]] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(0)
        self.first = len(self.made)

    def reset(self, seed: int | None = None) -> Any:
        super().reset(seed)
        self.place = self.first
        return self.observe()


class KeyForgetsTheEnd(WindyWalk):
    """Pushing at speed 3 ends the episode and shows nothing of it, neither in what is seen nor in the key."""

    tired = False

    def step(self, action: int) -> Any:
        self.tired = self.speed == 3 and action == 2
        transition = super().step(action)
        terminated = transition.terminated or self.tired
        return type(transition)(
            transition.observation,
            transition.reward,
            transition.raw_reward,
            terminated=terminated,
            episode_over=terminated,
        )

    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = super().expand(states, actions, out)
        keys = [shown.tobytes() for shown in children.observations]
        return Children(children.states, children.observations, children.rewards, children.terminated, keys)


FAULTS = {
    SavesByReference: "a saved state changes when the live env moves on.*Let save copy",
    ForgetsSpeed: "a restored state goes on differently.*not in what save returns, or restore does not put it back",
    StopsWhenSaving: "a restored state goes on differently from the one that was saved",
    ForgetsRandomStream: r"randomness is not saved.*got self\.rng",
    DrawsFromGlobal: r"randomness is not saved.*global generator of Python",
    Sticky: "what was played before restore still has effects after it.*sticky",
    ShowsOldScreen: "after restore, observe shows something else.*stale until the next step",
    ReusesItsBuffer: "an observation changes when the env moves on.*Return a copy",
    ExpandsInTheLiveEnv: "expand changes the live env.*Expand in a clone",
    ExpandDrawsLiveNumbers: r"expand changes the live env: got self\.rng",
    ExpandIsRandom: "expanding the same state and action twice gives different children",
    KeyIsThePlace: "keys are not sound: two children of depth [123] have equal keys and different futures",
    NeverReseeds: r"foresees what the live env will draw.*steps draw from self\.rng.*Override reseed",
    ReseedForesees: "reseed lets the tree foresee: whatever its seed",
    PacksAway: "a state does not survive pack and unpack",
    Pickles: "pack uses pickle",
    StateInTheClass: "a clone shares state with the original",
    SeedIsIgnored: "the same seed gives different episodes",
    SeedCountsForNothing: r"reset\(seed\) ignores its seed.*got self\.rng",
    BeginsTheSameAgain: r"reset without a seed begins the same randomness again.*got self\.rng",
    ReseedDrawsAsLive: r"reseed draws what a live env with the same seed draws.*got self\.rng",
    ReseedIgnoresItsSeed: r"reseed ignores its seed: all trees draw the same: got self\.rng",
    CountsEpisodes: "after restore, reset begins another episode than the first time",
    BegunElsewhere: "after restore, reset begins another episode than in a clone",
    KeyForgetsTheEnd: "keys are not sound.*equal keys and different futures: got one terminated, the other not",
    WrongType: r"observe returns a wrong observation: expected an array \(2,\) float32, got \(2,\) float64",
    IgnoresOut: "expand ignores `out`",
    StepAndExpandDisagree: "expand and step disagree about action 0: got step 1 pays 1 in one and",
    NotANumber: r"step\(\d\) returns a wrong reward: expected a finite number up to 1e\+300, got nan",
}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_each_fault_is_named(kind: Any) -> None:
    with pytest.raises(SimulatorError, match=FAULTS[kind]):
        check_simulator(kind())


def test_shape_and_actions_must_be_declared() -> None:
    class Undeclared(WindyWalk):
        observation_shape = None

    with pytest.raises(SimulatorError, match="observation_shape is wrong: expected a tuple"):
        check_simulator(Undeclared())
