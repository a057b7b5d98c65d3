"""Loggers of a run: JSON lines, TensorBoard events and a progress bar on the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from operator import index
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from adalook._extras import import_extra
from adalook.errors import FileError
from adalook.learning.evaluation import Evaluation
from adalook.learning.runs.progress import QUANTILES, ProgressSummary
from adalook.learning.training import Episode
from adalook.storage.files import file_error, open_to_append

if TYPE_CHECKING:
    from rich.console import Console

LOG, CLOCK = "log.jsonl", "clock.jsonl"
"""Files of a run: what depends on the seed alone, and seconds of training by step."""


class Logger(Protocol):
    """Something that is told about episodes, progress and evaluations."""

    def episode(self, step: int, episode: Episode, phase: str) -> None:
        """Log an episode that ended at this step."""

    def progress(self, summary: ProgressSummary) -> None:
        """Log statistics of the last rounds."""

    def evaluation(self, step: int, evaluation: Evaluation) -> None:
        """Log an evaluation of the agent at this step."""


class JsonlFile:
    """A file of JSON objects, one per line, that can be cut back to an earlier length.

    What was written after the checkpoint that a run resumes from is cut off: it will be written again, the same.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_to_append(path)
        except OSError as error:
            raise file_error("write", path, error) from error

    def write(self, record: dict[str, Any]) -> None:
        """Append one line."""
        try:
            self._file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        except OSError as error:
            raise file_error("write", self.path, error) from error

    def sync(self) -> int:
        """Flush the file to disk and return its length in bytes."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise file_error("write", self.path, error) from error
        return self._file.tell()

    def truncate(self, length: int) -> None:
        """Cut off what comes after so many bytes."""
        try:
            self._file.flush()
            self._file.truncate(min(length, self._file.tell()))
            self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise file_error("write", self.path, error) from error

    def close(self) -> None:
        """Close the file; what was written last may fail to reach the disk only now."""
        try:
            self._file.close()
        except OSError as error:
            raise file_error("write", self.path, error) from error


class JsonlLogger:
    """A logger to log.jsonl, which depends on the seed alone, and clock.jsonl, which holds the times."""

    def __init__(self, directory: Path) -> None:
        self._log, self._clock = JsonlFile(directory / LOG), JsonlFile(directory / CLOCK)

    def episode(self, step: int, episode: Episode, phase: str) -> None:
        self._log.write(
            {"kind": "episode", "step": step, "phase": phase, "score": episode.score, "steps": episode.steps}
        )

    def progress(self, summary: ProgressSummary) -> None:
        self._log.write({"kind": "progress", **summary.to_plain()})
        self._clock.write({"step": summary.step, "phase": summary.phase, "seconds": round(summary.seconds, 3)})

    def evaluation(self, step: int, evaluation: Evaluation) -> None:
        self._log.write(
            {
                "kind": "evaluation",
                "step": step,
                "scores": evaluation.scores.tolist(),
                "steps": evaluation.steps.tolist(),
                "depths": {str(depth): count for depth, count in evaluation.depths.items()},
            }
        )

    def state(self) -> dict[str, Any]:
        """Return the lengths of the files, which are on disk then."""
        return {"log": self._log.sync(), "clock": self._clock.sync()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Cut off what was written after `state` was called."""
        lengths = index(state["log"]), index(state["clock"])
        self._log.truncate(lengths[0])
        self._clock.truncate(lengths[1])

    def close(self) -> None:
        try:
            self._log.close()
        finally:
            self._clock.close()


class TensorBoardLogger:
    """A logger to TensorBoard, with CleanRL's names where it has some.

    The prior's training counts its own steps, so its events are a separate TensorBoard run.

    Args:
        directory: for the event files; the prior's go to `prior` in it.
        first_step: step the agent resumes from; events of later steps, left by an interrupted run, are hidden.
        first_prior_step: the same for the prior.
    """

    def __init__(self, directory: Path, first_step: int = 0, first_prior_step: int = 0) -> None:
        for place in (directory, directory / "prior"):
            if place.is_symlink():
                raise FileError(f"{place} is a symbolic link", expected="a directory", remedy="remove it")
        self._phases = {
            "agent": _Events(directory, first_step),
            "prior": _Events(directory / "prior", first_prior_step),
        }

    def episode(self, step: int, episode: Episode, phase: str) -> None:
        self._phases[phase].add("charts/episodic_return", episode.score, step)
        self._phases[phase].add("charts/episodic_length", episode.steps, step)

    def progress(self, summary: ProgressSummary) -> None:
        step, events = summary.step, self._phases[summary.phase]
        events.add_speed(step, summary.seconds)
        for name, value in scalars(summary).items():
            events.add(name, value, step)
        events.flush()

    def evaluation(self, step: int, evaluation: Evaluation) -> None:
        self._phases["agent"].add("evaluation/mean_score", evaluation.mean, step)
        self._phases["agent"].flush()

    def close(self) -> None:
        with ExitStack() as stack:
            for events in self._phases.values():
                stack.callback(events.close)


