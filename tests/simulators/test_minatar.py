"""MinAtar's games: as MinAtar plays them, and copied as deepcopy would."""

from __future__ import annotations

import copy
import logging
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from adalook.errors import ArgumentError, FileError
from adalook.simulators.minatar import GAMES, MinAtarSimulator, minatar_ids
from adalook.simulators.randomness import RandomStream


@pytest.fixture(scope="module")
def original() -> Any:
    """MinAtar's own environment; its import grumbles about seaborn."""
    logging.disable(logging.WARNING)
    from minatar import Environment

    logging.disable(logging.NOTSET)
    return Environment


@pytest.mark.parametrize("sticky", [0.0, 0.2])
@pytest.mark.parametrize("game", GAMES)
def test_the_live_env_plays_as_minatar_does(original: Any, game: str, sticky: float) -> None:
    sim = MinAtarSimulator(f"MinAtar/{game}-v1", sticky=sticky)
    env = original(GAMES[game], sticky_action_prob=sticky)
    env.seed(3)
    env.reset()
    assert np.array_equal(sim.reset(seed=3), env.state().transpose(2, 0, 1))
    actions = env.minimal_action_set()
    assert sim.num_actions == len(actions)
    for action in np.random.default_rng(0).integers(len(actions), size=600):
        transition = sim.step(action)
        reward, terminated = env.act(actions[action])
        assert (transition.reward, transition.terminated, transition.episode_over) == (reward, terminated, terminated)
        assert np.array_equal(transition.observation, env.state().transpose(2, 0, 1))
        if terminated:
            env.reset()
            assert np.array_equal(sim.reset(), env.state().transpose(2, 0, 1))


def attributes(game: Any) -> dict[str, Any]:
    """All of a game, in a form that == compares by value; its generator by its state."""
    values = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(game).items()}
    _, words, *rest = game.random.get_state()
    values["random"] = words.tobytes(), rest
    return values


@pytest.mark.parametrize("ramping", [True, False])
@pytest.mark.parametrize("game", GAMES)
def test_copies_equal_deepcopies(game: str, ramping: bool) -> None:
    sim = MinAtarSimulator(game, ramping=ramping)
    sim.reset(seed=1)
    other = MinAtarSimulator(game, ramping=ramping)
    rng = np.random.default_rng(2)
    for _ in range(150):
        deep = copy.deepcopy(sim._live)
        other.restore(sim.save())
        assert attributes(other._live) == attributes(deep)
        action = int(rng.integers(sim.num_actions))
        child = sim.expand([sim.save()], [action])
        deep.random.rand()  # whether to stick
        reward, terminated = deep.act(sim._actions[action])
        other.restore(child.states[0])
        assert attributes(other._live) == attributes(deep)
        assert (child.rewards[0], child.terminated[0]) == (reward, terminated)
        if sim.step(action).episode_over:
            sim.reset()


def test_trees_draw_their_own_randomness() -> None:
    """Live spawns do not show in reseeded states, and states of different seeds spawn differently."""
    sim = MinAtarSimulator("Asterix")
    sim.reset(seed=0)
    traces = set()
    for seed in range(10):
        state, trace = sim.reseed(sim.save(), seed), b""
        for _ in range(15):
            children = sim.expand([state], [0])
            state, trace = children.states[0], trace + children.observations.tobytes()
        traces.add(trace)
    live = b"".join(sim.step(0).observation.tobytes() for _ in range(15))
    assert len(traces) > 5
    assert traces != {live}


def test_a_sticky_step_of_a_reseeded_state_repeats_as_often_as_it_should() -> None:
    sim = MinAtarSimulator("Breakout", sticky=0.3)
    sim.reset(seed=0)
    while sim.save().last_action != 1:  # left
        sim.step(1)
    state = sim.save()
    children = sim.expand([sim.reseed(state, seed) for seed in range(2000)], [2] * 2000)
    repeated = np.mean([child.last_action == 1 for child in children.states])
    assert abs(repeated - 0.3) < 4 * 0.46 / np.sqrt(2000)


def test_the_last_action_keeps_nodes_apart_only_if_actions_stick() -> None:
    for sticky, distinct in ((0.0, 1), (0.1, 2)):
        sim = MinAtarSimulator("MinAtar/Breakout-v0", sticky=sticky)
        sim.reset(seed=0)
        root = sim.reseed(sim.save(), 0)
        children = sim.expand([root] * 2, [2, 4])  # up and down do nothing in Breakout
        assert len(set(children.keys)) == distinct


def test_ids() -> None:
    assert [MinAtarSimulator(name).num_actions for name in minatar_ids()] == [5, 3, 3, 6, 4, 6, 6, 6, 6, 6]
    with pytest.raises(
        ArgumentError, match="MinAtar has no game 'MinAtar/Pong-v1': expected one of MinAtar/Asterix-v1"
    ):
        MinAtarSimulator("MinAtar/Pong-v1")
    with pytest.raises(ArgumentError, match=r"sticky is wrong: expected a number in \[0, 1\], got 2"):
        MinAtarSimulator("Breakout", sticky=2)


def test_damaged_states_are_refused() -> None:
    sim, other = MinAtarSimulator("Breakout"), MinAtarSimulator("Freeway")
    with pytest.raises(FileError, match="not a packed state of the MinAtar game freeway"):
        other.unpack(sim.pack(sim.save()))
    with pytest.raises(FileError, match="damaged"):
        sim.unpack(sim.pack(sim.save())[:-1])


def test_live_states_foresee_and_reseeded_ones_do_not_carry_the_live_generator() -> None:
    sim = MinAtarSimulator("Freeway")
    sim.reset(seed=0)
    assert sim.reseed(sim.save(), 1).randomness == RandomStream.for_tree(1)
    child = sim.expand([sim.save()], [0]).states[0]
    sim.step(0)
    assert sim.pack(sim.save()) == sim.pack(child)


def test_neither_matplotlib_nor_seaborn_is_imported() -> None:
    code = "import sys; from adalook.simulators.minatar import *; MinAtarSimulator('Breakout'); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "matplotlib.pyplot" not in run.stdout.split()
    assert run.stderr == ""
