"""Training steps per second, side by side: `python -m benchmarks.throughput`.

Plain DQN (depth 0) on ALE Breakout and MinAtar Breakout: ours against Stable-Baselines3's DQN and CleanRL's
dqn_atari.py, with the same environments, network, optimizer and settings. Every contender is a process of its own that
is timed once it learns. All live side by side and take turns of a few seconds, so that whatever slows the machine down
meets them alike; the ratio of every turn is one measurement, and the median counts. A peer runs with one environment
and with as many as ours, with one thread and with two: its fastest setting is what ours is held against. The report
goes to `results/throughput.{json,md}`.

`python -m benchmarks.throughput ablation` measures instead what each of our CPU twins gains (`ablation.py`).

CleanRL is scripts, not a library, and what pip installs of it wants the Gym of 2021. It takes part in a Python of its
own, which `make .venv/cleanrl/ready` sets up.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from adalook.learning.config import Config
from benchmarks.results import ROOT, machine, write_results
from benchmarks.throughput import ablation, report
from benchmarks.throughput.child import case_config
from benchmarks.throughput.contender import CLEANRL, CLEANRL_PYTHON, Contender
from benchmarks.throughput.job import Job

OURS, SB3 = "adalook", "Stable-Baselines3"
BUFFER_TRANSITIONS = 100_000
"""For all: the preset's million stacks would take SB3 28 GB."""
TURNS = 9
PACKAGES = ("torch", "ale-py", "minatar", "stable_baselines3", "opencv-python-headless")
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One env, and how often its peers are to be beaten."""

    env: str
    learning_starts_steps: int
    warm_up_steps: int
    turn_steps: int
    goals: dict[str, float]
    fast: bool = False
    """With the small network and the settings that twenty minutes of Atari ask for."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        return f"{self.env}, small network" if self.fast else self.env

    @property
    def preset(self) -> Config:
        """Our settings for the env."""
        return case_config(self.env, self.fast)

    def job(self, contender: str, num_envs: int, threads: int) -> Job:
        """Our preset for the env, for any contender."""
        preset = self.preset
        return Job(
            contender=contender,
            env=self.env,
            num_envs=num_envs,
            threads=threads,
            batch_transitions=preset.batch_transitions,
            buffer_transitions=BUFFER_TRANSITIONS,
            update_period_steps=preset.update_period_steps,
            target_period_steps=preset.target_period_steps,
            learning_rate=preset.learning_rate,
            learning_starts_steps=self.learning_starts_steps,
            warm_up_steps=self.warm_up_steps,
            turn_steps=self.turn_steps,
            fast=self.fast,
            discount=preset.discount,
        )

    def jobs(self) -> list[Job]:
        """Ours as its preset has it, then every setting of the peers."""
        preset = self.preset
        jobs = [self.job(OURS, preset.num_envs, preset.threads)]
        jobs += [self.job(SB3, num_envs, threads) for num_envs in (1, preset.num_envs) for threads in (1, 2)]
        if CLEANRL in self.goals:
            jobs += [self.job(CLEANRL, 1, threads) for threads in (1, 2)]
        return jobs


CASES = (
    Case("ALE/Breakout-v5", 3_000, 400, 400, {SB3: 1.5, CLEANRL: 1.2}),
    Case("ALE/Breakout-v5", 3_000, 400, 800, {SB3: 2.0}, fast=True),
    Case("MinAtar/Breakout-v1", 3_000, 1_000, 1_600, {SB3: 2.0}),
)


def middle(job: Job, turns: list[Record]) -> Record:
    """A contender's setting with the medians of its turns, or why there are none."""
    setting = {"contender": job.contender, "num_envs": job.num_envs, "threads": job.threads}
    failures = [turn["failure"] for turn in turns if "failure" in turn]
    if failures:
        return setting | {"failure": failures[0]}
    return setting | {
        "steps_per_second": statistics.median(turn["steps"] / turn["seconds"] for turn in turns),
        "processor_seconds_per_step": statistics.median(turn["processor_seconds"] / turn["steps"] for turn in turns),
        "turns": turns,
    }


