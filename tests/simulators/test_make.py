"""From names, models and environments to simulators; what is unknown or missing is said."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any

import gymnasium
import pytest

import adalook as al
from adalook.errors import ArgumentError, MissingExtraError
from adalook.simulators.ale import emulator
from adalook.simulators.gym.snapshot import gymnasium_package
from adalook.simulators.make import FAMILIES, Family, make_simulator
from tests.simulators.cases import WindyWalk, make


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ("ALE/Pong-v5", "AtariSimulator"),
        ("MinAtar/Breakout-v1", "MinAtarSimulator"),
        ("CartPole-v1", "GymSimulator"),
        (gymnasium.make("CartPole-v1"), "GymSimulator"),
        (al.zoo.chain(n=3), "TabularSimulator"),
    ],
)
def test_each_env_finds_its_simulator(env: Any, kind: str) -> None:
    assert type(make_simulator(env)).__name__ == kind


def test_a_simulator_is_handed_back() -> None:
    sim = make("chain")
    assert make_simulator(sim) is sim
    with pytest.raises(ArgumentError, match="takes no options: got start"):
        make_simulator(sim, start=1)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Catpole-v1", "expected CartPole-v0, CartPole-v1"),
        ("Freeway", r"expected MinAtar/Freeway-v1, MinAtar/Freeway-v0, ALE/Freeway-v5\?"),
        ("xyzzy", "an id such as ALE/Breakout-v5"),
        ("MinAtar/Pong-v1", "MinAtar/Breakout-v1"),
        ("ALE/Tutankam-v5", "ALE/Tutankham-v5"),
        ("chain", r"zoo:chain on the command line, al\.zoo\.chain\(…\) in Python"),
        ("maze", "zoo:maze"),
        ("Gridword", "zoo:gridworld"),
        ("zoo:maze?size=10", r"In Python pass al\.zoo\.maze\(…\)"),
    ],
)
def test_unknown_names_bring_near_ones(name: str, near: str) -> None:
    with pytest.raises(ArgumentError, match=near):
        make_simulator(name)


@pytest.mark.parametrize(("env", "got"), [(3, "int"), (None, "NoneType"), ([], "list")])
def test_other_things_are_refused(env: Any, got: str) -> None:
    with pytest.raises(ArgumentError, match=f"there is no simulator for this: .*got {got}"):
        make_simulator(env)


def test_a_family_in_the_table_is_known_and_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(name: str, gust: float = 0.2) -> Any:
        return WindyWalk(gust)

    monkeypatch.setitem(FAMILIES, "Windy/", Family(walk, lambda: ["Windy/Walk-v0"]))
    assert make_simulator("Windy/Walk-v0", gust=0.5).gust == 0.5
    with pytest.raises(ArgumentError, match=r"expected Windy/Walk-v0\?"):
        make_simulator("Walck")
    with pytest.raises(ArgumentError, match="walk does not take these options"):
        make_simulator("Windy/Walk-v0", storm=1)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"MinAtarSimulator does not take these options: .*'stickyness'"):
        make_simulator("MinAtar/Breakout-v1", stickyness=1)


@pytest.mark.parametrize(("name", "package"), [("ALE/Pong-v5", "ale_py"), ("CartPole-v1", "gymnasium")])
def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    emulator._roms.cache_clear()
    gymnasium_package.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"needs the package '{package}'.*pip install 'adalook\[search\]'"):
        make_simulator(name)


def test_missing_minatar_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'minatar'.*pip install 'adalook\[search\]'"):
        make_simulator("MinAtar/Breakout-v1")


@pytest.mark.parametrize("name", ["chain", "Breakout", "CartPole", "Pong"])
def test_simulators_travel_to_other_processes_as_clones(name: str) -> None:
    sim = make(name)
    sim.reset(seed=1)
    clone = pickle.loads(pickle.dumps(sim))  # what multiprocessing does
    assert type(clone) is type(sim)
    state = sim.reseed(sim.save(), 2)
    there = clone.expand([clone.unpack(sim.pack(state))] * 2, [0, 1])
    here = sim.expand([state] * 2, [0, 1])
    assert there.observations.tobytes() == here.observations.tobytes()
    assert there.keys == here.keys