class _Events:
    """The event file of one phase, opened at its first event.

    The records are written here and not by TensorBoard's own writer: its files are named by the second, the process
    and a counter, which sorts `.10` before `.9`, and it writes in a thread whose errors nobody sees.
    """

    def __init__(self, directory: Path, first_step: int) -> None:
        tensorboard = partial(import_extra, extra="learn", purpose="logging for TensorBoard", package="tensorboard")
        self._proto = tensorboard("tensorboard.compat.proto.event_pb2")
        self._summary = tensorboard("tensorboard.compat.proto.summary_pb2").Summary
        self._record_writer = tensorboard("tensorboard.summary.writer.record_writer").RecordWriter
        self._directory, self._first_step, self._records = directory, first_step, cast("Any", None)
        self._before: tuple[int, float] | None = None

    def add(self, name: str, value: float | None, step: int) -> None:
        """Write a value; None is left out."""
        if value is None:
            return
        try:
            if self._records is None:
                self._open()
            self._write(step, summary=self._summary(value=[self._summary.Value(tag=name, simple_value=value)]))
        except OSError as error:
            raise file_error("write", self._directory, error) from error

    def add_speed(self, step: int, seconds: float) -> None:
        """Write the steps per second since the last call."""
        if self._before is not None and seconds > self._before[1]:
            self.add("charts/SPS", (step - self._before[0]) / (seconds - self._before[1]), step)
        self._before = step, seconds

    def flush(self) -> None:
        """Let TensorBoard see what was written."""
        if self._records is not None:
            try:
                self._records.flush()
            except OSError as error:
                raise file_error("write", self._directory, error) from error

    def close(self) -> None:
        if self._records is not None:
            try:
                self._records.close()
            except OSError as error:
                raise file_error("write", self._directory, error) from error

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._records = self._record_writer(open_to_append(_next_event_file(self._directory)))
        self._write(0, file_version="brain.Event:2")
        # The start of a session hides the events from its step on; those of `first_step` itself stay.
        start = self._proto.SessionLog(status=self._proto.SessionLog.START)
        self._write(self._first_step + 1, session_log=start)

    def _write(self, step: int, **content: Any) -> None:
        self._records.write(self._proto.Event(wall_time=time.time(), step=step, **content).SerializeToString())


def _next_event_file(directory: Path) -> Path:
    """Return a path that sorts behind all event files of a directory: TensorBoard reads them by name."""
    names = (re.match(r"events\.out\.tfevents\.(\d{10})\.", path.name) for path in directory.iterdir())
    seconds = max([int(time.time()), *(int(name[1]) + 1 for name in names if name)])
    return directory / f"events.out.tfevents.{seconds:010d}.adalook"


def scalars(summary: ProgressSummary) -> dict[str, float]:
    """Return the statistics of a summary by the names under which TensorBoard and W&B show them; without unknowns."""
    decisions = sum(summary.depths.values())
    named: dict[str, float | None] = {
        "charts/epsilon": summary.epsilon,
        "losses/td_loss": summary.loss,
        "losses/q_values": summary.mean_value,
        "search/merged_share": summary.merged_share,
    }
    if summary.staleness is not None:
        named["charts/mean_staleness"], named["charts/max_staleness"] = summary.staleness
    named |= {f"depth/share_{depth}": count / decisions for depth, count in summary.depths.items()}
    for depth, values in summary.distances.items():
        for quantile, value in zip(QUANTILES, values, strict=True):
            named[f"distance/depth_{depth}_quantile_{quantile:g}"] = value
    return {name: value for name, value in named.items() if value is not None}


