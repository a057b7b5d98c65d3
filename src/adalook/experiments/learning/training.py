"""One run of a learning experiment: train for so many seconds of processor time, judge, and write a record.

The worker has one thread: on a free core processor time is wall time, and on a shared one it is what wall time would
have been. Seconds are those of a reference machine: see `machine`. Training counts, the prior's and tree search
included; evaluation does not, nor does compiling, which a throw-away agent has done before, nor do checkpoints, from
which a run that was killed goes on, here or elsewhere.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from adalook.experiments.learning.machine import ReferenceClock
from adalook.experiments.learning.suite import AGENTS, RANDOM, JsonDict, TrainingJob
from adalook.learning.acting import Decision
from adalook.learning.agents.base import Agent
from adalook.learning.runs.directory import Checkpoint, RunDirectory
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
SAVE_SECONDS = 120.0
"""Processor time between checkpoints of a run: at most so much is lost when it is killed."""
MEBI = 2.0**20


class Timeline:
    """Counts and sums for each part of the budget, column by column, so that the record stays small."""

    def __init__(self) -> None:
        self.scores, self.seconds = np.zeros(BINS), np.zeros(BINS)
        self.episodes, self.nodes = np.zeros(BINS, int), np.zeros(BINS, int)
        self.steps, self.prior_steps = np.zeros(BINS, int), np.zeros(BINS, int)
        self.ties, self.stalled = np.zeros(BINS, int), np.zeros(BINS, int)
        self.depths: dict[int, np.ndarray[Any, Any]] = {}

    def add(self, done: Round, share: float, seconds: float = 0.0) -> None:
        """Add a round that took so many seconds and was over when a share of the budget was spent."""
        place = min(BINS - 1, int(share * BINS))
        self.seconds[place] += seconds
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
            "seconds": self.seconds.round(3).tolist(),
            "steps": self.steps.tolist(),
            "prior_steps": self.prior_steps.tolist(),
            "episodes": self.episodes.tolist(),
            "scores": self.scores.round(3).tolist(),
            "nodes": self.nodes.tolist(),
            "ties": self.ties.tolist(),
            "stalled": self.stalled.tolist(),
            "depths": {str(depth): counts.tolist() for depth, counts in sorted(self.depths.items())},
        }

    def load_plain(self, plain: JsonDict) -> None:
        """Go on from what `to_plain` gave."""
        for name in ("seconds", "steps", "prior_steps", "episodes", "scores", "nodes", "ties", "stalled"):
            getattr(self, name)[:] = plain[name]
        self.depths = {int(depth): np.array(counts) for depth, counts in plain["depths"].items()}


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

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.columns: dict[str, list[Any]] = {
            name: [] for name in ("minutes", "steps", "resident_mib", "replay_mib", "open_files", "threads")
        }

    def take_if_due(self, share: float, cpu: float) -> None:
        """Take a sample once another part of the budget is spent, of which there are SAMPLES."""
        if share < (1 + len(self.columns["steps"])) / SAMPLES:
            return
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


class JobInProgress:
    """A run while it trains: the agent, and all that its record is made of. A checkpoint holds both.

    Args:
        job: what is to be trained, and for how long.
    """

    def __init__(self, job: TrainingJob) -> None:
        self.job = job
        self.agent = AGENTS[job.agent].make(job.suite, job.game, job.seed)
        self.clock = ReferenceClock()
        self.cpu = self.wall = 0.0
        """Seconds of the reference machine."""
        self.steps = 0
        self.prior_finished = True
        self.timeline, self.samples = Timeline(), Samples(self.agent)
        self.first_scores, self.last_scores = list[float](), deque[float](maxlen=SCORED_EPISODES)
        self.interim: list[JsonDict] = []

    @property
    def share(self) -> float:
        """The share of the budget that is spent."""
        return self.job.share_spent(self.cpu, self.steps)

    def train(self, directory: RunDirectory | None) -> None:
        """Train until the budget is spent, with checkpoints in a run directory if there is one."""
        interim = INTERIM if self.job.game.interim_episodes else ()
        rounds, saved = self.agent.rounds(), self.cpu
        while self.share < 1.0:
            cpu, wall = time.process_time(), time.perf_counter()
            done = next(rounds)
            self.add(done, *self.clock.converted(time.process_time() - cpu, time.perf_counter() - wall))
            if len(self.interim) < len(interim) and self.share >= interim[len(self.interim)]:
                scores = judged(self.agent, self.job, self.job.game.interim_episodes)
                self.interim.append({"cpu_seconds": self.cpu, "steps": self.steps, **scores})
            if directory is not None and (self.cpu >= saved + SAVE_SECONDS or (saved and self.share >= 1.0)):
                saved = self.cpu
                directory.save(self.steps, self.state())

    def add(self, done: Round, cpu: float, wall: float) -> None:
        """Count a round that took so much processor time and wall time, in seconds of the reference machine."""
        self.cpu += cpu
        self.wall += wall
        self.steps += len(done.decisions)
        self.timeline.add(done, self.share, cpu)
        self.samples.take_if_due(self.share, self.cpu)
        self.prior_finished = done.phase == "agent"
        if self.prior_finished:
            scores = [episode.score for episode in done.episodes]
            self.first_scores += scores[: SCORED_EPISODES - len(self.first_scores)]
            self.last_scores.extend(scores)

    def record(self) -> JsonDict:
        """Judge the agent, and return what the run was like."""
        game = self.job.game
        return {
            "cpu_seconds": self.cpu,
            "wall_seconds": self.wall,
            "machine_speed": self.clock.mean_speed,
            "steps": self.steps,
            "prior_finished": self.prior_finished,
            "first_training_score": float(np.mean(self.first_scores)) if self.first_scores else None,
            "last_training_score": float(np.mean(self.last_scores)) if self.last_scores else None,
            "interim": self.interim,
            "final": judged(self.agent, self.job, game.final_episodes) if game.final_episodes else None,
            "timeline": self.timeline.to_plain(),
            "samples": self.samples.columns,
        }

    def state(self) -> dict[str, Any]:
        """Return all that the run goes on from."""
        return {
            "agent": self.agent.state(),
            "definition": self.job.definition(),
            "counted": {
                "cpu": self.cpu,
                "wall": self.wall,
                "steps": self.steps,
                "prior_finished": self.prior_finished,
                "first_scores": self.first_scores,
                "last_scores": list(self.last_scores),
                "interim": self.interim,
                "timeline": self.timeline.to_plain(),
                "samples": self.samples.columns,
            },
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, unless it is of a job that was defined otherwise: then the run begins anew."""
        if not self.job.is_result(checkpoint.state):
            return
        self.agent.restore(checkpoint)
        counted = checkpoint.state["counted"]
        self.cpu, self.wall, self.steps = counted["cpu"], counted["wall"], counted["steps"]
        self.prior_finished, self.interim = counted["prior_finished"], counted["interim"]
        self.first_scores = counted["first_scores"]
        self.last_scores.extend(counted["last_scores"])
        self.timeline.load_plain(counted["timeline"])
        self.samples.columns = counted["samples"]


