"""Futures per node in games of chance: trees with 1, 2 and 4 samples, the same number of simulated steps each.

    python -m benchmarks.search.chance                 # writes results/search-chance.md

MinAtar with sticky actions and difficulty ramping; the shipped agents' Q-functions at the leaves, nothing learnt. With
K samples a level of the tree costs K times as many steps, so that at equal cost the tree is shallower.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import torch

import adalook as al
from adalook.learning.lookahead import Lookahead
from adalook.search.chance import Sampling
from benchmarks.results import ROOT, machine, write_results

GAMES = {
    "Breakout": "MinAtar/Breakout-v1?sticky=0.1&ramping=true",
    "Asterix": "MinAtar/Asterix-v1?sticky=0.1&ramping=true",
}
SAMPLES = (1, 2, 4)


def played(game: str, samples: int, nodes: int, episodes: int, steps: int) -> dict[str, Any]:
    """Play episodes with trees of so many samples and return scores, depths and processor time."""
    model = al.QLDQN.load(ROOT / "agents" / f"minatar-{game.lower()}")
    agent = Lookahead(
        model,
        GAMES[game],
        shape="tree",
        nodes=nodes,
        samples=Sampling(samples, samples) if samples > 1 else 1,
        adaptive=False,
        correction=False,
    )
    begin = time.process_time()
    evaluation = agent.evaluate(episodes, num_envs=episodes, max_episode_steps=steps, seed=1)
    spent = time.process_time() - begin
    return {
        "game": game,
        "samples": samples,
        "scores": evaluation.scores.tolist(),
        "mean": evaluation.mean,
        "standard_error": evaluation.standard_error,
        "cut": evaluation.cut,
        "depths": evaluation.depths,
        "ms_per_decision": 1e3 * spent / float(evaluation.steps.sum()),
        "processor_seconds": spent,
    }


def page(rows: list[dict[str, Any]], nodes: int, episodes: int, steps: int) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Futures per node in games of chance",
        "",
        f"MinAtar with sticky actions (0.1) and difficulty ramping. Trees of at most {nodes} simulated steps per "
        "decision, the shipped agents' Q-functions at the leaves, "
        f"{episodes} episodes of at most {steps} steps, nothing learnt "
        "(`python -m benchmarks.search.chance`). One tree with K futures per node and action, no further ones where "
        "the choice is close. ± one standard error; milliseconds are processor time.",
        "",
        "| game | samples | score | cut off | depth, mean | ms per decision |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        depths = row["depths"]
        mean_depth = sum(depth * count for depth, count in depths.items()) / sum(depths.values())
        lines.append(
            f"| {row['game']} | {row['samples']} | {row['mean']:.1f} ± {row['standard_error']:.1f} | {row['cut']} | "
            f"{mean_depth:.2f} | {row['ms_per_decision']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Play all games with all numbers of samples and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=90)
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    about, rows = machine(), []
    for game in GAMES:
        for samples in SAMPLES:
            rows.append(played(game, samples, given.nodes, given.episodes, given.steps))
            print(rows[-1], flush=True)
    results = {"machine": about, "arguments": {k: str(v) for k, v in vars(given).items()}, "rows": rows}
    write_results(given.out, "search-chance", results, page(rows, given.nodes, given.episodes, given.steps))


if __name__ == "__main__":
    main()
