"""Fifty rounds of looking ahead leave the live env as it was."""

from __future__ import annotations

import numpy as np
import pytest

from adalook.simulators.base import Simulator
from tests.simulators.cases import SIMULATORS, make


def look_ahead(sim: Simulator, rounds: int) -> None:
    actions = list(range(sim.num_actions))
    for seed in range(rounds):
        root = sim.save() if seed % 2 else sim.reseed(sim.save(), seed)
        children = sim.expand([root] * len(actions), actions)
        alive = [
            child for child, terminated in zip(children.states, children.terminated, strict=True) if not terminated
        ][:1]
        sim.expand(alive, actions[: len(alive)])


def next_steps(sim: Simulator, actions: list[int]) -> list[tuple[bytes, float, float, bool, bool]]:
    seen = []
    for action in actions:
        t = sim.step(action)
        seen.append((t.observation.tobytes(), t.reward, t.raw_reward, t.terminated, t.episode_over))
        if t.episode_over:
            seen.append((sim.reset().tobytes(), 0.0, 0.0, False, False))
    return seen


@pytest.mark.parametrize("name", SIMULATORS)
def test_next_200_steps_are_those_of_a_clone_that_never_looked_ahead(name: str) -> None:
    sim, clone = make(name), make(name)
    rng = np.random.default_rng(4)
    warm_up, after = ([int(a) for a in rng.integers(sim.num_actions, size=n)] for n in (25, 200))
    for env in (sim, clone):
        env.reset(seed=9)
        next_steps(env, warm_up)
    look_ahead(sim, rounds=50)
    assert next_steps(sim, after) == next_steps(clone, after)
    assert sim.pack(sim.save()) == clone.pack(clone.save())
