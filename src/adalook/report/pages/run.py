"""`adalook report RUN …`: training runs -> `index.html` and the figures beside it.

One run has a page of its own; several share one, which begins with their learning curves laid over each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.metadata import version
from pathlib import Path

from adalook.report.data.run_log import Evaluated
from adalook.report.data.run_view import TrainingRun
from adalook.report.figures.all import Figure
from adalook.report.figures.run_curves import depth_use, distances, learning_curves, losses, smoothing_window
from adalook.report.figures.run_states import depth_along_episodes, states_by_depth
from adalook.report.figures.spec import Sketch
from adalook.report.figures.style import save
from adalook.report.pages.document import document, table
from adalook.report.pages.experiments import plate
from adalook.storage.files import atomic_write, make_directory


@dataclass(frozen=True)
class Part:
    """What stands below one heading."""

    heading: str
    html: str


def write_run_report(runs: Sequence[TrainingRun], out: str | Path) -> list[Path]:
    """Draw the figures of runs and write the page.

    Returns:
        the files written, the page first.
    """
    place = Path(out)
    make_directory(place / "figures")
    pen = _Pen(place / "figures")
    together = [pen.draw(sketch) for sketch in _compared(runs)]
    alone = {run.name: [pen.draw(sketch) for sketch in _sketches(run, _prefix(runs, run))] for run in runs}
    page = place / "index.html"
    with atomic_write(page) as file:
        file.write(run_report_page(runs, together, alone).encode())
    return [page, *pen.written]


class _Pen:
    """Saves figures and numbers them in the order of the page."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._drawn = 0
        self.written: list[Path] = []

    def draw(self, sketch: Sketch) -> Figure:
        self._drawn += 1
        svg, png = save(sketch.figure, self._directory / sketch.name)
        self.written += [svg, png]
        return Figure(f"Figure {self._drawn}", sketch.title, sketch.caption, svg, png)


def _compared(runs: Sequence[TrainingRun]) -> Iterator[Sketch]:
    """The learning curves of several runs, one figure a world: scores of different worlds have nothing to do
    with each other.
    """
    if len(runs) > 1:
        scored = [run for run in runs if len(run.log.episode_scores)]
        worlds = list(dict.fromkeys(run.env for run in scored))
        for number, world in enumerate(worlds, start=1):
            name = "learning" if len(worlds) == 1 else f"learning-{number}"
            yield _named([run for run in scored if run.env == world], name)


def _named(runs: Sequence[TrainingRun], name: str) -> Sketch:
    sketch = learning_curves(runs, name)
    return sketch if len(runs) > 1 else replace(sketch, title=f"{runs[0].name}: {sketch.title.lower()}")


def _prefix(runs: Sequence[TrainingRun], run: TrainingRun) -> str:
    return "" if len(runs) == 1 else f"run-{1 + list(runs).index(run)}-"


def _sketches(run: TrainingRun, prefix: str) -> Iterator[Sketch]:
    drawn = [
        learning_curves([run], f"{prefix}learning") if len(run.log.episode_scores) else None,
        losses(run, f"{prefix}loss"),
        depth_use(run, f"{prefix}depth"),
        distances(run, f"{prefix}distances"),
    ]
    if run.album is not None:
        drawn += [states_by_depth(run.album, f"{prefix}states"), depth_along_episodes(run.album, f"{prefix}episode")]
    return (sketch for sketch in drawn if sketch is not None)


def run_report_page(
    runs: Sequence[TrainingRun], together: Sequence[Figure], alone: Mapping[str, Sequence[Figure]]
) -> str:
    """The page as HTML.

    Args:
        runs: at least one.
        together: figures about all of them.
        alone: figures by name of the run.
    """
    if len(runs) == 1:
        (run,) = runs
        title, lead = run.title, _lead(run)
        parts = _parts(run, alone[run.name])
    else:
        title, lead = f"{len(runs)} training runs", "Their learning curves together, then each on its own."
        parts = [Part("Compared", _comparison(runs) + _plates(together))]
        parts += [Part(run.name, _section(run, alone[run.name])) for run in runs]
    links = "".join(f'<a href="#part-{i}">{escape(part.heading)}</a>' for i, part in enumerate(parts))
    sections = "".join(
        f'<section id="part-{i}"><h2>{escape(part.heading)}</h2>\n{part.html}</section>' for i, part in enumerate(parts)
    )
    body = (
        f'<header class="top"><h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p></header>\n'
        f'<nav aria-label="sections"><div>{links}</div></nav>\n<main>{sections}</main>\n'
        f"<footer>Made by adalook {escape(version('adalook'))}. "
        "One file: it needs no network and can be sent as it is.</footer>"
    )
    return document(f"adalook: {title}", body, {})


