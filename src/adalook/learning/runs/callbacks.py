"""Callbacks of the training loop: progress reports, evaluations and checkpoints.

Each is called with every `Round`; none of them changes what is learned. Those that must survive a restart have `state`
and `load_state`, which checkpoints save and restore.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, Protocol

from adalook.learning.agents.base import Agent
from adalook.learning.evaluation import Evaluation
from adalook.learning.runs.directory import RunDirectory, write_run_config
from adalook.learning.runs.loggers import Logger
from adalook.learning.runs.progress import ProgressStatistics
from adalook.learning.training import Round


class Stateful(Protocol):
    """An object whose state is saved in checkpoints."""

    def state(self) -> dict[str, Any]:
        """Return the state as plain data and arrays."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""


class EverySteps:
    """A schedule that is due whenever the steps pass a multiple of `period`.

    Steps alone decide, so a resumed run has the same schedule.
    """

    def __init__(self, period: int, first_step: int = 0) -> None:
        self._period = period
        self.last_step = first_step

    def due(self, step: int) -> bool:
        """Return whether a multiple of the period lies between the last call's step and this one."""
        before, self.last_step = self.last_step, step
        return step // self._period > before // self._period


class EverySeconds:
    """A schedule that is due when `period` seconds have passed since it was last due."""

    def __init__(self, period: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._period, self._clock, self._last = period, clock, clock()

    def due(self) -> bool:
        """Return whether the period has passed."""
        now = self._clock()
        if now - self._last < self._period:
            return False
        self._last = now
        return True


class ProgressCallback:
    """Log every finished episode and, every `period_steps` steps, statistics of the rounds since the last ones.

    The last round of the prior's training closes its statistics, so that none mix two phases.
    """

    def __init__(self, loggers: Sequence[Logger], period_steps: int, first_step: int = 0) -> None:
        self._loggers, self._schedule = loggers, EverySteps(period_steps, first_step)
        self._statistics = ProgressStatistics()

    def __call__(self, done: Round) -> None:
        self._statistics.add(done)
        for episode in done.episodes:
            for logger in self._loggers:
                logger.episode(done.step, episode, done.phase)
        due = self._schedule.due(done.step)
        if due or done.last_of_phase:
            self.at_end()
        if done.last_of_phase:
            self._schedule.last_step = 0  # the agent counts its own steps

    def at_end(self) -> None:
        """Log statistics of the rounds that are in no summary yet, if there are any."""
        summary = self._statistics.summarize()
        if summary is not None:
            for logger in self._loggers:
                logger.progress(summary)

    def state(self) -> dict[str, Any]:
        return {"statistics": self._statistics.state(), "last_step": self._schedule.last_step}

    def load_state(self, state: dict[str, Any]) -> None:
        self._statistics.load_state(state["statistics"])
        self._schedule.last_step = index(state["last_step"])


EVALUATION_SEEDS = 1_000_000
"""Added to the seed of a run for its evaluations. RUN/best was chosen on these episodes; `adalook evaluate` plays
others, unless it is asked for them."""


class EvaluationCallback:
    """Evaluate the agent every `period_steps` steps, and save the best one so far.

    Args:
        agent: what is evaluated, in environments of its own.
        loggers: what the results are sent to.
        period_steps: agent steps between evaluations.
        episodes: episodes per evaluation; 0: no evaluations, and the best score so far is kept.
        directory: where the best agent is saved; None: nowhere.
    """

    def __init__(
        self,
        agent: Agent,
        loggers: Sequence[Logger],
        *,
        period_steps: int,
        episodes: int,
        directory: Path | None = None,
    ) -> None:
        self._agent, self._loggers, self._episodes = agent, loggers, episodes
        self._directory = directory
        self._schedule = EverySteps(period_steps, agent.step)
        self.best_score: float | None = None
        self.last: tuple[int, Evaluation] | None = None
        """The step and the result of the last evaluation since the run was started or resumed."""

    def __call__(self, done: Round) -> None:
        if done.phase == "agent" and self._schedule.due(done.step) and self._episodes:
            self._evaluate(done.step)

    def at_end(self, step: int) -> Evaluation | None:
        """Return the evaluation of the agent as training leaves it; None if there are no evaluations.

        It is logged but, unless it is the first, does not compete for the best: a run that goes on from its last
        checkpoint shall not differ from one that never stopped.
        """
        if not self._episodes:
            return None
        if self.last is None or self.last[0] != step:
            self._evaluate(step, may_be_best=self.best_score is None)
        assert self.last is not None
        return self.last[1]

    def _evaluate(self, step: int, may_be_best: bool = True) -> None:
        evaluation = self._agent.evaluate(self._episodes, seed=EVALUATION_SEEDS + self._agent.seed)
        for logger in self._loggers:
            logger.evaluation(step, evaluation)
        if may_be_best:
            self._keep_best(step, evaluation)
        self.last = step, evaluation

    def _keep_best(self, step: int, evaluation: Evaluation) -> None:
        if self.best_score is None or evaluation.mean > self.best_score:
            self.best_score = evaluation.mean
            if self._directory is not None:
                with RunDirectory(self._directory) as run:
                    write_run_config(self._directory, self._agent.run_config())
                    run.save(step, {"policy": self._agent.policy_state(), "score": evaluation.mean})

    def state(self) -> dict[str, Any]:
        return {"best_score": self.best_score, "last_step": self._schedule.last_step}

    def load_state(self, state: dict[str, Any]) -> None:
        self.best_score = None if state["best_score"] is None else float(state["best_score"])
        self._schedule.last_step = index(state["last_step"])


class CheckpointCallback:
    """Save the agent and the other callbacks every so many steps or seconds, whichever comes first.

    Args:
        run: the directory that checkpoints are written to.
        agent: what is saved.
        callbacks: saved as well, by name.
        period_steps: agent steps between checkpoints.
        period_seconds: seconds between checkpoints.
    """

    def __init__(
        self,
        run: RunDirectory,
        agent: Agent,
        callbacks: Mapping[str, Stateful],
        *,
        period_steps: int,
        period_seconds: float,
    ) -> None:
        self._run, self._agent, self._callbacks = run, agent, callbacks
        self._steps, self._seconds = EverySteps(period_steps, agent.step), EverySeconds(period_seconds)

    def __call__(self, done: Round) -> None:
        if any([self._steps.due(done.step), self._seconds.due()]):  # a list: both schedules are asked each time
            self.save()

    def save(self) -> Path:
        """Save now and return the checkpoint's path."""
        state = {
            "agent": self._agent.state(),
            "callbacks": {name: callback.state() for name, callback in self._callbacks.items()},
        }
        return self._run.save(self._agent.step, state)
