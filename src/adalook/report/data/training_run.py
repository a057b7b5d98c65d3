"""A training run: its config, its log (RUN/log.jsonl, RUN/clock.jsonl) and states that its agent met.

A run that was killed, or that is still going on, may end in half a line; that half is left out, and said so. Any other
line that cannot be read is damage, and an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from adalook._arrays import FloatArray
from adalook.errors import FileError
from adalook.report.data.state_gallery import StateGallery
from adalook.storage.documents import parse_json
from adalook.storage.files import file_error, read_file

LOG, CLOCK = "log.jsonl", "clock.jsonl"
AGENT, PRIOR = "agent", "prior"
"""Phases of a run: the prior, if one is trained, comes first."""
AGENTS = {"dqn": "DQN", "qldqn": "QL-DQN"}

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class ProgressRecord:
    """Means and counts since the progress record before; None where there was nothing to average."""

    step: int
    loss: float | None
    mean_value: float | None
    depths: dict[int, int]
    """How many decisions looked how deep."""
    distances: dict[int, tuple[float, float, float]]
    """By depth: the quantiles 0.1, 0.5 and 0.9 of what was measured there."""
    merged_share: float | None


@dataclass(frozen=True, eq=False)
class EvaluationRecord:
    """The scores of one evaluation."""

    step: int
    scores: FloatArray
    """(episodes,)"""

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; 0 for a single episode, which says nothing about it."""
        episodes = len(self.scores)
        return float(np.std(self.scores, ddof=1)) / episodes**0.5 if episodes > 1 else 0.0


@dataclass(frozen=True, eq=False)
class TrainingClock:
    """The seconds of training by step, evaluations not counted."""

    steps: FloatArray
    """(n,) ascending"""
    seconds: FloatArray
    """(n,)"""

    def __bool__(self) -> bool:
        return len(self.steps) > 0

    def at(self, steps: FloatArray) -> FloatArray:
        """Return the seconds at `steps` (m,), interpolated linearly; NaN after the last entry."""
        known = np.interp(steps, [0.0, *self.steps], [0.0, *self.seconds])
        return np.where(np.asarray(steps) <= (self.steps[-1] if self else 0.0), known, np.nan)


@dataclass(frozen=True, eq=False)
class RunLog:
    """Everything that was logged about the agent, and how long the training of its prior took."""

    episode_steps: FloatArray
    """(episodes,) the step at which each was over, ascending"""
    episode_scores: FloatArray
    """(episodes,)"""
    evaluations: tuple[EvaluationRecord, ...]
    progress: tuple[ProgressRecord, ...]
    clock: TrainingClock
    prior_steps: int
    prior_seconds: float
    torn: tuple[str, ...]
    """Names of the files whose last line is not whole."""

    @property
    def steps(self) -> int:
        """The last step in the log."""
        known = [*self.episode_steps[-1:], *(each.step for each in self.progress[-1:])]
        return int(max([*known, *(each.step for each in self.evaluations[-1:])], default=0))

    @property
    def best_evaluation(self) -> EvaluationRecord | None:
        """The first of the best evaluations, whose agent is kept in RUN/best."""
        return max(self.evaluations, key=lambda evaluation: evaluation.mean, default=None)


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A training run as its page shows it: its config, what was logged, and states its agent met."""

    name: str
    """Tells it from the others on the page."""
    config: Mapping[str, Any]
    """The content of RUN/config.json: agent, env, seed and the learner's settings under "config"."""
    changed: Mapping[str, tuple[Any, Any]]
    """Settings that differ from the preset of the environment's family: (this run's, the preset's)."""
    log: RunLog
    gallery: StateGallery | None
    """States that the agent met in episodes played for the report; None where it did not play."""
    no_gallery: str = ""
    """Why it did not play."""

    @property
    def env(self) -> str:
        return self.config.get("env") or "an environment without a name"

    @property
    def agent(self) -> str:
        """The agent in words, such as 'QL-DQN' or 'DQN of depth 2'."""
        name = AGENTS.get(self.config["agent"], str(self.config["agent"]))
        depth = self.config.get("depth", 0)
        return f"{name} of depth {depth}" if depth else name

    @property
    def title(self) -> str:
        return f"{self.agent} on {self.env}"

    @property
    def seconds(self) -> float | None:
        """Seconds of training up to the last entry of the clock."""
        return float(self.log.clock.seconds[-1]) if self.log.clock else None

    @property
    def steps_per_second(self) -> float | None:
        if not self.seconds:
            return None
        return float(self.log.clock.steps[-1]) / self.seconds

    @property
    def depths(self) -> list[int]:
        """The depths that were used in training, ascending."""
        return sorted({depth for progress in self.log.progress for depth in progress.depths})


