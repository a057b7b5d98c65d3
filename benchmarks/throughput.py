"""Training steps per second, side by side: `python -m benchmarks.throughput`.

Plain DQN (depth 0) on ALE Breakout and MinAtar Breakout: ours against Stable-Baselines3's DQN and CleanRL's
dqn_atari.py, with the same worlds, network, optimiser and settings. Every run is a process of its own that is timed
once it learns; contenders take turns, and medians count. A peer runs with one world and with as many as ours, with one
thread and with two: its fastest setting is what ours is held against. The report goes to
`results/throughput.{json,md}`.

CleanRL is scripts, not a library, and what pip installs of it wants the Gym of 2021. It takes part in a Python of its
own, which `make .venv-cleanrl` sets up.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from adalook.disk import replacing
from adalook.learning.config import Config, config_for
from benchmarks import throughput_report as report
from benchmarks.planning import ROOT, machine
from benchmarks.throughput_job import Job

OURS, SB3, CLEANRL = "adalook", "Stable-Baselines3", "CleanRL"
BUFFER_TRANSITIONS = 100_000
"""For all: the preset's million stacks would take SB3 28 GB."""
CLEANRL_PYTHON = ROOT / ".venv-cleanrl" / "bin" / "python"
PATIENCE_SECONDS = 600.0
PACKAGES = ("torch", "ale-py", "minatar", "stable_baselines3", "opencv-python-headless")
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One world, and how often its peers are to be beaten."""

    env: str
    learning_starts_steps: int
    warm_up_steps: int
    measured_steps: int
    goals: dict[str, float]

    def job(self, contender: str, envs: int, threads: int) -> Job:
        """Our preset for the world, for any contender."""
        preset: Config = config_for(self.env)
        return Job(
            contender=contender,
            env=self.env,
            envs=envs,
            threads=threads,
            batch_transitions=preset.batch_transitions,
            buffer_transitions=BUFFER_TRANSITIONS,
            update_period_steps=preset.update_period_steps,
            target_period_steps=preset.target_period_steps,
            learning_rate=preset.learning_rate,
            learning_starts_steps=self.learning_starts_steps,
            warm_up_steps=self.warm_up_steps,
            measured_steps=self.measured_steps,
            discount=preset.discount,
        )

    def jobs(self) -> list[Job]:
        """Ours as its preset has it, then every setting of the peers."""
        preset = config_for(self.env)
        jobs = [self.job(OURS, preset.envs, preset.threads)]
        jobs += [self.job(SB3, envs, threads) for envs in (1, preset.envs) for threads in (1, 2)]
        if CLEANRL in self.goals:
            jobs += [self.job(CLEANRL, 1, threads) for threads in (1, 2)]
        return jobs


CASES = (
    Case("ALE/Breakout-v5", 3_000, 400, 1_600, {SB3: 1.5, CLEANRL: 1.2}),
    Case("MinAtar/Breakout-v1", 3_000, 1_000, 6_000, {SB3: 2.0}),
)


def command(job: Job, cleanrl_python: Path) -> list[str]:
    """What to start for a contender."""
    if job.contender == CLEANRL:
        script = Path(__file__).with_name("throughput_cleanrl.py")
        return [str(cleanrl_python), "-W", "ignore", str(script)]
    return [sys.executable, "-m", "benchmarks.throughput_child"]


def run(job: Job, cleanrl_python: Path = CLEANRL_PYTHON) -> Record:
    """One run; whatever happens to it, a record comes back."""
    if job.contender == CLEANRL and not cleanrl_python.exists():
        return {"failure": "not set up (make .venv-cleanrl)"}
    try:
        done = subprocess.run(
            command(job, cleanrl_python),
            input=json.dumps(job.plain()),
            text=True,
            capture_output=True,
            cwd=ROOT,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        record: Record = json.loads(done.stdout.splitlines()[-1])
        return record
    except subprocess.TimeoutExpired:
        return {"failure": f"no answer in {PATIENCE_SECONDS:g} s"}
    except subprocess.CalledProcessError as error:
        return {"failure": (error.stderr.splitlines() or ["it failed without a word"])[-1]}
    except (OSError, ValueError, IndexError) as error:
        return {"failure": f"{type(error).__name__}: {error}"}


def middle(job: Job, runs: list[Record]) -> Record:
    """A contender's setting, with the run of median length, or why there is none."""
    setting = {"contender": job.contender, "envs": job.envs, "threads": job.threads}
    failures = [record["failure"] for record in runs if "failure" in record]
    if failures:
        return setting | {"failure": failures[0]}
    rates = [record["steps"] / record["seconds"] for record in runs]
    rate = statistics.median_low(rates)
    chosen = runs[rates.index(rate)]
    processor = chosen["processor_seconds"] / chosen["steps"]
    return setting | {"steps_per_second": rate, "processor_seconds_per_step": processor, "runs": runs}


