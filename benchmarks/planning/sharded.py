"""Planning on shards beside `al.solve`: `python -m benchmarks.planning.sharded [--size 3000] [--turns 3] [--ray]`.

The paper's maze of size × size cells is saved once. Then, by turns and each in a process of its own: `al.solve` on the
loaded model; two shards in one process, in two processes and, with --ray, in two actors on Ray. What is compared is the
time from a built model to the certified answer. Writes results/sharded.json and results/sharded.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import adalook as al

RESULTS = Path(__file__).parents[2] / "results"
WHOLE = "al.solve"
WAYS = (WHOLE, "2 shards, one process", "2 shards, 2 processes")
ON_RAY = "2 shards, Ray with 2 actors"
LIMIT = 3.0
"""Shards are to take at most so many times as long as `al.solve`."""


def processor_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in usage)


def measure(way: str, path: Path) -> dict[str, Any]:
    """Solve the model in one way; returns what it took."""
    warm_up()
    before, began = processor_seconds(), time.perf_counter()
    if way == WHOLE:
        mdp = al.MDP.load(path)
        built = time.perf_counter()
        solution = al.solve(mdp)
        values, details = solution.values, {"passes": solution.passes}
        build_seconds, seconds = built - began, time.perf_counter() - built
        converged, loss = solution.converged, solution.policy_loss
    else:
        engine = {WAYS[1]: None, WAYS[2]: al.LocalProcesses(actors=2)}.get(way) if way != ON_RAY else al.Ray(actors=2)
        sharded = al.ShardedMDP.load(path, shards=2).solve(engine=engine)
        build_seconds, seconds = sharded.build_seconds, sharded.seconds - sharded.build_seconds
        values, converged, loss = sharded.values, sharded.converged, sharded.policy_loss
        details = {"rounds": sharded.rounds, "passes": sum(item.passes for item in sharded.trace)}
        details["sent_bytes"] = [item.sent_bytes for item in sharded.trace]
        details["received_bytes"] = [item.received_bytes for item in sharded.trace]
    places = np.linspace(0, len(values) - 1, 1000).astype(int)
    return {
        "way": way,
        "seconds": seconds,
        "build_seconds": build_seconds,
        "processor_seconds": processor_seconds() - before,
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "largest_child_bytes": 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
        "converged": converged,
        "policy_loss": loss,
        "states": len(values),
        "sample": values[places].tolist(),
        **details,
    }


def warm_up() -> None:
    """Load compiled kernels, so that nobody's first solve pays for it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "small.npz")
        al.zoo.maze(30).save(path)
        al.solve(al.MDP.load(path))
        al.ShardedMDP.load(path, shards=2).solve()


def report(records: list[dict[str, Any]], size: int, turns: int) -> str:
    """The page about some records."""
    by_way = {way: [item for item in records if item["way"] == way] for way in (*WAYS, ON_RAY)}
    by_way = {way: found for way, found in by_way.items() if found}
    base = by_way[WHOLE]
    states = base[0]["states"]
    lines = [
        "# Planning on shards beside `al.solve`",
        "",
        f"`python -m benchmarks.planning.sharded --size {size} --turns {turns}`: the maze of {size}×{size} cells, "
        f"{states:,} states, γ = 0.98, tolerance 1e-8, two cores shared with other work. Medians of {turns} turns; "
        "ratios are medians of the ratios within a turn. Solving is from a built model to the certified answer; "
        "processor time is that of all processes, with loading or building.",
        "",
        "| way | solving | × al.solve | building | processor time | rounds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for way, found in by_way.items():
        ratios = [item["seconds"] / other["seconds"] for item, other in zip(found, base, strict=True)]
        median = {key: statistics.median(item[key] for item in found) for key in ("seconds", "build_seconds")}
        processor = statistics.median(item["processor_seconds"] for item in found)
        work = [item["processor_seconds"] / other["processor_seconds"] for item, other in zip(found, base, strict=True)]
        lines.append(
            f"| {way} | {median['seconds']:.2f} s | {statistics.median(ratios):.2f} | {median['build_seconds']:.2f} s "
            f"| {'—' if way == ON_RAY else f'{processor:.1f} s ({statistics.median(work):.2f}×)'} "
            f"| {found[0].get('rounds', '—')} |"
        )
    shards = next(item for item in records if item["way"] == WAYS[2])
    halves = [item["seconds"] / other["seconds"] for item, other in zip(by_way[WAYS[2]], base, strict=True)]
    difference = max(abs(a - b) for a, b in zip(shards["sample"], base[0]["sample"], strict=True))
    lines += [
        "",
        f"Two shards in two processes take at most {LIMIT:g} times as long as `al.solve`: "
        f"{'yes' if statistics.median(halves) <= LIMIT else 'no'}. Values of 1,000 states differ by at most "
        f"{difference:.1g}, certified losses are {base[0]['policy_loss']:.1g} and {shards['policy_loss']:.1g}.",
        "",
        f"Traffic: {shards['sent_bytes'][0]:,} bytes of boundary values to the shards and "
        f"{shards['received_bytes'][0]:,} back in a round of both, "
        f"{sum(shards['sent_bytes']) + sum(shards['received_bytes']):,} in all "
        f"{shards['rounds']} rounds; the values themselves are {8 * states:,} bytes. The model: 8 (Σ H_k) out and "
        "8 (B + K R) back for halos of H_k states, B boundary states, K shards and R shared rows.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run the turns, or one measurement of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=3000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--measure", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure[0], Path(given.measure[1]))))
        return
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "maze.npz")
        al.zoo.maze(given.size).save(path)
        for turn in range(given.turns):
            for way in (*WAYS, *([ON_RAY] if given.ray else [])):
                command = [sys.executable, "-m", "benchmarks.planning.sharded", "--measure", way, str(path)]
                answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                records.append({"turn": turn, **json.loads(answer.splitlines()[-1])})
                print(f"turn {turn + 1}, {way}: {records[-1]['seconds']:.2f} s", flush=True)
            page = report(records, given.size, turn + 1)
            kept = [{key: value for key, value in item.items() if key != "sample"} for item in records]
            (given.out / "sharded.json").write_text(json.dumps({"size": given.size, "records": kept}, indent=1) + "\n")
            (given.out / "sharded.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
