"""Experiments and engines by name, for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adalook._validation import integer
from adalook.errors import ArgumentError
from adalook.experiments.chain import ChainExperiment
from adalook.experiments.engines.base import JobEngine
from adalook.experiments.engines.processes import Processes
from adalook.experiments.engines.ray import RayEngine
from adalook.experiments.maze import MazeExperiment
from adalook.experiments.runner import ExperimentSpec
from adalook.experiments.sweep import SweepExperiment

if TYPE_CHECKING:
    from adalook.experiments.learning.suite import LearningExperiment

EVERY = "all"
NAMES = ("chain", "maze", "sweep")


def chosen_experiments(name: str, seeds: int | None = None) -> list[ExperimentSpec]:
    """Return the planning experiment of this name, or all of them; without `seeds` each takes its own number.

    >>> [experiment.name for experiment in chosen_experiments("all")]
    ['chain', 'maze', 'sweep']
    """
    if name not in (*NAMES, EVERY):
        raise ArgumentError("there is no such experiment", expected=", ".join((*NAMES, EVERY)), got=repr(name))
    if seeds is not None:
        integer(1).validate("seeds", seeds)
    if seeds is not None and name == "chain":
        raise ArgumentError("the chain has no seeds", got=f"--seeds {seeds}", remedy="leave it out: nothing is random")
    experiments: list[ExperimentSpec] = [
        ChainExperiment(),
        MazeExperiment() if seeds is None else MazeExperiment(seeds=seeds),
        SweepExperiment() if seeds is None else SweepExperiment(seeds=seeds),
    ]
    return [experiment for experiment in experiments if name in (EVERY, experiment.name)]


def chosen_learning(
    name: str,
    games: tuple[str, ...],
    agents: tuple[str, ...],
    seeds: int | None,
    seconds: float | None,
    paper_scale: bool = False,
) -> LearningExperiment:
    """Return the learning experiment of this name; what is empty or None is the suite's own choice."""
    from adalook.experiments import atari, minatar
    from adalook.experiments.learning.suite import learning_experiment

    if paper_scale and (name != "atari" or seconds is not None):
        raise ArgumentError(
            "the paper's scale is 10 million steps on Atari", got=name, remedy="reproduce atari, without --seconds"
        )
    suite = atari.PAPER_SCALE if paper_scale else {"atari": atari.SUITE, "minatar": minatar.SUITE}[name]
    return learning_experiment(suite, games, agents, seeds, seconds)


def chosen_engine(name: str, workers: int | None = None, address: str | None = None) -> JobEngine:
    """Return the engine of this name.

    >>> chosen_engine("processes", workers=3).workers
    3
    """
    if name == "ray":
        return RayEngine(address, workers)
    if name != "processes":
        raise ArgumentError("there is no such engine", expected="processes or ray", got=repr(name))
    if address is not None:
        raise ArgumentError("an address is for Ray only", remedy="add --engine ray, or leave out --address")
    return Processes(workers)