def fastest(settings: list[Record], contender: str) -> Record | None:
    """The setting of a contender that makes most steps per second; None if none ran."""
    answers = [one for one in settings if one["contender"] == contender and "failure" not in one]
    return max(answers, key=lambda one: one["steps_per_second"], default=None)


def summary(case: Case, settings: list[Record]) -> Record:
    """Ratios to the fastest setting of every peer, and whether the goals are met."""
    mine = fastest(settings, OURS)
    ratios: dict[str, float | None] = {}
    goals: dict[str, list[Any] | None] = {}
    for peer, goal in case.goals.items():
        best = fastest(settings, peer)
        ratio = mine["steps_per_second"] / best["steps_per_second"] if mine and best else None
        ratios[peer] = ratio
        goals[peer] = None if ratio is None else [goal, ratio >= goal]
    shared = case.job(OURS, 1, 1).plain()
    for own in ("contender", "envs", "threads"):
        del shared[own]
    return {"env": case.env, "settings": settings, "ratios": ratios, "goals": goals, "shared": shared}


def measure(case: Case, repeats: int, cleanrl_python: Path, console: Console) -> Record:
    """All contenders by turns. What failed once is not asked again."""
    console.print(f"[bold]{case.env}[/]")
    runs: dict[Job, list[Record]] = {job: [] for job in case.jobs()}
    for _ in range(repeats):
        for job, records in runs.items():
            if not any("failure" in record for record in records):
                records.append(run(job, cleanrl_python))
                console.print(f"  {report.line(middle(job, records[-1:]))}", highlight=False)
    result = summary(case, [middle(job, records) for job, records in runs.items()])
    console.print(f"  {report.verdicts(result)}", highlight=False)
    return result


def about() -> Record:
    """The machine, with the versions of what takes part."""
    record = machine()
    for package in PACKAGES:
        record["versions"][package] = importlib.metadata.version(package)
    return record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    names = [case.env for case in CASES]
    parser.add_argument("--only", action="append", choices=names, metavar="ENV", help=f"one of: {', '.join(names)}")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each contender; the median counts")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual steps, to try it out")
    parser.add_argument(
        "--cleanrl-python", type=Path, default=CLEANRL_PYTHON, metavar="PYTHON", help="that has CleanRL"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    console = Console()
    wanted = args.only or [case.env for case in CASES]
    cases = [
        replace(case, measured_steps=int(case.measured_steps * args.scale)) for case in CASES if case.env in wanted
    ]
    results: Record = {"machine": about(), "repeats": args.repeats}
    results["cases"] = [measure(case, args.repeats, args.cleanrl_python.absolute(), console) for case in cases]
    # Only a complete run may replace the published one.
    stem = "throughput-partial" if args.only or args.scale != 1.0 else "throughput"
    args.out.mkdir(parents=True, exist_ok=True)
    for name, text in ((f"{stem}.json", json.dumps(results, indent=1)), (f"{stem}.md", report.markdown(results, stem))):
        with replacing(args.out / name) as file:
            file.write(text.encode() + b"\n")


if __name__ == "__main__":
    main()
