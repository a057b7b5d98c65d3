"""Real training on Atari for some minutes: `python -m benchmarks.learning ale`. Does it hold, how fast, does it leak?

Each agent is a run in a directory of its own with log, TensorBoard events and a checkpoint every five minutes, two at a
time unless told otherwise, with one thread each. Given again, the command goes on from the checkpoints. Every minute a
thread in the process looks at it from the side. The report goes to `results/learning/ale.{md,json}`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from adalook.storage.files import make_directory
from benchmarks import learning_ale_report as report
from benchmarks.planning import ROOT

Record = dict[str, Any]

GAMES = ("Breakout", "Tutankham")
AGENTS: dict[str, int | None] = {"dqn-0": 0, "dqn-1": 1, "qldqn": None}
"""The depth of each agent's trees; None: QL-DQN."""
STOP_SECONDS = 120.0
"""How long a child may take to write its last checkpoint."""


def start(game: str, agent: str, minutes: float, run: Path) -> subprocess.Popen[bytes]:
    job = {"game": game, "depth": AGENTS[agent], "minutes": minutes, "run": str(run.resolve())}
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.learning_ale_run", json.dumps(job)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us: we then ask them to stop
    )


def train_all(game: str, minutes: float, workers: int, runs: Path, console: Console) -> bool:
    """Run every agent; whether all of them came to their end."""
    waiting, running, all_well = list(AGENTS), dict[str, subprocess.Popen[bytes]](), True
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                agent = waiting.pop(0)
                console.print(f"{agent} on {game}: {minutes:g} min of training")
                running[agent] = start(game, agent, minutes, runs / f"{game}--{agent}")
            for agent in [agent for agent, child in running.items() if child.poll() is not None]:
                code = running.pop(agent).returncode
                all_well = all_well and code == 0
                console.print(f"{agent}: {'done' if code == 0 else f'[red]ended with code {code}[/]'}")
            time.sleep(0.5)
    finally:
        for child in running.values():
            child.send_signal(signal.SIGTERM)  # they save a checkpoint
        for child in running.values():
            child.wait(STOP_SECONDS)
    return all_well


def main(words: list[str], console: Console) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning ale", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--game", choices=GAMES, default="Breakout")
    parser.add_argument("--minutes", type=float, default=15.0, help="of training, per agent")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "ale", help="where checkpoints and logs go")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "learning")
    parser.add_argument("--report-only", action="store_true")
    args = parser.parse_args(words)
    make_directory(args.runs)
    make_directory(args.out)
    all_well = True
    try:
        if not args.report_only:
            all_well = train_all(args.game, args.minutes, args.workers, args.runs, console)
    except KeyboardInterrupt:
        console.print("interrupted, and saved: the same command goes on from there")
        return 3
    report.write(args.game, list(AGENTS), args.runs, args.out)
    console.print(f"report in {args.out / 'ale.md'}", highlight=False)
    return 0 if all_well else 1
