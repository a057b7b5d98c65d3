"""Planning, side by side: `python -m benchmarks.planning`.

Every (model, solver, setting) is measured in a fresh child process, one at a time; ours before and after its peers.
A peer counts when its values are within 1e-6 of ours (plus our certified error); one that misses is asked for ever more
accuracy, a digit at a time, until it gets there. What is timed is the solve alone, from a cold start; building the
model, compiling, and reading the answer out are not. The report goes to `results/planning.{json,md}`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.planning import report
from benchmarks.planning.child import BUILD_LIMIT_SECONDS
from benchmarks.planning.models import CASES, CERTIFICATE, GROWTH, Case
from benchmarks.planning.peers import OURS, SETTINGS, Setting, installed
from benchmarks.results import ROOT, machine, memory_bytes, write_results

GROWTH_LIMIT_SECONDS = 600.0
BUSY_LOAD = 0.5
"""A load average above this, before the run, means that others use the machine."""
GIVE_UP = 2
"""Settings of one peer that may fail to answer on a model before its others are not tried."""
SHORT_SECONDS, CLOSE, TURNS = 0.005, 1.5, 4
"""Where ours takes less than so many seconds, it and the peers within so much of the fastest take so many turns."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """How to measure, and where to say so."""

    repeats: int
    limit_seconds: float
    folder: Path
    console: Console

    def child(self, task: str, model: Record, **details: Any) -> Record:
        """Run one measurement; whatever happens to it, a record comes back."""
        result = self.folder / "result.json"
        job = {
            "task": task,
            "model": model,
            "repeats": self.repeats,
            "limit_seconds": self.limit_seconds,
            "memory_bytes": memory_bytes() // 2,
            "result": str(result),
            "reference": str(self.folder / "reference.npz"),
            **details,
        }
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.planning.child"],
            input=json.dumps(job),
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            check=False,
        )
        record: Record = json.loads(result.read_text())
        result.unlink()
        if done.returncode == -signal.SIGALRM:
            what = "no model" if record["step"] == "build" else "no answer"
            limit = BUILD_LIMIT_SECONDS if record["step"] == "build" else job["limit_seconds"]
            record["failure"] = f"{what} in {limit:g} s"
        elif record["step"] != "done" and "failure" not in record:
            record["failure"] = f"ended with code {done.returncode}"
        return record

    def solve(self, case: Case, setting: Setting, skip: str = "") -> Record:
        if case.kind in setting.skip or skip:
            record = {"failure": f"not run: {setting.skip.get(case.kind, skip)}"}
        else:
            record = self.child("compare", case.spec, solver=setting.solver, options=setting.options)
        record = {"name": setting.name, "solver": setting.solver, **record}
        self.console.print(f"  {setting.name:<36} {report.outcome(record)}", highlight=False)
        return record

    def case(self, case: Case) -> Record:
        """Ours, every peer, ours again."""
        self.console.print(f"[bold]{case.name}[/]")
        load = os.getloadavg()[0]
        ours = self.solve(case, OURS)
        runs: list[Record] = []
        for setting in SETTINGS:
            if installed(setting.solver):
                mine = [run for run in runs if run["solver"] == setting.solver]
                runs.append(self.solve(case, setting, hopeless(mine)))
        if ours.get("seconds", 0.0) < SHORT_SECONDS:
            self.turns(case, ours, runs)
        pool(ours, self.solve(case, OURS))
        return {**summary(case, ours, runs), "load_before": load}

    def turns(self, case: Case, ours: Record, runs: list[Record]) -> None:
        """Ours and its close rivals by turns: what takes no time is at the mercy of what else the machine does."""
        answers = [run for run in runs if counts(run)]
        least = min((run["seconds"] for run in answers), default=0.0)
        rivals = [run for run in answers if run["seconds"] <= CLOSE * least]
        settings = {setting.name: setting for setting in (OURS, *SETTINGS)}
        for _ in range(TURNS):
            for run in (ours, *rivals):
                pool(run, self.solve(case, settings[run["name"]]))

    def growth(self, quick: bool) -> Record:
        self.console.print("[bold]growth[/]")
        rows = []
        for size in GROWTH.quick_sizes if quick else GROWTH.sizes:
            row = self.child("grow", GROWTH.spec(size), limit_seconds=GROWTH_LIMIT_SECONDS)
            rows.append({"size": size, **row})
            self.console.print(f"  maze {size}×{size:<30} {report.outcome(rows[-1])}", highlight=False)
        ratio = rows[-1].get("memory_ratio")
        met = ratio is not None and rows[-1].get("converged", False) and ratio <= GROWTH.memory_goal
        return {"rows": rows, "memory_goal": GROWTH.memory_goal, "goal_met": met}

    def certificate(self) -> Record:
        self.console.print("[bold]certificate[/]")
        rows = []
        for name, spec in CERTIFICATE.specs.items():
            row = {"name": name, **self.child("certify", spec)}
            rows.append({**row, "goal_met": row.get("share", 1.0) <= CERTIFICATE.goal})
            self.console.print(f"  {name:<36} {100 * row.get('share', float('nan')):.2f} % of a solve", highlight=False)
        return {"rows": rows, "goal": CERTIFICATE.goal}


def summary(case: Case, ours: Record, runs: list[Record]) -> Record:
    """Pick the fastest accurate setting of each peer and say whether the goal is met."""
    best: dict[str, Record] = {}
    for run in runs:
        rival = best.get(run["solver"])
        if counts(run) and (rival is None or run["seconds"] < rival["seconds"]):
            best[run["solver"]] = run
    fastest = min(best.values(), key=lambda run: run["seconds"], default=None)
    ratio = fastest["seconds"] / ours["seconds"] if fastest and counts(ours) else None
    return {
        "name": case.name,
        "model": case.spec,
        "states": ours.get("states"),
        "goal": case.goal,
        "ours": ours,
        "peers": runs,
        "best": {solver: run["name"] for solver, run in best.items()},
        "missing": sorted({s.solver for s in SETTINGS} - {run["solver"] for run in runs}),
        "fastest": fastest["name"] if fastest else None,
        "ratio": ratio,
        "goal_met": ratio is not None and ratio >= case.goal,
    }


def pool(run: Record, again: Record) -> None:
    """Count another turn of the same contender."""
    if "times" in run and "times" in again:
        run["times"] += again["times"]
        run["seconds"] = statistics.median(run["times"])


def hopeless(runs: list[Record]) -> str:
    """Why a peer's further settings are not worth the time, given its runs so far; empty if they are."""
    slow = [run for run in runs if run.get("failure", "").startswith("no ")]
    if len(slow) >= GIVE_UP and not any(counts(run) for run in runs):
        return f"{GIVE_UP} other settings gave {slow[0]['failure']}"
    return ""


