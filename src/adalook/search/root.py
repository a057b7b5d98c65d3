"""Where a search begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook.simulators.base import Simulator, State


@dataclass(frozen=True, eq=False)
class Root:
    """A saved state and what the world shows there.

    The two come together because some worlds cannot show a state right after it was restored (Atari's screen is stale
    until the next step).

    The episode must not be over there. A state alone does not tell, so no search can complain: it would look ahead into
    whatever the world does when it is stepped after its end.
    """

    state: State
    observation: np.ndarray[Any, Any]
    """(*observation_shape)"""

    @classmethod
    def of(cls, sim: Simulator) -> Root:
        """The live world as it is now."""
        return cls(sim.save(), sim.observe())
