"""One measurement in a process of its own: `python -m benchmarks.planning.child < job.json`.

The job names a result file, which is rewritten as the work proceeds. Each step runs under a timer of processor time
that ends the whole process, as no other way stops a solver that is busy in compiled code; the file then still says
which step it was. A solve is timed by both clocks (`seconds`): on a machine with other work the wall clock measures
that work, too, and processor time, counted in ticks of some milliseconds, says nothing about short solves.
"""

from __future__ import annotations

import json
import resource
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import adalook as al
from adalook.mdp import checks
from benchmarks.planning import models, peers

EPSILON = 1e-6
FINEST = 1e-12
BUILD_LIMIT_SECONDS = 60.0
COMPILE_LIMIT_SECONDS = 20.0
"""For a tiny model, on which kernels are compiled; some peers cycle between tied actions even there."""
GIVE_UP = 2
"""Settings of one solver that may fail to answer on a model before its others are not tried."""
OURS_LIMIT_SECONDS = 60.0
PATIENCE, OWN_PATIENCE, OWN_LEAST_SECONDS = 20.0, 2.0, 0.2
"""How many times as long as ours a peer may take before it is stopped, and our other methods: more says nothing new."""
LONG_SECONDS = 1.0
"""A solve that takes more processor time than this is timed once."""
ENOUGH_SECONDS, MOST_REPEATS = 0.15, 100
"""Short solves are repeated until they add up to this much, or this often."""
TICK_SECONDS = 0.004
"""Processor time is counted in such steps on some kernels: of shorter solves most is not counted at all."""
WARM_SECONDS = 5.0
"""How long ours may compile on the model itself, beyond the pass that it is in."""

Record = dict[str, Any]


class Journal:
    """The result file; of several measurements, each has a record of its own in it, under its name."""

    def __init__(self, path: str, runs: Record | None = None) -> None:
        self.path = Path(path)
        self.whole: Record = {} if runs is None else runs
        self.record = self.whole

    def begin(self, name: str) -> None:
        self.record = self.whole[name] = {}

    def write(self, **news: Any) -> None:
        self.record.update(news)
        self.path.write_text(json.dumps(self.whole))

    @contextmanager
    def step(self, name: str, limit_seconds: float) -> Iterator[None]:
        """A step that ends the process when it takes too long."""
        self.write(step=name)
        signal.setitimer(signal.ITIMER_PROF, limit_seconds)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def compare_all(job: Record, journal: Journal) -> None:
    """Measure one setting after the other on one model; `job["done"]` holds the runs of processes before this one."""
    runs: dict[str, Record] = {}
    for setting in job["settings"]:
        journal.begin(setting["name"])
        journal.write(name=setting["name"], solver=setting["solver"], step="start")
        known = [*job["done"], *runs.values()]
        mine = [run for run in known if run["solver"] == setting["solver"]]
        skip = setting["skip"] or ("" if setting["exact"] else hopeless(mine))
        try:
            if skip:
                journal.write(step="done", failure=f"not run: {skip}")
            else:
                wanted = {**job, **setting}
                compare(wanted, limit_seconds(wanted, known), journal)
        except Exception as problem:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            journal.write(step="done", failure=f"{type(problem).__name__}: {problem}".splitlines()[0][:200])
        runs[setting["name"]] = journal.record


def limit_seconds(job: Record, known: list[Record]) -> float:
    """Processor time that a setting may take, given the runs so far: the longer, the longer ours took.

    >>> ours = {"name": peers.OURS.name, "seconds": 0.5}
    >>> limit_seconds({"name": "storm", "solver": "storm", "limit_seconds": 1.0, "most_seconds": 30.0}, [ours])
    10.0
    """
    if job["name"] in (peers.OURS.name, peers.AGAIN.name):
        return OURS_LIMIT_SECONDS
    ours = next((run["seconds"] for run in known if run["name"] == peers.OURS.name and "seconds" in run), 0.0)
    if job["solver"] == peers.OURS.solver:
        return float(max(OWN_LEAST_SECONDS, OWN_PATIENCE * ours))
    return float(min(max(job["limit_seconds"], PATIENCE * ours), job["most_seconds"]))


