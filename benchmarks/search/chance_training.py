"""Futures per node while learning in games of chance: QL-DQN with 1, 2 and 4 samples at equal processor time.

    python -m benchmarks.search.chance_training --seconds 90      # writes results/search-chance-training.md

MinAtar with sticky actions and difficulty ramping. Trees that draw K futures cost K times as many steps at each level,
so QL-DQN, which keeps to a number of simulated steps per decision, looks less deep with more of them. Agents are
evaluated as they play: with the samples that they learnt with.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import adalook as al
from benchmarks.results import machine, write_results
from benchmarks.search.chance import GAMES, SAMPLES, mean_depth, parsed, summary


def trained(game: str, samples: int, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Train for so much processor time and return what the agent scores then."""
    agent = al.QLDQN(GAMES[game], samples=samples, seed=seed)
    begin = time.process_time()
    agent.learn(seconds=1e9, progress=False, callbacks=[lambda done: time.process_time() - begin < given.seconds])
    spent = time.process_time() - begin
    evaluation = agent.evaluate(given.episodes, seed=1, max_episode_steps=given.steps)
    return {
        "game": game,
        "samples": samples,
        "seed": seed,
        "training_seconds": spent,
        "training_steps": agent.step,
        **summary(evaluation),
        "nodes_per_decision": evaluation.nodes / evaluation.decisions,
    }


def page(rows: list[dict[str, Any]], given: argparse.Namespace) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Futures per node while learning in games of chance",
        "",
        "QL-DQN on MinAtar with sticky actions (0.1) and difficulty ramping, "
        f"{given.seconds:g} s of processor time each, then "
        f"{given.episodes} episodes of at most {given.steps} steps, played with as many samples as it learnt with "
        f"(`python -m benchmarks.search.chance_training --seconds {given.seconds:g} --seeds {given.seeds}`). "
        "± one standard error of the episodes; seeds differ by more than that.",
        "",
        "| game | samples | seed | score | steps of training | depth, mean | simulated steps per decision |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['game']} | {row['samples']} | {row['seed']} | {row['mean']:.1f} ± {row['standard_error']:.1f} | "
        f"{row['training_steps']:,} | {mean_depth(row):.2f} | {row['nodes_per_decision']:.0f} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Train with all numbers of samples, one seed after the other, and write the page after each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0, help="processor time of training")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--games", nargs="*", choices=list(GAMES), default=list(GAMES))
    given = parsed(parser, episodes=16)
    about, rows = machine(), []
    for seed in range(given.seeds):
        for game in given.games:
            for samples in SAMPLES:
                rows.append(trained(game, samples, seed, given))
                print({name: value for name, value in rows[-1].items() if name != "scores"}, flush=True)
                results = {
                    "machine": about,
                    "arguments": {k: str(v) for k, v in vars(given).items() if k != "out"},
                    "rows": rows,
                }
                write_results(given.out, "search-chance-training", results, page(rows, given))


if __name__ == "__main__":
    main()
