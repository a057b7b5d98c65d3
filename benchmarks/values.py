"""How well an agent's values foresee what it then earns: `python -m benchmarks.values AGENT`.

The agent plays some environments greedily; V(s) = max_a Q(s, a) of every state on the way is held against the
discounted return that followed, in the rewards that it learns from. States of the last third are left out, as too
little followed them.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from adalook.learning.acting import NO_ACTION
from adalook.learning.runs.run import load_agent

Array = np.ndarray[Any, Any]


def play(agent: Any, envs: int, decisions: int, seed: int) -> tuple[Array, Array]:
    """Return values and returns, each (decisions, envs)."""
    sims = [agent.sim.clone() for _ in range(envs)]
    rng = np.random.default_rng(seed)
    observations = np.stack([sim.reset(seed=int(rng.integers(2**31))) for sim in sims])
    depth = min(agent.network.names)
    values, rewards = np.zeros((decisions, envs)), np.zeros((decisions, envs))
    terminated = np.zeros((decisions, envs), bool)
    for step in range(decisions):
        values[step] = agent.leaf_values.values(observations, depth)
        seeds = rng.integers(0, 2**31, envs)
        chosen = agent.actor.decide(sims, observations, np.full(envs, NO_ACTION), seeds)
        for i, (sim, decision) in enumerate(zip(sims, chosen, strict=True)):
            done = sim.step(decision.action)
            rewards[step, i], terminated[step, i] = done.reward, done.terminated
            observations[i] = sim.reset() if done.episode_over else done.observation
    returns, following = np.zeros_like(rewards), agent.leaf_values.values(observations, depth)
    for step in reversed(range(decisions)):
        following = rewards[step] + agent.config.discount * following * ~terminated[step]
        returns[step] = following
    return values, returns


def main() -> None:
    """Print one line: means and spreads of values and returns, and their correlation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.values", description=__doc__)
    parser.add_argument("agent", help="an exported agent or a run")
    parser.add_argument("--decisions", type=int, default=240)
    parser.add_argument("--envs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    values, returns = play(load_agent(options.agent), options.envs, options.decisions, options.seed)
    kept = slice(0, 2 * options.decisions // 3)
    values, returns = values[kept].ravel(), returns[kept].ravel()
    print(
        f"values {values.mean():.2f} ± {values.std():.2f}, returns {returns.mean():.2f} ± {returns.std():.2f}, "
        f"correlation {np.corrcoef(values, returns)[0, 1]:.2f}, {len(values)} states"
    )


if __name__ == "__main__":
    main()
