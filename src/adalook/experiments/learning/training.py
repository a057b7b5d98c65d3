"""One run of a learning experiment: train for so many seconds of processor time, judge, and write a record.

The worker has one thread: on a free core processor time is wall time, and on a shared one it is what wall time would
have been. Training counts, the prior's and tree search included; evaluation does not, nor does compiling, which a
throw-away agent has done before.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np

from adalook.experiments.learning.suite import AGENTS, RANDOM, JsonDict, TrainingJob
from adalook.learning.acting import Decision
from adalook.learning.agents.base import Agent
from adalook.learning.training import Round

BINS = 100
"""Parts of the budget that a run is summed up in."""
SAMPLES = 15
"""How often a run looks at its own memory."""
INTERIM = (0.5,)
"""Parts of the budget after which the agent is evaluated."""
EVALUATION_SEED = 1_000_003
"""Plus the run's seed: all agents are judged on the same episodes, and no run on those of another."""
SCORED_EPISODES = 50
"""Training episodes that the first and the last score of a run are means of."""
WARM_UP = {"learning_starts_steps": 0, "prior_steps": 64, "ranked_transitions": 8}
WARM_UP_STEPS = 256
MEBI = 2.0**20


class Timeline:
    """Counts and sums for each part of the budget, column by column, so that the record stays small."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.scores = np.zeros(BINS)
        self.episodes, self.nodes = np.zeros(BINS, int), np.zeros(BINS, int)
        self.steps, self.prior_steps = np.zeros(BINS, int), np.zeros(BINS, int)
        self.ties, self.stalled = np.zeros(BINS, int), np.zeros(BINS, int)
        self.depths: dict[int, np.ndarray[Any, Any]] = {}

    def add(self, done: Round, at: float) -> None:
        """Add a round that was over after so many seconds."""
        place = min(BINS - 1, int(at / self._seconds * BINS))
        self.steps[place] += len(done.decisions)
        self.prior_steps[place] += len(done.decisions) if done.phase == "prior" else 0
        self.episodes[place] += len(done.episodes)
        self.scores[place] += sum(episode.score for episode in done.episodes)
        for depth, count in Counter(decision.depth for decision in done.decisions).items():
            self.depths.setdefault(depth, np.zeros(BINS, int))[place] += count
        self.nodes[place] += sum(decision.nodes for decision in done.decisions)
        self.ties[place] += sum(decision.tied_actions > 1 for decision in done.decisions)
        self.stalled[place] += sum(episode.stalled for episode in done.episodes)

    def to_plain(self) -> JsonDict:
        """Return the timeline as plain data for JSON: counts or sums for each part of the budget.

        Steps of the prior are among the steps; ties are decisions in which the best first actions were equal.
        """
        return {
            "steps": self.steps.tolist(),
            "prior_steps": self.prior_steps.tolist(),
            "episodes": self.episodes.tolist(),
            "scores": self.scores.round(3).tolist(),
            "nodes": self.nodes.tolist(),
            "ties": self.ties.tolist(),
            "stalled": self.stalled.tolist(),
            "depths": {str(depth): counts.tolist() for depth, counts in sorted(self.depths.items())},
        }


def judged(agent: Agent, job: TrainingJob, episodes: int, epsilon: float = 0.0) -> JsonDict:
    """Evaluate an agent, and return the scores, depths, nodes and seconds as plain data."""
    began, nodes, ties = time.process_time(), 0, 0

    def count(episode: int, observation: Any, decision: Decision) -> None:
        nonlocal nodes, ties
        nodes += decision.nodes
        ties += decision.tied_actions > 1

    evaluation = agent.evaluate(
        episodes,
        seed=EVALUATION_SEED + job.seed,
        epsilon=epsilon,
        max_nodes=job.evaluation_nodes,
        watcher=count,
    )
    decisions = sum(evaluation.depths.values())
    return {
        "score": evaluation.mean,
        "scores": evaluation.scores.round(3).tolist(),
        "mean_episode_steps": float(evaluation.steps.mean()),
        "mean_depth": sum(depth * count for depth, count in evaluation.depths.items()) / decisions,
        "nodes_per_step": nodes / decisions,
        "ties": ties / decisions,
        "stalled": evaluation.stalled,
        "cut": evaluation.cut,
        "evaluation_seconds": time.process_time() - began,
    }


class Samples:
    """Steps, memory and open files of this process, looked at every so often."""

    def __init__(self, agent: Agent, seconds: float) -> None:
        self._agent, self._period, self._due = agent, seconds / SAMPLES, seconds / SAMPLES
        self.columns: dict[str, list[Any]] = {
            name: [] for name in ("minutes", "steps", "resident_mib", "replay_mib", "open_files", "threads")
        }

    def take_if_due(self, cpu: float) -> None:
        """Take a sample, unless the last is less than a period of processor time ago."""
        if cpu < self._due:
            return
        self._due += self._period
        trainer = self._agent.trainer
        files = Path("/proc/self/fd")
        sample = {
            "minutes": round(cpu / 60.0, 3),
            "steps": trainer.step,
            "resident_mib": round(resident_bytes() / MEBI, 1),
            "replay_mib": round(trainer.replay.bytes_used / MEBI, 1),
            "open_files": len(os.listdir(files)) if files.is_dir() else None,
            "threads": threading.active_count(),
        }
        for name, value in sample.items():
            self.columns[name].append(value)


def resident_bytes() -> int:
    """Return the resident size now; where the system does not tell, the largest so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def random_play(job: TrainingJob) -> JsonDict:
    """Return the score of random play, which others are normalised by."""
    agent = AGENTS["depth0"].make(job.suite, job.game, job.seed)
    return {"final": judged(agent, job, job.game.random_episodes, epsilon=1.0)}


