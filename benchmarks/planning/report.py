"""How the planning benchmark is shown: a line per run, a table on the terminal, a page of Markdown, a plot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.planning.child import OWN_PATIENCE, PATIENCE

Record = dict[str, Any]

MEGA = 1e6
INK, GUIDE = "#0072B2", "#6b6b6b"
"""Blue and grey of the Okabe–Ito palette: told apart by everyone, and in print."""


def outcome(run: Record) -> str:
    """One run in a few words."""
    if "seconds" not in run:
        return str(run.get("failure", "no answer"))
    words = [milliseconds(run["seconds"])]
    if "error" in run:
        words.append(f"error {run['error']:.1e}")
    if run.get("epsilon", 1e-6) < 0.9e-6:
        words.append(f"asked for {run['epsilon']:.0e}")
    if not run.get("accurate", True):
        words.append("not accurate enough: does not count")
    if "memory_ratio" in run:
        words.append(f"peak {run['memory_ratio']:.2f}× the model")
    return ", ".join(words)


def milliseconds(seconds: float) -> str:
    value = 1e3 * seconds
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def goal(case: Record) -> str:
    return "no slower" if case["goal"] == 1.0 else f"≥ {case['goal']:g}×"


def verdict(met: bool) -> str:
    return "yes" if met else "**no**"


OLD = "†"
"""Marks the name of a model that was measured on an earlier day than others, by the code of that day."""


def older(cases: list[Record]) -> list[Record]:
    """The models that were measured on an earlier day than the last."""
    last = max(case["measured"] for case in cases)
    return [case for case in cases if case["measured"] < last]


def row(case: Record, mark: str = "") -> list[str]:
    """The cells of one model in the main table."""
    ours, runs = case["ours"], {run["name"]: run for run in [*case["peers"], *case["own"]]}
    fastest, own = runs.get(case["fastest"]), runs.get(case["best_own"])
    return [
        f"{case['name']} {mark}".rstrip(),
        f"{case['states']:,}" if case["states"] else "?",
        milliseconds(ours["seconds"]) if "seconds" in ours else outcome(ours),
        f"{fastest['name']} {milliseconds(fastest['seconds'])}" if fastest else "none in time",
        ratio(case),
        f"{own['name'].removeprefix('adalook ')} {milliseconds(own['seconds'])}" if own else "",
        f"{case['regret']:.2f}" if case["regret"] else "",
        f"{verdict(case['goal_met'])} ({goal(case)})",
    ]


HEADINGS = ["model", "states", "ours", "fastest peer", "ratio", "our best other method", "regret", "goals met?"]


def ratio(case: Record) -> str:
    """How many times as long as ours the fastest peer took, or took at least."""
    if case["ratio"]:
        return f"{case['ratio']:.3g}×"
    return f"> {case['ratio_at_least']:.3g}×" if case["ratio_at_least"] else ""


def mean_ratio(cases: list[Record]) -> float:
    """Geometric mean of the ratios; where every peer ran out of time, of what it is at least."""
    ratios = [known for case in cases if (known := case["ratio"] or case["ratio_at_least"])]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def growth_rows(growth: Record) -> list[list[str]]:
    return [
        [
            f"{item['size']}×{item['size']}",
            f"{item['states']:,}",
            f"{item['build_seconds']:.3g} s",
            f"{item['seconds']:.3g} s",
            f"{item['processor_seconds']:.3g} s",
            str(item["iterations"]),
            f"{item['model_bytes'] / MEGA:,.1f} MB",
            f"{(item['peak_bytes'] - item['start_bytes']) / MEGA:,.1f} MB",
            f"{item['memory_ratio']:.2f}×",
            f"{item['peak_bytes'] / MEGA:,.1f} MB",
        ]
        if "seconds" in item
        else [f"{item['size']}×{item['size']}", outcome(item), *[""] * 8]
        for item in growth["rows"]
    ]


GROWTH_HEADINGS = ["maze", "states", "build", "solve", "processor", "iterations", "model", "peak above start", "ratio"]
GROWTH_HEADINGS += ["raw peak"]
CERTIFICATE_HEADINGS = ["model", "states", "solve", "certificate", "goal met?"]


def certificate_rows(certificate: Record) -> list[list[str]]:
    return [
        [
            item["name"],
            f"{item['states']:,}",
            milliseconds(item["seconds"]),
            f"{100 * item['share']:.2f} %",
            f"{verdict(item['goal_met'])} (≤ {100 * certificate['goal']:g} %)",
        ]
        if "share" in item
        else [item["name"], outcome(item), "", "", verdict(False)]
        for item in certificate["rows"]
    ]


def table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def markdown(results: Record, stem: str) -> str:
    """The page that goes beside the JSON."""
    box = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in box["versions"].items())
    parts = [
        "# Planning: time and memory by states\n" if stem.endswith("-growth") else "# Planning, side by side\n",
        f"{box['cpu']}, {box['cores']} cores, {box['memory_bytes'] / 2**30:.0f} GiB, {box['system']}, Python "
        f"{box['python']}; {versions}. {box['date'][:10]}.\n",
    ]
    if results["cases"] or results["certificate"]:
        parts += [
            "Ours is `al.solve(mdp, tolerance=1e-6)` with its certificate. Peers are held to the same accuracy: values "
            "within 1e-6 of ours. A peer that misses it is asked for ever more, a digit at a time. Times are of at "
            f"least {results['repeats']} cold solves (one, if it takes more than 1 s): the mean processor time of all "
            "threads, the shortest by the wall clock where that is below a tick of 4 ms, or the median by the wall "
            "clock where that is lower (`benchmarks/planning/child.py`). Building the model, compiling and reading the "
            f"answer are apart. A peer is stopped after {PATIENCE:g} times what ours took, though not before "
            f"{results['limit_seconds']:g} s of processor time and after {results['most_seconds']:g} s at the latest; "
            f"our other methods after {OWN_PATIENCE:g} times that, as more would say nothing new. "
            "Ratio: fastest peer over ours; where every peer was stopped, what it is at least. Regret: ours over the "
            "best of our own methods, the default among them. "
            "Goals: the ratio in brackets, and a regret of at most 1.5.\n",
        ]
    if results["cases"] and not results["growth"]:
        parts += ["How time and memory grow with the number of states: [planning-growth.md](planning-growth.md).\n"]
    if results["cases"]:
        loads = [case["load_before"] for case in results["cases"]]
        busy = ": other work ran beside this, and times are good for comparisons only" if max(loads) > 2.0 else ""
        parts += [
            f"The machine's load average when a model's turn began was {min(loads):.1f} to {max(loads):.1f}, on "
            f"{box['cores']} cores{busy}.\n"
        ]
        before = older(results["cases"])
        if before:
            days = ", ".join(sorted({case["measured"] for case in before}))
            parts += [f"{OLD} measured before ({days}), by the code of then: {len(before)} models.\n"]
        if results.get("missing"):
            parts += [f"Not measured yet, for want of time: {', '.join(results['missing'])}.\n"]
        met = sum(case["goal_met"] for case in results["cases"])
        parts += [
            f"![Time of every solver on every model]({stem}-families.svg)\n",
            table(HEADINGS, [row(case, OLD if case in before else "") for case in results["cases"]]),
            f"{met} of {len(results['cases'])} models meet their goals; geometric mean of the ratios "
            f"{mean_ratio(results['cases']):.3g}×, those that are known to be at least so much among them.\n",
        ]
    if results["growth"]:
        last = results["growth"]["rows"][-1]
        parts += [
            "## Growth: mazes, γ = 0.999\n",
            "`al.solve(mdp, tolerance=1e-6)` with its certificate (`python -m benchmarks.planning --only growth`). "
            "*Solve* is by the clock, *processor* the time of all threads together: the load average was "
            f"{results['machine']['load_before']:.2g} before this run.\n",
            f"![Time and memory against states]({stem.removesuffix('-growth')}-growth.svg)\n",
            "Each maze in a fresh process. *Peak above start* is the process's largest resident size, after building "
            "and one solve, less its size once adalook was imported and had solved a tiny maze; *ratio* divides it by "
            "the model's own arrays. From 2²⁷ (state, action) pairs on, rewards are kept in the narrowest type that "
            "holds them, a byte each here. Every process has that much address space and no more: "
            f"{results['growth']['memory_goal'] / 2**30:g} GiB.\n",
            table(GROWTH_HEADINGS, growth_rows(results["growth"])),
            f"All converged, up to {last.get('states', 0):,} states: {verdict(results['growth']['goal_met'])}.\n",
        ]
    if results["certificate"]:
        parts += ["## Certificate: its share of a solve\n"]
        parts += [table(CERTIFICATE_HEADINGS, certificate_rows(results["certificate"]))]
    if results["cases"]:
        parts += ["## Every setting\n"]
        everything = [
            [case["name"], run["name"], outcome(run), f"{run['build_seconds']:.3g} s" if "build_seconds" in run else ""]
            for case in results["cases"]
            for run in [case["ours"], *case["own"], *case["peers"]]
        ]
        parts += [table(["model", "setting", "outcome", "build"], everything)]
    return "\n".join(parts)


def show(results: Record, console: Console) -> None:
    """The same tables on the terminal."""
    shown = [("Planning, side by side", HEADINGS, [row(case) for case in results["cases"]])]
    if results["growth"]:
        shown.append(("Growth", GROWTH_HEADINGS, growth_rows(results["growth"])))
    if results["certificate"]:
        shown.append(("Certificate", CERTIFICATE_HEADINGS, certificate_rows(results["certificate"])))
    for title, headings, rows in shown:
        grid = Table(*headings, title=title)
        for cells in rows:
            grid.add_row(*(cell.replace("**no**", "[bold red]no[/]") for cell in cells))
        if rows:
            console.print(grid)
    goals = [case["goal_met"] for case in results["cases"]]
    goals += [results["growth"]["goal_met"]] if results["growth"] else []
    goals += [item["goal_met"] for item in results["certificate"]["rows"]] if results["certificate"] else []
    console.print(f"{sum(goals)} of {len(goals)} goals met")


def plot(growth: Record, stem: Path) -> None:
    """Solve time and peak memory against states, all on log scales, with lines of slope one for linear growth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [item for item in growth["rows"] if "seconds" in item]
    if not rows:
        return
    seconds = [item["processor_seconds"] for item in rows]
    gigabytes = [(item["peak_bytes"] - item["start_bytes"]) / 1e9 for item in rows]
    figure, panels = plt.subplots(1, 2, figsize=(10.4, 4.2), layout="constrained")
    shown = (
        (seconds, "processor seconds", "{:.2g} s", "al.solve, tolerance 1e-6"),
        (gigabytes, "GB", "{:.2g} GB", "peak above start"),
    )
    for axes, (measured, unit, words, label) in zip(panels, shown, strict=True):
        # of the smallest, what compiling took hides what solving takes
        states, numbers = zip(
            *((item["states"], x) for item, x in zip(rows, measured, strict=True) if x > 0), strict=True
        )
        guide = [numbers[-1] * count / states[-1] for count in states]
        axes.loglog(states, guide, "--", color=GUIDE, linewidth=1.2, label="linear growth")
        axes.loglog(states, numbers, "o-", color=INK, linewidth=2, markersize=7, label=label)
        for count, number in zip(states, numbers, strict=True):
            place = {"xytext": (8, -6), "textcoords": "offset points", "fontsize": 9, "va": "top"}
            axes.annotate(words.format(number), (count, number), **place)
        axes.set(xlabel="states", ylabel=unit)
        axes.set_xlim(states[0] / 2, states[-1] * 4)
        axes.set_ylim(min(*numbers, *guide) / 4, max(*numbers, *guide) * 3)
        axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
    figure.suptitle("Solving mazes with certificate, γ = 0.999")
    for suffix, options in ((".svg", {"metadata": {"Date": None}}), (".png", {"dpi": 150})):
        figure.savefig(stem.with_name(stem.name + suffix), **options)
    plt.close(figure)