def hopeless(runs: list[Record]) -> str:
    """Why a solver's further settings are not worth the time, given its runs so far; empty if they are."""
    slow = [run for run in runs if run.get("failure", "").startswith("no ")]
    if len(slow) >= GIVE_UP and not any("seconds" in run and run["accurate"] for run in runs):
        return f"{GIVE_UP} other settings gave {slow[0]['failure']}"
    return ""


def compare(job: Record, limit: float, journal: Journal) -> None:
    """Build, solve until accurate enough, then time; ours writes the reference, others are held against it."""
    spec, setting = job["model"], job["options"]
    journal.write(limit_seconds=limit)
    solver_type = peers.SOLVERS[job["solver"]]
    with journal.step("compile", COMPILE_LIMIT_SECONDS):
        solver_type(models.tiny(spec)).prepare(EPSILON, **setting)()  # compiles, or loads what was compiled
    with journal.step("build", BUILD_LIMIT_SECONDS):
        mdp = build(json.dumps(spec))
        began = time.perf_counter()
        solver = solver_type(mdp)
        solver.prepare(EPSILON, **setting)
        journal.write(states=mdp.num_states, build_seconds=time.perf_counter() - began)
        if isinstance(solver, peers.Adalook):  # which compiles more for large models than for small ones
            solver.compile(EPSILON, WARM_SECONDS, **setting)
    epsilon = EPSILON
    while True:
        with journal.step("build", BUILD_LIMIT_SECONDS):
            run = solver.prepare(epsilon, **setting)
        with journal.step("solve", limit):
            first, processor, result = timed_by_both(run)
        error = accuracy(solver.values(result), result, job["reference"], writes=job["name"] == peers.OURS.name)
        journal.write(first_seconds=first, epsilon=epsilon, **error)
        if error["accurate"] or epsilon <= FINEST:
            break
        epsilon /= 10.0
    del result
    may_have_compiled = isinstance(solver, peers.Adalook)
    times, ticks = ([], 0.0) if processor <= LONG_SECONDS or may_have_compiled else ([first], processor)
    while not times or (processor <= LONG_SECONDS and not enough(times, job["repeats"], ticks)):
        run = solver.prepare(epsilon, **setting)
        with journal.step("solve", limit):
            wall, processor, _ = timed_by_both(run)
        times.append(wall)
        ticks += processor
    journal.write(step="done", times=times, processor_seconds=ticks / len(times), seconds=seconds(times, ticks))


def seconds(times: list[float], processor_seconds: float) -> float:
    """The time of one solve that has a core to itself, from wall-clock times and the processor time of all together.

    The mean of processor time, or the shortest by the wall clock where a solve takes less than a tick; in no case more
    than the median by the wall clock.

    >>> seconds([0.2, 0.3, 0.9], 0.45), seconds([0.001, 0.0012, 0.002], 0.0), seconds([0.1, 0.1], 0.38)
    (0.15, 0.001, 0.1)
    """
    mean = processor_seconds / len(times)
    return min(statistics.median(times), mean if mean >= TICK_SECONDS else max(mean, min(times)))


