"""From names, models and environments to simulators; what is unknown or missing is said."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import adalook as al
from adalook.errors import ArgumentError, MissingExtraError
from adalook.simulators.ale import emulator
from adalook.simulators.gym.snapshot import gymnasium_package
from adalook.simulators.make import FAMILIES, Family, make_simulator, problem_name
from tests.simulators.cases import WindyWalk, make


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ("ALE/Pong-v5", "AtariSimulator"),
        ("MinAtar/Breakout-v1", "MinAtarSimulator"),
        ("CartPole-v1", "GymSimulator"),
        (gymnasium.make("CartPole-v1"), "GymSimulator"),
        (al.zoo.chain(n=3), "TabularSimulator"),
        ("zoo:maze?size=10&seed=1", "TabularSimulator"),
        ("FrozenLake-v1?map_name=8x8&is_slippery=False", "GymSimulator"),
        ("gym:CartPole-v1", "GymSimulator"),
        ("tests.search.sims:Graph?num_states=5", "Graph"),
        ("adalook.mdp.zoo:chain?n=4", "TabularSimulator"),
        (lambda: WindyWalk(), "WindyWalk"),
        (lambda: gymnasium.make("CartPole-v1"), "GymSimulator"),
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
        ("chain", "zoo:chain"),
        ("maze", "zoo:maze"),
        ("Gridword", "zoo:gridworld"),
        ("zoo:maz", r"the zoo has no 'maz': expected .*maze"),
        ("zoo:maze?sise=10", "has no parameter 'sise'"),
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
    with pytest.raises(
        ArgumentError, match=r"MinAtarSimulator does not take these options: expected sticky.*got stickyness"
    ):
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


def test_arguments_in_names_arrive() -> None:
    assert make_simulator("zoo:chain?n=4").num_states == 6
    assert make_simulator("MinAtar/Breakout-v1?sticky=0.1").stochastic
    assert make_simulator("FrozenLake-v1?map_name=8x8").observation_space.n == 64
    assert make_simulator("tests.search.sims:Graph?num_actions=5").num_actions == 5


def test_a_file_names_a_model(tmp_path: Path) -> None:
    al.zoo.chain(n=4).save(tmp_path / "chain.npz")
    assert make_simulator(str(tmp_path / "chain.npz")).num_states == 6


def test_modules_of_the_current_folder_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corridor_of_mine.py").write_text(
        "import adalook as al\ndef make(n=3):\n    return al.zoo.chain(n=n)\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert make_simulator("corridor_of_mine:make?n=5").num_states == 7
    assert sys.path == before
    with pytest.raises(ArgumentError, match=r"has no 'mak': expected .*make"):
        make_simulator("corridor_of_mine:mak")
    with pytest.raises(ArgumentError, match="cannot be imported"):
        make_simulator("corridor_of_yours:make")


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ("zoo:maze?size=10", "zoo:maze?size=10"),
        (gymnasium.make("CartPole-v1"), "CartPole-v1"),
        (gymnasium.make("FrozenLake-v1", map_name="8x8"), "FrozenLake-v1?map_name=8x8"),
        (gymnasium.make("FrozenLake-v1", desc=["SF", "FG"]), None),  # a list cannot be written into a name
        (gymnasium.wrappers.FlattenObservation(gymnasium.make("CartPole-v1")), None),
        (al.zoo.chain, "adalook.mdp.zoo:chain"),
        (lambda: None, None),
        (al.zoo.chain(n=3), None),
    ],
)
def test_problems_have_the_name_that_makes_them_again(env: Any, name: str | None) -> None:
    assert problem_name(env) == name


def test_a_function_that_needs_arguments_makes_nothing() -> None:
    with pytest.raises(ArgumentError, match=r"called without arguments.*len.*Pass lambda: len"):
        al.make_simulator(len)


@pytest.mark.parametrize(
    ("name", "said"), [("os:system", "missing required argument"), ("json:loads?s=1", "must be str")]
)
def test_code_that_makes_nothing_is_said_in_a_line(name: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=f"cannot be made: got TypeError: .*{said}"):
        al.make_simulator(name)


def test_a_family_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adalook.simulators.make.FAMILIES", dict(FAMILIES))
    al.register_simulator("Windy/", lambda name, gust=0.2: WindyWalk(gust), ["Windy/Walk-v0"])
    assert make_simulator("Windy/Walk-v0", gust=0.5).gust == 0.5
    with pytest.raises(ArgumentError, match=r"expected Windy/Walk-v0\?"):
        make_simulator("Walck")
    with pytest.raises(ArgumentError, match="already"):
        al.register_simulator("Windy/", WindyWalk)
    with pytest.raises(ArgumentError, match="slash"):
        al.register_simulator("Windy", WindyWalk)
    with pytest.raises(ArgumentError, match="factory"):
        al.register_simulator("Stormy/", 3)  # type: ignore[arg-type]