def _lead(run: TrainingRun) -> str:
    return f"What the training run “{run.name}” logged in {run.log.steps:,} agent steps, and how its agent plays."


def _section(run: TrainingRun, figures: Sequence[Figure]) -> str:
    """A run among several."""
    inner = "".join(f"<h3>{escape(part.heading)}</h3>{part.html}" for part in _parts(run, figures))
    return f'<p class="lead">{escape(run.title)}</p>{inner}'


def _parts(run: TrainingRun, figures: Sequence[Figure]) -> list[Part]:
    seen = {"states", "episode"}
    logged = [figure for figure in figures if figure.svg.stem.rpartition("-")[2] not in seen]
    watched = [figure for figure in figures if figure not in logged]
    no_pictures = f'<p class="problem" role="note">{escape(f"No pictures of states: {run.reason}")}</p>'
    return [
        Part("In numbers", _notes(run) + _cards(run)),
        Part("Learning", _plates(logged)),
        Part("States by depth", _plates(watched) if run.album is not None else no_pictures),
        Part("Settings", _settings(run)),
    ]


def _plates(figures: Sequence[Figure]) -> str:
    return f'<div class="plates">{"".join(map(plate, figures))}</div>' if figures else ""


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
        ("Last episodes of training", *_last_episodes(run)),
        ("Agent steps", f"{log.steps:,}", speed),
        ("Time of training", *_time(run)),
    ]
    if log.prior_steps:
        cards.append(("Time of the prior", duration(log.prior_seconds), f"{log.prior_steps:,} steps, not counted"))
    items = "".join(
        f'<li><span class="name">{escape(name)}</span><b>{escape(number)}</b><span>{escape(more)}</span></li>'
        for name, number, more in cards
    )
    return f'<ul class="headline">{items}</ul>'


def _time(run: TrainingRun) -> tuple[str, str]:
    if run.seconds is None:
        return "–", "not on record"
    return duration(run.seconds), f"up to step {run.log.clock.steps[-1]:,.0f}, without evaluations"


def _evaluation(evaluation: Evaluated | None) -> tuple[str, str]:
    if evaluation is None:
        return "–", "there was none"
    count = len(evaluation.scores)
    error = f"± {evaluation.standard_error:.2f}, " if count > 1 else ""
    return f"{evaluation.mean:.2f}", f"{error}{count} episode{'s' if count > 1 else ''}, at step {evaluation.step:,}"


def _best_evaluation(run: TrainingRun) -> tuple[str, str]:
    """The best of many has had luck: whoever reads its mean should know."""
    number, more = _evaluation(run.log.best_evaluation)
    count = len(run.log.evaluations)
    return number, f"{more}; the best of {count}, which flatters" if count > 1 else more


def _last_episodes(run: TrainingRun) -> tuple[str, str]:
    scores = run.log.episode_scores
    if not len(scores):
        return "–", "none was over"
    last = scores[-smoothing_window(len(scores)) :]
    return f"{last.mean():.2f}", f"mean of the last {len(last)} of {len(scores):,}"


def _comparison(runs: Sequence[TrainingRun]) -> str:
    heads = (
        "run",
        "world",
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
            str(run.description["seed"]),
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
    rows = [("world", run.env), ("agent", run.agent), ("seed", str(run.description["seed"]))]
    rows += [
        (name.replace("_", " "), f"{_words(value)} (preset: {_words(usual)})")
        for name, (value, usual) in sorted(run.changed.items())
    ]
    alike = "" if run.changed else '<p class="note">All as in the preset of the world’s family.</p>'
    everything = [(name.replace("_", " "), _words(value)) for name, value in sorted(run.description["config"].items())]
    return (
        f"{alike}{table(rows, 'summary')}"
        f"<details><summary>All {len(everything)} settings</summary>{table(everything, 'summary')}</details>"
    )


def _words(value: object) -> str:
    """A setting for people."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def duration(seconds: float) -> str:
    """
    >>> [duration(seconds) for seconds in (42.4, 200, 9_000)]
    ['42.4 s', '3 min 20 s', '2 h 30 min']
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
