"""`check_simulator`: does a world keep what `base` promises?

A search is only as good as the simulator's copies. The checks play at random, stop here and there, and try there what a
search relies on. What is wrong comes as a `SimulatorError` with the reason; silence means that nothing was found, which
is evidence and no proof.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.base import Simulator, State
from adalook.simulators.checker import generators
from adalook.simulators.checker.contract import PROMISES, check_keys
from adalook.simulators.checker.expansion import check_batches
from adalook.simulators.checker.probes import AHEAD, Stop, packed, random_action
from adalook.simulators.checker.rng_isolation import check_foresight
from adalook.simulators.checker.rollouts import check_observation, check_transition, difference, play

_STRIDE = 8
"""Steps from one place where everything is tried to the next."""
_TRIED = 6
"""Actions that are repeated on and on in search of an end."""


def check_simulator(sim: Simulator, steps: int = 60, seed: int = 0) -> None:
    """Raise `SimulatorError` with the reason if a search in `sim` could not be trusted.

    Args:
        sim: its live world is played with, and put back as it was.
        steps: how far to walk; faults that show late need longer walks.
        seed: of the walk.

    >>> import adalook as al
    >>> from adalook.simulators.tabular import TabularSimulator
    >>> check_simulator(TabularSimulator(al.zoo.maze(size=10)))
    """
    if steps < 1:
        raise ArgumentError("steps is wrong", expected="at least 1", got=steps)
    _check_outside(sim)
    was = sim.save()
    rng = np.random.default_rng(seed)
    _check_seeding(sim, rng)
    stops, endings = _walk(sim, steps, seed, rng)
    _check_all_or_none_packs(stops)
    for check in PROMISES:
        _check_each(stops, check)
    endings = endings or _endings(sim, steps, seed)
    check_batches(stops, endings)
    _check_each([*stops, *_before(endings[:4], stops[0])], check_keys)
    check_foresight(sim, rng)
    sim.restore(was)


def _check_each(stops: list[Stop], check: Callable[[Stop], None]) -> None:
    for stop in stops:
        stop.go_back()
        check(stop)


def _walk(
    sim: Simulator, steps: int, seed: int, rng: np.random.Generator
) -> tuple[list[Stop], list[tuple[State, int]]]:
    """Play at random; returns places on the way, evenly spaced, and the (state, action) pairs that ended episodes."""
    endings: list[tuple[State, int]] = []
    stops: list[tuple[Stop, bytes]] = []
    shown = [_shown(sim.reset(seed=seed))]
    recording: list[Stop] = []
    for step in range(steps):
        if step % _STRIDE == 0:
            shown.append(_shown(sim.observe()))
            stop = Stop(sim, sim.save(), sim.observe().copy(), rng, [], [])
            stops.append((stop, packed(sim, stop.state)))
            recording.append(stop)
        action, state = random_action(sim, rng), sim.save()
        transition = check_transition(sim, sim.step(action))
        shown.append(_shown(transition.observation))
        for stop in recording:
            stop.onward.append(action)
            stop.happened.append((transition.observation.tobytes(), transition.reward, transition.terminated))
        recording = [stop for stop in recording if len(stop.onward) < AHEAD and not transition.episode_over]
        if transition.terminated:
            endings.append((state, action))
        if transition.episode_over:
            shown.append(_shown(check_observation(sim, sim.reset(), "reset")))
    if any(observation.tobytes() != content for observation, content in shown):
        raise SimulatorError(
            "an observation changes when the world moves on", remedy="return a copy of the buffer that steps write to"
        )
    if any(packed(sim, stop.state) != data for stop, data in stops):
        raise SimulatorError(
            "a saved state changes when the live world moves on",
            remedy="let save copy what steps change in place: arrays, lists, dicts",
        )
    return [stop for stop, _ in stops], endings


def _endings(sim: Simulator, steps: int, seed: int) -> list[tuple[State, int]]:
    """(state, action) pairs that end an episode, looked for by doing one thing all the time."""
    found = []
    for action in range(min(sim.num_actions, _TRIED)):
        sim.reset(seed=seed)
        for _ in range(steps):
            state = sim.save()
            transition = sim.step(action)
            if transition.terminated:
                found.append((state, action))
            if transition.episode_over:
                break
    return found


def _before(endings: list[tuple[State, int]], stop: Stop) -> list[Stop]:
    """Places one step before an end, where some children have ended and others have not."""
    return [dataclasses.replace(stop, state=state) for state, _ in endings]


def _check_all_or_none_packs(stops: list[Stop]) -> None:
    """Worlds may be without packing, and then search goes without merging; but not here and there."""
    if len({packed(stop.sim, stop.state) == b"" for stop in stops}) == 2:
        raise SimulatorError(
            "some states can be packed and others cannot", remedy="let pack raise ArgumentError for all, or for none"
        )


def _shown(observation: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], bytes]:
    return observation, observation.tobytes()


def _check_outside(sim: Simulator) -> None:
    for name, kind in (
        ("num_actions", int | np.integer),
        ("observation_shape", tuple),
        ("observation_dtype", np.dtype),
    ):
        value = getattr(sim, name, None)
        if not isinstance(value, kind):
            wanted = getattr(kind, "__name__", "int")
            raise SimulatorError(
                f"{name} is wrong", expected=f"a {wanted}, set in __init__ or the class", got=repr(value)
            )
    if sim.num_actions < 1:
        raise SimulatorError("num_actions is wrong", expected="at least 1", got=sim.num_actions)


def _check_seeding(sim: Simulator, rng: np.random.Generator) -> None:
    plan = [random_action(sim, rng) for _ in range(AHEAD)]
    first = check_observation(sim, sim.reset(seed=7), "reset").copy()
    trace = play(sim, plan)
    again = sim.reset(seed=7)
    if not np.array_equal(first, again, equal_nan=first.dtype.kind == "f") or difference(trace, play(sim, plan)):
        raise SimulatorError(
            "the same seed gives different episodes",
            remedy="let reset(seed) set all that episodes depend on: generators, and what is left of the last episode",
        )
    _check_streams(sim, plan)


def _check_streams(sim: Simulator, plan: list[int]) -> None:
    """Episodes of different seeds draw differently, and so do episodes that follow each other without one."""
    seeded = [_generators_at_start(sim, plan, seed) for seed in range(4)]
    unseeded = [_generators_at_start(sim, plan, None) for _ in range(3)]
    drawn_from = {name for _, moved in seeded + unseeded for name in moved}
    for episodes, fault in (
        (seeded, "reset(seed) ignores its seed: episodes of all seeds draw the same"),
        (unseeded, "reset without a seed begins the same randomness again, so that all episodes draw the same"),
    ):
        if alike := [name for name in drawn_from if len({start.get(name) for start, _ in episodes}) == 1]:
            raise SimulatorError(
                fault,
                got=", ".join(sorted(alike)),
                remedy="make generators anew from the seed if there is one, and let them go on if there is none",
            )


def _generators_at_start(sim: Simulator, plan: list[int], seed: int | None) -> tuple[dict[str, str], list[str]]:
    """The states of all generators when an episode begins, and the names of those that its steps draw from."""
    sim.reset(seed=seed)
    start = generators.states_of(sim)
    play(sim, plan)
    return start, generators.moved(start, generators.states_of(sim))