def timed_by_both(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall-clock seconds, processor seconds of all threads, and the result."""
    began, ticks = time.perf_counter(), time.process_time()
    result = run()
    return time.perf_counter() - began, time.process_time() - ticks, result


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


def enough(times: list[float], repeats: int, processor_seconds: float | None = None) -> bool:
    spent = sum(times) if processor_seconds is None else processor_seconds
    return len(times) >= repeats and (spent >= ENOUGH_SECONDS or repeats == 1 or len(times) >= MOST_REPEATS)


@cache
def build(spec: str) -> al.MDP:
    """The model of a spec, built once per process."""
    return models.build(json.loads(spec))


def accuracy(values: np.ndarray, result: Any, reference: str, writes: bool) -> Record:
    """How far from our values; within 1e-6 and our own certified error is accurate. Ours writes the reference."""
    if writes:
        own = float(max((result.upper - values).max(), (values - result.lower).max()))
        np.savez(reference, values=values, error=own)
        return {
            "error": own,
            "accurate": bool(result.converged and own <= EPSILON),
            "iterations": result.iterations,
            "policy_loss": result.policy_loss,
        }
    with np.load(reference) as ours:
        difference = float(np.abs(values - ours["values"]).max())
        return {"error": difference, "accurate": difference <= EPSILON + float(ours["error"])}


def grow(job: Record, journal: Journal) -> None:
    """Time and memory of one maze. Memory is read after the first solve, against what the program itself takes."""
    usual = checks.LARGE_PAIRS
    for checks.LARGE_PAIRS in (0, usual):  # kernels for narrow rewards, and those for float64, are compiled before
        al.solve(models.tiny(job["model"]), tolerance=EPSILON)
    start = resident_bytes()
    with journal.step("build", job["limit_seconds"]):
        seconds, mdp = timed(lambda: models.build(job["model"]))
    journal.write(states=mdp.num_states, model_bytes=mdp.nbytes, build_seconds=seconds, build_peak_bytes=peak_bytes())
    solver = peers.Adalook(mdp)
    with journal.step("solve", job["limit_seconds"]):
        began = time.process_time()
        first, solution = timed(solver.prepare(EPSILON))
        processor = time.process_time() - began
    peak = peak_bytes()
    journal.write(
        processor_seconds=processor,
        start_bytes=start,
        peak_bytes=peak,
        memory_ratio=(peak - start) / mdp.nbytes,
        iterations=solution.iterations,
        policy_loss=solution.policy_loss,
        converged=solution.converged,
    )
    del solution
    times, processor_times = [first], [processor]
    while first <= LONG_SECONDS and not enough(times, job["repeats"]):
        began = time.process_time()
        times.append(timed(solver.prepare(EPSILON))[0])
        processor_times.append(time.process_time() - began)
    journal.write(
        step="done",
        times=times,
        seconds=statistics.median(times),
        processor_seconds=statistics.median(processor_times),
    )


def certify(job: Record, journal: Journal) -> None:
    """Which share of a solve goes into the certificate, the arrays of its bounds included."""
    al.solve(models.tiny(job["model"]), tolerance=EPSILON)
    mdp = models.build(job["model"])
    solver = peers.Adalook(mdp)
    al.solve(mdp, tolerance=EPSILON)
    shares, times = [], []
    while not enough(times, job["repeats"]):
        solution = solver.prepare(EPSILON)()
        times.append(solution.seconds)
        arrays, _ = timed(lambda: (solution.lower, solution.upper))  # noqa: B023
        shares.append((solution.certificate_seconds + arrays) / (solution.seconds + arrays))
    journal.write(
        step="done",
        states=mdp.num_states,
        times=times,
        seconds=statistics.median(times),
        shares=shares,
        share=statistics.median(shares),
    )


def peak_bytes() -> int:
    """Largest resident size so far (Linux counts in KiB, macOS in bytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_bytes() -> int:
    """Resident size now; where the system does not tell, the largest so far."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else peak_bytes()


def main() -> None:
    job = json.load(sys.stdin)
    journal = Journal(job["result"])
    if job["task"] != "compare":
        journal.write(step="start")
    if job["memory_bytes"]:
        resource.setrlimit(resource.RLIMIT_AS, (job["memory_bytes"], job["memory_bytes"]))
    warnings.simplefilter("ignore")
    try:
        {"compare": compare_all, "grow": grow, "certify": certify}[job["task"]](job, journal)
    except (Exception, SystemExit) as problem:
        journal.write(failure=f"{type(problem).__name__}: {problem}".splitlines()[0][:200])


if __name__ == "__main__":
    main()
