"""A training run in a directory: started or resumed, watched, saved, and stopped politely.

RUN/config.json         what was asked for
RUN/habits.json         how it is watched and saved
RUN/checkpoints, …      everything, the newest two (see `checkpoint`)
RUN/log.jsonl           episodes, progress and evaluations: the same for the same seed, to the bit
RUN/clock.jsonl         seconds of training by step
RUN/best                the agent with the best evaluation so far
RUN/tensorboard         events
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook import _validation as validation
from adalook._interrupts import SignalGuard
from adalook.errors import ArgumentError, FileError
from adalook.learning.agents.base import Agent
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.runs.callbacks import Checkpoints, PeriodicEvaluation, Reporter, Stateful
from adalook.learning.runs.checkpoint import Checkpoint, RunDirectory, warn
from adalook.learning.runs.config_file import DESCRIPTION, read_description, write_description
from adalook.learning.runs.loggers import ProgressLine, RunLog, Sink, TensorBoard
from adalook.learning.runs.options import Habits, read_habits, write_habits
from adalook.learning.training import Round

KINDS: dict[str, type[Agent]] = {kind.kind: kind for kind in (DQN, QLDQN)}
LAST_EPISODES = 50
"""How many the score of a run is the mean of."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    seconds: float
    """Of training."""
    interrupted: bool
    """By Ctrl-C or SIGTERM, before its end."""
    scored_episodes: int
    """Up to `LAST_EPISODES`, those since the run was last started or resumed."""
    mean_score: float | None
    """Of these; None if there was none."""
    checkpoint: Path
    prior_steps: int = 0
    """Of the prior, if it was stopped in its training: the agent has taken none then."""


def load_agent(directory: Path | str, env: Any = None) -> Agent:
    """The agent of a run, of whatever kind, as its newest checkpoint has it."""
    return _kind(read_description(Path(directory))).load(directory, env)


def start(directory: Path, agent: Agent) -> None:
    """Make a new run of an untrained agent; an old one is never overwritten."""
    if (directory / DESCRIPTION).exists():
        raise FileError(f"{directory} holds a run already", remedy=f"go on with --resume {directory}, or choose anew")
    _ = agent.trainer  # a memory or a prior that cannot be is refused before anything is written
    with RunDirectory(directory):
        write_description(directory, agent.describe())


def go_on(
    directory: Path,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    habits: Habits | None = None,
    env: Any = None,
    agent: Agent | None = None,
    report: Callable[[str], None] = warn,
) -> Outcome:
    """Train the agent of a run until it has taken so many steps, or trained for so many seconds, in all.

    It goes on from the newest checkpoint if there is one. Ctrl-C and SIGTERM save a checkpoint and end it.

    Args:
        directory: of a run that `start` made.
        steps: None: no limit.
        seconds: of training; None: no limit.
        habits: the run keeps them; None: those that it has kept, else the usual ones, without a line of progress.
        env: the world, if it has no name.
        agent: what `start` was given, to spare making it again.
        report: hears about a checkpoint that could not be read.
    """
    last_step, last_second = checked_ends(steps, seconds)
    description = read_description(directory)
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(RunDirectory(directory))
        agent = _kind(description).described(description, env) if agent is None else agent
        newest = run.load_newest(report)
        if newest is not None and "agent" not in newest.state:
            raise FileError(
                f"{directory} holds only what an agent plays by",
                expected="the directory of the run itself, with all that it learns from",
                remedy=f"go on with its parent: --resume {directory.parent}",
            )
        habits = habits or read_habits(directory) or Habits(progress=False)
        write_habits(directory, habits)
        session = _Session(run, agent, newest, habits, (last_step, last_second), stack)
        stopped = stack.enter_context(SignalGuard())
        rounds = agent.rounds()
        while agent.step < last_step and agent.trainer.seconds < last_second and not stopped:
            session.hear(next(rounds))
        return session.end(interrupted=bool(stopped))


def checked_ends(steps: int | None, seconds: float | None) -> tuple[float, float]:
    """The step and the second that training ends with; None: not because of it."""
    if steps is None and seconds is None:
        raise ArgumentError("training needs an end", expected="steps, seconds or both")
    return (
        np.inf if steps is None else validation.integer(1).validate("the number of steps to train for", steps),
        np.inf if seconds is None else validation.positive.validate("the time to train for, in seconds,", seconds),
    )


def _prior_steps(agent: Agent) -> int:
    """How far the prior is, while it is in training; 0 when it is over, and if there is none."""
    prior = agent.prior_agent if isinstance(agent, QLDQN) else None
    return 0 if prior is None else prior.step


class _Session:
    """Everyone who listens, from a start or a resumption to the end. What must be closed is left to `stack`."""

    def __init__(
        self,
        run: RunDirectory,
        agent: Agent,
        newest: Checkpoint | None,
        habits: Habits,
        ends: tuple[float, float],
        stack: contextlib.ExitStack,
    ) -> None:
        if newest is not None:
            agent.restore(newest)
        self._agent = agent
        self._scores: deque[float] = deque(maxlen=LAST_EPISODES)
        log = stack.enter_context(contextlib.closing(RunLog(run.path)))
        sinks: list[Sink] = [log]
        reporter = Reporter(sinks, habits.report_period_steps, _prior_steps(agent) or agent.step)
        self._parts: dict[str, Stateful] = {"log": log, "report": reporter}
        self._listeners: list[Callable[[Round], None]] = [reporter]
        self._parts["evaluation"] = evaluation = PeriodicEvaluation(
            agent,
            sinks,
            period_steps=habits.evaluation_period_steps,
            episodes=habits.evaluation_episodes,
            directory=run.path / "best",
        )
        self._listeners.append(evaluation)
        self._go_back_to(newest, log)
        if habits.tensorboard:
            board = TensorBoard(run.path / "tensorboard", agent.step, _prior_steps(agent))
            sinks.append(stack.enter_context(contextlib.closing(board)))
        if habits.progress:
            sinks.append(stack.enter_context(ProgressLine(*ends)))
        self._checkpoints = Checkpoints(
            run,
            agent,
            self._parts,
            period_steps=habits.checkpoint_period_steps,
            period_seconds=habits.checkpoint_period_seconds,
        )

    def _go_back_to(self, newest: Checkpoint | None, log: RunLog) -> None:
        """Take up listeners where the newest checkpoint left them; without one, what was logged is void.

        Those it knows nothing of begin anew: all of them, if it is what `Agent.save` wrote.
        """
        if newest is None:
            log.load_state({"log": 0, "clock": 0})
            return
        known = newest.state.get("consumers", {})
        for name, part in self._parts.items():
            if name in known:
                part.load_state(known[name])

    def hear(self, done: Round) -> None:
        """Pass a round on."""
        if done.phase == "agent":
            self._scores.extend(episode.score for episode in done.episodes)
        for listener in self._listeners:
            listener(done)
        self._checkpoints(done)

    def end(self, *, interrupted: bool) -> Outcome:
        """Save and sum up."""
        return Outcome(
            self._agent.step,
            self._agent.trainer.seconds,
            interrupted,
            len(self._scores),
            float(np.mean(self._scores)) if self._scores else None,
            self._checkpoints.save(),
            _prior_steps(self._agent),
        )


def _kind(description: dict[str, Any]) -> type[Agent]:
    kind = KINDS.get(description["agent"])
    if kind is None:
        raise FileError("the run is of an unknown agent", expected=" or ".join(KINDS), got=description["agent"])
    return kind
