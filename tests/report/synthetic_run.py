"""Training runs made up as files: numbers are chosen, so that what a page says of them is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adalook.learning.presets import config_for
from adalook.learning.runs.directory import CONFIG_FORMAT
from adalook.storage.documents import with_digest

BREAKOUT = "MinAtar/Breakout-v1"
EPISODE_PERIOD, REPORT_PERIOD = 10, 100


def run_config(agent: str = "qldqn", env: str = BREAKOUT, **settings: Any) -> dict[str, Any]:
    config = config_for(env, agent).to_plain() | settings
    about = {"format": CONFIG_FORMAT, "agent": agent, "env": env, "seed": 7, "config": config}
    return about | ({"depth": 0} if agent == "dqn" else {})


def progress(step: int, **changes: Any) -> dict[str, Any]:
    """Half of the decisions at depth 1, a quarter each at depths 2 and 3."""
    usual = {
        "kind": "progress",
        "step": step,
        "phase": "agent",
        "epsilon": 0.5,
        "episodes": 10,
        "mean_score": 1.0,
        "mean_episode_steps": 10.0,
        "updates": 100,
        "loss": 0.5,
        "mean_value": 2.0,
        "depths": {"1": 50, "2": 25, "3": 25},
        "distances": {"1": [0.1, 0.2, 0.3], "2": [0.0, 0.1, 0.4]},
        "merged_share": 0.25,
    }
    return usual | changes


def write_run(place: Path, about: dict[str, Any] | None = None, *, steps: int = 1_000, **changes: Any) -> Path:
    """An episode every 10 steps, with score step/100; a report every 100, 2 s apart; evaluations at 400 and 800."""
    lines: list[dict[str, Any]] = []
    for step in range(EPISODE_PERIOD, steps + 1, EPISODE_PERIOD):
        lines.append({"kind": "episode", "step": step, "phase": "agent", "score": step / 100, "steps": 10})
        if step % REPORT_PERIOD == 0:
            lines.append(progress(step, **changes))
        if step in (400, 800):
            lines.append({"kind": "evaluation", "step": step, "scores": [step / 100, step / 100 + 2], "steps": [5, 5]})
    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(with_digest(run_config() if about is None else about)))
    write_lines(place / "log.jsonl", lines)
    ticks = range(REPORT_PERIOD, steps + 1, REPORT_PERIOD)
    write_lines(place / "clock.jsonl", [{"step": tick, "phase": "agent", "seconds": tick / 50} for tick in ticks])
    return place


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
