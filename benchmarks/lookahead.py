"""Score against time per decision: trained agents alone, and with `al.Lookahead` at several budgets.

    python -m benchmarks.lookahead cartpole --training 10000 --episodes 10
    python -m benchmarks.lookahead minatar --game Breakout --training 40000 --episodes 10

The agents are a DQN of Stable-Baselines3 (CartPole) and a plain DQN of adalook (MinAtar). Time is the process's own, so
that other work on the machine does not count; every line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import torch

import adalook as al
from adalook.learning.lookahead import Lookahead

BUDGETS = (2, 6, 14, 30, 62)
"""Steps that a decision may simulate."""


def played(agent: Any, env: Any, episodes: int) -> dict[str, float]:
    """Play episodes as users do and return the mean score, its standard error and the milliseconds of a decision."""
    scores, decisions, spent = [], 0, 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=1_000 + episode)
        over, score = False, 0.0
        while not over:
            begin = time.process_time()
            action, _ = agent.predict(observation, deterministic=True)
            spent += time.process_time() - begin
            decisions += 1
            observation, reward, terminated, truncated, _ = env.step(int(action))
            over, score = terminated or truncated, score + float(reward)
        scores.append(score)
    return _summary(scores, spent, decisions)


def _summary(scores: Any, spent: float, decisions: float) -> dict[str, float]:
    return {
        "mean": round(float(np.mean(scores)), 2),
        "standard_error": round(float(np.std(scores, ddof=1) / np.sqrt(len(scores))), 2),
        "ms_per_decision": round(1e3 * spent / decisions, 3),
    }


def cartpole(training: int, episodes: int) -> Iterator[dict[str, Any]]:
    """Yield the scores of an SB3 DQN that was trained briefly."""
    from stable_baselines3 import DQN

    env = gymnasium.make("CartPole-v1")
    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=1e-3,
        learning_starts=500,
        exploration_fraction=0.3,
        exploration_final_eps=0.05,
        target_update_interval=250,
        seed=0,
        device="cpu",
    )
    model.learn(training)
    yield {"agent": "SB3 DQN alone", "nodes": 0, **played(model, env, episodes)}
    for nodes in BUDGETS:
        for correction in (True, False):
            agent = Lookahead(model, env, nodes=nodes, correction=correction)
            yield {"agent": "with Lookahead", "nodes": nodes, "correction": correction, **played(agent, env, episodes)}


def minatar(game: str, training: int, episodes: int) -> Iterator[dict[str, Any]]:
    """Yield the scores of a plain DQN of ours that was trained briefly."""
    model = al.DQN(f"MinAtar/{game}-v1", seed=0)
    model.learn(steps=training)
    begin = time.process_time()
    alone = model.evaluate(episodes, seed=1)
    spent = time.process_time() - begin
    yield {"agent": "DQN alone", "nodes": 0, **_summary(alone.scores, spent, alone.steps.sum())}
    for nodes in BUDGETS[1:]:
        for correction in (True, False):
            agent = Lookahead(model, f"MinAtar/{game}-v1", nodes=nodes, correction=correction)
            begin = time.process_time()
            evaluation = agent.evaluate(episodes, num_envs=8, seed=1)
            spent = time.process_time() - begin
            yield {
                "agent": "with Lookahead",
                "nodes": nodes,
                "correction": correction,
                **_summary(evaluation.scores, spent, evaluation.steps.sum()),
                "depths": evaluation.depths,
            }


def main() -> None:
    """Run one benchmark and print a line for each agent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["cartpole", "minatar"])
    parser.add_argument("--game", default="Breakout")
    parser.add_argument("--training", type=int, default=10_000, help="steps")
    parser.add_argument("--episodes", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if given.what == "cartpole":
        rows = cartpole(given.training, given.episodes)
    else:
        rows = minatar(given.game, given.training, given.episodes)
    for row in rows:
        print(json.dumps({"what": given.what, **row}), flush=True)


if __name__ == "__main__":
    main()
