"""Gymnasium environments that copies could get wrong: made right, or refused with the reason."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from adalook.errors import SimulatorError
from adalook.simulators.checker.check import check_simulator
from adalook.simulators.gym.simulator import GymSimulator


class Walk(gymnasium.Env[Any, Any]):
    """One step to the left or to the right."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-100, 100, (1,), np.float32)

    def __init__(self) -> None:
        self.x = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = 0
        return self.look(), {}

    def look(self) -> Any:
        return np.array([self.x], np.float32)

    def step(self, action: Any) -> Any:
        self.x += 2 * int(action) - 1
        return self.look(), float(self.x), False, False, {}


class Dice(Walk):
    """Pays what it rolls; subclasses say where the dice are."""

    def roll(self) -> float:
        raise NotImplementedError

    def step(self, action: Any) -> Any:
        self.x += 1
        return self.look(), self.roll(), False, False, {}


class LegacyDice(Dice):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None or not hasattr(self, "dice"):  # as Gymnasium has it: without a seed they go on
            self.dice = np.random.RandomState(seed)
        return super().reset(seed=seed)

    def roll(self) -> float:
        return float(self.dice.normal())  # of which two are drawn at once, and one kept


class PythonDice(Dice):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None or not hasattr(self, "dice"):
            self.dice = random.Random(seed)
        return super().reset(seed=seed)

    def roll(self) -> float:
        return self.dice.gauss(0, 1)


class Cup:
    def __init__(self, dice: Any) -> None:
        self.dice = dice


class DiceInACup(Dice):
    """A generator in an object in a dict."""

    make: Any = staticmethod(np.random.default_rng)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None or not hasattr(self, "table"):
            self.table = {"cup": Cup(self.make(seed))}
        return super().reset(seed=seed)

    def roll(self) -> float:
        return float(self.table["cup"].dice.random())


class LegacyDiceInACup(DiceInACup):
    make = staticmethod(np.random.RandomState)

    def roll(self) -> float:
        return float(self.table["cup"].dice.normal())


class SharedDice(Dice):
    """Its part draws from the environment's own generator."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        observation = super().reset(seed=seed)
        self.cup, self.again = Cup(self.np_random), self.np_random
        return observation

    def roll(self) -> float:
        return float(self.cup.dice.random() + self.np_random.random() + self.again.random())


DICE = [LegacyDice, PythonDice, DiceInACup, LegacyDiceInACup, SharedDice]


def rewards(sim: GymSimulator, state: Any, steps: int = 5) -> tuple[float, ...]:
    """Of a line of children."""
    line = []
    for _ in range(steps):
        children = sim.expand([state], [0])
        state = children.states[0]
        line.append(float(children.rewards[0]))
    return tuple(line)


@pytest.mark.parametrize("kind", DICE)
def test_trees_draw_from_generators_of_their_own_wherever_those_are(kind: Any) -> None:
    """Decision 12: what the live env will draw must not show in a tree."""
    sim = GymSimulator(kind())
    sim.reset(seed=4)
    for _ in range(3):
        sim.step(0)
    state = sim.save()
    lines = [rewards(sim, sim.reseed(state, seed)) for seed in range(6)]
    assert rewards(sim, sim.reseed(state, 1)) == lines[1]
    without_reseed = rewards(sim, state)
    live = tuple(sim.step(0).reward for _ in range(5))
    assert without_reseed == live
    drawn = [number for line in [*lines, live] for number in line]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("kind", DICE)
def test_such_environments_pass_the_check(kind: Any) -> None:
    check_simulator(GymSimulator(kind()), steps=20)


class NewDiceEachTime(LegacyDice):
    """Without a seed, those of the operating system."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        observation = super().reset(seed=seed)
        if seed is None:
            self.dice = np.random.RandomState()
        return observation


def test_episodes_that_nobody_can_begin_again_are_found() -> None:
    with pytest.raises(SimulatorError, match="after restore, reset begins another episode than the first time"):
        check_simulator(GymSimulator(NewDiceEachTime()), steps=20)


def test_plain_generators_can_be_packed() -> None:
    for kind in (LegacyDice, PythonDice):
        sim = GymSimulator(kind())
        sim.reset(seed=1)
        sim.step(0)
        state = sim.unpack(sim.pack(sim.save()))
        assert rewards(sim.clone(), state) == rewards(sim, sim.save())  # type: ignore[arg-type]