def counts(run: Record) -> bool:
    return "seconds" in run and run["accurate"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__.split("\n", 1)[0])
    parts = [*(case.name for case in CASES), "growth", "certificate"]
    parser.add_argument("--only", action="append", choices=parts, metavar="NAME", help=f"one of: {', '.join(parts)}")
    parser.add_argument("--repeats", type=int, default=3, help="timed solves of each, at least; the median counts")
    parser.add_argument("--limit", type=float, default=6.0, help="seconds that a peer may take for one solve")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    parser.add_argument("--quick", action="store_true", help="the small models, timed once, at most 10 s each")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    console = Console()
    wanted = args.only or [*(case.name for case in CASES if case.quick or not args.quick), "growth", "certificate"]
    repeats, limit = (1, min(args.limit, 10.0)) if args.quick else (args.repeats, args.limit)
    results: Record = {"machine": machine(), "repeats": repeats, "limit_seconds": limit, "accuracy": 1e-6}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(repeats, limit, Path(folder), console)
        results["cases"] = [bench.case(case) for case in CASES if case.name in wanted]
        results["growth"] = bench.growth(args.quick) if "growth" in wanted else None
        results["certificate"] = bench.certificate() if "certificate" in wanted else None
    # Only a complete run may replace the published one.
    stem = "planning-partial" if args.only or args.quick else "planning"
    write_results(args.out, stem, results, report.markdown(results, stem).rstrip("\n"))
    if results["growth"]:
        report.plot(results["growth"], args.out / f"{stem}-growth")
    report.show(results, console)
    if results["machine"]["load_before"] > BUSY_LOAD:
        console.print("[yellow]The machine was busy with other work when this began: the numbers are provisional.[/]")
