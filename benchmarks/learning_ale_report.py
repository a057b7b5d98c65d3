"""What the runs on Atari showed: speed, scores, memory beyond the replay memory's own, open files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.learning.runs.loggers import CLOCK, LOG
from adalook.report.figures import style as plotting
from adalook.storage.files import atomic_write
from benchmarks.learning_ale_run import SAMPLES
from benchmarks.planning import machine

Record = dict[str, Any]

MEBI = 2.0**20
LEAK_SHARE = 0.05
"""Memory beyond the replay memory that grows by more than this share within the second half of a run counts as a leak:
arenas of malloc and caches of torch still move a little."""
LAST_EPISODES = 50
COLOURS = {"dqn-0": "#8a8a8a", "dqn-1": "#0072b2", "qldqn": "#d55e00"}
MARKERS = {"dqn-0": "o", "dqn-1": "s", "qldqn": "D"}


def lines_of(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def episodes_of(run: Path) -> tuple[FloatArray, FloatArray]:
    """(minutes of training, scores) of the finished training episodes; when is read off the clock by step."""
    episodes = [line for line in lines_of(run / LOG) if line["kind"] == "episode"]
    clock = [(0, 0.0), *((line["step"], line["seconds"]) for line in lines_of(run / CLOCK))]
    steps, seconds = np.array(clock).T
    at = np.interp([episode["step"] for episode in episodes], steps, seconds) / 60.0
    return at, np.array([episode["score"] for episode in episodes], np.float64)


def look_at(run: Path) -> Record | None:
    """One run, summed up; None if it has hardly begun. Only the newest process counts for memory."""
    samples = lines_of(run / SAMPLES)
    samples = [sample for sample in samples if sample["process"] == samples[-1]["process"]]
    if len(samples) < 4:
        return None
    minutes = np.array([sample["training_seconds"] for sample in samples]) / 60.0
    beyond = np.array([sample["resident_bytes"] - sample["replay_bytes"] for sample in samples]) / MEBI
    late = minutes >= (minutes[0] + minutes[-1]) / 2.0
    slope = float(np.polyfit(minutes[late], beyond[late], 1)[0])
    at, scores = episodes_of(run)
    grown = slope * float(minutes[late][-1] - minutes[late][0])
    return {
        "minutes": minutes.round(3).tolist(),
        "steps": [sample["step"] for sample in samples],
        "steps_per_second": samples[-1]["step"] / samples[-1]["training_seconds"],
        "transitions": samples[-1]["transitions"],
        "resident_mib": [round(sample["resident_bytes"] / MEBI, 1) for sample in samples],
        "replay_mib": [round(sample["replay_bytes"] / MEBI, 1) for sample in samples],
        "beyond_replay_mib_per_minute": slope,
        "grown_mib": grown,
        "leaks": bool(grown > LEAK_SHARE * beyond[late].mean()),
        "open_files": [sample["open_files"] for sample in samples],
        "threads": [sample["threads"] for sample in samples],
        "episodes": len(scores),
        "first_score": float(scores[:LAST_EPISODES].mean()) if len(scores) else None,
        "last_score": float(scores[-LAST_EPISODES:].mean()) if len(scores) else None,
        "score_curve": _by_minute(at, scores),
    }


def _by_minute(at: FloatArray, scores: FloatArray) -> list[list[float]]:
    """[middle of a minute, mean score of the episodes that were over in it, how many]."""
    whole = np.floor(at).astype(int)
    return [
        [minute + 0.5, float(scores[whole == minute].mean()), int((whole == minute).sum())]
        for minute in np.unique(whole)
    ]


def markdown(game: str, found: dict[str, Record]) -> str:
    rows = [
        f"# Training on Atari: {game}",
        "",
        "`python -m benchmarks.learning ale`: real runs with log, TensorBoard events and a checkpoint every five "
        "minutes; several at a time, with one thread each and without overlap. The Atari preset, but a replay memory "
        "of 10,000 transitions, ε that falls over 10,000 steps and learning from step 1,000 on, since the preset's "
        "numbers are for days.",
        "",
        "*Beyond the replay*: resident memory less the replay memory's own count of its bytes. *Growth* is that of the "
        "second half of the run, by a straight line; above 5 % it counts as a leak.",
        "",
        "| agent | minutes | steps | steps/s | episodes | first 50 | last 50 | resident | replay | growth | leak | "
        "open files |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for agent, run in found.items():
        files = run["open_files"]
        scores = [f"{run[key]:.2f}" if run[key] is not None else "–" for key in ("first_score", "last_score")]
        rows.append(
            f"| {agent} | {run['minutes'][-1]:.1f} | {run['steps'][-1]:,} | {run['steps_per_second']:.0f} | "
            f"{run['episodes']:,} | {scores[0]} | {scores[1]} | {run['resident_mib'][-1]:,.0f} MiB | "
            f"{run['replay_mib'][-1]:,.0f} MiB | {run['grown_mib']:+.1f} MiB "
            f"({run['beyond_replay_mib_per_minute']:+.2f}/min) | {'**yes**' if run['leaks'] else 'no'} | "
            f"{files[0]}–{max(files)} |"
        )
    return "\n".join([*rows, "", "![Score, speed and memory by minute](ale.svg)"]) + "\n"


def draw(game: str, found: dict[str, Record], out: Path) -> None:
    """Score, steps and memory by minutes of training."""
    figure = plotting.new_figure(10.5, 3.3)
    score, steps, memory = (figure.add_subplot(1, 3, place) for place in (1, 2, 3))
    for agent, run in found.items():
        look: Record = {"color": COLOURS[agent], "marker": MARKERS[agent], "markersize": 3.5, "linewidth": 1.4}
        if run["score_curve"]:
            minutes, means, _ = zip(*run["score_curve"], strict=True)
            score.plot(minutes, means, **look)
        steps.plot(run["minutes"], run["steps"], label=agent, **look)
        memory.plot(run["minutes"], run["resident_mib"], **look)
        memory.plot(run["minutes"], np.subtract(run["resident_mib"], run["replay_mib"]), linestyle=":", **look)
    plotting.tidy(score, title=f"{game}: score of training episodes", x="minutes", y="mean of the minute")
    plotting.tidy(steps, title="Agent steps", x="minutes")
    plotting.counts(steps)
    plotting.tidy(memory, title="Memory (dotted: without replay)", x="minutes", y="MiB")
    for panel in (score, steps, memory):
        panel.set_xlim(left=0.0)
        panel.set_ylim(bottom=0.0)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=plotting.SMALL)
    plotting.save(figure, out / "ale")


def write(game: str, agents: list[str], runs: Path, out: Path) -> None:
    """Report on the runs that are there."""
    looks = {agent: look_at(runs / f"{game}--{agent}") for agent in agents}
    found = {agent: run for agent, run in looks.items() if run is not None}
    if not found:
        return
    draw(game, found, out)
    known = {"game": game, "machine": machine(), "runs": found}
    for name, text in (("ale.json", json.dumps(known, indent=1) + "\n"), ("ale.md", markdown(game, found))):
        with atomic_write(out / name) as file:
            file.write(text.encode())
