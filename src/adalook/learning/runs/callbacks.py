"""What listens to the training loop. Each is called with every round, in turn, and none of them changes the run.

Those with a memory have `state` and `load_state`: their part of a checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from adalook.learning.agents.base import Agent
from adalook.learning.evaluation import Evaluation
from adalook.learning.runs.checkpoint import RunDirectory
from adalook.learning.runs.config_file import write_description
from adalook.learning.runs.loggers import Sink
from adalook.learning.runs.progress import Tally
from adalook.learning.training import Round


class Stateful(Protocol):
    """Has a part in a checkpoint."""

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""


class EverySteps:
    """Due whenever the steps pass a multiple of `period`: steps alone decide, so a resumed run has the same dates."""

    def __init__(self, period: int, first_step: int = 0) -> None:
        self._period = period
        self.last_step = first_step

    def due(self, step: int) -> bool:
        """Whether a date lies between the last call and this one."""
        before, self.last_step = self.last_step, step
        return step // self._period > before // self._period


class EverySeconds:
    """Due when `period` seconds have passed since it was last due. For things that do not change the run."""

    def __init__(self, period: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._period, self._clock, self._last = period, clock, clock()

    def due(self) -> bool:
        """Whether it is time."""
        now = self._clock()
        if now - self._last < self._period:
            return False
        self._last = now
        return True


class Reporter:
    """Tells sinks about each episode, and sums up the rounds in between every `period` steps.

    What the prior's training brought is summed up when that is over: no summary is of two phases.
    """

    def __init__(self, sinks: Sequence[Sink], period_steps: int, first_step: int = 0) -> None:
        self._sinks, self._schedule = sinks, EverySteps(period_steps, first_step)
        self._tally = Tally()

    def __call__(self, done: Round) -> None:
        self._tally.add(done)
        for episode in done.episodes:
            for sink in self._sinks:
                sink.episode(done.step, episode, done.phase)
        due = self._schedule.due(done.step)
        if due or done.last_of_phase:
            summary = self._tally.close(done)
            for sink in self._sinks:
                sink.progress(summary)
        if done.last_of_phase:
            self._schedule.last_step = 0  # the agent counts its own steps

    def state(self) -> dict[str, Any]:
        return {"tally": self._tally.state(), "last_step": self._schedule.last_step}

    def load_state(self, state: dict[str, Any]) -> None:
        self._tally.load_state(state["tally"])
        self._schedule.last_step = state["last_step"]


EVALUATION_SEEDS = 1_000_000
"""Added to the seed of a run for its evaluations. RUN/best was chosen on these episodes; `adalook evaluate` plays
others, unless it is asked for them."""


class PeriodicEvaluation:
    """Evaluates every `period` steps, in worlds of their own, and keeps the best agent so far.

    Args:
        agent: what is evaluated.
        episodes: 0: none is played, and the best score so far is remembered.
        directory: where the best is kept; None: nowhere.
    """

    def __init__(
        self,
        agent: Agent,
        sinks: Sequence[Sink],
        *,
        period_steps: int,
        episodes: int,
        directory: Path | None = None,
    ) -> None:
        self._agent, self._sinks, self._episodes = agent, sinks, episodes
        self._directory = directory
        self._schedule = EverySteps(period_steps, agent.step)
        self.best_score: float | None = None

    def __call__(self, done: Round) -> None:
        if done.phase == "agent" and self._schedule.due(done.step) and self._episodes:
            evaluation = self._agent.evaluate(self._episodes, seed=EVALUATION_SEEDS + self._agent.seed)
            for sink in self._sinks:
                sink.evaluation(done.step, evaluation)
            self._keep_best(done.step, evaluation)

    def _keep_best(self, step: int, evaluation: Evaluation) -> None:
        if self.best_score is None or evaluation.mean > self.best_score:
            self.best_score = evaluation.mean
            if self._directory is not None:
                with RunDirectory(self._directory) as run:
                    write_description(self._directory, self._agent.describe())
                    run.save(step, {"policy": self._agent.policy_state(), "score": evaluation.mean})

    def state(self) -> dict[str, Any]:
        return {"best_score": self.best_score, "last_step": self._schedule.last_step}

    def load_state(self, state: dict[str, Any]) -> None:
        self.best_score = state["best_score"]
        self._schedule.last_step = state["last_step"]


class Checkpoints:
    """Saves everything every so many steps and seconds.

    Args:
        run: where to.
        agent: what is saved.
        parts: consumers with a memory, by name, which is saved as well.
        period_steps: None: steps do not matter.
        period_seconds: None: time does not matter.
    """

    def __init__(
        self,
        run: RunDirectory,
        agent: Agent,
        parts: Mapping[str, Stateful],
        *,
        period_steps: int | None,
        period_seconds: float | None,
    ) -> None:
        self._run, self._agent, self._parts = run, agent, parts
        self._steps = None if period_steps is None else EverySteps(period_steps, agent.step)
        self._seconds = None if period_seconds is None else EverySeconds(period_seconds)

    def __call__(self, done: Round) -> None:
        due = [
            self._steps is not None and self._steps.due(done.step),
            self._seconds is not None and self._seconds.due(),
        ]
        if any(due):
            self.save()

    def save(self) -> Path:
        """Save now."""
        state = {
            "agent": self._agent.state(),
            "consumers": {name: part.state() for name, part in self._parts.items()},
        }
        return self._run.save(self._agent.step, state)
