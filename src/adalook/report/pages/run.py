"""The page about one or several training runs: `index.html` and its figures.

One run has a page of its own; several share one, which begins with their learning curves in one chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.metadata import version
from itertools import count
from pathlib import Path

from adalook.report.data.training_run import EvaluationRecord, TrainingRun
from adalook.report.figures.run_curves import depth_use, distances, learning_curves, losses, smoothing_window
from adalook.report.figures.run_states import depth_along_episodes, states_by_depth
from adalook.report.figures.style import FigureSpec, SavedFigure, save_figure
from adalook.report.pages.document import document, figure_list, table
from adalook.storage.files import atomic_write, make_directory


@dataclass(frozen=True)
class Section:
    """A heading and the HTML below it."""

    heading: str
    html: str


def write_run_report(runs: Sequence[TrainingRun], out: str | Path) -> list[Path]:
    """Draw the figures of training runs and write their page.

    Returns:
        the files written, the page first.
    """
    place = Path(out)
    folder = place / "figures"
    make_directory(folder)
    numbers = count(1)

    def save(specs: Iterable[FigureSpec]) -> list[SavedFigure]:
        return [save_figure(replace(spec, number=f"Figure {next(numbers)}"), folder) for spec in specs]

    compared = save(_compared(runs))
    shown = {run.name for group in _groups(runs) for run in group}
    by_run = {run.name: save(_run_figures(run, _prefix(runs, run), run.name not in shown)) for run in runs}
    page = place / "index.html"
    with atomic_write(page) as file:
        file.write(run_report_page(runs, compared, by_run).encode())
    figures = [*compared, *(figure for drawn in by_run.values() for figure in drawn)]
    return [page, *(path for figure in figures for path in (figure.svg, figure.png))]


def _groups(runs: Sequence[TrainingRun]) -> list[list[TrainingRun]]:
    """Return the runs that have company in their environment, and scores to compare."""
    scored = [run for run in runs if len(run.log.episode_scores)]
    groups = [[run for run in scored if run.env == env] for env in dict.fromkeys(run.env for run in scored)]
    return [group for group in groups if len(group) > 1]


def _compared(runs: Sequence[TrainingRun]) -> Iterator[FigureSpec]:
    """Draw the learning curves of runs together, a figure per environment, since scores of two cannot be compared.

    A run that is alone in its environment has its curve further down; no curve is drawn twice.
    """
    together = _groups(runs)
    for number, group in enumerate(together, start=1):
        yield learning_curves(group, "learning" if len(together) == 1 else f"learning-{number}")


def _prefix(runs: Sequence[TrainingRun], run: TrainingRun) -> str:
    return "" if len(runs) == 1 else f"run-{1 + list(runs).index(run)}-"


def _run_figures(run: TrainingRun, prefix: str, with_curve: bool) -> Iterator[FigureSpec]:
    drawn = [
        learning_curves([run], f"{prefix}learning") if with_curve and len(run.log.episode_scores) else None,
        losses(run, f"{prefix}loss"),
        depth_use(run, f"{prefix}depth"),
        distances(run, f"{prefix}distances"),
    ]
    if run.gallery is not None:
        drawn += [
            states_by_depth(run.gallery, f"{prefix}states"),
            depth_along_episodes(run.gallery, f"{prefix}episode"),
        ]
    return (spec for spec in drawn if spec is not None)


def run_report_page(
    runs: Sequence[TrainingRun], compared: Sequence[SavedFigure], by_run: Mapping[str, Sequence[SavedFigure]]
) -> str:
    """Return the page as HTML.

    Args:
        runs: at least one.
        compared: figures about all of them.
        by_run: figures by name of the run.
    """
    if len(runs) == 1:
        (run,) = runs
        title, lead = run.title, _lead(run)
        sections = _sections(run, by_run[run.name])
    else:
        title = f"{len(runs)} training runs"
        lead = (
            "Their learning curves together, then each on its own."
            if compared
            else "Side by side, then each on its own."
        )
        sections = [Section("Compared", _comparison(runs) + figure_list(compared))]
        sections += [Section(run.name, _section(run, by_run[run.name])) for run in runs]
    links = "".join(f'<a href="#section-{i}">{escape(section.heading)}</a>' for i, section in enumerate(sections))
    content = "".join(
        f'<section id="section-{i}"><h2>{escape(section.heading)}</h2>\n{section.html}</section>'
        for i, section in enumerate(sections)
    )
    body = (
        f'<header class="top"><h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p></header>\n'
        f'<nav aria-label="sections"><div>{links}</div></nav>\n<main>{content}</main>\n'
        f"<footer>Made by adalook {escape(version('adalook'))}. "
        "One file: it needs no network and can be sent as it is.</footer>"
    )
    return document(f"adalook: {title}", body, {})


def _lead(run: TrainingRun) -> str:
    return f"What the training run “{run.name}” logged in {run.log.steps:,} agent steps, and how its agent plays."


def _section(run: TrainingRun, figures: Sequence[SavedFigure]) -> str:
    """Return the section of a run among several."""
    inner = "".join(f"<h3>{escape(section.heading)}</h3>{section.html}" for section in _sections(run, figures))
    return f'<p class="lead">{escape(run.title)}</p>{inner}'


def _sections(run: TrainingRun, figures: Sequence[SavedFigure]) -> list[Section]:
    watched = [figure for figure in figures if figure.svg.stem.rpartition("-")[2] in ("states", "episode")]
    logged = [figure for figure in figures if figure not in watched]
    no_images = f'<p class="problem" role="note">{escape(f"No images of states: {run.no_gallery}")}</p>'
    return [
        Section("In numbers", _notes(run) + _cards(run)),
        Section("Learning", figure_list(logged)),
        Section("States by depth", figure_list(watched) if run.gallery is not None else no_images),
        Section("Settings", _settings(run)),
    ]


def _notes(run: TrainingRun) -> str:
    torn = " and ".join(run.log.torn)
    verb = "end" if len(run.log.torn) > 1 else "ends"
    notes = [
        f"{torn} {verb} in half a line, which is left out: the run was killed, or is still going on." if torn else "",
        "" if len(run.log.episode_scores) else "No episode was over yet, so there is no learning curve.",
        "" if run.log.clock else "There is no time on record, so nothing is shown by time.",
    ]
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes if note)


def _cards(run: TrainingRun) -> str:
    log = run.log
    last = log.evaluations[-1] if log.evaluations else None
    speed = f"{run.steps_per_second:,.0f} a second" if run.steps_per_second else ""
    cards = [
        ("Best evaluation", *_best_evaluation(run)),
        ("Last evaluation", *_evaluation(last)),
        ("Last training episodes", *_last_episodes(run)),
        ("Agent steps", f"{log.steps:,}", speed),
        ("Training time", *_time(run)),
    ]
    if log.prior_steps:
        cards.append(
            ("Training time of the prior", duration(log.prior_seconds), f"{log.prior_steps:,} steps, not counted")
        )
    items = "".join(
        f'<li><span class="name">{escape(name)}</span><b>{escape(number)}</b><span>{escape(more)}</span></li>'
        for name, number, more in cards
    )
    return f'<ul class="headline">{items}</ul>'


def _time(run: TrainingRun) -> tuple[str, str]:
    if run.seconds is None:
        return "–", "not on record"
    return duration(run.seconds), f"up to step {run.log.clock.steps[-1]:,.0f}, without evaluations"


def _evaluation(evaluation: EvaluationRecord | None) -> tuple[str, str]:
    if evaluation is None:
        return "–", "there was none"
    count = len(evaluation.scores)
    error = f"± {evaluation.standard_error:.2f}, " if count > 1 else ""
    return f"{evaluation.mean:.2f}", f"{error}{count} episode{'s' if count > 1 else ''}, at step {evaluation.step:,}"


def _best_evaluation(run: TrainingRun) -> tuple[str, str]:
    """Return the best evaluation in words, with a warning that the best of many had luck."""
    number, more = _evaluation(run.log.best_evaluation)
    count = len(run.log.evaluations)
    return number, f"{more}; the best of {count}, so biased upwards" if count > 1 else more


def _last_episodes(run: TrainingRun) -> tuple[str, str]:
    scores = run.log.episode_scores
    if not len(scores):
        return "–", "none was over"
    last = scores[-smoothing_window(len(scores)) :]
    return f"{last.mean():.2f}", f"mean of the last {len(last)} of {len(scores):,}"


def _comparison(runs: Sequence[TrainingRun]) -> str:
    heads = (
        "run",
        "environment",
        "agent",
        "seed",
        "steps",
        "time",
        "steps/s",
        "last episodes",
        "best evaluation",
        "last evaluation",
    )
    words = 3
    lines = []
    for run in runs:
        evaluations = run.log.evaluations
        cells = (
            run.name,
            run.env,
            run.agent,
            str(run.config["seed"]),
            f"{run.log.steps:,}",
            "–" if run.seconds is None else duration(run.seconds),
            "–" if run.steps_per_second is None else f"{run.steps_per_second:,.0f}",
            _last_episodes(run)[0],
            _evaluation(run.log.best_evaluation)[0],
            _evaluation(evaluations[-1] if evaluations else None)[0],
        )
        row = "".join(f"<td{_kind(i, words)}>{escape(cell)}</td>" for i, cell in enumerate(cells))
        lines.append(f"<tr>{row}</tr>")
    titles = "".join(f'<th scope="col"{_kind(i, words)}>{head}</th>' for i, head in enumerate(heads))
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _kind(column: int, words: int) -> str:
    return ' class="number"' if column >= words else ""


def _settings(run: TrainingRun) -> str:
    rows = [("environment", run.env), ("agent", run.agent), ("seed", str(run.config["seed"]))]
    rows += [
        (name.replace("_", " "), f"{_words(value)} (preset: {_words(usual)})")
        for name, (value, usual) in sorted(run.changed.items())
    ]
    alike = "" if run.changed else '<p class="note">All as in the preset of the environment’s family.</p>'
    everything = [(name.replace("_", " "), _words(value)) for name, value in sorted(run.config["config"].items())]
    return (
        f"{alike}{table(rows, 'summary')}"
        f"<details><summary>All {len(everything)} settings</summary>{table(everything, 'summary')}</details>"
    )


def _words(value: object) -> str:
    """Return the value of a setting as a person would write it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours.

    >>> [duration(seconds) for seconds in (42.4, 200, 9_000)]
    ['42.4 s', '3 min 20 s', '2 h 30 min']
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
