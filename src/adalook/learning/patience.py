"""Stalls: for how long nothing has happened, and an agent that believes its network the less, the longer it is.

A network that values one picture above all that rollouts lead to keeps an agent in front of it for ever. So after i
steps without a reward a decision is made as a search without a network makes it, with probability

    doubt = min(1, i / patience)        steps that leave the picture as it was count tenfold

Search alone goes somewhere else by chance, and a reward brings the belief back.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from adalook.simulators.base import Simulator, Transition

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