def train(job: TrainingJob) -> JsonDict:
    """Train for the job's budget, judging on the way and at the end; a run that was killed goes on."""
    learns = AGENTS[job.agent].learns
    if learns:
        AGENTS[job.agent].make(job.suite, job.game, job.seed, **WARM_UP).learn(steps=WARM_UP_STEPS, progress=False)
    run = JobInProgress(job)
    with nullcontext() if job.folder is None else RunDirectory(job.folder) as directory:
        if directory is not None and (newest := directory.load_newest()) is not None:
            run.restore(newest)
        if learns:
            run.train(directory)
        record = run.record()
        if job.agent_folder is not None:
            final = record["final"] or {}
            scores = {name: final[name] for name in ("score", "scores") if name in final}
            made_by = (
                f"adalook reproduce {job.suite.name} --games {job.game.name} --agents {job.agent} "
                f"--seeds {job.seed + 1} --seconds {job.seconds:g} --keep-agents"
            )
            run.agent.export(job.agent_folder, steps=run.steps, **scores, made_by=made_by)
    return record


def run_training_job(job: TrainingJob) -> JsonDict:
    """Return the record of one run."""
    began = time.perf_counter()
    result = random_play(job) if job.agent == RANDOM else train(job)
    known = {"game": job.game.name, "agent": job.agent, "seed": job.seed, "definition": job.definition()}
    return {**known, **result, "process_seconds": time.perf_counter() - began}