PEER_MARKS = {"quantecon": "s", "mdpsolver": "D", "mdptoolbox": "^", "storm": "v"}


def plot_families(cases: list[Record], stem: Path) -> None:
    """Time of every solver on every model: ours as a filled circle, each peer's best setting by its own mark."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.0, 0.21 * len(cases) + 1.4), layout="constrained")
    colours = {"quantecon": "#D55E00", "mdpsolver": "#009E73", "mdptoolbox": "#CC79A7", "storm": "#E69F00"}
    labelled = set[str]()

    def mark(seconds: float, place: int, label: str, **look: Any) -> None:
        axes.plot(seconds, place, linestyle="", label=None if label in labelled else label, **look)
        labelled.add(label)

    for place, case in enumerate(cases):
        if "seconds" in case["ours"]:
            mark(case["ours"]["seconds"], place, "al.solve", marker="o", color=INK, markersize=7, zorder=3)
        runs = {run["name"]: run for run in case["peers"]}
        for solver, name in case["best"].items():
            mark(runs[name]["seconds"], place, solver, marker=PEER_MARKS[solver], color=colours[solver], markersize=5)
        if case["ratio_at_least"]:
            stopped = case["ratio_at_least"] * case["ours"]["seconds"]
            look = {"marker": "$\\rightarrow$", "color": "#000000", "markersize": 8}
            mark(stopped, place, "every peer was stopped here", **look)
        for run in case["own"]:
            if "seconds" in run and run.get("accurate"):
                mark(run["seconds"], place, "our other methods", marker="|", color=GUIDE, markersize=7)
    axes.set_xscale("log")
    axes.set_yticks(range(len(cases)), [case["name"] for case in cases], fontsize=8)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.set(xlabel="seconds", title="Time to values within 1e-6, best setting of each solver")
    axes.grid(True, axis="both", which="major", color="#e5e5e5", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for suffix, options in ((".svg", {"metadata": {"Date": None}}), (".png", {"dpi": 130})):
        figure.savefig(stem.with_name(stem.name + suffix), **options)
    plt.close(figure)
