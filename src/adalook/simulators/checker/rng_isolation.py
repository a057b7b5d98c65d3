"""Checks of randomness: seeds decide what episodes draw, and trees cannot foresee what the live env will draw."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from adalook.simulators.base import Simulator, State
from adalook.simulators.checker.object_graph import generator_states, moved
from adalook.simulators.checker.rollouts import Probe, Rollout, difference, fail_if, packed, random_actions, rollout

_SEEDS = 8
_DRAWS = 200
_TOLERANCE = 0.25
"""By Hoeffding's inequality a true share is missed by so much, in so many draws, with a probability below 1e-10."""


def check_seeding(sim: Simulator, rng: np.random.Generator) -> None:
    """Check that equal seeds give equal episodes, and that other seeds, or none, give other randomness."""
    actions = random_actions(sim, rng)
    first = sim.reset(seed=7).copy()
    once = rollout(sim, actions)
    again = sim.reset(seed=7)
    fail_if(
        not np.array_equal(first, again, equal_nan=first.dtype.kind == "f") or difference(once, rollout(sim, actions)),
        "the same seed gives different episodes",
        remedy="let reset(seed) set all that episodes depend on: generators, and what is left of the last episode",
    )
    seeded: list[dict[str, str]] = []
    unseeded: list[dict[str, str]] = []
    drawn: set[str] = set()
    for starts, seeds in ((seeded, range(4)), (unseeded, [None] * 3)):
        for seed in seeds:
            sim.reset(seed=seed)
            starts.append(generator_states(sim))
            rollout(sim, actions)
            drawn |= set(moved(starts[-1], generator_states(sim)))
    for starts, fault in (
        (seeded, "reset(seed) ignores its seed: episodes of all seeds draw the same"),
        (unseeded, "reset without a seed begins the same randomness again, so that all episodes draw the same"),
    ):
        alike = sorted(name for name in drawn if len({start.get(name) for start in starts}) == 1)
        fail_if(
            alike,
            fault,
            got=", ".join(alike),
            remedy="make generators anew from the seed if there is one, and let them go on if there is none",
        )


def check_reseed(probe: Probe) -> None:
    """Check that `reseed` changes a state's randomness by its seed, and nothing else."""
    sim, actions = probe.sim, probe.random_actions()
    before = generator_states(sim)
    rollout(sim, actions)
    drawn = moved(before, generator_states(sim))
    original = packed(sim, probe.state)
    reseeded = [sim.reseed(probe.state, seed) for seed in range(_SEEDS)]
    fail_if(packed(sim, probe.state) != original, "reseed changes the state it is given", remedy="return another state")
    fail_if(
        packed(sim, reseeded[1]) != packed(sim, sim.reseed(probe.state, 1)),
        "reseed gives different states for the same seed",
        remedy="draw from `seed` alone",
    )
    fail_if(
        drawn and original and all(packed(sim, state) == original for state in reseeded),
        "reseed leaves the live env's randomness in the tree, which then foresees what the live env will draw",
        got=f"steps draw from {', '.join(drawn)}",
        remedy="override reseed: give the state a generator made from `seed`",
    )
    _check_seed_counts(sim, reseeded, {name: before[name] for name in drawn}, actions)
    for state in reseeded:
        sim.restore(state)
        fail_if(
            not probe.is_shown(),
            "a reseeded state shows another observation than the original",
            remedy="change randomness and nothing else",
        )


def _check_seed_counts(sim: Simulator, reseeded: list[State], live: dict[str, str], actions: list[int]) -> None:
    """Check that states reseeded differently draw differently.

    Args:
        sim: its live env is changed.
        reseeded: one state, with different seeds.
        live: the states, by name, of the generators that steps draw from.
        actions: what to play to see where reseeded states draw from.
    """
    starts, drawn = [], set(live)
    for state in reseeded:
        sim.restore(state)
        starts.append(generator_states(sim))
        rollout(sim, actions)
        drawn &= set(moved(starts[-1], generator_states(sim)))
    for name in sorted(drawn):
        own = {start[name] for start in starts}
        fail_if(
            len(own) == 1 and own != {live[name]},
            "reseed ignores its seed: all trees draw the same",
            got=name,
            remedy="make the generator of a reseeded state from `seed`",
        )


def check_chance(probe: Probe) -> None:
    """Check that a simulator which is declared deterministic is, and that listed outcomes are those that occur."""
    sim, actions = probe.sim, probe.random_actions()
    if not sim.stochastic:
        futures = [rollout(sim, actions, sim.reseed(probe.state, seed)) for seed in range(_SEEDS)]
        shifts = [difference(futures[0], future) for future in futures[1:]]
        fail_if(
            any(shifts),
            "the simulator is declared deterministic (stochastic = False), but chance decides what its steps lead to",
            got=next((shift for shift in shifts if shift), None),
            remedy="set stochastic = True: a search then takes expectations instead of one drawn future",
        )
    if sim.lists_outcomes:
        for action in range(sim.num_actions):
            _check_outcomes(probe, action)


