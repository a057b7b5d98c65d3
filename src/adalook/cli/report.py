"""The command `adalook report`: turn results of experiments, or training runs, into a page.

Only the pages of training runs need what learning needs, and only for images of states.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from adalook import _validation as validation
from adalook.cli.terminal import DONE, optional, plain_console
from adalook.errors import AdalookError, ArgumentError, FileError

if TYPE_CHECKING:
    from adalook.learning.agents.base import Agent
    from adalook.report.data.state_gallery import StateGallery
    from adalook.report.data.training_run import RunLog, TrainingRun


@dataclass(frozen=True)
class ReportCommand:
    """Make figures and a page from results of `adalook reproduce` or from runs of `adalook train`.

    Results give the paper's figures, a table of claims and an explorer; runs give learning curves, depth use and states
    by the depth chosen in them.

    Example: adalook reproduce maze && adalook report

    Example: adalook report runs/breakout --out report-breakout
    """

    results: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[DIR …]")] = ()
    """Results folders, or a folder of several, or training runs, or the folder of train --seeds; several runs share a
    page. Without any: those of results/chain, maze, sweep, atari and minatar that exist. A learning experiment alone
    has a page of its own."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("report")
    """Directory for index.html, figures/ and, for results, claims.md; for a learning experiment alone, its page
    (atari.md, minatar.md) with its figures."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 4
    """Training runs only: episodes that the agent plays for images of states. 0: no images."""
    decisions: Annotated[int, tyro.conf.arg(metavar="N")] = 2_000
    """Training runs only: the agent stops playing after so many decisions."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """Seed of these episodes."""
    env: Annotated[str | None, optional(str, "ENV")] = None
    """Training runs only: their environment, named again: needed where that is module:name, whose module will be
    imported."""

    def run(self) -> int:
        """Write the report; return the exit code."""
        results = tuple(found for place in self.results for found in _with_results(place))
        runs = [place for place in results if is_run(place)]
        if runs and len(runs) < len(results):
            other = next(place for place in results if place not in runs)
            raise ArgumentError(
                "training runs and results of experiments do not fit on one page",
                got=f"the run {runs[0]} and {other}",
                remedy="make a report of each",
            )
        return _report_runs(runs, self) if runs else _report_results(results, self)


def _with_results(place: Path) -> list[Path]:
    """Return the directory if it holds results or a run, else what is below: results, or the runs of several seeds."""
    if _holds_results(place) or is_run(place):
        return [place]
    below = sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
    found = [path for path in below if _holds_results(path)]
    if found:
        return found
    seeds = [path for path in below if path.name.startswith("seed-") and is_run(path)]  # of train --seeds
    if seeds:
        return seeds
    others = [str(path) for path in below if is_run(path)]
    raise FileError(
        f"there is nothing to report in {place}",
        expected="results of adalook reproduce (experiment.json) or a run of adalook train (config.json)",
        got="neither" if place.is_dir() else "no such directory",
        remedy=f"name one of {', '.join(others)}"
        if others
        else "make the page of a solution with adalook solve … --out DIR --report"
        if (place / "solution.json").exists()
        else "",
    )


def _holds_results(place: Path) -> bool:
    """Return whether a directory holds an experiment; a journal is of one that has not ended."""
    return any((place / name).exists() for name in ("experiment.json", "journal.jsonl"))


def _report_results(results: Sequence[Path], options: ReportCommand) -> int:
    """Write the page of experiments' results; return the exit code."""
    from adalook.report.data.learning import is_learning_results
    from adalook.report.pages.experiments import write_report

    learning = [place for place in results if is_learning_results(place)]
    if learning and len(learning) == len(results):
        return _report_learning(learning, options)
    page, claims, *figures = write_report(results, options.out)
    size = page.stat().st_size / 1e6
    plain_console().print(
        f"{page} ({size:.1f} MB), {claims} and {len(figures) // 2} figures as SVG and PNG", soft_wrap=True
    )
    return DONE


def _report_learning(places: Sequence[Path], options: ReportCommand) -> int:
    """Write the page of a learning experiment; return the exit code."""
    from adalook.report.pages.learning import write_learning_report

    if len(places) > 1:
        raise ArgumentError(
            "a learning experiment has a page of its own",
            got=" and ".join(map(str, places)),
            remedy="make a report of each",
        )
    files = write_learning_report(places[0], options.out)
    plain_console().print(f"{', '.join(map(str, files[:2]))} and {len(files) - 2} pictures", soft_wrap=True)
    return DONE


def is_run(place: Path) -> bool:
    """Return whether a directory is a training run, or part of one, rather than results."""
    return not (place / "experiment.json").exists() and any(
        (place / name).exists() for name in ("config.json", "log.jsonl")
    )


