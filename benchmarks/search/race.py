"""Benchmark of tree search against plain recursion and plangym: `python -m benchmarks.search`.

Trees of depth 2 and 3 along a random trajectory of Atari games: ours in one process and with two workers, with and
without merging, against plain recursion with cloneState and restoreState (see `plain.py`) and plangym; MinAtar's
Breakout against recursion with deepcopy. Rewards only, so that what is measured is making the tree; every contender
takes its turn in each repeat, medians count, and the values of all actions must agree. The report goes to
`results/search.{json,md}`.

plangym is not for the same environment as ours: python3 -m venv DIR && DIR/bin/pip install plangym ale-py, and then
--plangym DIR/bin/python.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import adalook as al
from adalook.search import Expander, FixedDepth, Root, SearchResult, make_expander, search, search_many
from adalook.simulators.ale.simulator import AtariSimulator
from adalook.simulators.base import Children
from adalook.simulators.minatar import MinAtarSimulator
from benchmarks.results import ROOT, machine, write_results
from benchmarks.search import report
from benchmarks.search.plain import Cost, PlainAtari, PlainMinAtar

DISCOUNT = 0.99
WORKERS = 2
PLANGYM_SECONDS = 4.0
PLANGYM_PATIENCE = 60.0
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One game at one depth."""

    game: str
    depth: int
    roots: int
    """So many that plain recursion takes a few seconds."""
    effective_goal: float | None = None
    """Nodes of the full tree answered per second, as a multiple of plain recursion."""

    @property
    def name(self) -> str:
        return f"{self.game}, depth {self.depth}"


CASES = (
    Case("Tutankham", 2, 20),
    Case("VideoPinball", 2, 20),
    Case("Solaris", 2, 8),
    Case("Berzerk", 2, 8),
    Case("Tutankham", 3, 8, effective_goal=2.5),
    Case("VideoPinball", 3, 6, effective_goal=2.5),
    Case("Solaris", 3, 2, effective_goal=2.5),
    Case("Berzerk", 3, 2),
)
SPEEDUP_GOAL, EMULATION_GOAL, MINATAR_GOAL = 1.6, 0.7, 10.0
EVERY = 40
"""Steps between two roots of a trajectory."""
MINATAR_ROOTS = 40


class Unmerged(AtariSimulator):
    """An Atari simulator whose keys are all different, so that a search merges nothing."""

    _made = 0

    def expand(self, *arguments: Any, **options: Any) -> Children:
        children = super().expand(*arguments, **options)
        first = self._made
        self._made += len(children.keys)
        keys = [b"%d of %d" % (number, os.getpid()) for number in range(first, self._made)]
        return Children(children.states, children.observations, children.rewards, children.terminated, keys)


def zero(observations: np.ndarray[Any, Any], depth: int) -> np.ndarray[Any, Any]:
    return np.zeros(len(observations))


def trajectory(sim: Any, count: int, every: int) -> tuple[list[Root], list[int]]:
    """Return roots along a random trajectory, and its actions."""
    rng = np.random.default_rng(0)
    sim.reset(seed=0)
    roots: list[Root] = []
    actions = rng.integers(sim.num_actions, size=count * every).tolist()
    for step, action in enumerate(actions, 1):
        if sim.step(action).episode_over:
            sim.reset()
        if step % every == 0:
            roots.append(Root.of(sim))
    return roots, actions


def ours(sim: Any, roots: list[Root], depth: int, expander: Expander | None) -> tuple[Record, list[SearchResult]]:
    begin = time.perf_counter()
    results = [
        search(sim, root, zero, FixedDepth(depth), discount=DISCOUNT, seed=i, expander=expander)
        for i, root in enumerate(roots)
    ]
    seconds = time.perf_counter() - begin
    nodes, tree_nodes = sum(result.nodes for result in results), sum(result.tree_nodes for result in results)
    return {"seconds": seconds, "nodes": nodes, "tree_nodes": tree_nodes}, results


def together(sim: Any, roots: list[Root], depth: int) -> Record:
    """Measure searches of all roots in one call."""
    begin = time.perf_counter()
    results = search_many(sim, roots, zero, FixedDepth(depth), discount=DISCOUNT)
    seconds = time.perf_counter() - begin
    nodes, tree_nodes = sum(result.nodes for result in results), sum(result.tree_nodes for result in results)
    return {"seconds": seconds, "nodes": nodes, "tree_nodes": tree_nodes}


