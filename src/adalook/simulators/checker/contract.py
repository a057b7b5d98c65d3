"""What a search relies on, one check per promise. Each plays at a `Stop` and raises `SimulatorError` if broken."""

from __future__ import annotations

from collections import defaultdict

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.base import Children, Simulator, State
from adalook.simulators.checker import generators
from adalook.simulators.checker.expansion import check_expansion, expanded
from adalook.simulators.checker.pickle_guard import uses_pickle
from adalook.simulators.checker.probes import AHEAD, Stop, packed, random_action, restored
from adalook.simulators.checker.rollouts import Trace, difference, play

SEEDS = 8
_EPISODE = 4
"""Steps for which the beginnings of two episodes are compared."""
_LARGEST_LEVEL = 60
"""Nodes of a tree's level that are expanded, at most, when keys are checked."""


def check_restore(stop: Stop) -> None:
    """Go back by different ways, and play the same each time."""
    sim, plan = stop.sim, stop.plan()
    if sim.observe().tobytes() != stop.observation.tobytes():
        raise SimulatorError(
            "after restore, observe shows something else than when the state was saved",
            remedy="the screen of an emulator is stale until the next step: save the observation with the state",
        )
    before = generators.states_of(sim)
    once = play(sim, plan)
    stop.go_back()
    stray = generators.moved(before, generators.states_of(sim))
    again = play(sim, plan)
    stop.go_back()
    shift = difference(once, again) or difference(stop.happened, play(sim, stop.onward))
    if stray or shift:
        raise _restore_error(stray, shift)


def check_history(stop: Stop) -> None:
    """What was played before restoring must not show after it: sticky emulators may repeat it.

    Chance decides whether it does in one state, so this is tried in several.
    """
    sim = stop.sim
    for action in stop.onward:
        state, plan = sim.save(), stop.plan(3)
        expected = restored(sim, state, plan)
        for detour in {0, sim.num_actions - 1, random_action(sim, stop.rng)}:
            restored(sim, state, [detour])
            if shift := difference(expected, restored(sim, state, plan)):
                raise SimulatorError(
                    "what was played before restore still has effects after it",
                    got=f"{shift} when action {detour} came first",
                    remedy="a sticky or repeated last action is part of the state: save it, or turn sticky actions off",
                )
        sim.restore(state)
        if sim.step(action).episode_over:
            break


def _restore_error(stray: list[str], shift: str) -> SimulatorError:
    if stray:
        return SimulatorError(
            "randomness is not saved: restore leaves a generator where it was",
            got=", ".join(stray),
            remedy="save and restore the state of each generator that steps draw from, and draw from no global one",
        )
    return SimulatorError(
        "a restored world goes on differently from the one that was saved",
        got=shift,
        remedy="something that steps depend on is not in what save returns, or restore does not put it back",
    )


def check_reset(stop: Stop) -> None:
    """What the next episode begins with is part of the state, here and in a twin: else a run cannot be resumed."""
    sim, plan = stop.sim, stop.plan(_EPISODE)
    expected = _begun(sim, plan)
    _begun(sim, stop.plan(1))  # another episode in between, of which nothing may be left
    stop.go_back()
    again = _begun(sim, plan)
    clone = sim.clone()
    try:
        clone.restore(stop.state)
        elsewhere = _begun(clone, plan)
    finally:
        clone.close()
    if expected != again or expected != elsewhere:
        where = "the first time" if expected != again else "in a twin"
        raise SimulatorError(
            f"after restore, reset begins another episode than {where}",
            remedy="save and restore all that reset goes by: generators, counters, what is left of the last episode",
        )


def _begun(world: Simulator, plan: list[int]) -> tuple[bytes, Trace]:
    """How the next episode begins: its first observation and some steps."""
    return world.reset().tobytes(), play(world, plan)


def check_packing(stop: Stop) -> None:
    """States survive as bytes. Worlds whose `pack` says by an ArgumentError that theirs cannot are let off."""
    sim, plan = stop.sim, stop.plan()
    try:
        data, pickled = uses_pickle(lambda: sim.pack(stop.state))
    except ArgumentError:
        return
    if not isinstance(data, bytes):
        raise SimulatorError("pack is wrong", expected="bytes", got=type(data).__name__)
    state, unpickled = uses_pickle(lambda: sim.unpack(data))
    if pickled or unpickled:
        raise SimulatorError(
            "pack uses pickle" if pickled else "unpack uses pickle",
            remedy="a hostile checkpoint could run anything: use adalook.storage.serializer.serialize",
        )
    expected = play(sim, plan)
    sim.restore(state)
    if sim.observe().tobytes() != stop.observation.tobytes() or difference(expected, play(sim, plan)):
        raise SimulatorError(
            "a state does not survive pack and unpack",
            got=difference(expected, restored(sim, state, plan)) or "another observation",
        )
    if sim.pack(stop.state) != data or sim.pack(sim.unpack(data)) != data:
        raise SimulatorError("equal states give different bytes", remedy="let pack depend on the state alone")


def check_twin(stop: Stop) -> None:
    sim, plan = stop.sim, stop.plan()
    clone = sim.clone()
    try:
        clone.reset(seed=1)
        play(clone, stop.plan(3))
        if difference(expected := play(sim, plan), restored(sim, stop.state, plan)) or _stands_elsewhere(stop, clone):
            raise SimulatorError(
                "a twin shares state with the original: moving one moves the other",
                remedy="keep state in the instance, never in the class, a module or a default argument",
            )
        if shift := difference(expected, restored(clone, stop.state, plan)):
            raise SimulatorError(
                "a state does not go on in a twin as it does in the original",
                got=shift,
                remedy="a state must hold all that steps depend on, and nothing that belongs to one instance",
            )
    finally:
        clone.close()


