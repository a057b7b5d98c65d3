"""`check_simulator`: does a world keep what `base` promises?

A search is only as good as the simulator's copies. The checks play at random, stop here and there, and try there what a
search relies on. What is wrong comes as a `SimulatorError` with the reason; silence means that nothing was found, which
is evidence and no proof.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators import generators
from adalook.simulators.base import Simulator, State
from adalook.simulators.expansion import check_batches
from adalook.simulators.promises import PROMISES, SEEDS, check_keys
from adalook.simulators.stops import AHEAD, Stop, packed, random_action, restored
from adalook.simulators.traces import Trace, check_observation, check_transition, difference, play

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
    check_batches(stops, endings or _endings(sim, steps, seed))
    _check_each(stops, check_keys)
    _check_foresight(sim, rng)
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
            stop.happened.append((transition.observation.tobytes(), transition.reward, transition.ended))
        recording = [stop for stop in recording if len(stop.onward) < AHEAD and not transition.over]
        if transition.ended:
            endings.append((state, action))
        if transition.over:
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
            if transition.ended:
                found.append((state, action))
            if transition.over:
                break
    return found


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


def _check_foresight(sim: Simulator, rng: np.random.Generator) -> None:
    """Where episodes that begin alike differ by what their steps draw, branches of their starts must differ too."""
    plan = [random_action(sim, rng) for _ in range(AHEAD)]
    episodes: defaultdict[bytes, list[tuple[State, Trace]]] = defaultdict(list)
    drawn_from: set[str] = set()
    for seed in range(2 * SEEDS):
        look = sim.reset(seed=seed).tobytes()
        state, before = sim.save(), generators.states_of(sim)  # what reset itself draws is no secret of the future
        episodes[look].append((state, play(sim, plan)))
        drawn_from |= set(generators.moved(before, generators.states_of(sim)))
    if not drawn_from:
        return  # steps draw nothing, or from what only `branch` knows of
    for starts in episodes.values():
        if all(not difference(starts[0][1], trace) for _, trace in starts):
            continue  # randomness does not show
        branches = [(sim.branch(state, seed), trace) for state, trace in starts for seed in range(SEEDS)]
        foreseen = all(not difference(trace, restored(sim, branch, plan)) for branch, trace in branches)
        if foreseen and _in_place(sim, starts[0][0], branches[0][0]) & drawn_from:
            raise SimulatorError(
                "branch foresees: whatever its seed, the tree draws what the live world draws",
                remedy="put a generator made from `seed` in the place of the live one",
            )


def _in_place(sim: Simulator, state: State, branch: State) -> set[str]:
    """The generators that a branch leaves as they are: replaced ones show that its draws merely came to the same."""
    sim.restore(state)
    before = generators.states_of(sim)
    sim.restore(branch)
    return set(before) - set(generators.moved(before, generators.states_of(sim)))