def plain(tree: PlainAtari, roots: list[Root], depth: int) -> tuple[Record, list[list[float]]]:
    tree.cost = Cost()
    begin = time.perf_counter()
    values = [
        tree.action_values(root.state.machine, list(root.observation), depth, DISCOUNT)  # type: ignore[attr-defined]
        for root in roots
    ]
    seconds = time.perf_counter() - begin
    cost = tree.cost
    return {
        "seconds": seconds,
        "nodes": cost.nodes,
        "tree_nodes": cost.nodes,
        "act_seconds": cost.act_seconds,
        "emulator_seconds": cost.emulator_seconds,
    }, values


class TimedALE:
    """An emulator that measures the seconds spent in all its calls, and in `act` alone."""

    def __init__(self, ale: Any) -> None:
        self.ale, self.seconds, self.act_seconds = ale, 0.0, 0.0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.ale, name)

        def timed(*arguments: Any) -> Any:
            begin = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                spent = time.perf_counter() - begin
                self.seconds += spent
                self.act_seconds += spent if name == "act" else 0.0

        return timed


def emulation_share(sim: AtariSimulator, roots: list[Root], depth: int) -> Record:
    """Return the share of the search time that is spent in calls to the emulator."""
    sim.expand([roots[0].state], [0])
    emulator = sim._tree
    assert emulator is not None, "expanding makes it"
    emulator._ale = clock = TimedALE(emulator._ale)
    seconds = ours(sim, roots, depth, None)[0]["seconds"]
    emulator._ale = clock.ale
    return {"emulator": clock.seconds / seconds, "act": clock.act_seconds / seconds}


def middle(records: list[Record]) -> Record:
    """Return the run of median length."""
    seconds = statistics.median_low(record["seconds"] for record in records)
    best = next(record for record in records if record["seconds"] == seconds)
    return best | {"all_seconds": [record["seconds"] for record in records]}


def atari_case(case: Case, repeats: int, plangym: Path | None, console: Console) -> Record:
    sim, unmerged = AtariSimulator(f"ALE/{case.game}-v5"), Unmerged(f"ALE/{case.game}-v5")
    tree = PlainAtari(f"ALE/{case.game}-v5")
    roots, actions = trajectory(sim, case.roots, EVERY)
    runs: dict[str, list[Record]] = {name: [] for name in ("plain", "two", "one_unmerged", "two_unmerged")}
    engine = al.LocalProcesses(WORKERS)
    with make_expander(sim, engine) as workers, make_expander(unmerged, engine) as more_workers:
        contenders: dict[str, Callable[[list[Root]], tuple[Record, list[SearchResult]]]] = {
            "two": lambda some: ours(sim, some, case.depth, workers),
            "one_unmerged": lambda some: ours(unmerged, some, case.depth, None),
            "two_unmerged": lambda some: ours(unmerged, some, case.depth, more_workers),
        }
        for run in contenders.values():  # workers awake, kernels compiled
            run(roots[:1])
        for _ in range(repeats):
            record, expected = plain(tree, roots, case.depth)
            runs["plain"].append(record)
            for name, run in contenders.items():
                record, results = run(roots)
                runs[name].append(record)
                if not all(np.array_equal(r.action_values, e) for r, e in zip(results, expected, strict=True)):
                    raise SystemExit(f"{case.name}: '{name}' and plain recursion disagree")
    share = emulation_share(unmerged, roots, case.depth)
    peers = [ask_plangym(plangym, case, actions, count) for count in (None, WORKERS)]
    result = summary(case, {name: middle(records) for name, records in runs.items()}, share, peers, sim.num_actions)
    console.print(report.line(result), highlight=False)
    return result


def ask_plangym(python: Path | None, case: Case, actions: list[int], workers: int | None) -> Record:
    """Return one run of plangym in its own Python environment, or the reason of its failure."""
    record: Record = {"workers": workers or 1}
    if python is None:
        return record | {"failure": "not installed (see --plangym)"}
    job = {
        "game": f"ALE/{case.game}-v5",
        "depth": case.depth,
        "actions": actions,
        "every": EVERY,
        "workers": workers,
        "limit_seconds": PLANGYM_SECONDS,
    }
    script = Path(__file__).with_name("plangym_peer.py")
    try:
        done = subprocess.run(
            [str(python), str(script)],
            input=json.dumps(job),
            text=True,
            capture_output=True,
            timeout=PLANGYM_PATIENCE,
            check=True,
        )
        return record | json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return record | {"failure": f"no answer in {PLANGYM_PATIENCE:g} s"}
    except subprocess.CalledProcessError as error:
        return record | {"failure": (error.stderr.splitlines() or ["it failed without a word"])[-1]}
    except (OSError, ValueError, IndexError) as error:
        return record | {"failure": f"{type(error).__name__}: {error}"}


