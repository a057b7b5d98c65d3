"""`check_simulator` tests whether a simulator keeps the contract of `simulators.base`.

A search is only as good as the simulator's copies. The check plays at random, takes probes on the way, and tries at
each what a search relies on. What is wrong comes as a `SimulatorError` with the reason; silence means that nothing was
found, which is evidence and no proof.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from adalook._validation import integer
from adalook.errors import SimulatorError
from adalook.simulators.arguments import check_attributes
from adalook.simulators.base import Simulator, State
from adalook.simulators.checker.contract import CONTRACT, check_keys
from adalook.simulators.checker.expansion import check_batches
from adalook.simulators.checker.rng_isolation import check_rng_isolation, check_seeding
from adalook.simulators.checker.rollouts import (
    HORIZON,
    Probe,
    fail_if,
    packed,
    random_actions,
)

_STRIDE = 8
"""Steps from one probe to the next."""
_MAX_REPEATED = 6
"""Actions that are repeated over and over in search of the end of an episode."""


def check_simulator(sim: Simulator, steps: int = 60, seed: int = 0) -> None:
    """Raise `SimulatorError` with the reason if a search in `sim` could not be trusted.

    Args:
        sim: its live env is played with, and put back as it was.
        steps: how far to walk; faults that show late need longer walks.
        seed: of the walk.

    >>> import adalook as al
    >>> from adalook.simulators.tabular import TabularSimulator
    >>> check_simulator(TabularSimulator(al.zoo.maze(size=10)))
    """
    integer(min=1).validate("steps", steps)
    seed = integer(min=0).validate("seed", seed)
    check_attributes(sim)
    original = _current_state(sim, seed)
    rng = np.random.default_rng(seed)
    check_seeding(sim, rng)
    probes, endings = _walk(sim, steps, seed, rng)
    fail_if(
        len({packed(sim, probe.state) == b"" for probe in probes}) == 2,
        "some states can be packed and others cannot",
        remedy="let pack raise ArgumentError for all, or for none",
    )
    for check in CONTRACT:
        for probe in probes:
            probe.restore()
            check(probe)
    endings = endings or _endings(sim, steps, seed)
    check_batches(probes, endings)
    # one step before an end some children have terminated and others have not
    for probe in (*probes, *(replace(probes[0], state=state) for state, _ in endings[:4])):
        probe.restore()
        check_keys(probe)
    check_rng_isolation(sim, rng)
    sim.restore(original)


def _current_state(sim: Simulator, seed: int) -> State:
    """Return the state of the live env; a simulator that waits for its first reset gets one."""
    try:
        return sim.save()
    except SimulatorError:
        sim.reset(seed=seed)
        return sim.save()


def _walk(
    sim: Simulator, steps: int, seed: int, rng: np.random.Generator
) -> tuple[list[Probe], list[tuple[State, int]]]:
    """Play at random; return probes, evenly spaced, and the (state, action) pairs that terminated."""
    endings: list[tuple[State, int]] = []
    probes: list[tuple[Probe, bytes]] = []
    seen = [sim.reset(seed=seed)]
    contents = [seen[0].tobytes()]

    def look(observation: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        seen.append(observation)
        contents.append(observation.tobytes())
        return observation

    recording: list[Probe] = []
    for step in range(steps):
        if step % _STRIDE == 0:
            probe = Probe(sim, sim.save(), look(sim.observe()).tobytes(), rng, [], [])
            probes.append((probe, packed(sim, probe.state)))
            recording.append(probe)
        (action,), state = random_actions(sim, rng, 1), sim.save()
        transition = sim.step(action)
        look(transition.observation)
        for probe in recording:
            probe.actions.append(action)
            probe.rollout.append((transition.observation.tobytes(), transition.reward, transition.terminated))
        recording = [p for p in recording if len(p.actions) < HORIZON and not transition.episode_over]
        if transition.terminated:
            endings.append((state, action))
        if transition.episode_over:
            look(sim.reset())
    fail_if(
        [observation.tobytes() for observation in seen] != contents,
        "an observation changes when the env moves on",
        remedy="return a copy of the buffer that steps write to",
    )
    fail_if(
        any(packed(sim, probe.state) != data for probe, data in probes),
        "a saved state changes when the live env moves on",
        remedy="let save copy what steps change in place: arrays, lists, dicts",
    )
    return [probe for probe, _ in probes], endings


def _endings(sim: Simulator, steps: int, seed: int) -> list[tuple[State, int]]:
    """Return (state, action) pairs that terminate, found by repeating one action."""
    found = []
    for action in range(min(sim.num_actions, _MAX_REPEATED)):
        sim.reset(seed=seed)
        for _ in range(steps):
            state = sim.save()
            transition = sim.step(action)
            if transition.terminated:
                found.append((state, action))
            if transition.episode_over:
                break
    return found
