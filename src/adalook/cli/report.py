"""`adalook report`: results of experiments, or training runs, become a page.

Only the pages of training runs need what learning needs, and only for pictures of states.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from adalook.cli.terminal import CONVERGED, plain_console
from adalook.errors import AdalookError, ArgumentError, FileError

if TYPE_CHECKING:
    from adalook.learning.agents.base import Agent
    from adalook.report.data.state_gallery import StateGallery
    from adalook.report.data.training_run import RunLog, TrainingRun


@dataclass(frozen=True)
class Report:
    """Turn results into figures and a page: those of `adalook reproduce`, with a table of claims and an explorer, or
    runs of `adalook train`, with learning curves, depth use and states by the depth chosen in them.

    Example: adalook reproduce maze && adalook report
    Example: adalook report runs/breakout --out report-breakout
    """

    results: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[DIR …]")] = ()
    """Results folders, or training runs; several runs share a page. Without any: results/chain, results/maze and
    results/sweep, as far as they are there."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("report")
    """Where index.html, figures/ and, for results, claims.md go."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 4
    """Of training runs: how many the agent plays for pictures of states. 0: none, and no pictures."""
    decisions: Annotated[int, tyro.conf.arg(metavar="N")] = 2_000
    """Of training runs: after so many the agent stops playing, whether its episodes are over or not."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """Of these episodes."""


def run_report(options: Report) -> int:
    """`adalook report`."""
    for place in options.results:
        _refuse_what_is_neither(place)
    runs = [place for place in options.results if is_run(place)]
    if runs and len(runs) < len(options.results):
        other = next(place for place in options.results if place not in runs)
        raise ArgumentError(
            "training runs and results of experiments do not fit on one page",
            got=f"the run {runs[0]} and {other}",
            remedy="make a report of each",
        )
    return _report_runs(runs, options) if runs else _report_results(options)


def _refuse_what_is_neither(place: Path) -> None:
    """A name that was mistyped may have been meant for either."""
    ours = ("experiment.json", "journal.jsonl")  # a journal: an experiment that has not ended
    if not is_run(place) and not any((place / name).exists() for name in ours):
        raise FileError(
            f"there is nothing to report in {place}",
            expected="results of adalook reproduce (experiment.json) or a run of adalook train (config.json)",
            got="neither" if place.is_dir() else "no such directory",
        )


def _report_results(options: Report) -> int:
    from adalook.report.pages.experiments import write_report

    page, claims, *figures = write_report(options.results, options.out)
    size = page.stat().st_size / 1e6
    plain_console().print(
        f"{page} ({size:.1f} MB), {claims} and {len(figures) // 2} figures as SVG and PNG", soft_wrap=True
    )
    return CONVERGED


def is_run(place: Path) -> bool:
    """Whether a directory is a training run, or part of one, rather than results."""
    return not (place / "experiment.json").exists() and any(
        (place / name).exists() for name in ("config.json", "log.jsonl")
    )


def _report_runs(places: Sequence[Path], options: Report) -> int:
    from adalook.report.pages.run import write_run_report

    if options.episodes < 0 or options.decisions < 1:
        raise ArgumentError("there is nothing to play", expected="--episodes >= 0 and --decisions >= 1")
    runs = [_load_run(place, name, options) for place, name in zip(places, _names(places), strict=True)]
    page, *figures = write_run_report(runs, options.out)
    console, size = plain_console(), page.stat().st_size / 1e6
    for run in runs:
        for note in _notes(run):
            console.print(f"{run.name}: {note}", soft_wrap=True)
    console.print(f"{page} ({size:.1f} MB) and {len(figures) // 2} figures as SVG and PNG", soft_wrap=True)
    return CONVERGED


def _notes(run: TrainingRun) -> list[str]:
    torn = [f"{name} ends in half a line, which is left out" for name in run.log.torn]
    return torn if run.gallery is not None else [*torn, f"no pictures of states: {run.no_gallery}"]


def _names(places: Sequence[Path]) -> list[str]:
    """Names that tell runs apart: their paths, without what all have in common."""
    natural_number = [place.resolve() for place in places]
    if len(set(natural_number)) < len(natural_number):
        twice = next(place for place in natural_number if natural_number.count(place) > 1)
        raise ArgumentError("a run is named twice", got=twice.name)
    if len(natural_number) == 1:
        return [natural_number[0].name]
    common = os.path.commonpath([place.parent for place in natural_number])
    return [str(place.relative_to(common)) for place in natural_number]


def _load_run(place: Path, name: str, options: Report) -> TrainingRun:
    from adalook.learning.runs.directory import read_run_config
    from adalook.report.data.training_run import TrainingRun, read_run_log

    config = read_run_config(place)
    log = read_run_log(place)
    gallery, reason = _watch(place, log, options)
    return TrainingRun(name, config, _changed(config), log, gallery, reason)


def _changed(config: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings that are not as in the preset of the world's family."""
    from adalook.learning.presets import config_for

    if config["env"] is None:
        return {}
    preset = config_for(config["env"]).to_plain()
    settings = config["config"]
    return {name: (value, preset.get(name)) for name, value in settings.items() if value != preset.get(name)}


def _watch(place: Path, log: RunLog, options: Report) -> tuple[StateGallery | None, str]:
    """What the agent of a run was seen to do or, if it could not be, the reason."""
    if not options.episodes:
        return None, "--episodes 0 asked for none."
    try:
        return _play(place, log, options), ""
    except ImportError as error:  # a MissingExtraError is one
        ours = isinstance(error, AdalookError)
        return None, str(error) if ours else f"{error}. Install it with: pip install 'adalook[learn]'."
    except AdalookError as error:
        return None, str(error)


def _play(place: Path, log: RunLog, options: Report) -> StateGallery:
    """Let the best agent play, else the newest: the best is kept without its replay memory, which may be huge."""
    from adalook.report.data.state_gallery import GalleryFull, StateGallery

    best = log.best_evaluation
    if best is not None and any((place / "best" / "checkpoints").glob("*/manifest.json")):
        agent, name = _load_agent(place / "best"), f"the agent with the best evaluation, of step {best.step:,},"
    else:
        agent = _load_agent(place)
        name = f"the agent of the newest checkpoint, of step {agent.step:,},"
    gallery = StateGallery(name, action_names=agent.sim.action_names, max_decisions=options.decisions)
    with contextlib.suppress(GalleryFull):
        agent.evaluate(options.episodes, seed=options.seed, watcher=gallery)
    return gallery


def _load_agent(place: Path) -> Agent:
    from adalook.learning.runs.run import load_agent

    try:
        return load_agent(place)
    except (KeyError, TypeError, IndexError, RuntimeError) as error:
        # Checksums fit, or we would not be here: it was written by a version whose agents had other parts.
        raise FileError(
            f"the checkpoint in {place} does not fit this version of adalook",
            got=repr(error),
            remedy="make the report with the version that trained it",
        ) from error