def summary(case: Case, runs: dict[str, Record], share: Record, plangym: list[Record], num_actions: int) -> Record:
    """Return rates, ratios, and whether the goals are met."""
    base = runs["plain"]
    plain_rate = base["nodes"] / base["seconds"]
    speedup = runs["two_unmerged"]["nodes"] / runs["two_unmerged"]["seconds"] / plain_rate
    effective = runs["two"]["tree_nodes"] / runs["two"]["seconds"] / plain_rate
    return {
        "name": case.name,
        "game": case.game,
        "depth": case.depth,
        "actions": num_actions,
        "roots": case.roots,
        "runs": runs,
        "plangym": plangym,
        "speedup_unmerged": speedup,
        "speedup_effective": effective,
        "merging": runs["two"]["tree_nodes"] / runs["two"]["nodes"],
        "emulation_share": share,
        "emulation_share_plain": base["emulator_seconds"] / base["seconds"],
        "goals": {
            "speedup_unmerged": [SPEEDUP_GOAL, speedup >= SPEEDUP_GOAL],
            "emulation": [EMULATION_GOAL, share["emulator"] >= EMULATION_GOAL],
            "speedup_effective": case.effective_goal and [case.effective_goal, effective >= case.effective_goal],
        },
    }


def minatar_case(repeats: int, console: Console) -> Record:
    """Measure MinAtar Breakout at depth 3 against recursion with deepcopy, from the same states."""
    sim = MinAtarSimulator("MinAtar/Breakout-v1")
    tree = PlainMinAtar("breakout", seed=0)
    rng = np.random.default_rng(0)
    sim.reset(seed=0)
    tree.environment.reset()
    runs: dict[str, list[Record]] = {"deepcopy": [], "alone": [], "together": []}
    roots, environments = [], []
    for _ in range(MINATAR_ROOTS):
        for _ in range(5):
            action = int(rng.integers(sim.num_actions))
            if sim.step(action).episode_over:
                sim.reset()
            if tree.environment.act(tree.actions[action])[1]:
                tree.environment.reset()
        roots.append(Root.of(sim))
        environments.append(copy.deepcopy(tree.environment))
    for _ in range(repeats):
        tree.cost = Cost()
        begin = time.perf_counter()
        for tree.environment in environments:
            tree.action_values(3, DISCOUNT)
        seconds = time.perf_counter() - begin
        runs["deepcopy"].append({"seconds": seconds, "nodes": tree.cost.nodes, "tree_nodes": tree.cost.nodes})
        runs["alone"].append(ours(sim, roots, 3, None)[0])
        runs["together"].append(together(sim, roots, 3))
    best = {name: middle(records) for name, records in runs.items()}
    rates = {name: run["nodes"] / run["seconds"] for name, run in best.items()}
    answers = {name: run["tree_nodes"] / run["seconds"] for name, run in best.items()}
    ratio = answers["alone"] / answers["deepcopy"]  # the same trees answered, one after the other
    record = {
        "name": "MinAtar Breakout, depth 3",
        "runs": best,
        "roots": MINATAR_ROOTS,
        "ratio": ratio,
        "ratio_together": answers["together"] / answers["deepcopy"],
        "ratio_nodes_alone": rates["alone"] / rates["deepcopy"],
        "goal": [MINATAR_GOAL, ratio >= MINATAR_GOAL],
    }
    console.print(report.minatar_line(record), highlight=False)
    return record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__.split("\n", 1)[0])
    names = [*(case.name for case in CASES), "minatar"]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of: {'; '.join(names)}")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each contender; the median counts")
    parser.add_argument("--plangym", type=Path, help="the Python of an environment with plangym and ale-py")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    console = Console()
    wanted = args.only or [*(case.name for case in CASES), "minatar"]
    results: Record = {"machine": machine(), "repeats": args.repeats, "discount": DISCOUNT, "workers": WORKERS}
    results["cases"] = [atari_case(case, args.repeats, args.plangym, console) for case in CASES if case.name in wanted]
    results["minatar"] = minatar_case(args.repeats, console) if "minatar" in wanted else None
    # Only a complete run may replace the published one.
    stem = "search-partial" if args.only else "search"
    write_results(args.out, stem, results, report.markdown(results, stem))
