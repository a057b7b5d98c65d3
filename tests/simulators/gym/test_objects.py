"""Environments that keep objects of their own: packed without pickle, merged in trees, trained and resumed."""

from __future__ import annotations

from collections import deque, namedtuple
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.search import FixedDepth, Root, search
from adalook.simulators.gym.objects import Classes, flatten, unflatten
from adalook.storage.serializer import deserialize, serialize

Cell = namedtuple("Cell", "row column")


class Facing(Enum):
    LEFT = -1
    RIGHT = 1


@dataclass(slots=True)
class Guard:
    cell: Cell
    facing: Facing


@dataclass
class Player:
    cell: Cell
    coins: set[Cell] = field(default_factory=set)
    trail: deque[Cell] = field(default_factory=lambda: deque(maxlen=2))
    enemy: Guard | None = None


@dataclass
class Shot:
    """Made late: the environment has none in its first steps."""

    column: int


class Treasure(gym.Env):
    """Collect coins under the eyes of a guard; everything is kept in objects that refer to each other."""

    observation_space = gym.spaces.Box(0, 1, (3, 4, 4), np.float32)
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.guard = Guard(Cell(2, 3), Facing.LEFT)
        self.player = Player(Cell(0, 0), enemy=self.guard)
        self.actors = [self.player, self.guard]
        self.kinds = {kind.__name__: kind for kind in (Player, Guard)}
        self.shots: list[Shot] = []
        self.coins = {Cell(0, 3), Cell(3, 0)}
        self.steps = 0
        return self.seen(), {}

    def step(self, action: int) -> Any:
        self.steps += 1
        rows, columns = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        player, guard = self.actors  # not by name: what is shared must stay shared
        player.trail.append(player.cell)
        player.cell = Cell(*np.clip(np.add(player.cell, (rows, columns)), 0, 3).tolist())
        guard.cell = guard.cell._replace(column=guard.cell.column + guard.facing.value)
        if guard.cell.column in (0, 3):
            guard.facing = Facing(-guard.facing.value)
        if self.steps > 40:
            self.shots.append(Shot(guard.cell.column))
        reward = float(self.player.cell in self.coins - self.player.coins)
        self.player.coins |= {self.player.cell} & self.coins
        caught = self.player.cell == self.player.enemy.cell  # type: ignore[union-attr]
        return self.seen(), reward - caught, bool(caught), self.steps >= 60, {}

    def seen(self) -> Any:
        picture = np.zeros((3, 4, 4), np.float32)
        picture[0][self.player.cell] = picture[1][self.guard.cell] = 1
        for coin in self.coins - self.player.coins:
            picture[2][coin] = 1
        return picture


