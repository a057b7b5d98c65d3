"""Report of the search benchmark: a line per case on the terminal, and a page of Markdown."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
BUSY_LOAD = 0.5
"""A load average above this, before the run, means that others use the machine."""


def rate(run: Record, what: str = "nodes") -> float:
    return float(run[what] / run["seconds"])


def verdict(goal: list[Any] | None) -> str:
    if not goal:
        return ""
    return f" (goal {goal[0]:g}: {'met' if goal[1] else '**missed**'})"


def line(case: Record) -> str:
    """Return one case as a line of text."""
    runs = case["runs"]
    return (
        f"{case['name']:<22} plain {rate(runs['plain']):6,.0f}/s, ours {rate(runs['one_unmerged']):6,.0f}/s, "
        f"two workers {rate(runs['two_unmerged']):6,.0f}/s = {case['speedup_unmerged']:.2f}×, effective "
        f"{case['speedup_effective']:.2f}×, emulator {100 * case['emulation_share']['emulator']:.0f} %"
        f", plangym {'; '.join(map(peer, case['plangym']))}"
    )


def minatar_line(record: Record) -> str:
    runs = record["runs"]
    return (
        f"{record['name']}: the same trees answered, one root at a time, {record['ratio']:.1f}× as fast as deepcopy"
        f"{verdict(record['goal'])}, {record['ratio_together']:.1f}× with {record['roots']} roots in one call; nodes "
        f"simulated per second, without counting what merging saves: deepcopy {rate(runs['deepcopy']):,.0f}, ours "
        f"{rate(runs['alone']):,.0f} ({record['ratio_nodes_alone']:.1f}×) and {rate(runs['together']):,.0f}"
    )


def peer(record: Record) -> str:
    return record["failure"] if "failure" in record else f"{rate(record):,.0f}"


def markdown(results: Record, stem: str) -> str:
    """Return the page of Markdown."""
    about = results["machine"]
    parts = [
        "# Tree search, side by side",
        "",
        f"Made by `python -m benchmarks.search` on {about['date']}: {about['cpu']}, {about['cores']} cores, Python "
        f"{about['python']}. Medians of {results['repeats']} turns; all numbers are in `{stem}.json`. A node is one "
        "step simulated: restore, four frames, the observation ready for a network. Rewards only; the values of all "
        "actions were checked to be equal in every run.",
        "",
    ]
    if about["load_before"] > BUSY_LOAD:
        parts += [f"**Others used the machine (load {about['load_before']:.1f}): the numbers are provisional.**", ""]
    parts += _speed(results["cases"]) + _shares(results["cases"]) + _peers(results["cases"])
    if results["minatar"]:
        parts += ["## MinAtar", "", minatar_line(results["minatar"]) + ".", ""]
    return "\n".join(parts)


def _speed(cases: list[Record]) -> list[str]:
    rows = [
        "## Nodes per second",
        "",
        "*Plain* is recursion with cloneState and restoreState in one process. *Before merging* is ours with equal "
        "nodes kept apart. *Effective* counts the nodes of the full tree that are answered, with merging, by two "
        "workers.",
        "",
        "| game, depth | actions | plain | ours, 1 process | ours, 2 workers, before merging | merging saves "
        "| effective, 2 workers |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases:
        runs, goals = case["runs"], case["goals"]
        rows.append(
            f"| {case['name']} | {case['actions']} | {rate(runs['plain']):,.0f} | {rate(runs['one_unmerged']):,.0f} | "
            f"{rate(runs['two_unmerged']):,.0f} = {case['speedup_unmerged']:.2f}×{verdict(goals['speedup_unmerged'])} "
            f"| {case['merging']:.2f}× | {rate(runs['two'], 'tree_nodes'):,.0f} = {case['speedup_effective']:.2f}×"
            f"{verdict(goals['speedup_effective'])} |"
        )
    return [*rows, ""]


def _shares(cases: list[Record]) -> list[str]:
    rows = [
        "## Share of the emulator in the time spent, one process",
        "",
        "By a stopwatch on every call to the emulator (act, restore, save, screens), in a run of its own that merges "
        "nothing: what is left is preprocessing, keys, bookkeeping, and the stopwatch itself.",
        "",
        "| game, depth | plain recursion | ours | `act` alone, ours |",
        "|---|---:|---:|---:|",
    ]
    for case in cases:
        share = case["emulation_share"]
        rows.append(
            f"| {case['name']} | {case['emulation_share_plain']:.0%} | {share['emulator']:.0%}"
            f"{verdict(case['goals']['emulation'])} | {share['act']:.0%} |"
        )
    return [*rows, ""]


def _peers(cases: list[Record]) -> list[str]:
    rows = [
        "## plangym, nodes per second",
        "",
        "`step_batch` over whole levels, grey screens that are neither shrunk nor stacked, states of the same "
        "trajectory.",
        "",
        "| game, depth | plangym, 1 process | plangym, 2 workers | ours, 2 workers, before merging | effective |",
        "|---|---:|---:|---:|---:|",
    ]
    for case in cases:
        alone, parallel = map(peer, case["plangym"])
        runs = case["runs"]
        rows.append(
            f"| {case['name']} | {alone} | {parallel} | {rate(runs['two_unmerged']):,.0f} | "
            f"{rate(runs['two'], 'tree_nodes'):,.0f} |"
        )
    return [*rows, ""]
