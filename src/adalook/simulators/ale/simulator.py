"""Atari games through ale-py, with the usual preprocessing.

One step repeats an action for four frames; the observation is the last four such steps, (4, 84, 84) uint8, newest
last, each the brighter of the step's last two frames in grey (see `frames`). Sticky actions are off: ALE repeats the
action it *played last*, and restoring a state does not bring that action back, so a restored game would go on
differently.

The tree has an emulator of its own, so that the live one is never touched. Right after ALE restores a state its
screen is still the old one until the next frame, so states carry the frames that were seen. ALE's serialised state
holds all that the machine does next (its counters depend only on how many frames were played, and an action leaves no
trace but what it did), hence the key: serialised state and frame stack. RAM alone would not do: paddles have positions
outside it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from adalook._validation import integer, non_negative
from adalook.errors import ArgumentError
from adalook.simulators.ale.emulator import Emulator
from adalook.simulators.ale.frames import SIDE
from adalook.simulators.arguments import check_actions, check_states, checked_action
from adalook.simulators.base import Children, Observations, Simulator, Transition
from adalook.simulators.randomness import RandomStream
from adalook.storage.serializer import damaged_error

STACK = 4
_PIXELS = SIDE * SIDE
_DIGEST = 16
_HEADER = struct.Struct("<qqQQ")
_MAGIC = b"ATR1"


class AtariState(NamedTuple):
    """A saved state of a game."""

    machine: Any
    """An `ale_py.ALEState`."""
    frames: tuple[bytes, ...]
    """The last four, each (84, 84) uint8, oldest first."""
    digests: tuple[bytes, ...]
    """Digests of the frames, in the same order."""
    lives: int
    played: int
    """Frames since the episode began."""
    starts: RandomStream
    """What the next reset draws its number of no-ops from."""
    owner: str
    """The name of the game, since ALE may accept the state of another one."""


class AtariSimulator(Simulator):
    """A simulator of an Atari 2600 game with its minimal set of actions.

    Args:
        game: such as "ALE/Tutankham-v5".
        frame_skip: frames per step.
        life_loss_ends: a lost life is `terminated`, as in training by the usual rules; the episode goes on.
        noop_max: each episode begins with 1..noop_max frames of doing nothing, drawn anew; 0 for none.
        clip_rewards: rewards are the signs of the scores.
        log_rewards: rewards are sign(score) · ln(1 + |score|) instead, so that more points stay more.
        life_loss_penalty: what a lost life takes from the reward, but not from the score.
        max_frames: an episode is over, but not terminated, after so many frames. Trees look past it.
        sticky: must stay 0; see above.

    >>> sim = AtariSimulator("ALE/Breakout-v5")
    >>> sim.reset(seed=0).shape, sim.num_actions
    ((4, 84, 84), 4)
    """

    observation_shape = (STACK, SIDE, SIDE)
    observation_dtype = np.dtype(np.uint8)
    stochastic = False

    def __init__(
        self,
        game: str,
        *,
        frame_skip: int = 4,
        life_loss_ends: bool = False,
        noop_max: int = 30,
        clip_rewards: bool = False,
        log_rewards: bool = False,
        life_loss_penalty: float = 0.0,
        max_frames: int = 108_000,
        sticky: float = 0.0,
    ) -> None:
        if sticky:
            raise ArgumentError(
                f"sticky actions cannot be simulated in {game}",
                expected="sticky=0",
                got=sticky,
                remedy="leave them off: restoring an ALE state does not bring back the previous action, "
                "which a sticky emulator may repeat, so look-ahead would not be faithful",
            )
        integer(min=1).validate("frame_skip", frame_skip)
        integer(min=0).validate("noop_max", noop_max)
        integer(min=1).validate("max_frames", max_frames)
        self._game = game
        self._frame_skip = frame_skip
        self._live = Emulator(game, frame_skip)
        self._owner = f"the Atari game {self._live.rom}"
        self._tree: Emulator | None = None
        self._life_loss_ends = life_loss_ends
        self._noop_max = noop_max
        if clip_rewards and log_rewards:
            raise ArgumentError("rewards are clipped or logarithms, not both", expected="one of the two")
        self._clip_rewards, self._log_rewards = clip_rewards, log_rewards
        self._life_loss_penalty: float = non_negative.validate("life_loss_penalty", life_loss_penalty)
        self._max_frames = max_frames
        self._starts = RandomStream.for_live(None)
        self._frames: tuple[bytes, ...] = ()
        self._digests: tuple[bytes, ...] = ()
        self._lives = 0
        self._played = 0
        self.num_actions = len(self._live.actions)
        self.action_names = tuple(action.name.lower() for action in self._live.actions)
        self._begin(anew=True)

    def _begin(self, anew: bool) -> None:
        """Start an episode; anew: as if the console had just been switched on."""
        noops = 0
        if self._noop_max:
            noops = 1 + self._starts.draws().randint(self._noop_max)
            self._starts = self._starts.next()
        self._live.begin(noops, anew)
        frame = self._live.frame.tobytes()
        self._frames, self._digests = (frame,) * STACK, (_digest(frame),) * STACK
        self._lives, self._played = self._live.lives, noops

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        if seed is not None:
            self._starts = RandomStream.for_live(seed)
        self._begin(anew=seed is not None)
        return self.observe()

    def step(self, action: int) -> Transition:
        emulator = self._live
        score = emulator.play(checked_action(action, self.num_actions))
        frame = emulator.frame.tobytes()
        self._frames, self._digests = (*self._frames[1:], frame), (*self._digests[1:], _digest(frame))
        self._played += self._frame_skip
        lost, self._lives = emulator.lives < self._lives, emulator.lives
        terminated = emulator.episode_over or (lost and self._life_loss_ends)
        reward = self._reward(score, lost or emulator.episode_over)
        episode_over = emulator.episode_over or self._played >= self._max_frames
        return Transition(self.observe(), reward, float(score), terminated=terminated, episode_over=episode_over)

    def _reward(self, score: int, life_lost: bool) -> float:
        """Return the reward of a step that brought `score`."""
        reward = float(score)
        if self._clip_rewards:
            reward = float((score > 0) - (score < 0))
        elif self._log_rewards:
            reward = math.copysign(math.log1p(abs(score)), score)
        return reward - self._life_loss_penalty if life_lost else reward

    def save(self) -> AtariState:
        machine = self._live.save()
        return AtariState(machine, self._frames, self._digests, self._lives, self._played, self._starts, self._owner)

    def restore(self, state: AtariState) -> None:
        check_states([state], AtariState, self._owner)
        self._live.restore(state.machine)
        _, self._frames, self._digests, self._lives, self._played, self._starts, _ = state

    def observe(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(b"".join(self._frames), np.uint8).reshape(self.observation_shape).copy()

    def reseed(self, state: AtariState, seed: int) -> AtariState:
        """Return the state as it is: games draw nothing."""
        del seed
        check_states([state], AtariState, self._owner)
        return state

    def expand_leaves(
        self, states: Sequence[AtariState], actions: Sequence[int], out: Observations | None = None
    ) -> Children:
        return self.expand(states, actions, out, leaves=True)

    def expand(
        self,
        states: Sequence[AtariState],
        actions: Sequence[int],
        out: Observations | None = None,
        *,
        leaves: bool = False,
    ) -> Children:
        """Take `actions[i]` in `states[i]`, for every i; `leaves` have neither states nor keys."""
        check_actions(actions, self.num_actions)
        check_states(states, AtariState, self._owner)
        emulator = self._tree_emulator()
        n = len(states)
        in_place = out is not None and out.flags.c_contiguous and out.dtype == np.uint8
        observations: Observations = (
            out if out is not None and in_place else np.empty((n, *self.observation_shape), np.uint8)
        )
        pixels = observations.data.cast("B") if n else memoryview(b"")
        rewards, terminated = np.empty(n), np.empty(n, bool)
        children: list[AtariState] = []
        for i, (state, action) in enumerate(zip(states, actions, strict=True)):
            emulator.restore(state.machine)
            score = emulator.play(int(action))
            lost = emulator.lives < state.lives
            rewards[i] = self._reward(score, lost or emulator.episode_over)
            terminated[i] = emulator.episode_over or (self._life_loss_ends and lost)
            frame = emulator.frame.tobytes()
            if not leaves:
                children.append(self._child(state, emulator, frame))
            for j, shown in enumerate((*state.frames[1:], frame), STACK * i):
                pixels[j * _PIXELS : (j + 1) * _PIXELS] = shown
        if out is not None and not in_place:
            out[...] = observations
            observations = out
        return Children(children, observations, rewards, terminated, [self.key(child) for child in children])

    def _tree_emulator(self) -> Emulator:
        if self._tree is None:
            self._tree = Emulator(self._game, self._frame_skip)
        return self._tree

    def _child(self, parent: AtariState, emulator: Emulator, frame: bytes) -> AtariState:
        frames = (*parent.frames[1:], frame)
        digests = (*parent.digests[1:], _digest(frame))
        played = parent.played + self._frame_skip
        return AtariState(emulator.save(), frames, digests, emulator.lives, played, parent.starts, self._owner)

    def key(self, state: AtariState) -> bytes:
        """Return a digest of machine and frames; each frame is digested once, when it is made."""
        return sha256(b"".join((state.machine.serialize(), *state.digests))).digest()[:_DIGEST]

    def pack(self, state: AtariState) -> bytes:
        check_states([state], AtariState, self._owner)
        header = _HEADER.pack(state.lives, state.played, *state.starts)
        content = b"".join((header, *state.frames, state.machine.serialize()))
        return _MAGIC + self._owned_digest(content) + content

    def _owned_digest(self, content: bytes) -> bytes:
        """Return a digest that is not that of another game."""
        return _digest(self._live.rom.encode() + content)

    def unpack(self, data: bytes) -> AtariState:
        """Return the state that `pack` packed; the digest is checked first, since ALE trusts what it is given."""
        if not isinstance(data, bytes):
            raise damaged_error(f"Atari state of {self._live.rom}", "bytes", f"a {type(data).__name__}")
        start = len(_MAGIC) + _DIGEST
        frames_at, machine_at = _HEADER.size, _HEADER.size + STACK * _PIXELS
        content = data[start:]
        if data[:start] != _MAGIC + self._owned_digest(content) or len(content) <= machine_at:
            raise damaged_error(
                f"Atari state of {self._live.rom}", "what pack made for this game", f"{len(data)} other bytes"
            )
        lives, played, stream, step = _HEADER.unpack_from(content)
        frames = tuple(content[at : at + _PIXELS] for at in range(frames_at, machine_at, _PIXELS))
        machine = self._tree_emulator().unpack(content[machine_at:])
        digests = tuple(map(_digest, frames))
        return AtariState(machine, frames, digests, lives, played, RandomStream(stream, step), self._owner)

    def close(self) -> None:
        self._tree = None
        super().close()


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()[:_DIGEST]
