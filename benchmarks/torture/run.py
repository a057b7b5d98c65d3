"""The torture as a whole: every area in turn, and the page `results/torture.md`."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.results import ROOT, machine, write_results
from benchmarks.torture.outcome import Row, Scale

AREAS = (
    "certificates",
    "files",
    "directories",
    "inputs",
    "simulators",
    "workers",
    "environments",
    "processes",
    "kills",
)
INTRODUCTION = """# Torture

adalook under damage, malice and bad luck: `make torture` (a slice of it is part of `make test`). Every row says how
many attempts were made and how many ended badly; 0 is the aim, and anything else is explained. What is promised, and
what is not, is in [SECURITY.md](../SECURITY.md).
"""


def page(results: dict[str, Any]) -> str:
    """Return the page of saved results."""
    about, rows = results["machine"], results["rows"]
    factors = {row["module"]: row["factor"] for row in rows}
    shares = ", ".join(f"`--areas {area} --factor {factor:g}`" for area, factor in factors.items())
    lines = [
        INTRODUCTION,
        f"Made by `python -m benchmarks.torture` ({shares}; factor 1 is the full torture), seed {results['seed']}, "
        f"{results['seconds']:,.0f} s on {about['cores']} cores of {about['cpu']} (load "
        f"{about['load_before']:.1f} from other work before it began), {about['date'][:10]}.",
        "",
        "| area | what | tried | bad | outcomes | |",
        "|---|---|---:|---:|---|---|",
    ]
    for row in rows:
        outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(row["outcomes"].items()))
        lines.append(
            f"| {row['area']} | {row['kind']} | {row['tried']:,} | {row['bad']:,} | {outcomes} | {row['note']} |"
        )
    total, bad = (sum(row[key] for row in rows) for key in ("tried", "bad"))
    lines += [f"| **all** | | **{total:,}** | **{bad:,}** | | |", ""]
    missing = [area for area in AREAS if area not in factors]
    if missing:
        lines += [f"Not part of this run, for want of processor time: {', '.join(missing)}.", ""]
    lines += [f"* {note}" for note in results.get("notes", ())] + [""]
    for row in rows:
        if row["examples"]:
            lines += [
                f"Bad in {row['area']}, {row['kind']}:",
                "",
                *(f"* `{example}`" for example in row["examples"]),
                "",
            ]
    return "\n".join(lines).rstrip()


def _plain(row: Row) -> dict[str, Any]:
    return {
        "area": row.area,
        "kind": row.kind,
        "tried": row.tried,
        "bad": row.bad,
        "outcomes": dict(row.outcomes),
        "note": row.note,
        "examples": [example.replace("\n", " ").replace("`", "'").replace("|", "/") for example in row.examples],
    }


def _kept(
    path: Path, seed: int, again: list[str], kinds: list[str]
) -> tuple[dict[str, list[dict[str, Any]]], list[str], float]:
    """Return what stays of an earlier run with this seed: rows by area that are not run again, notes, seconds."""
    if not path.exists():
        return {}, [], 0.0
    before = json.loads(path.read_text())
    if before["seed"] != seed or set(again) == set(AREAS):
        return {}, [], 0.0
    kept: dict[str, list[dict[str, Any]]] = {}
    for row in before["rows"]:
        if row["module"] not in again or (row["module"] == "files" and kinds and row["kind"] not in kinds):
            kept.setdefault(row["module"], []).append(row)
    return kept, before.get("notes", []), before["seconds"]


def main() -> None:
    """Run the areas that are asked for, and write the page of all that were run so far with these counts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torture", description=__doc__)
    parser.add_argument("--factor", type=float, default=1.0, help="share of the full counts (1: some hours)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=list(AREAS))
    parser.add_argument("--kinds", nargs="+", default=[], help="of files: only these, whose rows are added")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    flags = parser.parse_args()
    about = machine()
    began = time.perf_counter()
    kept, notes, seconds = _kept(flags.out / "torture.json", flags.seed, flags.areas, flags.kinds)
    for area in flags.areas:
        module = importlib.import_module(f"benchmarks.torture.{area}")
        kept.setdefault(area, [])
        only = (tuple(flags.kinds),) if area == "files" and flags.kinds else ()
        for row in module.rows(Scale(flags.factor, flags.seed), *only):
            print(f"{row.area}, {row.kind}: {row.tried:,} tried, {row.bad:,} bad", flush=True)
            kept[area].append(_plain(row) | {"module": area, "factor": flags.factor})
        results = {
            "seed": flags.seed,
            "seconds": seconds + time.perf_counter() - began,
            "machine": about,
            "rows": [row for name in AREAS for row in kept.get(name, ())],
            "notes": notes,
        }
        write_results(flags.out, "torture", json.loads(json.dumps(results)), page(results))