def read_run_log(directory: Path) -> RunLog:
    """Read the log of a run, and its clock if there is one.

    Raises:
        FileError: there is no log, nothing in it, or a line in its middle that cannot be read.
    """
    if not (directory / LOG).exists():
        raise FileError(
            f"{directory} has no {LOG}",
            expected="the directory of a run of adalook train",
            remedy="train first, or name the run itself and not a directory in it",
        )
    lines, torn_log = _read_lines(directory / LOG)
    ticks, torn_clock = _read_lines(directory / CLOCK) if (directory / CLOCK).exists() else ([], False)
    if not lines:
        raise FileError(f"{directory / LOG} has nothing in it yet", remedy="train for longer")
    mine = [line for line in lines if line[1].get("phase", AGENT) == AGENT]
    episodes = _parse(directory / LOG, mine, "episode", lambda line: (float(line["step"]), float(line["score"])))
    times = _parse(
        directory / CLOCK, ticks, "", lambda tick: (str(tick["phase"]), int(tick["step"]), float(tick["seconds"]))
    )
    ends = np.array(episodes, np.float64).reshape(-1, 2)
    spent_on_prior = [(step, seconds) for phase, step, seconds in times if phase == PRIOR]
    return RunLog(
        episode_steps=ends[:, 0],
        episode_scores=ends[:, 1],
        evaluations=tuple(_parse(directory / LOG, mine, "evaluation", _evaluated)),
        progress=tuple(_parse(directory / LOG, mine, "progress", _progress)),
        clock=_clock((step, seconds) for phase, step, seconds in times if phase == AGENT),
        prior_steps=spent_on_prior[-1][0] if spent_on_prior else 0,
        prior_seconds=spent_on_prior[-1][1] if spent_on_prior else 0.0,
        torn=tuple(name for name, torn in ((LOG, torn_log), (CLOCK, torn_clock)) if torn),
    )


def _read_lines(path: Path) -> tuple[list[tuple[int, dict[str, Any]]], bool]:
    """Return every line with its number, and whether the last one is incomplete and left out."""
    try:
        rows = read_file(path).splitlines(keepends=True)
    except OSError as error:
        raise file_error("read", path, error) from error
    lines: list[tuple[int, dict[str, Any]]] = []
    for number, row in enumerate(rows, start=1):
        try:
            line = parse_json(row)
        except ValueError as error:  # bytes that are no UTF-8 are a kind of it
            if number == len(rows):
                return lines, True
            raise FileError(f"line {number} of {path} is damaged", expected="a JSON object", got=error) from error
        if not isinstance(line, dict):
            raise FileError(f"line {number} of {path} is damaged", expected="a JSON object", got=type(line).__name__)
        lines.append((number, line))
    return lines, False


def _parse(
    path: Path, lines: Iterable[tuple[int, dict[str, Any]]], kind: str, parse: Callable[[dict[str, Any]], Parsed]
) -> list[Parsed]:
    """Parse the lines of one kind; the empty kind is that of lines without one."""
    parsed = []
    for number, line in lines:
        if line.get("kind", "") == kind:
            try:
                parsed.append(parse(line))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise FileError(f"line {number} of {path} is damaged", got=repr(error)) from error
    return parsed


def _evaluated(line: dict[str, Any]) -> EvaluationRecord:
    scores = np.array(line["scores"], np.float64)
    if scores.ndim != 1 or not len(scores):
        raise ValueError("an evaluation without scores")
    return EvaluationRecord(int(line["step"]), scores)


def _progress(line: dict[str, Any]) -> ProgressRecord:
    distances = {}
    for depth, quantiles in line["distances"].items():
        low, middle, high = map(float, quantiles)
        distances[int(depth)] = (low, middle, high)
    return ProgressRecord(
        step=int(line["step"]),
        loss=_number(line["loss"]),
        mean_value=_number(line["mean_value"]),
        depths={int(depth): int(count) for depth, count in line["depths"].items()},
        distances=distances,
        merged_share=_number(line["merged_share"]),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _clock(ticks: Iterable[tuple[int, float]]) -> TrainingClock:
    pairs = np.array(list(ticks), np.float64).reshape(-1, 2)
    return TrainingClock(pairs[:, 0], pairs[:, 1])
