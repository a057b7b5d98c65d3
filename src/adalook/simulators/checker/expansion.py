"""Checks of `expand` and `expand_leaves`: a child is what restoring and stepping brings, whatever is beside it."""

from __future__ import annotations

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators.base import Children, Simulator, State
from adalook.simulators.checker.rollouts import Probe, difference, fail_if, packed, rollout

_FUTURE = 4
"""Steps for which a child and the live env are compared."""
_PLAYED_ON = 3
"""Children of one state that are played on."""
_MAX_BATCH = 24


def expand(sim: Simulator, states: list[State], actions: list[int]) -> Children:
    """Expand into an array of our own, and check the form of what comes back."""
    n = len(states)
    out = np.zeros((n, *sim.observation_shape), sim.observation_dtype)
    children = sim.expand(states, actions, out=out)
    _check_sizes(sim, children, n, "expand")
    lengths = {len(children.states), len(children.keys)}
    wrong = lengths != {n}
    fail_if(wrong, "expand returns too few or too many children", expected=f"{n} of each", got=f"{sorted(lengths)}")
    _check_out(out, children, "expand")
    if not all(isinstance(key, bytes) for key in children.keys):
        raise SimulatorError("keys are wrong", expected="bytes", got=type(children.keys[0]).__name__)
    return children


def _check_sizes(sim: Simulator, children: Children, n: int, method: str) -> None:
    lengths = {len(children.rewards), len(children.terminated), len(children.observations)}
    shape, dtype = (n, *sim.observation_shape), sim.observation_dtype
    fail_if(
        lengths != {n} or children.observations.shape != shape or children.observations.dtype != dtype,
        f"{method} returns too few or too many children",
        expected=f"{n} of each, observations {shape} {dtype}",
        got=f"{sorted(lengths)}, observations {children.observations.shape} {children.observations.dtype}",
    )


def _check_out(out: np.ndarray, children: Children, method: str) -> None:
    ignored = out.tobytes() != children.observations.tobytes()
    fail_if(ignored, f"{method} ignores `out`", remedy="write the observations there when it is given")


def check_expansion(probe: Probe) -> None:
    """Check that children are what restoring and stepping gives, in any order, and that no state changes."""
    sim = probe.sim
    actions = [*range(sim.num_actions), *probe.random_actions(2)]
    for root in (probe.state, sim.reseed(probe.state, seed=3)):
        root_data = packed(sim, root)
        children = expand(sim, [root] * len(actions), actions)
        observations = children.observations.copy()
        child_data = [packed(sim, child) for child in children.states]
        again = expand(sim, [root] * len(actions), actions[::-1])
        fail_if(
            children.observations.tobytes() != observations.tobytes(),
            "the observations of an expansion change with the next one",
            remedy="return arrays that are not used again",
        )
        fail_if(
            packed(sim, root) != root_data or [packed(sim, child) for child in children.states] != child_data,
            "expanding one state changes another",
            remedy="copy what steps change in place, when saving and restoring",
        )
        played_on = probe.rng.permutation(len(actions))[:_PLAYED_ON]
        for i, action in enumerate(actions):
            mirrored = len(actions) - 1 - i
            fail_if(
                not _same_child(children, i, again, mirrored) or packed(sim, again.states[mirrored]) != child_data[i],
                "expanding the same state and action twice gives different children",
                remedy="let expand depend on states and actions alone: draw from the state's own randomness",
            )
            sim.restore(root)
            onward = probe.random_actions(_FUTURE) if i in played_on else []
            _check_against_step(sim, children, i, action, onward)


def _check_against_step(sim: Simulator, children: Children, i: int, action: int, onward: list[int]) -> None:
    """Check that child i is where `action` takes the live env, and goes on as that does."""
    transition = sim.step(action)
    stepped = transition.observation.tobytes(), transition.reward, transition.terminated
    # A child of a truncated step may be called terminated, since it cannot be expanded.
    truncated = transition.episode_over and not transition.terminated
    terminated = transition.terminated if truncated else bool(children.terminated[i])
    expanded = children.observations[i].tobytes(), float(children.rewards[i]), terminated
    shift = difference([stepped], [expanded])
    fail_if(
        shift,
        f"expand and step disagree about action {action}",
        got=shift,
        remedy="expand must return what restore and step return",
    )
    if transition.episode_over:
        return
    saved = packed(sim, sim.save())
    future = rollout(sim, onward)
    sim.restore(children.states[i])
    if sim.observe().tobytes() != transition.observation.tobytes():
        fault = "it shows something else"
    elif shift := difference(future, rollout(sim, onward)):
        fault = shift
    else:
        fault = "" if packed(sim, children.states[i]) == saved else "another state, packed: its randomness, perhaps"
    fail_if(
        fault,
        f"the state of a child is not the one that step leads to by action {action}",
        got=fault,
        remedy="let expand return what save would after the step, randomness moved on included",
    )


def check_batches(probes: list[Probe], endings: list[tuple[State, int]]) -> None:
    """Check that a batch of different states brings what each alone brings, with and without `out`, leaves included.

    Args:
        probes: states along a walk.
        endings: (state, action) pairs that terminated.
    """
    sim, rng = probes[0].sim, probes[0].rng
    pairs = [(probe.state, action) for probe in probes for action in rng.permutation(sim.num_actions)[:2].tolist()]
    pairs += [(sim.reseed(probe.state, seed=7), probe.random_actions(1)[0]) for probe in probes]
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[:_MAX_BATCH]] + endings[:4]
    states, actions = [state for state, _ in chosen], [action for _, action in chosen]
    together = expand(sim, states, actions)
    for i, (state, action) in enumerate(chosen):
        alone, twice = expand(sim, [state], [action]), expand(sim, [state], [action])
        same = _same_child(together, i, alone, 0)
        same &= packed(sim, together.states[i]) == packed(sim, alone.states[0])
        if alone.keys == twice.keys:  # or keys that never repeat, which is allowed
            same &= together.keys[i] == alone.keys[0]
        fail_if(
            not same,
            "expanding several states at once gives other children than each alone",
            got=f"another child of state {i} of {len(chosen)} and action {action}",
            remedy="states[i], actions[i] and child i belong together",
        )
    for state, action in endings[:4]:
        sim.restore(state)
        _check_against_step(sim, expand(sim, [state], [action]), 0, action, onward=[])
    _check_variants(sim, states, actions, together)


def _check_variants(sim: Simulator, states: list[State], actions: list[int], expected: Children) -> None:
    """Check `expand_leaves`, and both methods without `out`, against the children that `expand` returned."""
    n = len(states)
    out = np.zeros((n, *sim.observation_shape), sim.observation_dtype)
    variants = {
        "expand without `out`": sim.expand(states, actions),
        "expand_leaves": sim.expand_leaves(states, actions, out=out),
        "expand_leaves without `out`": sim.expand_leaves(states, actions),
    }
    for name, children in variants.items():
        _check_sizes(sim, children, n, name)
        wrong = [
            part
            for part in ("observations", "rewards", "terminated")
            if np.asarray(getattr(children, part)).tobytes() != np.asarray(getattr(expected, part)).tobytes()
        ]
        fail_if(wrong, f"{name} disagrees with expand", got=f"other {' and '.join(wrong)}")
    _check_out(out, expected, "expand_leaves")


def _same_child(one: Children, i: int, other: Children, j: int) -> bool:
    return bool(
        one.observations[i].tobytes() == other.observations[j].tobytes()
        and one.rewards[i] == other.rewards[j]
        and one.terminated[i] == other.terminated[j]
    )
