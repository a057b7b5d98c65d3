"""Can an environment be copied faithfully? Tried when a `GymSimulator` is made, so that no search runs on false copies.

Copies that lose state look right as long as all of them take the same steps. So before each comparison the tree's copy
is led somewhere else, and so is the live one.
"""

from __future__ import annotations

import copy
from collections import deque
from enum import Enum
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators.checker import generators
from adalook.simulators.generator_state import SOURCES
from adalook.simulators.gym import spaces as gym_spaces
from adalook.simulators.gym.object_graph import closed_over, reachable
from adalook.simulators.gym.snapshot import NOT_STATE, Forms, Snapshot

if TYPE_CHECKING:
    from adalook.simulators.gym.simulator import GymSimulator, GymState

_STEPS = 30
_AWAY = 4
"""Other actions that are tried between two that should come out alike."""
_REMEDY = "write a Simulator with `save` and `restore` of its own, see docs/simulators.md"


def refuse_functions_on_state(env: Any, name: str) -> None:
    """Raise if a function among the attributes holds on to the environment, or to randomness.

    Functions are never copied, so that of a copy would go on reading the original.
    """
    parts = list(reachable(env, "env", skip=NOT_STATE - {"env"}))
    own = {id(part) for _, part in parts if _can_change(part)}
    for path, part in parts:
        if str(getattr(part, "__module__", "")).startswith("gymnasium."):
            continue  # those of its wrappers look at spaces only
        for held in closed_over(part):
            if any(id(value) in own or isinstance(value, SOURCES) for _, value in reachable(held, "")):
                raise SimulatorError(
                    f"{name} cannot be simulated: {path} is a function that holds on to the environment or its parts",
                    got="a copy of it would still read the original",
                    remedy="make it a method",
                )


def _can_change(part: Any) -> bool:
    return (
        isinstance(part, np.ndarray | list | dict | set | deque)
        if not hasattr(part, "__dict__")
        else not isinstance(part, FunctionType | Enum | type)
    )


def refuse_hidden_generators(snapshot: Snapshot, name: str) -> None:
    """Raise if a copy holds a generator that copying did not come across, so that trees could not have their own."""
    memo: dict[int, Any] = {}
    others = copy.deepcopy(snapshot.others, memo)
    known = {id(value) for value in memo.values()}
    for (_, key), value in others.items():
        for path, part in reachable(value, key):
            if isinstance(part, SOURCES) and id(part) not in known:
                raise SimulatorError(
                    f"{name} cannot be simulated: trees cannot draw numbers of their own, "
                    "and would foresee those of the live world",
                    got=f"a random generator in {path}, behind a `__deepcopy__`",
                    remedy="draw from self.np_random",
                )


def refuse_unfaithful_copies(sim: GymSimulator, live: Any, forms: Forms, name: str) -> None:
    """Play a little, and see whether saved states go on in the same way wherever the copies have been meanwhile.

    `forms` learns what the attributes of `live` look like on the way.
    """
    rng = np.random.default_rng(0)
    sim.reset(seed=0)
    for action in map(int, rng.integers(sim.num_actions, size=_STEPS)):
        state = sim.save()
        forms.learn(state.snapshot)
        refuse_hidden_generators(state.snapshot, name)
        shared = generators.global_states()
        try:
            first = _child(sim, state, action)
            _lead_away(sim, state, rng)
            again = _child(sim, state, action)
        except Exception as error:  # whatever half of a state does to anybody's code
            raise _loses_state(live, name, f"{type(error).__name__}: {error}") from error
        once = _live_step(sim, action)
        if not once[2]:
            _live_step(sim, int(rng.integers(sim.num_actions)))
        sim.restore(state)
        twice = _live_step(sim, action)
        if stray := generators.moved(shared, generators.global_states()):
            raise SimulatorError(
                f"{name} cannot be simulated: its steps draw from {' and '.join(stray)}",
                got="randomness that trees would take from the live world",
                remedy="draw from self.np_random",
            )
        if not first == again == once == twice:
            raise _loses_state(live, name)
        if twice[2]:
            forms.learn(sim.save().snapshot)
            sim.reset()


def _loses_state(live: Any, name: str, symptom: str | None = None) -> SimulatorError:
    return SimulatorError(
        f"{name} cannot be simulated: a copy of its state does not go on as the original does",
        got=symptom,
        remedy=f"it keeps state that copying loses{gym_spaces.suspects(live)}; {_REMEDY}",
    )


def _lead_away(sim: GymSimulator, state: GymState, rng: np.random.Generator) -> None:
    actions = [int(a) for a in rng.permutation(sim.num_actions)[:_AWAY]]
    children = sim.expand([state] * len(actions), actions)
    onward = [child for child, terminated in zip(children.states, children.terminated, strict=True) if not terminated]
    sim.expand(onward, actions[: len(onward)])


def _child(sim: GymSimulator, state: GymState, action: int) -> tuple[bytes, float, bool]:
    children = sim.expand([state], [action])
    return children.observations[0].tobytes(), float(children.rewards[0]), bool(children.terminated[0])


def _live_step(sim: GymSimulator, action: int) -> tuple[bytes, float, bool]:
    step = sim.step(action)
    return step.observation.tobytes(), step.reward, step.terminated