def _check_outcomes(probe: Probe, action: int) -> None:
    """Check that drawn children of an action are among its listed outcomes, about as often as these say."""
    sim = probe.sim
    listed = sim.outcomes([probe.state], [action])
    total = float(listed.probabilities.sum())
    fail_if(
        abs(total - 1.0) > 1e-6 or (listed.probabilities <= 0.0).any(),
        f"outcomes of action {action} have wrong probabilities",
        expected="positive ones that sum to 1",
        got=f"a sum of {total:g}",
    )
    drawn = sim.expand([sim.reseed(probe.state, seed) for seed in range(_DRAWS)], [action] * _DRAWS)
    expected, observed = defaultdict[tuple[bytes, bool], float](float), defaultdict[tuple[bytes, bool], float](float)
    for i, probability in enumerate(listed.probabilities.tolist()):
        expected[listed.children.observations[i].tobytes(), bool(listed.children.terminated[i])] += probability / total
    for i in range(_DRAWS):
        observed[drawn.observations[i].tobytes(), bool(drawn.terminated[i])] += 1.0 / _DRAWS
    for child in expected.keys() | observed.keys():
        fail_if(
            abs(expected[child] - observed[child]) > _TOLERANCE or (observed[child] > 0.0 and expected[child] == 0.0),
            f"outcomes lists other probabilities than steps have, for action {action}",
            expected=f"{expected[child]:.3f} by the list",
            got=f"{observed[child]:.3f} in {_DRAWS} draws",
        )
    reward = float(listed.probabilities @ listed.children.rewards) / total
    spread = float(np.ptp(listed.children.rewards)) + abs(reward) * 1e-9
    fail_if(
        abs(reward - float(drawn.rewards.mean())) > _TOLERANCE * spread + 1e-9,
        f"outcomes lists other rewards than steps pay, for action {action}",
        expected=f"{reward:g} on average by the list",
        got=f"{drawn.rewards.mean():g} in {_DRAWS} draws",
    )


def check_rng_isolation(sim: Simulator, rng: np.random.Generator) -> None:
    """Check that trees differ where episodes that begin alike differ by what their steps draw."""
    actions = random_actions(sim, rng)
    episodes: defaultdict[bytes, list[tuple[State, Rollout]]] = defaultdict(list)
    drawn: set[str] = set()
    for seed in range(2 * _SEEDS):
        first = sim.reset(seed=seed).tobytes()
        state, before = sim.save(), generator_states(sim)  # what reset itself draws is no secret of the future
        episodes[first].append((state, rollout(sim, actions)))
        drawn |= set(moved(before, generator_states(sim)))
    if not drawn:
        return  # steps draw nothing, or from what only `reseed` knows of
    _check_own_stream(sim, drawn)
    for starts in episodes.values():
        if all(not difference(starts[0][1], future) for _, future in starts):
            continue  # randomness does not show
        trees = [(sim.reseed(state, seed), future) for state, future in starts for seed in range(_SEEDS)]
        foreseen = all(not difference(future, rollout(sim, actions, tree)) for tree, future in trees)
        fail_if(
            foreseen and _generators_kept(sim, starts[0][0], trees[0][0]) & drawn,
            "reseed lets the tree foresee: whatever its seed, the tree draws what the live env draws",
            remedy="put a generator made from `seed` in the place of the live one",
        )


def _generators_kept(sim: Simulator, state: State, reseeded: State) -> set[str]:
    """Return the generators that `reseed` leaves as they are: with new ones, draws merely came to the same."""
    sim.restore(state)
    before = generator_states(sim)
    sim.restore(reseeded)
    return set(before) - set(moved(before, generator_states(sim)))


def _check_own_stream(sim: Simulator, drawn: set[str]) -> None:
    """Check that a tree and a live env that happen to have the same seed do not draw the same.

    A reseeded state that begins the stream of a live env comes, by `reset`, to where `reset(seed)` comes.
    """
    state = sim.save()
    shared, live_states = set(drawn), []
    for seed in range(_SEEDS):
        sim.reset(seed=seed)
        live = generator_states(sim)
        sim.restore(sim.reseed(state, seed))
        sim.reset()
        tree = generator_states(sim)
        shared = {name for name in shared if name in live and live[name] == tree.get(name)}
        live_states.append(live)
    # Only generators whose state the seed decides.
    shared = {name for name in shared if len({live[name] for live in live_states}) == _SEEDS}
    fail_if(
        shared,
        "reseed draws what a live env with the same seed draws, so the tree may foresee it",
        got=", ".join(sorted(shared)),
        remedy="give trees a stream that is no live env's: np.random.default_rng([seed, 1]), for example",
    )
