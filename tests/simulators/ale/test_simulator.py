"""Atari games: the usual preprocessing over ALE, faithful states, keys that merge what is equal and nothing else."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from ale_py import ALEInterface, LoggerMode, roms

from adalook.errors import ArgumentError, FileError
from adalook.simulators.ale.simulator import AtariSimulator


def bare(rom: str) -> Any:
    """ALE itself, just reset."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", 0)
    ale.loadROM(roms.get_rom_path(rom))
    ale.reset_game()
    return ale


@pytest.mark.parametrize(
    ("game", "rom"), [("Tutankham", "tutankham"), ("Solaris", "solaris"), ("JourneyEscape", "journey_escape")]
)
def test_observations_are_what_the_usual_wrappers_make_of_ale(game: str, rom: str) -> None:
    """Frame by frame against ALE and OpenCV, whose means differ from exact ones by one, seldom."""
    sim, ale = AtariSimulator(f"ALE/{game}-v5", noop_max=0), bare(rom)
    stack = [cv2.resize(ale.getScreenGrayscale(), (84, 84), interpolation=cv2.INTER_AREA)] * 4
    assert np.abs(sim.reset(seed=0).astype(int) - stack).max() <= 1
    actions = ale.getMinimalActionSet()
    assert sim.num_actions == len(actions)
    differing = 0
    for action in np.random.default_rng(0).integers(len(actions), size=100):
        score = sum(ale.act(actions[action]) for _ in range(3))
        before = ale.getScreenGrayscale()
        score += ale.act(actions[action])
        frame = np.maximum(before, ale.getScreenGrayscale())
        stack = [*stack[1:], cv2.resize(frame, (84, 84), interpolation=cv2.INTER_AREA)]
        transition = sim.step(int(action))
        apart = np.abs(transition.observation.astype(int) - stack)
        assert apart.max() <= 1
        differing += int(np.count_nonzero(apart[-1]))
        assert (transition.raw_reward, transition.terminated) == (score, ale.game_over())
    assert differing < 100 * 84 * 84 / 500


def test_trees_see_what_the_live_env_comes_to_see() -> None:
    sim = AtariSimulator("ALE/VideoPinball-v5")
    sim.reset(seed=0)
    state = sim.save()
    for action in np.random.default_rng(1).integers(sim.num_actions, size=40):
        children = sim.expand([state] * 2, [int(action), 0])
        transition = sim.step(int(action))
        assert np.array_equal(children.observations[0], transition.observation)
        assert children.rewards[0] == transition.reward
        state = children.states[0]
    assert sim.pack(state) == sim.pack(sim.save())


def play_until(sim: AtariSimulator, wanted: str, limit: int = 3000) -> Any:
    rng = np.random.default_rng(0)
    for _ in range(limit):
        before, action = sim.save(), int(rng.integers(sim.num_actions))
        transition = sim.step(action)
        if getattr(transition, wanted):
            return before, action, transition
        assert not transition.episode_over
    raise AssertionError(f"nothing {wanted} in {limit} steps")


def test_a_lost_life_ends_only_if_asked_for() -> None:
    sim = AtariSimulator("ALE/Breakout-v5", life_loss_ends=True)
    sim.reset(seed=0)
    before, action, transition = play_until(sim, "terminated")
    assert not transition.episode_over
    assert sim.expand([before], [action]).terminated.tolist() == [True]
    lenient = AtariSimulator("ALE/Breakout-v5")
    assert lenient.expand([before], [action]).terminated.tolist() == [False]
    lenient.reset(seed=0)
    _, _, transition = play_until(lenient, "terminated")
    assert transition.episode_over


def test_rewards_are_clipped_and_scores_are_not() -> None:
    sim = AtariSimulator("ALE/SpaceInvaders-v5", clip_rewards=True)
    sim.reset(seed=0)
    before, action, transition = play_until(sim, "reward")
    assert abs(transition.reward) == 1
    assert abs(transition.raw_reward) > 1
    assert sim.expand([before], [action]).rewards.tolist() == [transition.reward]
    assert AtariSimulator("ALE/SpaceInvaders-v5").expand([before], [action]).rewards.tolist() == [transition.raw_reward]


def test_the_time_limit_truncates_the_live_env_and_no_tree() -> None:
    sim = AtariSimulator("ALE/Pong-v5", noop_max=0, max_frames=12)
    sim.reset(seed=0)
    assert [sim.step(0).episode_over for _ in range(2)] == [False, False]
    root = sim.save()
    last = sim.step(0)
    assert (last.episode_over, last.terminated) == (True, False)
    child = sim.expand([root], [0])
    assert child.terminated.tolist() == [False]
    assert sim.expand(child.states, [0]).terminated.tolist() == [False]


