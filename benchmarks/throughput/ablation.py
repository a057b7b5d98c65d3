"""What each accelerated CPU twin gains end to end: `python -m benchmarks.throughput ablation`.

The same agent trains with everything on, and with each twin off, by turns in one process: the ratio of every turn is
one measurement, and the median counts. A twin that gains less than a fifth is to be deleted. The table goes to
`results/ablation-twins.{json,md}`.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import adalook as al
from adalook.learning.agents.base import Agent
from adalook.learning.presets import config_for
from adalook.learning.training import Round
from benchmarks.results import machine, write_results

MINATAR, ALE = "MinAtar/Breakout-v1", "ALE/Breakout-v5"
LEAST_GAIN = 1.2
STEM = "ablation-twins"
TURNS = 15
Record = dict[str, Any]

OFF: dict[str, dict[str, dict[str, Any]]] = {
    MINATAR: {
        "network": {"accelerate": "optimizer"},
        "optimizer": {"accelerate": "network"},
        "all twins": {"accelerate": "none"},
    },
    ALE: {
        "network": {"accelerate": "none"},
        "overlap": {"overlap": False},
        "network and overlap": {"accelerate": "none", "overlap": False},
    },
}
"""By environment: what is switched off, and the settings that do so."""


@dataclass(frozen=True)
class Case:
    """An agent in an environment, and how long its turns are."""

    env: str
    agent: str
    turn_seconds: float

    def make(self, changes: dict[str, Any]) -> tuple[Agent, Iterator[Round]]:
        """Return an agent that has begun to learn, and its rounds."""
        config = dataclasses.replace(
            config_for(self.env),
            **{
                "learning_starts_steps": 1_000,
                "buffer_transitions": 30_000,
                "ranked_transitions": 500,
                "epsilon_start": 0.1,
                "epsilon_end": 0.1,
                **changes,
            },
        )
        agent = al.DQN(self.env, config) if self.agent == "DQN" else al.QLDQN(self.env, config)
        rounds = agent.rounds()
        while agent.step < config.learning_starts_steps + 200:
            next(rounds)
        return agent, rounds


CASES = (Case(MINATAR, "DQN", 0.5), Case(MINATAR, "QL-DQN", 0.5), Case(ALE, "DQN", 1.0), Case(ALE, "QL-DQN", 1.0))


def speed(agent: Agent, rounds: Iterator[Round], seconds: float) -> float:
    """Return the agent steps per second of one turn."""
    first, begin = agent.step, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        next(rounds)
    return (agent.step - first) / (time.perf_counter() - begin)


def measure(case: Case, turns: int, console: Console) -> Record:
    """Return the speeds of all variants of a case, and the gain of what each has off."""
    variants = {"nothing": {}, **OFF[case.env]}
    running = {name: case.make(changes) for name, changes in variants.items()}
    speeds: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for turn in range(turns):
        first = turn % len(names)  # so that nobody always comes after the same other
        for name in names[first:] + names[:first]:
            speeds[name].append(speed(*running[name], case.turn_seconds))
    for agent, _ in running.values():
        agent.forget_training()
    rows = []
    for name in names:
        ratios = [all_on / off for all_on, off in zip(speeds["nothing"], speeds[name], strict=True)]
        rows.append(
            {
                "off": name,
                "steps_per_second": statistics.median(speeds[name]),
                "gain": statistics.median(ratios),
                "best_gain": max(speeds["nothing"]) / max(speeds[name]),
                "speeds": speeds[name],
            }
        )
        console.print(
            f"  {case.env} {case.agent}, {name} off: {rows[-1]['steps_per_second']:.0f} steps/s, "
            f"gain {rows[-1]['gain']:.2f}",
            highlight=False,
        )
    return {"env": case.env, "agent": case.agent, "rows": rows}


def markdown(results: Record) -> str:
    """Return the page."""
    about = results["machine"]
    lines = [
        "# What each CPU twin gains end to end",
        "",
        f"Made by `python -m benchmarks.throughput ablation` on {about['date']}: {about['cpu']}, {about['cores']} "
        f"cores, load {about['load_before']:.1f} before the run. Training steps per second once learning has started, "
        f"with the presets, {results['turns']} turns by turns in one process. The gain is the median over the turns of "
        "steps per second with everything on, over those with one thing off; in brackets the ratio of the best turns.",
        "",
        f"A twin that gains less than {LEAST_GAIN:g}× in every setting it is made for is deleted.",
        "",
        "| environment | agent | off | steps per second | gain of what is off |",
        "|---|---|---|---:|---:|",
    ]
    for case in results["cases"]:
        for row in case["rows"]:
            gain = "" if row["off"] == "nothing" else f"{row['gain']:.2f}× ({row['best_gain']:.2f}×)"
            lines.append(f"| {case['env']} | {case['agent']} | {row['off']} | {row['steps_per_second']:.0f} | {gain} |")
    return "\n".join([*lines, ""])


def run(out: Path, turns: int = TURNS, only: list[str] | None = None) -> None:
    """Measure all cases and write the table."""
    console = Console()
    results: Record = {"machine": machine(), "turns": turns}
    results["cases"] = [measure(case, turns, console) for case in CASES if not only or case.env in only]
    write_results(out, STEM, results, markdown(results))
