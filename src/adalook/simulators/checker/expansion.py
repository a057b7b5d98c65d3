"""Checks of `expand` and `expand_leaves`: children are what restoring and stepping bring, whatever is beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators.base import Children, Simulator, State
from adalook.simulators.checker.probes import Stop, packed
from adalook.simulators.checker.rollouts import difference, play

_FUTURE = 4
"""Steps for which a child and the live world are played side by side."""
_PLAYED_ON = 3
"""Children of one state that are played on."""
_LARGEST_BATCH = 24


def expanded(sim: Simulator, states: list[State], actions: list[int]) -> Children:
    """Expand into an array of our own, and look at the result from outside."""
    n = len(states)
    out = np.zeros((n, *sim.observation_shape), sim.observation_dtype)
    children = sim.expand(states, actions, out=out)
    _check_sizes(sim, children, n, "expand")
    lengths = {len(children.states), len(children.keys)}
    if lengths != {n}:
        raise SimulatorError(
            "expand brings too few or too many children", expected=f"{n} of each", got=f"{sorted(lengths)}"
        )
    if out.tobytes() != children.observations.tobytes():
        raise SimulatorError("expand ignores `out`", remedy="write the observations there when it is given")
    if not all(isinstance(key, bytes) for key in children.keys):
        raise SimulatorError("keys are wrong", expected="bytes", got=type(children.keys[0]).__name__)
    return children


def _check_sizes(sim: Simulator, children: Children, n: int, method: str) -> None:
    lengths = {len(children.rewards), len(children.terminated), len(children.observations)}
    shape, dtype = (n, *sim.observation_shape), sim.observation_dtype
    if lengths != {n} or children.observations.shape != shape or children.observations.dtype != dtype:
        raise SimulatorError(
            f"{method} brings too few or too many children",
            expected=f"{n} of each, observations {shape} {dtype}",
            got=f"{sorted(lengths)}, observations {children.observations.shape} {children.observations.dtype}",
        )


def check_expansion(stop: Stop) -> None:
    """Children are what restoring and stepping gives, in any order, and expanding changes no state."""
    sim = stop.sim
    actions = [*range(sim.num_actions), *stop.plan(2)]
    for root in (stop.state, sim.reseed(stop.state, seed=3)):
        before = packed(sim, root)
        children = expanded(sim, [root] * len(actions), actions)
        kept = children.observations.copy()
        family = [packed(sim, child) for child in children.states]
        again = expanded(sim, [root] * len(actions), actions[::-1])
        if children.observations.tobytes() != kept.tobytes():
            raise SimulatorError(
                "the observations of an expansion change with the next one",
                remedy="return arrays that are not used again",
            )
        if packed(sim, root) != before or [packed(sim, child) for child in children.states] != family:
            raise SimulatorError(
                "expanding one state changes another",
                remedy="copy what steps change in place, when saving and restoring",
            )
        played_on = stop.rng.permutation(len(actions))[:_PLAYED_ON]
        for i, action in enumerate(actions):
            mirrored = len(actions) - 1 - i
            if not _same_child(children, i, again, mirrored) or packed(sim, again.states[mirrored]) != family[i]:
                raise SimulatorError(
                    "expanding the same state and action twice gives different children",
                    remedy="let expand depend on states and actions alone: draw from the state's own randomness",
                )
            sim.restore(root)
            _check_against_step(stop, children, i, action, plan=stop.plan(_FUTURE) if i in played_on else [])


def _check_against_step(stop: Stop, children: Children, i: int, action: int, plan: list[int]) -> None:
    """Child i must be where `action` takes the live world, and go on as that does."""
    sim = stop.sim
    transition = sim.step(action)
    if shift := difference([_row(transition)], [_child_row(children, i, transition)]):
        raise SimulatorError(
            f"expand and step disagree about action {action}",
            got=shift,
            remedy="expand must bring what restore and step bring",
        )
    if transition.episode_over:
        return
    saved = packed(sim, sim.save())
    future = play(sim, plan)
    sim.restore(children.states[i])
    if sim.observe().tobytes() != transition.observation.tobytes():
        fault = "it shows something else"
    elif shift := difference(future, play(sim, plan)):
        fault = shift
    elif packed(sim, children.states[i]) != saved:
        fault = "another state, packed: its randomness, perhaps"
    else:
        return
    raise SimulatorError(
        f"the state of a child is not the one that step leads to by action {action}",
        got=fault,
        remedy="let expand return what save would after the step, randomness moved on included",
    )


def check_batches(stops: list[Stop], endings: list[tuple[State, int]]) -> None:
    """A batch of different states must bring what each alone brings, with and without `out`, leaves included.

    Args:
        stops: places along a walk.
        endings: (state, action) pairs that ended an episode.
    """
    sim, rng = stops[0].sim, stops[0].rng
    pairs = [(stop.state, action) for stop in stops for action in rng.permutation(sim.num_actions)[:2].tolist()]
    pairs += [(sim.reseed(stop.state, seed=7), stop.plan(1)[0]) for stop in stops]
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[:_LARGEST_BATCH]]
    chosen += endings[:4]
    states, actions = [state for state, _ in chosen], [action for _, action in chosen]
    together = expanded(sim, states, actions)
    for i, (state, action) in enumerate(chosen):
        alone, twice = expanded(sim, [state], [action]), expanded(sim, [state], [action])
        same = _same_child(together, i, alone, 0)
        same &= packed(sim, together.states[i]) == packed(sim, alone.states[0])
        if alone.keys == twice.keys:  # or keys that never repeat, which is allowed
            same &= together.keys[i] == alone.keys[0]
        if not same:
            raise SimulatorError(
                "expanding several states at once brings something else than each alone",
                got=f"another child of state {i} of {len(chosen)} and action {action}",
                remedy="states[i], actions[i] and child i belong together",
            )
    for state, action in endings[:4]:
        sim.restore(state)
        _check_against_step(stops[0], expanded(sim, [state], [action]), 0, action, plan=[])
    _check_variants(sim, states, actions, together)


def _check_variants(sim: Simulator, states: list[State], actions: list[int], expected: Children) -> None:
    n = len(states)
    room = np.zeros((n, *sim.observation_shape), sim.observation_dtype)
    variants = {
        "expand without `out`": sim.expand(states, actions),
        "expand_leaves": sim.expand_leaves(states, actions, out=room),
        "expand_leaves without `out`": sim.expand_leaves(states, actions),
    }
    for name, children in variants.items():
        _check_sizes(sim, children, n, name)
        wrong = [part for part in ("observations", "rewards", "terminated") if not _equal(children, expected, part)]
        if wrong:
            raise SimulatorError(
                f"{name} disagrees with expand", got=f"other {' and '.join(wrong)}", remedy="all must bring the same"
            )
    if room.tobytes() != expected.observations.tobytes():
        raise SimulatorError("expand_leaves ignores `out`", remedy="write the observations there when it is given")


def _equal(one: Children, other: Children, part: str) -> bool:
    return bool(np.asarray(getattr(one, part)).tobytes() == np.asarray(getattr(other, part)).tobytes())


def _row(transition: Any) -> tuple[bytes, float, bool]:
    return transition.observation.tobytes(), transition.reward, transition.terminated


def _child_row(children: Children, i: int, transition: Any) -> tuple[bytes, float, bool]:
    """A child as a step would show it; a child of a truncated step may be called ended, since it cannot be expanded."""
    truncated = transition.episode_over and not transition.terminated
    terminated = transition.terminated if truncated else bool(children.terminated[i])
    return children.observations[i].tobytes(), float(children.rewards[i]), terminated


def _same_child(one: Children, i: int, other: Children, j: int) -> bool:
    return bool(
        one.observations[i].tobytes() == other.observations[j].tobytes()
        and one.rewards[i] == other.rewards[j]
        and one.terminated[i] == other.terminated[j]
    )