def _report_runs(places: Sequence[Path], options: ReportCommand) -> int:
    """Write the page of training runs; return the exit code."""
    from adalook.report.pages.run import write_run_report

    validation.integer(0).validate("--episodes", options.episodes)
    validation.integer(1).validate("--decisions", options.decisions)
    runs = [_load_run(place, name, options) for place, name in zip(places, _names(places), strict=True)]
    page, *figures = write_run_report(runs, options.out)
    console, size = plain_console(), page.stat().st_size / 1e6
    for run in runs:
        for note in _notes(run):
            console.print(f"{run.name}: {note}", soft_wrap=True)
    console.print(f"{page} ({size:.1f} MB) and {len(figures) // 2} figures as SVG and PNG", soft_wrap=True)
    return DONE


def _notes(run: TrainingRun) -> list[str]:
    """Return sentences about what is missing from the page of a run."""
    torn = [f"{name} ends in half a line, which is left out" for name in run.log.torn]
    return torn if run.gallery is not None else [*torn, f"no images of states: {run.no_gallery}"]


def _names(places: Sequence[Path]) -> list[str]:
    """Return names that tell runs apart: their paths without the common beginning."""
    paths = [place.resolve() for place in places]
    if len(set(paths)) < len(paths):
        twice = next(place for place in paths if paths.count(place) > 1)
        raise ArgumentError("a run is named twice", got=twice.name)
    if len(paths) == 1:
        return [paths[0].name]
    common = os.path.commonpath([place.parent for place in paths])
    return [str(place.relative_to(common)) for place in paths]


def _load_run(place: Path, name: str, options: ReportCommand) -> TrainingRun:
    """Read what the page shows of a training run."""
    from adalook.learning.runs.directory import read_run_config
    from adalook.report.data.training_run import TrainingRun, read_run_log

    config = read_run_config(place)
    log = read_run_log(place)
    gallery, reason = _make_gallery(place, log, options)
    return TrainingRun(name, config, _changed(config, trusted=config["env"] == options.env), log, gallery, reason)


def _changed(config: dict[str, Any], trusted: bool) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ from the preset for the environment, each with the preset's value.

    A preset may follow from the environment itself; code that the run names is not imported for that unless `trusted`.
    """
    from adalook.learning.presets import config_for
    from adalook.simulators.make import names_code

    if config["env"] is None or (names_code(config["env"]) and not trusted):
        return {}
    preset = config_for(config["env"], config["agent"]).to_plain()
    settings = config["config"]
    return {name: (value, preset.get(name)) for name, value in settings.items() if value != preset.get(name)}


def _make_gallery(place: Path, log: RunLog, options: ReportCommand) -> tuple[StateGallery | None, str]:
    """Return images of states that the agent of a run played in or, if there are none, the reason."""
    if not options.episodes:
        return None, "--episodes 0 asked for none."
    try:
        return _play(place, log, options), ""
    except ImportError as error:  # a MissingExtraError is one
        ours = isinstance(error, AdalookError)
        return None, str(error) if ours else f"{error}. Install it with: pip install 'adalook[learn]'."
    except AdalookError as error:
        return None, str(error)


def _play(place: Path, log: RunLog, options: ReportCommand) -> StateGallery:
    """Let the best agent play, else the newest; RUN/best is quicker to load, since it has no replay buffer."""
    from adalook.report.data.state_gallery import GalleryFull, StateGallery

    best = log.best_evaluation
    if best is not None and any((place / "best" / "checkpoints").glob("*/manifest.json")):
        agent, name = (
            _load_agent(place / "best", options),
            f"the agent with the best evaluation, of step {best.step:,},",
        )
    else:
        agent = _load_agent(place, options)
        name = f"the agent of the newest checkpoint, of step {agent.step:,},"
    gallery = StateGallery(name, action_names=agent.sim.action_names, max_decisions=options.decisions)
    with contextlib.suppress(GalleryFull):
        agent.evaluate(options.episodes, seed=options.seed, watcher=gallery)
    return gallery


def _load_agent(place: Path, options: ReportCommand) -> Agent:
    """Load the agent of a run, or raise an error that names the likely reason."""
    from adalook.learning.runs.directory import read_run_config
    from adalook.learning.runs.run import load_agent

    named_again = options.env is not None and read_run_config(place)["env"] == options.env
    try:
        return load_agent(place, options.env if named_again else None)
    except (KeyError, TypeError, IndexError, RuntimeError) as error:
        # The checksums fit, so it is not damaged: a version whose agents had other parts wrote it.
        raise FileError(
            f"the checkpoint in {place} does not fit this version of adalook",
            got=repr(error),
            remedy="make the report with the version that trained it",
        ) from error
