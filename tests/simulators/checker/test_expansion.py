"""The checker finds faults of `expand`, and passes simulators that are faithful."""

from __future__ import annotations

import pickle
import zlib
from typing import Any

import numpy as np
import pytest

from adalook.errors import ArgumentError, SimulatorError
from adalook.simulators.base import Children, Transition
from adalook.simulators.checker.check import check_simulator
from adalook.simulators.gym.simulator import GymSimulator
from tests.simulators.cases import WindyWalk
from tests.simulators.gym.test_simulator import Counter, Part


def changed(children: Children, **parts: Any) -> Children:
    return Children(**{**vars(children), **parts})


class FirstForAll(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        return super().expand([states[0]] * len(states), actions, out)


class ChildrenAreParents(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        return changed(super().expand(states, actions, out), states=list(states))


class ChildrenKeepRandomStream(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = super().expand(states, actions, out)
        kept = [(*child[:2], state[2]) for child, state in zip(children.states, states, strict=True)]
        return changed(children, states=kept)


class ShiftsRewards(WindyWalk):
    """Only in batches of different states."""

    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = super().expand(states, actions, out)
        mixed = len(set(map(repr, states))) > 1
        return changed(children, rewards=np.roll(children.rewards, 1)) if mixed else children


class ShiftsKeys(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = super().expand(states, actions, out)
        mixed = len(set(map(repr, states))) > 1
        return changed(children, keys=children.keys[1:] + children.keys[:1]) if mixed else children


class LeavesPayNothing(WindyWalk):
    def expand_leaves(self, states: Any, actions: Any, out: Any = None) -> Any:
        return changed(self.expand(states, actions, out), states=[], keys=[], rewards=np.zeros(len(states)))


class LeavesNeverEnd(WindyWalk):
    def expand_leaves(self, states: Any, actions: Any, out: Any = None) -> Any:
        return changed(self.expand(states, actions, out), states=[], keys=[], terminated=np.zeros(len(states), bool))


class LeavesAreBlind(WindyWalk):
    def expand_leaves(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = self.expand(states, actions, out)
        children.observations[...] = 0
        return children


class LeavesIgnoreOut(WindyWalk):
    def expand_leaves(self, states: Any, actions: Any, out: Any = None) -> Any:
        return self.expand(states, actions)


class NeedsOut(WindyWalk):
    def expand(self, states: Any, actions: Any, out: Any = None) -> Any:
        children = super().expand(states, actions, out)
        if out is None:
            children.observations[...] = 0
        return children


class CompressedPickle(WindyWalk):
    def pack(self, state: Any) -> bytes:
        return zlib.compress(pickle.dumps(state))

    def unpack(self, data: bytes) -> Any:
        return pickle.loads(zlib.decompress(data))


class OldPickle(WindyWalk):
    def pack(self, state: Any) -> bytes:
        return pickle.dumps(state, 0)

    def unpack(self, data: bytes) -> Any:
        return pickle.loads(data)


class SlowPickle(WindyWalk):
    """The one in Python."""

    def pack(self, state: Any) -> bytes:
        return bytes(pickle._dumps(state))  # type: ignore[attr-defined]

    def unpack(self, data: bytes) -> Any:
        return pickle._loads(data)  # type: ignore[attr-defined]


class PacksSometimes(WindyWalk):
    def pack(self, state: Any) -> bytes:
        if state[0] > 4:
            raise ArgumentError("too far")
        return bytes(super().pack(state))


STATE_OF_A_CHILD = "the state of a child is not the one that step leads to by action"
TOGETHER = "expanding several states at once gives other children than each alone"
FAULTS = {
    FirstForAll: TOGETHER,
    ChildrenAreParents: f"{STATE_OF_A_CHILD} .*it shows something else",
    ChildrenKeepRandomStream: f"{STATE_OF_A_CHILD} ",
    ShiftsRewards: TOGETHER,
    ShiftsKeys: TOGETHER,
    LeavesPayNothing: "expand_leaves disagrees with expand: got other rewards",
    LeavesNeverEnd: "expand_leaves disagrees with expand: got other terminated",
    LeavesAreBlind: "expand_leaves disagrees with expand: got other observations",
    LeavesIgnoreOut: "expand_leaves ignores `out`",
    NeedsOut: "expand without `out` disagrees with expand: got other observations",
    CompressedPickle: "pack uses pickle",
    OldPickle: "pack uses pickle",
    SlowPickle: "pack uses pickle",
    PacksSometimes: "some states can be packed and others cannot",
}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_each_fault_is_named(kind: Any) -> None:
    with pytest.raises(SimulatorError, match=FAULTS[kind]):
        check_simulator(kind())


class HiddenSide(WindyWalk):
    """Faithful: one of two ends pays, as drawn at reset; steps draw nothing."""

    side = 0

    def reset(self, seed: int | None = None) -> Any:
        super().reset(seed)
        self.side, self.place = int(self.rng.integers(2)), 0
        return self.observe()

    def step(self, action: int) -> Any:
        self.place += action - 1
        terminated = abs(self.place) >= 3
        reward = float((self.place > 0) == bool(self.side)) if terminated else 0.0
        return Transition(self.observe(), reward, reward, terminated=terminated, episode_over=terminated)

    def save(self) -> Any:
        return *super().save(), self.side

    def restore(self, state: Any) -> None:
        super().restore(state[:3])
        self.side = state[3]

    def reseed(self, state: Any, seed: int) -> Any:
        return *super().reseed(state[:3], seed), state[3]


def test_what_reset_drew_is_no_secret() -> None:
    check_simulator(HiddenSide())


class IdleDice(HiddenSide):
    """Draws in each step, too, what never shows."""

    def step(self, action: int) -> Any:
        self.rng.random()
        return super().step(action)


def test_draws_that_never_show_break_no_isolation() -> None:
    check_simulator(IdleDice())


def test_simulators_without_packing_are_checked_without_it() -> None:
    part = Part()
    part.chooses = min  # a function cannot be written down
    sim = GymSimulator(Counter(part))
    sim.reset(seed=0)
    with pytest.raises(ArgumentError, match="cannot be packed"):
        sim.pack(sim.save())
    check_simulator(sim)
