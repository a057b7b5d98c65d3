"""How a run is watched and saved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Habits:
    """Nothing of this changes what is learned."""

    report_period_steps: int = 1_000
    """Agent steps between lines of progress in the log."""
    evaluation_period_steps: int = 50_000
    """Agent steps between evaluations."""
    evaluation_episodes: int = 10
    """Episodes per evaluation; 0: no evaluations."""
    checkpoint_period_steps: int = 1_000_000
    """Agent steps between checkpoints."""
    checkpoint_period_seconds: float = 300.0
    """Seconds between checkpoints."""
    tensorboard: bool = True
    """Write events for TensorBoard."""
    progress: bool = True
    """Show a live line on standard error, if that is a terminal."""
