"""What a search relies on, one check per promise. Each plays at a `Stop` and raises `SimulatorError` if broken."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators import generators
from adalook.simulators.base import Children, Simulator, State
from adalook.simulators.traces import Trace, difference, play

AHEAD = 12
"""Steps for which two worlds that should be equal are played side by side."""
SEEDS = 8
_LARGEST_LEVEL = 60
"""Nodes of a tree's level that are expanded, at most, when keys are checked."""


@dataclass(frozen=True)
class Stop:
    """A place on the way where everything is tried; the live world is there."""

    sim: Simulator
    state: State
    observation: np.ndarray[Any, Any]
    rng: np.random.Generator
    onward: list[int]
    """the actions that the walk took from here, twelve at most and within the episode"""
    happened: Trace
    """what they brought"""

    def plan(self, length: int = AHEAD) -> list[int]:
        """Random actions."""
        return [random_action(self.sim, self.rng) for _ in range(length)]

    def go_back(self) -> None:
        self.sim.restore(self.state)


def random_action(sim: Simulator, rng: np.random.Generator) -> int:
    return int(rng.integers(sim.num_actions))


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
        if sim.step(action).over:
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


def check_packing(stop: Stop) -> None:
    sim, plan = stop.sim, stop.plan()
    packed = sim.pack(stop.state)
    if not isinstance(packed, bytes):
        raise SimulatorError("pack is wrong", expected="bytes", got=type(packed).__name__)
    if packed[:1] == b"\x80" and packed[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and packed[-1:] == b".":
        raise SimulatorError(
            "pack uses pickle",
            remedy="a hostile checkpoint could run anything: use adalook.simulators.packing.pack_plain",
        )
    expected = play(sim, plan)
    sim.restore(sim.unpack(packed))
    if sim.observe().tobytes() != stop.observation.tobytes() or difference(expected, play(sim, plan)):
        raise SimulatorError(
            "a state does not survive pack and unpack",
            got=difference(expected, play(sim, plan)) or "another observation",
        )
    if sim.pack(stop.state) != packed or sim.pack(sim.unpack(packed)) != packed:
        raise SimulatorError("equal states give different bytes", remedy="let pack depend on the state alone")


def check_twin(stop: Stop) -> None:
    sim, plan = stop.sim, stop.plan()
    twin = sim.twin()
    try:
        twin.reset(seed=1)
        play(twin, stop.plan(3))
        if difference(expected := play(sim, plan), restored(sim, stop.state, plan)) or _stands_elsewhere(stop, twin):
            raise SimulatorError(
                "a twin shares state with the original: moving one moves the other",
                remedy="keep state in the instance, never in the class, a module or a default argument",
            )
        if shift := difference(expected, restored(twin, stop.state, plan)):
            raise SimulatorError(
                "a state does not go on in a twin as it does in the original",
                got=shift,
                remedy="a state must hold all that steps depend on, and nothing that belongs to one instance",
            )
    finally:
        twin.close()


def _stands_elsewhere(stop: Stop, twin: Simulator) -> bool:
    """Whether moving the twin moves the live world."""
    stop.go_back()
    twin.reset(seed=2)
    play(twin, stop.plan(3))
    return stop.sim.observe().tobytes() != stop.observation.tobytes() or stop.sim.pack(
        stop.sim.save()
    ) != stop.sim.pack(stop.state)


def restored(world: Simulator, state: State, plan: list[int]) -> Trace:
    world.restore(state)
    return play(world, plan)


def check_expansion(stop: Stop) -> None:
    """Children are what restoring and stepping gives, in any order, and expanding changes no state."""
    sim = stop.sim
    actions = [*range(sim.num_actions), *stop.plan(2)]
    for root in (stop.state, sim.branch(stop.state, seed=3)):
        packed = sim.pack(root)
        children = _expand(sim, [root] * len(actions), actions)
        kept = children.observations.copy()
        family = [sim.pack(child) for child in children.states]
        again = _expand(sim, [root] * len(actions), actions[::-1])
        if children.observations.tobytes() != kept.tobytes():
            raise SimulatorError(
                "the observations of an expansion change with the next one",
                remedy="return arrays that are not used again",
            )
        if sim.pack(root) != packed or [sim.pack(child) for child in children.states] != family:
            raise SimulatorError(
                "expanding one state changes another",
                remedy="copy what steps change in place, when saving and restoring",
            )
        for i, action in enumerate(actions):
            mirrored = len(actions) - 1 - i
            if not _same_child(children, i, again, mirrored) or sim.pack(again.states[mirrored]) != family[i]:
                raise SimulatorError(
                    "expanding the same state and action twice gives different children",
                    remedy="let expand depend on states and actions alone: draw from the state's own randomness",
                )
            sim.restore(root)
            transition = sim.step(action)
            if difference([_row(transition)], [_child_row(children, i, transition)]):
                raise SimulatorError(
                    f"expand and step disagree about action {action}",
                    got=difference([_row(transition)], [_child_row(children, i, transition)]),
                    remedy="expand must bring what restore and step bring",
                )


def _row(transition: Any) -> tuple[bytes, float, bool]:
    return transition.observation.tobytes(), transition.reward, transition.ended


def _child_row(children: Children, i: int, transition: Any) -> tuple[bytes, float, bool]:
    """A child as a step would show it; a child of a truncated step may be called ended, since it cannot be expanded."""
    truncated = transition.over and not transition.ended
    ended = transition.ended if truncated else bool(children.ended[i])
    return children.observations[i].tobytes(), float(children.rewards[i]), ended


def _same_child(one: Children, i: int, other: Children, j: int) -> bool:
    return bool(
        one.observations[i].tobytes() == other.observations[j].tobytes()
        and one.rewards[i] == other.rewards[j]
        and one.ended[i] == other.ended[j]
    )


def _expand(sim: Simulator, states: list[State], actions: list[int]) -> Children:
    """Expand into an array of our own, and look at the result from outside."""
    n = len(states)
    out = np.zeros((n, *sim.observation_shape), sim.observation_dtype)
    children = sim.expand(states, actions, out=out)
    lengths = {len(children.states), len(children.rewards), len(children.ended), len(children.keys)}
    if lengths != {n} or children.observations.shape != out.shape or children.observations.dtype != out.dtype:
        raise SimulatorError(
            "expand brings too few or too many children",
            expected=f"{n} of each, observations {out.shape} {out.dtype}",
            got=f"{sorted(lengths)}, observations {children.observations.shape} {children.observations.dtype}",
        )
    if out.tobytes() != children.observations.tobytes():
        raise SimulatorError("expand ignores `out`", remedy="write the observations there when it is given")
    if not all(isinstance(key, bytes) for key in children.keys):
        raise SimulatorError("keys are wrong", expected="bytes", got=type(children.keys[0]).__name__)
    return children


def check_live_world(stop: Stop) -> None:
    """The live world goes on after many expansions as if there had been none, its randomness included."""
    sim, plan = stop.sim, stop.plan(2 * AHEAD)
    expected = play(sim, plan)
    stop.go_back()
    before = generators.states_of(sim)
    packed, root = sim.pack(sim.save()), sim.branch(stop.state, seed=5)
    for _ in range(3):
        _expand(sim, [root] * sim.num_actions, list(range(sim.num_actions)))
    stray = generators.moved(before, generators.states_of(sim))
    seen = sim.observe().tobytes() != stop.observation.tobytes() or sim.pack(sim.save()) != packed
    if stray or seen or difference(expected, play(sim, plan)):
        raise SimulatorError(
            "expand moves the live world",
            got=", ".join(stray) or "another state after it than before",
            remedy="expand in a twin (see `twin`), or save the live world before and restore it after",
        )


def check_branch(stop: Stop) -> None:
    """A tree must not know what the live world will draw."""
    sim, plan = stop.sim, stop.plan()
    before = generators.states_of(sim)
    play(sim, plan)
    drawn_from = generators.moved(before, generators.states_of(sim))
    packed = sim.pack(stop.state)
    branches = [sim.branch(stop.state, seed) for seed in range(SEEDS)]
    if sim.pack(stop.state) != packed:
        raise SimulatorError("branch changes the state it is given", remedy="return another state")
    if sim.pack(branches[1]) != sim.pack(sim.branch(stop.state, 1)):
        raise SimulatorError("branch gives different states for the same seed", remedy="draw from `seed` alone")
    if drawn_from and all(sim.pack(branch) == packed for branch in branches):
        raise SimulatorError(
            "branch leaves the live world's randomness in the tree, which then foresees what the live world will draw",
            got=f"steps draw from {', '.join(drawn_from)}",
            remedy="override branch: give the state a generator made from `seed`",
        )
    for branch in branches:
        sim.restore(branch)
        if sim.observe().tobytes() != stop.observation.tobytes():
            raise SimulatorError(
                "a branch shows something else than its state", remedy="change randomness and nothing else"
            )


def check_keys(stop: Stop) -> None:
    """Children of one depth with equal keys must look alike and go on alike."""
    sim = stop.sim
    level: list[State] = [sim.branch(stop.state, seed=11)]
    for depth in (1, 2, 3):
        pairs = [(state, action) for state in level for action in range(sim.num_actions)]
        if len(pairs) > _LARGEST_LEVEL:
            chosen = stop.rng.choice(len(pairs), _LARGEST_LEVEL, replace=False)
            pairs = [pairs[i] for i in chosen]
        if not pairs:
            break
        children = _expand(sim, [state for state, _ in pairs], [action for _, action in pairs])
        _check_equal_keys(stop, children, depth)
        first = {key: i for i, key in reversed(list(enumerate(children.keys)))}
        level = [children.states[i] for i in sorted(first.values()) if not children.ended[i]]


def _check_equal_keys(stop: Stop, children: Children, depth: int) -> None:
    sim = stop.sim
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for i, key in enumerate(children.keys):
        groups[key].append(i)
    shared = [members for members in groups.values() if len(members) > 1]
    for members in shared[:6]:
        one, other = members[0], members[-1]
        plan = stop.plan()
        if children.ended[one] or children.ended[other]:
            plan = []
        shift = difference(restored(sim, children.states[one], plan), restored(sim, children.states[other], plan))
        if children.observations[one].tobytes() != children.observations[other].tobytes():
            shift = "different observations"
        elif children.ended[one] != children.ended[other]:
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
    check_packing,
    check_twin,
    check_expansion,
    check_live_world,
    check_branch,
    check_keys,
)
"""In this order: the first to complain is nearest to the cause."""