class OwnCopy(Cup):
    """Its copies come with a generator that copying never sees."""

    def __deepcopy__(self, memo: Any) -> OwnCopy:
        fresh = np.random.default_rng()
        fresh.bit_generator.state = self.dice.bit_generator.state
        return OwnCopy(fresh)


def test_generators_that_cannot_be_replaced_are_refused() -> None:
    class Hidden(DiceInACup):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            observation = super().reset(seed=seed)
            self.table["cup"] = OwnCopy(np.random.default_rng(seed))
            return observation

    with pytest.raises(SimulatorError, match=r"would foresee.*a random generator in table\['cup'\]\.dice"):
        GymSimulator(Hidden())


def test_global_randomness_is_refused() -> None:
    class Global(Dice):
        def roll(self) -> float:
            return random.random()

    with pytest.raises(SimulatorError, match="its steps draw from the global generator of Python"):
        GymSimulator(Global())


class NamedP(Walk):
    """Its position has the name of toy text's transition table."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        observation = super().reset(seed=seed)
        self.P = 0
        return observation

    def step(self, action: Any) -> Any:
        self.P += 2 * int(action) - 1
        return np.array([self.P], np.float32), float(self.P), False, False, {}


class NamedEnv(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.env = "prod"


class CallsBack(Walk):
    """A method of its own, and a part that leads back to it, are among its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.move = self._move
        self.part = Cup(self)

    def _move(self, action: Any) -> None:
        self.part.dice.x += 2 * int(action) - 1

    def step(self, action: Any) -> Any:
        self.move(action)
        return self.look(), float(self.x), False, False, {}


@pytest.mark.parametrize("kind", [NamedP, NamedEnv, CallsBack])
def test_unusual_attributes_are_part_of_the_state(kind: Any) -> None:
    sim = GymSimulator(kind())
    sim.reset(seed=0)
    sim.step(1)
    state = sim.save()
    right = sim.expand([state], [1])
    sim.expand([state] * 2, [0, 0])
    assert sim.expand(right.states * 2, [0, 1]).observations.ravel().tolist() == [1, 3]
    assert sim.step(1).observation.tolist() == [2]
    check_simulator(sim, steps=20)


class Slots(Walk):
    """Keeps its position where attributes are not looked for."""

    __slots__ = ("y",)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.y = 0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.y += 2 * int(action) - 1
        return np.array([self.y], np.float32), 0.0, False, False, {}


class InTheMetadata(Walk):
    """Keeps its position where no step should."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.metadata = {"x": 0}
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.metadata["x"] += 2 * int(action) - 1
        return np.array([self.metadata["x"]], np.float32), 0.0, False, False, {}


@pytest.mark.parametrize("kind", [Slots, InTheMetadata])
def test_state_that_is_not_copied_is_found_out(kind: Any) -> None:
    with pytest.raises(SimulatorError, match="a copy of its state does not go on as the original does"):
        GymSimulator(kind())


class Closes(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.seen = lambda: self.x

    def step(self, action: Any) -> Any:
        self.x += 1
        return np.array([self.seen()], np.float32), 0.0, False, False, {}


class ClosesOverAPart(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.part = part = Cup(0)
        self.seen = {"now": lambda: part.dice}


class ClosesOverDice(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.roll = random.Random(0).random


@pytest.mark.parametrize(
    ("kind", "path"), [(Closes, "env.seen"), (ClosesOverAPart, r"env.seen\['now'\]"), (ClosesOverDice, "env.roll")]
)
def test_functions_that_would_read_the_original_are_refused(kind: Any, path: str) -> None:
    with pytest.raises(SimulatorError, match=f"{path} is a function that holds on to the environment"):
        GymSimulator(kind())


def test_wrappers_of_gymnasium_may_hold_functions() -> None:
    sim = GymSimulator(gymnasium.wrappers.FlattenObservation(Walk()))
    sim.reset(seed=0)
    assert sim.step(1).observation.tolist() == [1]


class LastActionPays(Walk):
    """What toy text keeps for drawing matters here."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.lastaction = 0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        reward = float(action != self.lastaction)
        self.lastaction = int(action)
        return self.look(), reward, False, False, {}


def test_keys_leave_out_the_last_action_of_toy_text_only() -> None:
    sim = GymSimulator(LastActionPays())
    sim.reset(seed=0)
    children = sim.expand([sim.reseed(sim.save(), 0)] * 2, [0, 1])
    assert len(set(children.keys)) == 2
    check_simulator(sim)
