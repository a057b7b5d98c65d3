"""A training run as its page shows it: what was asked for, what was logged, and what the agent was seen to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adalook.report.data.run_log import RunLog
from adalook.report.data.state_gallery import Album

AGENTS = {"dqn": "DQN", "qldqn": "QL-DQN"}


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """One run, ready to be shown."""

    name: str
    """Tells it from the others on the page."""
    description: Mapping[str, Any]
    """RUN/config.json"""
    changed: Mapping[str, tuple[Any, Any]]
    """Settings that differ from the preset of the world's family: (this run's, the preset's)."""
    log: RunLog
    album: Album | None
    """What the agent was seen to do; None: `reason` says why it was not."""
    reason: str = ""

    @property
    def env(self) -> str:
        return self.description.get("env") or "a world without a name"

    @property
    def agent(self) -> str:
        """Such as QL-DQN, or DQN of depth 2."""
        name = AGENTS.get(self.description["agent"], str(self.description["agent"]))
        depth = self.description.get("depth", 0)
        return f"{name} of depth {depth}" if depth else name

    @property
    def title(self) -> str:
        return f"{self.agent} on {self.env}"

    @property
    def seconds(self) -> float | None:
        """Of training up to the last entry of the clock."""
        return float(self.log.clock.seconds[-1]) if self.log.clock else None

    @property
    def steps_per_second(self) -> float | None:
        if not self.seconds:
            return None
        return float(self.log.clock.steps[-1]) / self.seconds

    @property
    def depths(self) -> list[int]:
        """All that were used in training, ascending."""
        return sorted({depth for progress in self.log.progress for depth in progress.depths})
