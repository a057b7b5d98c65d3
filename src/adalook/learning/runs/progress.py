"""Progress statistics: sums over the rounds between two entries of the log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from adalook.learning.training import Round

QUANTILES = (0.1, 0.5, 0.9)
"""Levels of the quantiles of distances that are reported."""


@dataclass(frozen=True)
class ProgressSummary:
    """Statistics of some rounds; everything but `seconds` depends on the seed alone."""

    step: int
    seconds: float
    phase: str
    epsilon: float
    episodes: int
    mean_score: float | None
    """None if no episode ended."""
    mean_episode_steps: float | None
    updates: int
    loss: float | None
    """Mean over updates; None if there was none."""
    mean_value: float | None
    depths: dict[int, int]
    """Number of decisions by the depth they looked ahead."""
    distances: dict[int, tuple[float, ...]]
    """The `QUANTILES` of the distances measured at each depth."""
    merged_share: float | None
    """Share of tree nodes that merging equal states saved; None without trees."""
    staleness: tuple[float, int] | None = None
    """Mean and maximum of the updates that networks which acted were behind; None if none was."""

    def to_plain(self) -> dict[str, Any]:
        """Return the statistics as JSON can hold them, without `seconds`."""
        plain: dict[str, Any] = {
            "step": self.step,
            "phase": self.phase,
            "epsilon": self.epsilon,
            "episodes": self.episodes,
            "mean_score": self.mean_score,
            "mean_episode_steps": self.mean_episode_steps,
            "updates": self.updates,
            "loss": self.loss,
            "mean_value": self.mean_value,
            "depths": {str(depth): count for depth, count in self.depths.items()},
            "distances": {str(depth): list(values) for depth, values in self.distances.items()},
            "merged_share": self.merged_share,
        }
        if self.staleness is not None:
            plain["mean_staleness"], plain["max_staleness"] = self.staleness
        return plain


class ProgressStatistics:
    """Sums over rounds; `summarize` returns their statistics and starts over.

    They are part of checkpoints, so that a run that is killed after its last one still ends with a summary.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._scores: list[float] = []
        self._lengths: list[int] = []
        self._losses: list[float] = []
        self._values: list[float] = []
        self._depths: Counter[int] = Counter()
        self._distances: dict[int, list[float]] = {}
        self._nodes = self._tree_nodes = 0
        self._staleness: list[int] = []
        self._newest: tuple[int, float, str, float] | None = None
        """Step, seconds, phase and ε of the newest round; None: there is none since the last summary."""

    def add(self, done: Round) -> None:
        """Add a round."""
        self._newest = done.step, done.seconds, done.phase, done.epsilon
        self._staleness.append(done.staleness)
        for episode in done.episodes:
            self._scores.append(episode.score)
            self._lengths.append(episode.steps)
        for update in done.updates:
            self._losses.append(update.loss)
            self._values.append(update.mean_value)
        for decision in done.decisions:
            self._depths[decision.depth] += 1
            self._nodes += decision.nodes
            self._tree_nodes += decision.tree_nodes
            for depth, distance in decision.distances.items():
                self._distances.setdefault(depth, []).append(distance)

    def summarize(self) -> ProgressSummary | None:
        """Return the statistics of the rounds since the last call; None if there were none."""
        if self._newest is None:
            return None
        step, seconds, phase, epsilon = self._newest
        summary = ProgressSummary(
            step=step,
            seconds=seconds,
            phase=phase,
            epsilon=epsilon,
            episodes=len(self._scores),
            mean_score=_mean(self._scores),
            mean_episode_steps=_mean(self._lengths),
            updates=len(self._losses),
            loss=_mean(self._losses),
            mean_value=_mean(self._values),
            depths=dict(sorted(self._depths.items())),
            distances={
                depth: tuple(np.quantile(measured, QUANTILES).tolist())
                for depth, measured in sorted(self._distances.items())
            },
            merged_share=1.0 - self._nodes / self._tree_nodes if self._tree_nodes else None,
            staleness=(float(np.mean(self._staleness)), max(self._staleness)) if any(self._staleness) else None,
        )
        self._clear()
        return summary

    def state(self) -> dict[str, Any]:
        """Return the sums so far as plain data."""
        return {
            "scores": list(self._scores),
            "lengths": list(self._lengths),
            "losses": list(self._losses),
            "values": list(self._values),
            "depths": dict(self._depths),
            "distances": {depth: list(measured) for depth, measured in self._distances.items()},
            "nodes": self._nodes,
            "tree_nodes": self._tree_nodes,
            "staleness": list(self._staleness),
            "newest": self._newest,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self._scores, self._losses, self._values = (_floats(state[name]) for name in ("scores", "losses", "values"))
        self._lengths = [index(length) for length in state["lengths"]]
        self._depths = Counter({index(depth): index(count) for depth, count in state["depths"].items()})
        self._distances = {index(depth): _floats(measured) for depth, measured in state["distances"].items()}
        self._nodes, self._tree_nodes = index(state["nodes"]), index(state["tree_nodes"])
        self._staleness = [index(rounds) for rounds in state.get("staleness", ())]
        self._newest = None
        if state.get("newest") is not None:  # checkpoints of before did without
            step, seconds, phase, epsilon = state["newest"]
            seconds, epsilon = _floats([seconds, epsilon])
            self._newest = index(step), seconds, str(phase), epsilon


def _floats(numbers: Iterable[Any]) -> list[float]:
    """Return numbers as floats, or raise ValueError: JSON, which they are reported in, has no infinity."""
    found = [float(number) for number in numbers]
    if not all(map(math.isfinite, found)):
        raise ValueError("statistics that are not finite")
    return found


def _mean(numbers: list[Any]) -> float | None:
    return float(np.mean(numbers)) if numbers else None
