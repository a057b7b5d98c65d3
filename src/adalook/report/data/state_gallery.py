"""What an agent was seen to do in some episodes: which states it looked how far ahead in.

An `Album` is shown every decision of an evaluation. It keeps a small picture of each state, so the frames that an
observation is stacked from are not held on to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adalook.report.figures.search_view import PLANES

Pixels = np.ndarray[Any, Any]
"""(height, width, 3) uint8"""


class Choice(Protocol):
    """What is asked of a decision."""

    @property
    def action(self) -> int: ...

    @property
    def depth(self) -> int: ...

    @property
    def distances(self) -> Mapping[int, float]: ...


class EnoughSeen(Exception):
    """Raised to whoever shows an album more than it was to hold."""


@dataclass(frozen=True, eq=False)
class Sight:
    """One decision."""

    episode: int
    step: int
    """Of the episode, from 0."""
    depth: int
    action: int
    distances: dict[int, float]
    """By depth, as far as the rule measured them."""
    picture: Pixels | str
    """Of the state, or its numbers as text where there is nothing to draw."""


class Album:
    """Watches an evaluation, up to `most` decisions: `agent.evaluate(4, watcher=album)`.

    Args:
        whose: which agent it is, for people.
        action_names: (num_actions,) or none.
        most: with the next one `EnoughSeen` is raised, since episodes may be longer than a report is worth.
    """

    def __init__(self, whose: str, *, action_names: Sequence[str] = (), most: int) -> None:
        self.whose = whose
        self.sights: list[Sight] = []
        self.cut_short = False
        """Whether the last episodes were not seen to their end."""
        self._names, self._most = tuple(action_names), most
        self._steps: dict[int, int] = {}

    def __call__(self, episode: int, observation: np.ndarray[Any, Any], decision: Choice) -> None:
        if len(self.sights) >= self._most:
            self.cut_short = True
            raise EnoughSeen
        step = self._steps.get(episode, 0)
        self._steps[episode] = step + 1
        self.sights.append(
            Sight(episode, step, decision.depth, decision.action, dict(decision.distances), picture_of(observation))
        )

    @property
    def depths(self) -> list[int]:
        """Those that were chosen, ascending."""
        return sorted({sight.depth for sight in self.sights})

    @property
    def episodes(self) -> list[int]:
        return sorted(self._steps)

    def action_name(self, action: int) -> str:
        """What the world calls an action, else its number."""
        return self._names[action] if action < len(self._names) else f"action {action}"

    def examples(self, depth: int, count: int) -> list[Sight]:
        """Up to `count` states of a depth, evenly spread over those seen, no two of which look the same."""
        different: dict[bytes | str, Sight] = {}
        for sight in self.sights:
            if sight.depth == depth:
                picture = sight.picture
                different.setdefault(picture if isinstance(picture, str) else picture.tobytes(), sight)
        found = list(different.values())
        places = np.linspace(0, len(found) - 1, min(count, len(found))).round().astype(int)
        return [found[place] for place in places]


def picture_of(observation: np.ndarray[Any, Any]) -> Pixels | str:
    r"""What a state looks like: the newest of stacked frames in grey, a colour per plane of bits, or numbers.

    >>> picture_of(np.eye(2, dtype=bool)[None])[:, :, 2].tolist()
    [[178, 0], [0, 178]]
    >>> picture_of(np.array([0.25, -1.0]))
    '0.25\n-1'
    """
    if observation.ndim == 3 and observation.max(initial=0) <= 1:
        planes = np.arange(1, len(observation) + 1)[:, None, None]
        topmost = (planes * (observation > 0)).max(axis=0).clip(max=len(PLANES) - 1)
        pixels: Pixels = _PALETTE[topmost]
        return pixels
    if observation.ndim == 3 and observation.dtype == np.uint8:
        return np.repeat(observation[-1][:, :, None], 3, axis=2)
    return "\n".join(f"{number:.3g}" for number in observation.ravel()[:6].tolist())


_PALETTE = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in PLANES], np.uint8)
"""(planes, 3)"""