class MetricLogger:
    """A logger to a function that is called as `log(metrics, step=…)`, such as `wandb.log`."""

    def __init__(self, log: Callable[..., object]) -> None:
        self._log = log

    def episode(self, step: int, episode: Episode, phase: str) -> None:
        if phase == "agent":  # the prior counts its own steps
            self._log({"charts/episodic_return": episode.score, "charts/episodic_length": episode.steps}, step=step)

    def progress(self, summary: ProgressSummary) -> None:
        if summary.phase == "agent":
            self._log(scalars(summary) | {"charts/seconds": summary.seconds}, step=summary.step)

    def evaluation(self, step: int, evaluation: Evaluation) -> None:
        self._log({"evaluation/mean_score": evaluation.mean}, step=step)


def progress_logger(
    max_steps: float, max_seconds: float, every_episode: bool = False
) -> AbstractContextManager[Logger]:
    """Return a live bar if standard error is a terminal, otherwise a logger that writes a line now and then."""
    if sys.stderr.isatty():
        return ProgressBar(max_steps, max_seconds, every_episode=every_episode)
    return ProgressLines(max_steps, max_seconds, every_episode=every_episode)


class ProgressLines:
    """Progress where there is no terminal: a line on standard error every so many seconds, or for every episode too."""

    def __init__(
        self,
        max_steps: float,
        max_seconds: float,
        period: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        every_episode: bool = False,
    ) -> None:
        self._every_episode = every_episode
        self._limits, self._period, self._clock = (max_steps, max_seconds), period, clock
        self._last = clock()
        self._scores: deque[float] = deque(maxlen=50)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def episode(self, step: int, episode: Episode, phase: str) -> None:
        self._scores.append(episode.score)
        if self._every_episode:
            print(episode_text(step, episode, phase), file=sys.stderr, flush=True)

    def progress(self, summary: ProgressSummary) -> None:
        now = self._clock()
        if now - self._last >= self._period:
            self._last = now
            done = max(summary.step / self._limits[0], summary.seconds / self._limits[1])
            print(f"training {done:.0%}: {progress_text(summary, self._scores)}", file=sys.stderr, flush=True)

    def evaluation(self, step: int, evaluation: Evaluation) -> None:
        print(evaluation_text(step, evaluation), file=sys.stderr, flush=True)


def progress_text(summary: ProgressSummary, scores: Collection[float]) -> str:
    """Return a summary in a line: steps, speed, score and depths."""
    score = f"score {sum(scores) / len(scores):.2f}" if scores else "no score yet"
    decisions = sum(summary.depths.values())
    depths = " ".join(f"{depth}:{count / decisions:.0%}" for depth, count in summary.depths.items())
    speed = summary.step / summary.seconds if summary.seconds else 0.0
    stale = f"  stale {summary.staleness[0]:.1f}" if summary.staleness is not None else ""
    return f"{summary.phase} step {summary.step:,}  {speed:,.0f}/s  {score}  depth {depths}{stale}"


def episode_text(step: int, episode: Episode, phase: str) -> str:
    """Return an episode in a line."""
    return f"{phase} step {step:,}: episode of {episode.steps:,} steps, score {episode.score:g}"


def evaluation_text(step: int, evaluation: Evaluation) -> str:
    """Return an evaluation in a line."""
    return f"step {step:,}: evaluation {evaluation.mean:.2f} over {len(evaluation.scores)} episodes"


class ProgressBar:
    """A live progress bar on the terminal: steps, speed, score, depths and the time left.

    Args:
        max_steps: agent steps that training ends after; may be infinite.
        max_seconds: seconds of training that it ends after; may be infinite.
        console: None: standard error.
        every_episode: also print a line for each episode.
    """

    def __init__(
        self, max_steps: float, max_seconds: float, console: Console | None = None, every_episode: bool = False
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._max_steps, self._max_seconds, self._every_episode = max_steps, max_seconds, every_episode
        self._scores: deque[float] = deque(maxlen=50)
        self._phase = ""
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
        where = Console(stderr=True) if console is None else console
        self._bar = Progress(*columns, TimeRemainingColumn(), console=where, transient=True)
        self._task = self._bar.add_task("training", total=1.0, text="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def episode(self, step: int, episode: Episode, phase: str) -> None:
        if phase != self._phase:  # the prior's scores say nothing about the agent's
            self._phase = phase
            self._scores.clear()
        self._scores.append(episode.score)
        if self._every_episode:
            self._bar.log(episode_text(step, episode, phase))

    def progress(self, summary: ProgressSummary) -> None:
        done = max(summary.step / self._max_steps, summary.seconds / self._max_seconds)
        self._bar.update(self._task, completed=min(1.0, done), text=progress_text(summary, self._scores))

    def evaluation(self, step: int, evaluation: Evaluation) -> None:
        self._bar.log(evaluation_text(step, evaluation))