def fastest(settings: list[Record], contender: str) -> Record | None:
    """The setting of a contender that makes most steps per second; None if none ran."""
    answers = [one for one in settings if one["contender"] == contender and "failure" not in one]
    return max(answers, key=lambda one: one["steps_per_second"], default=None)


def ratios(mine: Record, peer: Record) -> list[float]:
    """How many times as many steps per second ours made, turn by turn."""
    return [
        (own["steps"] / own["seconds"]) / (other["steps"] / other["seconds"])
        for own, other in zip(mine["turns"], peer["turns"], strict=True)
    ]


def summary(case: Case, settings: list[Record]) -> Record:
    """Ratios to every setting of the peers, and whether the fastest of each is beaten as often as it should be."""
    mine = fastest(settings, OURS)
    for setting in settings:
        if mine is not None and setting is not mine and "failure" not in setting:
            setting["ratios"] = ratios(mine, setting)
            setting["ratio"] = statistics.median(setting["ratios"])
    against = {peer: fastest(settings, peer) if mine is not None else None for peer in case.goals}
    goals = {
        peer: None if best is None else {"goal": goal, "ratio": best["ratio"], "met": best["ratio"] >= goal}
        for (peer, goal), best in zip(case.goals.items(), against.values(), strict=True)
    }
    shared = case.job(OURS, 1, 1).plain()
    for own in ("contender", "num_envs", "threads"):
        del shared[own]
    return {"env": case.name, "settings": settings, "goals": goals, "shared": shared}


def measure(case: Case, turns: int, cleanrl_python: Path, console: Console) -> Record:
    """All contenders by turns, once each has learnt for a while."""
    console.print(f"[bold]{case.name}[/]")
    records: dict[Job, list[Record]] = {}
    with ExitStack() as stack:
        contenders = []
        for job in case.jobs():
            contender = stack.enter_context(Contender(job, cleanrl_python))
            begun = contender.ready()
            if "failure" in begun:
                records[job] = [begun]
                console.print(f"  {report.line(middle(job, [begun]))}", highlight=False)
            else:
                records[job] = []
                contenders.append(contender)
        for number in range(turns):
            console.print(f"  turn {number + 1} of {turns}")
            first = number % max(1, len(contenders))  # so that nobody always comes after the same other
            for contender in contenders[first:] + contenders[:first]:
                turn = contender.turn()
                records[contender.job].append(turn)
                console.print(f"    {report.line(middle(contender.job, [turn]))}", highlight=False)
        last_words = {contender.job: contender.end() for contender in contenders}
    result = summary(case, [middle(job, measured) | last_words.get(job, {}) for job, measured in records.items()])
    console.print(f"  {report.verdicts(result)}", highlight=False)
    return result


def about() -> Record:
    """The machine, with the versions of what takes part."""
    record = machine()
    for package in PACKAGES:
        record["versions"][package] = importlib.metadata.version(package)
    return record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__.split("\n", 1)[0])
    names = [case.name for case in CASES]
    parser.add_argument("what", nargs="?", choices=("peers", "ablation"), default="peers", help="what to compare with")
    parser.add_argument("--only", action="append", choices=names, metavar="CASE", help=f"one of: {', '.join(names)}")
    parser.add_argument("--turns", type=int, default=TURNS, help="of each contender; the median counts")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual steps, to try it out")
    parser.add_argument(
        "--cleanrl-python", type=Path, default=CLEANRL_PYTHON, metavar="PYTHON", help="that has CleanRL"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    args = parser.parse_args()
    if args.turns < 1:
        parser.error(f"--turns: expected 1 or more, got {args.turns}")
    return args


def main() -> None:
    args = arguments()
    if args.what == "ablation":
        ablation.run(args.out, max(args.turns, ablation.TURNS), args.only)
        return
    console = Console()
    wanted = args.only or [case.name for case in CASES]
    cases = [replace(case, turn_steps=int(case.turn_steps * args.scale)) for case in CASES if case.name in wanted]
    results: Record = {"machine": about(), "turns": args.turns}
    results["cases"] = [measure(case, args.turns, args.cleanrl_python.absolute(), console) for case in cases]
    # Only a complete run may replace the published one.
    stem = "throughput-partial" if args.only or args.scale != 1.0 or args.turns < TURNS else "throughput"
    write_results(args.out, stem, results, report.markdown(results, stem))
