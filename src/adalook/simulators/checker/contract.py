"""The contract that searches rely on, one check per clause.

A check plays at a `Probe` and raises if the clause is broken.
"""

from __future__ import annotations

import pickle
import sys
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

from adalook.errors import ArgumentError
from adalook.simulators.base import Children, Simulator, State
from adalook.simulators.checker.expansion import check_expansion, expand
from adalook.simulators.checker.object_graph import generator_states, moved
from adalook.simulators.checker.rng_isolation import check_chance, check_reseed
from adalook.simulators.checker.rollouts import (
    HORIZON,
    Probe,
    Rollout,
    difference,
    fail_if,
    packed,
    random_actions,
    rollout,
)

_EPISODE_START = 4
"""Steps for which the beginnings of two episodes are compared."""
_MAX_LEVEL = 60
"""Nodes of a tree's level that are expanded, at most, when keys are checked."""


def check_restore(probe: Probe) -> None:
    """Check that a restored state looks and goes on as it did when it was saved."""
    sim, actions = probe.sim, probe.random_actions()
    fail_if(
        not probe.is_shown(),
        "after restore, observe shows something else than when the state was saved",
        remedy="the screen of an emulator is stale until the next step: save the observation with the state",
    )
    before = generator_states(sim)
    once = rollout(sim, actions)
    probe.restore()
    unsaved = moved(before, generator_states(sim))
    shift = difference(once, rollout(sim, actions))
    shift = shift or difference(probe.rollout, rollout(sim, probe.actions, probe.state))
    fail_if(
        unsaved,
        "randomness is not saved: restore leaves a generator where it was",
        got=", ".join(unsaved),
        remedy="save and restore the state of each generator that steps draw from, and draw from no global one",
    )
    fail_if(
        shift,
        "a restored state goes on differently from the one that was saved",
        got=shift,
        remedy="something that steps depend on is not in what save returns, or restore does not put it back",
    )


def check_history(probe: Probe) -> None:
    """Check that what was played before `restore` has no effect after it, as a sticky last action would have.

    Chance decides whether it shows in one state, so several are tried.
    """
    sim = probe.sim
    for action in probe.actions:
        state, actions = sim.save(), probe.random_actions(3)
        expected = rollout(sim, actions, state)
        for detour in {0, sim.num_actions - 1, *random_actions(sim, probe.rng, 1)}:
            rollout(sim, [detour], state)
            shift = difference(expected, rollout(sim, actions, state))
            fail_if(
                shift,
                "what was played before restore still has effects after it",
                got=f"{shift} when action {detour} came first",
                remedy="a sticky or repeated last action is part of the state: save it, or turn sticky actions off",
            )
        sim.restore(state)
        if sim.step(action).episode_over:
            break


def check_reset(probe: Probe) -> None:
    """Check that a state decides how the next episode begins, here and in a clone: else no run can be resumed."""
    sim, actions = probe.sim, probe.random_actions(_EPISODE_START)

    def next_episode(env: Simulator, actions: list[int]) -> tuple[bytes, Rollout]:
        return env.reset().tobytes(), rollout(env, actions)

    expected = next_episode(sim, actions)
    next_episode(sim, probe.random_actions(1))  # another episode in between, of which nothing may be left
    probe.restore()
    again = next_episode(sim, actions)
    clone = sim.clone()
    try:
        clone.restore(probe.state)
        elsewhere = next_episode(clone, actions)
    finally:
        clone.close()
    fail_if(
        expected != again or expected != elsewhere,
        f"after restore, reset begins another episode than {'the first time' if expected != again else 'in a clone'}",
        remedy="save and restore all that reset goes by: generators, counters, what is left of the last episode",
    )


def check_packing(probe: Probe) -> None:
    """Check that states survive as bytes, unless `pack` says by an `ArgumentError` that they cannot."""
    sim, actions = probe.sim, probe.random_actions()
    try:
        data, pack_pickles = _watch_for_pickle(lambda: sim.pack(probe.state))
    except ArgumentError:
        return
    fail_if(not isinstance(data, bytes), "pack is wrong", expected="bytes", got=type(data).__name__)
    state, unpack_pickles = _watch_for_pickle(lambda: sim.unpack(data))
    fail_if(
        pack_pickles or unpack_pickles,
        "pack uses pickle" if pack_pickles else "unpack uses pickle",
        remedy="a hostile checkpoint could run anything: use adalook.storage.serializer.serialize",
    )
    expected = rollout(sim, actions)
    sim.restore(state)
    shift = "" if probe.is_shown() else "another observation"
    shift = difference(expected, rollout(sim, actions)) or shift
    fail_if(shift, "a state does not survive pack and unpack", got=shift)
    fail_if(
        sim.pack(probe.state) != data or sim.pack(sim.unpack(data)) != data,
        "equal states give different bytes",
        remedy="let pack depend on the state alone",
    )


