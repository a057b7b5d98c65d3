"""A state belongs to one env: simulators of others refuse it, and are left as they were."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from adalook.errors import ArgumentError
from adalook.simulators.base import Simulator
from tests.simulators.cases import make

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
