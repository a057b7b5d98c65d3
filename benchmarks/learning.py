"""Learning, side by side: `python -m benchmarks.learning`, and `python -m benchmarks.learning ale`.

QL-DQN, with and without a prior, against DQN with trees of depth 0 to 3 on MinAtar, all with the same budget of time,
tree search and prior included. Every run is a process of its own with one thread. What is finished is kept: given
again, the command does what is missing, and what was defined differently then. Seeds come first, so that all contenders
have had their turn whenever it is interrupted; the report in `results/learning/` is rewritten after every run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from adalook.storage.files import make_directory
from benchmarks import learning_ale, learning_report
from benchmarks.learning_contenders import CONTENDERS, GAMES, RANDOM, USUAL, Job
from benchmarks.planning import ROOT

Record = dict[str, Any]

OUT = ROOT / "results" / "learning"
USUAL_GAMES = ("Breakout", "Asterix", "Freeway")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
OVERHEAD = 1.3
"""How much longer a run takes than its budget, evaluations included, as long as none has been seen."""


def jobs_for(games: list[str], agents: list[str], seeds: list[int], seconds: float) -> list[Job]:
    """Random play first, then by seed, game and agent: whatever part is finished is a fair comparison."""
    runs = [Job(game, agent, seed, seconds) for seed in seeds for game in games for agent in agents]
    return [*(Job(game, RANDOM, 0, seconds) for game in games), *runs]


def is_finished(job: Job, runs: Path) -> bool:
    return learning_report.read_run(job, runs) is not None


class Pool:
    """A few processes at a time, each doing one job."""

    def __init__(self, workers: int, runs: Path) -> None:
        self._workers, self._runs = workers, runs
        self._children: dict[subprocess.Popen[bytes], tuple[Job, IO[bytes]]] = {}

    def work_off(self, jobs: list[Job]) -> Iterator[tuple[Job, str]]:
        """Do the jobs in order; yields each when it is finished, with what went wrong, if something did."""
        waiting = list(reversed(jobs))
        while waiting or self._children:
            while waiting and len(self._children) < self._workers:
                self._start(waiting.pop())
            for child in [child for child in self._children if child.poll() is not None]:
                job, errors = self._children.pop(child)
                problem = _last_words(child, errors)
                if not problem and not is_finished(job, self._runs):
                    problem = "its settings are not those it was started with: was the code edited meanwhile?"
                yield job, problem
            time.sleep(0.2)

    def _start(self, job: Job) -> None:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the child is over
        command = [sys.executable, "-m", "benchmarks.learning_run", json.dumps(asdict(job))]
        child = subprocess.Popen(
            [*command, str(self._runs.resolve() / f"{job.name}.json")],
            env=os.environ | ONE_THREAD,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for us: we then end them
        )
        self._children[child] = job, errors

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *raised: object) -> None:
        for child in self._children:
            child.terminate()
        for child, (_job, errors) in self._children.items():
            child.wait()
            errors.close()


def _last_words(child: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    """Why a child failed; empty if it did not."""
    with errors:
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    if child.returncode == 0:
        return ""
    return lines[-1] if lines else f"it ended with code {child.returncode}"


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends the children as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt  # and not SIGINT, which shells let background jobs ignore

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_missing(jobs: list[Job], args: argparse.Namespace, console: Console) -> int:
    """Do what is not finished; returns how many jobs failed."""
    runs: Path = args.out / "runs"
    make_directory(runs)
    missing = [job for job in jobs if not is_finished(job, runs)]
    failures, took = 0, list[float]()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, refresh_per_second=1) as progress, Pool(args.workers, runs) as pool:
        bar = progress.add_task("runs", total=len(jobs), completed=len(jobs) - len(missing), left="")
        progress.update(bar, left=_time_left(missing, took, args))
        for count, (job, problem) in enumerate(pool.work_off(missing), 1):
            record = learning_report.read_run(job, runs)
            if problem:
                failures += 1
                console.print(f"[red]{job.name} failed[/]: {problem}", highlight=False)
            elif record is not None and job.agent != RANDOM:
                took.append(record["process_seconds"])
                console.print(learning_report.run_in_words(record), highlight=False)
            left = _time_left(missing[count:], took, args)
            progress.update(bar, advance=1, left=left)
            if not console.is_terminal:
                console.print(f"  {count} of {len(missing)} done, {left}", highlight=False)
            learning_report.write(jobs, args.out)
    return failures


def _time_left(waiting: list[Job], took: list[float], args: argparse.Namespace) -> str:
    """Those that run now are counted in whole: it is rather less."""
    each = sum(took) / len(took) if took else OVERHEAD * args.seconds
    minutes = sum(job.agent != RANDOM for job in waiting) * each / args.workers / 60.0
    return f"about {minutes:,.0f} min left"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--games", nargs="+", choices=GAMES, default=USUAL_GAMES, metavar="GAME", help=", ".join(GAMES))
    parser.add_argument(
        "--agents", nargs="+", choices=CONTENDERS, default=USUAL, metavar="AGENT", help=", ".join(CONTENDERS)
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--seconds", type=float, default=240.0, help="of processor time for training, per run")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time, one core each")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--report-only", action="store_true", help="train nothing; report what is there")
    args = parser.parse_args(words)
    if args.seconds <= 0.0 or args.workers < 1:
        parser.error("--seconds and --workers must be above 0")
    return args


def main() -> int:
    console = Console()
    if sys.argv[1:2] == ["ale"]:
        return learning_ale.main(sys.argv[2:], console)
    args = arguments()
    jobs = jobs_for(list(args.games), list(args.agents), args.seeds, args.seconds)
    failures = 0
    try:
        if not args.report_only:
            with terminated_like_interrupted():
                failures = run_missing(jobs, args, console)
    except KeyboardInterrupt:
        console.print("interrupted: what is finished is kept, and the same command goes on from there")
        return 3
    learning_report.write(jobs, args.out)
    console.print(f"report in {args.out / 'learning.md'}", highlight=False)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
