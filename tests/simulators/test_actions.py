"""Actions and settings that are none are refused with what would be right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adalook.errors import ArgumentError
from adalook.simulators.ale.simulator import AtariSimulator
from adalook.simulators.minatar import MinAtarSimulator
from tests.simulators.cases import make

NAMES = ["Breakout", "CartPole", "chain", "Pong"]


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("actions", [[0, -1], [99, 0], np.array([0, -1]), [0, "1"], [0, None]])
def test_expansions_take_the_actions_there_are(name: str, actions: Any) -> None:
    sim = make(name)
    sim.reset(seed=0)
    for method in (sim.expand, sim.expand_leaves):
        with pytest.raises(ArgumentError, match=rf"whole numbers? 0\.\.{sim.num_actions - 1}"):
            method([sim.save()] * 2, actions)


@pytest.mark.parametrize("name", NAMES)
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