def train(job: TrainingJob) -> JsonDict:
    """Train for the job's seconds of processor time, judging on the way and at the end."""
    spec, game = AGENTS[job.agent], job.game
    seconds = job.seconds if spec.learns else 0.0
    if spec.learns:
        spec.make(job.suite, game, job.seed, **WARM_UP).learn(steps=WARM_UP_STEPS)
    agent = spec.make(job.suite, game, job.seed)
    timeline, samples = Timeline(seconds), Samples(agent, seconds)
    first_scores, last_scores = list[float](), deque[float](maxlen=SCORED_EPISODES)
    interim: list[JsonDict] = []
    due = deque(INTERIM if game.interim_episodes else ())
    cpu = wall = 0.0
    steps = 0
    prior_finished = True
    rounds = agent.rounds()
    while cpu < seconds:
        cpu_before, wall_before = time.process_time(), time.perf_counter()
        done = next(rounds)
        cpu += time.process_time() - cpu_before
        wall += time.perf_counter() - wall_before
        steps += len(done.decisions)
        timeline.add(done, cpu)
        samples.take_if_due(cpu)
        prior_finished = done.phase == "agent"
        if prior_finished:
            scores = [episode.score for episode in done.episodes]
            first_scores += scores[: SCORED_EPISODES - len(first_scores)]
            last_scores.extend(scores)
        if due and cpu >= due[0] * seconds:
            due.popleft()
            interim.append({"cpu_seconds": cpu, "steps": steps, **judged(agent, job, game.interim_episodes)})
    return {
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "steps": steps,
        "prior_finished": prior_finished,
        "first_training_score": float(np.mean(first_scores)) if first_scores else None,
        "last_training_score": float(np.mean(last_scores)) if last_scores else None,
        "interim": interim,
        "final": judged(agent, job, game.final_episodes) if game.final_episodes else None,
        "timeline": timeline.to_plain(),
        "samples": samples.columns,
    }


def run_training_job(job: TrainingJob) -> JsonDict:
    """Return the record of one run."""
    began = time.perf_counter()
    result = random_play(job) if job.agent == RANDOM else train(job)
    known = {"game": job.game.name, "agent": job.agent, "seed": job.seed, "definition": job.definition()}
    return {**known, **result, "process_seconds": time.perf_counter() - began}
