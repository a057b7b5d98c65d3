"""Made-up rounds for the tests of callbacks and loggers."""

from __future__ import annotations

from typing import Any

from adalook.learning.acting import Decision
from adalook.learning.learner import Update
from adalook.learning.training import Episode, Round


def round_of(step: int = 8, **changes: Any) -> Round:
    """Return a made-up round with two decisions, an episode and two updates."""
    defaults: dict[str, Any] = {
        "seconds": 1.0,
        "epsilon": 0.5,
        "decisions": [Decision(0, 1, distances={1: 0.25}, nodes=3, tree_nodes=4), Decision(1, 2, distances={1: 0.75})],
        "episodes": [Episode(3.0, 10)],
        "updates": [Update(0.5, 1.0), Update(1.5, 2.0)],
    }
    return Round(step, **(defaults | changes))
