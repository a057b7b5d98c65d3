"""Validation, when a `GymSimulator` is made, that the environment's state can be copied faithfully.

Copies that lose state look right as long as all of them take the same steps. So before each comparison the tree's copy
is led somewhere else, and so is the live one.
"""

from __future__ import annotations

import copy
from collections import deque
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from adalook.errors import AdalookError, SimulatorError
from adalook.simulators.checker.object_graph import generator_state, global_states, moved, reachable
from adalook.simulators.gym.generators import SOURCES
from adalook.simulators.gym.snapshot import NOT_STATE, REPLAY_IT, AttributeTypes, Snapshot, gymnasium_package, layers_of

if TYPE_CHECKING:
    from adalook.simulators.gym.simulator import GymSimulator, GymState

_STEPS = 30
_DETOUR = 4
"""Other actions that are tried between two that should come out alike."""


def check_functions(env: Any, name: str) -> None:
    """Raise if a function among the attributes holds a reference to the environment, or to randomness.

    Functions are never copied, so that of a copy would go on reading the original.
    """
    parts = list(reachable(env, "env", skip=NOT_STATE - {"env"}))
    own = {id(part) for _, part in parts if _is_mutable(part)}
    for path, part in parts:
        if str(getattr(part, "__module__", "")).startswith("gymnasium."):
            continue  # those of its wrappers look at spaces only
        for held in _closed_over(part):
            if any(id(value) in own or isinstance(value, SOURCES) for _, value in reachable(held, "")):
                raise SimulatorError(
                    f"{name} cannot be simulated: {path} is a function that holds on to the environment or its parts",
                    got="a copy of it would still read the original",
                    remedy="make it a method",
                )


def _is_mutable(part: Any) -> bool:
    if hasattr(part, "__dict__"):
        return not isinstance(part, FunctionType | Enum | type)
    return isinstance(part, np.ndarray | list | dict | set | deque)


def _closed_over(function: Any) -> list[Any]:
    """Return what a function refers to, and a copy of it would refer to as well."""
    if isinstance(function, FunctionType):
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if isinstance(function, BuiltinFunctionType) and not isinstance(function.__self__, ModuleType | None):
        return [function.__self__]
    return []


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading it is the question
    except ValueError:
        return False
    return True


def check_copies(sim: GymSimulator, live: Any, types: AttributeTypes, name: str) -> bool:
    """Raise if saved states do not go on in the same way wherever the copies have been meanwhile.

    `types` learns what the attributes of `live` look like on the way. Returns whether steps draw from a generator.
    """
    rng = np.random.default_rng(0)
    draws = False
    sim.reset(seed=0)
    for action in map(int, rng.integers(sim.num_actions, size=_STEPS)):
        state = sim.save()
        types.observe(state.snapshot)
        _check_hidden_generators(state.snapshot, name)
        shared = global_states()
        try:
            first = _child(sim, state, action)
            _take_detour(sim, state, rng)
            again = _child(sim, state, action)
        except AdalookError:
            raise
        except Exception as error:  # whatever half of a state does to anybody's code
            _live_step(sim, action)  # an error of its own is the environment's to tell
            raise _loses_state(live, name, f"{type(error).__name__}: {error}") from error
        before = generators_of(live)
        once = _live_step(sim, action)
        draws = draws or bool(moved(before, generators_of(live)))
        if not once[2]:
            _live_step(sim, int(rng.integers(sim.num_actions)))
        sim.restore(state)
        twice = _live_step(sim, action)
        if drawn := moved(shared, global_states()):
            raise SimulatorError(
                f"{name} cannot be simulated: its steps draw from {' and '.join(drawn)}",
                got="randomness that trees would take from the live env",
                remedy="draw from self.np_random",
            )
        if not first == again == once == twice:
            raise _loses_state(live, name)
        if twice[2]:
            types.observe(sim.save().snapshot)
            sim.reset()
    return draws


def generators_of(env: Any) -> dict[str, str]:
    """Return the state of every generator that an environment holds, by where it is."""
    parts = reachable(env, "env", skip=NOT_STATE - {"env"})
    return {path: generator_state(part) for path, part in parts if isinstance(part, SOURCES)}


def _check_hidden_generators(snapshot: Snapshot, name: str) -> None:
    """Raise if a copy holds a generator that copying did not come across, so that trees could not have their own."""
    memo: dict[int, Any] = {}
    others = copy.deepcopy(snapshot.others, memo)
    known = {id(value) for value in memo.values()}
    for (_, key), value in others.items():
        for path, part in reachable(value, key):
            if isinstance(part, SOURCES) and id(part) not in known:
                raise SimulatorError(
                    f"{name} cannot be simulated: trees cannot draw numbers of their own, "
                    "and would foresee those of the live env",
                    got=f"a random generator in {path}, behind a `__deepcopy__`",
                    remedy="draw from self.np_random",
                )


def _take_detour(sim: GymSimulator, state: GymState, rng: np.random.Generator) -> None:
    """Lead the tree's copy of the environment somewhere else."""
    actions = [int(a) for a in rng.permutation(sim.num_actions)[:_DETOUR]]
    children = sim.expand([state] * len(actions), actions)
    onward = [child for child, terminated in zip(children.states, children.terminated, strict=True) if not terminated]
    sim.expand(onward, actions[: len(onward)])


def _child(sim: GymSimulator, state: GymState, action: int) -> tuple[bytes, float, bool]:
    children = sim.expand([state], [action])
    return children.observations[0].tobytes(), float(children.rewards[0]), bool(children.terminated[0])


def _live_step(sim: GymSimulator, action: int) -> tuple[bytes, float, bool]:
    step = sim.step(action)
    return step.observation.tobytes(), step.reward, step.terminated


def _loses_state(live: Any, name: str, symptom: str | None = None) -> SimulatorError:
    return SimulatorError(
        f"{name} cannot be simulated: a copy of its state does not go on as the original does",
        got=symptom,
        remedy=f"it keeps state that copying loses{_suspects(live)}, or its steps depend on something outside, "
        f"such as the clock; {REPLAY_IT}",
    )


def _suspects(env: Any) -> str:
    """Name the parts of an environment that are known to begin anew when copied."""
    ez_pickle = gymnasium_package().utils.EzPickle
    found = [
        f"'{key}' ({type(value).__name__})"
        for layer in layers_of(env)
        for key, value in vars(layer).items()
        if isinstance(value, ez_pickle) and key != "env"
    ]
    return f", such as {', '.join(found)}, which EzPickle makes anew instead of copying" if found else ""
