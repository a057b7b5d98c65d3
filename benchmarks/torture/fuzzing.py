"""Coverage-guided fuzzing of every kind of file (`coverage`), where atheris is installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.torture.outcome import FOREIGN, Row, Scale

RUNS = 20_000
"""Inputs of each kind, in the full torture."""


def rows(scale: Scale, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """Fuzz every kind of file, or those that are named; without atheris there are no rows."""
    if importlib.util.find_spec("atheris") is None:
        return
    command = [sys.executable, "-m", "benchmarks.torture.coverage", str(scale.count(RUNS)), *only]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            row = Row("fuzzing", said["kind"], frozenset({FOREIGN}), "by coverage, with atheris")
            row.outcomes["refused or read"] = said["tried"] - bool(said["bad"])
            if said["bad"]:
                row.add(FOREIGN, said["bad"])
            yield row
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
