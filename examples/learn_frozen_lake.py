"""Slippery FrozenLake, learned: how often QL-DQN's policy arrives, beside the optimal one.

    python examples/learn_frozen_lake.py 4x4 5000
    python examples/learn_frozen_lake.py 8x8 15000

Both policies are judged exactly: by the probability of reaching the goal within the environment's time limit.
"""

from __future__ import annotations

import sys
import time

import gymnasium
import numpy as np

import adalook as al


def success_rate(env: gymnasium.Env, policy: np.ndarray) -> float:
    """Return the probability that a policy (S,) reaches the goal in time, from the transition table."""
    table = env.unwrapped.P
    here, arrived = np.zeros(len(table)), 0.0
    here[0] = 1.0
    for _ in range(env.spec.max_episode_steps):
        there = np.zeros(len(table))
        for state in np.flatnonzero(here):
            for probability, successor, reward, terminated in table[state][int(policy[state])]:
                arrived += here[state] * probability * reward
                there[successor] += 0.0 if terminated else here[state] * probability
        here = there
    return arrived


def learned_policy(agent: al.QLDQN, env: gymnasium.Env) -> np.ndarray:
    """Return what the agent does in each state, by the same searches as when it plays."""
    sim = al.make_simulator(env)
    policy = np.zeros(env.observation_space.n, int)
    for state in range(len(policy)):
        env.unwrapped.s = state
        sim.load_env(env, state)
        policy[state], _ = agent.predict(sim)
    return policy


def main(map_name: str = "4x4", steps: int = 5_000, seed: int = 0) -> tuple[float, float]:
    """Train, compare, print; return both success rates, the learned one first."""
    env = gymnasium.make("FrozenLake-v1", map_name=map_name)
    env.reset(seed=0)
    best = success_rate(env, al.solve(al.MDP.from_gymnasium(env, discount=0.99)).policy)
    agent = al.QLDQN(f"FrozenLake-v1?map_name={map_name}", seed=seed)
    begin = time.process_time()
    agent.learn(steps=steps, progress=False)
    spent = time.process_time() - begin
    learned = success_rate(env, learned_policy(agent, env))
    print(f"{map_name}, seed {seed}: {learned:.3f} learned in {agent.step:,} steps ({spent:.0f} s), {best:.3f} optimal")
    return learned, best


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((str, int, int), sys.argv[1:], strict=False)))