def _stands_elsewhere(stop: Stop, clone: Simulator) -> bool:
    """Whether moving the twin moves the live world."""
    stop.go_back()
    clone.reset(seed=2)
    play(clone, stop.plan(3))
    seen = stop.sim.observe().tobytes() != stop.observation.tobytes()
    return seen or packed(stop.sim, stop.sim.save()) != packed(stop.sim, stop.state)


def check_live_world(stop: Stop) -> None:
    """The live world goes on after many expansions as if there had been none, its randomness included."""
    sim, plan = stop.sim, stop.plan(2 * AHEAD)
    expected = play(sim, plan)
    stop.go_back()
    before = generators.states_of(sim)
    was, root = packed(sim, sim.save()), sim.reseed(stop.state, seed=5)
    for _ in range(3):
        expanded(sim, [root] * sim.num_actions, list(range(sim.num_actions)))
    stray = generators.moved(before, generators.states_of(sim))
    seen = sim.observe().tobytes() != stop.observation.tobytes() or packed(sim, sim.save()) != was
    if stray or seen or difference(expected, play(sim, plan)):
        raise SimulatorError(
            "expand moves the live world",
            got=", ".join(stray) or "another state after it than before",
            remedy="expand in a twin (see `clone`), or save the live world before and restore it after",
        )


def check_branch(stop: Stop) -> None:
    """A tree must not know what the live world will draw."""
    sim, plan = stop.sim, stop.plan()
    before = generators.states_of(sim)
    play(sim, plan)
    drawn_from = generators.moved(before, generators.states_of(sim))
    was = packed(sim, stop.state)
    branches = [sim.reseed(stop.state, seed) for seed in range(SEEDS)]
    if packed(sim, stop.state) != was:
        raise SimulatorError("branch changes the state it is given", remedy="return another state")
    if packed(sim, branches[1]) != packed(sim, sim.reseed(stop.state, 1)):
        raise SimulatorError("branch gives different states for the same seed", remedy="draw from `seed` alone")
    if drawn_from and was and all(packed(sim, reseed) == was for reseed in branches):
        raise SimulatorError(
            "branch leaves the live world's randomness in the tree, which then foresees what the live world will draw",
            got=f"steps draw from {', '.join(drawn_from)}",
            remedy="override branch: give the state a generator made from `seed`",
        )
    _check_seed_counts(sim, branches, {name: before[name] for name in drawn_from}, plan)
    for reseed in branches:
        sim.restore(reseed)
        if sim.observe().tobytes() != stop.observation.tobytes():
            raise SimulatorError(
                "a branch shows something else than its state", remedy="change randomness and nothing else"
            )


def _check_seed_counts(sim: Simulator, branches: list[State], live: dict[str, str], plan: list[int]) -> None:
    """Branches by different seeds must not draw alike. Those that draw what is live are a case for `foresight`.

    Args:
        sim: its live world is moved.
        branches: of one state, by different seeds.
        live: name to state, of the generators that steps draw from.
        plan: what to play to see where branches draw from.
    """
    starts, drawn_from = [], set(live)
    for reseed in branches:
        sim.restore(reseed)
        starts.append(generators.states_of(sim))
        play(sim, plan)
        drawn_from &= set(generators.moved(starts[-1], generators.states_of(sim)))
    for name in sorted(drawn_from):
        own = {start[name] for start in starts}
        if len(own) == 1 and own != {live[name]}:
            raise SimulatorError(
                "branch ignores its seed: all trees draw the same",
                got=name,
                remedy="make the generator of a branch from `seed`",
            )


def check_keys(stop: Stop) -> None:
    """Children of one depth with equal keys must look alike and go on alike."""
    sim = stop.sim
    level: list[State] = [sim.reseed(stop.state, seed=11)]
    for depth in (1, 2, 3):
        pairs = [(state, action) for state in level for action in range(sim.num_actions)]
        if len(pairs) > _LARGEST_LEVEL:
            chosen = stop.rng.choice(len(pairs), _LARGEST_LEVEL, replace=False)
            pairs = [pairs[i] for i in chosen]
        if not pairs:
            break
        children = expanded(sim, [state for state, _ in pairs], [action for _, action in pairs])
        _check_equal_keys(stop, children, depth)
        first = {key: i for i, key in reversed(list(enumerate(children.keys)))}
        level = [children.states[i] for i in sorted(first.values()) if not children.terminated[i]]


def _check_equal_keys(stop: Stop, children: Children, depth: int) -> None:
    sim = stop.sim
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for i, key in enumerate(children.keys):
        groups[key].append(i)
    shared = [members for members in groups.values() if len(members) > 1]
    for members in shared[:6]:
        one, other = members[0], members[-1]
        plan = stop.plan()
        if children.terminated[one] or children.terminated[other]:
            plan = []
        shift = difference(restored(sim, children.states[one], plan), restored(sim, children.states[other], plan))
        if children.observations[one].tobytes() != children.observations[other].tobytes():
            shift = "different observations"
        elif children.terminated[one] != children.terminated[other]:
            shift = "one ended, the other not"
        if shift:
            raise SimulatorError(
                f"keys are not sound: two children of depth {depth} have equal keys and different futures",
                got=shift,
                remedy="put all that a state's future depends on into its key; `pack` is a sound one",
            )


PROMISES = (
    check_restore,
    check_history,
    check_reset,
    check_packing,
    check_twin,
    check_expansion,
    check_live_world,
    check_branch,
)
"""In this order, and `check_keys` last: the first to complain is nearest to the cause."""
