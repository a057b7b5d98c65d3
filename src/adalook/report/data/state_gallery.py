"""States that an agent met in some episodes, each with the depth it looked ahead there.

A `StateGallery` watches every decision of an evaluation. It keeps a small image of each state, so that the frames that
an observation is stacked from can be freed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adalook._pictures import Pixels, state_image, thumbnail


class WatchedDecision(Protocol):
    """The part of an agent's decision that the gallery reads."""

    @property
    def action(self) -> int: ...

    @property
    def depth(self) -> int: ...

    @property
    def distances(self) -> Mapping[int, float]: ...


class Rendered(Protocol):
    """An environment that may have a picture of its state."""

    def render(self) -> np.ndarray[Any, Any] | None:
        """Return a picture (height, width, 3), or None."""


class GalleryFull(Exception):
    """Raised when a gallery is shown more decisions than it may hold; ends the evaluation."""


@dataclass(frozen=True, eq=False)
class GalleryState:
    """A state with the decision that was taken in it."""

    episode: int
    step: int
    """Of the episode, from 0."""
    depth: int
    action: int
    distances: dict[int, float]
    """By depth, as far as the rule measured them."""
    image: Pixels | str
    """Of the state, or its numbers as text where there is nothing to draw."""


class StateGallery:
    """A watcher of evaluations that keeps the states: `agent.evaluate(4, watcher=gallery)`.

    Args:
        agent: which agent it is, in words for a caption.
        action_names: (num_actions,) or none.
        max_decisions: with the next one `GalleryFull` is raised, since episodes may be longer than a report is worth.
    """

    def __init__(self, agent: str, *, action_names: Sequence[str] = (), max_decisions: int) -> None:
        self.agent = agent
        self.states: list[GalleryState] = []
        self.cut_short = False
        """Whether the last episodes were not seen to their end."""
        self._action_names, self._max_decisions = tuple(action_names), max_decisions
        self._steps: dict[int, int] = {}

    needs_env = True

    def __call__(
        self, episode: int, observation: np.ndarray[Any, Any], decision: WatchedDecision, env: Rendered | None = None
    ) -> None:
        """Keep a state as its environment renders it, if it does, else as it is observed."""
        if len(self.states) >= self._max_decisions:
            self.cut_short = True
            raise GalleryFull
        step = self._steps.get(episode, 0)
        self._steps[episode] = step + 1
        rendered = None if env is None else env.render()
        image = state_image(observation) if rendered is None else thumbnail(rendered)
        distances = dict(decision.distances)
        self.states.append(GalleryState(episode, step, decision.depth, decision.action, distances, image))

    @property
    def depths(self) -> list[int]:
        """The depths that were chosen, ascending."""
        return sorted({state.depth for state in self.states})

    @property
    def episodes(self) -> list[int]:
        """The numbers of the episodes, ascending."""
        return sorted(self._steps)

    def action_name(self, action: int) -> str:
        """Return the environment's name for an action, else its number."""
        return self._action_names[action] if action < len(self._action_names) else f"action {action}"

    def examples(self, depth: int, count: int) -> list[GalleryState]:
        """Return up to `count` states of a depth, evenly spread over those seen, no two of which look the same."""
        different: dict[bytes | str, GalleryState] = {}
        for state in self.states:
            if state.depth == depth:
                image = state.image
                different.setdefault(image if isinstance(image, str) else image.tobytes(), state)
        found = list(different.values())
        chosen = np.linspace(0, len(found) - 1, min(count, len(found))).round().astype(int)
        return [found[index] for index in chosen]
