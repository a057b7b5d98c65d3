"""What every benchmark writes: its numbers, a page made from them, and the machine they were measured on."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adalook.storage.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "adalook",
    "quantecon",
    "mdpsolver",
    "mdptoolbox-hiive",
    "stormpy",
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "gymnasium",
)
Record = dict[str, Any]


def chosen_parts(parts: Sequence[str], description: str) -> list[str]:
    """Return the parts of a benchmark that the command line names; all if it names none."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; all without it")
    given: list[str] = parser.parse_args().parts
    for part in given:
        if part not in parts:
            parser.error(f"there is no part {part!r}: choose from {', '.join(parts)}")
    return given or list(parts)


def write_results(out: Path, stem: str, results: Record, page: str) -> None:
    """Write results as JSON and the page made from them, each whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    for name, text in ((f"{stem}.json", json.dumps(results, indent=1)), (f"{stem}.md", page)):
        with atomic_write(out / name) as file:
            file.write(text.encode() + b"\n")


def machine() -> Record:
    """What the numbers were measured on."""
    cpu, versions = platform.processor() or platform.machine(), {}
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
        "load_before": os.getloadavg()[0],
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def memory_bytes() -> int:
    """The machine's memory; 0 where the system does not tell."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0
