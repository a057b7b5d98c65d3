"""Wrong actions, settings, states of other simulators and answers are refused, with what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from adalook.errors import AdalookError, ArgumentError
from adalook.simulators.ale.simulator import AtariSimulator
from adalook.simulators.base import Simulator
from adalook.simulators.gym.spaces import as_array
from adalook.simulators.make import make_simulator
from adalook.simulators.minatar import MinAtarSimulator
from benchmarks.torture import simulators as torture
from tests.simulators.cases import make

# ---- actions and settings

STEPPED = ["Breakout", "CartPole", "chain", "Pong"]


@pytest.mark.parametrize("name", STEPPED)
@pytest.mark.parametrize("action", [-1, 99, 1.5, "1", None])
def test_steps_take_the_actions_there_are(name: str, action: Any) -> None:
    sim = make(name)
    sim.reset(seed=0)
    before = sim.pack(sim.save())
    with pytest.raises(
        ArgumentError, match=rf"no such action: expected a whole number 0\.\.{sim.num_actions - 1}, got"
    ):
        sim.step(action)
    assert sim.pack(sim.save()) == before


@pytest.mark.parametrize("name", STEPPED)
@pytest.mark.parametrize("actions", [[0, -1], [99, 0], np.array([0, -1]), [0, "1"], [0, None]])
def test_expansions_take_the_actions_there_are(name: str, actions: Any) -> None:
    sim = make(name)
    sim.reset(seed=0)
    for method in (sim.expand, sim.expand_leaves):
        with pytest.raises(ArgumentError, match=rf"whole numbers? 0\.\.{sim.num_actions - 1}"):
            method([sim.save()] * 2, actions)


@pytest.mark.parametrize("name", STEPPED)
def test_numbers_of_numpy_are_actions(name: str) -> None:
    sim = make(name)
    sim.reset(seed=0)
    assert len(sim.expand([sim.save()] * 2, np.array([0, 1])).rewards) == 2  # type: ignore[arg-type]
    sim.step(np.int64(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"frame_skip": "4"}, {"noop_max": 1.5}, {"max_frames": None}])
def test_frames_are_whole_numbers(settings: Any) -> None:
    (name, value), *_ = settings.items()
    with pytest.raises(ArgumentError, match=f"{name} is wrong: expected a whole number >= .*got {value!r}"):
        AtariSimulator("ALE/Pong-v5", **settings)


def test_stickiness_is_a_number() -> None:
    with pytest.raises(ArgumentError, match=r"sticky is wrong: expected a number in \[0, 1\], got 'x'"):
        MinAtarSimulator("Breakout", sticky="x")  # type: ignore[arg-type]


# ---- states

NAMES = ("Breakout (Atari)", "Tutankham", "Breakout", "Asterix", "CartPole", "Taxi", "chain", "maze")
TABULAR = ("chain", "maze")

USES: dict[str, Callable[[Simulator, Any], Any]] = {
    "restore": lambda sim, state: sim.restore(state),
    "reseed": lambda sim, state: sim.reseed(state, 1),
    "expand": lambda sim, state: sim.expand([sim.save(), state], [0, 0]),
    "expand_leaves": lambda sim, state: sim.expand_leaves([sim.save(), state], [0, 0]),
    "pack": lambda sim, state: sim.pack(state),
}


@cache
def simulator(name: str) -> Simulator:
    sim = make(name)
    sim.reset(seed=0)
    return sim


def _foreign(name: str) -> dict[str, Any]:
    others = {other: simulator(other).save() for other in NAMES if other != name}
    if name in TABULAR:  # a number may well be that of a state here too
        others = {other: state for other, state in others.items() if other not in TABULAR}
    return {**others, "nothing": None, "a tuple": (1, 2, 3)}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", NAMES)
def test_states_of_other_simulators_are_refused(name: str, use: str) -> None:
    sim = simulator(name)
    before = sim.pack(sim.save())
    for state in _foreign(name).values():
        with pytest.raises(ArgumentError, match=r"belongs to another simulator: expected a state of .*, got "):
            USES[use](sim, state)
    assert sim.pack(sim.save()) == before


def test_the_message_names_both_envs() -> None:
    with pytest.raises(
        ArgumentError, match="expected a state of the Atari game tutankham, got a state of the Atari game breakout"
    ):
        simulator("Tutankham").restore(simulator("Breakout (Atari)").save())


def test_an_mdp_refuses_states_that_it_does_not_have() -> None:
    chain = simulator("chain")
    with pytest.raises(ArgumentError, match=r"expected a state of an MDP of 7 states, got TabularState\(number=7"):
        chain.restore(chain.save()._replace(number=7))


def test_a_clone_takes_the_states_of_its_original() -> None:
    for name in NAMES:
        sim = simulator(name)
        clone = sim.clone()
        clone.restore(sim.save())
        assert clone.pack(clone.save()) == sim.pack(sim.save())
        clone.close()


# ---- answers

ANSWERS: dict[str, tuple[str, Any, str]] = {
    "a reward that is no number": (
        "reward",
        math.nan,
        r"(wrong reward|reward is wrong).*got nan",
    ),
    "no reward": ("reward", None, r"(wrong reward|reward is wrong).*got None"),
    "a reward that is text": ("reward", "1", r"(wrong reward|reward is wrong).*got '1'"),
    "a short observation, which NumPy would spread": ("observation", [0.0], r"observation.*expected"),
    "an observation without a number": (
        "observation",
        np.full(2, np.nan, np.float32),
        "observation.*(not finite|not a number)",
    ),
    "no flag": ("terminated", None, r"wrong terminated: expected.*got None"),
    "a step of four values": (
        "result",
        (np.zeros(2, np.float32), 1.0, False, {}),
        r"step.*expected.*(Transition|trunc)",
    ),
}


@pytest.mark.parametrize("use", ["tree", "lookahead by rollouts", "DQN"])
@pytest.mark.parametrize("case", ANSWERS)
def test_answers_that_are_none_are_refused_whoever_asks(case: str, use: str) -> None:
    field, value, message = ANSWERS[case]
    with pytest.raises(AdalookError, match=message):
        torture.USES[use](torture.Walk(field, value))
    with pytest.raises(AdalookError, match=message):
        torture.USES[use](make_simulator(lambda: torture.WalkEnv(field, value, at=2)))


def test_environments_may_answer_in_other_types_of_numbers() -> None:
    for value in ([3.0, 1.0], np.array([[3.0, 1.0]])):
        sim = make_simulator(torture.WalkEnv("observation", value))
        sim.reset(seed=0)
        assert sim.step(1).observation.tolist() == [3.0, 1.0]
    for reward in (2, np.float32(2), np.array([2.0])):
        sim = make_simulator(torture.WalkEnv("reward", reward))
        sim.reset(seed=0)
        assert sim.step(1).reward == 2.0


def test_observations_that_do_not_fit_their_type_are_refused() -> None:
    array = partial(as_array, shape=(2,), dtype=np.dtype(np.uint8), name="env")
    assert array([0, 255]).tolist() == [0, 255]
    for wrong in ([0, 256], [-1, 0], [0.5, 0]):
        with pytest.raises(ArgumentError, match="does not fit observation_space: expected values of uint8"):
            array(wrong)