def _watch_for_pickle(call: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what `call` returns, and whether it pickled or unpickled anything in this thread.

    Calls are watched while they run, so that no compression or disguise can hide it.
    """
    used = False

    def watch(frame: FrameType, event: str, called: Any) -> None:
        nonlocal used
        if event == "c_call":
            owner = getattr(called, "__self__", None)
            used = used or "_pickle" in (getattr(called, "__module__", None), type(owner).__module__)
        elif event == "call":
            used = used or frame.f_code.co_filename == pickle.__file__

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = call()
        return result, used
    finally:
        sys.setprofile(before)


def check_clone(probe: Probe) -> None:
    """Check that a clone shares nothing with the original, and goes on from its states in the same way."""
    sim, actions = probe.sim, probe.random_actions()
    clone = sim.clone()
    try:
        clone.reset(seed=1)
        rollout(clone, probe.random_actions(3))
        expected = rollout(sim, actions)
        shared = difference(expected, rollout(sim, actions, probe.state))
        probe.restore()
        clone.reset(seed=2)
        rollout(clone, probe.random_actions(3))
        fail_if(
            shared or not probe.is_shown() or packed(sim, sim.save()) != packed(sim, probe.state),
            "a clone shares state with the original: a step of one changes the other",
            remedy="keep state in the instance, never in the class, a module or a default argument",
        )
        shift = difference(expected, rollout(clone, actions, probe.state))
        fail_if(
            shift,
            "a state does not go on in a clone as it does in the original",
            got=shift,
            remedy="a state must hold all that steps depend on, and nothing that belongs to one instance",
        )
    finally:
        clone.close()


def check_live_env(probe: Probe) -> None:
    """Check that the live env goes on after many expansions as if there had been none, its randomness included."""
    sim, actions = probe.sim, probe.random_actions(2 * HORIZON)
    expected = rollout(sim, actions)
    probe.restore()
    before = generator_states(sim)
    data, root = packed(sim, sim.save()), sim.reseed(probe.state, seed=5)
    for _ in range(3):
        expand(sim, [root] * sim.num_actions, list(range(sim.num_actions)))
    drawn = moved(before, generator_states(sim))
    changed = not probe.is_shown() or packed(sim, sim.save()) != data
    fail_if(
        drawn or changed or difference(expected, rollout(sim, actions)),
        "expand changes the live env",
        got=", ".join(drawn) or "another state after it than before",
        remedy="expand in a clone (see `clone`), or save the live env before and restore it after",
    )


def check_keys(probe: Probe) -> None:
    """Check that children of one depth with equal keys look alike and go on alike."""
    sim = probe.sim
    level: list[State] = [sim.reseed(probe.state, seed=11)]
    for depth in (1, 2, 3):
        pairs = [(state, action) for state in level for action in range(sim.num_actions)]
        if len(pairs) > _MAX_LEVEL:
            pairs = [pairs[i] for i in probe.rng.choice(len(pairs), _MAX_LEVEL, replace=False)]
        if not pairs:
            break
        children = expand(sim, [state for state, _ in pairs], [action for _, action in pairs])
        groups: defaultdict[bytes, list[int]] = defaultdict(list)
        for i, key in enumerate(children.keys):
            groups[key].append(i)
        for members in [members for members in groups.values() if len(members) > 1][:6]:
            shift = _child_difference(probe, children, members[0], members[-1])
            fail_if(
                shift,
                f"keys are not sound: two children of depth {depth} have equal keys and different futures",
                got=shift,
                remedy="put all that a state's future depends on into its key; `pack` is a sound one",
            )
        level = [children.states[members[0]] for members in groups.values() if not children.terminated[members[0]]]


def _child_difference(probe: Probe, children: Children, one: int, other: int) -> str:
    """Say how two children of an expansion differ in what they show and in how they go on."""
    if children.observations[one].tobytes() != children.observations[other].tobytes():
        return "different observations"
    if children.terminated[one] != children.terminated[other]:
        return "one terminated, the other not"
    actions = [] if children.terminated[one] else probe.random_actions()
    first = rollout(probe.sim, actions, children.states[one])
    return difference(first, rollout(probe.sim, actions, children.states[other]))


CONTRACT = (
    check_restore,
    check_history,
    check_reset,
    check_packing,
    check_clone,
    check_expansion,
    check_live_env,
    check_reseed,
    check_chance,
)
"""In this order, and `check_keys` last: the first to fail is nearest to the cause."""