def test_starts_differ_by_seed_and_repeat_with_it() -> None:
    sim = AtariSimulator("ALE/Berzerk-v5")
    starts = [sim.pack((sim.reset(seed=seed), sim.save())[1]) for seed in (1, 2, 3, 1)]
    assert len(set(starts)) == 3
    assert starts[0] == starts[3]


def test_a_resumed_env_begins_its_next_episodes_as_the_first_would_have() -> None:
    sim, resumed = AtariSimulator("ALE/Solaris-v5"), AtariSimulator("ALE/Solaris-v5")
    sim.reset(seed=0)
    for action in range(10):
        sim.step(action)
    resumed.restore(resumed.unpack(sim.pack(sim.save())))
    for _ in range(3):
        assert np.array_equal(sim.reset(), resumed.reset())
        sim.step(1)
        resumed.step(1)
        assert sim.pack(sim.save()) == resumed.pack(resumed.save())


def test_nodes_merge_exactly_where_nothing_came_out_different() -> None:
    """Without paddles, memory and frames tell which of the ways through a tree made a difference."""
    sim = AtariSimulator("ALE/VideoPinball-v5")
    sim.reset(seed=0)
    for _ in range(40):
        sim.step(0)
    emulator, nine = bare("video_pinball"), list(range(9))
    first = sim.expand([sim.save()] * 9, nine)
    children = sim.expand([state for state in first.states for _ in nine], nine * 9)
    looks = []
    for state in children.states:
        emulator.restoreState(state.machine)
        looks.append(emulator.getRAM().tobytes() + b"".join(state.frames))
    assert len(set(children.keys)) == len(set(looks)) == len(set(zip(children.keys, looks, strict=True)))
    assert 9 < len(set(children.keys)) < 81


def test_memory_and_screens_alone_would_merge_what_is_different() -> None:
    """Pong's paddle has a position outside RAM: equal RAM and frames, unequal futures, hence unequal keys."""
    sim = AtariSimulator("ALE/Pong-v5", noop_max=0)
    sim.reset(seed=0)
    emulator, rng = bare("pong"), np.random.default_rng(0)
    for _ in range(60):
        for action in rng.integers(sim.num_actions, size=5):
            sim.step(int(action))
        level = [sim.save()]
        for _ in range(2):
            children = sim.expand([s for s in level for _ in range(6)], list(range(6)) * len(level))
            level = children.states
        seen: dict[bytes, bytes] = {}
        for state, key in zip(level, children.keys, strict=True):
            emulator.restoreState(state.machine)
            look = emulator.getRAM().tobytes() + b"".join(state.frames)
            if seen.setdefault(look, key) != key:
                return
    raise AssertionError("no two states with equal RAM and frames and different keys were found")


def test_sticky_actions_are_refused_with_the_reason() -> None:
    with pytest.raises(ArgumentError, match="restoring an ALE state does not bring back the previous action"):
        AtariSimulator("ALE/Pong-v5", sticky=0.25)


def test_unknown_and_two_player_games_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"ALE has no game 'ALE/Braekout-v5': expected ALE/Breakout-v5"):
        AtariSimulator("ALE/Braekout-v5")
    with pytest.raises(ArgumentError, match="ALE has no game 'ALE/Combat-v5'"):
        AtariSimulator("ALE/Combat-v5")  # given to ALE it would end the process


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ArgumentError, match="frame_skip is wrong: expected a whole number >= 1, got 0"):
        AtariSimulator("ALE/Pong-v5", frame_skip=0)


def test_observations_go_where_they_are_wanted() -> None:
    sim = AtariSimulator("ALE/Pong-v5")
    sim.reset(seed=0)
    wide = np.zeros((2, 8, 84, 84), np.uint8)
    children = sim.expand([sim.save()] * 2, [0, 2], out=wide[:, ::2])  # not in one piece
    assert children.observations.base is wide
    assert np.array_equal(children.observations, sim.expand([sim.save()] * 2, [0, 2]).observations)
    assert not wide[:, 1::2].any()
    assert sim.expand([], []).observations.shape == (0, 4, 84, 84)


@pytest.mark.parametrize(
    "damage",
    [lambda d: b"", lambda d: d[:-1], lambda d: b"XXXX" + d[4:], lambda d: d + b"x", lambda d: d[:-9] + b"x" * 9],
)
def test_damaged_states_are_refused(damage: Any) -> None:
    sim = AtariSimulator("ALE/Pong-v5")
    with pytest.raises(FileError, match="not a packed Atari state"):
        sim.unpack(damage(sim.pack(sim.save())))


def test_states_of_another_game_are_refused() -> None:
    pong, breakout = AtariSimulator("ALE/Pong-v5"), AtariSimulator("ALE/Breakout-v5")
    with pytest.raises(FileError, match="not a packed Atari state of breakout"):
        breakout.unpack(pong.pack(pong.save()))
