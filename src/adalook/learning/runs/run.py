"""A training run in a directory: started, resumed, logged, evaluated, saved, and stopped at a round's end.

RUN/config.json         agent, environment, seed and settings
RUN/options.json        how often it logs, evaluates and saves
RUN/checkpoints, …      everything, the newest two (see `directory`)
RUN/log.jsonl           episodes, progress and evaluations: the same for the same seed, to the bit
RUN/clock.jsonl         seconds of training by step
RUN/best                the agent with the best evaluation so far
RUN/tensorboard         events
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook import _validation as validation
from adalook._interrupts import SignalGuard
from adalook.engines.base import Engine
from adalook.errors import ArgumentError, FileError
from adalook.learning.agents.base import Agent, read_run_or_export
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.evaluation import Evaluation
from adalook.learning.runs.callbacks import CheckpointCallback, EvaluationCallback, ProgressCallback, Stateful
from adalook.learning.runs.directory import (
    CONFIG_FILE,
    Checkpoint,
    RunConfig,
    RunDirectory,
    load_newest,
    read_run_config,
    warn_of_damage,
    write_run_config,
)
from adalook.learning.runs.loggers import JsonlLogger, Logger, TensorBoardLogger, progress_logger
from adalook.learning.runs.options import RunOptions, read_options, write_options
from adalook.learning.training import Round

AGENTS: dict[str, type[Agent]] = {agent.kind: agent for agent in (DQN, QLDQN)}
SCORED_EPISODES = 50
"""How many of the last episodes the mean score of a run is taken over."""


@dataclass(frozen=True)
class RunResult:
    """The state in which training in a run directory ended."""

    step: int
    seconds: float
    """Time spent on training, without evaluations and checkpoints."""
    interrupted: bool
    """Whether Ctrl-C or SIGTERM ended it early."""
    scored_episodes: int
    """Up to `SCORED_EPISODES`, of those since the run was last started or resumed."""
    mean_score: float | None
    """Mean score of these; None if there was none."""
    checkpoint: Path
    prior_steps: int = 0
    """Steps of the prior, if training stopped while it was trained; the agent has taken none then."""
    evaluation: Evaluation | None = None
    """Of the agent as training left it; None if it was interrupted or is not evaluated."""
    trained: bool = True
    """Whether there was anything left to train."""


def load_agent(directory: Path | str, env: Any = None) -> Agent:
    """Load the agent of a run, of whatever class, from its newest checkpoint, or an exported agent."""
    run_config, _ = read_run_or_export(Path(directory))
    return _agent_class(run_config).load(directory, env)


def start_run(directory: Path, agent: Agent) -> None:
    """Make the directory of a new run of an untrained agent; an existing run is never overwritten."""
    if (directory / CONFIG_FILE).exists():
        raise FileError(
            f"{directory} holds a run already", remedy=f"go on with --resume {directory}, or choose another directory"
        )
    agent.prepare()  # a replay buffer, a prior or a checkpoint that cannot be is refused before anything is written
    with RunDirectory(directory):
        write_run_config(directory, agent.run_config())


def resume_run(
    directory: Path,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    options: RunOptions | None = None,
    env: Any = None,
    agent: Agent | None = None,
    engine: Engine | None = None,
    callbacks: Sequence[Callable[[Round], bool | None]] = (),
    on_damage: Callable[[str], None] = warn_of_damage,
) -> RunResult:
    """Train the agent of a run, from its newest checkpoint if there is one, up to a number of steps or seconds in all.

    Ctrl-C and SIGTERM finish the round, save a checkpoint and end training.

    Args:
        directory: of a run that `start_run` made.
        steps: agent steps, those before this call included; None: no limit.
        seconds: of training, those before this call included; None: no limit.
        options: kept for later; None: those that the run has kept, else the defaults without a progress bar.
        env: the environment, if it has no name.
        agent: what `start_run` was given, to save making it again.
        engine: where the environments are, whatever the run began with; an agent that is given has its own.
        callbacks: called with each round, beside the run's own; one that returns False ends training.
        on_damage: called with a message if a checkpoint could not be read.
    """
    limits = training_limits(steps, seconds)
    run_config = read_run_config(directory)
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(RunDirectory(directory))
        agent = _agent_class(run_config).from_run_config(run_config, env, engine) if agent is None else agent
        agent.run_directory = directory
        newest = run.load_newest(on_damage)
        if newest is not None and isinstance(newest.state, dict) and "agent" not in newest.state:
            raise FileError(
                f"{directory} holds only the policy of an agent",
                expected="the directory of the run itself, with all that it learns from",
                remedy=f"go on with its parent: --resume {directory.parent}",
            )
        options = options or read_options(directory) or RunOptions(progress=False)
        write_options(directory, options)
        session = _Session(run, agent, newest, options, limits, stack)
        stopped = stack.enter_context(SignalGuard())
        rounds = agent.rounds()
        max_steps, max_seconds = limits
        trained = False
        while agent.step < max_steps and agent.trainer.seconds < max_seconds and not stopped:
            done = next(rounds)
            trained = True
            session.on_round(done)
            answers = [callback(done) for callback in callbacks]
            if any(answer is False for answer in answers):
                break
        return session.finish(trained=trained, interrupted=bool(stopped))


def train_in(
    directory: Path,
    agent: Agent,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    callbacks: Sequence[Callable[[Round], bool | None]] = (),
) -> RunResult:
    """Train an agent for so many more steps or seconds in a run directory: a new one, or the one it was trained in.

    What `Agent.learn(out=…)` does.
    """
    if not (directory / CONFIG_FILE).exists():
        if agent.step:
            agent.save(directory)
        else:
            start_run(directory, agent)
    elif read_run_config(directory) != agent.run_config():
        raise FileError(f"{directory} holds the run of another agent", remedy="choose another directory")
    newest = load_newest(directory)
    if newest is not None and newest.step != agent.step:
        raise FileError(
            f"{directory} holds this run at step {newest.step:,}, and the agent is at step {agent.step:,}",
            remedy=f"load it with {type(agent).__name__}.load, or choose another directory",
        )
    return resume_run(
        directory,
        steps=None if steps is None else agent.step + steps,
        seconds=None if seconds is None else agent.trainer.seconds + seconds,
        agent=agent,
        callbacks=callbacks,
    )


def training_limits(steps: int | None, seconds: float | None) -> tuple[float, float]:
    """Validate the steps and seconds that training ends after; None becomes infinity, but not both."""
    if steps is None and seconds is None:
        raise ArgumentError("training needs an end", expected="steps, seconds or both")
    return (
        np.inf if steps is None else validation.integer(1).validate("the number of steps to train for", steps),
        np.inf if seconds is None else validation.positive.validate("the time to train for, in seconds,", seconds),
    )


class _Session:
    """The callbacks and loggers of a run, from a start or resumption to the end.

    Args:
        run: locked.
        agent: restored from `newest`.
        newest: the checkpoint to resume from; None: a new run.
        options: of the run.
        limits: steps and seconds that training ends after.
        stack: closes the loggers.
    """

    def __init__(
        self,
        run: RunDirectory,
        agent: Agent,
        newest: Checkpoint | None,
        options: RunOptions,
        limits: tuple[float, float],
        stack: contextlib.ExitStack,
    ) -> None:
        if newest is not None:
            agent.restore(newest)
        self._agent = agent
        self._scores: deque[float] = deque(maxlen=SCORED_EPISODES)
        log = stack.enter_context(contextlib.closing(JsonlLogger(run.path)))
        loggers: list[Logger] = [log]
        progress = ProgressCallback(loggers, options.report_period_steps, agent.prior_steps or agent.step)
        evaluation = EvaluationCallback(
            agent,
            loggers,
            period_steps=options.evaluation_period_steps,
            episodes=options.evaluation_episodes,
            directory=run.path / "best",
        )
        stateful: dict[str, Stateful] = {"log": log, "progress": progress, "evaluation": evaluation}
        self._progress, self._evaluation = progress, evaluation
        _restore(stateful, newest)
        if options.tensorboard:
            board = TensorBoardLogger(run.path / "tensorboard", agent.step, agent.prior_steps)
            loggers.append(stack.enter_context(contextlib.closing(board)))
        if options.progress:
            loggers.append(stack.enter_context(progress_logger(*limits, every_episode=options.verbose)))
        self._checkpoints = CheckpointCallback(
            run,
            agent,
            stateful,
            period_steps=options.checkpoint_period_steps,
            period_seconds=options.checkpoint_period_seconds,
        )
        self._callbacks: list[Callable[[Round], None]] = [progress, evaluation, self._checkpoints]

    def on_round(self, done: Round) -> None:
        """Call every callback with a round."""
        if done.phase == "agent":
            self._scores.extend(episode.score for episode in done.episodes)
        for callback in self._callbacks:
            callback(done)

    def finish(self, *, trained: bool, interrupted: bool) -> RunResult:
        """Save a checkpoint, log how training ended, with an evaluation unless it was interrupted, and return it.

        What is logged after the checkpoint is cut off again if the run is resumed.
        """
        checkpoint = self._checkpoints.save()
        self._progress.at_end()
        evaluation = None
        if not interrupted and not self._agent.prior_steps:
            evaluation = self._evaluation.at_end(self._agent.step)
        return RunResult(
            self._agent.step,
            self._agent.trainer.seconds,
            interrupted,
            len(self._scores),
            float(np.mean(self._scores)) if self._scores else None,
            checkpoint,
            self._agent.prior_steps,
            evaluation,
            trained,
        )


def _restore(stateful: dict[str, Stateful], newest: Checkpoint | None) -> None:
    """Restore callbacks and log from a checkpoint; without one, what an earlier attempt logged is cut off.

    Those the checkpoint does not hold start anew: all of them, if it was written by `Agent.save`.
    """
    if newest is None:
        stateful["log"].load_state({"log": 0, "clock": 0})
        return
    try:
        saved = newest.state.get("callbacks", {})
        for name, part in stateful.items():
            if name in saved:
                part.load_state(saved[name])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FileError(
            f"{newest.path} does not hold what a run saves",
            got=f"{type(error).__name__}: {error}"[:300],
            remedy="the run is damaged or of another version: start a new one",
        ) from error


def _agent_class(run_config: RunConfig) -> type[Agent]:
    agent = AGENTS.get(run_config["agent"])
    if agent is None:
        raise FileError("the run is of an unknown agent", expected=" or ".join(AGENTS), got=run_config["agent"])
    return agent
