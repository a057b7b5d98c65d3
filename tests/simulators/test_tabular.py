"""An MDP as a simulator: moves, rewards and probabilities are the model's."""

from __future__ import annotations

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError
from adalook.simulators.tabular import TabularSimulator, TabularState


def test_a_deterministic_model_moves_as_it_says() -> None:
    mdp = al.MDP(rewards=[[0.0, 1.0], [2.0, 0.0]], transitions=[[0, 1], [1, 0]], discount=0.9)
    sim = TabularSimulator(mdp, start=1)
    assert sim.reset(seed=0).tolist() == [1]
    children = sim.expand([sim.save()] * 2, [0, 1])
    assert children.observations.tolist() == [[1], [0]]
    assert children.rewards.tolist() == [2.0, 0.0]
    assert not children.terminated.any()
    step = sim.step(1)
    assert (step.observation.tolist(), step.reward, step.terminated, step.episode_over) == ([0], 0.0, False, False)


def test_reseeded_states_follow_the_models_probabilities() -> None:
    row = [0.5, 0.3, 0.2]
    mdp = al.MDP(rewards=np.zeros((3, 1)), transitions=np.tile(row, (3, 1, 1)), discount=0.9)
    sim = TabularSimulator(mdp, start=0)
    sim.reset(seed=0)
    draws = 4000
    children = sim.expand([sim.reseed(sim.save(), seed) for seed in range(draws)], [0] * draws)
    shares = np.bincount(children.observations.ravel(), minlength=3) / draws
    assert np.abs(shares - row).max() < 4 * 0.5 / np.sqrt(draws)  # four standard deviations


def test_live_steps_follow_the_models_chances() -> None:
    row = [0.1, 0.9]
    sim = TabularSimulator(al.MDP(np.zeros((2, 1)), np.tile(row, (2, 1, 1)), 0.9), start=0)
    sim.reset(seed=1)
    seen = [int(sim.step(0).observation[0]) for _ in range(4000)]
    assert abs(np.mean(seen) - 0.9) < 4 * 0.3 / np.sqrt(4000)


def test_nodes_of_one_depth_share_their_randomness() -> None:
    sim = TabularSimulator(al.zoo.garnet(20, 3, 3, seed=0), start=0)
    root = sim.reseed(sim.save(), seed=1)
    level = sim.expand([root] * 3, range(3)).states
    assert len({state.randomness for state in level}) == 1
    assert level[0].randomness != root.randomness


def test_equal_states_of_a_deterministic_model_have_equal_keys_in_any_tree() -> None:
    sim = TabularSimulator(al.zoo.chain(n=5), start=2)
    one, other = (sim.expand([sim.reseed(sim.save(), seed)], [0]).keys for seed in (1, 2))
    assert one == other


def test_starts_are_drawn_evenly() -> None:
    sim = TabularSimulator(al.zoo.chain(n=3))
    sim.reset(seed=0)
    counts = np.bincount([int(sim.reset()[0]) for _ in range(2000)], minlength=5)
    ends = [state for state in range(5) if sim.expand([TabularState(state, sim.save().randomness)], [0]).terminated[0]]
    assert counts[[state for state in range(5) if counts[state]]].min() > 300
    assert (counts == 0).sum() == 1
    assert int(np.argmin(counts)) in ends


def test_start_must_be_a_state() -> None:
    with pytest.raises(ArgumentError, match=r"start is wrong: expected a whole number 0\.\.6, got 7"):
        TabularSimulator(al.zoo.chain(n=5), start=7)


@pytest.mark.parametrize("data", [b"", b"x" * 23, b"\xff" * 24])
def test_damaged_states_are_refused(data: bytes) -> None:
    with pytest.raises(FileError, match="not a packed"):
        TabularSimulator(al.zoo.chain(n=5)).unpack(data)


def test_packing_keeps_all() -> None:
    sim = TabularSimulator(al.zoo.maze(size=8))
    state: TabularState = sim.reseed(sim.save(), 5)
    assert sim.unpack(sim.pack(state)) == state


def masked_walk() -> al.MDP:
    """Return a corridor of five cells: left is not offered at the left end; the right end is terminal."""
    left = [0, 0, 1, 2, 4]
    right = [1, 2, 3, 4, 4]
    rewards = np.zeros((5, 2))
    rewards[3, 1] = 1.0
    mask = np.ones((5, 2), bool)
    mask[0, 0] = False
    return al.MDP(rewards, np.stack([left, right], axis=1), 0.9, mask=mask)


def test_an_action_that_is_not_offered_acts_like_one_that_is() -> None:
    sim = TabularSimulator(masked_walk(), start=0)
    sim.reset(seed=0)
    assert sim.masked
    assert sim.action_masks(np.array([[0], [1]])).tolist() == [[False, True], [True, True]]
    children = sim.expand([sim.save()] * 2, [0, 1])
    assert children.observations.tolist() == [[1], [1]]
    assert children.rewards.tolist() == [0.0, 0.0]


def test_terminal_states_end_episodes_and_a_limit_truncates_them() -> None:
    sim = TabularSimulator(masked_walk(), start=2, max_episode_steps=3)
    sim.reset(seed=0)
    sim.step(1)
    end = sim.step(1)
    assert (end.observation.tolist(), end.reward, end.terminated, end.episode_over) == ([4], 1.0, True, True)
    sim.reset()
    steps = [sim.step(action) for action in (0, 1, 0)]
    assert [step.episode_over for step in steps] == [False, False, True]
    assert not steps[-1].terminated


def test_states_with_a_limit_survive_packing() -> None:
    sim = TabularSimulator(masked_walk(), start=2, max_episode_steps=3)
    sim.reset(seed=0)
    sim.step(0)
    sim.restore(sim.unpack(sim.pack(sim.save())))
    assert [sim.step(action).episode_over for action in (1, 0)] == [False, True]


def test_starts_are_never_terminal() -> None:
    sim = TabularSimulator(masked_walk())
    assert {int(sim.reset(seed=seed)[0]) for seed in range(100)} == {0, 1, 2, 3}