class Locked(Treasure):
    """Keeps something that cannot be written down."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        answer = super().reset(seed=seed)
        self.chosen_by = [min]  # a function
        return answer


def both_ways(value: Any, classes: Classes | None = None) -> Any:
    classes = classes or Classes([])
    return unflatten(deserialize(serialize(flatten(value, classes))), classes)


@pytest.mark.parametrize(
    "value",
    [
        {1, 2, 3},
        {1, "a", None, (2, "b")},
        frozenset({(1, "a"), (2, "b")}),
        deque([1, [2]], maxlen=5),
        {"a": (1, 2.5, None, b"x", True), ("t", 1): {3}},
        Cell(1, 2),
        [Facing.LEFT, Facing.RIGHT],
        2 + 3j,
        Player(Cell(0, 1), {Cell(0, 0)}, enemy=Guard(Cell(1, 1), Facing.LEFT)),
        [Player, Guard],
    ],
)
def test_values_come_back_equal_and_of_the_same_types(value: Any) -> None:
    again = both_ways(value)
    assert again == value
    assert type(again) is type(value)
    if isinstance(value, deque):
        assert again.maxlen == value.maxlen


def test_what_is_shared_stays_shared_and_what_contains_itself_still_does() -> None:
    shared = [1]
    one, other = both_ways([shared, shared])
    assert one is other
    loop: list[Any] = []
    loop.append(loop)
    again = both_ways(loop)
    assert again[0] is again


def test_equal_sets_are_equal_bytes_however_they_grew() -> None:
    one, other = set(range(100)), set(range(1000))
    other -= set(range(100, 1000))
    assert serialize(flatten(one, Classes([]))) == serialize(flatten(other, Classes([])))


class Reducing:
    def __reduce__(self) -> Any:
        raise AssertionError("never called")


@pytest.mark.parametrize("value", [min, lambda: 0, Reducing(), {1: [Reducing()]}, np.array([None]), {Guard}.__len__])
def test_what_is_not_made_of_its_attributes_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="cannot be written down"):
        flatten(value, Classes([]))


@pytest.mark.parametrize(
    "flat",
    [
        (("class", "os:system"), []),
        (("class", "subprocess:Popen"), []),
        (("node", 0), [("object", "builtins:object", [])]),
        (("node", 0), [("object", "adalook.errors:ArgumentError", [])]),
        (("node", 5), []),
        (("node", -1), [("list", [])]),
        (("layer", 0), []),
        (("generator of", 0, "np_random"), []),
        (("enum", f"{__name__}:Player", "cell"), []),
        (("enum", f"{__name__}:Facing", "UP"), []),
        (("named tuple", f"{__name__}:Cell", [1]), []),
        (("node", 0), [("object", f"{__name__}:Player", [("__class__", 1)])]),
        (("node", 0), [("object", f"{__name__}:Treasure", [("step", 1)])]),
        (("node", 0), [("object", f"{__name__}:Facing", [])]),
        ([1], []),
        (("node", 0), [("generator", {"bit_generator": "os"})]),
        (("node", 0), [("deque", "x", [])]),
    ],
)
def test_forgeries_are_refused(flat: Any) -> None:
    classes = Classes([])
    classes.add(Player)
    with pytest.raises((ValueError, TypeError, LookupError)):
        unflatten(flat, classes)


def test_states_with_objects_are_packed_merged_and_faithful() -> None:
    sim = al.make_simulator(Treasure())
    al.check_simulator(sim)
    sim.reset(seed=0)
    for action in [1, 2] * 22:
        if sim.step(action).episode_over:
            sim.reset()
    state = sim.save()
    again = sim.unpack(sim.pack(state))
    assert sim.pack(again) == sim.pack(state)
    futures = [[sim.expand([each], [action]).observations.tobytes() for action in range(4)] for each in (state, again)]
    assert futures[0] == futures[1]
    sim.reset(seed=0)
    result = search(sim, Root.of(sim), lambda leaves, depth: np.zeros(len(leaves)), FixedDepth(4), discount=0.99)
    assert result.saved > 0, "paths that meet are one node"


def test_a_class_that_shows_late_is_found_in_a_new_process() -> None:
    """A fresh simulator has never seen a Shot, but knows the module of the environment."""
    old, new = al.make_simulator(Treasure()), al.make_simulator(Treasure())
    old.reset(seed=0)
    old._live.shots.append(Shot(3))  # type: ignore[attr-defined]
    assert new.unpack(old.pack(old.save())).snapshot.others[0, "shots"] == [Shot(3)]


def test_a_run_with_such_an_environment_resumes_to_the_bit(tmp_path: Path) -> None:
    whole = al.QLDQN(Treasure(), seed=0, learning_starts_steps=32).learn(steps=128, progress=False)
    al.QLDQN(Treasure(), seed=0, learning_starts_steps=32).learn(steps=64, out=tmp_path / "run", progress=False)
    resumed = al.QLDQN.load(tmp_path / "run", env=Treasure()).learn(steps=64, progress=False)
    for mine, theirs in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert (mine == theirs).all()


def test_a_run_that_could_not_be_saved_is_refused_before_it_begins(tmp_path: Path) -> None:
    agent = al.QLDQN(Locked(), seed=0)
    with pytest.raises((ArgumentError, FileError), match=r"Locked cannot be packed.*chosen_by.*agent\.export"):
        agent.learn(steps=64, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
    agent.learn(steps=8, progress=False).export(tmp_path / "agent")
