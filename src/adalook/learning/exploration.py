"""Exploration where nothing is rewarded: a bonus for what looks new, and an end to belief in the network.

Where no reward is in sight all paths are worth the same, up to errors of the network, and an agent walks in circles.
Leaves that look new are then worth a little more than others (`Novelty`):

    bonus · min(1, d / FULL)        d = min over the pictures remembered of the mean difference of their grey levels

in pictures of 12 × 12 blocks. A reward, or another episode, makes it forget: as long as an agent scores, all leaves are
about as new, and the bonus decides nothing.

A network that values one picture above all that rollouts lead to keeps an agent in front of it for ever. So after i
steps without a reward a decision is made as a search without a network makes it (`Patience`), with probability

    doubt = min(1, i / patience)        steps that leave the picture as it was count tenfold

Search alone goes somewhere else by chance, and a reward brings the belief back.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.spatial.distance import cdist

from adalook._arrays import FloatArray
from adalook.errors import ArgumentError
from adalook.simulators.base import Observations, Simulator, Transition

BLOCKS = 12
"""Of a picture, down and across."""
FULL = 8.0
"""Mean difference of grey levels, of 255, from which on a picture is as new as can be."""
ALIKE = 2.0
"""Pictures that differ by less from one that is remembered are not worth remembering."""
MOST_PICTURES = 200
"""The oldest are forgotten first."""

Picture = np.ndarray[Any, np.dtype[np.uint8]]
"""(BLOCKS²,) grey levels."""


class Novelty:
    """Remembers what live environments have shown since their last rewards, and values leaves that look otherwise.

    Each environment has a memory of its own, so that results do not depend on which process holds which of them.

    >>> import adalook as al
    >>> env, novelty = al.make_simulator("ALE/Breakout-v5"), Novelty(bonus=0.5)
    >>> first = env.reset(seed=0)
    >>> novelty.see(env, first, anew=True)
    >>> novelty.bonuses(env, np.stack([first, 255 - first]))
    array([0. , 0.5])
    """

    def __init__(self, bonus: float) -> None:
        self.bonus = bonus
        self._seen: WeakKeyDictionary[Simulator, deque[Picture]] = WeakKeyDictionary()

    def see(self, env: Simulator, observation: np.ndarray[Any, Any], *, anew: bool) -> None:
        """Remember what a live environment shows; `anew` forgets what it showed before."""
        if anew:
            self.forget(env)
        pictures, seen = _pictures(observation[None]), self._of(env)
        if not seen or self._distances(env, pictures)[0] >= ALIKE:
            seen.append(pictures[0])

    def forget(self, env: Simulator) -> None:
        """Forget all that an environment has shown."""
        self._seen.pop(env, None)

    def bonuses(self, env: Simulator, observations: Observations) -> FloatArray:
        """Return what leaves (n, frames, H, W) below the state of an environment are worth for being new: (n,)."""
        if not self._of(env):
            return np.full(len(observations), self.bonus)
        return np.asarray(self.bonus * np.minimum(1.0, self._distances(env, _pictures(observations)) / FULL))

    def _distances(self, env: Simulator, pictures: np.ndarray[Any, Any]) -> FloatArray:
        """Return how far pictures (n, BLOCKS²) are from the nearest that is remembered: (n,)."""
        differences: FloatArray = cdist(pictures, np.stack(self._of(env)), "cityblock")
        return np.asarray(differences.min(axis=1) / pictures.shape[1])

    def _of(self, env: Simulator) -> deque[Picture]:
        return self._seen.setdefault(env, deque(maxlen=MOST_PICTURES))

    def state(self, env: Simulator) -> list[Any]:
        """Return what is remembered of an environment, as plain data."""
        return [picture.tolist() for picture in self._of(env)]

    def load_state(self, env: Simulator, state: list[Any]) -> None:
        """Go on from what `state` gave for the same environment."""
        self._seen[env] = deque((np.array(picture, np.uint8).reshape(BLOCKS**2) for picture in state), MOST_PICTURES)


def check_pictures(sim: Simulator) -> None:
    """Raise unless a simulator shows stacks of grey pictures."""
    shape = sim.observation_shape
    if len(shape) != 3 or min(shape[1:]) < BLOCKS or sim.observation_dtype != np.uint8:
        raise ArgumentError(
            "config: novelty_bonus compares pictures",
            expected=f"observations (frames, H, W) of bytes, {BLOCKS} × {BLOCKS} at least, as Atari games have them",
            got=f"{np.dtype(sim.observation_dtype).name} {shape}",
            remedy="leave novelty_bonus at 0",
        )


def _pictures(observations: Observations) -> np.ndarray[Any, Any]:
    """Return the newest frames of observations (n, frames, H, W) as means of blocks: (n, BLOCKS²) grey levels."""
    frames = observations[:, -1]
    height, width = frames.shape[1] // BLOCKS, frames.shape[2] // BLOCKS
    blocks = frames[:, : height * BLOCKS, : width * BLOCKS].reshape(-1, BLOCKS, height, BLOCKS, width)
    return np.asarray(blocks.mean(axis=(2, 4)).astype(np.uint8).reshape(len(frames), BLOCKS**2))


STILL_PICTURE = 10
"""So many steps without a point is a step counted for that does not even change the picture."""


def idle_steps(before: int, observation: np.ndarray[Any, Any], transition: Transition) -> int:
    """Return for how many steps nothing has happened after one more; `observation` was shown before it.

    Args:
        before: the same, before this step.
    """
    if transition.raw_reward != 0.0:
        return 0
    return before + _idle_steps(observation, transition.observation)


def _idle_steps(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> int:
    """Return what one step without a reward counts for."""
    return STILL_PICTURE if np.array_equal(before, after) else 1


class Patience:
    """Counts the steps without a reward of live environments, each for itself.

    Args:
        steps: without a reward, after which the network is no longer believed.

    >>> import adalook as al
    >>> env, patience = al.make_simulator(al.zoo.chain(n=4, discount=0.9)), Patience(steps=40)
    >>> picture = env.reset(seed=0)
    >>> [patience.doubt(env, picture, anew=False) for _ in range(3)]
    [0.0, 0.25, 0.5]
    >>> patience.forget(env)
    >>> patience.doubt(env, picture, anew=False)
    0.0
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._idle: WeakKeyDictionary[Simulator, int] = WeakKeyDictionary()
        self._shown: WeakKeyDictionary[Simulator, np.ndarray[Any, Any]] = WeakKeyDictionary()

    def doubt(self, env: Simulator, observation: np.ndarray[Any, Any], *, anew: bool) -> float:
        """Return with what probability the network is not asked now; `anew` begins to count again."""
        if anew or env not in self._shown:
            self._idle[env] = 0
        else:
            self._idle[env] += _idle_steps(self._shown[env], observation)
        self._shown[env] = observation
        return min(1.0, self._idle[env] / self._steps)

    def forget(self, env: Simulator) -> None:
        """Begin to count again after the step that is taken now, which is rewarded."""
        self._shown.pop(env, None)

    def state(self, env: Simulator) -> dict[str, Any] | None:
        """Return what is remembered of an environment, as plain data."""
        return {"idle": self._idle[env], "shown": self._shown[env]} if env in self._shown else None

    def load_state(self, env: Simulator, state: dict[str, Any] | None) -> None:
        """Go on from what `state` gave for the same environment."""
        if state is not None:
            self._idle[env], self._shown[env] = int(state["idle"]), np.asarray(state["shown"])
