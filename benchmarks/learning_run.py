"""One run of the learning benchmark, in a process of its own: `python -m benchmarks.learning_run JOB RESULT`.

The budget is processor time of this process, which has one thread: on a free core that is wall time, and on a shared
one it is what wall time would have been. Training counts, the prior's and tree search included; evaluation does not,
nor does compiling, which a throw-away agent has done before.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np

from adalook.learning.acting import Decision
from adalook.learning.agents.base import Agent
from adalook.learning.training import Round
from adalook.storage.files import atomic_write
from benchmarks.learning_contenders import CONTENDERS, GAMES, RANDOM, Contender, Game, Job

Record = dict[str, Any]

BINS = 100
"""Parts of the budget that a run is summed up in."""
INTERIM = (0.5,)
"""Parts of the budget after which the agent is evaluated."""
EVALUATION_SEED = 1_000_003
"""Plus the run's seed: all agents are judged on the same episodes, and no run on those of another."""
LAST_EPISODES = 50
WARM_UP = {"learning_starts_steps": 0, "prior_steps": 64, "ranked_transitions": 8}
WARM_UP_STEPS = 256


class Timeline:
    """What happened in each part of the budget: column by column, so that the file stays small."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.scores = np.zeros(BINS)
        self.episodes, self.nodes = np.zeros(BINS, int), np.zeros(BINS, int)
        self.steps, self.prior_steps = np.zeros(BINS, int), np.zeros(BINS, int)
        self.depths: dict[int, np.ndarray[Any, Any]] = {}

    def add(self, done: Round, at: float) -> None:
        """Take a round into account that was over after so many seconds."""
        place = min(BINS - 1, int(at / self._seconds * BINS))
        self.steps[place] += len(done.decisions)
        self.prior_steps[place] += len(done.decisions) if done.phase == "prior" else 0
        self.episodes[place] += len(done.episodes)
        self.scores[place] += sum(episode.score for episode in done.episodes)
        for depth, count in Counter(decision.depth for decision in done.decisions).items():
            self.depths.setdefault(depth, np.zeros(BINS, int))[place] += count
        self.nodes[place] += sum(decision.nodes for decision in done.decisions)

    def to_plain(self) -> Record:
        """As JSON can hold it. All are counts or sums within a part, steps of the prior among the steps."""
        return {
            "steps": self.steps.tolist(),
            "prior_steps": self.prior_steps.tolist(),
            "episodes": self.episodes.tolist(),
            "scores": self.scores.round(3).tolist(),
            "nodes": self.nodes.tolist(),
            "depths": {str(depth): counts.tolist() for depth, counts in sorted(self.depths.items())},
        }


def judged(agent: Agent, episodes: int, seed: int, epsilon: float = 0.0) -> Record:
    """What a greedy evaluation says, and what it took."""
    began, nodes = time.process_time(), 0

    def count_nodes(episode: int, observation: Any, decision: Decision) -> None:
        nonlocal nodes
        nodes += decision.nodes

    evaluation = agent.evaluate(episodes, seed=EVALUATION_SEED + seed, epsilon=epsilon, watcher=count_nodes)
    decisions = sum(evaluation.depths.values())
    return {
        "score": evaluation.mean,
        "scores": evaluation.scores.round(3).tolist(),
        "mean_episode_steps": float(evaluation.steps.mean()),
        "mean_depth": sum(depth * count for depth, count in evaluation.depths.items()) / decisions,
        "nodes_per_step": nodes / decisions,
        "evaluation_seconds": time.process_time() - began,
    }


def random_play(game: Game, seed: int) -> Record:
    agent = Contender("", 0).make(game.env, seed)
    return {"final": judged(agent, game.random_episodes, seed, epsilon=1.0)}


def train(contender: Contender, game: Game, seed: int, seconds: float) -> Record:
    """Train for so many seconds of processor time, judging on the way and at the end."""
    contender.make(game.env, seed, **WARM_UP).learn(steps=WARM_UP_STEPS)
    agent = contender.make(game.env, seed)
    timeline, last_scores = Timeline(seconds), deque[float](maxlen=LAST_EPISODES)
    interim: list[Record] = []
    due = deque(INTERIM)
    cpu = wall = 0.0
    steps = 0
    rounds = agent.rounds()
    while cpu < seconds:
        cpu_before, wall_before = time.process_time(), time.perf_counter()
        done = next(rounds)
        cpu += time.process_time() - cpu_before
        wall += time.perf_counter() - wall_before
        steps += len(done.decisions)
        timeline.add(done, cpu)
        if done.phase == "agent":
            last_scores.extend(episode.score for episode in done.episodes)
        if due and cpu >= due[0] * seconds:
            due.popleft()
            interim.append({"cpu_seconds": cpu, "steps": steps, **judged(agent, game.interim_episodes, seed)})
    return {
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "steps": steps,
        "prior_finished": done.phase == "agent",
        "last_training_score": float(np.mean(last_scores)) if last_scores else None,
        "interim": interim,
        "final": judged(agent, game.final_episodes, seed),
        "timeline": timeline.to_plain(),
    }


def run(job: Job) -> Record:
    began, game = time.perf_counter(), GAMES[job.game]
    if job.agent == RANDOM:
        result = random_play(game, job.seed)
    else:
        result = train(CONTENDERS[job.agent], game, job.seed, job.seconds)
    known = {"game": job.game, "agent": job.agent, "seed": job.seed, "definition": job.definition()}
    return {**known, **result, "process_seconds": time.perf_counter() - began}


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    record = run(job)
    with atomic_write(Path(sys.argv[2])) as file:
        file.write(json.dumps(record, allow_nan=False).encode() + b"\n")


if __name__ == "__main__":
    main()
