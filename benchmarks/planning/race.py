"""Planning, side by side: `python -m benchmarks.planning`.

Every model has a child process, in which all settings are measured one after the other, ours before and after its
peers; a setting that takes too long ends the process, and a new one goes on. The models done are kept in
`planning-cases.json`: a run that was stopped goes on from there. `--seconds` stops it by itself, with a page in which
models that it did not come to have their figures of before, marked; the small model of every family comes first.
A peer counts when its values are within 1e-6 of ours (plus our certified error); one that misses is asked for ever more
accuracy, a digit at a time, until it gets there. What is timed is the solve alone, from a cold start; building the
model, compiling, and reading the answer out are not. The report goes to `results/planning.{json,md}`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.planning import report
from benchmarks.planning.child import BUILD_LIMIT_SECONDS, COMPILE_LIMIT_SECONDS, PATIENCE, seconds
from benchmarks.planning.models import CASES, CERTIFICATE, GROWTH, Case
from benchmarks.planning.peers import AGAIN, OURS, OWN, SETTINGS, installed
from benchmarks.results import ROOT, machine, memory_bytes, write_results

GROWTH_LIMIT_SECONDS = 3600.0
BUSY_LOAD = 0.5
"""A load average above this, before the run, means that others use the machine."""
SHORT_SECONDS = 0.002
"""Where ours takes less than this, the goal is to be no slower than the fastest peer."""
MAX_REGRET = 1.5
"""The default may take so many times as long as the best of our own methods."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """How to measure, and where to say so."""

    repeats: int
    limit_seconds: float
    """What a peer may take at least …"""
    most_seconds: float
    """… and at most; in between, a multiple of what ours took."""
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
            "most_seconds": self.most_seconds,
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
        whole: Record = json.loads(result.read_text()) if result.exists() else {}
        result.unlink(missing_ok=True)
        record = list(whole.values())[-1] if task == "compare" and whole else whole
        if not record:
            return {}
        if done.returncode == -signal.SIGPROF:
            what, limit = {
                "compile": ("no answer on a tiny model", COMPILE_LIMIT_SECONDS),
                "build": ("no model", BUILD_LIMIT_SECONDS),
            }.get(record["step"], ("no answer", record.get("limit_seconds", job["limit_seconds"])))
            record["failure"] = f"{what} in {limit:.3g} s"
        elif record["step"] != "done" and "failure" not in record:
            record["failure"] = f"ended with code {done.returncode}"
        return whole

    def case(self, case: Case) -> Record:
        """Ours, our other methods, every peer, ours again; what ends a process by its clock is left to a new one."""
        self.console.print(f"[bold]{case.name}[/]")
        load = os.getloadavg()[0]
        wanted = [s for s in (OURS, *OWN, *SETTINGS, AGAIN) if installed(s.solver)]
        waiting = [
            {
                "name": s.name,
                "solver": s.solver,
                "options": s.options,
                "skip": s.skip.get(case.kind, ""),
                "exact": s.exact,
            }
            for s in wanted
        ]
        runs: dict[str, Record] = {}
        while waiting:
            records = self.child("compare", case.spec, settings=waiting, done=list(runs.values()))
            if not records:
                break
            runs |= records
            waiting = [setting for setting in waiting if setting["name"] not in records]
        for run in runs.values():
            self.console.print(f"  {run['name']:<36} {report.outcome(run)}", highlight=False)
        ours = runs.pop(OURS.name)
        pool(ours, runs.pop(AGAIN.name, {}))
        return {**summary(case, ours, list(runs.values())), "load_before": load, "measured": machine()["date"][:10]}

    def growth(self, quick: bool) -> Record:
        self.console.print("[bold]growth[/]")
        rows = []
        for size in GROWTH.quick_sizes if quick else GROWTH.sizes:
            limits = {"limit_seconds": GROWTH_LIMIT_SECONDS, "memory_bytes": int(GROWTH.memory_goal)}
            row = self.child("grow", GROWTH.spec(size), **limits)
            rows.append({"size": size, **row})
            self.console.print(f"  maze {size}×{size:<30} {report.outcome(rows[-1])}", highlight=False)
        met = all(row.get("converged", False) and row["peak_bytes"] <= GROWTH.memory_goal for row in rows)
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
    """Pick the fastest accurate setting of each peer and of our own methods, and say whether the goals are met."""
    best: dict[str, Record] = {}
    for run in runs:
        rival = best.get(run["solver"])
        if counts(run) and (rival is None or run["seconds"] < rival["seconds"]):
            best[run["solver"]] = run
    own = best.pop(OURS.solver, None)
    fastest = min(best.values(), key=lambda run: run["seconds"], default=None)
    ratio = fastest["seconds"] / ours["seconds"] if fastest and counts(ours) else None
    at_least = None if fastest or not counts(ours) else ratio_at_least(ours, runs)
    regret = ours["seconds"] / min(own["seconds"], ours["seconds"]) if own and counts(ours) else None
    goal = 1.0 if counts(ours) and ours["seconds"] < SHORT_SECONDS else case.goal
    return {
        "name": case.name,
        "model": case.spec,
        "states": ours.get("states"),
        "goal": goal,
        "ours": ours,
        "own": [run for run in runs if run["solver"] == OURS.solver],
        "peers": [run for run in runs if run["solver"] != OURS.solver],
        "best": {solver: run["name"] for solver, run in best.items()},
        "best_own": own["name"] if own else None,
        "missing": sorted({s.solver for s in SETTINGS} - {run["solver"] for run in runs}),
        "fastest": fastest["name"] if fastest else None,
        "ratio": ratio,
        "ratio_at_least": at_least,
        "regret": regret,
        "goal_met": counts(ours) and (ratio or at_least or goal) >= goal and (regret is None or regret <= MAX_REGRET),
    }


def ratio_at_least(ours: Record, runs: list[Record]) -> float | None:
    """Return how many times as long as ours every peer took at least, where each ran out of time; None if none did."""
    limits = [
        run["limit_seconds"]
        for run in runs
        if run["solver"] != OURS.solver and run["step"] == "solve" and "limit_seconds" in run
    ]
    return min(limits) / ours["seconds"] if limits else None


def small_first(cases: tuple[Case, ...]) -> list[Case]:
    """The first model of every kind, then the others."""
    kinds = [case.kind for case in cases]
    first = [case for place, case in enumerate(cases) if case.kind not in kinds[:place]]
    return [*first, *(case for case in cases if case not in first)]


def pool(run: Record, again: Record) -> None:
    """Count another turn of the same contender."""
    if "times" in run and "times" in again:
        ticks = sum(turn["processor_seconds"] * len(turn["times"]) for turn in (run, again))
        run["times"] += again["times"]
        run["processor_seconds"] = ticks / len(run["times"])
        run["seconds"] = seconds(run["times"], ticks)


def published(path: Path) -> dict[str, Record]:
    """Return the models of an earlier run by name, with the day each was measured: until there are newer ones."""
    if not path.exists():
        return {}
    results: Record = json.loads(path.read_text())
    day = results["machine"]["date"][:10]
    return {case["name"]: {"measured": day, **case} for case in results["cases"]}


def counts(run: Record) -> bool:
    return "seconds" in run and bool(run["accurate"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__.split("\n", 1)[0])
    parts = [*(case.name for case in CASES), "growth", "certificate"]
    parser.add_argument("--only", action="append", choices=parts, metavar="NAME", help=f"one of: {', '.join(parts)}")
    parser.add_argument("--repeats", type=int, default=3, help="timed solves of each, at least; the median counts")
    parser.add_argument(
        "--limit",
        type=float,
        default=1.0,
        help=f"seconds of processor time that a peer may take for one solve, if {PATIENCE:g} times ours is less",
    )
    parser.add_argument("--most", type=float, default=30.0, help="seconds that it may take however long ours takes")
    parser.add_argument(
        "--seconds",
        type=float,
        default=math.inf,
        help="begin no further model after so many seconds, and write the page",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    parser.add_argument("--quick", action="store_true", help="the small models, timed once, at most 10 s each")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    console = Console()
    wanted = args.only or [*(case.name for case in CASES if case.quick or not args.quick), "certificate"]
    repeats, limit = (1, min(args.limit, 10.0)) if args.quick else (args.repeats, args.limit)
    results: Record = {
        "machine": machine(),
        "repeats": repeats,
        "limit_seconds": limit,
        "most_seconds": max(limit, args.most),
        "accuracy": 1e-6,
    }
    # Only a complete run may replace a published one; growth, which takes gigabytes, has a run and a page of its own.
    stem = "planning-partial" if args.only or args.quick else "planning"
    if args.only == ["growth"] and not args.quick:
        stem = "planning-growth"
    args.out.mkdir(parents=True, exist_ok=True)
    kept = args.out / f"{stem}-cases.json"
    done: dict[str, Record] = json.loads(kept.read_text()) if kept.exists() and stem == "planning" else {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(repeats, limit, max(limit, args.most), Path(folder), console)
        for case in small_first(CASES):
            late = time.monotonic() - began > args.seconds
            if case.name in wanted and not late and done.get(case.name, {}).get("model") != case.spec:
                done[case.name] = bench.case(case)
                if stem == "planning":
                    kept.write_text(json.dumps(done))
        chosen = [case for case in CASES if case.name in wanted]
        late = any(case.name not in done for case in chosen)
        known = published(args.out / f"{stem}.json") | done
        results["cases"] = [known[case.name] for case in chosen if known.get(case.name, {}).get("model") == case.spec]
        results["missing"] = [case.name for case in chosen if known.get(case.name, {}).get("model") != case.spec]
        results["growth"] = bench.growth(args.quick) if "growth" in wanted and not late else None
        results["certificate"] = bench.certificate() if "certificate" in wanted and not late else None
    write_results(args.out, stem, results, report.markdown(results, stem).rstrip("\n"))
    if late:
        console.print(f"{len(done)} of {len(chosen)} models are done; run again to go on")
    else:
        kept.unlink(missing_ok=True)
    if results["growth"]:
        report.plot(results["growth"], args.out / f"{stem.removesuffix('-growth')}-growth")
    if results["cases"]:
        report.plot_families(results["cases"], args.out / f"{stem}-families")
    report.show(results, console)
    if results["machine"]["load_before"] > BUSY_LOAD:
        console.print("[yellow]The machine was busy with other work when this began: the numbers are provisional.[/]")
