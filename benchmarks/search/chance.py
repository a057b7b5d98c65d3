"""Futures per node in games of chance: trees with 1, 2 and 4 samples, of equal steps or of equal time.

    python -m benchmarks.search.chance                 # writes results/search-chance.md

MinAtar with sticky actions and difficulty ramping; the shipped agents' Q-functions at the leaves, nothing learnt. With
K samples a level of the tree costs K times as many steps, so that at equal cost the tree is shallower. Steps of one
batch are cheaper than as many in several, so that equal steps are not equal time: for that, the limit of steps follows
the processor time that decisions have taken so far.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import adalook as al
from adalook._arrays import IntArray
from adalook.learning.acting import Decision
from adalook.learning.evaluation import Evaluation
from adalook.learning.lookahead import Lookahead
from adalook.search.chance import Sampling
from adalook.search.search import Budget
from adalook.simulators.base import Simulator
from benchmarks.results import ROOT, machine, write_results

GAMES = {
    "Breakout": "MinAtar/Breakout-v1?sticky=0.1&ramping=true",
    "Asterix": "MinAtar/Asterix-v1?sticky=0.1&ramping=true",
}
SAMPLES = (1, 2, 4)
FEWEST_NODES, MOST_NODES = 2, 5_000
"""Limits of steps between which a paced search may move; the first level is always completed."""


class TimedLookahead(Lookahead):
    """Trees that know what their decisions cost, and steer their limit of steps towards a pace if there is one."""

    def __init__(self, *args: Any, pace: float | None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._pace, self.spent, self.decisions, self.simulated = pace, 0.0, 0, 0

    def decide(
        self, envs: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """Decide, and allow more steps next time if time is left over, fewer if too much was spent."""
        begin = time.process_time()
        made = super().decide(envs, observations, random_actions, seeds)
        self.spent += time.process_time() - begin
        self.decisions += len(envs)
        self.simulated += sum(decision.nodes for decision in made)
        if self._pace is not None:
            left_over = self._pace * self.decisions / self.spent
            nodes = (self._budget.nodes or 1) * min(2.0, max(0.5, left_over)) ** 0.5
            self._budget = Budget(nodes=int(min(MOST_NODES, max(FEWEST_NODES, round(nodes)))))
        return made


def played(game: str, samples: int, given: argparse.Namespace, pace: float | None) -> dict[str, Any]:
    """Play episodes with trees of so many samples and return scores, depths and processor time."""
    model = al.QLDQN.load(ROOT / "agents" / f"minatar-{game.lower()}")
    agent = TimedLookahead(
        model,
        GAMES[game],
        pace=pace,
        shape="tree",
        nodes=given.nodes,
        samples=Sampling(samples, samples) if samples > 1 else 1,
        adaptive=False,
        correction=False,
    )
    evaluation = agent.evaluate(given.episodes, num_envs=given.episodes, max_episode_steps=given.steps, seed=1)
    return {
        "game": game,
        "pace_ms": None if pace is None else 1e3 * pace,
        "samples": samples,
        **summary(evaluation),
        "nodes_per_decision": agent.simulated / agent.decisions,
        "ms_per_decision": 1e3 * agent.spent / agent.decisions,
        "processor_seconds": agent.spent,
    }


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """Return scores and depths of an evaluation as plain data."""
    return {
        "scores": evaluation.scores.tolist(),
        "mean": evaluation.mean,
        "standard_error": evaluation.standard_error,
        "cut": evaluation.cut,
        "depths": evaluation.depths,
    }


def mean_depth(row: dict[str, Any]) -> float:
    """Return the mean depth of the decisions that a row is about."""
    depths = row["depths"]
    return sum(depth * count for depth, count in depths.items()) / sum(depths.values())


def parsed(parser: argparse.ArgumentParser, episodes: int) -> argparse.Namespace:
    """Return what the command line says, with the flags of every benchmark of chance, and settle on one thread."""
    parser.add_argument("--episodes", type=int, default=episodes)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return parser.parse_args()


def page(rows: list[dict[str, Any]], given: argparse.Namespace) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Futures per node in games of chance",
        "",
        "MinAtar with sticky actions (0.1) and difficulty ramping, the shipped agents' Q-functions at the leaves, "
        f"{given.episodes} episodes of at most {given.steps} steps, nothing learnt "
        "(`python -m benchmarks.search.chance`). One tree with K futures per node and action, no further ones where "
        "the choice is close. ± one standard error; milliseconds are processor time of the searches. Episodes that "
        "reach the limit of steps are cut off.",
    ]
    for pace in sorted({row["pace_ms"] for row in rows}, key=lambda pace: pace or 0.0):
        title = f"Equal time: {pace:g} ms per decision" if pace else f"Equal steps: at most {given.nodes} per decision"
        lines += [
            "",
            f"## {title}",
            "",
            "| game | samples | score | cut off | depth, mean | steps per decision | ms per decision |",
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        for row in (row for row in rows if row["pace_ms"] == pace):
            lines.append(
                f"| {row['game']} | {row['samples']} | {row['mean']:.1f} ± {row['standard_error']:.1f} | "
                f"{row['cut']} | {mean_depth(row):.2f} | {row['nodes_per_decision']:.0f} | "
                f"{row['ms_per_decision']:.1f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Play all games with all numbers of samples and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=90)
    parser.add_argument("--paces", type=float, nargs="*", default=[2.0, 8.0], help="ms of processor time per decision")
    given = parsed(parser, episodes=32)
    about, rows = machine(), []
    for pace in (None, *given.paces):
        for game in GAMES:
            for samples in SAMPLES:
                rows.append(played(game, samples, given, pace and 1e-3 * pace))
                print({name: value for name, value in rows[-1].items() if name != "scores"}, flush=True)
    results = {"machine": about, "arguments": {k: str(v) for k, v in vars(given).items()}, "rows": rows}
    write_results(given.out, "search-chance", results, page(rows, given))


if __name__ == "__main__":
    main()
