"""A tree must not foresee what the live world will draw, whatever the seeds of both."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators.base import Simulator, State
from adalook.simulators.checker import generators
from adalook.simulators.checker.contract import SEEDS
from adalook.simulators.checker.probes import AHEAD, random_action, restored
from adalook.simulators.checker.rollouts import Trace, difference, play


def check_foresight(sim: Simulator, rng: np.random.Generator) -> None:
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
        return  # steps draw nothing, or from what only `reseed` knows of
    _check_own_stream(sim, drawn_from)
    for starts in episodes.values():
        if all(not difference(starts[0][1], trace) for _, trace in starts):
            continue  # randomness does not show
        branches = [(sim.reseed(state, seed), trace) for state, trace in starts for seed in range(SEEDS)]
        foreseen = all(not difference(trace, restored(sim, reseed, plan)) for reseed, trace in branches)
        if foreseen and _in_place(sim, starts[0][0], branches[0][0]) & drawn_from:
            raise SimulatorError(
                "branch foresees: whatever its seed, the tree draws what the live world draws",
                remedy="put a generator made from `seed` in the place of the live one",
            )


def _in_place(sim: Simulator, state: State, reseed: State) -> set[str]:
    """The generators that a branch leaves as they are: replaced ones show that its draws merely came to the same."""
    sim.restore(state)
    before = generators.states_of(sim)
    sim.restore(reseed)
    return set(before) - set(generators.moved(before, generators.states_of(sim)))


def _check_own_stream(sim: Simulator, drawn_from: set[str]) -> None:
    """A tree and a live world that happen to have the same seed must not draw the same.

    A branch that begins the stream of a live world comes, by `reset`, to where `reset(seed)` comes.
    """
    state = sim.save()
    shared, seen = set(drawn_from), []
    for seed in range(SEEDS):
        sim.reset(seed=seed)
        live = generators.states_of(sim)
        sim.restore(sim.reseed(state, seed))
        sim.reset()
        tree = generators.states_of(sim)
        shared = {name for name in shared if name in live and live[name] == tree.get(name)}
        seen.append(live)
    shared = {name for name in shared if len({live[name] for live in seen}) == SEEDS}  # seeds do decide its state
    if shared:
        raise SimulatorError(
            "branch draws what a live world with the same seed draws, so the tree may foresee it",
            got=", ".join(sorted(shared)),
            remedy="give trees a stream that is no live world's: np.random.default_rng([seed, 1]), for example",
        )
