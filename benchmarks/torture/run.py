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

AREAS = ("certificates", "files", "fuzzing", "directories", "inputs", "simulators")
AREAS += ("workers", "environments", "processes", "kills")
WITH_KINDS = ("certificates", "files", "fuzzing", "kills")
INTRODUCTION = """# Torture

adalook under damage, malice and bad luck: `make torture` (a slice of it is part of `make test`). Every row says how
many attempts were made and how many ended badly; 0 is the aim, and anything else is explained. What is promised, and
what is not, is in [SECURITY.md](../SECURITY.md).
"""


def page(results: dict[str, Any]) -> str:
    """Return the page of saved results."""
    about, rows = results["machine"], results["rows"]
    lines = [
        INTRODUCTION,
        f"Made by `python -m benchmarks.torture`, seed {results['seed']}, {results['seconds']:,.0f} s on "
        f"{about['cores']} cores of {about['cpu']} (load {about['load_before']:.1f} before the last row), "
        f"{about['date'][:10]}. The last column says how: `files 1` is `--areas files --factor 1`, all that the full "
        "torture tries.",
        "",
        "| area | what | tried | bad | outcomes | | made by |",
        "|---|---|---:|---:|---|---|---|",
    ]
    for row in rows:
        outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(row["outcomes"].items()))
        lines.append(
            f"| {row['area']} | {row['kind']} | {row['tried']:,} | {row['bad']:,} | {outcomes} | {row['note']} "
            f"| `{row['module']} {row['factor']:g}` |"
        )
    total, bad = (sum(row[key] for row in rows) for key in ("tried", "bad"))
    lines += [f"| **all** | | **{total:,}** | **{bad:,}** | | | |", ""]
    missing = [area for area in AREAS if area not in {row["module"] for row in rows}]
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


def _earlier(path: Path, seed: int) -> dict[str, Any]:
    """Return the results of earlier runs with this seed, to which rows are added."""
    earlier: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return earlier if earlier.get("seed") == seed else {"seed": seed, "seconds": 0.0, "rows": [], "notes": []}


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["module"], row["area"], row["kind"]


def main() -> None:
    """Run the areas that are asked for; a row is saved when it is done, in the place of that of an earlier run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torture", description=__doc__)
    parser.add_argument("--factor", type=float, default=1.0, help="share of the full counts (1: some hours)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=list(AREAS))
    parser.add_argument("--kinds", nargs="+", default=[], help="of certificates, files, fuzzing and kills: only these")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    flags = parser.parse_args()
    about = machine()
    for area in flags.areas:
        only = (tuple(flags.kinds),) if area in WITH_KINDS and flags.kinds else ()
        done = []
        began = time.perf_counter()
        for row in importlib.import_module(f"benchmarks.torture.{area}").rows(Scale(flags.factor, flags.seed), *only):
            print(f"{row.area}, {row.kind}: {row.tried:,} tried, {row.bad:,} bad", flush=True)
            done.append(_plain(row) | {"module": area, "factor": flags.factor})
            began = _add(flags.out, flags.seed, done[-1:], about, began)
        if not only:
            _forget(flags.out, flags.seed, area, done)


def _add(out: Path, seed: int, rows: list[dict[str, Any]], about: dict[str, Any], began: float) -> float:
    """Put rows into the saved results; returns the time."""
    results = _earlier(out / "torture.json", seed)
    by_key = {_key(row): row for row in [*results["rows"], *rows]}
    now = time.perf_counter()
    results["rows"] = sorted(by_key.values(), key=lambda row: AREAS.index(row["module"]))
    results |= {"machine": about, "seconds": results["seconds"] + now - began}
    write_results(out, "torture", json.loads(json.dumps(results)), page(results))
    return now


def _forget(out: Path, seed: int, area: str, done: list[dict[str, Any]]) -> None:
    """Take rows of an area that no longer exist out of the saved results."""
    results = _earlier(out / "torture.json", seed)
    keys = {_key(row) for row in done}
    results["rows"] = [row for row in results["rows"] if row["module"] != area or _key(row) in keys]
    write_results(out, "torture", results, page(results))
